(** Always, never and jointly legal are decidable for LR automata with finitely many states.

    In: finitely many cells, which of them can lie below which, and a function that reads configurations cell by cell.
    Out: [never_dec], [always_dec], [jointly_dec]: each verdict, over all stacks that the tables allow, is decided by a search
    over finitely many pairs of a cell and a configuration; [waiting_finite]: the configurations of a sequence are finitely
    many, since a configuration forgets the cells that it has read; and both together for LR tables: [never_takes_dec],
    [always_takes_dec], [jointly_takes_dec], about what the parser takes on whole stacks. *)

From Coq Require Import List Bool Arith Lia Eqdep_dec.
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
Hypothesis bottom_last : forall x y, is_bottom x = true -> below x y = false.

(** The stacks below a cell that is no bottom, down to a bottom. *)
Definition stack_below (x : cell) (stack : list cell) : Prop :=
  viable (lies_below below) x stack /\ whole (at_bottom is_bottom) x stack /\ stack <> [].

Definition never_accepted (x : cell) (c : C) : Prop := forall stack, stack_below x stack -> accepts step c stack = false.
Definition always_accepted (x : cell) (c : C) : Prop := forall stack, stack_below x stack -> accepts step c stack = true.
Definition jointly_accepted (x : cell) (c d : C) : Prop :=
  forall stack, stack_below x stack -> accepts step c stack = accepts step d stack.

(** Two outcomes, each of which waits until both are known; it accepts where they differ. *)
Definition both : Type := (outcome C * outcome C)%type.
Definition further (o : outcome C) (x : cell) : outcome C :=
  match o with
  | More c => match step c x with More d => if is_bottom x then No else More d | decided => decided end
  | decided => decided
  end.
Definition differ (p : both) (x : cell) : outcome both :=
  match further (fst p) x, further (snd p) x with
  | Yes, Yes | No, No => No
  | Yes, No | No, Yes => Yes
  | o, o' => More (o, o')
  end.
Definition verdict (o : outcome C) (stack : list cell) : bool :=
  match o with Yes => true | No => false | More c => accepts step c stack end.

(** What still waits at the bottom waits for a cell that never comes. *)
Lemma verdict_further o x stack : viable (lies_below below) x stack -> verdict o (x :: stack) = verdict (further o x) stack.
Proof.
  intros is_viable. destruct o as [| |c]; [reflexivity..|]. simpl.
  destruct (step c x) as [| |d]; [reflexivity..|]. destruct (is_bottom x) eqn:at_end; [|reflexivity].
  destruct stack as [|y stack]; [reflexivity|]. destruct is_viable as (lies & _).
  unfold lies_below in lies. now rewrite bottom_last in lies.
Qed.

Lemma decided_at_bottom o x d : is_bottom x = true -> further o x <> More d.
Proof. destruct o as [| |c]; simpl; intros is_bottom'; try discriminate. destruct (step c x); rewrite ?is_bottom'; discriminate. Qed.

Lemma differ_exact stack : forall x o p, viable (lies_below below) x stack -> whole (at_bottom is_bottom) x stack -> stack <> [] ->
  (accepts differ (o, p) stack = true <-> verdict o stack <> verdict p stack).
Proof.
  induction stack as [|y stack IH]; intros x o p is_viable is_whole not_empty; [contradiction|].
  destruct is_viable as (lies & deeper). simpl in is_whole. rewrite !verdict_further by exact deeper.
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

(** * Every LR automaton with finitely many states

    All of the above together, for an automaton as [partial_stacks] has it. What is asked of it, beside finitely many states: that
    what a configuration can come to on one more cell is finite, and can be listed. Tables whose reductions of nothing go round for
    ever have no such list, and no checker or builder takes them. *)
