(** Context-free grammars: words, prefixes, stacks, and what the rest of a rule does to a sequence.

    In: a set of rules over terminals [T] and nonterminals [N]; nothing here needs it to be finite.
    Out: [prefix_iff_stack]: whether a sequence can follow a terminal is decided by the tails of the rules around that
    terminal, read from the innermost to the outermost. The deciders are about that list of tails and nothing else. *)

From Coq Require Import List.
Import ListNotations.

Inductive symbol (T N : Type) : Type :=
| Ter (t : T)
| Non (A : N).
Arguments Ter {T N} t.
Arguments Non {T N} A.

Record grammar (T N : Type) : Type := Grammar {
  rule : N -> list (symbol T N) -> Prop;  (* rule A rhs: "A -> rhs" is a production *)
  start : N
}.
Arguments Grammar {T N} rule start.
Arguments rule {T N} g A rhs.
Arguments start {T N} g.

Section Grammar.
Context {T N : Type} (G : grammar T N).

(** * Words *)

(** [yields alpha w]: the string of symbols [alpha] derives the string of terminals [w]. *)
Inductive yields : list (symbol T N) -> list T -> Prop :=
| yields_nil : yields [] []
| yields_ter t alpha w : yields alpha w -> yields (Ter t :: alpha) (t :: w)
| yields_non A rhs alpha u v : rule G A rhs -> yields rhs u -> yields alpha v -> yields (Non A :: alpha) (u ++ v).

(** L: the words of the grammar. P: their prefixes. *)
Definition word (w : list T) : Prop := yields [Non (start G)] w.
Definition prefix (u : list T) : Prop := exists v, word (u ++ v).

(** Every nonterminal derives some word. *)
Definition productive : Prop := forall A, exists w, yields [Non A] w.

(** Every nonterminal is met on the way down from the start symbol. *)
Inductive reached : N -> Prop :=
| reached_start : reached (start G)
| reached_in A alpha B beta : reached A -> rule G A (alpha ++ Non B :: beta) -> reached B.
Definition all_reached : Prop := forall A, reached A.

(** Derivations are closed under concatenation. *)
Lemma yields_app alpha beta u v : yields alpha u -> yields beta v -> yields (alpha ++ beta) (u ++ v).
Proof.
  intros derivation rest. induction derivation; simpl; [assumption | now constructor |].
  rewrite <- app_assoc. now apply yields_non with rhs.
Qed.

(** Conversely, what a concatenation derives can be cut. *)
Lemma yields_app_inv alpha beta w :
  yields (alpha ++ beta) w -> exists u v, w = u ++ v /\ yields alpha u /\ yields beta v.
