"""The step `exact` of streamlining: sequences compared on all stacks of an LR parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.legality.deciders import ANYWHERE
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.lr.encoding import LrTables
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton.configuration_sets import NEVER_LEGAL, ConfigurationSets, explore
from maskwright.maskstore.automaton.exploration_tables import ACCEPTED, check_size
from maskwright.maskstore.entries.walk import SequenceTable, Symbols
from maskwright.maskstore.tokens.continuations import WHATEVER, Continuations
from maskwright.maskstore.tokens.events import EventCodes

EXACT_BYTES = 1 << 28
"""Bytes that the step `exact` may take. A grammar that needs more keeps the result of `joint`."""


@dataclass(frozen=True)
class Group:
    """Sequences after one left symbol that are equal up to their last event: they share a head.

    The parser is in one state before all tails of a group, since the newlines in the head have
    ended at the same columns.

    head : the symbols up to and including the last event; () if there is no event.
    lasts : the terminals (or START) that the parser can have seen last after the head; None if any.
    tails : sequence number -> the symbols after the head, not empty. A newline can only be the last
        symbol of a tail, so the layout inserts nothing inside it.
    """

    left: int
    head: Symbols
    lasts: tuple[int, ...] | None
    tails: dict[int, Symbols]


def exact_groups(
    table: SequenceTable, codes: EventCodes, judge: Judge, pairs: Sequence[tuple[int, int]]
) -> list[Group]:
    """Group (left symbol, sequence number) pairs by left symbol and head.

    Left out are sequences that end in an event, and those with a newline inside the tail.
    """
    groups: dict[tuple[int, Symbols], Group] = {}
    for left, number in pairs:
        symbols = table[number]
        n_head = max((i + 1 for i, symbol in enumerate(symbols) if symbol >= codes.n_terminals), default=0)
        head, tail = symbols[:n_head], symbols[n_head:]
        if not tail or judge.newline in tail[:-1]:
            continue
        group = groups.get((left, head))
        if group is None:
            group = groups[left, head] = Group(left, head, _lasts(codes, judge, left, head), {})
        group.tails[number] = tail
    return list(groups.values())


def _lasts(codes: EventCodes, judge: Judge, left: int, head: Symbols) -> tuple[int, ...] | None:
    """The terminals (or START) that the parser can have seen last after a head; None if any.

    head : empty, or ending in an event.
    """
    layout = judge.layout
    if layout is None:
        return None if left == ANYWHERE else (left,)
    after_newline = (layout.newline, layout.indent, layout.dedent)
    if not head:
        # the newline has ended outside brackets; an indent or dedents may have followed
        return after_newline if left == layout.newline else None if left == ANYWHERE else (left,)
    if left == layout.newline and len(head) == 1 and codes.decode(head[0])[0] != "newline_at":
        return after_newline
    before = head[-2] if len(head) > 1 else left
    if not 0 <= before < codes.n_terminals or before == layout.newline:
        return None
    return (*after_newline, before)  # `before`: brackets are open, so the newline is dropped


_Outcome = tuple[bytes, bytes]
_REFUSED: _Outcome = (b"", b"")
_ACCEPTED: _Outcome = (b"", b"accepted")


class ExactOutcomes:
    """Outcomes of tails: equal if and only if the parser accepts the tails on the same stacks.

    The stacks are the paths of the LR(0) automaton that end in a state which one of the group's
    `lasts` leads to. Every stack on which a parser can stand is one of them. Therefore:

    - tails with equal outcomes in every variant are legal after the same texts;
    - a tail that is refused in every variant is never legal;
    - a tail with the outcomes of its own beginning can always go on from there to its end.

    `ExactDeciders` decides the same questions one at a time, with certificates. Here
    `configuration_sets` compares all sequences at once.
    """

    def __init__(
        self, grammar: Grammar, judge: Judge, groups: Sequence[Group], progress: Callable[[int, int], None] | None
    ) -> None:
        """Explore all variants of all tails.

        Raises: GrammarError if the grammar has no LALR tables. LimitError if the tables are too
        large (`check_size`), or the exploration takes too many steps or more than EXACT_BYTES.
        """
        self.judge = judge
        tables = build_lr_tables(grammar)
        check_size(tables)
        column = tables.terminal_column.tolist()
        continuations = Continuations(tables.action.shape[1])
        self._tops_number = {
            lasts: tops_number for tops_number, lasts in enumerate(dict.fromkeys(group.lasts for group in groups))
        }
        allowed = [_tops(tables, lasts) for lasts in self._tops_number]
        acts = [(tables.action[tops] != 0).any(axis=0).tolist() for tops in allowed]
        self._outcome: dict[tuple[int, Symbols], _Outcome] = {
            (tops_number, ()): _ACCEPTED for tops_number in self._tops_number.values()
        }
        asked: list[tuple[int, Symbols]] = []
        roots: list[tuple[int, int]] = []
        for group in groups:
            tops_number = self._tops_number[group.lasts]
            for word in dict.fromkeys(word for words in self._variants(group).values() for word in words):
                if (tops_number, word) in self._outcome:
                    continue
                self._outcome[tops_number, word] = _REFUSED
                columns = [column[terminal] for terminal in word]
                # a terminal without a column occurs in no word of the language
                if min(columns) >= 0 and acts[tops_number][columns[0]]:
                    asked.append((tops_number, word))
                    roots.append((continuations.before(columns, WHATEVER), tops_number))
        if roots:
            modes = np.zeros(len(tables.action), np.int32)
            configuration_sets = explore(tables, modes, continuations, roots, np.stack(allowed), progress, EXACT_BYTES)
            for root, (tops_number, word) in enumerate(asked):
                self._outcome[tops_number, word] = _outcome(configuration_sets, root, int(allowed[tops_number].sum()))

    def _variants(self, group: Group) -> dict[Symbols, list[Symbols]]:
        """For each tail and each of its prefixes: one variant for each number of open brackets."""
        judge = self.judge
        left = ANYWHERE if group.head else group.left
        tails = list(dict.fromkeys(tail[:n] for tail in group.tails.values() for n in range(len(tail) + 1)))
        if not any(judge.newline in tail for tail in tails):
            return {tail: [tail] for tail in tails}
        depths = judge.depths(left, *tails)
        return {tail: [judge.variant(left, tail, depth) for depth in depths] for tail in tails}

    def verdicts(self, group: Group) -> list[tuple[int, str, Symbols]]:
        """For each sequence of a group: its number, the verdict, and the tail to replace its own.

        The verdict is "never", "always" or "jointly", or "" if there is nothing new.
        """
        tops_number = self._tops_number[group.lasts]
        outcomes = {
            tail: tuple(self._outcome[tops_number, word] for word in words)
            for tail, words in self._variants(group).items()
        }
        folded = {}
        for tail in group.tails.values():
            n = next(n for n in range(len(tail) + 1) if outcomes[tail[:n]] == outcomes[tail])
            folded[tail] = tail[:n]
        leader: dict[tuple[_Outcome, ...], Symbols] = {}
        for tail in sorted(folded.values(), key=len):
            leader.setdefault(outcomes[tail], tail)
        found = []
        for number, tail in group.tails.items():
            outcome = outcomes[tail]
            verdict = "always" if folded[tail] != tail else "jointly" if leader[outcome] != tail else ""
            if all(one == _REFUSED for one in outcome):
                verdict = "never"
            found.append((number, verdict, leader[outcome]))
        return found


def _outcome(configuration_sets: ConfigurationSets, root: int, n_tops: int) -> _Outcome:
    """The outcome of a root: the tops that do not refuse it, and its configuration set on each.

    n_tops : the number of states that can be on top.
    """
    distinct = int(configuration_sets.root_of[root])
    if distinct == NEVER_LEGAL:
        return _REFUSED
    begin, end = configuration_sets.root_start[distinct : distinct + 2].tolist()
    cells, states = configuration_sets.root_cell[begin:end], configuration_sets.root_state[begin:end]
    if end - begin == n_tops and (states == ACCEPTED).all():
        return _ACCEPTED
    return cells.tobytes(), states.tobytes()


def _tops(tables: LrTables, lasts: tuple[int, ...] | None) -> npt.NDArray[np.bool_]:
    """Which LR states can be on top of the stack after one of some terminals: (n_states,) bool.

    lasts : terminals, or START for the start of the text; None for any of them.
    """
    accessing = tables.accessing
    if lasts is None:
        found = (accessing >= 0) & (accessing < tables.n_terminals)
        found[0] = True
        return np.asarray(found, np.bool_)
    columns = [int(tables.terminal_column[last]) for last in lasts if last != START]
    found = np.isin(accessing, [column for column in columns if column >= 0])
    found[0] = START in lasts
    return found
