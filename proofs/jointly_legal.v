(** jointly_legal: after every word of P that ends in X, S1 and S2 are both legal or both not. Proved from implication
    both ways, or from a closed set of states of the product of two subset constructions that never splits. *)

From Coq Require Import List.
From Maskwright Require Import grammar subset always_legal implication.
Import ListNotations.

Section JointlyLegal.
Context {T N : Type} (G : grammar T N).

(** The judge's question. *)
Definition jointly_legal (X : T) (S1 S2 : list T) : Prop :=
  forall u, prefix G (u ++ X :: S1) <-> prefix G (u ++ X :: S2).

(** * Implication both ways *)

(** Each of the two implies the other: jointly legal. *)
Theorem jointly_legal_both_ways : productive G -> forall V, no_escape G V ->
  forall X S1 S2, V (Ter X) (eq S1) (eq S2) -> V (Ter X) (eq S2) (eq S1) -> jointly_legal X S1 S2.
Proof.
  intros all_productive V closed X S1 S2 one other u.
  split; [exact (implied_sound G all_productive V closed X S1 S2 one u)|].
  exact (implied_sound G all_productive V closed X S2 S1 other u).
Qed.

(** * The product *)

Definition same (K L : list T -> Prop) : Prop := forall r, K r <-> L r.

(** [V] is closed and never splits. For every occurrence both sides accept, or both hold the same remainders (both are
    refused, for one), or the pair above is in V too. At the root both accept or both refuse. *)
Definition no_split (V : symbol T N -> remainders -> remainders -> Prop) : Prop :=
  forall x K1 K2, V x K1 K2 ->
    (x = Non (start G) -> (K1 [] <-> K2 [])) /\
    forall A alpha beta, rule G A (alpha ++ x :: beta) ->
      (after G K1 beta [] /\ after G K2 beta []) \/
      same (after G K1 beta) (after G K2 beta) \/
      exists L1 L2, V (Non A) L1 L2 /\ same L1 (after G K1 beta) /\ same L2 (after G K2 beta).

Lemma passes_same K L stack : same K L -> passes G K stack <-> passes G L stack.
Proof. intros equal. split; apply passes_subset; intros r; apply equal. Qed.

(** Below a pair of a closed set every stack lets both sides through or neither. *)
Lemma no_split_passes : productive G -> forall V, no_split V -> forall x u stack,
  path G x u stack -> forall K1 K2, V x K1 K2 -> passes G K1 stack <-> passes G K2 stack.
Proof.
  intros all_productive V closed x u stack occurrence.
  induction occurrence as [|A u stack alpha x beta p _ IH is_rule _]; intros K1 K2 in_V.
  - rewrite !passes_root. now apply (closed (Non (start G)) K1 K2 in_V).
  - rewrite !passes_cons by assumption. destruct (closed x K1 K2 in_V) as [_ occurrences].
    destruct (occurrences A alpha beta is_rule) as [[accepted1 accepted2]|[equal|(L1 & L2 & above & same1 & same2)]].
    + split; intros _; now apply passes_accepted.
    + now apply passes_same.
    + rewrite <- (passes_same L1 _ stack same1), <- (passes_same L2 _ stack same2). now apply IH.
Qed.

(** No reachable split from (X, {S1}, {S2}): jointly legal. *)
Theorem jointly_legal_sound : productive G -> forall V, no_split V ->
  forall X S1 S2, V (Ter X) (eq S1) (eq S2) -> jointly_legal X S1 S2.
Proof.
  intros all_productive V closed X S1 S2 in_V u. rewrite !prefix_iff_stack.
  split; intros (stack & occurrence & lets); exists stack; (split; [assumption|]);
    apply passes_single in lets; apply passes_single;
    apply (no_split_passes all_productive V closed (Ter X) u stack occurrence _ _ in_V), lets.
Qed.

(** The product is exact for stacks; it proves no more and no less than implication both ways. *)
Theorem jointly_exact_on_stacks : productive G -> forall X S1 S2,
  (exists V, no_split V /\ V (Ter X) (eq S1) (eq S2)) <->
  (forall u stack, path G (Ter X) u stack -> viable G (concat stack) S1 <-> viable G (concat stack) S2).
Proof.
  intros all_productive X S1 S2. split.
  - intros (V & closed & in_V) u stack occurrence. rewrite <- !passes_single.
    now apply no_split_passes with V (Ter X) u.
  - intros every_stack.
    exists (fun x K1 K2 => forall u stack, path G x u stack -> passes G K1 stack <-> passes G K2 stack). split.
    + intros x K1 K2 every. split.
      * intros ->. rewrite <- !(passes_root G). apply (every [] []). constructor.
      * intros A alpha beta is_rule. right. right. exists (after G K1 beta), (after G K2 beta).
        split; [|now split]. intros u stack above.
        destruct (productive_string G all_productive alpha) as (p & before).
        rewrite <- !passes_cons by assumption. apply every with (u ++ p). now apply path_step with A alpha.
    + intros u stack occurrence. rewrite !passes_single. now apply every_stack with u.
Qed.

(** * What joint legality gives *)

(** always_legal is the special case of the empty sequence. *)
Theorem jointly_legal_always X S : jointly_legal X [] S <-> always_legal G X S.
Proof.
  split.
  - intros joint u. apply joint.
  - intros always u. split; [apply always|]. intros follows. apply prefix_closed with S. now rewrite <- app_assoc.
Qed.

(** Folding with the whole prefix as context: R can always follow X S exactly when S and S R are jointly legal after X.
    This is how a pair of terminals, or more, serves as context. *)
Theorem jointly_legal_fold X S R :
  jointly_legal X S (S ++ R) <-> forall u, prefix G (u ++ X :: S) -> prefix G (u ++ X :: S ++ R).
Proof.
  split.
  - intros joint u. apply joint.
  - intros always u. split; [apply always|]. intros follows. apply prefix_closed with R. now rewrite <- app_assoc.
Qed.

(** It is an equivalence, so merging may go from representative to representative. *)
Lemma jointly_legal_refl X S : jointly_legal X S S.
Proof. now intros u. Qed.

Lemma jointly_legal_sym X S1 S2 : jointly_legal X S1 S2 -> jointly_legal X S2 S1.
Proof. intros joint u. symmetry. apply joint. Qed.

Lemma jointly_legal_trans X S1 S2 S3 : jointly_legal X S1 S2 -> jointly_legal X S2 S3 -> jointly_legal X S1 S3.
Proof. intros first second u. now rewrite (first u). Qed.

End JointlyLegal.

(** The verdict depends on the language alone, so a normalised copy of the grammar may be judged instead. *)
Theorem jointly_legal_same_language {T N N'} (G : grammar T N) (H : grammar T N') :
  (forall w, word G w <-> word H w) -> forall X S1 S2, jointly_legal G X S1 S2 <-> jointly_legal H X S1 S2.
Proof.
  intros same X S1 S2.
  assert (forall u, prefix G u <-> prefix H u) as same_prefix.
  { intros u. split; intros (v & is_word); exists v; now apply same. }
  split; intros joint u; specialize (joint u); rewrite !same_prefix in *; exact joint.
Qed.
