(** Tables whose stacks all begin a sentential form: the parser reads the prefixes of words and nothing else. So what holds on
    all stacks of such tables holds in the grammar's language.

    In: tables as in [tables], and for each state what may be left of the rules under way there. Out: [check_viable], a program,
    with [reads_exact]; [merged_prefix], for tables with merged states that do no more than these; and the verdicts of
    [certificate]'s checker in words of the language: [never_exact], [always_exact], [jointly_exact]. In Python
    [maskwright.maskstore.verify.viable.stuck_states] finds what is left of the rules, and [viable.unlike_full] what relates
    merged states to others. *)

From Coq Require Import List Bool Arith.
Import ListNotations.
From Maskwright Require Import grammar never_legal always_legal jointly_legal tables.
From Maskwright Require stack_automaton partial_stacks certificate.

Section Viable.
Context {T N state side : Type}.
Variables (rules : list (N * list (symbol T N))) (start_symbol : N).
Variables (actions : state -> option T -> list (@tables.action state side)) (goto : state -> side -> option state).
Variables (bottom : state) (column : N -> side) (states : list state) (terminals : list T) (nonterminals : list N).
Variables (eq_state : forall p q : state, {p = q} + {p <> q}) (eq_T : forall t u : T, {t = u} + {t <> u}).
Variable eq_N : forall A B : N, {A = B} + {A <> B}.
Hypothesis all_states : forall q, In q states.
Hypothesis all_terminals : forall t, In t terminals.

Notation listed := (listed rules start_symbol).
Notation labels := (labels actions goto column terminals nonterminals eq_state).
Notation labelled := (labelled actions goto bottom column terminals nonterminals eq_state).
Notation check_tables := (check_tables rules start_symbol actions goto bottom column states terminals nonterminals eq_state eq_T eq_N).

Let still_labelled := reduce_labelled rules start_symbol actions goto bottom column states terminals nonterminals eq_state eq_T eq_N
  all_states all_terminals.

(** * What is left of a rule *)

(** The symbols of a rule that are still to come. *)
Definition left : Type := list (symbol T N).

(** The certificate. None: no stack has the state on top. *)
Variable kernel : state -> option (list left).

(** Where a nonterminal comes next, its rules begin; and so on, [fuel] times. *)
Fixpoint begun (fuel : nat) (i : left) : list left :=
  i :: match fuel, i with
       | S fuel, Non B :: _ =>
           flat_map (fun r : N * list (symbol T N) => if eq_N (fst r) B then begun fuel (snd r) else []) rules
       | _, _ => []
       end.

Definition eq_left (i j : left) : {i = j} + {i <> j} := list_eq_dec (eq_symbol eq_T eq_N) i j.
(** Some rule has [i] left behind [X], which comes next below. *)
Definition passes (fuel : nat) (below : list left) (X : symbol T N) (i : left) : bool :=
  existsb (fun j => existsb (fun k => if eq_left k (X :: i) then true else false) (begun fuel j)) below.

Definition check_edge (fuel : nat) (p q : state) : bool :=
  forallb (fun X =>
    match kernel p, kernel q with
    | None, _ => true
    | Some below, Some (i :: more) => forallb (passes fuel below X) (i :: more)
    | _, _ => false
    end) (labels p q).
Definition check_viable (fuel : nat) : bool :=
  match kernel bottom with
  | Some (i :: more) => forallb (fun j => if eq_left j [Non start_symbol] then true else false) (i :: more)
  | _ => false
  end && forallb (fun p => forallb (check_edge fuel p) states) states.

(** ** What it shows *)

(** Behind a text of [Zs], with a text of [i] and more, comes a word. *)
Definition valid (i : left) (Zs : list (symbol T N)) : Prop :=
  exists more, forall u v, yields listed Zs u -> yields listed (i ++ more) v -> word listed (u ++ v).

Lemma valid_read X i Zs : valid (X :: i) Zs -> valid i (Zs ++ [X]).
Proof.
  intros (more & words). exists more. intros u v before behind.
  apply yields_app_inv in before. destruct before as (u1 & u2 & -> & of_Zs & of_X).
  rewrite <- app_assoc. apply words; [assumption|]. change ((X :: i) ++ more) with ([X] ++ i ++ more). now apply yields_app.
Qed.

