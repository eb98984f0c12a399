"""What layout adds to stacks: the columns of open blocks, and whether brackets are open.

A *cell* is an LR state; that behind an indent is one with a column: a known one; or bytes, for all
columns that free bytes and then these lead to; or None, for a block that is closed.

A *guard* is what a stack must be like for a suffix to follow: for each open block, from the
innermost one out, which columns it may have; and how many brackets are open at least. Guards are
carried down the stack: each cell that is gone makes of a guard one on the stack below.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from maskwright.analysis.grammar.columns import FIRST_COLUMN, LINE_FEED, SPACE, TAB, TAB_STOP, Column, column_bytes
from maskwright.decoding.endings.ending_lexer import EndingLexer, part_of
from maskwright.decoding.endings.ending_parser import EndingParser, Frame, ParserConfiguration
from maskwright.decoding.grammar.nesting import is_nested
from maskwright.maskstore.table import schema

if TYPE_CHECKING:
    from maskwright.maskstore.table.compiled import EngineTable

Place: TypeAlias = Column | bytes
"""The column of a line; or bytes, for all columns that free bytes and then these lead to."""
ANYWHERE: Place = b""
"""All columns that free bytes lead to."""


class Wanted(NamedTuple):
    """Which columns a block may have.

    most : none further in than this, by either count. same : only this one. behind : only those to
    which free bytes and then these lead; there is one such for a suffix.
    """

    most: Column | None = None
    same: Column | None = None
    behind: bytes = b""


_ANY = Wanted()


class Cells:
    """The cells of a store's stacks.

    state, column : of each cell. block : of each LR state, 1 behind an indent, -1 behind a dedent.
    opens : how many brackets its symbol opens. tells : whether a guard can be told from the cells:
    the rules have blocks and brackets in pairs, no newline inside brackets, and a newline may have
    any column.
    """

    def __init__(self, store: EngineTable, parser: EndingParser) -> None:
        self.layout = parser.layout
        n_states = len(parser.default)
        self.state = list(range(n_states))
        self.column: list[Place | None] = [None] * n_states
        self.block, self.opens = [0] * n_states, [0] * n_states
        self._number: dict[tuple[int, Place | None], int] = {}
        self._frames: dict[tuple[int, int], Frame] = {}
        self._n_frames = 0
        self._has_tabs = False
        self.tells = self.layout is None or (
            min(parser.indent, parser.dedent) >= 0
            and parser.has_levels
            and self._reads_blocks(store, parser)
            and self._is_free(parser.lexer)
        )

    def _reads_blocks(self, store: EngineTable, parser: EndingParser) -> bool:
        """Tell which blocks and brackets each LR state opens. False if one is two things."""
        opens: dict[int, int] = {0: 0}
        for column, members in enumerate(parser.members):
            is_block = (column == parser.indent) - (column == parser.dedent)
            for terminal in members:
                for state in parser.column_targets[column]:
                    self.block[state] = is_block
                    if opens.setdefault(state, parser.depth_of[terminal]) != parser.depth_of[terminal]:
                        return False
        n_states = len(parser.default)
        starts = part_of(store.table, schema.PREDECESSOR_START, n_states + 1).tolist()
        below = part_of(store.table, schema.PREDECESSORS, starts[-1]).tolist()
        agenda = [
            (parser.rule_lhs[rule], parser.rule_length[rule], state)
            for state, some in enumerate(parser.reduces)
            for rule in ([each for each, _ in some] if parser.default[state] < 0 else [parser.default[state]])
        ]
        gotos = [set(column) - {-1} for column in zip(*parser.goto, strict=True)]
        known: dict[int, set[int]] = {}
        waiting: dict[int, set[tuple[int, int, int]]] = {}
        for lhs, length, last in agenda:  # grows, as more states are known
            # the cells that may be on top once some are gone, and how many brackets those opened
            ways = {(last, 0)}
            for _ in range(length):
                for state in {state for state, _ in ways} - opens.keys():
                    waiting.setdefault(state, set()).add((lhs, length, last))
                ways = {
                    (each, n + opens[state])
                    for state, n in ways
                    if state in opens
                    for each in below[starts[state] : starts[state + 1]]
                }
            counts = known.setdefault(lhs, set())
            counts.update(n for _, n in ways)
            for state in gotos[lhs] if counts else ():
                if len(counts) > 1 or opens.setdefault(state, min(counts)) not in counts:
                    return False
                agenda += waiting.pop(state, ())
        for state, found in opens.items():
            self.opens[state] = found
        return is_nested(store.grammar, parser.depth_of)

    def _is_free(self, lexer: EndingLexer) -> bool:
        """Whether each newline of free bytes may have any column, and take another one later.

        That is so if a newline ends only in states in which blanks and line feeds lead to the same
        state, and only line feeds lead from others to these.
        """
        assert self.layout is not None
        blank, feed, tab = (lexer.class_of[byte] for byte in (SPACE, LINE_FEED, TAB))

        def stays(state: int, klass: int) -> bool:
            return lexer.next_state[state][klass] == state and not lexer.outputs[lexer.output[state][klass]]

        free = {q for q, is_in in enumerate(lexer.is_newline) if is_in and stays(q, blank) and stays(q, feed)}
        tabs = {stays(q, tab) for q in free}
        self._has_tabs = True in tabs and self.layout.tabs == "consistent"
        for q, moves in enumerate(lexer.moves):
            for _, klass in moves:
                after, outs = lexer.next_state[q][klass], lexer.outputs[lexer.output[q][klass]]
                if q not in free and (self.layout.newline in outs or (after in free and klass != feed)):
                    return False
        return len(tabs) == 1 and not any(bytes((LINE_FEED,)) in each for each in lexer.pending)

    # -- cells

    def cell(self, state: int, column: Place | None) -> int:
        """The cell of an LR state behind an indent."""
        found = self._number.get((state, column))
        if found is None:
            found = self._number[state, column] = len(self.state)
            self.state.append(state)
            self.column.append(column)
        return found

    def stacks(self, configuration: ParserConfiguration) -> tuple[Frame, ...]:
        """The stacks of a configuration, of cells."""
        if self.layout is None:
            return configuration.frames
        return tuple(self._stack(frame, configuration.indents) for frame in configuration.frames)

    def _stack(self, frame: Frame | None, columns: tuple[Column | None, ...]) -> Frame:
        cells: list[int] = []
        while frame is not None:
            block = self.block[frame.state]
            cells.append(self.cell(frame.state, columns[-1]) if block > 0 else frame.state)
            columns = columns[:-1] if block > 0 else (*columns, None) if block < 0 else columns
            frame = frame.below
        found: Frame | None = None
        for cell in reversed(cells):
            key = cell, -1 if found is None else found.number
            if key not in self._frames:
                self._frames[key] = Frame(cell, found, 0, self._n_frames)
                self._n_frames += 1
            found = self._frames[key]
        assert found is not None
        return found

    def forget(self) -> None:
        """Forget all stacks. No frame's number is given twice."""
        self._frames.clear()

    # -- columns

    def step(self, place: Place, byte: int) -> Place:
        """Where a newline stands behind one more byte."""
        layout = self.layout
        assert layout is not None
        if isinstance(place, Column):
            return place.step(byte, layout.tabs, layout.tab_length)
        if byte not in column_bytes(layout.tabs):
            return place
        return place + bytes((byte,)) if byte in (SPACE, TAB) else FIRST_COLUMN

    def _can_be(self, column: Column, behind: bytes) -> bool:
        """Whether free bytes and then these lead to a column."""
        if not behind:
            wide, narrow = column
            return wide == narrow if not self._has_tabs else wide // TAB_STOP + wide % TAB_STOP <= narrow <= wide
        assert self.layout is not None
        narrow = column.narrow - self.layout.column_after(behind).narrow
        before = range(max(0, narrow, column.wide - TAB_STOP * len(behind)), column.wide)
        before = before if self._has_tabs else range(max(0, narrow), narrow + 1)
        return any(
            self._can_be(Column(wide, narrow), b"") and self.layout.column_after(behind, Column(wide, narrow)) == column
            for wide in before
        )

    def _admits(self, wanted: Wanted, column: Column) -> bool:
        most, same, behind = wanted
        if most is not None and (column.wide > most.wide or column.narrow > most.narrow):
            return False
        return same in (None, column) and (not behind or self._can_be(column, behind))

    def furthest(self, wanted: Wanted, behind: bytes) -> list[Column]:
        """The columns of a block that are furthest in: what is around others is around these.

        wanted : which it may have; not all. behind : as of a cell's column.
        """
        if wanted.same is not None:
            most, least = wanted.same, wanted.same.wide
        else:
            assert wanted.most is not None
            most, least = wanted.most, 1
        found: list[Column] = []
        best = 0
        for wide in range(most.wide, max(least, 1) - 1, -1):
            for narrow in range(min(wide, most.narrow), best, -1):
                column = Column(wide, narrow)
                if self._can_be(column, b"") and self._can_be(column, behind) and self._admits(wanted, column):
                    found.append(column)
                    best = narrow
                    break
        return found


