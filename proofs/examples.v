(** a^n b^n by hand: the hypotheses of the theorems can be met, and the grammar's form decides how much "always" proves.

    plain:     S -> a S b | a b
    factored:  S -> a R,  R -> S b | b
    After a, another a is always legal. The factored grammar proves it; the plain one cannot: of the two stacks after a
    prefix a..a, the one that ends in S -> a b refuses, and the subset form asks every stack. *)

From Coq Require Import List.
From Maskwright Require Import grammar subset never_legal always_legal.
Import ListNotations.

Inductive letter := a | b.

Inductive plain_rule : unit -> list (symbol letter unit) -> Prop :=
| plain_more : plain_rule tt [Ter a; Non tt; Ter b]
| plain_last : plain_rule tt [Ter a; Ter b].
Definition plain : grammar letter unit := Grammar plain_rule tt.

Inductive name := S | R.

Inductive factored_rule : name -> list (symbol letter name) -> Prop :=
| factored_start : factored_rule S [Ter a; Non R]
| factored_more : factored_rule R [Non S; Ter b]
| factored_last : factored_rule R [Ter b].
Definition factored : grammar letter name := Grammar factored_rule S.

(** One case for every place of every rule where the symbol in question can stand. *)
Ltac each_occurrence is_rule :=
  simpl in is_rule; inversion is_rule; subst; clear is_rule;
  repeat match goal with
  | places : _ = ?alpha ++ _ |- _ =>
      destruct alpha; simpl in places; try discriminate places; injection places; clear places; intros; subst
  end.

Lemma plain_productive : productive plain.
Proof.
  intros []. exists [a; b]. apply yields_one. exists [Ter a; Ter b]. split; [constructor|].
  exact (yields_terminals _ [a; b]).
Qed.

Lemma factored_productive : productive factored.
Proof.
  assert (yields factored [Non R] [b]) as rest_yields.
  { apply yields_one. exists [Ter b]. split; [constructor | exact (yields_terminals _ [b])]. }
  intros []; [exists [a; b] | now exists [b]]. apply yields_one. exists [Ter a; Non R]. split; [constructor|].
  now constructor.
Qed.

(** U proves that a can follow every a in the factored grammar. *)
Example factored_always : always_legal factored a [a].
Proof.
  apply must_follow_sound; [exact factored_productive|].
  exists (fun x s => x = Ter a /\ s = [a]). split; [|now split].
  intros x s [-> ->]. split; [discriminate|]. intros A alpha beta is_rule. left. each_occurrence is_rule.
  apply uses_up_inside with [Non S; Ter b]; [constructor|]. apply uses_up_inside with [Ter a; Non R]; [constructor|].
  repeat constructor.
Qed.

(** It is true in the plain grammar as well: the stack of the longer rule stands after the same prefix ... *)
Example plain_always : always_legal plain a [a].
Proof.
  intros u (stack & occurrence & _)%prefix_iff_stack.
  inversion occurrence as [|A u' below alpha x beta p above is_rule before]; subst.
  assert (p = [] /\ A = tt) as [-> ->].
  { each_occurrence is_rule; inversion before; now split. }
  apply prefix_iff_stack. exists ([Non tt; Ter b] :: below). split.
  - apply path_step with tt []; [assumption | constructor | constructor].
  - apply viable_cons; [exact plain_productive|]. left. apply uses_up_inside with [Ter a; Ter b]; repeat constructor.
Qed.

(** ... but the stack of the shorter rule refuses, so there is no closed set. *)
Example plain_unproved : ~ exists V, no_refusal plain V /\ V (Ter a) (eq [a]).
Proof.
  intros every_stack. rewrite (always_exact_on_stacks plain plain_productive) in every_stack.
  destruct (every_stack [] [[Ter b]]) as (v & derivation).
  - apply (path_step plain tt [] [] [] (Ter a) [Ter b] []); constructor.
  - inversion derivation.
Qed.

(** F proves that a can follow no b: from b or S no tail consumes or uses up an a, up to the root. *)
Example plain_never : never_legal plain b [a].
Proof.
  apply never_legal_sound. intros follows.
  assert (forall x s, can_follow plain x s -> s = [a] -> x = Ter a) as only_after_a.
  { clear. induction 1 as [A alpha x beta s is_rule inside|A alpha x beta s r is_rule eaten _ IH]; intros ->.
    - each_occurrence is_rule; try reflexivity; inversion inside.
    - each_occurrence is_rule; try reflexivity; inversion eaten as [? same| |]; subst; discriminate (IH eq_refl). }
  discriminate (only_after_a _ _ follows eq_refl).
Qed.