Lemma valid_begun fuel : forall i j Zs, valid i Zs -> In j (begun fuel i) -> valid j Zs.
Proof.
  induction fuel as [|fuel IH]; intros i j Zs is_valid is_in.
  - destruct i as [|[t|B] i]; simpl in is_in; destruct is_in as [<-|[]]; assumption.
  - destruct i as [|[t|B] i]; simpl in is_in; destruct is_in as [<-|is_in]; try assumption; try destruct is_in.
    apply in_flat_map in is_in. destruct is_in as ((A, rhs) & is_rule & is_in). simpl in is_in.
    destruct (eq_N A B) as [->|]; [|destruct is_in]. apply (IH rhs); [|assumption].
    destruct is_valid as (more & words). exists (i ++ more). intros u v before behind. apply words; [assumption|].
    apply yields_app_inv in behind. destruct behind as (v1 & v2 & -> & of_rhs & rest).
    change ((Non B :: i) ++ more) with ([Non B] ++ i ++ more). apply yields_app; [|assumption].
    apply yields_one. now exists rhs.
Qed.

(** If the checker says yes, each stack spells the beginning of a sentential form: whatever it stands for begins a word. *)
Lemma stacks_viable fuel : check_viable fuel = true -> forall stack Xs, labelled stack Xs ->
  exists q rest i more, stack = q :: rest /\ kernel q = Some (i :: more) /\ forall j, In j (i :: more) -> valid j (rev Xs).
