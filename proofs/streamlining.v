(** Streamlining a mask store changes no mask: with sound judges, the streamlined store yields the same set of tokens in
    every live context.

    First for any notion of context, entry and legality; then for terminal sequences of a grammar and the judges of this
    folder; then for sequences that layout may read in several ways. *)

From Coq Require Import List.
From Maskwright Require Import grammar never_legal always_legal jointly_legal interchange.
Import ListNotations.

(** * Any store *)

Section Store.
Context {State Entry Context Token : Type}.

(** [legal c e]: entry [e] is legal in context [c]. [live q c]: [c] can occur while the lexer is in state [q]. *)
Variable legal : Context -> Entry -> Prop.
Variable live : State -> Context -> Prop.

(** A mask store maps (state, entry) to a set of tokens; most sets are empty. *)
Definition store : Type := State -> Entry -> Token -> Prop.

(** The mask: the union of the sets of the entries that are legal in the context. *)
Definition mask (M : store) (q : State) (c : Context) (t : Token) : Prop := exists e, M q e t /\ legal c e.

(** A step sends every entry of a state to where its tokens go: to an entry (itself, if kept), or nowhere. *)
Definition step : Type := State -> Entry -> option Entry.

(** The store after a step: the sets of all entries with the same destination are united. *)
Definition streamlined (f : step) (M : store) : store := fun q e' t => exists e, M q e t /\ f q e = Some e'.

(** The hypothesis on the judges: only what is illegal in every live context is deleted, and tokens only move to an
    entry that is legal in the same live contexts. *)
Definition sound_move (q : State) (e : Entry) (destination : option Entry) : Prop :=
  match destination with
  | None => forall c, live q c -> ~ legal c e
  | Some e' => forall c, live q c -> legal c e <-> legal c e'
  end.
Definition sound_step (f : step) : Prop := forall q e, sound_move q e (f q e).

(** One sound step keeps every mask. *)
Theorem streamlined_mask (f : step) : sound_step f -> forall (M : store) q c, live q c ->
  forall t, mask M q c t <-> mask (streamlined f M) q c t.
