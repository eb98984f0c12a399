(** interchange: terminals that stand in the same places of the rules may replace each other one occurrence at a time,
    so a sequence may be judged by its representative in any context.

    First what is to be shown, a statement about the language alone; then two ways to see it in the rules: terminals
    with equal sets of rule contexts, and more generally an equivalence of symbols under which the rules are closed. *)

From Coq Require Import List.
From Maskwright Require Import grammar.
Import ListNotations.

Section Replaceable.
Context {T N : Type} (G : grammar T N).

(** One [X] may be replaced by [Y], and back, in any word, with everything around it as it was. *)
Definition replaceable (X Y : T) : Prop := forall u v, word G (u ++ X :: v) <-> word G (u ++ Y :: v).

(** It is an equivalence: its classes are well defined, and facts found in different ways may be joined. *)
Lemma replaceable_refl X : replaceable X X.
Proof. now intros u v. Qed.

Lemma replaceable_sym X Y : replaceable X Y -> replaceable Y X.
Proof. intros same u v. symmetry. apply same. Qed.

Lemma replaceable_trans X Y Z : replaceable X Y -> replaceable Y Z -> replaceable X Z.
Proof. intros first second u v. now rewrite (first u v). Qed.

(** Any number of occurrences may be replaced, each by its own partner (generalised for the induction) ... *)
Lemma replaceable_after left w w' :
  Forall2 replaceable w w' -> forall right, word G (left ++ w ++ right) <-> word G (left ++ w' ++ right).