Proof.
  unfold check_viable. intros checked. apply andb_prop in checked. destruct checked as (begins & edges).
  rewrite forallb_forall in edges. intros stack Xs is_labelled.
  induction is_labelled as [|q p stack X Xs is_label deeper IH].
  - destruct (kernel bottom) as [[|i more]|] eqn:known; try discriminate. exists bottom, [], i, more.
    repeat split; trivial. intros j is_in. rewrite forallb_forall in begins. specialize (begins j is_in).
    destruct (eq_left j [Non start_symbol]) as [->|]; [|discriminate]. exists []. intros u v nothing is_word.
    inversion nothing; subst. exact is_word.
  - destruct IH as (p' & rest & i & more & is_stack & known & all). injection is_stack as <- <-.
    specialize (edges p (all_states p)). rewrite forallb_forall in edges. specialize (edges q (all_states q)).
    unfold check_edge in edges. rewrite forallb_forall in edges. specialize (edges X is_label). rewrite known in edges.
    destruct (kernel q) as [[|k others]|] eqn:of_q; try discriminate. exists q, (p :: stack), k, others.
    repeat split; trivial. intros j is_in. rewrite forallb_forall in edges. specialize (edges j is_in).
    apply existsb_exists in edges. destruct edges as (from & is_from & edges). apply existsb_exists in edges.
    destruct edges as (whole & is_begun & same). destruct (eq_left whole (X :: j)) as [->|]; [|discriminate].
    simpl. apply valid_read. apply (valid_begun fuel from); [|assumption]. now apply all.
Qed.

(** * What the parser reads *)

(** The tables without the end of the text, as [certificate] has them. *)
Definition plain (a : @tables.action state side) : list (@partial_stacks.action state side) :=
  match a with
  | Shift s => [partial_stacks.Shift s]
  | Reduce A n => [partial_stacks.Reduce A n]
  | Accept => []
  end.
Definition inner (q : state) (t : T) : list (@partial_stacks.action state side) := flat_map plain (actions q (Some t)).
(** [reads stack w]: on this stack, listed from the top, the parser can read all of [w]. *)
Definition reads : list state -> list T -> Prop := partial_stacks.takes (certificate.acts inner) (certificate.goes goto).

Lemma inner_shift q t s : certificate.acts inner q t (partial_stacks.Shift s) <-> In (Shift s) (actions q (Some t)).
Proof.
  unfold certificate.acts, inner. rewrite in_flat_map. split.
  - intros ([s'|A n|] & is_in & same); simpl in same; [|destruct same as [same|[]]; discriminate | destruct same].
    destruct same as [same|[]]. now injection same as ->.
  - intros is_in. exists (Shift s). split; [assumption | now left].
Qed.
Lemma inner_reduce q t A n : certificate.acts inner q t (partial_stacks.Reduce A n) <-> In (Reduce A n) (actions q (Some t)).
Proof.
  unfold certificate.acts, inner. rewrite in_flat_map. split.
  - intros ([s'|B m|] & is_in & same); simpl in same; [destruct same as [same|[]]; discriminate | | destruct same].
    destruct same as [same|[]]. now injection same as -> ->.
  - intros is_in. exists (Reduce A n). split; [assumption | now left].
Qed.

(** [reads_any]: so does a parser that makes each of a state's reductions before whatever terminal. It reads at least as much. *)
Definition acts_any (q : state) (t : T) (a : @partial_stacks.action state side) : Prop :=
  match a with
  | partial_stacks.Shift s => In (Shift s) (actions q (Some t))
  | partial_stacks.Reduce A n => exists o, In (Reduce A n) (actions q o)
  end.
Definition reads_any : list state -> list T -> Prop := partial_stacks.takes acts_any (certificate.goes goto).

Lemma reads_less stack w : reads stack w -> reads_any stack w.
Proof.
  induction 1 as [q stack|q stack t w s is_shift _ IH|q stack t w A n p rest s is_reduce cut goes _ IH].
  - constructor.
  - apply partial_stacks.takes_shift with s; [now apply inner_shift | assumption].
  - apply partial_stacks.takes_reduce with A n p rest s; try assumption. exists (Some t). now apply inner_reduce.
Qed.

(** Sound tables whose stacks all begin a sentential form: what such a parser reads begins a word. *)
Theorem reads_prefix fuel fuel' : check_tables fuel = true -> check_viable fuel' = true -> productive listed ->
  forall stack w, reads_any stack w -> forall Xs u, labelled stack Xs -> yields listed (rev Xs) u -> prefix listed (u ++ w).
Proof.
  intros sound is_viable all_productive stack w run.
  induction run as [q stack|q stack t w s is_shift _ IH|q stack t w A n p rest s (o & is_reduce) cut goes _ IH];
    intros Xs u is_labelled derivation.
  - destruct (stacks_viable fuel' is_viable _ _ is_labelled) as (q' & rest & i & more & _ & _ & all).
    destruct (all i (or_introl eq_refl)) as (behind & words).
    destruct (productive_string listed all_productive (i ++ behind)) as (v & ends).
    exists v. rewrite app_nil_r. now apply words.
  - change (t :: w) with ([t] ++ w). rewrite app_assoc. apply (IH (Ter t :: Xs)).
    + constructor; [now apply shift_label | assumption].
    + simpl. apply yields_app; [assumption|]. exact (yields_terminals listed [t]).
  - destruct (still_labelled fuel sound q o A n stack p rest s Xs u is_reduce cut goes is_labelled derivation) as (Ys & of_rest & keeps).
    now apply (IH Ys).
Qed.

Lemma runs_reads stack w : runs actions goto stack w -> forall u v, w = u ++ v -> reads stack u.
Proof.
  induction 1 as [q stack t w s is_shift _ IH|q stack w A n p rest s is_reduce cut goes _ IH|q stack is_accept];
    intros u v is_cut.
  - destruct u as [|t' u]; [constructor|]. injection is_cut as <- is_cut.
    apply partial_stacks.takes_shift with s; [now apply inner_shift | now apply (IH u v)].
  - destruct u as [|t u]; [constructor|]. subst w. simpl in is_reduce.
    apply partial_stacks.takes_reduce with A n p rest s; [now apply inner_reduce | assumption..|]. now apply (IH (t :: u) v).
  - destruct u as [|t u]; [constructor | discriminate].
Qed.

Variables (items : state -> list (@tables.item T N)) (empty : N -> bool) (firsts : N -> list T).
Variable arrivals : state -> N -> list (state * option T).
Notation check_complete := (check_complete rules start_symbol actions goto bottom states eq_state eq_T eq_N items empty firsts arrivals).

(** The three checkers together: the parser reads the prefixes of words, and nothing else. *)
Theorem reads_exact fuel fuel' : check_tables fuel = true -> check_complete = true -> check_viable fuel' = true ->
  productive listed -> forall w, reads [bottom] w <-> prefix listed w.
Proof.
  intros sound complete is_viable all_productive w. split.
  - intros run%reads_less. apply (reads_prefix fuel fuel' sound is_viable all_productive [bottom] w run [] []); constructor.
  - intros (v & is_word). apply (runs_reads [bottom] (w ++ v)) with v; [|reflexivity].
    now apply (tables_complete rules start_symbol actions goto bottom states eq_state eq_T eq_N all_states items empty firsts arrivals).
Qed.

(** * Merged tables

    A store's tables have other states, columns and gotos, and leave out reductions of one symbol whose work another entry
    does. What relates their states to those of full tables: [related]. *)

Section Merged.
Context {merged slot : Type}.
Variables (acts1 : merged -> T -> @partial_stacks.action merged slot -> Prop) (goto1 : merged -> slot -> merged -> Prop).
Variable bottom1 : merged.
Variable related : state -> merged -> Prop.

(** On [p], reductions of one symbol lead from [s] to another state. *)
Inductive renamed (p : state) : state -> state -> Prop :=
| renamed_none s : renamed p s s
| renamed_one o s A s' s'' : In (Reduce A 1) (actions s o) -> goto p A = Some s' -> renamed p s' s'' -> renamed p s s''.

(** [p] may lie so many cells below [s]. *)
Inductive under : nat -> state -> state -> Prop :=
| under_none s : under 0 s s
| under_shift n p t s q : In (Shift s) (actions p (Some t)) -> under n p q -> under (S n) s q
| under_goto n p A s q : goto p A = Some s -> under n p q -> under (S n) s q.

Hypothesis related_bottom : related bottom bottom1.
Hypothesis related_shift : forall s m t m', related s m -> acts1 m t (partial_stacks.Shift m') ->
  exists s' s'', In (Shift s') (actions s (Some t)) /\ renamed s s' s'' /\ related s'' m'.
Hypothesis related_reduce : forall s m t B n p m0 m', related s m -> acts1 m t (partial_stacks.Reduce B n) -> under n s p ->
  related p m0 -> goto1 m0 B m' ->
  exists o A s' s'', In (Reduce A n) (actions s o) /\ goto p A = Some s' /\ renamed p s' s'' /\ related s'' m'.

(** Each cell lies on the one below by a shift or a goto. *)
Fixpoint linked (stack : list state) : Prop :=
  match stack with
  | s :: ((p :: _) as rest) => under 1 s p /\ linked rest
  | _ => True
  end.

Lemma linked_under n : forall s stack p rest, linked (s :: stack) -> skipn n (s :: stack) = p :: rest -> under n s p /\ linked (p :: rest).
Proof.
  induction n as [|n IH]; intros s stack p rest is_linked cut.
  - injection cut as -> ->. split; [constructor | assumption].
  - destruct stack as [|q stack]; [destruct n; discriminate|]. destruct is_linked as (is_under & deeper).
    destruct (IH q stack p rest deeper cut) as (further & is_linked). split; [|assumption].
    inversion is_under as [|k q' t s' q'' is_shift none|k q' A s' q'' goes none]; subst; inversion none; subst.
    + now apply under_shift with q t.
    + now apply under_goto with q A.
Qed.

Lemma renamed_under p s s' : renamed p s s' -> under 1 s p -> under 1 s' p.
Proof. induction 1 as [|o s A s' s'' _ goes _ IH]; intros is_under; [assumption|]. apply IH. apply under_goto with p A; [assumption | constructor]. Qed.

Lemma renamed_reads p s s' rest w : renamed p s s' -> reads_any (s' :: p :: rest) w -> reads_any (s :: p :: rest) w.
Proof.
  induction 1 as [|o s A s' s'' is_reduce goes _ IH]; intros further; [assumption|].
  destruct w as [|t w]; [constructor|].
  apply partial_stacks.takes_reduce with A 1 p rest s'; [now exists o | reflexivity | exact goes | now apply IH].
Qed.

Lemma related_cut n : forall ss ms m rest, Forall2 related ss ms -> skipn n ms = m :: rest ->
  exists s more, skipn n ss = s :: more /\ related s m /\ Forall2 related more rest.
Proof.
  induction n as [|n IH]; intros ss ms m rest all cut.
  - simpl in cut. subst ms. inversion all as [|s m' more rest' one others]; subst. now exists s, more.
  - destruct ms as [|m' ms]; [discriminate|]. inversion all as [|s m'' more rest' one others]; subst. now apply (IH more ms).
Qed.

Lemma simulated ms w : partial_stacks.takes acts1 goto1 ms w -> forall ss, Forall2 related ss ms -> linked ss -> reads_any ss w.
Proof.
  induction 1 as [m stack|m stack t w m' is_shift _ IH|m stack t w B n m0 rest m' is_reduce cut goes _ IH]; intros ss all is_linked.
  - inversion all; subst. constructor.
  - inversion all as [|s m'' more stack' one others]; subst. destruct (related_shift s m t m' one is_shift) as (s' & s'' & shifted & ahead & so).
    apply partial_stacks.takes_shift with s'; [exact shifted|]. apply (renamed_reads s s' s''); [assumption|].
    apply IH; [now repeat constructor|]. split; [|exact is_linked]. apply (renamed_under s s'); [assumption|].
    apply under_shift with s t; [assumption | constructor].
  - destruct (related_cut n ss (m :: stack) m0 rest all cut) as (p & more & cut' & base & others).
    inversion all as [|s m'' ss' stack' one _]; subst. destruct (linked_under n s ss' p more is_linked cut') as (is_under & deeper).
    destruct (related_reduce s m t B n p m0 m' one is_reduce is_under base goes) as (o & A & s' & s'' & reduced & put & ahead & so).
    apply partial_stacks.takes_reduce with A n p more s'; [now exists o | assumption | exact put|].
    apply (renamed_reads p s' s''); [assumption|]. apply IH; [now repeat constructor|]. split; [|assumption].
    apply (renamed_under p s'); [assumption|]. apply under_goto with p A; [assumption | constructor].
Qed.

(** What such tables read begins a word of the grammar, if the full ones are sound and viable. *)
Theorem merged_prefix fuel fuel' : check_tables fuel = true -> check_viable fuel' = true -> productive listed ->
  forall w, partial_stacks.takes acts1 goto1 [bottom1] w -> prefix listed w.
Proof.
  intros sound is_viable all_productive w run.
  change (prefix listed ([] ++ w)). apply (reads_prefix fuel fuel' sound is_viable all_productive [bottom] w) with (Xs := []).
  - apply (simulated [bottom1] w run); [now repeat constructor | exact I].
  - constructor.
  - constructor.
Qed.
End Merged.

(** * Verdicts *)

(** [shifts stack t after]: on this stack, reductions first, [t] is shifted, and [after] is the stack then. *)
Inductive shifts : list state -> T -> list state -> Prop :=
| shifts_now q stack t s : In (Shift s) (actions q (Some t)) -> shifts (q :: stack) t (s :: q :: stack)
| shifts_later q stack t A n p rest s after :
    In (Reduce A n) (actions q (Some t)) -> skipn n (q :: stack) = p :: rest -> goto p A = Some s ->
    shifts (s :: p :: rest) t after -> shifts (q :: stack) t after.

(** [stands u stack]: from the bottom, the parser can read [u], and this is the stack then. *)
Inductive stands : list T -> list state -> Prop :=
| stands_bottom : stands [] [bottom]
| stands_shift u stack t after : stands u stack -> shifts stack t after -> stands (u ++ [t]) after.

Lemma reads_cons stack t w : reads stack (t :: w) <-> exists after, shifts stack t after /\ reads after w.
Proof.
  split.
  - intros run. remember (t :: w) as whole eqn:is_whole. revert t w is_whole.
    induction run as [q stack|q stack t w s is_shift further _|q stack t w A n p rest s is_reduce cut goes _ IH];
      intros t' w' is_whole; [discriminate | |]; injection is_whole as <- <-.
    + exists (s :: q :: stack). split; [constructor; now apply inner_shift | assumption].
    + destruct (IH t w eq_refl) as (after & is_shift & further). exists after. split; [|assumption].
      apply shifts_later with A n p rest s; [now apply inner_reduce in is_reduce | assumption..].
  - intros (after & is_shift & further).
    induction is_shift as [q stack t s is_shift|q stack t A n p rest s after is_reduce cut goes _ IH].
    + apply partial_stacks.takes_shift with s; [now apply inner_shift | assumption].
    + apply partial_stacks.takes_reduce with A n p rest s; [now apply inner_reduce | assumption..|]. now apply IH.
Qed.

Lemma reads_stands u w : reads [bottom] (u ++ w) <-> exists stack, stands u stack /\ reads stack w.
Proof.
  revert w. induction u as [|t u IH] using rev_ind; intros w.
  - split.
    + intros run. exists [bottom]. split; [constructor | exact run].
    + intros (stack & at_stack & run). inversion at_stack as [|u stack' t after _ _ same]; subst; [exact run|].
      now destruct u.
  - rewrite <- app_assoc. simpl. rewrite IH. split.
    + intros (stack & at_stack & run). apply reads_cons in run. destruct run as (after & is_shift & run).
      exists after. split; [now apply stands_shift with stack | assumption].
    + intros (after & at_after & run). inversion at_after as [|u' stack t' after' at_stack is_shift same]; subst.
      * now destruct u.
      * apply app_inj_tail in same. destruct same as (-> & ->). exists stack. split; [assumption|].
        apply reads_cons. now exists after.
Qed.

(** ** The stacks that the parser stands on are those that [certificate] asks about *)

Variable below : state -> list state.
Hypothesis below_all : forall p X q, In X (labels p q) -> In p (below q).

Definition feasible (x : state) (rest : list state) : Prop :=
  stack_automaton.viable (certificate.lies below) x rest /\ stack_automaton.whole (certificate.is_bottom bottom) x rest.

Lemma labelled_feasible stack Xs : labelled stack Xs -> exists x rest, stack = x :: rest /\ feasible x rest.
Proof.
  induction 1 as [|q p stack X Xs is_label deeper IH].
  - exists bottom, []. now repeat split.
  - destruct IH as (x & rest & same & is_viable & is_whole). injection same as <- <-.
    exists q, (p :: stack). repeat split; trivial. now apply (below_all p X q).
Qed.

Lemma shifts_labelled fuel : check_tables fuel = true -> forall stack t after, shifts stack t after ->
  forall Xs u, labelled stack Xs -> yields listed (rev Xs) u ->
  exists Ys, labelled after Ys /\ yields listed (rev Ys) (u ++ [t]).
Proof.
  intros sound stack t after is_shift.
  induction is_shift as [q stack t s is_shift|q stack t A n p rest s after is_reduce cut goes _ IH]; intros Xs u is_labelled derivation.
  - exists (Ter t :: Xs). split.
    + constructor; [now apply shift_label | assumption].
    + simpl. apply yields_app; [assumption|]. exact (yields_terminals listed [t]).
  - destruct (still_labelled fuel sound q _ A n stack p rest s Xs u is_reduce cut goes is_labelled derivation) as (Ys & of_rest & keeps).
    now apply (IH Ys).
Qed.

Lemma stands_labelled fuel : check_tables fuel = true -> forall u stack, stands u stack ->
  exists Xs, labelled stack Xs /\ yields listed (rev Xs) u.
Proof.
  intros sound u stack at_stack. induction at_stack as [|u stack t after _ (Xs & is_labelled & derivation) is_shift].
  - exists []. split; constructor.
  - now apply (shifts_labelled fuel sound stack t after is_shift Xs u).
Qed.

Lemma shifts_top stack t after : shifts stack t after -> exists p s rest, after = s :: rest /\ In (Shift s) (actions p (Some t)).
Proof. induction 1 as [q stack t s is_shift|]; [now exists q, s, (q :: stack) | assumption]. Qed.

(** The tops of a terminal: the states that its shifts lead to. *)
Variable tops : T -> list state.
Hypothesis tops_all : forall p X s, In (Shift s) (actions p (Some X)) -> In s (tops X).

Lemma stands_feasible fuel : check_tables fuel = true -> forall u X stack, stands (u ++ [X]) stack ->
  exists x rest, stack = x :: rest /\ In x (tops X) /\ feasible x rest.
Proof.
  intros sound u X stack at_stack. destruct (stands_labelled fuel sound _ _ at_stack) as (Xs & is_labelled & _).
  destruct (labelled_feasible stack Xs is_labelled) as (x & rest & -> & is_feasible). exists x, rest. repeat split; try apply is_feasible.
  inversion at_stack as [same|u' stack' t after _ is_shift same]; subst; [now destruct u|].
  apply app_inj_tail in same. destruct same as (_ & ->).
  apply shifts_top in is_shift. destruct is_shift as (p & s & rest' & same & is_shift). injection same as <- <-. now apply (tops_all p).
Qed.

(** ** Claims about stacks are claims about the language *)

Section Claims.
Variables fuel fuel' : nat.
Hypotheses (sound : check_tables fuel = true) (complete : check_complete = true) (is_viable : check_viable fuel' = true).
Hypothesis all_productive : productive listed.

Lemma prefix_stands u X w : prefix listed (u ++ X :: w) <-> exists stack, stands (u ++ [X]) stack /\ reads stack w.
Proof.
  rewrite <- (reads_exact fuel fuel' sound complete is_viable all_productive), <- reads_stands.
  now rewrite <- app_assoc.
Qed.

Theorem never_on_stacks X S : (forall x rest, In x (tops X) -> feasible x rest -> ~ reads (x :: rest) S) -> never_legal listed X S.
Proof.
  intros never u legal. apply prefix_stands in legal. destruct legal as (stack & at_stack & run).
  destruct (stands_feasible fuel sound u X stack at_stack) as (x & rest & -> & is_top & is_feasible).
  exact (never x rest is_top is_feasible run).
Qed.

Theorem jointly_on_stacks X S S' :
  (forall x rest, In x (tops X) -> feasible x rest -> (reads (x :: rest) S <-> reads (x :: rest) S')) -> jointly_legal listed X S S'.
Proof.
  intros both u. rewrite !prefix_stands.
  split; intros (stack & at_stack & run);
    destruct (stands_feasible fuel sound u X stack at_stack) as (x & rest & -> & is_top & is_feasible);
    exists (x :: rest); split; try assumption; now apply (both x rest is_top is_feasible).
Qed.

Theorem always_on_stacks X S : (forall x rest, In x (tops X) -> feasible x rest -> reads (x :: rest) S) -> always_legal listed X S.
Proof.
  intros always u legal. apply prefix_stands in legal. destruct legal as (stack & at_stack & _). apply prefix_stands.
  exists stack. split; [assumption|].
  destruct (stands_feasible fuel sound u X stack at_stack) as (x & rest & -> & is_top & is_feasible).
  now apply always.
Qed.

(** *** What the checker of certificates has said yes to *)

Variables (eq_side : forall A B : side, {A = B} + {A <> B}) (checks : nat).
Notation check allows words nodes := (certificate.check eq_state eq_T eq_side inner goto below bottom allows words nodes checks).

Theorem never_exact X S nodes : check certificate.none_of [S] nodes (tops X) = true -> never_legal listed X S.
Proof.
  intros checked. apply never_on_stacks. intros x rest is_top is_feasible.
  exact (certificate.never_certified _ _ _ _ _ _ _ _ _ _ _ checked x rest is_top is_feasible).
Qed.

Theorem always_exact X S nodes : check certificate.both_of [[]; S] nodes (tops X) = true -> always_legal listed X S.
Proof.
  intros checked. apply always_on_stacks. intros x rest is_top is_feasible.
  exact (certificate.always_certified _ _ _ _ _ _ _ _ _ _ _ checked x rest is_top is_feasible).
Qed.

(** With [R] before both, this is "jointly" in the context X R; with [R] alone and [R ++ S], "always" there. *)
Theorem jointly_exact X S S' nodes : check certificate.both_of [S; S'] nodes (tops X) = true -> jointly_legal listed X S S'.
Proof.
  intros checked. apply jointly_on_stacks. intros x rest is_top is_feasible.
  exact (certificate.jointly_certified _ _ _ _ _ _ _ _ _ _ _ _ checked x rest is_top is_feasible).
Qed.

(** *** The start of the text as the context: the one stack there *)

Lemma feasible_start : feasible bottom [].
Proof. split; simpl; [exact I | reflexivity]. Qed.

Theorem never_exact_start S nodes : check certificate.none_of [S] nodes [bottom] = true -> ~ prefix listed S.
Proof.
  intros checked legal. apply (reads_exact fuel fuel' sound complete is_viable all_productive) in legal.
  exact (certificate.never_certified _ _ _ _ _ _ _ _ _ _ _ checked bottom [] (or_introl eq_refl) feasible_start legal).
Qed.

Theorem jointly_exact_start S S' nodes : check certificate.both_of [S; S'] nodes [bottom] = true -> (prefix listed S <-> prefix listed S').
Proof.
  intros checked. rewrite <- !(reads_exact fuel fuel' sound complete is_viable all_productive).
  exact (certificate.jointly_certified _ _ _ _ _ _ _ _ _ _ _ _ checked bottom [] (or_introl eq_refl) feasible_start).
Qed.
End Claims.
End Viable.
