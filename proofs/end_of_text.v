(** The end of the text as a terminal: a grammar with an end marker, whose prefixes are the words and the prefixes without it.

    So a mask's end-of-text token is a token like others: its entry is the sequence of the marker alone, and what the other files
    say of prefixes, stacks and stores says whether the text may end. *)

From Coq Require Import List.
From Maskwright Require Import grammar.
Import ListNotations.

Section End.
Context {T N : Type} (G : grammar T N).

(** [None] is the marker, and the new start symbol. *)
Definition lift (x : symbol T N) : symbol (option T) (option N) :=
  match x with Ter t => Ter (Some t) | Non A => Non (Some A) end.
Inductive marked_rule : option N -> list (symbol (option T) (option N)) -> Prop :=
| marked_top : marked_rule None [Non (Some (start G)); Ter None]
| marked_old A rhs : rule G A rhs -> marked_rule (Some A) (map lift rhs).
Definition marked : grammar (option T) (option N) := Grammar marked_rule None.

Lemma lift_yields alpha w : yields G alpha w -> yields marked (map lift alpha) (map Some w).
Proof.
  induction 1 as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; simpl.
  - constructor.
  - now constructor.
  - rewrite map_app. apply yields_non with (map lift rhs); [now constructor | assumption..].
Qed.

Lemma lifted_yields beta w : yields marked beta w -> forall alpha, beta = map lift alpha ->
  exists v, w = map Some v /\ yields G alpha v.
Proof.
  induction 1 as [|t beta w _ IH|A rhs beta u v is_rule _ IHinner _ IHrest]; intros [|x alpha] same; try discriminate.
  - exists []. now split; [|constructor].
  - destruct x as [t'|A]; simpl in same; [|discriminate]. injection same as -> same.
    destruct (IH alpha same) as (v & -> & derivation). exists (t' :: v). now split; [|constructor].
  - destruct x as [t'|A']; simpl in same; [discriminate|]. injection same as -> same.
    inversion is_rule as [|B rhs' is_old]; subst.
    destruct (IHinner rhs' eq_refl) as (u' & -> & inner). destruct (IHrest alpha eq_refl) as (v' & -> & rest).
    exists (u' ++ v'). rewrite map_app. split; [reflexivity|]. now apply yields_non with rhs'.
Qed.

(** The words are those of the grammar with the marker at the end. *)
Theorem marked_word w : word marked w <-> exists v, w = map Some v ++ [None] /\ word G v.
Proof.
  unfold word. split.
  - intros (rhs & is_rule & inner)%yields_one. inversion is_rule; subst.
    apply (yields_app_inv _ [Non (Some (start G))]) in inner as (u & v & -> & left & right).
    destruct (lifted_yields _ _ left [Non (start G)] eq_refl) as (u' & -> & derivation).
    inversion right as [|t alpha w rest|]; subst. inversion rest; subst. now exists u'.
  - intros (v & -> & is_word). apply yields_one. exists [Non (Some (start G)); Ter None]. split; [constructor|].
    apply (yields_app _ [Non (Some (start G))]); [exact (lift_yields _ _ is_word)|]. constructor. constructor.
Qed.

(** The end of the text is legal exactly behind a word. *)
Theorem ends_iff_word u : prefix marked (map Some u ++ [None]) <-> word G u.
Proof.
  split.
  - intros (z & is_word). apply marked_word in is_word as (v & same & is_word).
    enough (equal : u = v) by now rewrite equal.
    clear is_word. rewrite <- app_assoc in same. simpl in same. revert v same. induction u as [|t u IH]; intros [|t' v] same; simpl in same; try discriminate; [reflexivity|].
    injection same as -> same. f_equal. now apply IH.
  - intros is_word. exists []. rewrite app_nil_r. apply marked_word. now exists u.
Qed.

(** What may be read before it is what the grammar's prefixes say. *)
Theorem marked_prefix u : prefix marked (map Some u) <-> prefix G u.
Proof.
  split.
  - intros (z & is_word). apply marked_word in is_word as (v & same & is_word).
    assert (exists z', v = u ++ z') as (z' & ->).
    { clear is_word. revert v same. induction u as [|t u IH]; intros v same; [now exists v|].
      destruct v as [|t' v]; simpl in same; [discriminate|]. injection same as -> same.
      destruct (IH v same) as (z' & ->). now exists z'. }
    now exists z'.
  - intros (v & is_word). exists (map Some v ++ [None]). rewrite app_assoc, <- map_app. apply marked_word. now exists (u ++ v).
Qed.

(** Nothing follows the end. *)
Theorem nothing_behind_the_end u t : ~ prefix marked (u ++ [None; t]).
Proof.
  intros (z & is_word). apply marked_word in is_word as (v & same & _). rewrite <- app_assoc in same. simpl in same.
  revert v same. induction u as [|x u IH]; intros [|t' v] same; simpl in same; try discriminate.
  - injection same as _ same. now destruct u.
  - injection same as _ same. now apply (IH v).
Qed.

(** Marking keeps a grammar productive, so the theorems about "always" apply to it. *)
Lemma marked_productive : productive G -> productive marked.
Proof.
  intros all_productive [A|].
  - destruct (all_productive A) as (w & derivation). exists (map Some w). exact (lift_yields _ _ derivation).
  - destruct (all_productive (start G)) as (w & derivation). exists (map Some w ++ [None]). apply marked_word. now exists w.
Qed.

End End.
