"""Decides exactly, for LR grammars, which terminal sequences can follow a context.

`always_legal` is undecidable for context-free grammars (proofs/README.md), but not for grammars
that an LR parser reads. A stack is *feasible* for a context if it is a path of the LR(0) automaton
from its start whose last edge the context gives. The parser can only stand on feasible stacks.
They are a regular set. The parser reads a stack from the top, one cell at a time, so the stacks on
which it accepts a sequence are a regular set too. Therefore we can decide

    never_legal(X, S)       no feasible stack accepts S           (emptiness of an intersection)
    always_legal(X, S)      every feasible stack accepts S        (inclusion)
    jointly_legal(X, S, T)  no feasible stack accepts just one    (equality)

by a search in a finite graph. From each top of a stack, we run the parser on S until it must pop a
cell that is not known. We record how many cells it must pop and which nonterminal it pushes then.
We branch over the states that can lie below, and visit nothing twice.

A longer context X Y is reduced to X: S is legal after X Y where a stack after X accepts Y S. So
always_legal(X Y, S) says: after X, every stack that accepts Y accepts Y S. No stack is left out or
added, so the answer is exact too.

What the answers say about the language L of the grammar without unproductive rules, with P the set
of its prefixes:

- *Conflict-free LALR(1) grammars: all answers are proofs.* Each feasible stack with top X spells a
  viable prefix g X. All symbols are productive, so g X derives some terminal word u X. For some
  terminals v, g X v is a right sentential form. It is on the only rightmost derivation of u X v,
  since the grammar is unambiguous. So the parser stands on just this stack once it has read u X.
  On it, it accepts S if and only if u X S is in P. LALR's merged lookahead sets may let it reduce
  before an error, but it never shifts a wrong terminal.
- *Conflicts, conflicts="all"*: a stack accepts S if some choice of actions does. A word of P may
  then lead to several stacks, and S may follow it if one of them accepts S. For never, both answers
  are proofs. For always and jointly, "holds" is a proof. "Does not hold" is a proof if the text of
  the witness refutes the claim on *all* its stacks (`Witness.is_real`); else it means unknown.
- *Conflicts, conflicts="shift"*: the same, with L the set of texts that the parser with these
  choices does not refuse. Some feasible stacks may be unreachable then, so a refuted "never" may be
  spurious too.

Source: the regularity of viable prefixes, Knuth, "On the translation of languages from left to
right" (1965); Sippu and Soisalon-Soininen, "Parsing Theory II" (1990), section 6.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from maskwright.analysis.deadline import look
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.graphs import predecessors
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality.certificate import (
    AnyContext,
    Certificate,
    Claim,
    LrState,
    Node,
    Pending,
    Proof,
    Simulator,
    Witness,
)
from maskwright.analysis.legality.verdict import START, TerminalSequence
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.fragments import MAX_FRAGMENTS, Fragment, Fragments, TooManyFragmentsError
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.analysis.lr.yields import Yields

MAX_NODES = 1 << 20
"""Nodes of one claim's search; past this limit it raises a LimitError."""

_MAX_WORD = 100_000
_WITNESSES = 64

Outcome: TypeAlias = frozenset[tuple[int, int, int]] | None
"""What a word comes to while only the top of a stack is known: its pending reductions.

Each is (position in the word, states still to pop, nonterminal). The word is refused if there are
none; None if it is accepted whatever lies below.
"""

Situation: TypeAlias = tuple[int, tuple[Outcome, ...]]
"""The state read last, and the outcome of each of the claim's words."""


@dataclass(frozen=True, slots=True)
class ExactVerdict:
    """An answer with its certificate.

    holds : whether the claim holds on all feasible stacks.
    is_proof : whether the answer is proved for the grammar's language, see the module's docstring.
        Always True if the claim holds.
    certificate : a `Proof` if the claim holds, else a `Witness`. `check_certificate` verifies both.
    """

    holds: bool
    is_proof: bool
    certificate: Certificate

    def __bool__(self) -> bool:
        """Whether the claim holds, and so is proved."""
        return self.holds


