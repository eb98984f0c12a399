(** Why always_legal cannot be decided for all context-free grammars: deciding it would decide whether a context-free
    grammar derives every word, which is undecidable (README.md writes out why). This file checks the reduction. *)

From Coq Require Import List.
From Maskwright Require Import grammar always_legal jointly_legal.
Import ListNotations.

Section Reduction.
Context {T N : Type} (G : grammar T N).

(** The terminals of G and two new ones; the nonterminals of G and two new ones. *)
Inductive marked : Type := Old (t : T) | Bar | End.
Inductive wider : Type := Inner (A : N) | Top | Any.

Definition widen (x : symbol T N) : symbol marked wider :=
  match x with Ter t => Ter (Old t) | Non A => Non (Inner A) end.

(** Top -> Any Bar | S Bar End;   Any -> empty | t Any for every t;   and the rules of G, whose start symbol is S. *)
Inductive probe_rule : wider -> list (symbol marked wider) -> Prop :=
| probe_any_word : probe_rule Top [Non Any; Ter Bar]
| probe_word : probe_rule Top [Non (Inner (start G)); Ter Bar; Ter End]
| probe_empty : probe_rule Any []
| probe_more t : probe_rule Any [Ter (Old t); Non Any]
| probe_inner A rhs : rule G A rhs -> probe_rule (Inner A) (map widen rhs).
Definition probe : grammar marked wider := Grammar probe_rule Top.

(** Any derives every string of old terminals, and nothing else. *)
Lemma any_all w : yields probe [Non Any] (map Old w).
Proof.
  induction w as [|t w IH]; simpl; apply yields_one.
  - exists []. split; constructor.
  - exists [Ter (Old t); Non Any]. split; constructor. assumption.
Qed.

Lemma any_old alpha z : yields probe alpha z -> Forall (fun x => x = Non Any \/ exists t, x = Ter (Old t)) alpha ->
  exists w, z = map Old w.
Proof.
  induction 1 as [|t alpha z _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; intros only; [now exists []| |].
  all: inversion only as [|? ? [is_any|(t' & is_old)] only_rest]; subst; try discriminate.
  - injection is_old as ->. destruct (IH only_rest) as (w & ->). now exists (t' :: w).
  - injection is_any as ->. destruct (IHrest only_rest) as (w & ->). destruct IHinner as (w' & ->).
    + inversion is_rule; subst; repeat apply Forall_cons; auto using Forall_nil. right. now eexists.
    + exists (w' ++ w). now rewrite map_app.
Qed.

(** Inside the old rules nothing changes. *)
Lemma inner_yields alpha w : yields G alpha w -> yields probe (map widen alpha) (map Old w).
Proof.
  induction 1 as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; simpl.
  - constructor.
  - now constructor.
  - rewrite map_app. apply yields_non with (map widen rhs); [now constructor | assumption..].
Qed.

Lemma inner_yields_inv beta z : yields probe beta z ->
  forall alpha, beta = map widen alpha -> exists w, z = map Old w /\ yields G alpha w.
Proof.
  induction 1 as [|t beta z _ IH|B rhs beta u v is_rule _ IHinner _ IHrest]; intros alpha is_alpha.
  all: destruct alpha as [|[t'|A] alpha]; try discriminate.
  - exists []. now repeat constructor.
  - injection is_alpha as -> ->. destruct (IH alpha eq_refl) as (w & -> & derivation).
    exists (t' :: w). now repeat constructor.
  - injection is_alpha as -> ->. inversion is_rule as [| | | |? rhs' is_old]; subst.
    destruct (IHinner rhs' eq_refl) as (w & -> & inner). destruct (IHrest alpha eq_refl) as (w' & -> & rest).
    exists (w ++ w'). split; [now rewrite map_app | now apply yields_non with rhs'].
Qed.

(** Old terminals, then Bar: there is one way to cut. *)
Lemma bar_unique w w' s s' : map Old w ++ Bar :: s = map Old w' ++ Bar :: s' -> w = w' /\ s = s'.
Proof.
  revert w'. induction w as [|t w IH]; intros [|t' w'] same; simpl in same; try discriminate.
  - injection same as ->. now split.
  - injection same as -> same. destruct (IH w' same) as [-> ->]. now split.
Qed.

(** What stands left of any Bar stands left of the last one. *)
Lemma bar_first u w z y : u ++ Bar :: z = map Old w ++ Bar :: y -> ~ In Bar y -> u = map Old w.
Proof.
  revert u. induction w as [|t w IH]; intros [|x u] same last; simpl in same; try discriminate.
  - reflexivity.
  - injection same as -> same. destruct last. rewrite <- same. auto with datatypes.
  - injection same as -> same. simpl. now rewrite (IH u same last).
Qed.

(** The words: w Bar for every w, and w Bar End for the words w of G. *)
Lemma probe_words z : word probe z <->
  exists w, z = map Old w ++ [Bar] \/ (z = map Old w ++ [Bar; End] /\ word G w).
Proof.
  split.
  - intros (rhs & is_rule & inner)%yields_one. inversion is_rule; subst.
    + apply (yields_app_inv probe [Non Any] [Ter Bar]) in inner as (u & v & -> & any & bar).
      apply any_old in any as (w & ->); [|auto].
      exists w. left. inversion bar as [|? ? ? rest|]; subst. now inversion rest.
    + apply (yields_app_inv probe [Non (Inner (start G))] [Ter Bar; Ter End]) in inner as (u & v & -> & inner & marks).
      destruct (inner_yields_inv _ _ inner [Non (start G)] eq_refl) as (w & -> & is_word).
      exists w. right. split; [|assumption]. inversion marks as [|? ? ? rest|]; subst.
      inversion rest as [|? ? ? rest'|]; subst. now inversion rest'.
  - intros (w & [->|[-> is_word]]); apply yields_one.
    + exists ([Non Any] ++ [Ter Bar]). split; [constructor|]. apply yields_app; [apply any_all|].
      exact (yields_terminals _ [Bar]).
    + exists ([Non (Inner (start G))] ++ [Ter Bar; Ter End]). split; [constructor|]. apply yields_app.
      * exact (inner_yields _ _ is_word).
      * exact (yields_terminals _ [Bar; End]).
Qed.

(** The reduction: End is always legal after Bar exactly when G derives every word. *)
Theorem always_legal_universal : always_legal probe Bar [End] <-> forall w, word G w.
Proof.
  split.
  - intros always w. destruct (always (map Old w)) as (v & is_word).
    + exists []. rewrite app_nil_r. apply probe_words. exists w. now left.
    + rewrite <- app_assoc in is_word. apply probe_words in is_word as (w' & [same|[same is_word]]); simpl in same.
      * now destruct (bar_unique _ _ _ _ same) as [_ ?].
      * now destruct (bar_unique _ _ _ _ same) as [-> _].
  - intros universal u (v & is_word). rewrite <- app_assoc in is_word.
    exists []. rewrite app_nil_r. apply probe_words.
    apply probe_words in is_word as (w & cut).
    assert (u = map Old w) as ->; [|exists w; right; split; [reflexivity | apply universal]].
    destruct cut as [cut|[cut _]].
    + apply bar_first with v []; [assumption|]. now intros [].
    + apply bar_first with v [End]; [assumption|]. now intros [|[]].
Qed.

(** Hence jointly_legal cannot be decided either. *)
Corollary jointly_legal_universal : jointly_legal probe Bar [] [End] <-> forall w, word G w.
Proof. rewrite jointly_legal_always. apply always_legal_universal. Qed.

End Reduction.
