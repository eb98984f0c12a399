(** Beginning one symbol earlier: an implication proved from the terminal before X, where alternatives that X has parted
    still stand side by side.

    A word of P that ends in X is X alone, or has a last terminal Y before X. In the first case the start of the text is
    asked; in the second X begins the sequence, and implication.v is asked about Y. The code also asks about the nonterminals
    that can stand before X: more than is needed, so whatever it proves is proved here. *)

From Coq Require Import List.
From Maskwright Require Import grammar subset never_legal always_legal implication examples.
Import ListNotations.

Section FromBefore.
Context {T N : Type} (G : grammar T N).

(** The theorem behind `implies_from_before`. The first hypothesis is decided exactly ([prefix_iff_uses_up]); a terminal
    that X S1 cannot follow need not be asked. *)
Theorem from_before_sound : productive G -> forall X S1 S2,
  (prefix G (X :: S1) -> prefix G (X :: S2)) ->
  (forall Y, can_follow G (Ter Y) (X :: S1) ->
    exists V, no_escape G V /\ V (Ter Y) (eq (X :: S1)) (eq (X :: S2))) ->
  forall u, prefix G (u ++ X :: S1) -> prefix G (u ++ X :: S2).
Proof.
  intros all_productive X S1 S2 at_start before u. destruct u as [|Y u _] using rev_ind; [exact at_start|].
  rewrite <- !app_assoc. simpl. intros follows.
  destruct (before Y) as (V & closed & in_V).
  - destruct (proj1 (prefix_iff_stack G u Y (X :: S1)) follows) as (stack & occurrence & lets).
    apply (stack_can_follow G) with u stack; [assumption..|]. now left.
  - exact (implied_sound G all_productive V closed Y _ _ in_V u follows).
Qed.

(** The same with every symbol asked, as the code does. *)
Corollary from_before_symbols : productive G -> forall X S1 S2,
  (prefix G (X :: S1) -> prefix G (X :: S2)) ->
  (forall x, can_follow G x (X :: S1) -> exists V, no_escape G V /\ V x (eq (X :: S1)) (eq (X :: S2))) ->
  forall u, prefix G (u ++ X :: S1) -> prefix G (u ++ X :: S2).
Proof. intros all_productive X S1 S2 at_start before. apply from_before_sound; auto. Qed.

(** A context of several terminals, X R: every word of P that ends in it can go on with S. *)
Corollary from_before_always_context : productive G -> forall X R S,
  (prefix G (X :: R) -> prefix G (X :: R ++ S)) ->
  (forall Y, can_follow G (Ter Y) (X :: R) ->
    exists V, no_escape G V /\ V (Ter Y) (eq (X :: R)) (eq (X :: R ++ S))) ->
  forall u, prefix G (u ++ X :: R) -> prefix G (u ++ X :: R ++ S).
Proof. intros all_productive X R S. now apply from_before_sound. Qed.

(** A context of one terminal: always legal. *)
Corollary from_before_always : productive G -> forall X S,
  (prefix G [X] -> prefix G (X :: S)) ->
  (forall Y, can_follow G (Ter Y) [X] -> exists V, no_escape G V /\ V (Ter Y) (eq [X]) (eq (X :: S))) ->
  always_legal G X S.
Proof. intros all_productive X S. exact (from_before_sound all_productive X [] S). Qed.

