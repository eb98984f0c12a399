"""Is a table's stack automaton right? Each look-up, edge and mask against parser and lexer.

In: a grammar, a vocabulary, and a table. Out: what was checked, and the differences found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.verify.claims import Claims, LineBreaks, Lookup, Masks
from maskwright.maskstore.verify.configurations import REFUSED, WHATEVER, Configurations, Continuation
from maskwright.maskstore.verify.demands import Demands, Ints
from maskwright.maskstore.verify.tables import (
    MOST_SHOWN,
    Certificate,
    TooManyChoices,
    TooManyItems,
    missing_entries,
    unsound_reductions,
)
from maskwright.maskstore.verify.trusted import Int32, Lexer, Parser, check_repeated
from maskwright.maskstore.verify.viable import dead_ends
from maskwright.maskstore.verify.walks import Found, Items, Origin, Walks
from maskwright.maskstore.vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]
NOT_ASKED = "nobody has said which rules they are made of"
"""Why nothing is known of LALR tables without a certificate."""
Groups = dict[frozenset[Continuation], int]
"""Classes of tokens as bits, by the continuations of which the parser must accept one."""

MOST_FOUND = 100
"""Differences after which the search ends."""
MOST_VISITS = 20_000_000
"""Visits after which nothing is decided. They take gigabytes."""
PAUSE = 1 << 12
"""Visits between two reports of progress, and looks at the clock."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Tokens that a table allows and the parser refuses, or the other way round, on some stacks.

    is_allowed : whether it is the table that allows them.
    is_early : whether an edge decides this too early; the stack shows where it is wrong.
    lexer_state, depth, line_breaks : the look-up.
    node : the node of the automaton whose edge decides; 0 if the look-up has none.
    cells : the LR states read, from the top of the stack down, each with the terminal that leads to
        it, as 17:COMMA; `*` for a rule.
    tokens : the tokens, ascending.
    """

    is_allowed: bool
    is_early: bool
    lexer_state: int
    depth: int
    line_breaks: LineBreaks
    node: int
    cells: tuple[str, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of checking a table.

    differences : none if the automaton is right.
    counts : what was checked, by name.
    faults : what makes the LALR tables accept what the grammar does not derive, refuse what it
        derives, or read what begins no text of it, in words; () if nothing does.
    not_shown : why it was not shown that the LALR tables accept all that the grammar derives; "" if
        it was.
    dead_ends_not_shown : why it was not shown that all that their parser reads begins a text of the
        grammar; "" if it was.
    """

    differences: tuple[Difference, ...]
    counts: dict[str, int]
    faults: tuple[str, ...] = ()
    not_shown: str = NOT_ASKED
    dead_ends_not_shown: str = NOT_ASKED


@on_own_stack
def verify_table(
    where: str,
    grammar: Grammar,
    vocabulary: Vocabulary,
    table: Int32,
    progress: Progress | None = None,
    seconds: float | None = None,
    certificate: Certificate | None = None,
) -> Checked:
    """Check a table's LALR tables, each look-up, each walk from there, and each mask on the way.

    where : what the table belongs to, as errors name it.
    progress : called with the name of a step, how much is done, and how much there is.
    seconds : the time after which it is given up; None for no limit.
    certificate : what the builder says of the LALR tables; None to take them as right.

    Raises: StoreError as `check_table` and `check_repeated`; LimitError if the time is over, or
        nothing was decided, as where a token is read as hundreds of terminals.
    """
    check_table(where, grammar, vocabulary, table)
    found = _Verification(grammar, vocabulary, table, _Clock(progress, seconds), certificate)
    check_repeated(where, grammar, table, found.lexer, found.parser)
    return found.run()