Section Automaton.
Context {state terminal nonterminal : Type}.
Variable eq_state : forall p q : state, {p = q} + {p <> q}.
Variable eq_terminal : forall s t : terminal, {s = t} + {s <> t}.
Variable eq_nonterminal : forall A B : nonterminal, {A = B} + {A <> B}.
Variable acts : state -> terminal -> @action state nonterminal -> Prop.
Variable goto : state -> nonterminal -> state -> Prop.
Variables (nonterminals : list nonterminal) (longest : nat).
Hypothesis rules_bounded : forall q t A n, acts q t (Reduce A n) -> In A nonterminals /\ n <= longest.
Variable states : list state.
Hypothesis all_states : forall q, In q states.
Variables (below : state -> state -> bool) (is_bottom : state -> bool).
Hypothesis bottom_last : forall p q, is_bottom p = true -> below p q = false.
Notation configuration := (@configuration terminal nonterminal).
Variable outcomes : configuration -> state -> list (option configuration).
Hypothesis outcomes_exact : forall c q o, In o (outcomes c q) <-> steps acts goto c q o.

(** The stacks that can lie below the state [q], down to a bottom. *)
Definition lies_under (q : state) (rest : list state) : Prop :=
  viable (lies_below below) q rest /\ whole (at_bottom is_bottom) q rest.

Definition eq_configuration (c d : configuration) : {c = d} + {c <> d}.
Proof. decide equality; try apply Nat.eq_dec; apply list_eq_dec; exact eq_terminal. Defined.

(** ** The sets of configurations, finitely many *)
Fixpoint sublists {X} (l : list X) : list (list X) :=
  match l with [] => [[]] | x :: rest => sublists rest ++ map (cons x) (sublists rest) end.

Lemma filter_sublists {X} (f : X -> bool) l : In (filter f l) (sublists l).
Proof.
  induction l as [|x l IH]; simpl; [now left|]. apply in_or_app.
  destruct (f x); [right; now apply in_map | now left].
Qed.

Lemma sublists_incl {X} (l : list X) : forall k, In k (sublists l) -> incl k l.
Proof.
  induction l as [|x l IH]; simpl; intros k is_in.
  - destruct is_in as [<-|[]]. intros z [].
  - apply in_app_or in is_in. destruct is_in as [is_in|is_in].
    + intros z of_k. right. now apply (IH k).
    + apply in_map_iff in is_in. destruct is_in as (k' & <- & is_in). intros z [<-|of_k]; [now left | right; now apply (IH k')].
Qed.

Section Words.
Variable words : list (list terminal).
Definition universe : list configuration := flat_map (waiting nonterminals longest) words.
Definition is_set (cs : list configuration) : bool :=
  if in_dec (list_eq_dec eq_configuration) cs (sublists universe) then true else false.
Definition set : Type := {cs : list configuration | is_set cs = true}.
Definition members (c : set) : list configuration := proj1_sig c.

Definition keep (cs : list configuration) : list configuration :=
  filter (fun c => if in_dec eq_configuration c cs then true else false) universe.
Lemma keep_is_set cs : is_set (keep cs) = true.
Proof.
  unfold is_set. destruct (in_dec _ (keep cs) (sublists universe)) as [|wrong]; [reflexivity|].
  destruct (wrong (filter_sublists _ universe)).
Qed.
Definition kept (cs : list configuration) : set := exist _ (keep cs) (keep_is_set cs).

Lemma kept_in cs c : In c (members (kept cs)) <-> In c universe /\ In c cs.
Proof.
  unfold kept, members, keep. simpl. rewrite filter_In. destruct (in_dec eq_configuration c cs); intuition discriminate.
Qed.

Lemma members_universe (c : set) : incl (members c) universe.
Proof.
  destruct c as (cs & found). unfold is_set in found. simpl.
  destruct (in_dec _ cs (sublists universe)) as [is_in|]; [|discriminate]. now apply sublists_incl.
Qed.

Definition eq_set (c d : set) : {c = d} + {c <> d}.
Proof.
  destruct c as (c & p), d as (d & q). destruct (list_eq_dec eq_configuration c d) as [->|differs].
  - left. f_equal. apply UIP_dec. apply bool_dec.
  - right. intros same. apply differs. exact (f_equal (@proj1_sig _ _) same).
