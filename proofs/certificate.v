(** A checker of certificates, verified: if it says yes, the claim holds on every stack that the tables allow.

    In: finite tables, the words of a claim, and a list of situations (a cell, and what each word waits for). Out:
    [check_sound]. The checker needs no decider: it asks that each situation which reading a cell leads to is in the list, or is
    decided as the claim says. [maskwright.analysis.legality.certificate._check_proof] is the same function in Python. *)

From Coq Require Import List Bool Arith Lia.
Import ListNotations.
From Maskwright Require Import stack_automaton partial_stacks.

Section Checker.
Context {state terminal nonterminal : Type}.
Variable eq_state : forall p q : state, {p = q} + {p <> q}.
Variable eq_terminal : forall t u : terminal, {t = u} + {t <> u}.
Variable eq_nonterminal : forall A B : nonterminal, {A = B} + {A <> B}.

(** * Tables *)

Variable actions : state -> terminal -> list (@action state nonterminal).
Variable goto : state -> nonterminal -> option state.
Variable below : state -> list state.      (* the states that can lie directly below a state *)
Variable bottom : state.

Definition acts (q : state) (t : terminal) (a : action) : Prop := In a (actions q t).
Definition goes (p : state) (A : nonterminal) (s : state) : Prop := goto p A = Some s.
Definition lies (x y : state) : Prop := In y (below x).
Definition is_bottom (x : state) : Prop := x = bottom.

Notation configuration := (@configuration terminal nonterminal).
Notation takes := (takes acts goes).
Notation means := (means acts goes).
Notation leads := (leads acts goes).

(** * What a word comes to on known cells *)

(** None: the word is accepted. Some of a list: one of these configurations must go on to accept it; none can if it is empty. *)
Definition waits : Type := option (list configuration).
Definition join (o p : waits) : waits :=
  match o, p with
  | Some l, Some m => Some (l ++ m)
  | _, _ => None
  end.

(** One action before the word [t :: v]. [go]: how to go on. *)
Definition way (go : list state -> list terminal -> option waits) (known : list state) (t : terminal) (v : list terminal)
    (a : action) : option waits :=
  match a with
  | Shift s => go (s :: known) v
  | Reduce A n =>
    if length known <=? n then Some (Some [Pops (n - length known) A (t :: v)])
    else match skipn n known with
         | [] => None
         | p :: l => match goto p A with Some s => go (s :: p :: l) (t :: v) | None => Some (Some []) end
         end
  end.
Definition join_all (l : list (option waits)) : option waits :=
  fold_right (fun one rest => match one, rest with Some o, Some p => Some (join o p) | _, _ => None end) (Some (Some [])) l.

(** All ways to read a word on known cells; no answer once the fuel is spent. *)
Fixpoint settle (fuel : nat) (known : list state) (w : list terminal) : option waits :=
  match fuel with
  | 0 => None
  | S fuel =>
    match known, w with
    | [], _ => None
    | _, [] => Some None
    | q :: _, t :: v => join_all (map (way (settle fuel) known t v) (actions q t))
    end
  end.

(** A result is right: it has what the known cells lead to, and nothing else. *)
Definition right (known : list state) (w : list terminal) (o : waits) : Prop :=
  match o with
  | None => leads known w None
  | Some l => ~ leads known w None /\ forall c, In c l <-> leads known w (Some c)
  end.

(** The part of [leads] that begins with one action. *)
Definition begins (a : action) (known : list state) (w : list terminal) (o : option configuration) : Prop :=
  match known, w with
  | q :: l, t :: v =>
    match a with
    | Shift s => leads (s :: known) v o
    | Reduce A n =>
      (exists p rest s, skipn n known = p :: rest /\ goto p A = Some s /\ leads (s :: p :: rest) w o) \/
      (length known <= n /\ o = Some (Pops (n - length known) A w))
    end
  | _, _ => False
  end.

Lemma leads_begins q known t w o :
  leads (q :: known) (t :: w) o <-> exists a, In a (actions q t) /\ begins a (q :: known) (t :: w) o.