class _Clock:
    """Reports progress, and ends what takes too long."""

    def __init__(self, progress: Progress | None, seconds: float | None) -> None:
        self._progress = progress
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def report(self, what: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(what, done, total)
        if self._end is not None and time.monotonic() > self._end:
            raise LimitError(f"not verified within {self._seconds:g} seconds: nothing was decided; allow more time")


class _Verification:
    """One table under way."""

    def __init__(
        self, grammar: Grammar, vocabulary: Vocabulary, table: Int32, clock: _Clock, certificate: Certificate | None
    ) -> None:
        self.clock, self.certificate = clock, certificate
        self.grammar, self.vocabulary = grammar, vocabulary
        self.parser, self.lexer = Parser(table), Lexer(table, grammar.n_terminals)
        self.configurations = Configurations(self.parser, self.lexer)
        self.claims = Claims(table)
        self.demands = Demands(
            self.lexer,
            self.parser,
            self.configurations,
            vocabulary.tokens,
            lambda n, of: clock.report("lexer states", n, of),
        )
        entered = self.parser.entered
        self.tops = sorted({0}.union(*entered))
        inserted = (self.lexer.newline_column, self.lexer.indent, self.lexer.dedent)
        self.tops_behind_newline = sorted(set[int]().union(*(entered[column] for column in inserted if column >= 0)))
        self.faults: tuple[str, ...] = ()
        self.not_shown = self.dead_ends_not_shown = NOT_ASKED
        self._done: set[
            tuple[LineBreaks, int, int, frozenset[tuple[frozenset[Continuation], int]], tuple[int, ...]]
        ] = set()
        self._dead: dict[LineBreaks, bool] = {}
        self._tops_known: dict[tuple[int, int], list[int]] = {}

    def run(self) -> Checked:
        """All checks."""
        try:
            self._check_tables()
            groups_of_state, self.masks = self._groups()
        except LimitError:
            if not self.faults:  # else the tables are wrong, whatever the masks are
                raise
            return self._checked({"LR states": self.parser.n_states})
        self.walks = Walks(self.claims, self.masks, self.configurations)
        try:
            self._check_states(groups_of_state)
            self._follow()
        except LimitError:
            if not self.walks.found and not self.faults:  # else what was found is wrong, whatever else there is
                raise
        counts = {
            "LR states": self.parser.n_states,
            "lexer states": len(groups_of_state),
            "tokens": self.vocabulary.size,
            "token classes": len(self.masks.size),
            "look-ups": len(self._done),
            "roots": self.claims.n_roots,
            "nodes": self.claims.n_nodes,
            "masks": self.claims.n_masks,
            "configuration sets": len(self.configurations),
            "visits": len(self.walks),
            "early decisions": self.walks.n_early,
        }
        return self._checked(counts, tuple(map(self._difference, self.walks.found[:MOST_FOUND])))

    def _checked(self, counts: dict[str, int], differences: tuple[Difference, ...] = ()) -> Checked:
        return Checked(differences, counts, self.faults, self.not_shown, self.dead_ends_not_shown)

    def _check_tables(self) -> None:
        """Note what is wrong with the LALR tables, and why they are not known to be complete."""
        if self.certificate is None:
            return
        self.not_shown = "it was not looked at"
        self.faults = unsound_reductions(
            self.certificate, self.parser, self.lexer, lambda n, of: self.clock.report("LR states", n, of)
        )
        self._check_dead_ends(self.certificate)
        try:
            missing = missing_entries(
                self.certificate, self.parser, self.lexer, lambda n, of: self.clock.report("steps in rules", n, of)
            )
        except TooManyItems as error:
            self.not_shown = str(error)
            return
        if not missing:
            self.not_shown = ""
        elif self.certificate.has_conflicts:
            self.not_shown = (
                f"the grammar has conflicts, where tables leave actions out; missing entries: {len(missing):,}, such as: "
                f"{missing[0]}"
            )
        else:
            self.not_shown = "entries are missing"
            self.faults += missing[:MOST_SHOWN]

    def _check_dead_ends(self, certificate: Certificate) -> None:
        """Note where what the parser reads may begin no text, or why that is not known."""
        if certificate.full is None:
            self.dead_ends_not_shown = (
                "the grammar has conflicts that are decided, and a parser that has decided may have read what "
                "it cannot go on with"
            )
            return
        try:
            self.faults += dead_ends(
                certificate, self.parser, self.lexer, lambda n, of: self.clock.report("full LR states", n, of)
            )
        except TooManyChoices as error:
            self.dead_ends_not_shown = f"the full LR tables: {error}"
        else:
            self.dead_ends_not_shown = ""

    def _check_states(self, groups_of_state: dict[int, tuple[Ints, list[tuple[int, ...]]]]) -> None:
        """Check the look-ups of all lexer states."""
        for n, (state, (group_of_class, keys)) in enumerate(groups_of_state.items()):
            self._check_state(state, group_of_class, keys)
            self.clock.report("look-ups", n + 1, len(groups_of_state))
            if len(self.walks.found) >= MOST_FOUND:
                break

    def _follow(self) -> None:
        """Make all visits, and look at what was decided early."""
        walks = self.walks
        while walks.n_waiting and len(walks.found) < MOST_FOUND:
            walks.follow(PAUSE)
            self.clock.report("visits", len(walks) - walks.n_waiting, len(walks))
            if len(walks) > MOST_VISITS:
                raise LimitError(f"the automaton takes more than {MOST_VISITS:,} visits: nothing was decided")
        for n, _ in enumerate(walks.early()):
            if len(walks.found) >= MOST_FOUND:
                return
            if n % PAUSE == 0:
                self.clock.report("early decisions", n, max(n, walks.n_early))
                if walks.n_early > MOST_VISITS:
                    raise LimitError(
                        f"the automaton has more than {MOST_VISITS:,} early decisions: nothing was decided"
                    )

    def _groups(self) -> tuple[dict[int, tuple[Ints, list[tuple[int, ...]]]], Masks]:
        """For each lexer state the group of each class of tokens, and each group's keys.

        Also the masks, which say what the classes are.
        """
        found: dict[int, tuple[Ints, list[tuple[int, ...]]]] = {}
        same = np.zeros(self.vocabulary.size, np.int64)
        eos = [token for token in self.vocabulary.eos if not self.vocabulary.tokens[token]]
        for state, group_of_token, keys in self.demands.groups(lambda n, of: self.clock.report("tokens", n, of)):
            group_of_token[eos] = len(keys)
            found[state] = group_of_token, keys
            both = same * (len(keys) + 2) + group_of_token + 1
            same = np.unique(both, return_inverse=True)[1].reshape(-1).astype(np.int64)
        masks = Masks(self.claims, same)
        first = np.unique(masks.class_of, return_index=True)[1]
        return {state: (group[first], keys) for state, (group, keys) in found.items()}, masks

    def _check_state(self, state: int, group_of_class: Ints, keys: list[tuple[int, ...]]) -> None:
        """Check the look-ups of a lexer state."""
        bits = [0] * (len(keys) + 1)
        for number, group in enumerate(group_of_class.tolist()):
            if group >= 0:
                bits[group] |= 1 << number
        depth, is_last = 0, False
        while not is_last or (depth < self.claims.n_depth_cases(state) and self.lexer.newline >= 0):
            by_breaks, is_last = self._asked(state, depth, keys, bits)
            self._check_case(state, depth, by_breaks)
            depth += 1

    def _asked(
        self, state: int, depth: int, keys: list[tuple[int, ...]], bits: list[int]
    ) -> tuple[dict[LineBreaks, Groups], bool]:
        """What the tokens of a state ask for behind which line breaks. keys, bits : of each group.

        Also whether more open brackets make no difference.
        """
        by_breaks: dict[LineBreaks, Groups] = {}
        to_end, all_last = self.demands.to_end(state, depth)
        if to_end and bits[-1]:
            by_breaks[()] = {to_end: bits[-1]}
        for of_group, classes in zip(keys, bits[:-1], strict=True):
            if not classes:
                continue
            asked: dict[LineBreaks, set[Continuation]] = {}
            for key in of_group:
                alternatives, is_last = self.demands.asked(key, depth)
                all_last = all_last and is_last
                for breaks, continuation in alternatives:
                    asked.setdefault(breaks, set()).add(continuation)
            for breaks, continuations in asked.items():
                groups = by_breaks.setdefault(breaks, {})
                one = frozenset(continuations)
                groups[one] = groups.get(one, 0) | classes
        return by_breaks, all_last

    def _check_case(self, state: int, depth: int, by_breaks: dict[LineBreaks, Groups]) -> None:
        """Check the look-ups of a lexer state while some brackets are open."""
        lookups: dict[LineBreaks, list[Lookup]] = {breaks: [] for breaks in by_breaks}
        for lookup in self.claims.lookups(state, depth):
            lookups.setdefault(lookup.line_breaks, []).append(lookup)
        for breaks, claimed in lookups.items():
            groups = frozenset(by_breaks.get(breaks, {}).items())
            for root, own in {(each.root, each.own) for each in claimed} or {(0, 0)}:
                key = breaks, root, own, groups, () if breaks else tuple(self._tops(state, depth))
                if key in self._done or self._is_dead(breaks):
                    continue
                self._done.add(key)
                self._check_lookup(Origin(state, depth, breaks), root, own, groups)

    def _check_lookup(
        self, origin: Origin, root: int, own: int, groups: frozenset[tuple[frozenset[Continuation], int]]
    ) -> None:
        allowed = self.masks.bits(own)
        tops = self.tops_behind_newline if origin.line_breaks else self._tops(origin.state, origin.depth)
        if not tops:
            return
        rows = [self.configurations.first(continuations)[tops] for continuations, _ in groups]
        results = np.stack([np.zeros(len(tops), np.int64), *rows])
        distinct, which = np.unique(results, axis=1, return_inverse=True)
        items = [self._items(column, [0, *(classes for _, classes in groups)]) for column in distinct.T.tolist()]
        for top, number in zip(tops, which.reshape(-1).tolist(), strict=True):
            self.walks.begin(origin, top, root, allowed, items[number])

    def _tops(self, state: int, depth: int) -> list[int]:
        """The LR states that can be on top in a lexer state while some brackets are open.

        The lexeme under way can become something that the parser accepts there: else the token
        before would have been refused. Of several stacks this holds for one, so with conflicts
        these are all states.
        """
        if self.parser.has_conflicts:
            return self.tops
        key = state, depth
        found = self._tops_known.get(key)
        if found is None:
            continuations = self.demands.under_way(state, depth)
            takes = np.ones(self.parser.n_states, np.bool_)
            if continuations:
                takes = self.configurations.first(continuations) != REFUSED
            takes[0] = takes[0] or state == 0
            found = self._tops_known[key] = [top for top in self.tops if takes[top]]
        return found

    @staticmethod
    def _items(numbers: list[int], classes: list[int]) -> Items:
        """Configuration sets with all the classes that hang on each."""
        found: dict[int, int] = {}
        for number, each in zip(numbers, classes, strict=True):
            found[number] = found.get(number, 0) | each
        found.pop(REFUSED, None)
        return tuple(sorted(found.items()))

    def _is_dead(self, breaks: LineBreaks) -> bool:
        """Whether no stack lets a parser come behind some line breaks."""
        if breaks not in self._dead:
            self._dead[breaks] = any(
                not self._can_pass(symbols, self.tops_behind_newline if at else self.tops)
                for at, (symbols, _) in enumerate(breaks)
                if symbols or at
            )
        return self._dead[breaks]

    def _can_pass(self, symbols: tuple[int, ...], tops: Iterable[int]) -> bool:
        """Whether symbols and a newline can be read on a stack with one of these tops."""
        symbols = (*symbols, self.lexer.newline_column)
        asked = frozenset([self.configurations.continuation(symbols, WHATEVER)])
        return bool((self.configurations.first(asked)[list(tops)] != REFUSED).any())

    def _difference(self, found: Found) -> Difference:
        tokens = tuple(self.masks.tokens(found.classes))
        cells = tuple(map(self._cell_name, found.cells))
        return Difference(found.is_allowed, found.is_early, *found.origin, found.node, cells, tokens)

    def _cell_name(self, cell: int) -> str:
        columns = [column for column, states in enumerate(self.parser.entered) if cell in states]
        names = [
            self.grammar.display_name(terminal)
            for terminal, column in enumerate(self.lexer.column)
            if columns and column == columns[0]
        ]
        return f"{cell}:{names[0] if names else 'start' if cell == 0 else '*'}"