Defined.

Definition all_sets : list set :=
  flat_map (fun cs => match bool_dec (is_set cs) true with left found => [exist _ cs found] | right _ => [] end) (sublists universe).
Lemma all_sets_in (c : set) : In c all_sets.
Proof.
  destruct c as (cs & found). apply in_flat_map. exists cs. split.
  - unfold is_set in found. destruct (in_dec _ cs (sublists universe)); [assumption | discriminate].
  - destruct (bool_dec (is_set cs) true) as [again|wrong]; [|contradiction]. left. f_equal. apply UIP_dec. apply bool_dec.
Qed.

(** ** What a set says of one more cell *)
Definition is_end (o : option configuration) : bool := match o with None => true | Some _ => false end.
Definition waits (o : option configuration) : list configuration := match o with None => [] | Some d => [d] end.
Definition read_set (c : set) (q : state) : outcome set :=
  let found := flat_map (fun c => outcomes c q) (members c) in
  if existsb is_end found then Yes else match found with [] => No | _ => More (kept (flat_map waits found)) end.

Lemma found_in c q o :
  In o (flat_map (fun c => outcomes c q) (members c)) <-> exists d, In d (members c) /\ steps acts goto d q o.
Proof.
  rewrite in_flat_map. split; intros (d & is_in & says); exists d; (split; [assumption | now apply outcomes_exact]).
Qed.

Lemma read_set_follows : follows_sets acts goto members read_set.
Proof.
  split; intros c q; unfold read_set.
  - destruct (existsb is_end _) eqn:ends; [intros _|destruct (flat_map _ (members c)); discriminate].
    apply existsb_exists in ends. destruct ends as ([d|] & is_in & is_ended); [discriminate|]. now apply found_in.
  - destruct (existsb is_end _) eqn:ends; [discriminate|].
    destruct (flat_map (fun c => outcomes c q) (members c)) as [|o os] eqn:none; [intros _|discriminate].
    intros d o is_in stepped. assert (wrong : In o (flat_map (fun c => outcomes c q) (members c))) by (apply found_in; now exists d).
    now rewrite none in wrong.
  - intros ds. destruct (existsb is_end (flat_map (fun c => outcomes c q) (members c))) eqn:ends; [discriminate|].
    destruct (flat_map (fun c => outcomes c q) (members c)) as [|o os] eqn:some; [discriminate|]. rewrite <- some in *. clear o os some.
    intros same. injection same as <-. split.
    + intros d is_in stepped. assert (wrong : existsb is_end (flat_map (fun c => outcomes c q) (members c)) = true).
      { apply existsb_exists. exists None. split; [apply found_in; now exists d | reflexivity]. }
      congruence.
    + intros d. rewrite kept_in, in_flat_map. split.
      * intros (_ & [e|] & is_in & is_one); [|destruct is_one]. destruct is_one as [<-|[]]. now apply found_in.
      * intros (e & is_in & stepped). split.
        -- apply members_universe in is_in. apply in_flat_map in is_in. destruct is_in as (w & is_word & of_w).
           apply in_flat_map. exists w. split; [assumption|].
           exact (waiting_finite acts goto nonterminals longest rules_bounded w e q d of_w stepped).
        -- exists (Some d). split; [apply found_in; now exists e | now left].
Qed.

Definition first (w : list terminal) : set := kept [Reads w].

Lemma first_takes w q rest : In w words -> (verdict read_set (read_set (first w) q) rest = true <-> takes acts goto (q :: rest) w).
Proof.
  intros is_word. change (verdict read_set (read_set (first w) q) rest) with (accepts read_set (first w) (q :: rest)).
  rewrite (accepts_exact acts goto members read_set read_set_follows) by (left; discriminate). split.
  - intros (c & is_in & says). apply kept_in in is_in. destruct is_in as (_ & [<-|[]]). exact says.
  - intros says. exists (Reads w). split; [|exact says]. apply kept_in. split; [|now left].
    apply in_flat_map. exists w. split; [assumption|]. apply in_or_app. left. apply in_map. apply suffixes_self.
