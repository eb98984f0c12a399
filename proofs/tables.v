(** A validator of LR tables: if it says yes, whatever the parser of these tables accepts is a word of the grammar.

    In: a grammar's rules, and tables from anywhere: states and terminals may be merged, reductions may do the work of several.
    A certificate says which column of the gotos a nonterminal has. Out: [check_tables], a program, and [tables_sound]: its yes
    is right, so that a wrong table cannot certify itself. Nothing is said of what a parser refuses.

    Source: Jourdan, Pottier and Leroy, Validating LR(1) parsers (ESOP 2012), the half on soundness. There an item set says
    what lies on a stack; here each edge between two states has the symbols that may stand there, read off the tables. *)

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

Theorem runs_sound fuel : check_tables fuel = true -> forall stack w, runs stack w ->
  forall Xs u, labelled stack Xs -> yields listed (rev Xs) u -> word listed (u ++ w).
Proof.
  intros checked stack w run.
  induction run as [q stack t w s is_shift _ IH|q stack w A n p rest s is_reduce cut goes _ IH|q stack is_accept];
    intros Xs u is_labelled derivation.
  - change (t :: w) with ([t] ++ w). rewrite app_assoc. apply (IH (Ter t :: Xs)).
    + constructor; [now apply shift_label | assumption].
    + simpl. apply yields_app; [assumption|]. exact (yields_terminals listed [t]).
  - destruct (paths_all n q stack Xs p rest is_labelled cut) as (top & below & -> & is_path & rest_labelled).
    pose proof (checked_action fuel q _ _ checked is_reduce) as all. simpl in all. unfold check_reduction in all.
    rewrite forallb_forall in all. specialize (all _ is_path). simpl in all. rewrite goes in all.
    apply existsb_exists in all. destruct all as (B & is_listed & both). apply andb_prop in both. destruct both as (labels_it & derived).
    rewrite rev_app_distr in derivation. apply yields_app_inv in derivation. destruct derivation as (v & z & -> & left & right).
    apply (IH (Non B :: below)).
    + constructor; [|assumption]. apply in_or_app. right. apply in_map. now apply filter_In.
    + simpl. apply yields_app; [assumption|]. now apply (derives_by_yields fuel B (rev top)).
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

End Tables.
