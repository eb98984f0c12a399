(** The subset construction along a stack: what is left of a sequence after reading one tail, then the next, ...

    A stack that can stand after X is a path of rule occurrences from X up to the start symbol. Reading it from the top,
    several remainders of S can be open at once (a tail may consume a shorter or a longer part of S). Their set after
    each tail is a function of the set before, so a deterministic automaton over occurrences decides for each stack
    whether it lets S through. Its states are pairs (symbol, set of suffixes of S): finitely many.

    The empty remainder in the set means: S is used up, this stack lets it through, whatever lies below. *)

From Coq Require Import List.
From Maskwright Require Import grammar.
Import ListNotations.

Section Subset.
Context {T N : Type} (G : grammar T N).

(** A set of remainders. *)
Definition remainders : Type := list T -> Prop.

(** What is open after the tail [beta] of one occurrence: the OR of the items' masks over the open remainders, where the
    last bit ("used up, perhaps still inside [beta]") is the empty remainder. *)
Definition after (K : remainders) (beta : list (symbol T N)) : remainders :=
  fun r => (exists s, K s /\ consumes G beta s r) \/ (r = [] /\ exists s, K s /\ uses_up G beta s).

(** [passes K stack]: the stack lets one of the remainders through. *)
Definition passes (K : remainders) (stack : list (list (symbol T N))) : Prop :=
  exists s, K s /\ viable G (concat stack) s.

(** The single sequence [S]. *)
Lemma passes_single S stack : passes (eq S) stack <-> viable G (concat stack) S.
Proof. split; [now intros (s & <- & lets) | now exists S]. Qed.

(** At the root nothing is left to read: only the empty remainder passes. *)
Lemma passes_root (K : remainders) : passes K [] <-> K [].
Proof.
  split.
  - intros (s & is_open & v & derivation). inversion derivation as [ends_left ends| |].
    symmetry in ends. now apply app_eq_nil in ends as [-> _].
  - intros is_open. exists []. split; [assumption|]. exists []. constructor.
Qed.

(** Acceptance is final: what has been used up stays used up. *)
Lemma after_accepted (K : remainders) beta : K [] -> after K beta [].
Proof. intros is_open. right. split; [reflexivity|]. exists []. split; [assumption | constructor]. Qed.

(** The empty remainder passes everywhere. *)
Lemma passes_accepted : productive G -> forall (K : remainders) stack, K [] -> passes K stack.
Proof.
  intros all_productive K stack is_open. exists []. split; [assumption|]. exact (productive_string G all_productive _).
Qed.

(** One step of the automaton: reading the top tail replaces the set by [after]. *)
Lemma passes_cons : productive G -> forall K beta stack, passes K (beta :: stack) <-> passes (after K beta) stack.
Proof.
  intros all_productive K beta stack. split.
  - intros (s & is_open & lets). apply viable_cons in lets as [inside|(r & eaten & below)]; [| |assumption].
    + apply passes_accepted; [assumption|]. right. split; [reflexivity|]. now exists s.
    + exists r. split; [|assumption]. left. now exists s.
  - intros (r & [(s & is_open & eaten)|(-> & s & is_open & inside)] & below); exists s; split; try assumption;
      apply viable_cons; try assumption; [right; now exists r | now left].
Qed.

(** More open remainders let more through. *)
Lemma passes_subset (K L : remainders) stack : (forall r, K r -> L r) -> passes K stack -> passes L stack.
Proof. intros subset (s & is_open & lets). exists s. auto. Qed.

End Subset.
