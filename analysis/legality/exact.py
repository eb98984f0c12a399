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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality import _exact_kernels as kernels
from maskwright.analysis.legality.certificate import (
    AnyContext,
    Certificate,
    Claim,
    Kind,
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
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.analysis.lr.yields import Yields

Case: TypeAlias = tuple[AnyContext, TerminalSequence] | tuple[AnyContext, TerminalSequence, TerminalSequence]
"""A context and a sequence; for "jointly" a context and two sequences."""

MAX_NODES = 1 << 22
"""Nodes of one claim's search; past this limit it raises a LimitError."""

MAX_ALTERNATIVES = 1 << 13
"""Alternative stacks of one node, past which the search raises a LimitError.

Only grammars with conflicts have any.
"""

_CHUNK = 4096
_FIRST_ROOM = 12
_ABOVE, _REDUCED = 1 << 10, 1 << 16
_MAX_WORD = 100_000
_WITNESSES = 64


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
    """The exact deciders of one grammar. Thread-safe: each call has its own scratch space.

    A context is a tuple as for `Deciders`: () for anywhere (the start and after every terminal),
    (START,), (X,), (X, Y) and so on, the nearest terminal last. It may also be an `LrState`: a
    claim is then about the stacks with this state on top, and nothing else.

    conflicts : what the parser does where the grammar is not LALR(1), see `build_lr_tables`.
    grammar : the grammar. As an attribute: the rules that the tables are of, see `parsed_grammar`.
    tables : the grammar's LALR(1) tables.

    Raises: whatever `build_lr_tables` raises; LimitError if a rule's length or the number of
    nonterminals is 2**20 or more.
    """

    def __init__(self, grammar: Grammar, conflicts: Conflicts = "all") -> None:
        self.grammar = parsed_grammar(grammar, conflicts)
        self.tables: LrTables = build_lr_tables(grammar, conflicts)
        tables = self.tables
        if max(tables.goto.shape[1], int(tables.rule_length.max(initial=0))) >= 1 << kernels.FIELD_BITS:
            raise LimitError(
                f"grammar {grammar.name} has a rule of {1 << kernels.FIELD_BITS} or more symbols, or as many nonterminals"
            )
        self._tables = kernels.Tables(*(getattr(tables, name) for name in kernels.Tables._fields))
        self._columns: list[int] = tables.terminal_column.tolist()

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

        Raises: LimitError past MAX_NODES nodes or MAX_ALTERNATIVES stacks, for 2**20 terminals or
        more, and if no witness can be shown because some symbol's shortest text is too long.
        MaskwrightError for a terminal or an LR state that does not exist.

        Cost: O(nodes * predecessors), below 1 ms for most claims about python.lark.
        """
        scratch, found = self._explore([claim], 1)
        if not found[0, 1]:
            return ExactVerdict(True, True, Proof(claim, self._nodes(claim, scratch, int(found[0, 0]))))
        witness = self._witness(claim, scratch, 0)
        if not witness.is_real:
            # all stacks of this text together do not refute the claim; another text's may
            scratch, found = self._explore([claim], _WITNESSES)
            others = (self._witness(claim, scratch, number) for number in range(int(found[0, 1])))
            witness = next((other for other in others if other.is_real), witness)
        return ExactVerdict(False, witness.is_real, witness)

    def judge(
        self, kind: Kind, cases: Sequence[Case], progress: Callable[[int], None] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Whether the claim of this kind holds on all feasible stacks, for each case.

        progress : called with the number of cases judged since the last call.

        Returns (n_cases,) bool. There are no certificates.

        Raises: MaskwrightError for an unknown kind, a case with a wrong number of members, and a
        terminal or an LR state that does not exist. LimitError as `decide`, but not for witnesses.

        Cost: as `decide`, 5 to 100 us a case for python.lark (reports/bench/exact_deciders.py).
        """
        holds = np.zeros(len(cases), np.bool_)
        for begin in range(0, len(cases), _CHUNK):
            claims = [_claim(kind, case) for case in cases[begin : begin + _CHUNK]]
            _, found = self._explore(claims, 1)
            holds[begin : begin + len(claims)] = found[:, 1] == 0
            if progress is not None:
                progress(len(claims))
        return holds

    def tops(self, context: AnyContext) -> npt.NDArray[np.int32]:
        """The states on top of the feasible stacks after the context's first member.

        Returns (n,) int32, ascending.

        Raises: MaskwrightError if the LR state or the terminal does not exist.
        """
        accessing, n_terminals = self.tables.accessing, self.tables.n_terminals
        if isinstance(context, LrState):
            if not 0 <= context.number < len(accessing):
                raise MaskwrightError(f"there is no LR state {context.number}; the tables have {len(accessing)} states")
            return np.array([context.number], np.int32)
        if not context:
            found = (accessing >= 0) & (accessing < n_terminals)
            found[0] = True
            return np.flatnonzero(found).astype(np.int32)
        if context[0] == START:
            return np.zeros(1, np.int32)
        column = self._column(context[0])
        return np.flatnonzero((accessing == column) & (column >= 0)).astype(np.int32)

    def _column(self, terminal: int) -> int:
        """The tables' column of a terminal; -1 if it occurs in no rule that a text can use."""
        if not 0 <= terminal < len(self._columns):
            raise MaskwrightError(
                f"grammar {self.grammar.name} has no terminal number {terminal}; expected 0 to {len(self._columns) - 1}"
            )
        return self._columns[terminal]

    def _word(self, word: TerminalSequence) -> list[int]:
        """The columns of a word's terminals."""
        if len(word) >= 1 << kernels.FIELD_BITS:
            raise LimitError(
                f"a sequence of {len(word)} terminals cannot be judged; the limit is {1 << kernels.FIELD_BITS}"
            )
        return [self._column(terminal) for terminal in word]

    def _explore(self, claims: Sequence[Claim], wanted: int) -> tuple[kernels.Scratch, npt.NDArray[np.int64]]:
        """Search the nodes of claims of one kind, each until `wanted` bad ones are met.

        Returns the scratch space, which holds the nodes of the last claim, and (n_claims, 2) int64:
        the numbers of nodes and of bad ones.
        """
        mode = kernels.NEVER_MODE if claims[0].kind == "never" else kernels.SAME_MODE
        columns, parts, tops = self._flatten(claims)
        found = np.zeros((len(claims), 2), np.int64)
        room, done = _FIRST_ROOM, 0
        while True:
            scratch = _new_scratch(room, wanted)
            done = kernels.explore(self._tables, scratch, columns, parts, tops, mode, done, found)
            if done == len(claims):
                return scratch, found
            room = self._more_room(room, claims[done])

    def _more_room(self, room: int, claim: Claim) -> int:
        """The next greater room. Raises LimitError past MAX_NODES."""
        if 1 << (room + 2) > MAX_NODES:
            words = " / ".join(" ".join(map(self.grammar.display_name, word)) for word in claim.sequences)
            raise LimitError(
                f"grammar {self.grammar.name}: deciding whether {words} is {claim.kind} legal takes more than {MAX_NODES} situations, "
                f"or {MAX_ALTERNATIVES} stacks in one of them; ask about a shorter sequence, or make the grammar less ambiguous"
            )
        return room + 2

    def _flatten(
        self, claims: Sequence[Claim]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """`columns`, `parts` and `all_tops` of `kernels.explore`. Equal words are stored once."""
        columns: list[int] = []
        span: dict[TerminalSequence, tuple[int, int]] = {}
        tops: list[npt.NDArray[np.int32]] = []
        span_of_tops: dict[AnyContext, tuple[int, int]] = {}
        n_tops = 0
        parts = np.zeros((len(claims), 6), np.int64)
        for number, claim in enumerate(claims):
            words = claim.words()
            for word in words:
                if word not in span:
                    span[word] = (len(columns), len(columns) + len(word))
                    columns += self._word(word)
            # the words contain the context's later members
            key = claim.context[:1] if isinstance(claim.context, tuple) else claim.context
            if key not in span_of_tops:
                tops.append(self.tops(key))
                span_of_tops[key] = (n_tops, n_tops + len(tops[-1]))
                n_tops += len(tops[-1])
            parts[number] = (*span[words[0]], *span[words[-1]], *span_of_tops[key])
        return np.array(columns, np.int32), parts, np.concatenate([np.zeros(0, np.int32), *tops])

    @staticmethod
    def _nodes(claim: Claim, scratch: kernels.Scratch, n_nodes: int) -> tuple[Node, ...]:
        """The nodes of a finished search, in the order found."""
        n_words = len(claim.words())
        mask = (1 << kernels.FIELD_BITS) - 1
        outcomes: dict[int, tuple[tuple[Pending, ...] | None, ...]] = {}
        for configuration_set in scratch.nodes[:n_nodes, 0].tolist():
            if configuration_set in outcomes:
                continue
            flags = int(scratch.configuration_sets[configuration_set, 1])
            members: list[list[Pending]] = [[] for _ in range(n_words)]
            for packed in scratch.pending[
                scratch.configuration_sets[configuration_set, 0] : scratch.configuration_sets[configuration_set + 1, 0]
            ].tolist():
                fields = (packed >> (i * kernels.FIELD_BITS) & mask for i in (2, 1, 0))
                members[packed >> (3 * kernels.FIELD_BITS)].append(Pending(*fields))
            outcomes[configuration_set] = tuple(
                None if flags >> tag & 1 else tuple(members[tag]) for tag in range(n_words)
            )
        return tuple(
            Node(cell, outcomes[configuration_set]) for configuration_set, cell, _ in scratch.nodes[:n_nodes].tolist()
        )

    def _witness(self, claim: Claim, scratch: kernels.Scratch, number: int) -> Witness:
        """The witness of a bad node: its cells, completed to a whole stack, and a text for it.

        number : index into `scratch.bad`.
        """
        node, cell = scratch.bad[number].tolist()
        cells = [cell]  # from the deepest upwards
        while node >= 0:
            _, cell, node = scratch.nodes[node].tolist()
            cells.append(cell)
        below: list[int] = []
        state = cells[0]
        while state:
            state = self._shortest_below[state]
            below.append(state)
        stack = (*reversed(below), *cells)
        terminals = self.grammar.n_terminals
        accessing = self.tables.accessing[list(stack[1:])].tolist()
        symbols = [symbol if symbol < terminals else symbol - 1 for symbol in accessing]
        prefix = tuple(self._yields.of(symbols))
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
                    "terminals, so no witness can be shown; `judge` answers without witnesses"
                )
        return found

    @cached_property
    def _shortest_below(self) -> list[int]:
        """For each state the one below it on a stack with a shortest text; -1 for the start.

        -2 for a state that no stack reaches.
        """
        tables, n_terminals = self.tables, self.grammar.n_terminals
        above: list[list[int]] = [[] for _ in range(tables.action.shape[0])]
        for state in range(len(above)):
            for below in tables.below[state]:
                above[below].append(state)
        cost = [
            0 if symbol < 0 else self._yields.cost[symbol if symbol < n_terminals else symbol - 1]
            for symbol in tables.accessing.tolist()
        ]
        found = [-2] * len(above)
        agenda = [(0, 0, 0, -1)]
        while agenda:
            length, height, state, below = heapq.heappop(agenda)
            if found[state] != -2:
                continue
            found[state] = below
            for target in above[state]:
                if found[target] == -2:
                    heapq.heappush(agenda, (length + cost[target], height + 1, target, state))
        return found


def _claim(kind: Kind, case: Case) -> Claim:
    """The claim of a case.

    Raises MaskwrightError for an unknown kind, and a case with a wrong number of members.
    """
    if kind not in ("never", "always", "jointly"):
        raise MaskwrightError(f"kind is {kind!r}; expected never, always or jointly")
    if len(case) != (3 if kind == "jointly" else 2):
        raise MaskwrightError(
            f"a case of kind {kind} has {len(case)} members; expected {3 if kind == 'jointly' else 2}"
        )
    return Claim(kind, case[0], tuple(case[1:]))


def _new_scratch(room: int, wanted: int) -> kernels.Scratch:
    """Scratch space for 2**room nodes, the other arrays in proportion. All stamps are 0."""
    n, depth = 1 << room, 1 << (room - 4)
    return kernels.Scratch(
        configuration_sets=np.zeros((n + 1, 2), np.int64),
        set_slots=np.zeros((2 * n, 2), np.int64),
        pending=np.zeros(4 * n, np.int64),
        nodes=np.zeros((n, 3), np.int32),
        node_slots=np.zeros((4 * n, 2), np.int64),
        stack=np.zeros(depth, np.int32),
        others=np.zeros(8 * n, np.int32),
        other_ends=np.zeros((min(n // 16, MAX_ALTERNATIVES), 3), np.int64),
        bad=np.zeros((wanted, 2), np.int32),
        above=np.zeros((_ABOVE, 3), np.int64),
        reduced=np.full((_REDUCED, 2), -1, np.int64),
    )
