(** The layout: tokens that bring moves, a column that stops growing, and a search among the open blocks insert the same
    terminals as the definition, which reads whole lexemes.

    In: a text as the lexer cuts it, into words and newlines. The definition reads a newline's bytes, compares the column with
    those of the open blocks, and inserts an indent, nothing, or dedents, or refuses. The engine sees tokens: pieces of the text
    cut anywhere. What a token's bytes do to the column is one [move], worked out before any text is known.
    Out: [layout_exact]: for every text and every way to cut it, both insert the same, or both refuse; [end_exact]: and at the
    end of the text; [visible_cases]: more open brackets than a token can close make no difference. *)

From Coq Require Import List Bool Arith Lia ZArith ZifyNat.
Import ListNotations.
Arguments Nat.div : simpl never.
Arguments Nat.modulo : simpl never.
Arguments Nat.mul : simpl never.
Arguments Nat.min : simpl never.
Ltac Zify.zify_post_hook ::= Z.to_euclidean_division_equations.

Section Layout.
Context {terminal : Type}.
Inductive side : Type := Opens | Closes | Neither.
Variable bracket : terminal -> side.
Variable consistent : bool.            (* tabs as CPython reads them; else each counts [tab_length] *)
Variables (tab_length most : nat).     (* a line whose column is [most] or more is refused *)
Hypothesis some_columns : 0 < most.

(** * Columns *)

Inductive byte : Type := LineFeed | Blank | Tab | FormFeed | Other.
Definition column : Type := (nat * nat)%type.    (* wide and narrow *)
Definition first : column := (0, 0).

(** `Column.step` and `column_after`. *)
Definition step (c : column) (b : byte) : column :=
  let (wide, narrow) := c in
  match b with
  | LineFeed => first
  | FormFeed => if consistent then first else c
  | Blank => (wide + 1, narrow + 1)
  | Tab => if consistent then ((wide / 8 + 1) * 8, narrow + 1) else (wide + tab_length, narrow + tab_length)
  | Other => c
  end.
Definition column_after (piece : list byte) (c : column) : column := fold_left step piece c.

(** A newline with a line feed in it forgets the column before. *)
Lemma line_feed_forgets p q c d : column_after (p ++ LineFeed :: q) c = column_after (p ++ LineFeed :: q) d.
Proof. unfold column_after. rewrite !fold_left_app. simpl. destruct (fold_left step p c), (fold_left step p d). reflexivity. Qed.

(** ** Moves *)

(** `Move`: what a piece does to the column before it. *)
Inductive move : Type :=
| Add (wide narrow : nat)
| Stop (ahead wide narrow : nat)    (* so many columns, a tab, and so many behind it *)
| From (wide narrow : nat).         (* counted from a line feed or a form feed *)

Definition after (m : move) (c : column) : column :=
  match m with
  | Add wide narrow => (fst c + wide, snd c + narrow)
  | Stop ahead wide narrow => (((fst c + ahead) / 8 + 1) * 8 + wide, snd c + narrow)
  | From wide narrow => (wide, narrow)
  end.

(** `Move.then`: the move of a piece with one more byte. *)
Definition and_then (m : move) (b : byte) : move :=
  match b with
  | LineFeed => From 0 0
  | FormFeed => if consistent then From 0 0 else m
  | Other => m
  | Blank =>
      match m with
      | Add wide narrow => Add (wide + 1) (narrow + 1)
      | Stop ahead wide narrow => Stop ahead (wide + 1) (narrow + 1)
      | From wide narrow => From (wide + 1) (narrow + 1)
      end
  | Tab =>
      match m with
      | Add wide narrow =>
          if consistent then Stop (wide mod 8) (wide / 8 * 8) (narrow + 1) else Add (wide + tab_length) (narrow + tab_length)
      | Stop ahead wide narrow =>
          if consistent then Stop ahead ((wide / 8 + 1) * 8) (narrow + 1)
          else Stop ahead (wide + tab_length) (narrow + tab_length)
      | From wide narrow =>
          if consistent then From ((wide / 8 + 1) * 8) (narrow + 1) else From (wide + tab_length) (narrow + tab_length)
      end
  end.
Definition move_of (piece : list byte) : move := fold_left and_then piece (Add 0 0).

Lemma and_then_step m b c : after (and_then m b) c = step (after m c) b.
Proof.
  destruct c as (w, n). unfold first.
  destruct b; destruct m as [wide narrow|ahead wide narrow|wide narrow]; cbn [after and_then step fst snd]; unfold first;
    try reflexivity; try destruct consistent; cbn [after fst snd]; try reflexivity; f_equal; lia.
