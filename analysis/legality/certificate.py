"""Certificates of exact verdicts, and a checker that need not trust a decider.

A claim is about all *feasible* stacks of a context: the paths of the LR automaton from its start
whose top the context gives. We read such a stack from the top, one cell at a time. A *node* is a
situation between two cells, in which the claim is undecided. A *proof* lists all nodes that can
arise. It is right if each successor of a node is in the list, or is decided as the claim says
(closure). A *witness* is one stack for which the claim fails, with terminals that lead to it.

`check_certificate` verifies both with sets of plain tuples, on tables turned into dictionaries. It
shares no stepping code with `exact`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.verdict import START, Context, TerminalSequence
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT, LrTables

Kind = Literal["never", "always", "jointly"]
Stack = tuple[int, ...]
"""LR states, the bottom first."""

STACK_LIMIT = 10_000
"""Stacks of one text. Past this limit the grammar counts as too ambiguous to replay the text."""


class CertificateError(MaskwrightError):
    """A certificate does not prove its claim. The message names the first error in it."""


@dataclass(frozen=True, slots=True)
class LrState:
    """As a context: all feasible stacks with this LR state on top.

    It is the finest context that a parser can tell apart without reading deeper.

    number : the state.
    """

    number: int


AnyContext: TypeAlias = Context | LrState


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a context, to be proved or refuted.

    kind : "never", the sequence is legal on no feasible stack of the context; "always", it is legal
        on all; "jointly", two sequences are legal on the same ones.
    context : terminals, the nearest last, or an `LrState`; see `ExactDeciders`.
    sequences : one sequence; two for "jointly".
    """

    kind: Kind
    context: AnyContext
    sequences: tuple[TerminalSequence, ...]

    def words(self) -> tuple[TerminalSequence, ...]:
        """The words that the parser reads on a stack after the context's first member.

        Each is the context's other members, followed by a sequence. For "always" there is another
        word before it, the other members alone: a stack that does not accept them does not belong
        to the context.

        Example: always_legal(X Y, S) has the words Y and Y S.
        """
        remainder = self.context[1:] if isinstance(self.context, tuple) else ()
        wholes = tuple(remainder + sequence for sequence in self.sequences)
        return (remainder, *wholes) if self.kind == "always" else wholes

    def allows(self, accepted: Sequence[bool]) -> bool:
        """Whether the claim holds on a stack.

        accepted : for each of the claim's words whether the stack accepts it.
        """
        return not accepted[0] if self.kind == "never" else accepted[0] == accepted[1]


@dataclass(frozen=True, slots=True, order=True)
class Pending:
    """A reduction under way, which waits for the next cell of the stack.

    position : the number of the word's terminals read before it.
    pops : the number of unknown cells that it still pops.
    nonterminal : the index of the nonterminal that it pushes on the cell after these.
    """

    position: int
    pops: int
    nonterminal: int