Proof.
  intros replaced. revert left. induction replaced as [|X Y w w' same _ IH]; intros left right; simpl; [reflexivity|].
  rewrite (same left (w ++ right)). change (Y :: w ++ right) with ([Y] ++ w ++ right).
  change (Y :: w' ++ right) with ([Y] ++ w' ++ right). rewrite !(app_assoc left). apply IH.
Qed.

(** ... in words and in their prefixes, after any context. *)
Theorem replaceable_word w w' : Forall2 replaceable w w' -> word G w <-> word G w'.
Proof. intros replaced. pose proof (replaceable_after [] w w' replaced []) as same. now rewrite !app_nil_r in same. Qed.

Theorem replaceable_prefix u S S' : Forall2 replaceable S S' -> prefix G (u ++ S) <-> prefix G (u ++ S').
Proof.
  intros replaced.
  split; intros (v & is_word); exists v; rewrite <- app_assoc in *; now apply (replaceable_after u S S' replaced).
Qed.

End Replaceable.

(** It depends on the language alone, so it may be read off a rewritten copy of the grammar. *)
Theorem replaceable_same_language {T N N'} (G : grammar T N) (H : grammar T N') :
  (forall w, word G w <-> word H w) -> forall X Y, replaceable G X Y <-> replaceable H X Y.
Proof. intros same X Y. split; intros replace u v; specialize (replace u v); rewrite !same in *; exact replace. Qed.

(** * An equivalence of symbols *)

Section Closed.
Context {T N : Type} (G : grammar T N).

(** [like] on terminals, [alike] on nonterminals; two strings of symbols are like each other position by position. *)
Variable like : T -> T -> Prop.
Variable alike : N -> N -> Prop.

Inductive like_symbol : symbol T N -> symbol T N -> Prop :=
| like_ter t t' : like t t' -> like_symbol (Ter t) (Ter t')
| like_non A A' : alike A A' -> like_symbol (Non A) (Non A').

(** Replacing symbols of a rule's right side by their like gives a rule of a like nonterminal. *)
Definition rules_closed : Prop := forall A before rhs,
  rule G A before -> Forall2 like_symbol before rhs -> exists A', alike A A' /\ rule G A' rhs.

(** Replace terminals in a derived string: a like string of symbols derives the result. *)
Lemma like_yields : rules_closed -> forall alpha w, yields G alpha w ->
  forall w', Forall2 like w w' -> exists alpha', Forall2 like_symbol alpha alpha' /\ yields G alpha' w'.
Proof.
  intros closed. induction 1 as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; intros w' replaced.
  - inversion replaced. exists []. now repeat constructor.
  - inversion replaced as [|? t' ? w'' like_t like_w]; subst. destruct (IH w'' like_w) as (alpha' & alike_rest & rest).
    exists (Ter t' :: alpha'). now repeat constructor.
  - apply Forall2_app_inv_l in replaced as (u' & v' & like_u & like_v & ->).
    destruct (IHinner u' like_u) as (rhs' & like_rhs & inner).
    destruct (IHrest v' like_v) as (alpha' & like_alpha & rest).
    destruct (closed A rhs rhs' is_rule like_rhs) as (A' & is_alike & is_rule').
    exists (Non A' :: alpha'). split; [now repeat constructor | now apply yields_non with rhs'].
Qed.

(** If only the start symbol is like the start symbol, L is closed under [like]. *)
Theorem like_word : rules_closed -> (forall A, alike (start G) A -> A = start G) ->
  forall w w', Forall2 like w w' -> word G w -> word G w'.
Proof.
  intros closed start_alone w w' replaced is_word.
  destruct (like_yields closed _ _ is_word w' replaced) as (alpha' & like_alpha & derivation).
  inversion like_alpha as [|? x ? rest like_x like_rest]; subst. inversion like_rest; subst.
  inversion like_x as [|? A is_alike]; subst. now rewrite (start_alone A is_alike) in derivation.
Qed.

End Closed.

(** * Terminals with the same rule contexts *)

Section SameContexts.
Context {T N : Type} (G : grammar T N).

(** [X] and [Y] have the same rule contexts: "A -> alpha X beta" is a rule exactly when "A -> alpha Y beta" is. *)
Definition interchangeable (X Y : T) : Prop := forall A alpha beta,
  rule G A (alpha ++ Ter X :: beta) <-> rule G A (alpha ++ Ter Y :: beta).

(** Replacing one terminal of a rule after the other keeps it a rule of the same nonterminal. *)
Lemma interchangeable_closed : rules_closed G interchangeable eq.
Proof.
  intros A before rhs is_rule replaced. exists A. split; [reflexivity|].
  change (rule G A ([] ++ before)) in is_rule. change (rule G A ([] ++ rhs)).
  revert is_rule. generalize (@nil (symbol T N)).
  induction replaced as [|x x' before rhs like_x _ IH]; intros done is_rule; [assumption|].
  replace (done ++ x' :: rhs) with ((done ++ [x']) ++ rhs) by now rewrite <- app_assoc.
  apply IH. rewrite <- app_assoc. simpl. destruct like_x as [t t' same|B B' <-]; [now apply (same A)|assumption].
Qed.

(** The theorem: terminals with the same rule contexts may replace each other. *)
Theorem interchange_sound X Y : interchangeable X Y -> replaceable G X Y.
Proof.
  assert (forall Z, interchangeable Z Z) as reflexive by now intros Z A alpha beta.
  assert (forall X Y u v, interchangeable X Y -> word G (u ++ X :: v) -> word G (u ++ Y :: v)) as one_way.
  { clear X Y. intros X Y u v same.
    apply like_word with interchangeable eq; [exact interchangeable_closed | now intros A <-|].
    apply Forall2_app; [|constructor; [assumption|]].
    all: match goal with |- Forall2 _ ?l ?l => induction l; now constructor end. }
  intros same u v. split; apply one_way; [assumption|]. intros A alpha beta. symmetry. apply same.
Qed.

End SameContexts.

(** * What is not enough

    "Swapping X and Y everywhere maps the set of rules onto itself" does not allow replacing one occurrence. In
    S -> X X | Y Y the swap is a symmetry, X X is a word, and X Y is not. *)

Section SwapIsNotEnough.

Inductive swap_rule : unit -> list (symbol bool unit) -> Prop :=
| swap_rule_both (X : bool) : swap_rule tt [Ter X; Ter X].
Definition swap_grammar : grammar bool unit := Grammar swap_rule tt.
Definition swap_symbol (x : symbol bool unit) : symbol bool unit :=
  match x with Ter X => Ter (negb X) | Non A => Non A end.

(** The swap is a symmetry of the rules ... *)
Lemma swap_symmetry A rhs : rule swap_grammar A rhs -> rule swap_grammar A (map swap_symbol rhs).
Proof. intros []. constructor. Qed.

(** ... but does not preserve legality one occurrence at a time. *)
Theorem swap_is_not_enough : word swap_grammar [true; true] /\ ~ prefix swap_grammar [true; false].
Proof.
  split.
  - apply yields_one. exists [Ter true; Ter true]. split; [constructor | exact (yields_terminals _ [true; true])].
  - intros (v & (rhs & [X] & inner)%yields_one). inversion inner as [|? ? ? rest|]; subst. inversion rest.
Qed.

End SwapIsNotEnough.
