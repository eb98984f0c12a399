"""The deciders' verdicts with their grounds: a witness, or the closed set that proves the verdict.

Each verdict takes a search in Python, which is much slower than `Deciders.judge`. It is also a
second way to the same answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from maskwright.analysis.arguments import need_type
from maskwright.analysis.kept import cached_property
from maskwright.analysis.legality import _kernels
from maskwright.analysis.legality.deciders import MAX_LENGTH, NEVER, Deciders, Query
from maskwright.analysis.legality.verdict import START, ClosedSet, Context, TerminalSequence, Verdict
from maskwright.analysis.lr.yields import Yields

REFUSING_PATHS = 64
"""The most refusing paths that are tried to find a text that refutes an always-verdict."""

State = tuple[int, int, int]
"""A symbol just completed, and the remainders of premise and conclusion as bit masks.

See `_kernels.implies`.
"""

DerivationPath = tuple[int, ...]
"""A derivation path: the items after the occurrences passed."""


class Explainer:
    """Explains the verdicts of some deciders.

    A context is a tuple as for `Deciders`. A sequence and the context's members after the first
    must have at most MAX_LENGTH terminals together, unless a method says otherwise.

    Raises: MaskwrightError if `deciders` is no `Deciders`.
    """

    def __init__(self, deciders: Deciders) -> None:
        need_type("deciders", deciders, Deciders, "the Deciders of a grammar")
        self.deciders = deciders
        self.grammar = deciders.grammar
        self._table = deciders.table

    @cached_property
    def _yields(self) -> Yields:
        return Yields(self.grammar)

    def never_legal(self, context: Context, sequence: TerminalSequence) -> Verdict:
        """Whether no word has the context followed by the sequence.

        Exact, so `holds` is True or False. True comes with the closed set, unless the reason says
        all; False with terminals after which the sequence is legal.
        """
        text = self._text(context, sequence)
        if not self.deciders.is_never_legal(context, sequence):
            reason = f"some word goes on with {text} after the witness"
            return Verdict(False, "never_legal", reason, self._names(self._legal_prefix(context, sequence)))
        for left, right in pairwise((*context, *sequence)):
            if self.deciders.pairs[left, right] == NEVER:
                pair = self._text((left,), (right,))
                return Verdict(True, "follow graph", f"no word has {pair} side by side")
        if not context or context[0] == START:
            return Verdict(True, "never_legal", f"the rules derive no word with {text}")
        states, _ = self._explore(context[0], (), context[1:] + sequence, refusing_too=False)
        reason = f"no derivation path from {self._text((), context[:1])} reads the rest of {text}"
        return Verdict(True, "never_legal", reason, (), self._closed_set(states, context[1:] + sequence))

    def always_legal(self, context: Context, sequence: TerminalSequence) -> Verdict:
        """Whether every text that ends in the context can go on with the sequence.

        `holds` is True with the closed set, unless the reason says all; False with a text that
        cannot go on with the sequence; None if the decider cannot tell. It is None too for more
        than MAX_LENGTH terminals.
        """
        return self._implied("always_legal", context, (), sequence)

    def jointly_legal(self, context: Context, first: TerminalSequence, second: TerminalSequence) -> Verdict:
        """Whether after each text that ends in the context both sequences are legal or neither is.

        `holds` as in `always_legal`. A witness ends in the sequence that is legal.
        """
        one = self._implied("jointly_legal", context, first, second)
        other = self._implied("jointly_legal", context, second, first)
        for verdict in (one, other):
            if verdict.holds is not True:
                return verdict
        reason = f"each is legal wherever the other is: {one.reason}; {other.reason}"
        return Verdict(True, "jointly_legal", reason, (), tuple(sorted({*one.closed_set, *other.closed_set})))

    def _implied(
        self, decider: str, context: Context, premise: TerminalSequence, conclusion: TerminalSequence
    ) -> Verdict:
        """Whether the conclusion is legal wherever the premise is, after texts of the context.

        The verdict's witness includes the premise.
        """
        text = self._text((), conclusion)
        after = f"after {self._text((), context) or 'anything'}" + (f" {self._text((), premise)}" if premise else "")
        if conclusion == premise[: len(conclusion)]:
            return Verdict(True, "prefix", f"{text or 'the empty sequence'} is a prefix of what is already legal")
        if not context:
            for left in (START, *self.deciders.live_terminals):
                verdict = self._implied(decider, (left,), premise, conclusion)
                if verdict.holds is not True:
                    return verdict
            return Verdict(True, decider, f"{text} is legal {after}: after each terminal and at the start")
        left, first, second = context[0], context[1:] + premise, context[1:] + conclusion
        if max(len(first), len(second)) > MAX_LENGTH:
            return Verdict(None, decider, f"the sequence is longer than {MAX_LENGTH} terminals")
        if context == (START,):
            legal = not self.deciders.is_never_legal(context, conclusion)
            if legal or self.deciders.is_never_legal(context, premise):
                reason = f"the start of the text settles it: {text} is {'' if legal else 'not '}legal there"
                return Verdict(True, decider, reason)
            return Verdict(False, decider, f"{text} is not legal at the start of the text", self._names(premise))
        if context[0] == START:
            return self._implied(decider, (START,), first, second)
        states, refusing = self._explore(left, first, second)
        if not refusing:
            closed = self._closed_set(states, second)
            return Verdict(True, decider, f"every derivation path {after} reads {text}", (), closed)
        if self.deciders.prover().implies_from_before(left, first, second):
            reason = f"at the start and after each terminal, whatever reads {self._text((), (left,))} can read {text} {after}"
            return Verdict(True, decider, reason, (), self._closed_from_before((left, *first), (left, *second)))
        begun = [(*self._prefix(path), left, *first) for path in refusing]
        for prefix in begun:
            full = prefix[: len(prefix) - len(premise)] + conclusion
            if len(full) > MAX_LENGTH or self.deciders.is_never_legal((START,), prefix):
                continue
            if self.deciders.is_never_legal((START,), full):
                return Verdict(False, decider, f"{text} is refused after the witness", self._names(prefix))
        reason = f"one reading of the witness refuses {text}; another may accept it"
        return Verdict(None, decider, reason, self._names(begun[0]))

    def _explore(
        self, left: int, premise: TerminalSequence, conclusion: TerminalSequence, *, refusing_too: bool = True
    ) -> tuple[list[State], list[DerivationPath]]:
        """All states that derivation paths from `left` reach before they accept the conclusion.

        refusing_too : False leaves out states in which the path has refused the conclusion. No
            refusing paths are found then.

        Returns the states, and the shortest paths that accept the premise and refuse the
        conclusion. The search stops once it has found REFUSING_PATHS of them.
        """
        holds, wanted = self.deciders.levels(premise), self.deciders.levels(conclusion)
        start: State = (left, 1 << len(premise), 1 << len(conclusion))
        paths: dict[State, DerivationPath] = {start: ()}
        refusing: list[DerivationPath] = []
        agenda = deque([start])
        table = self._table
        while agenda and len(refusing) < REFUSING_PATHS:
            state = agenda.popleft()
            symbol, held, want = state
            if refusing_too and symbol == self.grammar.start and held & 1:
                refusing.append(paths[state])
            begin, end = table.occurrence_start[symbol : symbol + 2].tolist()
            for item in table.occurrences[begin:end].tolist():
                next_want = int(_kernels.advance(wanted, want, item + 1)) if want else 0
                if next_want & 1:
                    continue
                next_held = 1 if held & 1 else int(_kernels.advance(holds, held, item + 1))
                next_held = 1 if next_held & 1 else next_held
                if not next_held or (not next_want and not refusing_too):
                    continue
                path = (*paths[state], item + 1)
                if not next_want and next_held == 1:
                    refusing.append(path)
                    continue
                after: State = (int(table.lhs[item]), next_held, next_want)
                if after not in paths:
                    paths[after] = path
                    agenda.append(after)
        return list(paths), refusing

    def _closed_from_before(self, premise: TerminalSequence, conclusion: TerminalSequence) -> ClosedSet:
        """The closed set that proves `Prover.implies_from_before` after every terminal."""
        can_follow = self.deciders.levels(premise).can_follow[len(premise), : self.grammar.n_terminals]
        befores = np.flatnonzero(can_follow).tolist()
        states = [state for terminal in befores for state in self._explore(terminal, premise, conclusion)[0]]
        return self._closed_set(states, conclusion)

    def _prefix(self, path: Iterable[int]) -> tuple[int, ...]:
        """A shortest string of terminals to the left of the derivation path's beginning."""
        symbols: list[int] = []  # from right to left
        for item in path:
            before = item - 2
            while before >= 0 and self._table.next_symbol[before] >= 0:
                symbols.append(int(self._table.next_symbol[before]))
                before -= 1
        return tuple(self._yields.of(symbols[::-1]))

    def _legal_prefix(self, context: Context, sequence: TerminalSequence) -> tuple[int, ...]:
        """Terminals that end in the context and after which the sequence is legal."""
        if not context:
            lefts = (START, *self.deciders.live_terminals)
            left = next(left for left in lefts if not self.deciders.is_never_legal((left,), sequence))
            return self._legal_prefix((left,), sequence)
        if context[0] == START:
            return context[1:]
        (path,) = self.deciders.witness_paths([Query(context[0], context[1:] + sequence)])
        return (*self._prefix(item for item in path.tolist() if item >= 0), *context)

    def _closed_set(self, states: list[State], conclusion: TerminalSequence) -> ClosedSet:
        """The states in names: each symbol with the remainders of the conclusion, longest first."""
        rests = [(len(conclusion) - at, self._names(conclusion[at:])) for at in range(len(conclusion))]
        named = {
            (self.grammar.symbol_name(symbol), tuple(rest for length, rest in rests if want >> length & 1))
            for symbol, _, want in states
        }
        return tuple(sorted(named))

    def _names(self, terminals: Iterable[int]) -> tuple[str, ...]:
        return tuple("START" if t == START else self.grammar.symbol_name(t) for t in terminals)

    def _text(self, context: Context, sequence: TerminalSequence) -> str:
        return " ".join(self._names((*context, *sequence)))
