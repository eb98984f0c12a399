(** The stack automaton: reading the stack from its top until nothing is undecided gives exactly the tokens whose
    configurations accept the stack.

    In: configurations that read a stack cell by cell, which cells can lie below which, and an automaton whose nodes hold
    configurations, each with the tokens that hang on it. Out: [walk_exact]: if nodes and edges are a bisimulation in the
    sense of [closed], a condition on single nodes and cells, then a walk over any viable stack collects exactly the right
    tokens. Early decisions and merged configurations are part of the condition. *)

From Coq Require Import List Bool.
Import ListNotations.

(** What a configuration says of one more cell. *)
Inductive outcome (C : Type) : Type :=
| Yes
| No
| More (c : C).
Arguments Yes {C}.
Arguments No {C}.
Arguments More {C} c.

Section Stacks.
Context {C cell : Type}.
Variable step : C -> cell -> outcome C.     (* deterministic: a configuration may be a set of parses *)
Variable below : cell -> cell -> Prop.      (* below x y: the cell y can lie directly below x *)

(** A stack is listed from the top. [viable x stack]: [stack] can lie below a cell [x]. *)
Fixpoint viable (x : cell) (stack : list cell) : Prop :=
  match stack with
  | [] => True
  | y :: rest => below x y /\ viable y rest
  end.

(** Whether a configuration accepts what it reads of a stack. One that asks for a cell below the bottom does not. *)
Fixpoint accepts (c : C) (stack : list cell) : bool :=
  match stack with
  | [] => false
  | x :: rest => match step c x with Yes => true | No => false | More d => accepts d rest end
  end.

(** A stack is whole where its last cell is a bottom; nothing lies below a bottom. *)
Variable bottom : cell -> Prop.
Fixpoint whole (x : cell) (stack : list cell) : Prop :=
  match stack with
  | [] => bottom x
  | y :: rest => whole y rest
  end.

(** ** Early decisions and merged configurations

    Relations that are closed under steps. [always x c], [never x c]: below the cell [x], the configuration [c] accepts every
    stack, or none. [alike x c d]: below [x], both accept the same stacks. *)
Variables always never : cell -> C -> Prop.
Variable alike : cell -> C -> C -> Prop.

Definition says_yes (x : cell) (o : outcome C) : Prop :=
  match o with Yes => True | No => False | More c => always x c end.
Definition says_no (x : cell) (o : outcome C) : Prop :=
  match o with Yes => False | No => True | More c => never x c end.
Definition say_alike (x : cell) (o p : outcome C) : Prop :=
  match o, p with
  | More c, More d => alike x c d \/ (always x c /\ always x d) \/ (never x c /\ never x d)
  | _, _ => (says_yes x o /\ says_yes x p) \/ (says_no x o /\ says_no x p)
  end.

Record decisions_closed : Prop := {
  always_step : forall x c y, always x c -> below x y -> says_yes y (step c y);
  never_step : forall x c y, never x c -> below x y -> says_no y (step c y);
  alike_step : forall x c d y, alike x c d -> below x y -> say_alike y (step c y) (step d y);
  always_open : forall x c, always x c -> ~ bottom x
}.

(** Without decisions, where only a configuration is like itself, the condition holds of every [step]. *)
Lemma no_decisions : (forall x c, ~ always x c) -> (forall x c, ~ never x c) -> (forall x c d, alike x c d <-> c = d) ->
  decisions_closed.