Qed.

(** Whether two outcomes at the state [q] come to the same on all stacks below it. *)
Lemma same_dec q (o p : outcome set) :
  {forall rest, lies_under q rest -> verdict read_set o rest = verdict read_set p rest} +
  {exists rest, lies_under q rest /\ verdict read_set o rest <> verdict read_set p rest}.
Proof.
  destruct (is_bottom q) eqn:at_end.
  - assert (empty : forall rest, lies_under q rest -> rest = []).
    { intros [|r rest] (is_viable & _); [reflexivity|]. destruct is_viable as (lies & _). unfold lies_below in lies.
      now rewrite bottom_last in lies. }
    destruct (bool_dec (verdict read_set o []) (verdict read_set p [])) as [same|differs].
    + left. intros rest under. now rewrite (empty rest under).
    + right. exists []. split; [|assumption]. split; [exact I | exact at_end].
  - destruct (differ_dec eq_set eq_state states all_states all_sets all_sets_in read_set below is_bottom bottom_last q o p at_end)
      as [same|found].
    + left. intros rest (is_viable & is_whole). apply same. split; [assumption|]. split; [assumption|].
      intros ->. unfold whole, at_bottom in is_whole. congruence.
    + right. destruct found as (rest & (is_viable & is_whole & _) & differs). exists rest. now split.
Qed.
End Words.

(** ** Each verdict about a state on top of the stack and words to read, over all stacks below *)

Notation can_read := (takes acts goto).

Theorem never_takes_dec q w :
  {forall rest, lies_under q rest -> ~ can_read (q :: rest) w} + {exists rest, lies_under q rest /\ can_read (q :: rest) w}.
Proof.
  pose proof (fun rest => first_takes [w] w q rest (or_introl eq_refl)) as means.
  destruct (same_dec [w] q (read_set [w] (first [w] w) q) No) as [same|found].
  - left. intros rest is_under says. apply means in says. rewrite (same rest is_under) in says. discriminate.
  - right. destruct found as (rest & is_under & differs). exists rest. split; [assumption|]. apply means.
    now apply not_false_is_true.
Qed.

Theorem always_takes_dec q w :
  {forall rest, lies_under q rest -> can_read (q :: rest) w} + {exists rest, lies_under q rest /\ ~ can_read (q :: rest) w}.
Proof.
  pose proof (fun rest => first_takes [w] w q rest (or_introl eq_refl)) as means.
  destruct (same_dec [w] q (read_set [w] (first [w] w) q) Yes) as [same|found].
  - left. intros rest is_under. apply means. exact (same rest is_under).
  - right. destruct found as (rest & is_under & differs). exists rest. split; [assumption|]. intros says. apply means in says.
    exact (differs says).
Qed.

Theorem jointly_takes_dec q v w :
  {forall rest, lies_under q rest -> (can_read (q :: rest) v <-> can_read (q :: rest) w)} +
  {exists rest, lies_under q rest /\ ~ (can_read (q :: rest) v <-> can_read (q :: rest) w)}.
Proof.
  pose proof (fun rest => first_takes [v; w] v q rest (or_introl eq_refl)) as means_v.
  pose proof (fun rest => first_takes [v; w] w q rest (or_intror (or_introl eq_refl))) as means_w.
  destruct (same_dec [v; w] q (read_set [v; w] (first [v; w] v) q) (read_set [v; w] (first [v; w] w) q)) as [same|found].
  - left. intros rest is_under. rewrite <- (means_v rest), <- (means_w rest), (same rest is_under). reflexivity.
  - right. destruct found as (rest & is_under & differs). exists rest. split; [assumption|]. intros both_ways. apply differs.
    apply eq_true_iff_eq. now rewrite (means_v rest), (means_w rest).
Qed.
End Automaton.
