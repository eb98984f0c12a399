(** The transducer, which reads a text byte by byte and keeps what it may have to read again, emits what longest match says.

    In: which byte strings are lexemes, and of which terminal (ties are decided already); which byte strings a lexeme begins
    with. Out: [reads_exact]: after any part of a text, what has been emitted begins the lexemes of every text that goes on so,
    and what is left is what the state holds; [reads_or_never]: the transducer stops only where no text goes on. *)

From Coq Require Import List Bool Arith Lia.
Import ListNotations.

Section Lexer.
Context {byte terminal : Type}.
Variable kind : list byte -> option terminal.   (* the terminal of a lexeme *)
Variable begins : list byte -> bool.            (* whether some lexeme begins so *)
Hypothesis no_empty_lexeme : kind [] = None.
Hypothesis begins_lexeme : forall u v t, kind (u ++ v) = Some t -> begins u = true.

Definition lexeme : Type := (terminal * list byte)%type.

(** * The definition *)

(** [lexes w ts]: [ts] are the lexemes of [w]. Each is the longest that the rest of the text begins with. *)
Inductive lexes : list byte -> list lexeme -> Prop :=
| lexes_end : lexes [] []
| lexes_cons u w t ts : kind u = Some t -> (forall x y, w = x ++ y -> x <> [] -> kind (u ++ x) = None) ->
    lexes w ts -> lexes (u ++ w) ((t, u) :: ts).

(** * The transducer *)

(** What has been read of the lexeme under way: the longest lexeme in it, if there is one, and the bytes behind that, which are
    read again if no longer lexeme comes. *)
Record state : Type := State { matched : option lexeme; pending : list byte }.
Definition matched_bytes (s : state) : list byte := match matched s with Some (_, u) => u | None => [] end.
Definition under_way (s : state) : list byte := matched_bytes s ++ pending s.
Definition fresh : state := State None [].

(** [reads s w out s']: from [s] the bytes [w] lead to [s'], and [out] is emitted. *)
Inductive reads : state -> list byte -> list lexeme -> state -> Prop :=
| reads_none s : reads s [] [] s
| reads_match s b w out s' t :
    kind (under_way s ++ [b]) = Some t -> reads (State (Some (t, under_way s ++ [b])) []) w out s' ->
    reads s (b :: w) out s'
| reads_wait s b w out s' :
    kind (under_way s ++ [b]) = None -> begins (under_way s ++ [b]) = true ->
    reads (State (matched s) (pending s ++ [b])) w out s' -> reads s (b :: w) out s'
| reads_emit s b w out s' t u :
    begins (under_way s ++ [b]) = false -> matched s = Some (t, u) ->
    reads fresh (pending s ++ b :: w) out s' -> reads s (b :: w) ((t, u) :: out) s'.

(** * They agree *)

(** What every state keeps. *)
Record good (s : state) : Prop := {
  good_match : forall t u, matched s = Some (t, u) -> kind u = Some t;
  good_pending : forall x y, pending s = x ++ y -> x <> [] -> kind (matched_bytes s ++ x) = None
}.

Lemma good_fresh : good fresh.
Proof.
  split; simpl; [discriminate|]. intros x y is_empty not_empty. destruct x; [contradiction | discriminate].
Qed.

Lemma good_matched t u : kind u = Some t -> good (State (Some (t, u)) []).
Proof.
  intros is_lexeme. split; simpl.
  - intros t' u' same. injection same as <- <-. assumption.
  - intros x y is_empty not_empty. destruct x; [contradiction | discriminate].
Qed.

(** A list that is cut twice. *)
Lemma cut_twice {X} (p q x y : list X) : p ++ q = x ++ y ->
  (exists z, p = x ++ z /\ y = z ++ q) \/ (exists z, x = p ++ z /\ q = z ++ y).