(** ** How much it proves

    All that is true, where the stacks after the same word that let [X S1] through agree about [X S2]. Stacks that let no [X]
    through have no say: [plain_agrees] below meets this, though [always_legal_exact]'s hypothesis fails there. *)
Theorem from_before_exact : productive G -> forall X S1 S2,
  (forall Y u stack stack', path G (Ter Y) u stack -> path G (Ter Y) u stack' ->
    viable G (concat stack) (X :: S2) -> viable G (concat stack') (X :: S1) -> viable G (concat stack') (X :: S2)) ->
  (forall u, prefix G (u ++ X :: S1) -> prefix G (u ++ X :: S2)) <->
  (prefix G (X :: S1) -> prefix G (X :: S2)) /\
  (forall Y, can_follow G (Ter Y) (X :: S1) -> exists V, no_escape G V /\ V (Ter Y) (eq (X :: S1)) (eq (X :: S2))).
Proof.
  intros all_productive X S1 S2 agree. split; [|intros (at_start & before); now apply from_before_sound].
  intros implied. split; [exact (implied [])|]. intros Y _.
  apply implied_exact_on_stacks; [assumption|]. intros u stack occurrence lets.
  assert (prefix G (u ++ Y :: X :: S2)) as (stack' & occurrence' & lets')%prefix_iff_stack.
  { specialize (implied (u ++ [Y])). rewrite <- !app_assoc in implied. apply implied.
    apply prefix_iff_stack. now exists stack. }
  now apply agree with Y u stack'.
Qed.

Corollary from_before_always_exact : productive G -> forall X S,
  (forall Y u stack stack', path G (Ter Y) u stack -> path G (Ter Y) u stack' ->
    viable G (concat stack) (X :: S) -> viable G (concat stack') [X] -> viable G (concat stack') (X :: S)) ->
  always_legal G X S <->
  (prefix G [X] -> prefix G (X :: S)) /\
  (forall Y, can_follow G (Ter Y) [X] -> exists V, no_escape G V /\ V (Ter Y) (eq [X]) (eq (X :: S))).
Proof. intros all_productive X S agree. exact (from_before_exact all_productive X [] S agree). Qed.

End FromBefore.

(** It proves more than implication.v does from a: S -> a S b | a b, an a after every a, which [plain_unproved] cannot.
    From any symbol, a tail that reads an a can read a second one: only the S before its b does, by the longer rule. *)
Example plain_from_before : always_legal plain a [a].
Proof.
  assert (forall beta, uses_up plain (Non tt :: beta) [a; a]) as twice.
  { intros beta. apply uses_up_inside with [Ter a; Non tt; Ter b]; [constructor|]. constructor.
    apply uses_up_inside with [Ter a; Ter b]; repeat constructor. }
  apply from_before_always; [exact plain_productive| |].
  - intros _. apply prefix_iff_uses_up; [exact plain_productive | apply twice].
  - intros Y _. exists (fun x J K => J = eq [a] /\ K = eq [a; a]). split; [|now split].
    intros x J K (-> & ->). split; [discriminate|]. intros A alpha beta is_rule.
    assert (beta = [Non tt; Ter b] \/ beta = [Ter b] \/ beta = [] /\ A = tt) as [->|[->|[-> ->]]].
    { each_occurrence is_rule; auto. }
    + left. right. split; [reflexivity|]. exists [a; a]. split; [reflexivity | apply twice].
    + right. left. intros r [(s & <- & eaten)|(_ & s & <- & inside)]; [inversion eaten | inversion inside].
    + right. right. exists (eq [a]), (eq [a; a]). split; [now split|]. split.
      * right. intros r [(s & <- & eaten)|(_ & s & <- & inside)]; [now inversion eaten | inversion inside].
      * intros r <-. left. exists [a; a]. split; [reflexivity | constructor].
Qed.

(** The plain form meets the hypothesis of [from_before_always_exact]: of the stacks after one word, only those of the longer
    rule let an a through, and each of them lets a second one through. *)
Example plain_agrees : forall Y u stack stack', path plain (Ter Y) u stack -> path plain (Ter Y) u stack' ->
  viable plain (concat stack) [a; a] -> viable plain (concat stack') [a] -> viable plain (concat stack') [a; a].
Proof.
  intros Y u _ stack' _ occurrence _ lets.
  inversion occurrence as [|A u' below alpha x beta p above is_rule before]; subst.
  assert (beta = [Non tt; Ter b] \/ beta = [Ter b] \/ beta = [] /\ A = tt) as [->|[->|[-> ->]]].
  { each_occurrence is_rule; auto. }
  - apply viable_cons; [exact plain_productive|]. left. apply uses_up_inside with [Ter a; Non tt; Ter b]; [constructor|].
    constructor. apply uses_up_inside with [Ter a; Ter b]; repeat constructor.
  - destruct lets as (v & derivation). inversion derivation.
  - destruct lets as (v & derivation). inversion above as [|A u'' below' alpha' x beta p' above' is_rule' before']; subst.
    + inversion derivation.
    + each_occurrence is_rule'; inversion derivation.
Qed.

(** ... while the hypothesis of [always_legal_exact] fails there. *)
Example plain_disagrees : exists u stack stack', path plain (Ter a) u stack /\ path plain (Ter a) u stack' /\
  viable plain (concat stack) [a] /\ ~ viable plain (concat stack') [a].
Proof.
  exists [], [[Non tt; Ter b]], [[Ter b]]. repeat split.
  - apply (path_step plain tt [] [] [] (Ter a) [Non tt; Ter b] []); constructor.
  - apply (path_step plain tt [] [] [] (Ter a) [Ter b] []); constructor.
  - apply uses_up_viable; [exact plain_productive|]. apply uses_up_inside with [Ter a; Ter b]; repeat constructor.
  - intros (v & derivation). inversion derivation.
Qed.
