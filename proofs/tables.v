(** Two validators of LR tables. If the one says yes, whatever the parser of these tables accepts is a word of the grammar;
    if the other does, the parser accepts every word.

    In: a grammar's rules, and tables from anywhere: states and terminals may be merged, reductions may do the work of several.
    A certificate says which column of the gotos a nonterminal has; for the second validator, also the items of each state, and
    how nonterminals begin. Out: [check_tables] with [tables_sound], [check_complete] with [tables_complete]: two programs whose
    yes is right, so that a wrong table cannot certify itself.

    Source: Jourdan, Pottier and Leroy, Validating LR(1) parsers (ESOP 2012). For soundness they have item sets that say what
    lies on a stack; here each edge between two states has the symbols that may stand there, read off the tables. *)

From Coq Require Import List Bool Arith Lia.
From Maskwright Require Import grammar.
Import ListNotations.

Section Tables.
Context {T N state side : Type}.

(** * The grammar *)
Variable rules : list (N * list (symbol T N)).
Variable start_symbol : N.
Definition listed : grammar T N := Grammar (fun A rhs => In (A, rhs) rules) start_symbol.

(** * The tables *)

(** [Reduce A n]: [A] is a column of the gotos, and [n] the number of cells that are popped. *)
Inductive action : Type := Shift (s : state) | Reduce (A : side) (n : nat) | Accept.
Variable actions : state -> option T -> list action.    (* None: before the end of the text *)
Variable goto : state -> side -> option state.
Variable bottom : state.

(** [runs stack w]: on this stack, listed from the top, the parser can read [w] and then the end of the text. *)
Inductive runs : list state -> list T -> Prop :=
| runs_shift q stack t w s : In (Shift s) (actions q (Some t)) -> runs (s :: q :: stack) w -> runs (q :: stack) (t :: w)
| runs_reduce q stack w A n p rest s :
    In (Reduce A n) (actions q (hd_error w)) -> skipn n (q :: stack) = p :: rest -> goto p A = Some s ->
    runs (s :: p :: rest) w -> runs (q :: stack) w
| runs_accept q stack : In Accept (actions q None) -> runs (q :: stack) [].

(** * Labels *)

Variable column : N -> side.                           (* the certificate *)
Variables (states : list state) (terminals : list T) (nonterminals : list N).
Variables (eq_state : forall p q : state, {p = q} + {p <> q}) (eq_T : forall t u : T, {t = u} + {t <> u}).
Variable eq_N : forall A B : N, {A = B} + {A <> B}.
Hypothesis all_states : forall q, In q states.
Hypothesis all_terminals : forall t, In t terminals.

Definition shifts_to (p : state) (t : T) (q : state) : bool :=
  existsb (fun a => match a with Shift s => if eq_state s q then true else false | _ => false end) (actions p (Some t)).
Definition goes_to (p : state) (B : N) (q : state) : bool :=
  match goto p (column B) with Some s => if eq_state s q then true else false | None => false end.

(** What may stand between [p] and a state [q] on it. *)
Definition labels (p q : state) : list (symbol T N) :=
  map Ter (filter (fun t => shifts_to p t q) terminals) ++ map Non (filter (fun B => goes_to p B q) nonterminals).

(** [labelled stack Xs]: a stack down to the bottom, and a symbol for each of its edges, from the top. *)
Inductive labelled : list state -> list (symbol T N) -> Prop :=
| labelled_bottom : labelled [bottom] []
| labelled_edge q p stack X Xs : In X (labels p q) -> labelled (p :: stack) Xs -> labelled (q :: p :: stack) (X :: Xs).

(** The last [n] edges of a stack with [q] on top: the state below them, and their symbols, from the bottom. *)
Fixpoint paths (n : nat) (q : state) : list (state * list (symbol T N)) :=
  match n with
  | 0 => [(q, [])]
  | S n => flat_map (fun p => flat_map (fun X => map (fun b => (fst b, snd b ++ [X])) (paths n p)) (labels p q)) states
  end.