Proof.
  intros no_always no_never same. split; intros x c.
  - intros y is_always. destruct (no_always x c is_always).
  - intros y is_never. destruct (no_never x c is_never).
  - intros d y are_same _. apply same in are_same. subst d. destruct (step c y) as [| |c']; simpl; [now left | now right|].
    left. now apply same.
  - intros is_always. destruct (no_always x c is_always).
Qed.

Hypothesis decided : decisions_closed.

Lemma always_accepts stack : forall x c, always x c -> viable x stack -> whole x stack -> accepts c stack = true.
Proof.
  induction stack as [|y rest IH]; simpl; intros x c is_always is_viable is_whole.
  - destruct (always_open decided x c is_always is_whole).
  - destruct is_viable as (lies & deeper). pose proof (always_step decided x c y is_always lies) as says.
    destruct (step c y) as [| |d]; simpl in says; [reflexivity | contradiction | now apply (IH y)].
Qed.

Lemma never_accepts stack : forall x c, never x c -> viable x stack -> accepts c stack = false.
Proof.
  induction stack as [|y rest IH]; simpl; intros x c is_never is_viable; [reflexivity|].
  destruct is_viable as (lies & deeper). pose proof (never_step decided x c y is_never lies) as says.
  destruct (step c y) as [| |d]; simpl in says; [contradiction | reflexivity | now apply (IH y)].
Qed.

(** What an outcome at a cell comes to, given the stack below it. *)
Definition settles (o : outcome C) (stack : list cell) : bool :=
  match o with Yes => true | No => false | More c => accepts c stack end.

Lemma accepts_settles c y rest : accepts c (y :: rest) = settles (step c y) rest.
Proof. reflexivity. Qed.

Lemma yes_settles o x stack : says_yes x o -> viable x stack -> whole x stack -> settles o stack = true.
Proof. destruct o; simpl; intros says; [reflexivity | contradiction | now apply always_accepts]. Qed.

Lemma no_settles o x stack : says_no x o -> viable x stack -> settles o stack = false.
Proof. destruct o; simpl; intros says; [contradiction | reflexivity | now apply never_accepts]. Qed.

Lemma alike_accepts stack : forall x c d, alike x c d -> viable x stack -> whole x stack -> accepts c stack = accepts d stack.
Proof.
  induction stack as [|y rest IH]; intros x c d are_alike is_viable is_whole; [reflexivity|].
  destruct is_viable as (lies & deeper). simpl in is_whole. rewrite !accepts_settles.
  pose proof (alike_step decided x c d y are_alike lies) as says.
  destruct (step c y) as [| |c'] eqn:of_c; destruct (step d y) as [| |d'] eqn:of_d; cbn [say_alike] in says;
    try (destruct says as [(left & right)|(left & right)];
         [now rewrite !(yes_settles _ y rest) by assumption | now rewrite !(no_settles _ y rest) by assumption]).
  destruct says as [again|[(left & right)|(left & right)]].
  - now apply (IH y).
  - simpl. now rewrite !(always_accepts rest y) by assumption.
  - simpl. now rewrite !(never_accepts rest y) by assumption.
Qed.

(** ** The automaton *)

Context {node token : Type}.
Variable hangs : node -> token -> C -> Prop.       (* the configurations of a node on which a token hangs *)
Variable mask : node -> cell -> token -> Prop.     (* the mask of an edge *)
Variable next : node -> cell -> node.              (* where an edge leads *)

(** What a walk over a stack collects. *)
Fixpoint walk (n : node) (stack : list cell) (t : token) : Prop :=
  match stack with
  | [] => False
  | x :: rest => mask n x t \/ walk (next n x) rest t
  end.

(** The condition, for a node [n], a cell [x] and a token [t]; nothing in it speaks of whole stacks.
    - What an edge allows, some configuration accepts there.
    - What a configuration accepts is allowed; what it leaves undecided hangs on one like it in the next node.
    - What hangs on the next node comes from this one. *)
Record edge_closed (n : node) (x : cell) : Prop := {
  allowed : forall t, mask n x t -> exists c, hangs n t c /\ says_yes x (step c x);
  accepted : forall t c, hangs n t c -> step c x = Yes -> mask n x t;
  undecided : forall t c c', hangs n t c -> step c x = More c' ->
    mask n x t \/ never x c' \/ exists d, hangs (next n x) t d /\ alike x c' d;
  comes_from : forall t d, hangs (next n x) t d ->
    mask n x t \/ exists c c', hangs n t c /\ step c x = More c' /\ alike x c' d
}.

(** [follows n x]: the cell [x] can be read at the node [n]. Where it can, what can lie below can be read at the next. *)
Variable follows : node -> cell -> Prop.
Record closed : Prop := {
  edges_closed : forall n x, follows n x -> edge_closed n x;
  follows_next : forall n x y, follows n x -> below x y -> follows (next n x) y
}.

(** A walk over any viable, whole stack collects exactly the tokens of which some configuration accepts the stack. *)
Theorem walk_exact : closed -> forall rest x n, follows n x -> viable x rest -> whole x rest ->
  forall t, walk n (x :: rest) t <-> exists c, hangs n t c /\ accepts c (x :: rest) = true.
Proof.
  intros is_closed rest.
  induction rest as [|y rest IH]; intros x n is_read is_viable is_whole t;
    pose proof (edges_closed is_closed n x is_read) as edge.
  - (* the bottom decides *)
    simpl in is_whole. cbn [walk]. split.
    + intros [is_allowed|[]]. destruct (allowed n x edge t is_allowed) as (c & on & says). exists c. split; [assumption|].
      simpl. destruct (step c x) as [| |c'] eqn:of_c; simpl in says; [reflexivity | contradiction|].
      destruct (always_open decided x c' says is_whole).
    + intros (c & on & says). left. simpl in says.
      destruct (step c x) as [| |c'] eqn:of_c; [now apply (accepted n x edge t c) | discriminate | discriminate].
  - destruct is_viable as (lies & deeper). simpl in is_whole.
    assert (followed : follows (next n x) y) by now apply (follows_next is_closed n x).
    assert (below_x : viable x (y :: rest)) by now split.
    assert (is_whole' : whole x (y :: rest)) by exact is_whole.
    specialize (IH y (next n x) followed deeper is_whole t).
    assert (gives : forall c, hangs n t c -> says_yes x (step c x) -> accepts c (x :: y :: rest) = true).
    { intros c on says. rewrite accepts_settles. now apply (yes_settles _ x). }
    change (walk n (x :: y :: rest) t) with (mask n x t \/ walk (next n x) (y :: rest) t). split.
    + intros [is_allowed|further].
      * destruct (allowed n x edge t is_allowed) as (c & on & says). exists c. split; [assumption | now apply gives].
      * apply IH in further. destruct further as (d & on_next & says).
        destruct (comes_from n x edge t d on_next) as [is_allowed|(c & c' & on & of_c & are_alike)].
        -- destruct (allowed n x edge t is_allowed) as (c & on & says'). exists c. split; [assumption | now apply gives].
        -- exists c. split; [assumption|]. rewrite accepts_settles, of_c. cbn [settles].
           now rewrite (alike_accepts (y :: rest) x c' d).
    + intros (c & on & says). rewrite accepts_settles in says. destruct (step c x) as [| |c'] eqn:of_c.
      * left. now apply (accepted n x edge t c).
      * discriminate.
      * cbn [settles] in says.
        destruct (undecided n x edge t c c' on of_c) as [is_allowed|[refuses|(d & on_next & are_alike)]].
        -- now left.
        -- rewrite (never_accepts (y :: rest) x c' refuses below_x) in says. discriminate.
        -- right. apply IH. exists d. split; [assumption|]. now rewrite <- (alike_accepts (y :: rest) x c' d).
Qed.

(** Once nothing hangs on a node, a walk may end there. *)
Corollary walk_ends : closed -> forall rest x n, follows n x -> viable x rest -> whole x rest ->
  (forall t c, ~ hangs n t c) -> forall t, ~ walk n (x :: rest) t.
Proof.
  intros is_closed rest x n is_read is_viable is_whole nothing t collected.
  apply (walk_exact is_closed rest x n is_read is_viable is_whole) in collected.
  destruct collected as (c & on & _). exact (nothing t c on).
Qed.

End Stacks.
