(** never_legal: no word of P ends in X S. Decided exactly by one least fixed point over (symbol, remainder). *)

From Coq Require Import List.
From Maskwright Require Import grammar subset.
Import ListNotations.

Section NeverLegal.
Context {T N : Type} (G : grammar T N).

(** The judge's question: wherever [X] has just been accepted, [S] cannot be next. *)
Definition never_legal (X : T) (S : list T) : Prop := forall u, ~ prefix G (u ++ X :: S).

(** F_s(x), the least fixed point: *some* occurrence "A -> alpha x beta" whose tail [beta] reaches the end of [s], or
    leaves [r] with F_r(A). *)
Inductive can_follow : symbol T N -> list T -> Prop :=
| can_follow_inside A alpha x beta s :
    rule G A (alpha ++ x :: beta) -> uses_up G beta s -> can_follow x s
| can_follow_above A alpha x beta s r :
    rule G A (alpha ++ x :: beta) -> consumes G beta s r -> can_follow (Non A) r -> can_follow x s.

(** A stack that lets [s] through shows F_s. (The root has nothing to its right, hence the premise.) *)
Lemma stack_can_follow x u stack s :
  path G x u stack -> viable G (concat stack) s -> s <> [] \/ stack <> [] -> can_follow x s.
Proof.
  intros occurrence. revert s.
  induction occurrence as [|A u stack alpha x beta p above IH is_rule before]; intros s (v & derivation) not_root;
    simpl in derivation.
  - inversion derivation as [no_symbol ends| |]. symmetry in ends. apply app_eq_nil in ends as [-> _].
    now destruct not_root.
  - apply yields_app_inv in derivation as (w1 & w2 & cut & top & below).
    destruct (app_eq_app _ _ _ _ cut) as (r & [[-> ->]|[-> ->]]).
    + destruct r as [|t r].
      * apply can_follow_inside with A alpha beta; [assumption|]. apply viable_uses_up. exists [].
        now rewrite !app_nil_r.
      * apply can_follow_above with A alpha beta (t :: r); [assumption| |].
        -- apply consumes_iff. now exists w1.
        -- apply IH; [now exists v | now left].
    + apply can_follow_inside with A alpha beta; [assumption|]. apply viable_uses_up. now exists r.
Qed.

(** If not F_S(X), then X S is never legal. True in every grammar, useless symbols or not. *)
Theorem never_legal_sound X S : ~ can_follow (Ter X) S -> never_legal X S.
Proof.
  intros refused u (stack & occurrence & lets)%prefix_iff_stack. apply refused.
  apply stack_can_follow with u stack; [assumption..|]. right. inversion occurrence. discriminate.
Qed.

(** Conversely F_s shows a stack, when no symbol is useless. *)
Lemma can_follow_stack : productive G -> all_reached G -> forall x s, can_follow x s ->
  exists u stack, path G x u stack /\ viable G (concat stack) s.
Proof.
  intros all_productive reached_all.
  induction 1 as [A alpha x beta s is_rule inside|A alpha x beta s r is_rule eaten _ (u & stack & above & lets)].
  all: destruct (productive_string G all_productive alpha) as (p & before).
  - destruct (reached_path G all_productive A (reached_all A)) as (u & stack & above).
    exists (u ++ p), (beta :: stack). split; [now apply path_step with A alpha|].
    apply viable_cons; [assumption|]. now left.
  - exists (u ++ p), (beta :: stack). split; [now apply path_step with A alpha|].
    apply viable_cons; [assumption|]. right. now exists r.
Qed.

(** F decides: without useless symbols, F_S(X) holds exactly when some word of P ends in X S. *)
Theorem can_follow_exact : productive G -> all_reached G -> forall X S,
  can_follow (Ter X) S <-> exists u, prefix G (u ++ X :: S).
Proof.
  intros all_productive reached_all X S. split.
  - intros (u & stack & occurrence & lets)%can_follow_stack; [|assumption..].
    exists u. apply prefix_iff_stack. now exists stack.
  - intros (u & (stack & occurrence & lets)%prefix_iff_stack).
    apply stack_can_follow with u stack; [assumption..|]. right. inversion occurrence. discriminate.
Qed.

Theorem never_legal_exact : productive G -> all_reached G -> forall X S,
  never_legal X S <-> ~ can_follow (Ter X) S.
Proof.
  intros all_productive reached_all X S. split; [|apply never_legal_sound].
  intros never (u & follows)%can_follow_exact; [|assumption..]. exact (never u follows).
Qed.

(** * The subset form *)

(** [V] is closed and holds no acceptance. For every occurrence the tail does not accept, and either nothing is open
    after it or the state above, or a larger one, is in V too. *)
Definition no_acceptance (V : symbol T N -> (list T -> Prop) -> Prop) : Prop :=
  forall x K, V x K ->
    (x = Non (start G) -> ~ K []) /\
    forall A alpha beta, rule G A (alpha ++ x :: beta) ->
      ~ after G K beta [] /\
      ((forall r, ~ after G K beta r) \/ exists L, V (Non A) L /\ forall r, after G K beta r -> L r).

(** No stack below a state of a closed set lets any of the state's remainders through. *)
Lemma no_acceptance_passes : productive G -> forall V, no_acceptance V -> forall x u stack,
  path G x u stack -> forall K, V x K -> ~ passes G K stack.
Proof.
  intros all_productive V closed x u stack occurrence.
  induction occurrence as [|A u stack alpha x beta p _ IH is_rule _]; intros K in_V.
  - rewrite passes_root. now apply (closed (Non (start G)) K in_V).
  - rewrite passes_cons by assumption. destruct (closed x K in_V) as [_ occurrences].
    destruct (occurrences A alpha beta is_rule) as [_ [none|(L & above & subset)]].
    + intros (r & is_open & _). exact (none r is_open).
    + intros lets. apply (IH L above). now apply passes_subset with (1 := subset).
Qed.

(** No reachable acceptance from (X, {S}): never legal; and the subset form is exact as well. *)
Theorem never_legal_subset_sound : productive G -> forall V, no_acceptance V ->
  forall X S, V (Ter X) (eq S) -> never_legal X S.
Proof.
  intros all_productive V closed X S in_V u (stack & occurrence & lets)%prefix_iff_stack.
  apply (no_acceptance_passes all_productive V closed _ _ _ occurrence _ in_V). now apply passes_single.
Qed.

Theorem never_legal_subset_exact : productive G -> all_reached G -> forall X S,
  never_legal X S <-> exists V, no_acceptance V /\ V (Ter X) (eq S).
Proof.
  intros all_productive reached_all X S.
  split; [|intros (V & closed & in_V); now apply never_legal_subset_sound with V].
  intros never. exists (fun x K => forall u stack, path G x u stack -> ~ passes G K stack). split.
  - intros x K no_stack. split.
    + intros -> is_open. apply (no_stack [] []); [constructor | now apply passes_root].
    + intros A alpha beta is_rule.
      assert (forall u stack, path G (Non A) u stack -> ~ passes G (after G K beta) stack) as none_above.
      { intros u stack above lets. destruct (productive_string G all_productive alpha) as (p & before).
        apply (no_stack (u ++ p) (beta :: stack)); [now apply path_step with A alpha|]. now apply passes_cons. }
      split; [|right; now exists (after G K beta)].
      intros accepted. destruct (reached_path G all_productive A (reached_all A)) as (u & stack & above).
      apply (none_above u stack above). now apply passes_accepted.
  - intros u stack occurrence lets%passes_single. apply (never u). apply prefix_iff_stack. now exists stack.
Qed.

(** * What the verdicts give each other *)

(** Longer sequences are no more legal: what is never legal stays so when it goes on. *)
Lemma never_legal_extends X S R : never_legal X S -> never_legal X (S ++ R).
Proof. intros never u follows. apply (never u). apply prefix_closed with R. now rewrite <- app_assoc. Qed.

(** The follow graph: X S is never legal if two neighbours in it are never neighbours in a word. *)
Theorem follow_graph_sound X S left Y Z right :
  X :: S = left ++ Y :: Z :: right -> never_legal Y [Z] -> never_legal X S.
Proof.
  intros cut never u follows. rewrite cut in follows. apply (never (u ++ left)).
  apply prefix_closed with right. rewrite <- !app_assoc. exact follows.
Qed.

End NeverLegal.

(** The verdict depends on the language alone, so a normalised copy of the grammar may be judged instead. *)
Theorem never_legal_same_language {T N N'} (G : grammar T N) (H : grammar T N') :
  (forall w, word G w <-> word H w) -> forall X S, never_legal G X S <-> never_legal H X S.
Proof.
  intros same X S.
  split; intros never u (v & is_word); apply (never u); exists v; now apply same.
Qed.

(** * Erasing terminals that no text matches

    INDENT and DEDENT never come from the lexer: they may stand anywhere in the real sequence. What is never legal with
    them erased from the grammar is never legal, wherever they are inserted. *)

Section Erase.
Context {T N : Type} (G : grammar T N) (kept : T -> bool).

Definition kept_symbol (x : symbol T N) : bool := match x with Ter t => kept t | Non _ => true end.

(** The grammar without the terminals that are not kept. *)
Definition erased : grammar T N :=
  Grammar (fun A rhs => exists rhs', rule G A rhs' /\ rhs = filter kept_symbol rhs') (start G).

(** Erasing commutes with deriving. *)
Lemma erased_yields alpha w : yields G alpha w -> yields erased (filter kept_symbol alpha) (filter kept w).
Proof.
  induction 1 as [|t alpha w _ IH|A rhs alpha u v is_rule _ IHinner _ IHrest]; simpl.
  - constructor.
  - destruct (kept t); [now constructor | assumption].
  - rewrite filter_app. apply yields_non with (filter kept_symbol rhs); [now exists rhs | assumption..].
Qed.

(** If X S is never legal in the erased grammar, then neither is X R for any R that is S but for erased terminals. *)
Theorem never_legal_erased X S :
  never_legal erased X S -> forall R, filter kept (X :: R) = X :: S -> never_legal G X R.
Proof.
  intros never R is_reading u (v & is_word). apply (never (filter kept u)). exists (filter kept v).
  apply erased_yields in is_word. rewrite !filter_app, is_reading in is_word. exact is_word.
Qed.

End Erase.
