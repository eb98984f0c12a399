(** Implication: on every stack after X that lets the premise through, the conclusion is let through as well. One closed
    set of pairs proves it. always_legal is the case of the empty premise, a longer context the case of a premise that
    begins the conclusion, jointly_legal is implication both ways. *)

From Coq Require Import List.
From Maskwright Require Import grammar subset never_legal always_legal.
Import ListNotations.

Section Implication.
Context {T N : Type} (G : grammar T N).

(** [V] is closed and lets nothing escape. A state (x, J, K), premise and conclusion, asks every occurrence
    "A -> alpha x beta" for one of three things: the conclusion is accepted; the premise is not and never will be
    (nothing open after the tail can follow A; the empty set, for one); or the state above is in V too. The state above
    may be more demanding than computed: the premise accepted already, or more of it open, or less of the conclusion. *)
Definition no_escape (V : symbol T N -> (list T -> Prop) -> (list T -> Prop) -> Prop) : Prop :=
  forall x J K, V x J K ->
    (x = Non (start G) -> J [] -> K []) /\
    forall A alpha beta, rule G A (alpha ++ x :: beta) ->
      after G K beta [] \/
      (forall r, after G J beta r -> r <> [] /\ ~ can_follow G (Non A) r) \/
      exists J' K', V (Non A) J' K' /\ (J' [] \/ forall r, after G J beta r -> J' r) /\
        forall r, K' r -> after G K beta r.

(** Below a state of a closed set, every stack that lets the premise through lets the conclusion through. *)
Lemma no_escape_passes : productive G -> forall V, no_escape V -> forall x u stack,
  path G x u stack -> forall J K, V x J K -> passes G J stack -> passes G K stack.
Proof.
  intros all_productive V closed x u stack occurrence.
  induction occurrence as [|A u stack alpha x beta p above IH is_rule _]; intros J K in_V holds.
  - apply passes_root. apply (closed (Non (start G)) J K in_V); [reflexivity|]. now apply (passes_root G).
  - apply passes_cons in holds; [|assumption]. apply passes_cons; [assumption|].
    destruct (closed x J K in_V) as [_ occurrences].
    destruct (occurrences A alpha beta is_rule) as [accepted|[hopeless|(J' & K' & in_V' & weaker & subset)]].
    + now apply passes_accepted.
    + destruct holds as (r & is_open & lets). destruct (hopeless r is_open) as [not_read cannot].
      destruct cannot. apply stack_can_follow with u stack; auto.
    + apply passes_subset with K'; [assumption|]. apply (IH J' K' in_V').
      destruct weaker as [accepted|weaker]; [now apply passes_accepted|]. now apply passes_subset with (after G J beta).
Qed.

(** The theorem behind `implies`: wherever the premise is legal after X, so is the conclusion. *)
Theorem implied_sound : productive G -> forall V, no_escape V ->
  forall X S1 S2, V (Ter X) (eq S1) (eq S2) -> forall u, prefix G (u ++ X :: S1) -> prefix G (u ++ X :: S2).
Proof.
  intros all_productive V closed X S1 S2 in_V u (stack & occurrence & lets)%prefix_iff_stack.
  apply prefix_iff_stack. exists stack. split; [assumption|]. apply passes_single.
  apply (no_escape_passes all_productive V closed (Ter X) u stack occurrence _ _ in_V). now apply passes_single.
Qed.

(** It is exact for stacks: a closed set exists whenever the implication holds on every stack. *)
Theorem implied_exact_on_stacks : productive G -> forall X S1 S2,
  (exists V, no_escape V /\ V (Ter X) (eq S1) (eq S2)) <->
  (forall u stack, path G (Ter X) u stack -> viable G (concat stack) S1 -> viable G (concat stack) S2).
Proof.
  intros all_productive X S1 S2. split.
  - intros (V & closed & in_V) u stack occurrence. rewrite <- !passes_single.
    now apply no_escape_passes with V (Ter X) u.
  - intros every_stack.
    exists (fun x J K => forall u stack, path G x u stack -> passes G J stack -> passes G K stack). split.
    + intros x J K every. split.
      * intros ->. rewrite <- !(passes_root G). apply (every [] []). constructor.
      * intros A alpha beta is_rule. right. right. exists (after G J beta), (after G K beta).
        split; [|split; [now right | trivial]]. intros u stack above.
        destruct (productive_string G all_productive alpha) as (p & before).
        rewrite <- !passes_cons by assumption. apply every with (u ++ p). now apply path_step with A alpha.
    + intros u stack occurrence. rewrite !passes_single. now apply every_stack with u.
Qed.

(** The empty premise: always legal. *)
Corollary implied_always : productive G -> forall V, no_escape V ->
  forall X S, V (Ter X) (eq []) (eq S) -> always_legal G X S.
Proof. intros all_productive V closed X S in_V. exact (implied_sound all_productive V closed X [] S in_V). Qed.

(** A context of several terminals, X R: every word of P that ends in it can go on with S. *)
Corollary implied_always_context : productive G -> forall V, no_escape V ->
  forall X R S, V (Ter X) (eq R) (eq (R ++ S)) ->
  forall u, prefix G (u ++ X :: R) -> prefix G ((u ++ X :: R) ++ S).
Proof.
  intros all_productive V closed X R S in_V u holds. rewrite <- app_assoc.
  now apply (implied_sound all_productive V closed X R (R ++ S) in_V).
Qed.

End Implication.
