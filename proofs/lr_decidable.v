(** Always, never and jointly legal are decidable for every LR automaton with finitely many states.

    In: finitely many cells, which of them can lie below which, and a function that reads configurations cell by cell.
    Out: [never_dec], [always_dec], [jointly_dec]: each verdict, over all stacks that the tables allow, is decided by a search
    over finitely many pairs of a cell and a configuration; and [waiting_finite]: the configurations of a sequence are
    finitely many, since a configuration forgets the cells that it has read. *)

From Coq Require Import List Bool Arith Lia.
Import ListNotations.
From Maskwright Require Import stack_automaton partial_stacks.

(** * Reachability in a finite graph *)

Section Graph.
Context {X : Type} (eq_dec : forall x y : X, {x = y} + {x <> y}).
Variable succ : X -> list X.

(** [path x p y]: the nodes [p] lead from [x], its first one, to [y], its last one. *)
Inductive path : X -> list X -> X -> Prop :=
| path_here x : path x [x] x
| path_step x x' p y : In x' (succ x) -> path x' p y -> path x (x :: p) y.

Definition reaches (x y : X) : Prop := exists p, path x p y.

Lemma path_from x p y : path x p y -> forall z, In z p -> exists q, path z q y /\ incl q p /\ (NoDup p -> NoDup q).
Proof.
  induction 1 as [x|x x' p y edge further IH]; intros z is_in.
  - destruct is_in as [<-|[]]. exists [x]. repeat split; [constructor | apply incl_refl | trivial].
  - destruct is_in as [<-|is_in].
    + exists (x :: p). repeat split; [now apply path_step with x' | apply incl_refl | trivial].
    + destruct (IH z is_in) as (q & from_z & inside & once). exists q. repeat split.
      * assumption.
      * intros w is_in_q. right. now apply inside.
      * intros all_once. apply once. now inversion all_once.
Qed.

(** A way that meets a node twice can be cut short. *)
Lemma path_once x p y : path x p y -> exists q, path x q y /\ incl q p /\ NoDup q.
Proof.
  induction 1 as [x|x x' p y edge further IH].
  - exists [x]. repeat split; [constructor | apply incl_refl | repeat constructor; intros []].
  - destruct IH as (q & from_x' & inside & once).
    destruct (in_dec eq_dec x q) as [again|new].
    + destruct (path_from x' q y from_x' x again) as (r & from_x & deeper & once').
      exists r. repeat split; [assumption | | now apply once'].
      intros w is_in. right. apply inside. now apply deeper.
    + exists (x :: q). repeat split.
      * now apply path_step with x'.
      * intros w [<-|is_in]; [now left | right; now apply inside].
      * now constructor.
Qed.

(** The nodes within [k] steps. *)
Fixpoint within (k : nat) (x : X) : list X :=
  match k with
  | 0 => [x]
  | S k => x :: flat_map (within k) (succ x)
  end.

Lemma within_reaches k : forall x y, In y (within k x) -> reaches x y.
Proof.
  induction k as [|k IH]; intros x y; simpl.
  - intros [<-|[]]. exists [x]. constructor.
  - intros [<-|is_in]; [exists [x]; constructor|].
    apply in_flat_map in is_in. destruct is_in as (x' & edge & is_in).
    destruct (IH x' y is_in) as (p & from_x'). exists (x :: p). now apply path_step with x'.
Qed.

Lemma path_within x p y : path x p y -> forall k, length p <= S k -> In y (within k x).
Proof.
  induction 1 as [x|x x' p y edge further IH]; intros [|k] short; simpl in *.
  - now left.
  - now left.
  - destruct further; simpl in short; lia.
  - right. apply in_flat_map. exists x'. split; [assumption|]. apply IH. lia.
Qed.

Variable all : list X.
Hypothesis all_in : forall x, In x all.

Lemma reaches_within x y : reaches x y <-> In y (within (length all) x).
Proof.
  split; [|apply within_reaches].
  intros (p & from_x). destruct (path_once x p y from_x) as (q & from_x' & _ & once).
  apply (path_within x q y from_x').
  assert (length q <= length all) by (apply NoDup_incl_length; [assumption | intros z _; apply all_in]). lia.
Qed.

Variable goal : X -> bool.

(** Whether some node that is a goal can be reached. *)
Definition search (x : X) : bool := existsb goal (within (length all) x).

Lemma search_exact x : search x = true <-> exists y, reaches x y /\ goal y = true.
Proof.
  unfold search. rewrite existsb_exists. split; intros (y & is_there & is_goal); exists y; split; trivial; now apply reaches_within.
Qed.
End Graph.

(** * Verdicts over all stacks *)

Section Verdicts.
Context {D cell : Type} (eq_D : forall c d : D, {c = d} + {c <> d}) (eq_cell : forall x y : cell, {x = y} + {x <> y}).
Variable cells : list cell.
Hypothesis all_cells : forall x, In x cells.
Variable all_D : list D.
Hypothesis all_D_in : forall d, In d all_D.
Variable read : D -> cell -> outcome D.
Variables (below : cell -> cell -> bool) (is_bottom : cell -> bool).

Definition lies_below (x y : cell) : Prop := below x y = true.
Definition at_bottom (x : cell) : Prop := is_bottom x = true.

(** [some_stack x d]: [d] accepts some stack that can lie below [x]. *)
Definition some_stack (x : cell) (d : D) : Prop :=
  exists stack, viable lies_below x stack /\ whole at_bottom x stack /\ accepts read d stack = true.

(** A node is the cell read last, with what has been found since: a configuration, or that all is accepted. *)
Definition place : Type := (cell * option D)%type.
Definition moves (p : place) : list place :=
  let (x, found) := p in
  flat_map (fun y => if below x y then
    match found with
    | None => [(y, None)]
    | Some d => match read d y with Yes => [(y, None)] | No => [] | More d' => [(y, Some d')] end
    end else []) cells.
Definition is_accepted (p : place) : bool := let (x, found) := p in match found with None => is_bottom x | Some _ => false end.

Definition says (found : option D) (stack : list cell) : bool :=
  match found with None => true | Some d => accepts read d stack end.

Lemma moves_in x found y found' : In (y, found') (moves (x, found)) <->
  below x y = true /\ match found with
                      | None => found' = None
                      | Some d => match read d y with Yes => found' = None | No => False | More d' => found' = Some d' end
                      end.
Proof.
  unfold moves. rewrite in_flat_map. split.
  - intros (z & _ & is_in). destruct (below x z) eqn:lies; [|destruct is_in].
    destruct found as [d|]; [destruct (read d z) as [| |d'] eqn:of_d|]; simpl in is_in;
      try (destruct is_in as [same|[]]; injection same as <- <-; rewrite ?of_d; now split); destruct is_in.
  - intros (lies & is_found). exists y. split; [apply all_cells|]. rewrite lies.
    destruct found as [d|]; [destruct (read d y) as [| |d']|]; try contradiction; subst; now left.
Qed.

Lemma reached_stack x found : (exists p, reaches moves (x, found) p /\ is_accepted p = true) <->
  exists stack, viable lies_below x stack /\ whole at_bottom x stack /\ says found stack = true.
Proof.
  split.
  - intros (goal & (p & way) & is_goal). remember (x, found) as from eqn:begins. revert x found begins.
    induction way as [node|node node' p goal edge further IH]; intros x found begins; subst node.
    + simpl in is_goal. destruct found; [discriminate|]. exists []. now repeat split.
    + destruct node' as (y & found'). apply moves_in in edge. destruct edge as (lies & is_found).
      destruct (IH is_goal y found' eq_refl) as (stack & is_viable & is_whole & accepted).
      exists (y :: stack). split; [now split|]. split; [exact is_whole|].
      destruct found as [d|]; [|reflexivity]. simpl. destruct (read d y) as [| |d']; [reflexivity | contradiction|].
      subst found'. exact accepted.
  - intros (stack & is_viable & is_whole & accepted). revert x found is_viable is_whole accepted.
    induction stack as [|y stack IH]; intros x found is_viable is_whole accepted.
    + exists (x, found). split; [exists [(x, found)]; constructor|]. destruct found as [d|]; [discriminate | exact is_whole].
    + destruct is_viable as (lies & deeper). simpl in is_whole.
      assert (step_to : exists found', In (y, found') (moves (x, found)) /\ says found' stack = true).
      { destruct found as [d|].
        - simpl in accepted. destruct (read d y) as [| |d'] eqn:of_d; [|discriminate|].
          + exists None. split; [apply moves_in; rewrite of_d; now split | reflexivity].
          + exists (Some d'). split; [apply moves_in; rewrite of_d; now split | exact accepted].
        - exists None. split; [apply moves_in; now split | reflexivity]. }
      destruct step_to as (found' & edge & accepted').
      destruct (IH y found' deeper is_whole accepted') as (goal & (p & way) & is_goal).
      exists goal. split; [|assumption]. exists ((x, found) :: p). now apply path_step with (y, found').
Qed.

Definition places : list place := flat_map (fun x => (x, None) :: map (fun d => (x, Some d)) all_D) cells.
Lemma all_places (p : place) : In p places.
Proof.
  destruct p as (x & found). apply in_flat_map. exists x. split; [apply all_cells|].
  destruct found as [d|]; [right; apply (in_map (fun d => (x, Some d))); apply all_D_in | now left].
Qed.
Lemma eq_place (p q : place) : {p = q} + {p <> q}.
Proof.
  destruct p as (x & [c|]), q as (y & [d|]); destruct (eq_cell x y) as [->|differs]; try (right; congruence).
  - destruct (eq_D c d) as [->|differs]; [now left | right; congruence].
  - now left.
Defined.

(** The search that decides it. *)
Theorem some_stack_dec x d : {some_stack x d} + {~ some_stack x d}.
Proof.
  destruct (search moves places is_accepted (x, Some d)) eqn:found.
  - left. apply (search_exact eq_place moves places all_places is_accepted) in found. exact (proj1 (reached_stack x (Some d)) found).
  - right. intros exists_one. apply (reached_stack x (Some d)) in exists_one.
    apply (search_exact eq_place moves places all_places is_accepted) in exists_one.
    rewrite found in exists_one. discriminate.
Qed.
End Verdicts.

(** * Never, always, jointly *)

Section Legality.
Context {C cell : Type} (eq_C : forall c d : C, {c = d} + {c <> d}) (eq_cell : forall x y : cell, {x = y} + {x <> y}).
Variable cells : list cell.
Hypothesis all_cells : forall x, In x cells.
Variable all_C : list C.
Hypothesis all_C_in : forall c, In c all_C.
Variable step : C -> cell -> outcome C.
Variables (below : cell -> cell -> bool) (is_bottom : cell -> bool).
Hypothesis bottom_decides : forall c x d, is_bottom x = true -> step c x <> More d.

(** The stacks below a cell that is no bottom, down to a bottom. *)
Definition stack_below (x : cell) (stack : list cell) : Prop :=
  viable (lies_below below) x stack /\ whole (at_bottom is_bottom) x stack /\ stack <> [].

Definition never_accepted (x : cell) (c : C) : Prop := forall stack, stack_below x stack -> accepts step c stack = false.
Definition always_accepted (x : cell) (c : C) : Prop := forall stack, stack_below x stack -> accepts step c stack = true.
Definition jointly_accepted (x : cell) (c d : C) : Prop :=
  forall stack, stack_below x stack -> accepts step c stack = accepts step d stack.

(** Two outcomes, each of which waits until both are known; it accepts where they differ. *)
Definition both : Type := (outcome C * outcome C)%type.
Definition further (o : outcome C) (x : cell) : outcome C := match o with More c => step c x | decided => decided end.
Definition differ (p : both) (x : cell) : outcome both :=
  match further (fst p) x, further (snd p) x with
  | Yes, Yes | No, No => No
  | Yes, No | No, Yes => Yes
  | o, o' => More (o, o')
  end.
Definition verdict (o : outcome C) (stack : list cell) : bool :=
  match o with Yes => true | No => false | More c => accepts step c stack end.

Lemma verdict_further o x stack : verdict o (x :: stack) = verdict (further o x) stack.
Proof. now destruct o. Qed.

Lemma decided_at_bottom o x d : is_bottom x = true -> further o x <> More d.
Proof. destruct o; simpl; intros is_bottom'; try discriminate. now apply bottom_decides. Qed.

Lemma differ_exact stack : forall x o p, viable (lies_below below) x stack -> whole (at_bottom is_bottom) x stack -> stack <> [] ->
  (accepts differ (o, p) stack = true <-> verdict o stack <> verdict p stack).
Proof.
  induction stack as [|y stack IH]; intros x o p is_viable is_whole not_empty; [contradiction|].
  destruct is_viable as (lies & deeper). simpl in is_whole. rewrite !verdict_further.
  cbn [accepts]. unfold differ at 1. cbn [fst snd].
  destruct stack as [|z stack].
  - pose proof (decided_at_bottom o y) as o_decided. pose proof (decided_at_bottom p y) as p_decided. simpl in is_whole.
    destruct (further o y) as [| |c]; destruct (further p y) as [| |d]; simpl;
      try (destruct (o_decided c is_whole eq_refl)); try (destruct (p_decided d is_whole eq_refl));
      split; intros; trivial; try discriminate; try congruence.
  - specialize (IH y). destruct (further o y) as [| |c] eqn:of_o; destruct (further p y) as [| |d] eqn:of_p;
      try (simpl; split; intros; trivial; try discriminate; congruence);
      apply IH; trivial; discriminate.
Qed.

Definition eq_outcome (o p : outcome C) : {o = p} + {o <> p}.
Proof. decide equality. Defined.
Definition eq_both (p q : both) : {p = q} + {p <> q}.
Proof. decide equality; apply eq_outcome. Defined.
Definition all_outcomes : list (outcome C) := Yes :: No :: map More all_C.
Lemma all_outcomes_in o : In o all_outcomes.
Proof. destruct o; [now left | right; now left | right; right; apply in_map; apply all_C_in]. Qed.
Lemma all_both_in (p : both) : In p (list_prod all_outcomes all_outcomes).
Proof. destruct p. apply in_prod; apply all_outcomes_in. Qed.

(** Below a bottom there is no stack; elsewhere an empty list is no whole stack. *)
Lemma differ_some x o p : is_bottom x = false ->
  (some_stack differ below is_bottom x (o, p) <-> exists stack, stack_below x stack /\ verdict o stack <> verdict p stack).
Proof.
  intros not_bottom. split.
  - intros (stack & is_viable & is_whole & found).
    assert (stack <> []) by (destruct stack; [unfold whole, at_bottom in is_whole; congruence | discriminate]).
    exists stack. split; [now repeat split|]. now apply (differ_exact stack x o p).
  - intros (stack & (is_viable & is_whole & not_empty) & found). exists stack. repeat split; trivial.
    now apply (differ_exact stack x o p).
Qed.

Lemma differ_dec x o p : is_bottom x = false ->
  {forall stack, stack_below x stack -> verdict o stack = verdict p stack} +
  {exists stack, stack_below x stack /\ verdict o stack <> verdict p stack}.
Proof.
  intros not_bottom.
  destruct (some_stack_dec eq_both eq_cell cells all_cells (list_prod all_outcomes all_outcomes) all_both_in differ below
              is_bottom x (o, p)) as [found|none].
  - right. now apply differ_some.
  - left. intros stack is_below. destruct (bool_dec (verdict o stack) (verdict p stack)) as [same|not_same]; [assumption|].
    exfalso. apply none. apply differ_some; [assumption|]. now exists stack.
Defined.

Theorem jointly_dec x c d : is_bottom x = false -> {jointly_accepted x c d} + {~ jointly_accepted x c d}.
Proof.
  intros not_bottom. destruct (differ_dec x (More c) (More d) not_bottom) as [same|found].
  - left. exact same.
  - right. intros jointly. destruct found as (stack & is_below & not_same). exact (not_same (jointly stack is_below)).
Qed.

Theorem always_dec x c : is_bottom x = false -> {always_accepted x c} + {~ always_accepted x c}.
Proof.
  intros not_bottom. destruct (differ_dec x (More c) Yes not_bottom) as [same|found].
  - left. exact same.
  - right. intros always. destruct found as (stack & is_below & not_same). exact (not_same (always stack is_below)).
Qed.

Theorem never_dec x c : is_bottom x = false -> {never_accepted x c} + {~ never_accepted x c}.
Proof.
  intros not_bottom. destruct (differ_dec x (More c) No not_bottom) as [same|found].
  - left. exact same.
  - right. intros never. destruct found as (stack & is_below & not_same). exact (not_same (never stack is_below)).
Qed.
End Legality.

(** * The configurations of a sequence are finitely many *)

Section Waiting.
Context {state terminal nonterminal : Type}.
Variable acts : state -> terminal -> @action state nonterminal -> Prop.
Variable goto : state -> nonterminal -> state -> Prop.
Variables (nonterminals : list nonterminal) (longest : nat).
Hypothesis rules_bounded : forall q t A n, acts q t (Reduce A n) -> In A nonterminals /\ n <= longest.

Fixpoint suffixes (w : list terminal) : list (list terminal) :=
  match w with [] => [[]] | _ :: v => w :: suffixes v end.

Lemma suffixes_self w : In w (suffixes w).
Proof. destruct w; now left. Qed.

Lemma suffixes_trans w v u : In v (suffixes w) -> In u (suffixes v) -> In u (suffixes w).
Proof.
  induction w as [|t w IH]; simpl; intros of_w of_v.
  - destruct of_w as [<-|[]]. exact of_v.
  - destruct of_w as [<-|of_w]; [exact of_v | right; now apply IH].
Qed.

(** All that a sequence can wait for. *)
Definition waiting (w : list terminal) : list configuration :=
  map (@Reads terminal nonterminal) (suffixes w) ++
  flat_map (fun k => flat_map (fun A => map (Pops k A) (suffixes w)) nonterminals) (seq 0 (S longest)).

Lemma waiting_pops w k A v : k <= longest -> In A nonterminals -> In v (suffixes w) -> In (Pops k A v) (waiting w).
Proof.
  intros short is_one of_w. apply in_or_app. right. apply in_flat_map. exists k. split; [apply in_seq; lia|].
  apply in_flat_map. exists A. split; [assumption|]. now apply in_map.
Qed.

Lemma waiting_inv w c : In c (waiting w) ->
  match c with
  | Reads v => In v (suffixes w)
  | Pops k A v => k <= longest /\ In A nonterminals /\ In v (suffixes w)
  end.
Proof.
  intros is_in. apply in_app_or in is_in. destruct is_in as [is_in|is_in].
  - apply in_map_iff in is_in. now destruct is_in as (v & <- & of_w).
  - apply in_flat_map in is_in. destruct is_in as (k & short & is_in).
    apply in_flat_map in is_in. destruct is_in as (A & is_one & is_in).
    apply in_map_iff in is_in. destruct is_in as (v & <- & of_w). apply in_seq in short. repeat split; trivial. lia.
Qed.

Lemma leads_waiting known v o : leads acts goto known v o ->
  forall d, o = Some d -> forall w, In v (suffixes w) -> In d (waiting w).
Proof.
  induction 1 as [q known|q known t v s o is_shift _ IH|q known t v A n p rest s o is_reduce popped put _ IH
                 |q known t v A n is_reduce is_past]; intros d is_d w of_w.
  - discriminate.
  - apply IH; [assumption|]. apply (suffixes_trans w (t :: v)); [assumption|]. right. apply suffixes_self.
  - now apply IH.
  - injection is_d as <-. destruct (rules_bounded q t A n is_reduce) as (is_one & short).
    apply waiting_pops; trivial. lia.
Qed.

(** What a configuration comes to is again one of them. *)
Theorem waiting_finite w c x d : In c (waiting w) -> steps acts goto c x (Some d) -> In d (waiting w).
Proof.
  intros is_in stepped. apply waiting_inv in is_in. remember (Some d) as o eqn:is_d.
  destruct stepped as [v x o leads_on|k A v x|A v x s o put leads_on].
  - now apply (leads_waiting [x] v o leads_on).
  - injection is_d as <-. destruct is_in as (short & is_one & of_w). apply waiting_pops; trivial. lia.
  - destruct is_in as (short & is_one & of_w). now apply (leads_waiting [s; x] v o leads_on).
Qed.
End Waiting.