Proof.
  revert w. induction alpha as [|x alpha IH]; simpl; intros w derivation.
  - exists [], w. now repeat constructor.
  - inversion derivation as [|t a w' rest|A rhs a u v is_rule inner rest]; subst.
    + destruct (IH _ rest) as (u & v & -> & left & right).
      exists (t :: u), v. now repeat constructor.
    + destruct (IH _ rest) as (u' & v' & -> & left & right).
      exists (u ++ u'), v'. split; [now rewrite app_assoc|]. split; [now apply yields_non with rhs | assumption].
Qed.

(** One nonterminal derives what one of its rules derives. *)
Lemma yields_one A w : yields [Non A] w <-> exists rhs, rule G A rhs /\ yields rhs w.
Proof.
  split.
  - intros derivation. inversion derivation as [| |? rhs ? u v is_rule inner rest]; subst.
    inversion rest; subst. rewrite app_nil_r. now exists rhs.
  - intros (rhs & is_rule & inner). rewrite <- (app_nil_r w). apply yields_non with rhs; auto using yields_nil.
Qed.

(** A string of terminals derives itself. *)
Lemma yields_terminals w : yields (map Ter w) w.
Proof. induction w; simpl; now constructor. Qed.

(** If every nonterminal is productive, so is every string of symbols. *)
Lemma productive_string : productive -> forall alpha, exists w, yields alpha w.
Proof.
  intros all_productive alpha. induction alpha as [|[t|A] alpha (v & IH)].
  - exists []. constructor.
  - exists (t :: v). now constructor.
  - destruct (all_productive A) as (u & inner). exists (u ++ v). apply (yields_app [Non A]); assumption.
Qed.

(** P is closed under prefixes. *)
Lemma prefix_closed u v : prefix (u ++ v) -> prefix u.
Proof. intros (z & is_word). exists (v ++ z). now rewrite app_assoc. Qed.

(** ** The textbook's definition: rewriting one nonterminal at a time *)

Definition rewrites (before after : list (symbol T N)) : Prop :=
  exists left A rhs right, before = left ++ Non A :: right /\ after = left ++ rhs ++ right /\ rule G A rhs.
Inductive derives : list (symbol T N) -> list (symbol T N) -> Prop :=
| derives_refl a : derives a a
| derives_step a b c : rewrites a b -> derives b c -> derives a c.

(** Rewriting may happen inside any surroundings. *)
Lemma derives_inside left right before after :
  derives before after -> derives (left ++ before ++ right) (left ++ after ++ right).
Proof.
  induction 1 as [|a b c (l & A & rhs & r & -> & -> & is_rule) _ IH]; [constructor|].
  refine (derives_step _ _ _ _ IH).
  exists (left ++ l), A, rhs, (r ++ right). now rewrite <- !app_assoc; simpl; rewrite <- ?app_assoc.
Qed.

Lemma derives_trans a b c : derives a b -> derives b c -> derives a c.
Proof. induction 1 as [|a b' b first _ IH]; [trivial|]. intros rest. exact (derives_step _ _ _ first (IH rest)). Qed.

(** [yields] is the textbook's derivation of a string of terminals. *)
Theorem yields_iff_derives alpha w : yields alpha w <-> derives alpha (map Ter w).
Proof.
  split.
  - induction 1 as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; simpl.
    + constructor.
    + pose proof (derives_inside [Ter t] [] _ _ IH) as step. now rewrite !app_nil_r in step.
    + rewrite map_app. apply derives_step with (rhs ++ alpha).
      * now exists [], A, rhs, alpha.
      * apply derives_trans with (map Ter u ++ alpha).
        -- exact (derives_inside [] alpha _ _ IHinner).
        -- pose proof (derives_inside (map Ter u) [] _ _ IHrest) as step. now rewrite !app_nil_r in step.
  - remember (map Ter w) as goal eqn:is_goal. intros derivation. revert is_goal.
    induction derivation as [a|a b c (l & A & rhs & r & -> & -> & is_rule) _ IH]; intros ->.
    + apply yields_terminals.
    + destruct (yields_app_inv _ _ _ (IH eq_refl)) as (u & v & -> & left & rest).
      destruct (yields_app_inv _ _ _ rest) as (u' & v' & -> & inner & right).
      apply yields_app; [assumption|]. now apply yields_non with rhs.
Qed.

(** * Stacks *)

(** [path x u stack]: some derivation from the start symbol has an occurrence of [x] with exactly [u] to its left;
    [stack] lists what the rules around it still owe, innermost first. With "A -> alpha x beta" around [x], the tail is
    [beta], and the rest of the stack is that of the occurrence of A. The code calls it a derivation path. *)
Inductive path : symbol T N -> list T -> list (list (symbol T N)) -> Prop :=
| path_root : path (Non (start G)) [] []
| path_step A u stack alpha x beta p :
    path (Non A) u stack -> rule G A (alpha ++ x :: beta) -> yields alpha p -> path x (u ++ p) (beta :: stack).

(** What stands left of an occurrence, the occurrence, and the tails make a word. *)
Lemma path_word x u stack w v :
  path x u stack -> yields [x] w -> yields (concat stack) v -> word (u ++ w ++ v).
Proof.
  intros occurrence. revert w v.
  induction occurrence as [|A u stack alpha x beta p _ IH is_rule before]; intros w v inner rest.
  - inversion rest; subst. now rewrite app_nil_r.
  - destruct (yields_app_inv _ _ _ rest) as (tail & below & -> & is_tail & is_below).
    replace ((u ++ p) ++ w ++ tail ++ below) with (u ++ (p ++ w ++ tail) ++ below) by now rewrite <- !app_assoc.
    apply IH; [|assumption]. apply yields_one. exists (alpha ++ x :: beta). split; [assumption|].
    apply yields_app; [assumption|]. now apply (yields_app [x]).
Qed.

(** Every terminal of a derived string sits at the end of a path (generalised for the induction). *)
Lemma yields_path alpha w : yields alpha w -> forall u X v, w = u ++ X :: v ->
  forall A done p left stack, path (Non A) left stack -> rule G A (done ++ alpha) -> yields done p ->
  exists stack', path (Ter X) (left ++ p ++ u) stack'
    /\ forall z, yields (concat stack) z -> yields (concat stack') (v ++ z).
Proof.
  induction 1 as [|t alpha w rest IH|B rhs alpha w1 w2 is_rule inner IHinner rest IHrest];
    intros u X v cut A done p left stack above in_rule before.
  - now destruct u.
  - destruct u as [|t' u]; injection cut as -> ->.
    + exists (alpha :: stack). rewrite app_nil_r. split; [now apply path_step with A done|].
      intros z below. now apply yields_app.
    + destruct (IH u X v eq_refl A (done ++ [Ter t']) (p ++ [t']) left stack) as (stack' & occurrence & tails).
      * assumption.
      * now rewrite <- app_assoc.
      * apply yields_app; [assumption|]. apply (yields_terminals [t']).
      * exists stack'. rewrite <- app_assoc in occurrence. now split.
  - destruct (app_eq_app _ _ _ _ cut) as ([|X' v1] & [[-> is_v]|[-> is_w2]]).
    (* The cut falls exactly between w1 and w2, or inside w1, or inside w2. *)
    all: simpl in *.
    + subst w2.
      destruct (IHrest [] X v eq_refl A (done ++ [Non B]) (p ++ u) left stack) as (stack' & occurrence & tails).
      * assumption.
      * now rewrite <- app_assoc.
      * apply yields_app; [assumption|]. apply yields_one. exists rhs. now rewrite app_nil_r in inner.
      * exists stack'. rewrite app_nil_r in occurrence. now split.
    + subst w2.
      destruct (IHrest [] X v eq_refl A (done ++ [Non B]) (p ++ w1) left stack) as (stack' & occurrence & tails).
      * assumption.
      * now rewrite <- app_assoc.
      * apply yields_app; [assumption|]. apply yields_one. now exists rhs.
      * exists stack'. rewrite app_nil_r in *. now split.
    + injection is_v as <- ->.
      destruct (IHinner u X v1 eq_refl B [] [] (left ++ p) (alpha :: stack)) as (stack' & occurrence & tails).
      * now apply path_step with A done.
      * assumption.
      * constructor.
      * exists stack'. rewrite <- app_assoc in occurrence. split; [assumption|].
        intros z below. rewrite <- app_assoc. apply tails. now apply yields_app.
    + destruct (IHrest (X' :: v1) X v is_w2 A (done ++ [Non B]) (p ++ w1) left stack) as (stack' & occurrence & tails).
      * assumption.
      * now rewrite <- app_assoc.
      * apply yields_app; [assumption|]. apply yields_one. now exists rhs.
      * exists stack'. rewrite <- app_assoc in occurrence. now split.
Qed.

(** A word that goes through [u] [X] [v] is a path to [X] whose tails derive [v], and conversely. *)
Lemma word_iff_path u X v : word (u ++ X :: v) <-> exists stack, path (Ter X) u stack /\ yields (concat stack) v.
Proof.
  split.
  - intros (rhs & is_rule & inner)%yields_one.
    destruct (yields_path _ _ inner u X v eq_refl (start G) [] [] [] [] path_root is_rule yields_nil)
      as (stack & occurrence & tails).
    exists stack. split; [assumption|]. rewrite <- (app_nil_r v). apply tails. constructor.
  - intros (stack & occurrence & tails). change (X :: v) with ([X] ++ v).
    apply path_word with (Ter X) stack; auto. apply (yields_terminals [X]).
Qed.

(** [viable alpha s]: some word of [alpha] begins with [s]. *)
Definition viable (alpha : list (symbol T N)) (s : list T) : Prop := exists v, yields alpha (s ++ v).

(** A sequence can follow [u] [X] exactly when one of the stacks after [u] [X] lets it. *)
Theorem prefix_iff_stack u X s :
  prefix (u ++ X :: s) <-> exists stack, path (Ter X) u stack /\ viable (concat stack) s.
Proof.
  split.
  - intros (v & is_word). rewrite <- app_assoc in is_word. simpl in is_word.
    apply word_iff_path in is_word as (stack & occurrence & tails). exists stack. split; [assumption|]. now exists v.
  - intros (stack & occurrence & v & tails). exists v. rewrite <- app_assoc. apply word_iff_path. now exists stack.
Qed.

(** In a grammar without useless symbols every nonterminal has a path. *)
Lemma reached_path : productive -> forall A, reached A -> exists u stack, path (Non A) u stack.
Proof.
  intros all_productive A is_reached. induction is_reached as [|A alpha B beta _ (u & stack & above) is_rule].
  - exists [], []. constructor.
  - destruct (productive_string all_productive alpha) as (p & before).
    exists (u ++ p), (beta :: stack). now apply path_step with A alpha.
Qed.

(** * What the rest of a rule does to a sequence

    The two least fixed points over items that the deciders compute. For an item with rest [alpha] and a sequence [s]:
    bit j of the item's mask is [consumes alpha s (s[j:])], the last bit is [uses_up alpha s]. *)

(** [consumes alpha s r]: [alpha] can consume a prefix of [s] and leave [r]. *)
Inductive consumes : list (symbol T N) -> list T -> list T -> Prop :=
| consumes_nil s : consumes [] s s
| consumes_ter t alpha s r : consumes alpha s r -> consumes (Ter t :: alpha) (t :: s) r
| consumes_non A rhs alpha s m r :
    rule G A rhs -> consumes rhs s m -> consumes alpha m r -> consumes (Non A :: alpha) s r.

(** [uses_up alpha s]: [s] ends somewhere inside [alpha] (or at its end). *)
Inductive uses_up : list (symbol T N) -> list T -> Prop :=
| uses_up_nil alpha : uses_up alpha []
| uses_up_ter t alpha s : uses_up alpha s -> uses_up (Ter t :: alpha) (t :: s)
| uses_up_inside A rhs alpha s : rule G A rhs -> uses_up rhs s -> uses_up (Non A :: alpha) s
| uses_up_after A rhs alpha s m : rule G A rhs -> consumes rhs s m -> uses_up alpha m -> uses_up (Non A :: alpha) s.

Lemma consumes_iff alpha s r : consumes alpha s r <-> exists p, s = p ++ r /\ yields alpha p.
Proof.
  split.
  - induction 1 as [s|t alpha s r _ (p & -> & IH)|A rhs alpha s m r is_rule _ (p & -> & IHin) _ (q & -> & IHrest)].
    + exists []. now repeat constructor.
    + exists (t :: p). split; [reflexivity|]. now constructor.
    + exists (p ++ q). split; [now rewrite app_assoc|]. now apply yields_non with rhs.
  - intros (p & -> & derivation). revert r.
    induction derivation as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHin _ IHrest]; intros r; simpl.
    + constructor.
    + now constructor.
    + rewrite <- app_assoc. now apply consumes_non with rhs (v ++ r).
Qed.

(** Whatever begins a word of [alpha] is used up by [alpha]; this holds in every grammar ... *)
Lemma viable_uses_up alpha s : viable alpha s -> uses_up alpha s.
Proof.
  intros (v & derivation). remember (s ++ v) as w eqn:is_w. revert s v is_w.
  induction derivation as [|t alpha w _ IH|A rhs alpha w1 w2 is_rule inner IHin _ IHrest]; intros s v is_w.
  - symmetry in is_w. apply app_eq_nil in is_w as [-> _]. constructor.
  - destruct s as [|t' s]; [constructor|]. injection is_w as <- ->. constructor. now apply IH with v.
  - destruct (app_eq_app _ _ _ _ is_w) as (m & [[-> _]|[-> ->]]).
    + apply uses_up_inside with rhs; [assumption|]. now apply IHin with m.
    + apply uses_up_after with rhs m; [assumption| |now apply IHrest with v].
      apply consumes_iff. now exists w1.
Qed.

(** ... and conversely if every nonterminal is productive. *)
Lemma uses_up_viable : productive -> forall alpha s, uses_up alpha s -> viable alpha s.
Proof.
  intros all_productive.
  induction 1 as [alpha|t alpha s _ (v & IH)|A rhs alpha s is_rule _ (v & IH)|A rhs alpha s m is_rule eaten _ (v & IH)].
  - destruct (productive_string all_productive alpha) as (w & derivation). now exists w.
  - exists v. simpl. now constructor.
  - destruct (productive_string all_productive alpha) as (w & rest). exists (v ++ w). rewrite app_assoc.
    now apply yields_non with rhs.
  - apply consumes_iff in eaten as (p & -> & inner). exists v. rewrite <- app_assoc. now apply yields_non with rhs.
Qed.

(** A sequence that the rest of a rule consumes to its end is used up. *)
Lemma consumes_uses_up alpha s : consumes alpha s [] -> uses_up alpha s.
Proof.
  intros (p & -> & derivation)%consumes_iff. apply viable_uses_up. exists []. now rewrite !app_nil_r.
Qed.

(** The start of the text is a context of its own: [s] begins a word exactly when the start symbol uses it up. *)
Theorem prefix_iff_uses_up : productive -> forall s, prefix s <-> uses_up [Non (start G)] s.
Proof. intros all_productive s. split; [exact (viable_uses_up _ s) | exact (uses_up_viable all_productive _ s)]. Qed.

(** Reading a stack one tail at a time: [s] ends inside the top tail, or the tail eats some of it and the rest is for
    the stack below. *)
Lemma viable_cons : productive -> forall beta stack s,
  viable (concat (beta :: stack)) s <->
  uses_up beta s \/ exists r, consumes beta s r /\ viable (concat stack) r.
Proof.
  intros all_productive beta stack s. simpl. split.
  - intros (v & derivation). apply yields_app_inv in derivation as (w1 & w2 & cut & top & below).
    destruct (app_eq_app _ _ _ _ cut) as (m & [[-> ->]|[-> ->]]).
    + right. exists m. split; [apply consumes_iff; now exists w1 | now exists v].
    + left. apply viable_uses_up. now exists m.
  - intros [inside|(r & eaten & v & below)].
    + apply (uses_up_viable all_productive) in inside as (v & top).
      destruct (productive_string all_productive (concat stack)) as (w & below).
      exists (v ++ w). rewrite app_assoc. now apply yields_app.
    + apply consumes_iff in eaten as (p & -> & top). exists v. rewrite <- app_assoc. now apply yields_app.
Qed.

End Grammar.