class ExactDeciders:
    """The exact deciders of one grammar.

    A context is a tuple as for `Deciders`: () for anywhere (the start and after every terminal),
    (START,), (X,), (X, Y) and so on, the nearest terminal last. It may also be an `LrState`: a
    claim is then about the stacks with this state on top, and nothing else.

    conflicts : what the parser does where the grammar is not LALR(1), see `build_lr_tables`.
    grammar : the grammar. As an attribute: the rules that the tables are of, see `parsed_grammar`.
    tables : the grammar's LALR(1) tables.

    Raises: whatever `build_lr_tables` raises.
    """

    def __init__(self, grammar: Grammar, conflicts: Conflicts = "all") -> None:
        self.grammar = parsed_grammar(grammar, conflicts)
        self.tables: LrTables = build_lr_tables(grammar, conflicts)
        self._fragments = Fragments(self.tables)
        self._columns: list[int] = self.tables.terminal_column.tolist()
        n, accessing = self.tables.n_terminals, self.tables.accessing.tolist()
        self._symbols: list[int] = [symbol - (symbol > n) for symbol in accessing]
        """For each state the symbol that leads to it, -1 for the start."""

    def never_legal(self, context: AnyContext, sequence: TerminalSequence) -> ExactVerdict:
        """The verdict on: no word of P ends in the context followed by the sequence.

        Raises and costs as `decide`.
        """
        return self.decide(Claim("never", context, (sequence,)))

    def always_legal(self, context: AnyContext, sequence: TerminalSequence) -> ExactVerdict:
        """The verdict on: every word of P that ends in the context can go on with the sequence.

        Raises and costs as `decide`.
        """
        return self.decide(Claim("always", context, (sequence,)))

    def jointly_legal(self, context: AnyContext, first: TerminalSequence, second: TerminalSequence) -> ExactVerdict:
        """The verdict on: both or neither are legal after every word of P that ends in the context.

        Raises and costs as `decide`.
        """
        return self.decide(Claim("jointly", context, (first, second)))

    def decide(self, claim: Claim) -> ExactVerdict:
        """The verdict on a claim, with its certificate.

        The witness of a claim that does not hold is found after the fewest cells, except where a
        later one refutes the claim on all stacks of its text and the first does not.

        Raises: LimitError past MAX_NODES nodes or MAX_FRAGMENTS stacks, and if no witness can be
        shown because some symbol's shortest text is too long. MaskwrightError for a terminal or an
        LR state that does not exist.

        Cost: O(nodes * predecessors), some microseconds each.
        """
        nodes: dict[Situation, Situation | None] = {}
        first: Witness | None = None
        for number, (cell, above) in enumerate(self._refuting(claim, nodes)):
            witness = self._witness(claim, cell, above, nodes)
            if witness.is_real:
                return ExactVerdict(False, True, witness)
            # all stacks of this text together do not refute the claim; another text's may
            first = first or witness
            if number + 1 == _WITNESSES:
                break
        if first is not None:
            return ExactVerdict(False, False, first)
        listed = (Node(cell, tuple(map(_as_pending, outcomes))) for cell, outcomes in nodes)
        return ExactVerdict(True, True, Proof(claim, tuple(listed)))

    def holds(self, claim: Claim) -> bool:
        """Whether a claim holds on all feasible stacks, without a certificate.

        Raises and costs as `decide`, but there are no witnesses.
        """
        return next(self._refuting(claim, {}), None) is None

    def tops(self, context: AnyContext) -> list[int]:
        """The states on top of the feasible stacks after the context's first member, ascending.

        Raises: MaskwrightError if the LR state or the terminal does not exist.
        """
        accessing: list[int] = self.tables.accessing.tolist()
        if isinstance(context, LrState):
            if not 0 <= context.number < len(accessing):
                raise MaskwrightError(f"there is no LR state {context.number}; the tables have {len(accessing)} states")
            return [context.number]
        if not context:
            return [state for state, symbol in enumerate(accessing) if symbol < self.tables.n_terminals]
        if context[0] == START:
            return [0]
        column = self._column(context[0])
        return [state for state, symbol in enumerate(accessing) if symbol == column >= 0]

    def _column(self, terminal: int) -> int:
        """The tables' column of a terminal; -1 if it occurs in no rule that a text can use."""
        if not 0 <= terminal < len(self._columns):
            raise MaskwrightError(
                f"grammar {self.grammar.name} has no terminal number {terminal}; expected 0 to {len(self._columns) - 1}"
            )
        return self._columns[terminal]

    def _refuting(
        self, claim: Claim, nodes: dict[Situation, Situation | None]
    ) -> Iterator[tuple[int, Situation | None]]:
        """Searches for situations in which the claim fails, breadth first.

        nodes : what is written: each undecided situation, and the one above it; None for a top.

        Yields the state read last, and the situation above it. Raises: as `decide`.
        """
        words = [tuple(map(self._column, word)) for word in claim.words()]

        @cache
        def pushed(cell: int, nonterminal: int, which: int, position: int) -> Outcome:
            return self._outcome((cell, self._fragments.goto[cell][nonterminal]), position, words[which])

        def below(cell: int, which: int, outcome: Outcome) -> Outcome:
            """The outcome once the next cell is known too."""
            found: set[tuple[int, int, int]] = set()
            for position, pops, nonterminal in outcome or ():
                if pops:
                    found.add((position, pops - 1, nonterminal))
                    continue
                after = pushed(cell, nonterminal, which, position)
                if after is None:
                    return None
                found |= after
            return None if outcome is None else frozenset(found)

        def situations(above: Situation | None) -> Iterator[Situation]:
            if above is None:
                for top in self.tops(claim.context):
                    yield top, tuple(self._outcome((top,), 0, word) for word in words)
                return
            for cell in self.tables.below[above[0]]:
                yield cell, tuple(below(cell, which, outcome) for which, outcome in enumerate(above[1]))

        agenda: list[Situation | None] = [None]
        try:
            for above in agenda:  # grows while it is read
                look()
                for situation in situations(above):
                    cell, outcomes = situation
                    if not any(outcomes):
                        if not claim.allows([outcome is None for outcome in outcomes]):
                            yield cell, above
                    elif situation not in nodes:
                        nodes[situation] = above
                        agenda.append(situation)
                if len(nodes) > MAX_NODES:
                    raise self._too_large(claim)
        except TooManyFragmentsError:
            raise self._too_large(claim) from None

    def _too_large(self, claim: Claim) -> LimitError:
        shown = " / ".join(" ".join(map(self.grammar.display_name, word)) for word in claim.sequences)
        return LimitError(
            f"grammar {self.grammar.name}: deciding whether {shown} is {claim.kind} legal takes more than {MAX_NODES} situations, "
            f"or {MAX_FRAGMENTS} stacks in one of them; ask about a shorter sequence, or make the grammar less ambiguous"
        )

    def _outcome(self, fragment: Fragment, position: int, word: Sequence[int]) -> Outcome:
        """The outcome of word[position:] if only the top part of a stack is known."""
        pending: set[tuple[int, int, int]] = set()
        stacks = {fragment}
        n_more = 0  # than one at each position
        for at in range(position, len(word)):
            readings = [self._fragments.read(stack, word[at]) for stack in stacks] if word[at] >= 0 else []
            pending.update((at, pops, nonterminal) for one in readings for pops, nonterminal in one.pending)
            stacks = {after for one in readings for after in one.shifted}
            if not stacks:
                return frozenset(pending)
            n_more += len(stacks) - 1
            if n_more > MAX_FRAGMENTS:
                raise TooManyFragmentsError
        return None

    def _witness(
        self, claim: Claim, cell: int, above: Situation | None, nodes: dict[Situation, Situation | None]
    ) -> Witness:
        """The witness of what `_refuting` yields: a whole stack, and a text for it."""
        cells = [cell]  # from the deepest upwards
        while above is not None:
            cells.append(above[0])
            above = nodes[above]
        below: list[int] = []
        state = cells[0]
        while state:
            state = self._shortest_below[state]
            below.append(state)
        stack = (*reversed(below), *cells)
        prefix = tuple(self._yields.of(self._symbols[state] for state in stack[1:]))
        return Witness(claim, stack, prefix, self._simulator.is_real(claim, stack, prefix))

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self.tables)

    @cached_property
    def _yields(self) -> Yields:
        """The words of symbols. Raises: LimitError if one has none of up to _MAX_WORD terminals."""
        found = Yields(self.grammar)
        for symbol, length in enumerate(found.cost):
            if not 0 <= length <= _MAX_WORD:
                raise LimitError(
                    f"grammar {self.grammar.name}: {self.grammar.symbol_name(symbol)} derives no text of up to {_MAX_WORD} "
                    "terminals, so no witness can be shown; `ExactDeciders.holds` answers without witnesses"
                )
        return found

    @cached_property
    def _shortest_below(self) -> dict[int, int]:
        """For each state the one below it on a stack with a shortest text; -1 for the start."""
        above = predecessors(self.tables.below)
        found: dict[int, int] = {}
        agenda = [(0, 0, 0, -1)]
        while agenda:
            length, height, state, below = heapq.heappop(agenda)
            if state not in found:
                found[state] = below
                for target in above[state]:
                    cost = self._yields.cost[self._symbols[target]]
                    heapq.heappush(agenda, (length + cost, height + 1, target, state))
        return found


def _as_pending(outcome: Outcome) -> tuple[Pending, ...] | None:
    return None if outcome is None else tuple(Pending(*one) for one in sorted(outcome))