Lemma paths_all n : forall q stack Xs p rest, labelled (q :: stack) Xs -> skipn n (q :: stack) = p :: rest ->
  exists top below, Xs = top ++ below /\ In (p, rev top) (paths n q) /\ labelled (p :: rest) below.
Proof.
  induction n as [|n IH]; intros q stack Xs p rest is_labelled cut.
  - injection cut as -> ->. exists [], Xs. repeat split; [now left | assumption].
  - inversion is_labelled as [|q' p' stack' X Xs' is_label deeper]; subst.
    + simpl in cut. destruct n; discriminate.
    + simpl in cut. destruct (IH p' stack' Xs' p rest deeper cut) as (top & below & -> & is_path & rest_labelled).
      exists (X :: top), below. repeat split; [|assumption]. simpl. apply in_flat_map. exists p'. split; [apply all_states|].
      apply in_flat_map. exists X. split; [assumption|]. apply in_map_iff. exists (p, rev top). now split.
Qed.

(** * What derives what, in a few steps *)

Definition eq_symbol (X Y : symbol T N) : {X = Y} + {X <> Y}.
Proof. decide equality. Defined.

(** [renames fuel X Y]: Y comes of X by rules of one symbol. *)
Fixpoint renames (fuel : nat) (X Y : symbol T N) : bool :=
  if eq_symbol X Y then true else
  match fuel, X with
  | S fuel, Non A =>
      existsb (fun r => (if eq_N (fst r) A then true else false) && match snd r with [Z] => renames fuel Z Y | _ => false end) rules
  | _, _ => false
  end.
Fixpoint all_rename (fuel : nat) (Xs Ys : list (symbol T N)) : bool :=
  match Xs, Ys with
  | [], [] => true
  | X :: Xs, Y :: Ys => renames fuel X Y && all_rename fuel Xs Ys
  | _, _ => false
  end.
(** [derives_by fuel B Xs]: B is renamed, a rule is used, and its symbols are renamed. *)
Definition derives_by (fuel : nat) (B : N) (Xs : list (symbol T N)) : bool :=
  existsb (fun r => renames fuel (Non B) (Non (fst r)) && all_rename fuel (snd r) Xs) rules
  || all_rename fuel [Non B] Xs.

Lemma renames_yields fuel : forall X Y w, renames fuel X Y = true -> yields listed [Y] w -> yields listed [X] w.
Proof.
  induction fuel as [|fuel IH]; intros X Y w renamed derivation; simpl in renamed;
    destruct (eq_symbol X Y) as [->|_]; try assumption; destruct X as [t|A]; try discriminate.
  apply existsb_exists in renamed. destruct renamed as ((B, rhs) & is_rule & both). apply andb_prop in both.
  destruct both as (same & further). simpl in same, further. destruct (eq_N B A) as [->|]; [|discriminate].
  destruct rhs as [|Z [|]]; try discriminate. apply yields_one. exists [Z]. split; [assumption|]. now apply (IH Z Y).
Qed.

Lemma all_rename_yields fuel : forall Xs Ys w, all_rename fuel Xs Ys = true -> yields listed Ys w -> yields listed Xs w.
Proof.
  induction Xs as [|X Xs IH]; intros [|Y Ys] w renamed derivation; simpl in renamed; try discriminate; [assumption|].
  apply andb_prop in renamed. destruct renamed as (one & others).
  apply (yields_app_inv listed [Y]) in derivation. destruct derivation as (u & v & -> & left & right).
  apply (yields_app listed [X]); [now apply (renames_yields fuel X Y) | now apply IH with Ys].
Qed.

Lemma derives_by_yields fuel B Xs w : derives_by fuel B Xs = true -> yields listed Xs w -> yields listed [Non B] w.
Proof.
  unfold derives_by. intros derived derivation. apply orb_prop in derived. destruct derived as [by_rule|renamed].
  - apply existsb_exists in by_rule. destruct by_rule as ((A, rhs) & is_rule & both). apply andb_prop in both.
    destruct both as (renamed & further). simpl in renamed, further. apply (renames_yields fuel _ (Non A)); [assumption|].
    apply yields_one. exists rhs. split; [assumption|]. now apply (all_rename_yields fuel rhs Xs).
  - now apply (all_rename_yields fuel [Non B] Xs).
Qed.

(** * The checker *)

Definition lookaheads : list (option T) := None :: map Some terminals.

Definition check_reduction (fuel : nat) (q : state) (A : side) (n : nat) : bool :=
  forallb (fun b : state * list (symbol T N) =>
    match goto (fst b) A with
    | None => true
    | Some s => existsb (fun B => goes_to (fst b) B s && derives_by fuel B (snd b)) nonterminals
    end) (paths n q).

(** The text is accepted on one symbol above the bottom, which the start symbol can be renamed to. *)
Definition check_accept (fuel : nat) (q : state) : bool :=
  (if eq_state q bottom then false else true) &&
  forallb (fun p => forallb (fun X => (if eq_state p bottom then true else false) && renames fuel (Non start_symbol) X)
    (labels p q)) states.

Definition check_action (fuel : nat) (q : state) (a : action) : bool :=
  match a with Shift s => true | Reduce A n => check_reduction fuel q A n | Accept => check_accept fuel q end.

(** The bottom is on nothing. *)
Definition check_bottom : bool := forallb (fun p => match labels p bottom with [] => true | _ => false end) states.

Definition check_tables (fuel : nat) : bool :=
  check_bottom &&
  forallb (fun q => forallb (fun o => forallb (check_action fuel q) (actions q o)) lookaheads) states.

(** ** It is sound *)

Lemma checked_action fuel q o a : check_tables fuel = true -> In a (actions q o) -> check_action fuel q a = true.
Proof.
  unfold check_tables. intros checked is_in. apply andb_prop in checked. destruct checked as (_ & all).
  rewrite forallb_forall in all. specialize (all q (all_states q)). rewrite forallb_forall in all.
  assert (is_one : In o lookaheads).
  { destruct o as [t|]; [right; apply in_map; apply all_terminals | now left]. }
  specialize (all o is_one). rewrite forallb_forall in all. now apply all.
Qed.

Lemma shift_label p t q : In (Shift q) (actions p (Some t)) -> In (Ter t) (labels p q).
Proof.
  intros is_in. apply in_or_app. left. apply in_map. apply filter_In. split; [apply all_terminals|].
  apply existsb_exists. exists (Shift q). split; [assumption|]. now destruct (eq_state q q).
Qed.

(** A reduction keeps a text on the stack: what its cells stood for, the symbol on them derives. *)
Lemma reduce_labelled fuel : check_tables fuel = true -> forall q o A n stack p rest s Xs u,
  In (Reduce A n) (actions q o) -> skipn n (q :: stack) = p :: rest -> goto p A = Some s ->
  labelled (q :: stack) Xs -> yields listed (rev Xs) u ->
  exists Ys, labelled (s :: p :: rest) Ys /\ yields listed (rev Ys) u.
Proof.
  intros checked q o A n stack p rest s Xs u is_reduce cut goes is_labelled derivation.
  destruct (paths_all n q stack Xs p rest is_labelled cut) as (top & below & -> & is_path & rest_labelled).
  pose proof (checked_action fuel q _ _ checked is_reduce) as all. simpl in all. unfold check_reduction in all.
  rewrite forallb_forall in all. specialize (all _ is_path). simpl in all. rewrite goes in all.
  apply existsb_exists in all. destruct all as (B & is_listed & both). apply andb_prop in both. destruct both as (labels_it & derived).
  rewrite rev_app_distr in derivation. apply yields_app_inv in derivation. destruct derivation as (v & z & -> & left & right).
  exists (Non B :: below). split.
  - constructor; [|assumption]. apply in_or_app. right. apply in_map. now apply filter_In.
  - simpl. apply yields_app; [assumption|]. now apply (derives_by_yields fuel B (rev top)).
Qed.

Theorem runs_sound fuel : check_tables fuel = true -> forall stack w, runs stack w ->
  forall Xs u, labelled stack Xs -> yields listed (rev Xs) u -> word listed (u ++ w).
Proof.
  intros checked stack w run.
  induction run as [q stack t w s is_shift _ IH|q stack w A n p rest s is_reduce cut goes _ IH|q stack is_accept];
    intros Xs u is_labelled derivation.
  - change (t :: w) with ([t] ++ w). rewrite app_assoc. apply (IH (Ter t :: Xs)).
    + constructor; [now apply shift_label | assumption].
    + simpl. apply yields_app; [assumption|]. exact (yields_terminals listed [t]).
  - destruct (reduce_labelled fuel checked q _ A n stack p rest s Xs u is_reduce cut goes is_labelled derivation) as (Ys & of_rest & keeps).
    now apply (IH Ys).
  - rewrite app_nil_r. pose proof (checked_action fuel q _ _ checked is_accept) as all. simpl in all. unfold check_accept in all.
    apply andb_prop in all. destruct all as (not_bottom & all).
    inversion is_labelled as [is_bottom|q' p stack' X Xs' is_label deeper]; subst.
    + now destruct (eq_state bottom bottom).
    + rewrite forallb_forall in all. specialize (all p (all_states p)). rewrite forallb_forall in all.
      specialize (all X is_label). apply andb_prop in all. destruct all as (at_bottom & renamed).
      destruct (eq_state p bottom) as [->|]; [|discriminate].
      assert (Xs' = []) as ->.
      { inversion deeper as [|q' p stack'' Y Ys impossible _]; subst; [reflexivity|]. exfalso.
        unfold check_tables in checked. apply andb_prop in checked. destruct checked as (nothing & _). unfold check_bottom in nothing.
        rewrite forallb_forall in nothing. specialize (nothing p (all_states p)).
        destruct (labels p bottom); [destruct impossible | discriminate]. }
      simpl in derivation. now apply (renames_yields fuel (Non start_symbol) X).
Qed.

(** If the checker says yes, whatever the parser accepts is a word. *)
Theorem tables_sound fuel : check_tables fuel = true -> forall w, runs [bottom] w -> word listed w.
Proof.
  intros checked w run. apply (runs_sound fuel checked [bottom] w run [] []); [constructor | constructor].
Qed.

(** * What is derived is accepted *)

(** [(A, done, rest, o)]: of a rule of [A] the part [done] has been read, [rest] is to come, and [o] comes behind the rule. *)
Definition item : Type := N * list (symbol T N) * list (symbol T N) * option T.

(** The certificate: which items a state has; which nonterminals may be empty, and with which terminals they may begin; and
    where the parser may be, directly above a state, once it has read a nonterminal there, before which terminal. *)
Variables (items : state -> list item) (empty : N -> bool) (firsts : N -> list T) (arrivals : state -> N -> list (state * option T)).

Definition eq_lookahead (o o' : option T) : {o = o'} + {o <> o'}.
Proof. decide equality. Defined.
Definition eq_item (i j : item) : {i = j} + {i <> j}.
Proof.
  destruct i as (((A, d), r), o), j as (((B, e), s), o').
  destruct (eq_N A B) as [->|]; [|right; congruence].
  destruct (list_eq_dec eq_symbol d e) as [->|]; [|right; congruence].
  destruct (list_eq_dec eq_symbol r s) as [->|]; [|right; congruence].
  destruct (eq_lookahead o o') as [->|]; [left; reflexivity | right; congruence].
Defined.
Definition has (q : state) (i : item) : bool := existsb (fun j => if eq_item i j then true else false) (items q).

Fixpoint can_be_empty (Xs : list (symbol T N)) : bool :=
  match Xs with [] => true | Ter _ :: _ => false | Non A :: Xs => empty A && can_be_empty Xs end.
Fixpoint begins (Xs : list (symbol T N)) : list T :=
  match Xs with [] => [] | Ter t :: _ => [t] | Non A :: Xs => firsts A ++ if empty A then begins Xs else [] end.
(** With what a text goes on, where [Xs] is to come, and [o] behind it. *)
Definition next (Xs : list (symbol T N)) (o : option T) : list (option T) :=
  map Some (begins Xs) ++ if can_be_empty Xs then [o] else [].

(** ** The checker *)

Definition check_firsts : bool :=
  forallb (fun r : N * list (symbol T N) =>
    (if can_be_empty (snd r) then empty (fst r) else true) &&
    forallb (fun t => existsb (fun u => if eq_T t u then true else false) (firsts (fst r))) (begins (snd r))) rules.

Definition is_next (Xs : list (symbol T N)) (o o' : option T) : bool :=
  existsb (fun p => if eq_lookahead p o' then true else false) (next Xs o).
Definition arrives (q : state) (A : N) (s : state) (o : option T) : bool :=
  existsb (fun b : state * option T =>
    (if eq_state (fst b) s then true else false) && (if eq_lookahead (snd b) o then true else false)) (arrivals q A).

(** Where the parser may be once it has read [Xs] above [q], with [o] behind. *)
Fixpoint reach (q : state) (Xs : list (symbol T N)) (o : option T) : list state :=
  match Xs with
  | [] => [q]
  | Ter t :: Xs => flat_map (fun a => match a with Shift s => reach s Xs o | _ => [] end) (actions q (Some t))
  | Non B :: Xs => flat_map (fun b : state * option T => if is_next Xs o (snd b) then reach (fst b) Xs o else []) (arrivals q B)
  end.

(** At [top] a rule of [A] is whole that was begun in [q]: it is reduced, perhaps with renamings behind it, or one symbol of its
    own has done for [A] already. *)
Definition closes (q : state) (A : N) (n : nat) (o : option T) (top : state) : bool :=
  existsb (fun a => match a with
    | Reduce B m => Nat.eqb m n && match goto q B with Some s => arrives q A s o | None => false end
    | _ => false end) (actions top o)
  || Nat.eqb n 1 && arrives q A top o.

Definition check_item (q : state) (i : item) : bool :=
  match i with
  | (A, done, rest, o) =>
      match done with [] => forallb (closes q A (length rest) o) (reach q rest o) | _ => true end &&
      match rest with
      | [] => true
      | Ter t :: rest =>
          existsb (fun a => match a with Shift s => has s (A, done ++ [Ter t], rest, o) | _ => false end) (actions q (Some t))
      | Non B :: rest =>
          forallb (fun b : state * option T =>
            if is_next rest o (snd b) then has (fst b) (A, done ++ [Non B], rest, o) else true) (arrivals q B) &&
          forallb (fun r : N * list (symbol T N) =>
            if eq_N (fst r) B then forallb (fun o' => has q (B, [], snd r, o')) (next rest o) else true) rules
      end
  end.

Definition check_start : bool :=
  forallb (fun b : state * option T =>
    match snd b with Some _ => true | None => existsb (fun a => match a with Accept => true | _ => false end) (actions (fst b) None) end)
    (arrivals bottom start_symbol) &&
  forallb (fun r : N * list (symbol T N) =>
    if eq_N (fst r) start_symbol then has bottom (start_symbol, [], snd r, None) else true) rules.

Definition check_complete : bool :=
  check_firsts && check_start && forallb (fun q => forallb (check_item q) (items q)) states.

(** ** It is complete *)

Lemma has_in q i : has q i = true -> In i (items q).
Proof.
  unfold has. intros found. apply existsb_exists in found. destruct found as (j & is_in & same).
  destruct (eq_item i j) as [->|]; [assumption | discriminate].
Qed.

Lemma begins_right : check_firsts = true -> forall Xs v, yields listed Xs v ->
  match v with [] => can_be_empty Xs = true | t :: _ => In t (begins Xs) end.
Proof.
  intros checked Xs v derivation.
  induction derivation as [|t alpha w _ _|A rhs alpha u v is_rule _ of_rhs _ of_alpha]; simpl; [reflexivity | now left|].
  unfold check_firsts in checked. rewrite forallb_forall in checked. specialize (checked (A, rhs) is_rule). simpl in checked.
  apply andb_prop in checked. destruct checked as (of_empty & of_firsts). destruct u as [|t u]; simpl.
  - rewrite of_rhs in of_empty. rewrite of_empty. destruct v as [|t v]; [assumption | apply in_or_app; now right].
  - rewrite forallb_forall in of_firsts. specialize (of_firsts t of_rhs). apply existsb_exists in of_firsts.
    destruct of_firsts as (t' & is_in & same). destruct (eq_T t t') as [->|]; [|discriminate]. apply in_or_app. now left.
Qed.

Lemma next_right : check_firsts = true -> forall Xs v w, yields listed Xs v -> In (hd_error (v ++ w)) (next Xs (hd_error w)).
Proof.
  intros checked Xs v w derivation. pose proof (begins_right checked Xs v derivation) as right. unfold next.
  apply in_or_app. destruct v as [|t v]; simpl.
  - right. rewrite right. now left.
  - left. now apply in_map.
Qed.

Lemma skipn_one_more {X} n : forall (l : list X) x rest, skipn n l = x :: rest -> skipn (S n) l = rest.
Proof.
  induction n as [|n IH]; intros l x rest cut; simpl in *; [now rewrite cut|].
  destruct l as [|y l]; [discriminate|]. now apply (IH l x).
Qed.

Lemma checked_item : check_complete = true -> forall q i, In i (items q) -> check_item q i = true.
Proof.
  unfold check_complete. intros checked q i is_in. apply andb_prop in checked. destruct checked as (_ & all).
  rewrite forallb_forall in all. specialize (all q (all_states q)). rewrite forallb_forall in all. now apply all.
Qed.

Lemma arrives_in q A s o : arrives q A s o = true -> In (s, o) (arrivals q A).
Proof.
  unfold arrives. intros found. apply existsb_exists in found. destruct found as ((s', o') & is_in & same). simpl in same.
  apply andb_prop in same. destruct same as (one & other). destruct (eq_state s' s) as [->|]; [|discriminate].
  destruct (eq_lookahead o' o) as [->|]; [assumption | discriminate].
Qed.

Lemma is_next_true Xs o o' : In o' (next Xs o) -> is_next Xs o o' = true.
Proof. intros is_in. apply existsb_exists. exists o'. split; [assumption|]. now destruct (eq_lookahead o' o'). Qed.

(** From a whole rule, the parser comes to an arrival. *)
Lemma closes_runs q A n o top above stack w : closes q A n o top = true -> o = hd_error w ->
  skipn n (top :: above) = q :: stack ->
  (forall s, In (s, o) (arrivals q A) -> runs (s :: q :: stack) w) -> runs (top :: above) w.
Proof.
  unfold closes. intros closed -> cut go_on. apply orb_prop in closed. destruct closed as [reduces|skips].
  - apply existsb_exists in reduces. destruct reduces as (a & is_action & fits). destruct a as [|B m|]; try discriminate.
    apply andb_prop in fits. destruct fits as (long & comes). apply Nat.eqb_eq in long. subst m.
    destruct (goto q B) as [s|] eqn:goes; [|discriminate]. apply arrives_in in comes.
    apply (runs_reduce top above w B n q stack s is_action cut goes). now apply go_on.
  - apply andb_prop in skips. destruct skips as (one & comes). apply Nat.eqb_eq in one. subst n. apply arrives_in in comes.
    simpl in cut. subst above. now apply go_on.
Qed.

(** Where an item waits for [Xs], the parser reads whatever [Xs] derives, if it can go on wherever it may be then. *)
Theorem runs_complete : check_complete = true -> forall Xs v, yields listed Xs v -> forall q stack A done w,
  In (A, done, Xs, hd_error w) (items q) ->
  (forall top above, In top (reach q Xs (hd_error w)) -> skipn (length Xs) (top :: above) = q :: stack -> runs (top :: above) w) ->
  runs (q :: stack) (v ++ w).
Proof.
  intros checked Xs v derivation. pose proof (checked_item checked) as all.
  assert (good : check_firsts = true).
  { unfold check_complete in checked. apply andb_prop in checked. destruct checked as (both & _). now apply andb_prop in both. }
  induction derivation as [|t alpha v _ IH|B rhs alpha u v is_rule _ of_rhs further of_alpha];
    intros q stack A done w is_item whole.
  - apply whole; [now left | reflexivity].
  - specialize (all q _ is_item). simpl in all. apply andb_prop in all. destruct all as (_ & all).
    apply existsb_exists in all. destruct all as (a & is_action & goes_on).
    destruct a as [s| |]; try discriminate. apply has_in in goes_on.
    apply (runs_shift q stack t (v ++ w) s is_action). apply (IH s (q :: stack) A (done ++ [Ter t]) w goes_on).
    intros top above is_reached cut. apply whole.
    + simpl. apply in_flat_map. now exists (Shift s).
    + now apply (skipn_one_more (length alpha) (top :: above) s).
  - pose proof (all q _ is_item) as here. simpl in here. apply andb_prop in here. destruct here as (_ & here).
    apply andb_prop in here. destruct here as (moves & closed).
    rewrite forallb_forall in closed. specialize (closed (B, rhs) is_rule). simpl in closed.
    destruct (eq_N B B) as [_|]; [|contradiction]. rewrite forallb_forall in closed.
    pose proof (next_right good alpha v w further) as before.
    specialize (closed _ before). apply has_in in closed.
    rewrite <- app_assoc. apply (of_rhs q stack B [] (v ++ w) closed). intros top above is_reached cut.
    pose proof (all q _ closed) as ends. simpl in ends. apply andb_prop in ends. destruct ends as (ends & _).
    rewrite forallb_forall in ends. specialize (ends top is_reached).
    apply (closes_runs q B (length rhs) _ top above stack (v ++ w) ends eq_refl cut).
    intros s arrived. rewrite forallb_forall in moves. specialize (moves _ arrived). simpl in moves.
    rewrite (is_next_true _ _ _ before) in moves. apply has_in in moves.
    apply (of_alpha s (q :: stack) A (done ++ [Non B]) w moves). intros top' above' is_reached' cut'. apply whole.
    + simpl. apply in_flat_map. exists (s, hd_error (v ++ w)). split; [assumption|]. simpl.
      now rewrite (is_next_true _ _ _ before).
    + now apply (skipn_one_more (length alpha) (top' :: above') s).
Qed.

(** If the checker says yes, the parser accepts every word. *)
Theorem tables_complete : check_complete = true -> forall w, word listed w -> runs [bottom] w.
Proof.
  intros checked w is_word. apply yields_one in is_word. destruct is_word as (rhs & is_rule & derivation). simpl in is_rule.
  pose proof checked as both. unfold check_complete in both. apply andb_prop in both. destruct both as (both & _).
  apply andb_prop in both. destruct both as (_ & start). unfold check_start in start. apply andb_prop in start.
  destruct start as (ends & begun).
  rewrite forallb_forall in begun. specialize (begun (start_symbol, rhs) is_rule). simpl in begun.
  destruct (eq_N start_symbol start_symbol) as [_|]; [|contradiction]. apply has_in in begun.
  rewrite <- (app_nil_r w). apply (runs_complete checked rhs w derivation bottom [] start_symbol [] [] begun).
  intros top above is_reached cut. pose proof (checked_item checked bottom _ begun) as closed. simpl in closed.
  apply andb_prop in closed. destruct closed as (closed & _). rewrite forallb_forall in closed. specialize (closed top is_reached).
  apply (closes_runs bottom start_symbol (length rhs) None top above [] [] closed eq_refl cut).
  intros s arrived. rewrite forallb_forall in ends. specialize (ends _ arrived). simpl in ends.
  apply existsb_exists in ends. destruct ends as (a & is_action & accepts). destruct a; try discriminate. now apply runs_accept.
Qed.

(** Both together: the parser accepts the words of the grammar, and nothing else. *)
Corollary tables_exact fuel : check_tables fuel = true -> check_complete = true -> forall w, runs [bottom] w <-> word listed w.
Proof. intros sound complete w. split; [now apply tables_sound with fuel | now apply tables_complete]. Qed.

End Tables.
