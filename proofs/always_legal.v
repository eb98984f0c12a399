(** always_legal: every word of P that ends in X can go on with S. Proved from a closed set of states of the subset
    construction, or from a post-fixed point over single remainders (U), which is the special case of singletons. *)

From Coq Require Import List.
From Maskwright Require Import grammar subset.
Import ListNotations.

Section AlwaysLegal.
Context {T N : Type} (G : grammar T N).

(** The judge's question: wherever [X] has just been accepted, [S] can be next. *)
Definition always_legal (X : T) (S : list T) : Prop := forall u, prefix G (u ++ [X]) -> prefix G (u ++ X :: S).

(** * The subset form *)

(** [V] is closed and holds no refusal. A state (x, K) asks every occurrence "A -> alpha x beta": either its tail
    accepts (the empty remainder is open after it), or the state above is in V too. At the root only acceptance will do.
    The state above may be smaller than computed: fewer open remainders are harder to accept. *)
Definition no_refusal (V : symbol T N -> remainders -> Prop) : Prop :=
  forall x K, V x K ->
    (x = Non (start G) -> K []) /\
    forall A alpha beta, rule G A (alpha ++ x :: beta) ->
      after G K beta [] \/ exists L, V (Non A) L /\ forall r, L r -> after G K beta r.

(** Every stack below a state of a closed set lets one of the state's remainders through. By induction on the stack:
    a real stack is finite, so "no refusal is reachable" is enough and no progress argument is needed. *)
Lemma no_refusal_passes : productive G -> forall V, no_refusal V -> forall x u stack,
  path G x u stack -> forall K, V x K -> passes G K stack.
Proof.
  intros all_productive V closed x u stack occurrence.
  induction occurrence as [|A u stack alpha x beta p _ IH is_rule _]; intros K in_V.
  - apply passes_root. now apply (closed (Non (start G)) K in_V).
  - apply passes_cons; [assumption|]. destruct (closed x K in_V) as [_ occurrences].
    destruct (occurrences A alpha beta is_rule) as [accepted|(L & above & subset)].
    + now apply passes_accepted.
    + apply passes_subset with L; auto.
Qed.

(** No reachable refusal from (X, {S}): always legal. *)
Theorem always_legal_sound : productive G -> forall V, no_refusal V -> forall X S, V (Ter X) (eq S) -> always_legal X S.
Proof.
  intros all_productive V closed X S in_V u (stack & occurrence & _)%prefix_iff_stack.
  apply prefix_iff_stack. exists stack. split; [assumption|]. apply passes_single.
  now apply no_refusal_passes with V (Ter X) u.
Qed.

(** The subset form is exact for stacks: it finds a proof whenever *every* stack after X lets S through. *)
Theorem always_exact_on_stacks : productive G -> forall X S,
  (exists V, no_refusal V /\ V (Ter X) (eq S)) <->
  (forall u stack, path G (Ter X) u stack -> viable G (concat stack) S).
Proof.
  intros all_productive X S. split.
  - intros (V & closed & in_V) u stack occurrence. apply passes_single. now apply no_refusal_passes with V (Ter X) u.
  - intros every_stack. exists (fun x K => forall u stack, path G x u stack -> passes G K stack). split.
    + intros x K every. split.
      * intros ->. apply (passes_root G). apply (every [] []). constructor.
      * intros A alpha beta is_rule. right. exists (after G K beta). split; [|trivial].
        intros u stack above. destruct (productive_string G all_productive alpha) as (p & before).
        apply passes_cons; [assumption|]. apply every with (u ++ p). now apply path_step with A alpha.
    + intros u stack occurrence. apply passes_single. now apply every_stack with u.
Qed.

(** "Every stack" is stronger than "always legal": one word of P may have several stacks, and one that lets S through is
    enough. Where all stacks after the same word agree about S, the subset form decides. ([from_before_exact] asks less.) *)
Theorem always_legal_exact : productive G -> forall X S,
  (forall u stack stack', path G (Ter X) u stack -> path G (Ter X) u stack' ->
    viable G (concat stack) S -> viable G (concat stack') S) ->
  always_legal X S <-> exists V, no_refusal V /\ V (Ter X) (eq S).
Proof.
  intros all_productive X S agree. split.
  - intros always. apply always_exact_on_stacks; [assumption|]. intros u stack occurrence.
    assert (prefix G (u ++ X :: S)) as (stack' & occurrence' & lets)%prefix_iff_stack.
    { apply always. apply prefix_iff_stack. exists stack. split; [assumption|].
      exact (productive_string G all_productive _). }
    now apply agree with u stack'.
  - intros (V & closed & in_V). now apply always_legal_sound with V.
Qed.

(** * The form over single remainders *)

(** U is a post-fixed point: for *every* occurrence, the tail reaches the end of [s], or leaves *some* [r] with U_r(A).
    False at the start symbol unless nothing is left. *)
Definition post_fixed (U : symbol T N -> list T -> Prop) : Prop :=
  forall x s, U x s ->
    (x = Non (start G) -> s = []) /\
    forall A alpha beta, rule G A (alpha ++ x :: beta) ->
      uses_up G beta s \/ exists r, consumes G beta s r /\ U (Non A) r.

(** The greatest fixed point: the union of all post-fixed points. The least fixed point is one of them. *)
Definition must_follow (x : symbol T N) (s : list T) : Prop := exists U, post_fixed U /\ U x s.

(** A post-fixed point is a closed set whose states are singletons. *)
Lemma post_fixed_no_refusal U : post_fixed U -> no_refusal (fun x K => exists s, U x s /\ forall r, K r <-> s = r).
Proof.
  intros post x K (s & in_U & single). destruct (post x s in_U) as [at_root occurrences].
  assert (K s) as is_open by now apply single. split.
  - intros is_root. apply single. now apply at_root.
  - intros A alpha beta is_rule. destruct (occurrences A alpha beta is_rule) as [inside|(r & eaten & above)].
    + left. right. split; [reflexivity|]. now exists s.
    + right. exists (eq r). split; [now exists r|]. intros r' <-. left. now exists s.
Qed.

(** U_S(X) implies that S is always legal after X. *)
Theorem must_follow_sound : productive G -> forall X S, must_follow (Ter X) S -> always_legal X S.
Proof.
  intros all_productive X S (U & post & in_U).
  apply always_legal_sound with (1 := all_productive) (2 := post_fixed_no_refusal U post). now exists S.
Qed.

(** The subset form proves whatever U proves. *)
Theorem must_follow_subset X S : must_follow (Ter X) S -> exists V, no_refusal V /\ V (Ter X) (eq S).
Proof.
  intros (U & post & in_U). exists (fun x K => exists s, U x s /\ forall r, K r <-> s = r).
  split; [now apply post_fixed_no_refusal|]. now exists S.
Qed.

(** * Chaining *)

(** Nothing is always legal; and verdicts chain: Y after X, then R after Y. *)
Lemma always_legal_nil X : always_legal X [].
Proof. now intros u follows. Qed.

Lemma always_legal_chain X S Y R : always_legal X (S ++ [Y]) -> always_legal Y R -> always_legal X (S ++ Y :: R).
Proof.
  intros first second u follows. specialize (first u follows).
  change (u ++ X :: S ++ Y :: R) with (u ++ (X :: S) ++ Y :: R). rewrite app_assoc. apply second.
  now rewrite <- app_assoc.
Qed.

End AlwaysLegal.

(** The verdict depends on the language alone, so a normalised copy of the grammar may be judged instead. *)
Theorem always_legal_same_language {T N N'} (G : grammar T N) (H : grammar T N') :
  (forall w, word G w <-> word H w) -> forall X S, always_legal G X S <-> always_legal H X S.
Proof.
  intros same X S.
  assert (forall u, prefix G u <-> prefix H u) as same_prefix.
  { intros u. split; intros (v & is_word); exists v; now apply same. }
  split; intros always u follows; apply same_prefix, always, same_prefix, follows.
Qed.
