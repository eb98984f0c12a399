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