@dataclass(frozen=True, slots=True)
class Node:
    """A situation while a stack is read from the top.

    cell : the LR state read last.
    outcomes : for each word of the claim the pending reductions, of which one must go on to accept
        the word. () if the word is refused; None if it is accepted whatever lies below.
    """

    cell: int
    outcomes: tuple[tuple[Pending, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof that the claim holds on every feasible stack.

    nodes : all undecided situations that reading a feasible stack leads to.
    """

    claim: Claim
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Witness:
    """A feasible stack on which the claim does not hold.

    stack : LR states, the bottom first.
    prefix : terminals that lead to the stack, without the context's members after the first.
    is_real : whether a parser that follows every action refutes the claim after this prefix, on all
        stacks that the prefix leads to. Always True without conflicts. A claim about an LR state is
        about stacks, so for it the one stack suffices.
    """

    claim: Claim
    stack: Stack
    prefix: TerminalSequence
    is_real: bool

    @property
    def text(self) -> TerminalSequence:
        """The terminals after which the claim is refuted.

        These are the prefix and the context's members after the first.
        """
        remainder = self.claim.context[1:] if isinstance(self.claim.context, tuple) else ()
        return self.prefix + remainder


Certificate: TypeAlias = Proof | Witness
Outcome: TypeAlias = "frozenset[Pending] | None"


class Simulator:
    """LR tables as dictionaries, and a plain simulation of the parser that follows every action.

    Methods take the grammar's terminals. Terminals of no rule have no action.

    tables : the LR tables.
    column, lhs, length : `terminal_column`, `rule_lhs` and `rule_length` of the tables as lists.
    shift : for each state, column -> state.
    reductions : for each state, column -> rules.
    go : for each state, nonterminal index -> state.
    below : for each state the states that can lie directly below it.
    """

    def __init__(self, tables: LrTables) -> None:
        self.n_terminals = tables.n_terminals
        alternatives = tables.alternatives.tolist()
        self.column: list[int] = tables.terminal_column.tolist()
        self.lhs: list[int] = tables.rule_lhs.tolist()
        self.length: list[int] = tables.rule_length.tolist()
        self.shift: list[dict[int, int]] = []
        self.reductions: list[dict[int, list[int]]] = []
        self.go: list[dict[int, int]] = []
        self.below: list[set[int]] = [set() for _ in range(tables.action.shape[0])]
        for state, (row, gotos) in enumerate(zip(tables.action.tolist(), tables.goto.tolist(), strict=True)):
            shifts: dict[int, int] = {}
            reductions: dict[int, list[int]] = {}
            for column, action in enumerate(row[: tables.n_terminals]):
                start = action - CONFLICT + 1
                actions = alternatives[start : start + alternatives[start - 1]] if action >= CONFLICT else [action]
                for one in actions:
                    if 0 < one < ACCEPT:
                        shifts[column] = one - 1
                    elif one < 0:
                        reductions.setdefault(column, []).append(-one - 1)
            self.shift.append(shifts)
            self.reductions.append(reductions)
            self.go.append({nonterminal: target for nonterminal, target in enumerate(gotos) if target >= 0})
            for target in [*shifts.values(), *self.go[state].values()]:
                self.below[target].add(state)

    def tops(self, context: AnyContext) -> frozenset[int]:
        """The states on top of the feasible stacks after the context's first member.

        Raises: CertificateError if the LR state or the terminal does not exist.
        """
        if isinstance(context, LrState):
            if not 0 <= context.number < len(self.shift):
                raise CertificateError(
                    f"there is no LR state {context.number}; the tables have {len(self.shift)} states"
                )
            return frozenset({context.number})
        if context and context[0] == START:
            return frozenset({0})
        if not context:
            return frozenset({0, *(target for shifts in self.shift for target in shifts.values())})
        column = self._column(context[0])
        return frozenset(shifts[column] for shifts in self.shift if column in shifts)

    def _column(self, terminal: int) -> int:
        """The tables' column of a terminal. Raises CertificateError if it does not exist."""
        if not 0 <= terminal < len(self.column):
            raise CertificateError(f"there is no terminal {terminal}; the tables have {len(self.column)} terminals")
        return self.column[terminal]

    def outcome_of(self, fragment: Stack, position: int, word: TerminalSequence) -> Outcome:
        """The outcome of word[position:] if only the top part of the stack is known.

        fragment : the known LR states, the top last.

        Returns None if the word is accepted, else the pending reductions; none of them if it is
        refused.

        Raises: LimitError past STACK_LIMIT steps. CertificateError if a terminal does not exist.
        """
        seen = {(fragment, position)}
        agenda = [(fragment, position)]
        pending: set[Pending] = set()
        while agenda:
            known, at = agenda.pop()
            if at == len(word):
                return None
            column = self._column(word[at])
            after: list[tuple[Stack, int]] = []
            if column in self.shift[known[-1]]:
                after.append(((*known, self.shift[known[-1]][column]), at + 1))
            for rule in self.reductions[known[-1]].get(column, ()):
                kept = known[: max(0, len(known) - self.length[rule])]
                if kept:
                    after.append(((*kept, self.go[kept[-1]][self.lhs[rule]]), at))
                else:
                    pending.add(Pending(at, self.length[rule] - len(known), self.lhs[rule]))
            for new in after:
                if new not in seen:
                    seen.add(new)
                    agenda.append(new)
            if len(seen) > STACK_LIMIT:
                raise LimitError(
                    f"reading {len(word)} terminals takes more than {STACK_LIMIT:,} steps of the parser; ask about fewer of them, or make "
                    "the grammar less ambiguous"
                )
        return frozenset(pending)

    def read_cell(self, outcome: Outcome, cell: int, word: TerminalSequence) -> Outcome:
        """The outcome of the word once the next cell of the stack is known too.

        Raises: CertificateError if a pending reduction has no goto on the cell; and as
        `outcome_of`.
        """
        if outcome is None:
            return None
        found: set[Pending] = set()
        for one in outcome:
            if one.pops:
                found.add(Pending(one.position, one.pops - 1, one.nonterminal))
                continue
            if one.nonterminal not in self.go[cell]:
                raise CertificateError(f"state {cell} has no goto on nonterminal {one.nonterminal}: {one} cannot arise")
            settled = self.outcome_of((cell, self.go[cell][one.nonterminal]), one.position, word)
            if settled is None:
                return None
            found |= settled
        return frozenset(found)

    def parse(self, stacks: Iterable[Stack], word: TerminalSequence) -> frozenset[Stack]:
        """The stacks after a word, with all actions followed. There are none if it is refused.

        stacks : whole stacks, the bottom first.

        Raises: LimitError past STACK_LIMIT stacks. CertificateError if a terminal does not exist.
        """
        now = frozenset(stacks)
        for terminal in word:
            column = self._column(terminal)
            reduced = set(now)
            agenda = list(now)
            while agenda:
                stack = agenda.pop()
                for rule in self.reductions[stack[-1]].get(column, ()):
                    kept = stack[: len(stack) - self.length[rule]]
                    after = (*kept, self.go[kept[-1]][self.lhs[rule]])
                    if after not in reduced:
                        reduced.add(after)
                        agenda.append(after)
                if len(reduced) > STACK_LIMIT:
                    raise LimitError(f"a text of {len(word)} terminals has more than {STACK_LIMIT} parser stacks")
            now = frozenset(
                (*stack, self.shift[stack[-1]][column]) for stack in reduced if column in self.shift[stack[-1]]
            )
        return now

    def is_real(self, claim: Claim, stack: Stack, prefix: TerminalSequence) -> bool:
        """Whether the parser that follows every action refutes the claim after the prefix.

        It considers all stacks that the prefix leads to. For a claim about an LR state it considers
        only the given stack. False as well if there are more than STACK_LIMIT stacks.

        Raises: CertificateError if a terminal does not exist.
        """
        try:
            stacks = {stack} if isinstance(claim.context, LrState) else self.parse({(0,)}, prefix)
            return not claim.allows([bool(self.parse(stacks, word)) for word in claim.words()])
        except LimitError:
            return False


def check_certificate(tables: LrTables | Simulator, certificate: Certificate) -> None:
    """Verify that a certificate proves or refutes its claim; return nothing.

    A `Proof` must show that the claim holds on every feasible stack of the tables. A `Witness` must
    be a feasible stack on which it fails. The module `exact` says what that means for the grammar's
    language.

    tables : the grammar's LR tables. A `Simulator` of them saves time with many certificates.

    Raises: CertificateError with the first error in the certificate, a member of another type
    included. LimitError if a word has more than STACK_LIMIT parses.

    Cost: O(nodes * predecessors), some microseconds each.
    """
    _check_types(certificate)
    simulator = Simulator(tables) if isinstance(tables, LrTables) else tables
    if certificate.claim.kind not in ("never", "always", "jointly"):
        raise CertificateError(f"the claim is of kind {certificate.claim.kind!r}; expected never, always or jointly")
    expected = 2 if certificate.claim.kind == "jointly" else 1
    if len(certificate.claim.sequences) != expected:
        raise CertificateError(f"the claim has {len(certificate.claim.sequences)} sequences; expected {expected}")
    if isinstance(certificate, Proof):
        _check_proof(simulator, certificate)
    else:
        _check_witness(simulator, certificate)


def _check_types(certificate: object) -> None:
    """Refuse what no arithmetic can be done with. Raises CertificateError naming the first."""
    if not isinstance(certificate, Proof | Witness) or not isinstance(certificate.claim, Claim):
        raise CertificateError(f"{clip(certificate)} is no certificate; expected a Proof or a Witness of a Claim")
    claim = certificate.claim
    if isinstance(claim.context, LrState):
        _check_numbers("the LR state of the context", (claim.context.number,))
    else:
        _check_numbers("the context", claim.context)
    if not isinstance(claim.sequences, tuple):
        raise CertificateError(f"the claim's sequences are {clip(claim.sequences)}; expected a tuple of them")
    for sequence in claim.sequences:
        _check_numbers("a sequence of the claim", sequence)
    if isinstance(certificate, Witness):
        _check_numbers("the stack", certificate.stack)
        _check_numbers("the prefix", certificate.prefix)
        if not isinstance(certificate.is_real, bool | np.bool_):
            raise CertificateError(f"is_real is {clip(certificate.is_real)}; expected True or False")
        return
    if not isinstance(certificate.nodes, tuple):
        raise CertificateError(f"the proof's nodes are {clip(certificate.nodes)}; expected a tuple of them")
    for node in certificate.nodes:
        if not isinstance(node, Node) or not isinstance(node.outcomes, tuple):
            raise CertificateError(f"the proof has {clip(node)}; expected a node with a tuple of outcomes")
        _check_numbers("the cell of a node", (node.cell,))
        for outcome in node.outcomes:
            for one in () if outcome is None else outcome if isinstance(outcome, tuple | frozenset) else (outcome,):
                if not isinstance(one, Pending):
                    raise CertificateError(
                        f"a node has the outcome {clip(outcome)}; expected None or a tuple of Pending"
                    )
                _check_numbers("a pending reduction", (one.position, one.pops, one.nonterminal))


def _check_numbers(what: str, found: object) -> None:
    if not isinstance(found, tuple) or not all(isinstance(each, Integral) for each in found):
        raise CertificateError(f"{what} is {clip(found)}; expected a tuple of integers")


def _check_proof(simulator: Simulator, proof: Proof) -> None:
    words = proof.claim.words()
    listed = {(node.cell, tuple(o if o is None else frozenset(o) for o in node.outcomes)) for node in proof.nodes}

    def check(cell: int, outcomes: tuple[Outcome, ...], where: str) -> None:
        if any(outcomes):
            if (cell, outcomes) not in listed:
                raise CertificateError(
                    f"the proof is not closed: {where} leads to {outcomes} on state {cell}, which is not listed"
                )
        elif not proof.claim.allows([outcome is None for outcome in outcomes]):
            accepted = [outcome is None for outcome in outcomes]
            raise CertificateError(
                f"the claim fails: {where} leads to state {cell}; which words are accepted there: {accepted}"
            )

    for top in sorted(simulator.tops(proof.claim.context)):
        check(top, tuple(simulator.outcome_of((top,), 0, word) for word in words), f"the stack's top {top}")
    for node in proof.nodes:
        if not 0 <= node.cell < len(simulator.below) or len(node.outcomes) != len(words):
            raise CertificateError(f"{node} is not a situation of the claim")
        pairs = [(o if o is None else frozenset(o), word) for o, word in zip(node.outcomes, words, strict=True)]
        if not all(0 <= one.position < len(word) and one.pops >= 0 for outcome, word in pairs for one in outcome or ()):
            raise CertificateError(f"{node} is not a situation of the claim")
        if node.cell == 0 and any(node.outcomes):
            raise CertificateError(f"{node} would pop cells below the bottom of the stack")
        for below in simulator.below[node.cell]:
            check(below, tuple(simulator.read_cell(outcome, below, word) for outcome, word in pairs), str(node))


def _check_witness(simulator: Simulator, witness: Witness) -> None:
    claim, stack = witness.claim, witness.stack
    if not stack or stack[0] != 0:
        raise CertificateError(f"the stack {stack} does not begin at the bottom, state 0")
    for below, above in pairwise(stack):
        if not 0 <= above < len(simulator.below) or below not in simulator.below[above]:
            raise CertificateError(f"the stack {stack} is not feasible: state {above} never lies on state {below}")
    if stack[-1] not in simulator.tops(claim.context):
        raise CertificateError(f"state {stack[-1]} on top of the stack does not belong to the context {claim.context}")
    accepted = [bool(simulator.parse({stack}, word)) for word in claim.words()]
    if claim.allows(accepted):
        raise CertificateError(f"the claim holds on the stack {stack}; which words are accepted there: {accepted}")
    context = claim.context
    first = context[0] if isinstance(context, tuple) and context and context[0] != START else None
    if first is not None and witness.prefix[-1:] != (first,):
        raise CertificateError(f"the prefix {witness.prefix} does not end in the context's terminal {first}")
    if context == (START,) and witness.prefix:
        raise CertificateError(f"the prefix {witness.prefix} is not empty, though the context is the start of the text")
    if simulator.is_real(claim, stack, witness.prefix) != witness.is_real:
        raise CertificateError(f"after the prefix {witness.prefix} the claim is {'not ' * witness.is_real}refuted")


def spell(grammar: Grammar, terminals: Iterable[int], spellings: Sequence[bytes | None] = ()) -> str:
    """A text for a sequence of terminals, to be read by people.

    A literal is written as it is, another terminal as its spelling. A terminal without a spelling
    is written as its name, <NAME>. A blank separates lexemes that would run together. With a
    layout, lines are indented.

    spellings : for each terminal its bytes, such as its shortest string, or None. It may be shorter
        than the list of terminals.

    >>> from maskwright.analysis.grammar.grammar import Rule, Terminal
    >>> key, colon = Terminal("IF", "if", literal="if"), Terminal("COLON", ":", literal=":")
    >>> terminals = (key, Terminal("NAME", "[a-z]+"), colon)
    >>> grammar = Grammar("g", terminals, ("start",), (Rule(3, (0, 1, 2)),), 3)
    >>> spell(grammar, [0, 1, 2], [b"if", b"a", b":"])
    'if a:'
    """
    layout = grammar.layout
    text, last, level, begins_line = "", "", 0, True
    for number in terminals:
        if layout is not None and number in (layout.indent, layout.dedent):
            level += 1 if number == layout.indent else -1
            continue
        if layout is not None and number == layout.newline:
            text += "\n"
            begins_line = True
            continue
        terminal = grammar.terminals[number]
        spelling = spellings[number] if number < len(spellings) else None
        ends = ""
        if terminal.literal is not None:
            lexeme = terminal.literal
        elif spelling is not None:
            lexeme = spelling.decode("utf-8", "backslashreplace")
        else:
            lexeme, ends = f"<{grammar.symbol_name(number)}>", "x"  # a name may stand for anything, mostly for a word
        if begins_line:
            text += "    " * level if layout is not None else ""
        elif last and lexeme and _run_together(last, ends or lexeme[0]):
            text += " "
        text += lexeme
        last = ends or lexeme[-1:] or last
        begins_line = False
    return text


def _run_together(left: str, right: str) -> bool:
    """Whether two lexemes may be read as one where these characters meet."""
    if left.isspace() or right.isspace():
        return False
    is_word = left.isalnum() or left == "_", right.isalnum() or right == "_"
    return is_word[0] == is_word[1] and not (left in "([{)]}," or right in "([{)]},:;")
