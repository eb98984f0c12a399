(** The LR parser that knows nothing of its stack reads it cell by cell, and says what the parser that knows it says.

    In: the tables of an LR parser, perhaps with conflicts. Out: [means_step]: what a configuration says of a stack is what it
    says after one more cell; and [accepts_exact]: a function that follows sets of configurations from cell to cell, as
    [stack_automaton.accepts] wants it, accepts a stack exactly if the parser takes the terminals on it. *)

From Coq Require Import List Arith Lia.
Import ListNotations.
From Maskwright Require Import stack_automaton.

Section Parser.
Context {state terminal nonterminal : Type}.

Inductive action : Type :=
| Shift (s : state)
| Reduce (A : nonterminal) (n : nat).   (* n: the length of the rule's right side *)

Variable acts : state -> terminal -> action -> Prop.   (* several actions are a conflict; none is an error *)
Variable goto : state -> nonterminal -> state -> Prop.

(** [takes stack w]: on this stack, listed from the top, the parser can read all of [w]. *)
Inductive takes : list state -> list terminal -> Prop :=
| takes_all q stack : takes (q :: stack) []
| takes_shift q stack t w s :
    acts q t (Shift s) -> takes (s :: q :: stack) w -> takes (q :: stack) (t :: w)
| takes_reduce q stack t w A n p rest s :
    acts q t (Reduce A n) -> skipn n (q :: stack) = p :: rest -> goto p A s ->
    takes (s :: p :: rest) (t :: w) -> takes (q :: stack) (t :: w).

(** A configuration waits for a cell. [Reads w]: for the top of the stack, to read [w] on it. [Pops k A w]: [k] more cells are
    popped, then [A] is put on what lies below, and [w] is read. *)
Inductive configuration : Type :=
| Reads (w : list terminal)
| Pops (k : nat) (A : nonterminal) (w : list terminal).

(** What it says of a stack. *)
Definition means (c : configuration) (stack : list state) : Prop :=
  match c with
  | Reads w => takes stack w
  | Pops k A w => exists p rest s, skipn k stack = p :: rest /\ goto p A s /\ takes (s :: p :: rest) w
  end.

(** [leads known w o]: on known cells above an unknown stack, reading [w] can come to its end (None) or to a configuration that
    waits for the unknown stack. *)
Inductive leads : list state -> list terminal -> option configuration -> Prop :=
| leads_all q known : leads (q :: known) [] None
| leads_shift q known t w s o :
    acts q t (Shift s) -> leads (s :: q :: known) w o -> leads (q :: known) (t :: w) o
| leads_reduce q known t w A n p rest s o :
    acts q t (Reduce A n) -> skipn n (q :: known) = p :: rest -> goto p A s ->
    leads (s :: p :: rest) (t :: w) o -> leads (q :: known) (t :: w) o
| leads_below q known t w A n :
    acts q t (Reduce A n) -> length (q :: known) <= n ->
    leads (q :: known) (t :: w) (Some (Pops (n - length (q :: known)) A (t :: w))).

Definition settled (o : option configuration) (stack : list state) : Prop :=
  match o with None => True | Some c => means c stack end.

Lemma skipn_known {X} n (known unknown : list X) p rest :
  skipn n known = p :: rest -> skipn n (known ++ unknown) = p :: rest ++ unknown.
Proof.
  revert known. induction n as [|n IH]; intros known is_rest; simpl in is_rest.
  - subst. reflexivity.
  - destruct known as [|x known]; [discriminate|]. simpl. now apply IH.
Qed.

Lemma skipn_past {X} n (known unknown : list X) :
  length known <= n -> skipn n (known ++ unknown) = skipn (n - length known) unknown.
Proof. intros is_past. rewrite skipn_app, skipn_all2 by assumption. reflexivity. Qed.

(** The known cells are read as the parser would read them. *)
Lemma leads_takes known w o : leads known w o -> forall unknown, settled o unknown -> takes (known ++ unknown) w.
Proof.
  induction 1 as [q known|q known t w s o is_shift _ IH|q known t w A n p rest s o is_reduce popped put _ IH
                 |q known t w A n is_reduce is_past]; intros unknown says.
  - constructor.
  - apply takes_shift with s; [assumption|]. exact (IH unknown says).
  - apply takes_reduce with A n p (rest ++ unknown) s; try assumption.
    + exact (skipn_known n (q :: known) unknown p rest popped).
    + exact (IH unknown says).
  - simpl in says. destruct says as (p & rest & s & popped & put & further).
    apply takes_reduce with A n p rest s; try assumption.
    rewrite <- popped. exact (skipn_past n (q :: known) unknown is_past).
Qed.

Lemma takes_leads stack w : takes stack w -> forall known unknown, stack = known ++ unknown -> known <> [] ->
  exists o, leads known w o /\ settled o unknown.
Proof.
  induction 1 as [q stack|q stack t w s is_shift _ IH|q stack t w A n p rest s is_reduce popped put further IH];
    intros [|x known] unknown is_stack not_empty; try contradiction; simpl in is_stack; injection is_stack as <- ->.
  - exists None. split; [constructor | exact I].
  - destruct (IH (s :: q :: known) unknown eq_refl) as (o & leads_on & says); [discriminate|].
    exists o. split; [now apply leads_shift with s | assumption].
  - destruct (le_lt_dec (length (q :: known)) n) as [is_past|is_inside].
    + exists (Some (Pops (n - length (q :: known)) A (t :: w))). split; [now apply leads_below|].
      exists p, rest, s. split; [|now split].
      rewrite <- popped. symmetry. exact (skipn_past n (q :: known) unknown is_past).
    + destruct (skipn n (q :: known)) as [|p' rest'] eqn:inside.
      * apply (f_equal (@length _)) in inside. rewrite skipn_length in inside. cbn [length] in inside, is_inside. lia.
      * pose proof (skipn_known n (q :: known) unknown p' rest' inside) as same.
        change ((q :: known) ++ unknown) with (q :: known ++ unknown) in same. rewrite popped in same.
        injection same as -> ->.
        destruct (IH (s :: p' :: rest') unknown eq_refl) as (o & leads_on & says); [discriminate|].
        exists o. split; [now apply leads_reduce with A n p' rest' s | assumption].
Qed.

(** [steps c x o]: what a configuration can come to when it reads the cell [x]. *)
Inductive steps : configuration -> state -> option configuration -> Prop :=
| steps_reads w x o : leads [x] w o -> steps (Reads w) x o
| steps_pops k A w x : steps (Pops (S k) A w) x (Some (Pops k A w))
| steps_put A w x s o : goto x A s -> leads [s; x] w o -> steps (Pops 0 A w) x o.

Theorem means_step c x rest : means c (x :: rest) <-> exists o, steps c x o /\ settled o rest.
Proof.
  split.
  - destruct c as [w|[|k] A w]; simpl.
    + intros further. destruct (takes_leads _ _ further [x] rest eq_refl) as (o & leads_on & says); [discriminate|].
      exists o. split; [now constructor | assumption].
    + intros (p & rest' & s & popped & put & further). injection popped as <- <-.
      destruct (takes_leads _ _ further [s; x] rest eq_refl) as (o & leads_on & says); [discriminate|].
      exists o. split; [now apply steps_put with s | assumption].
    + intros says. exists (Some (Pops k A w)). split; [constructor | exact says].
  - intros (o & stepped & says). destruct stepped as [w x o leads_on|k A w x|A w x s o put leads_on]; simpl.
    + exact (leads_takes [x] w o leads_on rest says).
    + exact says.
    + exists x, rest, s. split; [reflexivity|]. split; [assumption|]. exact (leads_takes [s; x] w o leads_on rest says).
Qed.

(** ** Sets of configurations, one step at a time *)

Definition means_some (cs : list configuration) (stack : list state) : Prop := exists c, In c cs /\ means c stack.

(** A function that follows a set: what the code computes and memoises. [members c]: the configurations of the set [c], which
    may be a list or a number. *)
Context {C : Type}.
Variable members : C -> list configuration.
Variable step : C -> state -> outcome C.
Record follows_sets : Prop := {
  step_yes : forall cs x, step cs x = Yes -> exists c, In c (members cs) /\ steps c x None;
  step_no : forall cs x, step cs x = No -> forall c o, In c (members cs) -> ~ steps c x o;
  step_more : forall cs x ds, step cs x = More ds ->
    (forall c, In c (members cs) -> ~ steps c x None) /\
    forall d, In d (members ds) <-> exists c, In c (members cs) /\ steps c x (Some d)
}.

Theorem accepts_exact : follows_sets -> forall stack cs, stack <> [] \/ ~ means_some (members cs) [] ->
  (accepts step cs stack = true <-> means_some (members cs) stack).
Proof.
  intros follows stack. induction stack as [|x rest IH]; intros cs not_empty.
  - simpl. destruct not_empty as [wrong|none]; [contradiction|]. split; [discriminate | intros some; contradiction].
  - rewrite accepts_settles. destruct (step cs x) as [| |ds] eqn:stepped; cbn [settles].
    + split; [|reflexivity]. intros _. destruct (step_yes follows cs x stepped) as (c & is_in & at_end).
      exists c. split; [assumption|]. apply means_step. exists None. now split.
    + split; [discriminate|]. intros (c & is_in & says). apply means_step in says. destruct says as (o & moved & _).
      destruct (step_no follows cs x stepped c o is_in moved).
    + destruct (step_more follows cs x ds stepped) as (none_ends & all_in).
      assert (nothing : rest <> [] \/ ~ means_some (members ds) []).
      { destruct rest as [|y rest]; [|left; discriminate]. right. intros (d & is_in & says).
        apply all_in in is_in. destruct is_in as (c & _ & _).
        destruct d as [w|k A w]; simpl in says; [inversion says|].
        destruct says as (p & rest & s & popped & _). now rewrite skipn_nil in popped. }
      rewrite (IH ds nothing). split.
      * intros (d & is_in & says). apply all_in in is_in. destruct is_in as (c & is_in & moved).
        exists c. split; [assumption|]. apply means_step. exists (Some d). now split.
      * intros (c & is_in & says). apply means_step in says. destruct says as (o & moved & says).
        destruct o as [d|]; [|destruct (none_ends c is_in moved)].
        exists d. split; [|assumption]. apply all_in. now exists c.
Qed.

(** The question of a mask: can the parser read [w] on a stack that is not empty? *)
Corollary reads_exact : follows_sets -> forall c w, members c = [Reads w] -> forall x rest,
  accepts step c (x :: rest) = true <-> takes (x :: rest) w.
Proof.
  intros follows c w is_one x rest. rewrite (accepts_exact follows) by (left; discriminate). rewrite is_one. split.
  - intros (d & [<-|[]] & says). exact says.
  - intros says. exists (Reads w). split; [now left | exact says].
Qed.

(** ** The masks of a stack automaton that follows such sets

    The two halves together. [wants t w]: the token [t] asks the parser to read [w], which depends on the lexer. Where the tokens
    hang on a node as what they ask, a walk from it collects exactly those that the parser can read on this stack. *)
Theorem masks_exact {node token : Type} (below : state -> state -> Prop) (bottom : state -> Prop)
    (always never : state -> C -> Prop) (alike : state -> C -> C -> Prop) (hangs : node -> token -> C -> Prop)
    (mask : node -> state -> token -> Prop) (next : node -> state -> node) (follows : node -> state -> Prop)
    (wants : token -> list terminal -> Prop) :
  follows_sets -> decisions_closed step below bottom always never alike ->
  closed step below always never alike hangs mask next follows ->
  forall x rest n, follows n x -> viable below x rest -> whole bottom x rest ->
  (forall t c, hangs n t c -> exists w, wants t w /\ members c = [Reads w]) ->
  (forall t w, wants t w -> exists c, hangs n t c /\ members c = [Reads w]) ->
  forall t, walk mask next n (x :: rest) t <-> exists w, wants t w /\ takes (x :: rest) w.
Proof.
  intros exact_sets decided is_closed x rest n is_read is_viable is_whole asked all_asked t.
  rewrite (walk_exact step below bottom always never alike decided hangs mask next follows is_closed rest x n is_read is_viable is_whole t).
  split.
  - intros (c & on & says). destruct (asked t c on) as (w & is_wanted & is_one). exists w. split; [assumption|].
    now apply (reads_exact exact_sets c w is_one).
  - intros (w & is_wanted & says). destruct (all_asked t w is_wanted) as (c & on & is_one). exists c. split; [assumption|].
    now apply (reads_exact exact_sets c w is_one).
Qed.

End Parser.