Proof.
  split.
  - intros led. inversion led; subst.
    + exists (Shift s). now split.
    + exists (Reduce A n). split; [assumption|]. left. exists p, rest, s. now repeat split.
    + exists (Reduce A n). split; [assumption|]. right. now split.
  - intros ([s|A n] & is_one & begun); simpl in begun.
    + now apply leads_shift with s.
    + destruct begun as [(p & rest & s & popped & put & further)|(is_past & ->)].
      * now apply leads_reduce with A n p rest s.
      * now apply leads_below.
Qed.

Definition right_of (a : action) (known : list state) (w : list terminal) (o : waits) : Prop :=
  match o with
  | None => begins a known w None
  | Some l => ~ begins a known w None /\ forall c, In c l <-> begins a known w (Some c)
  end.

Lemma way_right fuel (IH : forall known w o, settle fuel known w = Some o -> right known w o) a q known t w o :
  way (settle fuel) (q :: known) t w a = Some o -> right_of a (q :: known) (t :: w) o.
Proof.
  destruct a as [s|A n]; cbn [way]; intros settled.
  - exact (IH _ _ _ settled).
  - destruct (length (q :: known) <=? n) eqn:compared.
    + apply Nat.leb_le in compared. injection settled as <-.
      assert (none_inside : skipn n (q :: known) = []) by now apply skipn_all2.
      split.
      * intros [(p & r & s & popped & _)|(_ & wrong)]; [congruence | discriminate].
      * intros c. split.
        -- intros [<-|[]]. right. now split.
        -- intros [(p & r & s & popped & _)|(_ & same)]; [congruence|]. injection same as ->. now left.
    + apply Nat.leb_gt in compared. destruct (skipn n (q :: known)) as [|p r] eqn:popped; [discriminate|].
      assert (only : forall o', begins (Reduce A n) (q :: known) (t :: w) o' <->
                     exists s, goto p A = Some s /\ leads (s :: p :: r) (t :: w) o').
      { intros o'. cbn [begins]. rewrite popped. split.
        - intros [(p' & r' & s & popped' & put & further)|(is_past & _)]; [|lia].
          injection popped' as <- <-. now exists s.
        - intros (s & put & further). left. exists p, r, s. now repeat split. }
      destruct (goto p A) as [s|] eqn:put.
      * pose proof (IH _ _ _ settled) as is_right. destruct o as [cs|]; cbn [right_of].
        -- destruct is_right as (none_ends & all_in). split.
           ++ intros begun. apply only in begun. destruct begun as (s' & same & further). injection same as <-.
              now apply none_ends.
           ++ intros c. rewrite all_in. split.
              ** intros further. apply only. now exists s.
              ** intros begun. apply only in begun. destruct begun as (s' & same & further). now injection same as <-.
        -- apply only. now exists s.
      * injection settled as <-. split.
        -- intros begun. apply only in begun. destruct begun as (s & wrong & _). discriminate.
        -- intros c. split; [intros []|]. intros begun. apply only in begun. destruct begun as (s & wrong & _). discriminate.
Qed.

Lemma settle_right fuel : forall known w o, settle fuel known w = Some o -> right known w o.
Proof.
  induction fuel as [|fuel IH]; intros known w o settled; [discriminate|].
  destruct known as [|q known]; [discriminate|]. destruct w as [|t w].
  - injection settled as <-. constructor.
  - change (join_all (map (way (settle fuel) (q :: known) t w) (actions q t)) = Some o) in settled.
    (* the same for every part of the list of actions *)
    assert (all : forall l o, join_all (map (way (settle fuel) (q :: known) t w) l) = Some o ->
      match o with
      | None => exists a, In a l /\ begins a (q :: known) (t :: w) None
      | Some cs => (forall a, In a l -> ~ begins a (q :: known) (t :: w) None) /\
                   forall c, In c cs <-> exists a, In a l /\ begins a (q :: known) (t :: w) (Some c)
      end).
    { clear o settled. intros l. induction l as [|a l IHl]; intros o settled.
      - injection settled as <-. split; [intros a []|]. intros c. split; [intros [] | intros (a & [] & _)].
      - cbn [map join_all fold_right] in settled.
        destruct (way (settle fuel) (q :: known) t w a) as [first|] eqn:is_one; [|discriminate].
        fold (join_all (map (way (settle fuel) (q :: known) t w) l)) in settled.
        destruct (join_all (map (way (settle fuel) (q :: known) t w) l)) as [rest|] eqn:of_rest; [|discriminate].
        injection settled as <-. specialize (IHl rest eq_refl).
        pose proof (way_right fuel IH a q known t w first is_one) as first_right.
        destruct first as [cs|]; destruct rest as [ds|]; simpl join.
        + destruct first_right as (none_first & in_first). destruct IHl as (none_rest & in_rest). split.
          * intros a' [<-|is_in]; [assumption | now apply none_rest].
          * intros c. rewrite in_app_iff, in_first, in_rest. split.
            -- intros [begun|(a' & is_in & begun)]; [exists a | exists a']; split; trivial; [now left | now right].
            -- intros (a' & [<-|is_in] & begun); [now left | right; now exists a'].
        + destruct IHl as (a' & is_in & begun). exists a'. split; [now right | assumption].
        + exists a. split; [now left | assumption].
        + exists a. split; [now left | assumption]. }
    specialize (all (actions q t) o settled). unfold right. destruct o as [cs|].
    + destruct all as (none_ends & all_in). split.
      * intros led. apply leads_begins in led. destruct led as (a & is_in & begun). now apply (none_ends a is_in).
      * intros c. rewrite all_in, leads_begins. reflexivity.
    + apply leads_begins. exact all.
Qed.

(** * What a stack makes of it *)

Definition holds (o : waits) (stack : list state) : Prop :=
  match o with None => True | Some l => exists c, In c l /\ means c stack end.

Lemma settle_takes fuel known w o : known <> [] -> settle fuel known w = Some o ->
  forall unknown, takes (known ++ unknown) w <-> holds o unknown.
Proof.
  intros not_empty settled unknown. pose proof (settle_right fuel known w o settled) as is_right. split.
  - intros further. destruct (takes_leads acts goes _ _ further known unknown eq_refl not_empty) as (c & led & says).
    destruct o as [l|]; [|exact I]. destruct is_right as (none_ends & all_in).
    destruct c as [c|]; [|contradiction]. exists c. split; [now apply all_in | exact says].
  - destruct o as [l|]; simpl.
    + intros (c & is_in & says). apply is_right in is_in. now apply (leads_takes acts goes known w (Some c)).
    + intros _. now apply (leads_takes acts goes known w None).
Qed.

(** One more cell. *)
Definition read_one (fuel : nat) (c : configuration) (x : state) : option waits :=
  match c with
  | Reads w => settle fuel [x] w
  | Pops (S k) A w => Some (Some [Pops k A w])
  | Pops 0 A w => match goto x A with Some s => settle fuel [s; x] w | None => None end
  end.
Definition read_cell (fuel : nat) (o : waits) (x : state) : option waits :=
  match o with
  | None => Some None
  | Some l => join_all (map (fun c => read_one fuel c x) l)
  end.

Lemma read_one_holds fuel c x o : read_one fuel c x = Some o -> forall rest, means c (x :: rest) <-> holds o rest.
Proof.
  destruct c as [w|[|k] A w]; simpl; intros has_read rest.
  - exact (settle_takes fuel [x] w o ltac:(discriminate) has_read rest).
  - destruct (goto x A) as [s|] eqn:put; [|discriminate].
    rewrite <- (settle_takes fuel [s; x] w o ltac:(discriminate) has_read rest). split.
    + intros (p & r & s' & popped & put' & further). injection popped as <- <-. unfold goes in put'. rewrite put in put'.
      injection put' as <-. exact further.
    + intros further. exists x, rest, s. now repeat split.
  - injection has_read as <-. simpl. split.
    + intros says. exists (Pops k A w). split; [now left | exact says].
    + intros (c & [<-|[]] & says). exact says.
Qed.

Lemma join_holds o p stack : holds (join o p) stack <-> holds o stack \/ holds p stack.
Proof.
  destruct o as [l|]; destruct p as [m|]; simpl; try tauto. split.
  - intros (c & is_in & says). apply in_app_or in is_in. destruct is_in; [left | right]; now exists c.
  - intros [(c & is_in & says)|(c & is_in & says)]; exists c; split; trivial; apply in_or_app; auto.
Qed.

Lemma read_cell_holds fuel o x p : read_cell fuel o x = Some p -> forall rest, holds o (x :: rest) <-> holds p rest.
Proof.
  destruct o as [l|]; simpl; intros has_read rest; [|injection has_read as <-; simpl; tauto].
  revert p has_read. induction l as [|c l IH]; intros p has_read; simpl in has_read.
  - injection has_read as <-. simpl. split; intros (c & [] & _).
  - destruct (read_one fuel c x) as [first|] eqn:of_first; [|discriminate].
    fold (join_all (map (fun c => read_one fuel c x) l)) in has_read.
    destruct (join_all (map (fun c => read_one fuel c x) l)) as [others|] eqn:of_rest; [|discriminate].
    injection has_read as <-. rewrite join_holds, <- (read_one_holds fuel c x first of_first rest), <- (IH others eq_refl).
    split.
    + intros (d & [<-|is_in] & says); [now left | right; now exists d].
    + intros [says|(d & is_in & says)]; [exists c | exists d]; split; trivial; [now left | now right].
Qed.

(** * The checker *)

Definition node : Type := (state * list waits)%type.

Definition eq_configuration (c d : configuration) : {c = d} + {c <> d}.
Proof.
  decide equality; try apply (list_eq_dec eq_terminal); try apply Nat.eq_dec; apply eq_nonterminal.
Defined.
Definition included (l m : list configuration) : bool := forallb (fun c => if in_dec eq_configuration c m then true else false) l.
Definition same_waits (o p : waits) : bool :=
  match o, p with
  | None, None => true
  | Some l, Some m => included l m && included m l
  | _, _ => false
  end.
Fixpoint same_all (os ps : list waits) : bool :=
  match os, ps with
  | [], [] => true
  | o :: os, p :: ps => same_waits o p && same_all os ps
  | _, _ => false
  end.

Definition is_pending (o : waits) : bool := match o with Some (_ :: _) => true | _ => false end.
Definition is_accepted (o : waits) : bool := match o with None => true | Some _ => false end.

(** The claim: which words may be accepted together. *)
Variable allows : list bool -> bool.
Variables (words : list (list terminal)) (nodes : list node).

Definition check_one (x : state) (os : list waits) : bool :=
  if existsb is_pending os
  then existsb (fun n : node => (if eq_state (fst n) x then true else false) && same_all os (snd n)) nodes
  else allows (map is_accepted os).

Fixpoint all_some {X} (l : list (option X)) : option (list X) :=
  match l with
  | [] => Some []
  | Some x :: l => match all_some l with Some xs => Some (x :: xs) | None => None end
  | None :: _ => None
  end.

Definition check_read (x : state) (os : list (option waits)) : bool :=
  match all_some os with Some os => check_one x os | None => false end.

Definition check (fuel : nat) (tops : list state) : bool :=
  forallb (fun x => check_read x (map (settle fuel [x]) words)) tops &&
  forallb (fun n : node =>
    (if eq_state (fst n) bottom then negb (existsb is_pending (snd n)) else true) &&
    forallb (fun y => check_read y (map (fun o => read_cell fuel o y) (snd n))) (below (fst n))) nodes.

(** ** It is sound *)

Lemma included_incl l m : included l m = true -> incl l m.
Proof.
  unfold included. rewrite forallb_forall. intros all c is_in. specialize (all c is_in).
  now destruct (in_dec eq_configuration c m).
Qed.

Lemma same_holds o p : same_waits o p = true -> forall stack, holds o stack <-> holds p stack.
Proof.
  destruct o as [l|]; destruct p as [m|]; simpl; intros same stack; try discriminate; [|tauto].
  apply andb_prop in same. destruct same as (forth & back). apply included_incl in forth, back.
  split; intros (c & is_in & says); exists c; split; auto.
Qed.

Lemma all_some_map {X Y} (f : X -> option Y) l ys : all_some (map f l) = Some ys -> Forall2 (fun x y => f x = Some y) l ys.
Proof.
  revert ys. induction l as [|x l IH]; intros ys all; simpl in all.
  - injection all as <-. constructor.
  - destruct (f x) as [y|] eqn:of_x; [|discriminate]. destruct (all_some (map f l)) as [others|]; [|discriminate].
    injection all as <-. constructor; auto.
Qed.

(** [verdicts stack os bs]: what the outcomes come to on a stack. *)
Definition verdicts (stack : list state) (os : list waits) (bs : list bool) : Prop :=
  Forall2 (fun o b => b = true <-> holds o stack) os bs.

Lemma verdicts_decided stack os : existsb is_pending os = false -> verdicts stack os (map is_accepted os).
Proof.
  induction os as [|o os IH]; intros decided; [constructor|]. simpl in decided. apply orb_false_elim in decided.
  destruct decided as (is_one & others). constructor; [|now apply IH].
  destruct o as [[|c l]|]; simpl in *; try discriminate; split; trivial; try discriminate. intros (c & [] & _).
Qed.

Lemma verdicts_same stack os ps bs : same_all os ps = true -> verdicts stack ps bs -> verdicts stack os bs.
Proof.
  intros same all. revert os same. induction all as [|p b ps bs says _ IH]; intros [|o os] same; simpl in same; try discriminate.
  - constructor.
  - apply andb_prop in same. destruct same as (first & others). constructor; [|now apply IH].
    now rewrite (same_holds o p first stack).
Qed.

Lemma verdicts_read fuel x rest os ps bs : Forall2 (fun o p => read_cell fuel o x = Some p) os ps ->
  verdicts rest ps bs -> verdicts (x :: rest) os bs.
Proof.
  intros has_read. revert bs. induction has_read as [|o p os ps of_o _ IH]; intros bs all; inversion all; subst.
  - constructor.
  - constructor; [now rewrite (read_cell_holds fuel o x p of_o rest) | now apply IH].
Qed.

Lemma check_one_sound fuel tops : check fuel tops = true -> forall rest x os,
  viable lies x rest -> whole is_bottom x rest -> check_one x os = true -> exists bs, verdicts rest os bs /\ allows bs = true.
Proof.
  unfold check. intros checked. apply andb_prop in checked. destruct checked as (_ & closed). rewrite forallb_forall in closed.
  induction rest as [|y rest IH]; intros x os is_viable is_whole checked; unfold check_one in checked;
    (destruct (existsb is_pending os) eqn:pending; [|exists (map is_accepted os); split; [now apply verdicts_decided | assumption]]);
    apply existsb_exists in checked; destruct checked as ((z & ps) & is_listed & same); simpl in same;
    apply andb_prop in same; destruct same as (same_cell & same); destruct (eq_state z x) as [->|]; try discriminate;
    specialize (closed (x, ps) is_listed); simpl in closed; apply andb_prop in closed; destruct closed as (at_bottom & further).
  - (* the bottom: nothing waits there *)
    simpl in is_whole. unfold is_bottom in is_whole. destruct (eq_state x bottom); [|contradiction].
    apply negb_true_iff in at_bottom. exfalso.
    assert (still : existsb is_pending ps = true).
    { clear - pending same. revert ps same. induction os as [|o os IH]; intros [|p ps] same; simpl in *; try discriminate.
      apply andb_prop in same. destruct same as (first & others). apply orb_true_iff in pending. apply orb_true_iff.
      destruct pending as [is_one|others']; [left | right; now apply IH].
      destruct o as [[|c l]|]; try discriminate. destruct p as [[|d m]|]; simpl in first; try discriminate; reflexivity. }
    congruence.
  - destruct is_viable as (is_below & deeper). simpl in is_whole. rewrite forallb_forall in further.
    specialize (further y is_below). unfold check_read in further.
    destruct (all_some (map (fun o => read_cell fuel o y) ps)) as [qs|] eqn:has_read; [|discriminate].
    apply all_some_map in has_read. destruct (IH y qs deeper is_whole further) as (bs & all & allowed).
    exists bs. split; [|assumption]. apply (verdicts_same _ os ps bs same). now apply (verdicts_read fuel y rest ps qs bs).
Qed.

(** If the checker says yes, the claim holds on every stack that the tables allow with one of the tops: which words the parser
    takes there is decided, and the claim allows it. *)
Theorem check_sound fuel tops : check fuel tops = true -> forall x rest,
  In x tops -> viable lies x rest -> whole is_bottom x rest ->
  exists bs, Forall2 (fun w b => b = true <-> takes (x :: rest) w) words bs /\ allows bs = true.
Proof.
  intros checked x rest is_top is_viable is_whole. pose proof checked as both. unfold check in both.
  apply andb_prop in both. destruct both as (begun & _). rewrite forallb_forall in begun. specialize (begun x is_top).
  unfold check_read in begun. destruct (all_some (map (settle fuel [x]) words)) as [os|] eqn:settled; [|discriminate].
  apply all_some_map in settled. destruct (check_one_sound fuel tops checked rest x os is_viable is_whole begun) as (bs & all & allowed).
  exists bs. split; [|assumption]. clear - settled all.
  revert bs all. induction settled as [|w o words os of_w _ IH]; intros bs all; inversion all; subst.
  - constructor.
  - constructor; [|now apply IH]. pose proof (settle_takes fuel [x] w o ltac:(discriminate) of_w rest) as says.
    change ([x] ++ rest) with (x :: rest) in says. now rewrite says.
Qed.

End Checker.

(** * The three claims *)

Section Claims.
Context {state terminal nonterminal : Type}.
Variables (eq_state : forall p q : state, {p = q} + {p <> q}) (eq_terminal : forall t u : terminal, {t = u} + {t <> u}).
Variable eq_nonterminal : forall A B : nonterminal, {A = B} + {A <> B}.
Variable actions : state -> terminal -> list (@action state nonterminal).
Variable goto : state -> nonterminal -> option state.
Variables (below : state -> list state) (bottom : state).

Definition none_of (bs : list bool) : bool := match bs with [b] => negb b | _ => false end.
Definition both_of (bs : list bool) : bool := match bs with [b; c] => eqb b c | _ => false end.

Let parser_takes := takes (acts actions) (goes goto).
Let stack_of (x : state) (rest : list state) : Prop := viable (lies below) x rest /\ whole (is_bottom bottom) x rest.

Theorem never_certified fuel nodes tops w :
  check eq_state eq_terminal eq_nonterminal actions goto below bottom none_of [w] nodes fuel tops = true ->
  forall x rest, In x tops -> stack_of x rest -> ~ parser_takes (x :: rest) w.
Proof.
  intros checked x rest is_top (is_viable & is_whole) further.
  destruct (check_sound eq_state eq_terminal eq_nonterminal actions goto below bottom none_of [w] nodes fuel tops checked x rest
              is_top is_viable is_whole) as (bs & all & allowed).
  inversion all as [|? b ? bs' says others]; subst. inversion others; subst. simpl in allowed.
  destruct b; [discriminate|]. pose proof (proj2 says further). discriminate.
Qed.

Theorem jointly_certified fuel nodes tops v w :
  check eq_state eq_terminal eq_nonterminal actions goto below bottom both_of [v; w] nodes fuel tops = true ->
  forall x rest, In x tops -> stack_of x rest -> (parser_takes (x :: rest) v <-> parser_takes (x :: rest) w).
Proof.
  intros checked x rest is_top (is_viable & is_whole).
  destruct (check_sound eq_state eq_terminal eq_nonterminal actions goto below bottom both_of [v; w] nodes fuel tops checked x rest
              is_top is_viable is_whole) as (bs & all & allowed).
  inversion all as [|? b ? bs' of_v others]; subst. inversion others as [|? c ? bs'' of_w none]; subst. inversion none; subst.
  simpl in allowed. apply eqb_prop in allowed. subst c. unfold parser_takes. rewrite <- of_v, <- of_w. reflexivity.
Qed.

(** Always: as the empty word, which every stack takes. *)
Theorem always_certified fuel nodes tops w :
  check eq_state eq_terminal eq_nonterminal actions goto below bottom both_of [[]; w] nodes fuel tops = true ->
  forall x rest, In x tops -> stack_of x rest -> parser_takes (x :: rest) w.
Proof.
  intros checked x rest is_top is_stack. apply (jointly_certified fuel nodes tops [] w checked x rest is_top is_stack). constructor.
Qed.
End Claims.