Proof.
  intros sound M q c is_live t. split.
  - intros (e & has_token & is_legal). pose proof (sound q e) as move. unfold sound_move in move.
    destruct (f q e) as [e'|] eqn:goes; [|now destruct (move c is_live)].
    exists e'. split; [now exists e | now apply move].
  - intros (e' & (e & has_token & goes) & is_legal). pose proof (sound q e) as move. unfold sound_move in move.
    rewrite goes in move. exists e. split; [assumption | now apply move].
Qed.

(** The steps one after the other. *)
Fixpoint streamline (steps : list step) (M : store) : store :=
  match steps with
  | [] => M
  | f :: rest => streamline rest (streamlined f M)
  end.

(** Any number of sound steps keeps every mask. *)
Theorem streamline_mask (steps : list step) : (forall f, In f steps -> sound_step f) ->
  forall (M : store) q c, live q c -> forall t, mask M q c t <-> mask (streamline steps M) q c t.
Proof.
  induction steps as [|f steps IH]; intros sound M q c is_live t; simpl; [reflexivity|].
  rewrite <- IH by auto with datatypes. apply streamlined_mask; auto with datatypes.
Qed.

(** With several hypotheses at once (a lexer state and a context each) the mask is the union, and is kept as well. *)
Corollary streamline_masks (steps : list step) : (forall f, In f steps -> sound_step f) ->
  forall (M : store) (hypotheses : State -> Context -> Prop), (forall q c, hypotheses q c -> live q c) ->
  forall t, (exists q c, hypotheses q c /\ mask M q c t) <->
            (exists q c, hypotheses q c /\ mask (streamline steps M) q c t).
Proof.
  intros sound M hypotheses all_live t.
  split; intros (q & c & holds & in_mask); exists q, c; (split; [assumption|]);
    apply (streamline_mask steps sound M q c (all_live q c holds)), in_mask.
Qed.

(** Sound moves chain: to an entry that itself moves on or is deleted. *)
Lemma sound_move_chain q e e' destination :
  sound_move q e (Some e') -> sound_move q e' destination -> sound_move q e destination.
Proof.
  intros first second. destruct destination as [e''|]; intros c is_live; specialize (first c is_live);
    specialize (second c is_live); tauto.
Qed.

End Store.

Arguments store : clear implicits.
Arguments step : clear implicits.

(** * Terminal sequences of a grammar *)

Section Judges.
Context {T N State : Type} (G : grammar T N).

(** A context is what has been accepted so far, the current terminal included; S is legal if P goes on with it. *)
Definition legal_after (u S : list T) : Prop := prefix G (u ++ S).

(** What a lexer state tells of its contexts: they end in a terminal; they are the start of the text; or (inside an
    ignored terminal, say) nothing. *)
Inductive left_of : Type := Terminal (X : T) | Start | Anywhere.
Definition stands (left : left_of) (u : list T) : Prop :=
  match left with
  | Terminal X => exists u', u = u' ++ [X]
  | Start => u = []
  | Anywhere => True
  end.

(** The three questions to the judge. *)
Definition never_after left S : Prop := forall u, stands left u -> ~ prefix G (u ++ S).
Definition always_after left S : Prop := forall u, stands left u -> prefix G u -> prefix G (u ++ S).
Definition jointly_after left S S' : Prop := forall u, stands left u -> prefix G (u ++ S) <-> prefix G (u ++ S').

(** After a terminal they are the deciders' questions; at the start, and anywhere, they come down to those. *)
Lemma never_after_terminal X S : never_after (Terminal X) S <-> never_legal G X S.
Proof.
  split.
  - intros never u follows. apply (never (u ++ [X])); [now exists u|]. now rewrite <- app_assoc.
  - intros never u (u' & ->). rewrite <- app_assoc. apply never.
Qed.

Lemma always_after_terminal X S : always_after (Terminal X) S <-> always_legal G X S.
Proof.
  split.
  - intros always u follows. change (X :: S) with ([X] ++ S). rewrite app_assoc.
    apply always; [now exists u | assumption].
  - intros always u (u' & ->) follows. rewrite <- app_assoc. now apply always.
Qed.

Lemma jointly_after_terminal X S S' : jointly_after (Terminal X) S S' <-> jointly_legal G X S S'.
Proof.
  split.
  - intros joint u. specialize (joint (u ++ [X])). rewrite <- !app_assoc in joint. apply joint. now exists u.
  - intros joint u (u' & ->). rewrite <- !app_assoc. apply joint.
Qed.

Lemma never_after_start : productive G -> forall S, never_after Start S <-> ~ uses_up G [Non (start G)] S.
Proof.
  intros all_productive S. rewrite <- prefix_iff_uses_up by assumption. split.
  - intros never. exact (never [] eq_refl).
  - intros never u ->. exact never.
Qed.

Lemma always_after_start : productive G -> forall S, uses_up G [Non (start G)] S -> always_after Start S.
Proof. intros all_productive S begins u -> _. now apply prefix_iff_uses_up. Qed.

Lemma never_after_anywhere S :
  never_after Anywhere S <-> never_after Start S /\ forall X, never_legal G X S.
Proof.
  split.
  - intros never. split; [intros u _; now apply never|]. intros X u. change (X :: S) with ([X] ++ S).
    rewrite app_assoc. now apply never.
  - intros [at_start after_terminal] u _. destruct u as [|X u _] using rev_ind; [now apply at_start|].
    rewrite <- app_assoc. apply after_terminal.
Qed.

(** The moves of [streamline], one constructor a judge. *)
Inductive simplifies (left : left_of) : list T -> option (list T) -> Prop :=
| keep S : simplifies left S (Some S)
(* never: the entry is deleted; by the context, or by neighbours within it (follow graph). *)
| delete S : never_after left S -> simplifies left S None
| delete_within before Y R : never_legal G Y R -> simplifies left (before ++ Y :: R) None
(* always: S' R folds into S'; judged after the last terminal of S', or after the context if S' is empty. *)
| fold_empty R : always_after left R -> simplifies left R (Some [])
| fold_last before Y R : always_legal G Y R -> simplifies left (before ++ Y :: R) (Some (before ++ [Y]))
(* jointly: merged; [jointly_legal_fold] makes folding with all of S' as context an instance. *)
| merge S S' : jointly_after left S S' -> simplifies left S (Some S')
(* interchange: represented. *)
| represent S S' : Forall2 (replaceable G) S S' -> simplifies left S (Some S')
| chain S S' destination :
    simplifies left S (Some S') -> simplifies left S' destination -> simplifies left S destination.

(** A prefix that goes on was itself a prefix: folding needs only the forward half from the judge. *)
Lemma fold_equivalent u S R :
  (prefix G (u ++ S) -> prefix G (u ++ S ++ R)) -> prefix G (u ++ S ++ R) <-> prefix G (u ++ S).
Proof. intros forward. split; [|exact forward]. rewrite app_assoc. apply prefix_closed. Qed.

(** Every judge's move is sound. *)
Theorem simplifies_sound (live : State -> list T -> Prop) q left :
  (forall u, live q u -> stands left u) ->
  forall S destination, simplifies left S destination -> sound_move legal_after live q S destination.
Proof.
  intros contexts S destination move.
  induction move as [S|S never|before Y R never|R always|before Y R always|S S' joint|S S' same
                    |S S' destination _ IHfirst _ IHsecond]; unfold legal_after in *.
  - now intros u _.
  - intros u is_live. now apply never, contexts.
  - intros u _. rewrite app_assoc. apply never.
  - intros u is_live. apply (fold_equivalent u []). rewrite app_nil_r. now apply always, contexts.
  - intros u _. change (Y :: R) with ([Y] ++ R). rewrite (app_assoc before). apply fold_equivalent.
    rewrite <- app_assoc, !app_assoc, <- (app_assoc _ [Y]). apply always.
  - intros u is_live. now apply joint, contexts.
  - intros u _. now apply replaceable_prefix.
  - now apply sound_move_chain with S'.
Qed.

(** The theorem: a store streamlined by these judges yields the same mask in every live context. *)
Theorem streamline_sound {Token : Type} (live : State -> list T -> Prop) (left : State -> left_of) :
  (forall q u, live q u -> stands (left q) u) ->
  forall steps : list (step State (list T)),
  (forall f, In f steps -> forall q S, simplifies (left q) S (f q S)) ->
  forall (M : store State (list T) Token) q u, live q u ->
  forall t, mask legal_after M q u t <-> mask legal_after (streamline steps M) q u t.
Proof.
  intros contexts steps judged. apply streamline_mask. intros f in_steps q S.
  apply simplifies_sound with (left q); [apply contexts | now apply judged].
Qed.

(** ** Ignored terminals

    A lexer also emits terminals that never reach the parser. An entry that spells them is legal if it is without them. *)
Section Ignored.
Variable reaches : T -> bool.    (* whether a terminal reaches the parser *)

Definition spoken (S : list T) : list T := filter reaches S.
Definition legal_spoken (u S : list T) : Prop := prefix G (u ++ spoken S).
Definition all_reach (S : list T) : Prop := spoken S = S.

(** The moves with ignored terminals: they are dropped, and what is left is moved by the judges. *)
Inductive spoken_moves (left : left_of) : list T -> option (list T) -> Prop :=
| ignored S : spoken_moves left S (Some (spoken S))
| judged S destination :
    all_reach S -> (forall S', destination = Some S' -> all_reach S') -> simplifies left S destination ->
    spoken_moves left S destination
| followed S S' destination :
    spoken_moves left S (Some S') -> spoken_moves left S' destination -> spoken_moves left S destination.

Lemma spoken_idle S : spoken (spoken S) = spoken S.
Proof.
  unfold spoken. induction S as [|t S IH]; simpl; [reflexivity|].
  destruct (reaches t) eqn:is_kept; simpl; [rewrite is_kept; now f_equal | assumption].
Qed.

Theorem spoken_moves_sound (live : State -> list T -> Prop) q left :
  (forall u, live q u -> stands left u) ->
  forall S destination, spoken_moves left S destination -> sound_move legal_spoken live q S destination.
Proof.
  intros contexts S destination move.
  induction move as [S|S destination here there judged_move|S S' destination _ IHfirst _ IHsecond].
  - intros u _. unfold legal_spoken. now rewrite spoken_idle.
  - pose proof (simplifies_sound live q left contexts S destination judged_move) as sound.
    destruct destination as [S'|]; intros u is_live; specialize (sound u is_live); unfold legal_spoken, legal_after in *.
    + now rewrite here, (there S' eq_refl).
    + now rewrite here.
  - now apply sound_move_chain with S'.
Qed.

(** The theorem with all steps of the code, ignored terminals too. *)
Theorem streamline_spoken_sound {Token : Type} (live : State -> list T -> Prop) (left : State -> left_of) :
  (forall q u, live q u -> stands (left q) u) ->
  forall steps : list (step State (list T)),
  (forall f, In f steps -> forall q S, spoken_moves (left q) S (f q S)) ->
  forall (M : store State (list T) Token) q u, live q u ->
  forall t, mask legal_spoken M q u t <-> mask legal_spoken (streamline steps M) q u t.
Proof.
  intros contexts steps judges. apply streamline_mask. intros f in_steps q S.
  apply spoken_moves_sound with (left q); [apply contexts | now apply judges].
Qed.

End Ignored.

End Judges.

Arguments left_of : clear implicits.

(** * Sequences with several readings

    Layout inserts INDENT and DEDENT after a newline and drops newlines inside brackets, so that one sequence of lexemes
    may stand for several sequences of terminals. A context is then a prefix with whatever decides the reading. *)

Section Readings.
Context {T N State Lexeme Context : Type} (G : grammar T N).
Variable so_far : Context -> list T.
Variable reads : Context -> list Lexeme -> list T -> Prop.
Variable live : State -> Context -> Prop.

Definition legal_reading (c : Context) (S : list Lexeme) : Prop := exists R, reads c S R /\ prefix G (so_far c ++ R).

(** Delete only if every reading is never legal ([never_legal_erased] covers what layout may insert). *)
Theorem delete_readings q left S :
  (forall c, live q c -> stands left (so_far c)) ->
  (forall c R, live q c -> reads c S R -> never_after G left R) ->
  sound_move legal_reading live q S None.
Proof.
  intros contexts never c is_live (R & reading & is_prefix).
  exact (never c R is_live reading (so_far c) (contexts c is_live) is_prefix).
Qed.

(** Fold S R into S if R reads as the same R' whatever the context and the reading of S (which excludes a newline that
    layout may drop or follow up), every reading of S ends in [Y], and R' is always legal after Y. *)
Theorem fold_readings q S R Y R' :
  (forall c Z, live q c -> reads c (S ++ R) Z <-> exists Z', reads c S Z' /\ Z = Z' ++ R') ->
  (forall c Z, live q c -> reads c S Z -> stands (Terminal Y) Z) ->
  always_legal G Y R' ->
  sound_move legal_reading live q (S ++ R) (Some S).
Proof.
  intros plain ends always c is_live. split.
  - intros (Z & reading & is_prefix). apply plain in reading as (Z' & reading & ->); [|assumption].
    exists Z'. split; [assumption|]. apply prefix_closed with R'. now rewrite <- app_assoc.
  - intros (Z & reading & is_prefix). exists (Z ++ R'). split; [apply plain; [assumption|]; now exists Z|].
    destruct (ends c Z is_live reading) as (z & ->). rewrite <- app_assoc, app_assoc. apply always.
    now rewrite <- app_assoc.
Qed.

(** Merge only if, in every context, each reading of the one is jointly legal with some reading of the other; with the
    empty sequence for S' this is folding to (). *)
Theorem merge_readings q left S S' :
  (forall c, live q c -> stands left (so_far c)) ->
  (forall c R, live q c -> reads c S R -> exists R', reads c S' R' /\ jointly_after G left R R') ->
  (forall c R', live q c -> reads c S' R' -> exists R, reads c S R /\ jointly_after G left R R') ->
  sound_move legal_reading live q S (Some S').
Proof.
  intros contexts forth back c is_live. split; intros (R & reading & is_prefix).
  - destruct (forth c R is_live reading) as (R' & reading' & joint). exists R'. split; [assumption|].
    now apply (joint (so_far c) (contexts c is_live)).
  - destruct (back c R is_live reading) as (R' & reading' & joint). exists R'. split; [assumption|].
    now apply (joint (so_far c) (contexts c is_live)).
Qed.

End Readings.