Qed.

(** A token's move does to any column before it what its bytes do. *)
Theorem move_exact piece c : after (move_of piece) c = column_after piece c.
Proof.
  unfold move_of, column_after. replace c with (after (Add 0 0) c) at 2 by (destruct c; simpl; f_equal; lia).
  generalize (Add 0 0). induction piece as [|b piece IH]; intros m; simpl; [reflexivity|]. now rewrite IH, and_then_step.
Qed.

(** ** A column that stops at [most] *)

(** `step_column` and `step_tab` of the engine. *)
Definition step_stopped (c : column) (b : byte) : column :=
  let (wide, narrow) := c in
  match b with
  | LineFeed => first
  | FormFeed => if consistent then first else c
  | Blank => if wide <? most then (wide + 1, narrow + 1) else c
  | Tab =>
      if consistent
      then if wide <? most then (Nat.min ((wide / 8 + 1) * 8) most, narrow + 1) else c
      else (Nat.min (wide + tab_length) most, Nat.min (wide + tab_length) most)
  | Other => c
  end.

(** Two columns that compare alike with every open block: equal, or both too far in. Under Lark's tabs the two counts are one. *)
Definition alike (c d : column) : Prop :=
  (c = d \/ most <= fst c /\ most <= fst d) /\ (consistent = false -> fst c = snd c /\ fst d = snd d).

Lemma alike_refl c : (consistent = false -> fst c = snd c) -> alike c c.
Proof. intros one. split; [now left | now split; apply one]. Qed.

Lemma step_alike c d b : alike c d -> alike (step_stopped c b) (step d b).
Proof.
  destruct c as (w, n), d as (w', n'). unfold alike. simpl. intros (same & one).
  assert (cases : w = w' /\ n = n' \/ most <= w /\ most <= w').
  { destruct same as [equal|both]; [injection equal as -> ->; now left | now right]. }
  clear same. destruct consistent eqn:is_consistent.
  - clear one. split; [|discriminate].
    destruct b; simpl; try (destruct (Nat.ltb_spec w most)); simpl; try (now left);
      destruct cases as [(-> & ->)|(far & far')]; simpl; try (left; reflexivity); try (right; lia); try lia;
      try (destruct (Nat.le_gt_cases most ((w' / 8 + 1) * 8)) as [past|within];
           [right; rewrite Nat.min_r by assumption; split; [lia | assumption]
           |left; rewrite Nat.min_l by lia; reflexivity]).
  - destruct (one eq_refl) as (-> & ->). clear one.
    destruct b; simpl; try (destruct (Nat.ltb_spec n most)); simpl; (split; [|intros _; split; lia]);
      try (now left); destruct cases as [(-> & _)|(far & far')]; simpl; try (left; reflexivity); try (right; lia); try lia;
      (destruct (Nat.le_gt_cases most (n' + tab_length)) as [past|within]; [right; lia | left; f_equal; lia]).
Qed.

(** * Lines *)

Inductive out : Type := Read (t : terminal) | Newline | Indent | Dedent.
Definition eq_column (c d : column) : {c = d} + {c <> d}.
Proof. repeat decide equality. Defined.

(** ** The definition: `compare` and `Layout.line_at` *)

Definition compare (c opened : column) : option comparison :=
  if most <=? fst c then None
  else if fst c <? fst opened then Some Lt
  else if fst c =? fst opened then if snd c =? snd opened then Some Eq else None
  else if snd opened <? snd c then Some Gt else None.

Fixpoint index (c : column) (l : list column) : nat :=
  match l with
  | [] => 0
  | d :: l => if eq_column c d then 0 else S (index c l)
  end.

(** The open blocks are listed from the innermost here; the code's tuple, in which it looks for the column, is [rev columns]. *)
Definition line_at (columns : list column) (c : column) : option (list out * list column) :=
  match columns with
  | [] => None
  | top :: _ =>
      match compare c top with
      | None => None
      | Some Gt => Some ([Indent], c :: columns)
      | Some _ =>
          if in_dec eq_column c columns
          then let n := length columns - 1 - index c (rev columns) in Some (repeat Dedent n, skipn n columns)
          else None
      end
  end.

(** ** The engine: `indent` of the kernels, a search by the wide column *)

Fixpoint search (columns : list column) (c : column) : option (nat * list column) :=
  match columns with
  | [] => None
  | opened :: below =>
      if fst c <? fst opened
      then match search below c with Some (n, kept) => Some (S n, kept) | None => None end
      else if (fst c =? fst opened) && (snd c =? snd opened) then Some (0, columns) else None
  end.
Definition indent (columns : list column) (c : column) : option (list out * list column) :=
  match columns with
  | [] => None
  | top :: _ =>
      if fst top <? fst c
      then if (snd c <=? snd top) || (most <=? fst c) then None else Some ([Indent], c :: columns)
      else match search columns c with Some (n, kept) => Some (repeat Dedent n, kept) | None => None end
  end.

(** Open blocks: each further in than the one around it, the outermost at the first column. *)
Fixpoint nested (columns : list column) : Prop :=
  match columns with
  | [] => False
  | [outermost] => outermost = first
  | opened :: (around :: _) as below => fst around < fst opened < most /\ nested below
  end.

Lemma nested_within columns : nested columns -> forall c, In c columns -> fst c < most.
Proof.
  induction columns as [|c [|d columns] IH]; simpl; [tauto| |]; intros is_nested e [<-|is_in].
  - now rewrite is_nested.
  - destruct is_in.
  - tauto.
  - now apply IH.
Qed.

Lemma nested_above opened below : nested (opened :: below) -> forall c, In c below -> fst c < fst opened.
Proof.
  revert opened. induction below as [|around below IH]; intros opened is_nested c is_in; [destruct is_in|].
  destruct is_nested as (further & deeper). destruct is_in as [<-|is_in]; [tauto|].
  specialize (IH around deeper c is_in). lia.
Qed.

Lemma search_spec columns c : nested columns ->
  match search columns c with
  | Some (n, kept) => exists above, columns = above ++ kept /\ length above = n /\ ~ In c above /\ exists below, kept = c :: below
  | None => ~ In c columns
  end.
Proof.
  induction columns as [|opened below IH]; intros is_nested; [simpl; tauto|]. simpl.
  assert (is_below : nested below \/ below = []).
  { destruct below; [now right | left; now destruct is_nested]. }
  destruct (Nat.ltb_spec (fst c) (fst opened)) as [less|more].
  - assert (other : opened <> c) by (intros ->; lia).
    destruct is_below as [deeper| ->]; [|simpl; tauto].
    specialize (IH deeper). destruct (search below c) as [(n, kept)|].
    + destruct IH as (above & -> & <- & outside & rest). exists (opened :: above). simpl. repeat split; trivial. tauto.
    + simpl. tauto.
  - destruct ((fst c =? fst opened) && (snd c =? snd opened)) eqn:same.
    + apply andb_prop in same. destruct same as (w & n). apply Nat.eqb_eq in w, n.
      exists []. simpl. repeat split; trivial; [tauto|]. exists below. f_equal. destruct c, opened; simpl in *; now subst.
    + simpl. intros [->|is_in]; [now rewrite !Nat.eqb_refl in same|].
      pose proof (nested_above opened below is_nested c is_in). lia.
Qed.

Lemma index_unique c above below : ~ In c above -> index c (above ++ c :: below) = length above.
Proof.
  induction above as [|d above IH]; simpl; intros outside; destruct (eq_column c _) as [same|]; try tauto.
  - symmetry in same. tauto.
  - f_equal. tauto.
Qed.

Lemma nested_once above c below : nested (above ++ c :: below) -> ~ In c below.
Proof.
  induction above as [|d above IH]; simpl; intros is_nested is_in.
  - pose proof (nested_above c below is_nested c is_in). lia.
  - destruct (above ++ c :: below) as [|e l] eqn:shape; [now destruct above|]. now apply IH.
Qed.

(** The search finds what the definition finds, and inserts the same. *)
Theorem indent_exact columns c d : nested columns -> alike c d -> indent columns c = line_at columns d.
Proof.
  intros is_nested (same & _). destruct columns as [|top below]; [reflexivity|].
  assert (top_within : fst top < most) by (apply (nested_within _ is_nested); now left).
  unfold indent, line_at, compare.
  destruct same as [->|(far & far')].
  2: { destruct (Nat.ltb_spec (fst top) (fst c)); [|lia]. destruct (Nat.leb_spec most (fst c)); [|lia].
       destruct (Nat.leb_spec most (fst d)); [|lia]. now rewrite orb_true_r. }
  destruct (Nat.ltb_spec (fst top) (fst d)) as [further|within].
  - destruct (Nat.leb_spec most (fst d)); [now rewrite orb_true_r|]. rewrite orb_false_r.
    destruct (Nat.ltb_spec (fst d) (fst top)); [lia|]. destruct (Nat.eqb_spec (fst d) (fst top)); [lia|].
    destruct (Nat.leb_spec (snd d) (snd top)); destruct (Nat.ltb_spec (snd top) (snd d)); try lia; reflexivity.
  - destruct (Nat.leb_spec most (fst d)); [lia|].
    assert (found : match search (top :: below) d with
                    | Some (n, kept) => Some (repeat Dedent n, kept) | None => None end =
                    if in_dec eq_column d (top :: below)
                    then let n := length (top :: below) - 1 - index d (rev (top :: below)) in
                         Some (repeat Dedent n, skipn n (top :: below))
                    else None).
    { pose proof (search_spec _ d is_nested) as spec. destruct (search (top :: below) d) as [(n, kept)|].
      - destruct spec as (above & shape & counted & outside & rest & ->). rewrite shape in *.
        destruct (in_dec eq_column d (above ++ d :: rest)) as [_|absent]; [|destruct absent; apply in_or_app; right; now left].
        pose proof (nested_once above d rest is_nested) as once.
        rewrite rev_app_distr. simpl rev. rewrite <- app_assoc. simpl app.
        rewrite index_unique by (rewrite <- in_rev; assumption). rewrite app_length, rev_length. simpl length.
        cbv zeta. replace (length above + S (length rest) - 1 - length rest) with n by lia.
        rewrite <- counted. rewrite skipn_app, skipn_all, Nat.sub_diag. reflexivity.
      - destruct (in_dec eq_column d (top :: below)); [contradiction | reflexivity]. }
    rewrite found.
    destruct (Nat.ltb_spec (fst d) (fst top)); [reflexivity|]. destruct (Nat.eqb_spec (fst d) (fst top)); [|lia].
    destruct (Nat.eqb_spec (snd d) (snd top)) as [equal|differ]; [reflexivity|].
    destruct (in_dec eq_column d (top :: below)) as [[->|is_in]|_]; try reflexivity; [tauto|].
    pose proof (nested_above top below is_nested d is_in). lia.
Qed.

Lemma nested_skipn n columns : nested columns -> n < length columns -> nested (skipn n columns).
Proof.
  revert columns. induction n as [|n IH]; intros columns is_nested shorter; [assumption|].
  destruct columns as [|opened [|around below]]; simpl in *; try lia. apply IH; [tauto | simpl; lia].
Qed.

Lemma indent_nested columns c inserted kept : nested columns -> indent columns c = Some (inserted, kept) -> nested kept.
Proof.
  destruct columns as [|top below]; intros is_nested; [discriminate|]. unfold indent.
  destruct (Nat.ltb_spec (fst top) (fst c)) as [further|within].
  - destruct (Nat.leb_spec (snd c) (snd top)); simpl; [discriminate|]. destruct (Nat.leb_spec most (fst c)); [discriminate|].
    intros is_more. injection is_more as _ <-. split; [lia | exact is_nested].
  - pose proof (search_spec _ c is_nested) as spec. destruct (search (top :: below) c) as [(n, l)|]; [|discriminate].
    intros is_less. injection is_less as _ <-. destruct spec as (above & shape & _ & _ & rest & ->). rewrite shape in is_nested.
    replace (c :: rest) with (skipn (length above) (above ++ c :: rest)).
    + apply nested_skipn; [assumption|]. rewrite app_length. simpl. lia.
    + now rewrite skipn_app, skipn_all, Nat.sub_diag.
Qed.

(** * Texts *)

Inductive lexeme : Type := Word (t : terminal) | Line (bytes : list byte).

(** The column reached, the open brackets, and the open blocks. *)
Record state : Type := State { at_column : column; depth : nat; blocks : list column }.
Definition start : state := State first 0 [first].
Definition depth_after (t : terminal) (d : nat) : nat :=
  match bracket t with Opens => S d | Closes => d - 1 | Neither => d end.

(** A newline lexeme has ended at a column. *)
Definition end_line (line : list column -> column -> option (list out * list column)) (c : column) (s : state) :
    option (state * list out) :=
  match depth s with
  | S _ => Some (s, [])                       (* newlines inside brackets are dropped *)
  | 0 => match line (blocks s) c with
         | Some (inserted, kept) => Some (State (at_column s) 0 kept, Newline :: inserted)
         | None => None
         end
  end.
Definition read_word (t : terminal) (s : state) : state := State (at_column s) (depth_after t (depth s)) (blocks s).
Definition move_to (c : column) (s : state) : state := State c (depth s) (blocks s).

Definition then_out {X : Type} (before : list out) (r : option (X * list out)) : option (X * list out) :=
  match r with Some (x, more) => Some (x, before ++ more) | None => None end.

(** ** The definition: lexeme by lexeme *)
Fixpoint read_all (s : state) (text : list lexeme) : option (state * list out) :=
  match text with
  | [] => Some (s, [])
  | Word t :: text => then_out [Read t] (read_all (read_word t s) text)
  | Line bytes :: text =>
      let c := column_after bytes (at_column s) in
      match end_line line_at c (move_to c s) with
      | Some (s', inserted) => then_out inserted (read_all s' text)
      | None => None
      end
  end.

(** ** What the engine sees: bytes of newlines, where each ends, and terminals *)
Inductive event : Type := Byte (b : byte) | Ended | Emits (t : terminal).
Definition events_of (x : lexeme) : list event :=
  match x with Word t => [Emits t] | Line bytes => map Byte bytes ++ [Ended] end.

(** Byte by byte, with a way to step and a way to obey a line. *)
Fixpoint run (stp : column -> byte -> column) (line : list column -> column -> option (list out * list column))
    (s : state) (l : list event) : option (state * list out) :=
  match l with
  | [] => Some (s, [])
  | Byte b :: l => run stp line (move_to (stp (at_column s) b) s) l
  | Emits t :: l => then_out [Read t] (run stp line (read_word t s) l)
  | Ended :: l =>
      match end_line line (at_column s) s with
      | Some (s', inserted) => then_out inserted (run stp line s' l)
      | None => None
      end
  end.

(** ** Tokens: any piece of the events, with what it does to the column as moves *)
Inductive symbol : Type := Terminal (t : terminal) | Break (m : move).
Fixpoint symbols (m : move) (token : list event) : list symbol * move :=
  match token with
  | [] => ([], m)
  | Byte b :: token => symbols (and_then m b) token
  | Emits t :: token => let (more, last) := symbols m token in (Terminal t :: more, last)
  | Ended :: token => let (more, last) := symbols m token in (Break m :: more, last)
  end.

(** [before]: the column before the token. *)
Fixpoint obey (before : column) (s : state) (l : list symbol) : option (state * list out) :=
  match l with
  | [] => Some (s, [])
  | Terminal t :: l => then_out [Read t] (obey before (read_word t s) l)
  | Break m :: l =>
      match end_line indent (after m before) s with
      | Some (s', inserted) => then_out inserted (obey before s' l)
      | None => None
      end
  end.
Definition read_token (s : state) (token : list event) : option (state * list out) :=
  let (l, last) := symbols (Add 0 0) token in
  match obey (at_column s) s l with
  | Some (s', inserted) => Some (move_to (after last (at_column s)) s', inserted)
  | None => None
  end.
Fixpoint read_tokens (s : state) (tokens : list (list event)) : option (state * list out) :=
  match tokens with
  | [] => Some (s, [])
  | token :: tokens =>
      match read_token s token with
      | Some (s', inserted) => then_out inserted (read_tokens s' tokens)
      | None => None
      end
  end.

(** * They agree *)

Definition agree (s t : state) : Prop :=
  alike (at_column s) (at_column t) /\ depth s = depth t /\ blocks s = blocks t /\ nested (blocks s).
Definition results_agree (r q : option (state * list out)) : Prop :=
  match r, q with
  | Some (s, o), Some (t, p) => o = p /\ agree s t
  | None, None => True
  | _, _ => False
  end.

Lemma then_out_agree before r q : results_agree r q -> results_agree (then_out before r) (then_out before q).
Proof. destruct r as [(s, o)|], q as [(t, p)|]; simpl; try tauto. intros (-> & both). now split. Qed.

Lemma then_out_app {X} o p (r : option (X * list out)) : then_out o (then_out p r) = then_out (o ++ p) r.
Proof. destruct r as [(x, more)|]; simpl; [now rewrite app_assoc | reflexivity]. Qed.

Lemma end_line_agree c d s t : alike c d -> agree s t -> results_agree (end_line indent c s) (end_line line_at d t).
Proof.
  intros columns (at_s & depths & same & is_nested). unfold end_line. rewrite <- depths, <- same.
  destruct (depth s) as [|n] eqn:deep; simpl.
  - rewrite <- (indent_exact (blocks s) c d is_nested columns).
    destruct (indent (blocks s) c) as [(inserted, kept)|] eqn:obeyed; simpl; [|exact I].
    split; [reflexivity|]. split; [exact at_s|]. split; [reflexivity|]. split; [reflexivity|].
    exact (indent_nested _ _ _ _ is_nested obeyed).
  - split; [reflexivity|]. split; [exact at_s|]. split; [congruence|]. now split.
Qed.

(** Readers of bytes that are alike agree on whole texts. *)
Lemma run_agree_by stp (step_both : forall c d b, alike c d -> alike (stp c b) (step d b)) l :
  forall s t, agree s t -> results_agree (run stp indent s l) (run step line_at t l).
Proof.
  induction l as [|[b| |x] l IH]; intros s t both; simpl.
  - now split.
  - apply IH. destruct both as (at_s & rest). split; [now apply step_both | exact rest].
  - pose proof (end_line_agree _ _ _ _ (proj1 both) both) as line.
    destruct (end_line indent (at_column s) s) as [(s', o)|]; destruct (end_line line_at (at_column t) t) as [(t', p)|];
      simpl in line; try tauto. destruct line as (-> & both'). apply then_out_agree. now apply IH.
  - apply then_out_agree. apply IH. destruct both as (at_s & depths & rest). unfold read_word.
    split; [exact at_s|]. split; [simpl; now rewrite depths | exact rest].
Qed.

(** The engine's bytes against the definition's columns. *)
Lemma run_agree l : forall s t, agree s t -> results_agree (run step_stopped indent s l) (run step line_at t l).
Proof. apply run_agree_by. exact step_alike. Qed.

Lemma run_app stp line l : forall s m, run stp line s (l ++ m) =
  match run stp line s l with Some (s', o) => then_out o (run stp line s' m) | None => None end.
Proof.
  induction l as [|[b| |x] l IH]; intros s m; simpl.
  - destruct (run stp line s m) as [(s', o)|]; reflexivity.
  - apply IH.
  - destruct (end_line line (at_column s) s) as [(s', o)|]; [|reflexivity]. rewrite IH.
    destruct (run stp line s' l) as [(s'', p)|]; simpl; [now rewrite then_out_app | reflexivity].
  - rewrite IH. destruct (run stp line (read_word x s) l) as [(s'', p)|]; simpl; [now rewrite then_out_app | reflexivity].
Qed.

Lemma run_bytes stp line bytes s l :
  run stp line s (map Byte bytes ++ l) = run stp line (move_to (fold_left stp bytes (at_column s)) s) l.
Proof.
  revert s. induction bytes as [|b bytes IH]; intros s; simpl; [now destruct s|]. now rewrite IH.
Qed.

(** The definition is what its events say, byte by byte. *)
Lemma read_all_run text : forall s, read_all s text = run step line_at s (flat_map events_of text).
Proof.
  induction text as [|[t|bytes] text IH]; intros s; simpl; [reflexivity | now rewrite IH|].
  rewrite <- app_assoc, run_bytes. simpl. unfold column_after.
  destruct (end_line line_at _ _) as [(s', o)|]; [now rewrite IH | reflexivity].
Qed.

(** A token's moves, from the column before it, are its bytes one by one. *)
Lemma obey_run token : forall m before s,
  at_column s = after m before ->
  run step indent s token =
  let (l, last) := symbols m token in
  match obey before s l with Some (s', o) => Some (move_to (after last before) s', o) | None => None end.
Proof.
  induction token as [|[b| |t] token IH]; intros m before s here; simpl.
  - rewrite <- here. now destruct s.
  - rewrite (IH (and_then m b) before) by (simpl; now rewrite here, and_then_step).
    destruct (symbols (and_then m b) token) as (l, last). clear IH here. destruct s as [c d bs]. unfold move_to at 2. simpl.
    assert (free : forall l s c, obey before (move_to c s) l =
                     match obey before s l with Some (s', o) => Some (move_to c s', o) | None => None end).
    { clear. induction l as [|[t|m] l IH]; intros s c; simpl; [reflexivity| |].
      - change (read_word t (move_to c s)) with (move_to c (read_word t s)). rewrite IH.
        now destruct (obey before (read_word t s) l) as [(s', o)|].
      - unfold end_line. simpl. destruct (depth s); [destruct (indent (blocks s) (after m before)) as [(i, kept)|]; [|reflexivity]|].
        + change (State c 0 kept) with (move_to c (State (at_column s) 0 kept)). rewrite IH.
          now destruct (obey before (State (at_column s) 0 kept) l) as [(s', o)|].
        + rewrite IH. now destruct (obey before s l) as [(s', o)|]. }
    change (State (step c b) d bs) with (move_to (step c b) (State c d bs)). rewrite free.
    now destruct (obey before (State c d bs) l) as [(s', o)|].
  - destruct (symbols m token) as (l, last) eqn:of_token. simpl. rewrite here.
    destruct (end_line indent (after m before) s) as [(s', o)|] eqn:ended; [|reflexivity].
    assert (stays : at_column s' = after m before).
    { unfold end_line in ended. destruct (depth s); [destruct (indent (blocks s) (after m before)) as [(i, kept)|]; [|discriminate]|];
        injection ended as <- _; assumption. }
    rewrite (IH m before s' stays), of_token. now destruct (obey before s' l) as [(s'', p)|].
  - destruct (symbols m token) as (l, last) eqn:of_token. simpl.
    rewrite (IH m before (read_word t s) here), of_token. now destruct (obey before (read_word t s) l) as [(s', p)|].
Qed.

Lemma read_token_run s token : read_token s token = run step indent s token.
Proof.
  unfold read_token. symmetry. apply obey_run. destruct (at_column s). simpl. f_equal; lia.
Qed.

Lemma run_line_agree l : forall s t, agree s t -> results_agree (run step indent s l) (run step line_at t l).
Proof.
  apply run_agree_by. intros (w, n) (w', n') b ([same|(far & far')] & one); unfold alike in *; simpl in *.
  - injection same as -> ->. split; [now left|]. intros lark. destruct (one lark) as (_ & ->).
    destruct b; rewrite ?lark; simpl; split; lia.
  - split.
    + destruct b; simpl; try (destruct consistent); simpl; try (now left); right; lia.
    + intros lark. destruct (one lark) as (-> & ->). destruct b; rewrite ?lark; simpl; split; lia.
Qed.

Lemma read_tokens_run tokens : forall s, read_tokens s tokens = run step indent s (concat tokens).
Proof.
  induction tokens as [|token tokens IH]; intros s; simpl; [reflexivity|].
  rewrite run_app, read_token_run. destruct (run step indent s token) as [(s', o)|]; [now rewrite IH | reflexivity].
Qed.

Lemma agree_start : agree start start.
Proof. split; [apply alike_refl; reflexivity|]. repeat split. Qed.

(** However a text is cut into tokens, what their moves insert is what the definition inserts, or both refuse. The text may end
    inside a newline, of which [p] has been read. *)
Theorem layout_exact text p tokens : concat tokens = flat_map events_of text ++ map Byte p ->
  results_agree (read_tokens start tokens)
    (match read_all start text with
     | Some (s, o) => Some (move_to (column_after p (at_column s)) s, o) | None => None end).
Proof.
  intros cut. rewrite read_tokens_run, cut, read_all_run.
  pose proof (run_line_agree (flat_map events_of text ++ map Byte p) start start agree_start) as both.
  rewrite (run_app step line_at) in both. destruct (run step line_at start (flat_map events_of text)) as [(s, o)|]; [|exact both].
  rewrite <- (app_nil_r (map Byte p)) in both at 2. rewrite run_bytes in both. simpl in both. rewrite app_nil_r in both. exact both.
Qed.

(** So does the engine that reads byte by byte, whose column stops at [most]. *)
Theorem bytes_exact text p :
  results_agree (run step_stopped indent start (flat_map events_of text ++ map Byte p))
    (match read_all start text with
     | Some (s, o) => Some (move_to (column_after p (at_column s)) s, o) | None => None end).
Proof.
  pose proof (run_agree (flat_map events_of text ++ map Byte p) start start agree_start) as both.
  rewrite (run_app step line_at), <- read_all_run in both. destruct (read_all start text) as [(s, o)|]; [|exact both].
  rewrite <- (app_nil_r (map Byte p)) in both at 2. rewrite run_bytes in both. simpl in both. rewrite app_nil_r in both. exact both.
Qed.

(** Masks are made from the stopped column: a token's moves from there agree with its bytes as well. *)
Theorem masks_exact s t token : agree s t -> results_agree (read_token s token) (run step line_at t token).
Proof. intros both. rewrite read_token_run. now apply run_line_agree. Qed.

(** * Brackets: few cases of the depth *)

(** What a parser sees of a token's symbols, if so many brackets are open before it. *)
Fixpoint visible (d : nat) (l : list symbol) : list symbol :=
  match l with
  | [] => []
  | Terminal t :: l => Terminal t :: visible (depth_after t d) l
  | Break m :: l => match d with 0 => Break m :: visible 0 l | S _ => visible d l end
  end.
Fixpoint closers (l : list symbol) : nat :=
  match l with
  | [] => 0
  | Terminal t :: l => match bracket t with Closes => S (closers l) | _ => closers l end
  | Break _ :: l => closers l
  end.

(** Newlines are kept or dropped as [visible] says ... *)
Theorem visible_exact before l : forall s,
  match obey before s l, obey before s (visible (depth s) l) with
  | Some (s', o), Some (t', p) => s' = t' /\ o = p
  | None, None => True
  | _, _ => False
  end.
Proof.
  induction l as [|[t|m] l IH]; intros s; simpl; [now split| |].
  - specialize (IH (read_word t s)). simpl in IH.
    destruct (obey before (read_word t s) l) as [(s', o)|], (obey before (read_word t s) (visible _ l)) as [(t', p)|]; simpl; try tauto.
    destruct IH as (-> & ->). now split.
  - destruct (depth s) as [|n] eqn:deep; simpl.
    + unfold end_line. rewrite deep. destruct (indent (blocks s) (after m before)) as [(i, kept)|]; [|exact I].
      specialize (IH (State (at_column s) 0 kept)). simpl in IH.
      destruct (obey before (State (at_column s) 0 kept) l) as [(s', o)|],
        (obey before (State (at_column s) 0 kept) (visible 0 l)) as [(t', p)|]; simpl; try tauto.
      destruct IH as (-> & ->). now split.
    + unfold end_line. rewrite deep. specialize (IH s). rewrite deep in IH.
      destruct (obey before s l) as [(s', o)|], (obey before s (visible (S n) l)) as [(t', p)|]; simpl; try tauto.
Qed.

(** ... and depths beyond what the token can close are one case. *)
Theorem visible_cases l : forall d e, closers l < d -> closers l < e -> visible d l = visible e l.
Proof.
  induction l as [|[t|m] l IH]; intros d e below_d below_e; simpl in *; [reflexivity| |].
  - f_equal. apply IH; unfold depth_after; destruct (bracket t); lia.
  - destruct d as [|d]; [lia|]. destruct e as [|e]; [lia|]. now apply IH.
Qed.

(** * The end of the text *)

(** The definition: a newline under way has no column of its own there; then all blocks are closed by a line at the first one. *)
Definition finish (s : state) (newline_under_way : bool) : option (list out) :=
  match (if newline_under_way then end_line line_at first s else Some (s, [])) with
  | None => None
  | Some (s', o) =>
      if 1 <? length (blocks s')
      then match line_at (blocks s') first with Some (inserted, _) => Some (o ++ inserted) | None => None end
      else Some o
  end.
(** The engine: the newline alone, if no bracket is open, and one dedent for each open block. *)
Definition close (s : state) (newline_under_way : bool) : list out :=
  (if newline_under_way && (depth s =? 0) then [Newline] else []) ++ repeat Dedent (length (blocks s) - 1).

Lemma line_at_first columns : nested columns -> line_at columns first = Some (repeat Dedent (length columns - 1), [first]).
Proof.
  intros is_nested. rewrite <- (indent_exact columns first first is_nested) by (apply alike_refl; reflexivity).
  unfold indent. destruct columns as [|top below]; [destruct is_nested|]. simpl (fst first). destruct (Nat.ltb_spec (fst top) 0); [lia|].
  assert (at_bottom : search (top :: below) first = Some (length (top :: below) - 1, [first])).
  { clear H. revert top is_nested. induction below as [|around below IH]; intros top is_nested.
    - simpl in is_nested. subst. reflexivity.
    - destruct is_nested as (further & deeper). specialize (IH around deeper).
      change (search (top :: around :: below) first) with
        (if fst first <? fst top then match search (around :: below) first with Some (n, kept) => Some (S n, kept) | None => None end
         else if (fst first =? fst top) && (snd first =? snd top) then Some (0, top :: around :: below) else None).
      destruct (Nat.ltb_spec (fst first) (fst top)); [|simpl in *; lia]. rewrite IH. simpl. now rewrite Nat.sub_0_r. }
  now rewrite at_bottom.
Qed.

Theorem end_exact s t newline_under_way : agree s t -> finish t newline_under_way = Some (close s newline_under_way).
Proof.
  intros (_ & depths & same & is_nested). unfold finish, close. rewrite depths, same in *.
  destruct newline_under_way; simpl; [unfold end_line; destruct (depth t) as [|n] eqn:deep; simpl|].
  - rewrite (line_at_first (blocks t) is_nested). reflexivity.
  - destruct (Nat.ltb_spec 1 (length (blocks t))); [now rewrite (line_at_first (blocks t) is_nested)|].
    now replace (length (blocks t) - 1) with 0 by lia.
  - destruct (Nat.ltb_spec 1 (length (blocks t))); [now rewrite (line_at_first (blocks t) is_nested)|].
    now replace (length (blocks t) - 1) with 0 by lia.
Qed.

End Layout.