class Guards:
    """Guards by number. 0 asks for nothing."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._guards: list[tuple[tuple[Wanted, ...], int]] = []
        self._number: dict[tuple[tuple[Wanted, ...], int], int] = {}
        self._below: dict[tuple[int, int], tuple[int, ...]] = {}
        self._both: dict[tuple[int, int], int] = {}
        self.of()

    def of(self, *wanted: Wanted, n_open: int = 0) -> int:
        """The guard that wants this of the blocks from the innermost one out, and open brackets."""
        while wanted and wanted[-1] == _ANY:
            wanted = wanted[:-1]
        key = wanted, n_open
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._guards)
            self._guards.append(key)
        return found

    def both(self, one: int, other: int) -> int:
        """The guard that asks for what two ask; -1 if no stack has it."""
        if not one or not other or one == other:
            return one or other
        found = self._both.get((one, other))
        if found is None:
            (some, n), (others, m) = self._guards[one], self._guards[other]
            joined = [self._joined(*pair) for pair in zip_longest(some, others, fillvalue=_ANY)]
            found = -1 if None in joined else self.of(*(each for each in joined if each is not None), n_open=max(n, m))
            self._both[one, other] = found
        return found

    def _joined(self, one: Wanted, other: Wanted) -> Wanted | None:
        same = one.same or other.same
        if same is not None:
            admits = self._cells._admits
            return Wanted(same=same) if admits(one, same) and admits(other, same) else None
        most = one.most or other.most
        if one.most is not None and other.most is not None:
            most = Column(min(one.most.wide, other.most.wide), min(one.most.narrow, other.most.narrow))
        return Wanted(most, None, one.behind or other.behind)

    def below(self, guard: int, cell: int) -> tuple[int, ...]:
        """What a guard on a stack with a cell on top says of the stack below: one of these."""
        if not guard:
            return (0,)
        found = self._below.get((guard, cell))
        if found is None:
            found = self._below[guard, cell] = tuple(self._read(*self._guards[guard], cell))
        return found

    def _read(self, wanted: tuple[Wanted, ...], n_open: int, cell: int) -> list[int]:
        cells = self._cells
        first, rest = (wanted[0], wanted[1:]) if wanted else (_ANY, ())
        if cell == 0:  # the start of the stack
            return [0] if not n_open and cells._admits(first, FIRST_COLUMN) else []
        block, opens = cells.block[cells.state[cell]], cells.opens[cells.state[cell]]
        if block and n_open:
            return []  # no newline stands inside brackets
        if n_open:
            n_open = max(0, n_open - opens)
        elif block < 0:
            wanted = (_ANY, *wanted)
        elif block > 0:
            column = cells.column[cell]
            if column is None or (isinstance(column, bytes) and first.most is None and first.same is None):
                return [self.of(*rest)]
            if isinstance(column, Column):
                return [self.of(*rest)] if cells._admits(first, column) else []
            here = self.of(*rest)
            around = (
                self.both(here, self.of(Wanted(most=Column(wide - 1, narrow - 1))))
                for wide, narrow in cells.furthest(first, column)
            )
            return [each for each in around if each >= 0]
        return [self.of(*wanted, n_open=n_open)]