Proof.
  revert x. induction p as [|c p IH]; intros x same.
  - right. exists x. now split.
  - destruct x as [|d x].
    + left. exists (c :: p). now split.
    + simpl in same. injection same as <- same. destruct (IH x same) as [(z & -> & ->)|(z & -> & ->)].
      * left. now exists z.
      * right. now exists z.
Qed.

Lemma good_wait s b : good s -> kind (under_way s ++ [b]) = None -> good (State (matched s) (pending s ++ [b])).
Proof.
  intros is_good no_lexeme. split; simpl.
  - apply (good_match s is_good).
  - intros x y same not_empty. change (matched_bytes (State (matched s) (pending s ++ [b]))) with (matched_bytes s).
    destruct (cut_twice _ _ _ _ same) as [(z & inside & _)|(z & -> & further)].
    + now apply (good_pending s is_good x z).
    + destruct z as [|b' z].
      * rewrite app_nil_r in *. apply (good_pending s is_good _ []); [now rewrite app_nil_r | assumption].
      * simpl in further. injection further as <- nothing. symmetry in nothing. apply app_eq_nil in nothing.
        destruct nothing as (-> & ->). unfold under_way in no_lexeme. now rewrite app_assoc.
Qed.

(** Once no lexeme can begin with what has been read, the longest one in it is the next lexeme of every such text. *)
Lemma lexes_emit s b : good s -> begins (under_way s ++ [b]) = false -> forall w ts,
  lexes (under_way s ++ b :: w) ts <->
  exists t u ts', matched s = Some (t, u) /\ ts = (t, u) :: ts' /\ lexes (pending s ++ b :: w) ts'.
Proof.
  intros is_good dead w ts.
  assert (none_beyond : forall x, kind ((under_way s ++ [b]) ++ x) = None).
  { intros x. destruct (kind ((under_way s ++ [b]) ++ x)) as [t|] eqn:is_lexeme; [|reflexivity].
    apply begins_lexeme in is_lexeme. congruence. }
  (* no lexeme is longer than the one that is kept *)
  assert (none_longer : forall x y, pending s ++ b :: w = x ++ y -> x <> [] -> kind (matched_bytes s ++ x) = None).
  { intros x y same not_empty. destruct (cut_twice _ _ _ _ same) as [(z & inside & _)|(z & -> & further)].
    - now apply (good_pending s is_good x z).
    - destruct z as [|b' z].
      + rewrite app_nil_r in *. apply (good_pending s is_good _ []); [now rewrite app_nil_r | assumption].
      + simpl in further. injection further as <- _. specialize (none_beyond z). unfold under_way in none_beyond.
        rewrite <- !app_assoc in none_beyond. exact none_beyond. }
  assert (kept_one : forall t w' ts, kind (matched_bytes s) = Some t -> w' = pending s ++ b :: w -> lexes w' ts ->
    exists t' u' ts', matched s = Some (t', u') /\ (t, matched_bytes s) :: ts = (t', u') :: ts' /\ lexes (pending s ++ b :: w) ts').
  { intros t w' ts0 is_lexeme -> rest. unfold matched_bytes in *. destruct (matched s) as [(t' & u')|] eqn:kept.
    - pose proof (good_match s is_good t' u' kept) as of_kept. rewrite is_lexeme in of_kept. injection of_kept as <-.
      exists t, u', ts0. now repeat split.
    - rewrite no_empty_lexeme in is_lexeme. discriminate. }
  split.
  - intros lexed. remember (under_way s ++ b :: w) as text eqn:is_text. destruct lexed as [|u w' t ts is_lexeme longest rest].
    + destruct (under_way s); discriminate.
    + unfold under_way in is_text. rewrite <- app_assoc in is_text.
      destruct (cut_twice _ _ _ _ is_text) as [(x & -> & is_rest)|(x & front & is_rest)].
      * (* longer than what is kept, unless x is empty *)
        destruct x as [|c x].
        -- rewrite app_nil_r in *. simpl in is_rest. exact (kept_one t w' ts is_lexeme (eq_sym is_rest) rest).
        -- exfalso. rewrite (none_longer (c :: x) w') in is_lexeme; [discriminate | assumption | discriminate].
      * (* not longer than what is kept, which would have been longer *)
        destruct x as [|c x].
        -- rewrite app_nil_r in front. subst u. simpl in is_rest. exact (kept_one t w' ts is_lexeme is_rest rest).
        -- exfalso. unfold matched_bytes in front. destruct (matched s) as [(t' & u')|] eqn:kept; [|now destruct u].
           pose proof (good_match s is_good t' u' kept) as of_kept. rewrite front in of_kept.
           rewrite (longest (c :: x) (pending s ++ b :: w)) in of_kept; [discriminate | assumption | discriminate].
  - intros (t & u & ts' & kept & -> & rest). unfold under_way, matched_bytes. rewrite kept, <- app_assoc.
    constructor; [now apply (good_match s is_good) | | assumption].
    intros x y same not_empty. specialize (none_longer x y same not_empty). unfold matched_bytes in none_longer.
    now rewrite kept in none_longer.
Qed.

(** After any part of a text: what has been emitted begins its lexemes, and the rest is that of the bytes under way. *)
Theorem reads_exact s w out s' : reads s w out s' -> good s -> good s' /\ forall v ts,
  lexes (under_way s ++ w ++ v) ts <-> exists ts', ts = out ++ ts' /\ lexes (under_way s' ++ v) ts'.
Proof.
  induction 1 as [s|s b w out s' t is_lexeme _ IH|s b w out s' no_lexeme open _ IH|s b w out s' t u dead kept _ IH];
    intros is_good.
  - split; [assumption|]. intros v ts. simpl. split; [intros lexed; now exists ts | intros (ts' & -> & lexed); exact lexed].
  - destruct (IH (good_matched _ _ is_lexeme)) as (is_good' & says). split; [assumption|]. intros v ts.
    rewrite <- says. change (under_way (State (Some (t, under_way s ++ [b])) [])) with ((under_way s ++ [b]) ++ []).
    rewrite app_nil_r, <- app_assoc. reflexivity.
  - destruct (IH (good_wait s b is_good no_lexeme)) as (is_good' & says). split; [assumption|]. intros v ts.
    rewrite <- says. change (under_way (State (matched s) (pending s ++ [b]))) with (matched_bytes s ++ (pending s ++ [b])).
    unfold under_way. rewrite <- !app_assoc. reflexivity.
  - destruct (IH good_fresh) as (is_good' & says). split; [assumption|]. intros v ts.
    change ((b :: w) ++ v) with (b :: (w ++ v)). rewrite (lexes_emit s b is_good dead (w ++ v) ts). split.
    + intros (t' & u' & ts' & kept' & -> & rest). rewrite kept in kept'. injection kept' as <- <-.
      specialize (says v ts'). unfold under_way at 1 in says. simpl in says. rewrite <- app_assoc in says.
      apply says in rest. destruct rest as (ts'' & -> & rest). now exists ts''.
    + intros (ts' & -> & rest). exists t, u, (out ++ ts'). repeat split; [assumption|].
      specialize (says v (out ++ ts')). unfold under_way at 1 in says. simpl in says. rewrite <- app_assoc in says.
      apply says. now exists ts'.
Qed.

(** The transducer stops only where no text goes on. *)
Theorem reads_or_never w : forall s, good s ->
  (exists out s', reads s w out s') \/ (forall v ts, ~ lexes (under_way s ++ w ++ v) ts).
Proof.
  (* what is emitted is never read again, so the bytes in all decrease, or else those to read *)
  assert (by_size : forall n m s w, length (under_way s) + length w <= n -> length w <= m -> good s ->
    (exists out s', reads s w out s') \/ (forall v ts, ~ lexes (under_way s ++ w ++ v) ts)).
  2: { intros s is_good. now apply (by_size (length (under_way s) + length w) (length w)). }
  clear w. induction n as [n IHn] using lt_wf_ind. induction m as [|m IHm]; intros s [|b w] in_all to_read is_good;
    try (left; exists [], s; exact (reads_none s)); cbn [length] in *; [lia|].
  destruct (kind (under_way s ++ [b])) as [t|] eqn:is_lexeme.
  - destruct (IHm (State (Some (t, under_way s ++ [b])) []) w) as [(out & s' & further)|never].
    + change (under_way (State (Some (t, under_way s ++ [b])) [])) with ((under_way s ++ [b]) ++ []).
      rewrite app_nil_r, app_length. simpl. lia.
    + lia.
    + now apply good_matched.
    + left. exists out, s'. now apply reads_match with t.
    + right. intros v ts lexed. apply (never v ts).
      change (under_way (State (Some (t, under_way s ++ [b])) [])) with ((under_way s ++ [b]) ++ []).
      rewrite app_nil_r, <- app_assoc. exact lexed.
  - destruct (begins (under_way s ++ [b])) eqn:open.
    + destruct (IHm (State (matched s) (pending s ++ [b])) w) as [(out & s' & further)|never].
      * change (under_way (State (matched s) (pending s ++ [b]))) with (matched_bytes s ++ (pending s ++ [b])).
        rewrite app_assoc, app_length. fold (under_way s). simpl. lia.
      * lia.
      * now apply good_wait.
      * left. exists out, s'. now apply reads_wait.
      * right. intros v ts lexed. apply (never v ts).
        change (under_way (State (matched s) (pending s ++ [b]))) with (matched_bytes s ++ (pending s ++ [b])).
        unfold under_way in lexed. rewrite <- !app_assoc in *. exact lexed.
    + destruct (matched s) as [(t & u)|] eqn:kept.
      * assert (not_empty : u <> []).
        { intros ->. pose proof (good_match s is_good t [] kept) as empty. rewrite no_empty_lexeme in empty. discriminate. }
        assert (length u > 0) by (destruct u; [contradiction | simpl; lia]).
        assert (in_all' : length (under_way s) = length u + length (pending s)).
        { unfold under_way, matched_bytes. rewrite kept. apply app_length. }
        destruct (IHn (length (pending s ++ b :: w))) with (m := length (pending s ++ b :: w)) (s := fresh) (w := pending s ++ b :: w)
          as [(out & s' & further)|never].
        -- rewrite app_length. simpl. lia.
        -- simpl. lia.
        -- lia.
        -- apply good_fresh.
        -- left. exists ((t, u) :: out), s'. now apply reads_emit.
        -- right. intros v ts lexed. change ((b :: w) ++ v) with (b :: (w ++ v)) in lexed.
           apply (lexes_emit s b is_good open) in lexed. destruct lexed as (t' & u' & ts' & _ & _ & rest).
           apply (never v ts'). simpl. rewrite <- app_assoc. exact rest.
      * right. intros v ts lexed. change ((b :: w) ++ v) with (b :: (w ++ v)) in lexed.
        apply (lexes_emit s b is_good open) in lexed. destruct lexed as (t' & u' & ts' & kept' & _). congruence.
Qed.

(** At the end of the text, what is under way is lexed: the lexeme that is kept, then what is pending. *)
Corollary reads_all w out s : reads fresh w out s -> forall ts,
  lexes w (out ++ ts) <-> lexes (under_way s) ts.
Proof.
  intros has_read ts. destruct (reads_exact _ _ _ _ has_read good_fresh) as (_ & says). specialize (says [] (out ++ ts)).
  simpl in says. rewrite !app_nil_r in says. rewrite says. split.
  - intros (ts' & same & lexed). apply app_inv_head in same. now subst ts'.
  - intros lexed. now exists ts.
Qed.
End Lexer.
