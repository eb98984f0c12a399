"""Checks of an engine's table, after which no engine that reads it leaves it, whoever made it.

The checks prove that every offset, column, state, rule, node, mask and token that an engine finds
in the table (see `schema`) is in range. They also prove that no stack that the LALR tables can
build is popped below its bottom or lacks a goto. `fileformat` runs them on tables from files.

They do not prove that the masks are right: the checksum finds damage, but whoever may write the
file may write other masks into it. They also do not prove

- that a parse under made-up tables ends,
- that a lexer that backs up comes to the end of what it reads anew, or
- that a walk of the stack automaton ends before the stack does.

There an engine counts its steps (`decoding/engine/constants.N_BELOW_ARENA`), or ends where the
stack ends. What no engine counts, because a step of the lexer bounds it, is bounded here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arrays import Int32
from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.encoding import RESTART
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.stackcheck import bad_reduction
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words, packed

Truths = npt.NDArray[np.bool_]

MOST_ALTERNATIVES = 16
"""BOUND: most actions of one conflict. An engine has room for so many before it follows them."""

MOST_PROBES = 1 << 14
"""BOUND: most slots of the hash table of edges that one look-up visits.

In python's store of 527,574 slots a look-up visits at most 122.
"""

WORK_LIMIT = 1 << 23
"""Most steps back over stacks. So many steps take some 400 MB.

python.lark takes 10,000, and a grammar of Python 3.13 with 1,365 states takes 27,000.
"""


def part_bytes(where: str, table: Int32) -> dict[str, int]:
    """Bytes of the header and of each part, by name, in the order of the table.

    where : what the table belongs to, as errors name it.
    table : (n,) int32.

    Raises: StoreError if the table is shorter than its header, or its parts do not lie end to end.
    """
    spans = _spans(where, table)
    return {
        "header": 4 * schema.HEADER,
        **{schema.PARTS[offset].name: 4 * (end - begin) for offset, (begin, end) in spans.items()},
    }


def table_sizes(table: Int32) -> dict[str, int]:
    """The numbers of the header, by the names of `schema.NUMBERS`. table : (n,) int32."""
    return {entry.name: int(table[offset]) for offset, entry in schema.NUMBERS.items()}


def check_table(where: str, grammar: Grammar, vocabulary: Vocabulary, table: Int32) -> None:
    """Refuse a table that could lead an engine out of it, or below its stack.

    where : what the table belongs to, as errors name it.
    grammar, vocabulary : those that the table must be for.
    table : (n,) int32, C-contiguous.

    Raises: StoreError naming the part, what it holds and what was expected.

    Cost: one pass over the table.
    """
    check = _Checks(where, grammar, vocabulary, table)
    check.types()
    check.settings()
    for coded in dict.fromkeys(_CODED[offset] for offset, part in schema.PARTS.items() if _is_coded(part)):
        coded(check)
    check.reductions()
    check.lexer()
    check.automaton()
    check.masks()


def _spans(where: str, table: Int32) -> dict[int, tuple[int, int]]:
    """Where each part begins and ends, by its offset in the header."""
    if len(table) < schema.HEADER:
        raise refuse(where, f"tensor table has {len(table)} integers, expected {schema.HEADER} or more")
    offsets = [int(table[offset]) for offset in schema.PARTS] + [len(table)]
    if offsets[0] != schema.HEADER or any(begin > end for begin, end in pairwise(offsets)):
        raise refuse(where, f"the table's parts do not lie end to end from {schema.HEADER} to {len(table)}")
    return dict(zip(schema.PARTS, pairwise(offsets), strict=True))


class _Checks:
    """The checks of one table."""

    def __init__(self, where: str, grammar: Grammar, vocabulary: Vocabulary, table: Int32) -> None:
        self.where = where
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.table = table
        self.spans = _spans(where, table)
        self.sizes = self._sizes()

    def refuse(self, found: str) -> StoreError:
        """The error for something found in the table."""
        return refuse(self.where, f"the table's {found}")

    def part(self, offset: int) -> Int32:
        """The integers of a part, flat."""
        begin, end = self.spans[offset]
        return self.table[begin:end]

    def _sizes(self) -> dict[str, int]:
        """How many things each word of `PARTS` counts. Refuses a part whose length does not fit."""
        sizes = table_sizes(self.table)
        for entry in schema.NUMBERS.values():
            if sizes[entry.name] < entry.least:
                raise self.refuse(f"header says {sizes[entry.name]} {entry.name}, expected more")
        sizes["terminals"] = self.grammar.n_terminals
        sizes["symbols"] = sizes["columns"] + sizes["modes"]
        sizes["inner nodes"] = sizes["nodes"] - sizes["roots"] - 1
        for word, expected in (
            ("tokens", self.vocabulary.size),
            ("words", n_words(self.vocabulary.size)),
            ("set words", (sizes["columns"] + 31) // 32),
            ("eos", len(self.vocabulary.eos)),
        ):
            if sizes[word] != expected:
                raise self.refuse(f"header says {sizes[word]} {word}, expected {expected}")
        if sizes["inner nodes"] < 0 or sizes["nodes"] * sizes["states"] >= 1 << 31:
            raise self.refuse(
                f"header says {sizes['nodes']} nodes, {sizes['roots']} of them roots, over {sizes['states']} states, "
                "expected more nodes than roots, and nodes times states below 2^31"
            )
        for offset, part in schema.PARTS.items():
            length = self.spans[offset][1] - self.spans[offset][0]
            row_size = 1
            for word in part.shape[1:]:
                row_size *= _count(word, sizes)
            first, _, more = part.shape[0].partition("+")
            if not first.isdigit() and first not in sizes:
                sizes[first] = length // max(1, row_size) - int(more or 0)
            expected = _count(part.shape[0], sizes) * row_size
            if length != expected or _count(first, sizes) < 0:
                shape = " x ".join(part.shape)
                raise self.refuse(f"part {part.name} has {length} integers, expected {expected} ({shape})")
        return sizes

    def types(self) -> None:
        """Check each column of each part against its type, except `Coded` columns."""
        for offset, part in schema.PARTS.items():
            width = len(part.columns)
            for column, values in enumerate(part.columns):
                span = range_of(values, self.sizes)
                found = self.part(offset)[column::width]
                # PERF: two passes without a copy; 0.8 ms for python.lark's 2,000,000 integers
                if span is not None and len(found) and not (span[0] <= found.min() and found.max() < span[1]):
                    at = int(((found < span[0]) | (found >= span[1])).argmax())
                    self._wrong(offset, width * at + column, f"{span[0]} to {span[1] - 1}")
                if isinstance(values, schema.Starts):
                    self._starts(offset, values)
                elif isinstance(values, schema.Bits):
                    self._bits(offset, values)

    def _starts(self, offset: int, runs: schema.Starts) -> None:
        """Check starts of runs: they ascend from 0 to the end, and runs have the right lengths."""
        starts, last = self.part(offset).astype(np.int64), self.sizes[runs.of]
        lengths = np.diff(starts)
        most = np.full(len(lengths), last if runs.most is None else runs.most)
        least = np.full(len(lengths), runs.least)
        if runs.is_first_empty:
            least[:1] = most[:1] = 0
        is_wrong = np.append(starts[0] != 0, (lengths < least) | (lengths > most))
        if is_wrong.any():
            found = int(is_wrong.argmax())
            expected = f"{least[found - 1]} to {most[found - 1]} more than the integer before it" if found else "0"
            self._wrong(offset, found, expected)
        if starts[-1] != last:
            self._wrong(offset, len(starts) - 1, f"{last}, where the last run ends")

    def _bits(self, offset: int, members: schema.Bits) -> None:
        """Check that no bit past the last member is set."""
        n, words = self.sizes[members.of], _count(schema.PARTS[offset].shape[1], self.sizes)
        if words == 0:
            return
        last = self.part(offset)[words - 1 :: words].view(np.uint32)
        beyond = np.uint32((0xFFFFFFFF << ((n - 1) % 32 + 1)) & 0xFFFFFFFF)
        is_wrong = (last & beyond) != 0
        if is_wrong.any():
            self._wrong(offset, words * int(is_wrong.argmax()) + words - 1, f"no bit past {n - 1}")

    def _wrong(self, offset: int, found: int, expected: str) -> None:
        """Refuse the integer with index `found` of a part."""
        part = schema.PARTS[offset]
        at: list[int] = []
        remaining = found
        for word in reversed(part.shape[1:]):
            remaining, index = divmod(remaining, _count(word, self.sizes))
            at.insert(0, index)
        at.insert(0, remaining)
        shown = ", ".join(map(str, at))
        raise self.refuse(f"part {part.name} holds {int(self.part(offset)[found])} at [{shown}], expected {expected}")

    def settings(self) -> None:
        """Check the settings against the grammar."""
        layout = self.grammar.layout
        column = self.part(schema.SYMBOL_COLUMN)
        none = schema.NONE
        expected = {
            schema.TAB_LENGTH: ("tab length", layout.tab_length if layout else 1),
            schema.TABS: ("way to count tabs", int(layout is not None and layout.tabs == "consistent")),
            schema.NEWLINE: ("newline", layout.newline if layout else none),
            schema.INDENT: ("indent", int(column[layout.indent]) if layout else none),
            schema.DEDENT: ("dedent", int(column[layout.dedent]) if layout else none),
            schema.EOS_IN_MASKS: ("end-of-text tokens in masks", int(layout is None)),
        }
        for offset, (name, value) in expected.items():
            if self.table[offset] != value:
                raise self.refuse(f"{name} is {int(self.table[offset])}, expected {value}")
        again, longest = int(self.table[schema.AGAIN]), int(np.diff(self.part(schema.PENDING_START)).max())
        if not 0 <= again <= 4 * (longest + 2):
            raise self.refuse(f"room for bytes to read anew is {again}, expected 0 to {4 * (longest + 2)}")
        after = int(self.table[schema.AFTER_NEWLINE])
        if not 0 <= after < self.sizes["sets"]:
            raise self.refuse(f"set after a newline is {after}, expected 0 to {self.sizes['sets'] - 1}")
        if layout is None:
            flagged = np.flatnonzero(self.part(schema.STATE_FLAGS))
            if len(flagged):
                self._wrong(schema.STATE_FLAGS, int(flagged[0]), "0, because the grammar has no layout")
        if layout is None and self.sizes["line breaks"]:
            raise self.refuse(
                f"number of line breaks is {self.sizes['line breaks']}, expected 0, because the grammar has no layout"
            )

    def actions(self) -> None:
        """Check that each action is plain, or a list of plain actions."""
        action, alternatives = self.part(schema.ACTION), self.part(schema.ALTERNATIVES)
        n_states, n_rules = self.sizes["states"], self.sizes["rules"]
        is_plain = _plain(action, n_states, n_rules)
        conflicts = np.flatnonzero((action != 0) & ~is_plain)
        first = action[conflicts].astype(np.int64) - CONFLICT
        first[(first < 0) | (first >= len(alternatives))] = len(alternatives)
        is_wrong = ~_followed(alternatives, _plain(alternatives, n_states, n_rules))[first]
        if is_wrong.any():
            found = int(conflicts[is_wrong.argmax()])
            self._wrong(
                schema.ACTION, found, f"one of {n_states} states, one of {n_rules} rules, or a list of alternatives"
            )

    def reductions(self) -> None:
        """Check that no stack is popped below its bottom, or lacks a goto."""
        action, alternatives, goto = map(self.part, (schema.ACTION, schema.ALTERNATIVES, schema.GOTO))
        default, lhs, length = map(self.part, (schema.DEFAULT, schema.RULE_LHS, schema.RULE_LENGTH))
        try:
            bad = bad_reduction(action, alternatives, goto, default, lhs, length, WORK_LIMIT)
        except LimitError as error:
            raise self.refuse(f"{error}, expected fewer") from error
        if bad is not None:
            raise self.refuse(
                f"state {bad[0]} reduces by rule {bad[1]} on a stack that is too short or has no goto for it"
            )

    def endings(self) -> None:
        """Check that each state's run is a list of endings."""
        starts, endings = self.part(schema.ENDING_START).tolist(), self.part(schema.ENDINGS).tolist()
        found = _bad_ending(starts, endings, self.sizes["sets"], self.grammar.n_terminals)
        if found >= 0:
            self._wrong(schema.ENDINGS, found, "a set, a number of terminals, and that many terminals")

    def lexer(self) -> None:
        """Check what the types do not say of the lexer and the line breaks."""
        self._restarts()
        if self.grammar.layout is None:
            self._newlines()
        breaks = self.part(schema.LINE_BREAKS).reshape(-1, 5)
        wrong = np.flatnonzero(breaks[:, 0] > breaks[:, 1])
        if len(wrong):
            self._wrong(schema.LINE_BREAKS, 5 * int(wrong[0]), f"{breaks[wrong[0], 1]} at most")

    def _newlines(self) -> None:
        """Check that without a layout no ending has the newline in its set."""
        endings = self.part(schema.ENDINGS).tolist()
        for at, end in pairwise(self.part(schema.ENDING_START).tolist()):
            while at < end:
                if endings[at] >= 0 and endings[at] & 1:
                    self._wrong(schema.ENDINGS, at, "twice a set's number, because the grammar has no layout")
                at += 2 + endings[at + 1]

    def _restarts(self) -> None:
        """Check where a lexer reads bytes anew.

        A lexer with one mode never does. A lexer with several modes has bytes to read anew wherever
        the end of the text says so.
        """
        n_modes, n_classes = self.sizes["modes"], self.sizes["classes"]
        again = self.table[schema.AGAIN]
        has_pending = np.diff(self.part(schema.PENDING_START)) > 0
        for offset, width in ((schema.NEXT_STATE, n_classes), (schema.END_OUTPUT, 1)):
            values = self.part(offset)
            is_wrong = values == RESTART
            if n_modes > 1:
                is_wrong &= offset == schema.END_OUTPUT
                is_wrong &= ~np.repeat(has_pending, width)
            if is_wrong.any():
                what = "one mode" if n_modes == 1 else "nothing pending there"
                self._wrong(offset, int(is_wrong.argmax()), f"-1 or more, because the lexer has {what}")
        if n_modes == 1 and (again or has_pending.any()):
            raise self.refuse(
                f"lexer has one mode, but room for {again} bytes to read anew and {int(has_pending.sum())} states with such bytes; "
                "expected none"
            )

    def edges(self) -> None:
        """Check the hash table of edges: free slots, runs of full slots, keys and numbers."""
        n_keys, n_pairs = self.sizes["nodes"] * self.sizes["states"], self.sizes["pairs"]
        # PERF: as unsigned numbers, one comparison checks both ends; -1, a free slot, is then the
        # greatest
        edges = self.part(schema.EDGES).view(np.uint32)
        keys, numbers = edges[::2], edges[1::2]
        is_free = keys == np.uint32(0xFFFFFFFF)
        if not is_free.any():
            raise self.refuse("part edges has no free slot, expected one or more")
        free = np.flatnonzero(is_free)
        probes = int(np.diff(free, append=free[0] + len(is_free)).max())
        if probes > MOST_PROBES:
            raise self.refuse(f"part edges has {probes - 1} full slots in a row, expected {MOST_PROBES - 1} at most")
        is_wrong = ((keys >= n_keys) | (numbers >= n_pairs)) & ~is_free
        if is_wrong.any():
            found = 2 * int(is_wrong.argmax())
            self._wrong(schema.EDGES, found, f"-1, or 0 to {n_keys - 1} followed by 0 to {n_pairs - 1}")

    def automaton(self) -> None:
        """Check that no walk comes to a root again, and that each continuation ends."""
        n_roots = self.sizes["roots"]
        targets = self.part(schema.EDGE_PAIRS)[::2]
        wrong = np.flatnonzero((targets > 0) & (targets <= n_roots))
        if len(wrong):
            self._wrong(schema.EDGE_PAIRS, 2 * int(wrong[0]), f"0, or {n_roots + 1} or more: no edge leads to a root")
        after = self.part(schema.CONTINUATION_NEXT)
        wrong = np.flatnonzero(after >= np.arange(len(after)))
        if len(wrong):
            self._wrong(
                schema.CONTINUATION_NEXT,
                int(wrong[0]),
                f"{wrong[0] - 1} at most: a continuation is made before those that end in it",
            )

    def masks(self) -> None:
        """Check that masks lie within MASK_IDS, and that each of their tokens may be in a mask."""
        masks = self.part(schema.MASKS).reshape(-1, 3).astype(np.int64)
        wrong = np.flatnonzero(masks[:, 1] + masks[:, 2] > self.sizes["ids"])
        if len(wrong):
            left = self.sizes["ids"] - masks[wrong[0], 1]
            self._wrong(schema.MASKS, 3 * int(wrong[0]) + 2, f"{left} at most")
        allowed = np.zeros(32 * self.sizes["words"], np.bool_)
        allowed[: self.vocabulary.size] = np.diff(self.part(schema.TOKEN_START)) > 0
        allowed[list(self.vocabulary.eos)] = True
        words = packed(allowed).view(np.int32)
        rows = self.part(schema.ROWS).reshape(self.sizes["rows"], len(words))
        if (np.bitwise_or.reduce(rows, axis=0) & ~words).any():
            row, word = next(
                (row, int(at[0])) for row in range(len(rows)) if len(at := np.flatnonzero(rows[row] & ~words))
            )
            stray = int(rows[row, word]) & ~int(words[word]) & 0xFFFFFFFF
            token = 32 * word + (stray & -stray).bit_length() - 1
            raise self.refuse(f"row {row} of masks allows token {token}, which stands for no text")
        is_allowed = allowed[self.part(schema.MASK_IDS)]
        if not is_allowed.all():
            self._wrong(schema.MASK_IDS, int(is_allowed.argmin()), "a token that stands for text or ends it")

    def tokens(self) -> None:
        """Check that the tokens' bytes are those of the vocabulary."""
        for offset, expected in (
            (schema.TOKEN_START, self.vocabulary.flat[0]),
            (schema.TOKEN_BYTES, self.vocabulary.flat_words[1]),
            (schema.EOS, np.array(self.vocabulary.eos, np.int32)),
        ):
            if not np.array_equal(self.part(offset), expected):
                raise self.refuse(f"part {schema.PARTS[offset].name} does not match the vocabulary in the file")


_CODED: Mapping[int, Callable[[_Checks], None]] = {
    schema.ACTION: _Checks.actions,
    schema.ALTERNATIVES: _Checks.actions,
    schema.ENDINGS: _Checks.endings,
    schema.EDGES: _Checks.edges,
    schema.TOKEN_START: _Checks.tokens,
    schema.TOKEN_BYTES: _Checks.tokens,
}
"""The check of each part with a `Coded` column.

A part that is missing here is an error for whoever opens any store.
"""


def _is_coded(part: schema.Part) -> bool:
    """Whether a part has a `Coded` column."""
    return any(isinstance(column, schema.Coded) for column in part.columns)


def range_of(values: schema.Values, sizes: Mapping[str, int]) -> tuple[int, int] | None:
    """The least value of a type, and one more than the greatest; None if it is no single number.

    sizes : how many things each word counts.
    """
    match values:
        case schema.Index(of, codes):
            return -len(codes), _count(of, sizes)
        case schema.Either(first, second):
            return -_count(second, sizes), _count(first, sizes)
        case schema.Bound(of) | schema.Starts(of):
            return 0, _count(of, sizes) + 1
        case schema.Number(least, most):
            return least, most + 1
        case schema.Bits() | schema.Coded():
            return None


def _count(word: str, sizes: Mapping[str, int]) -> int:
    """How many things a word counts, as "states" or "states+1" or "256"."""
    counted, _, more = word.partition("+")
    return (int(counted) if counted.isdigit() else sizes[counted]) + int(more or 0)


def _plain(actions: Int32, n_states: int, n_rules: int) -> Truths:
    """Whether each action shifts to a state, reduces by a rule or accepts."""
    is_plain: Truths = (actions == ACCEPT) | ((actions <= n_states) & (actions >= -n_rules) & (actions != 0))
    return is_plain


def _followed(alternatives: Int32, is_plain: Truths) -> Truths:
    """For each offset, whether a conflict's list of actions begins there: (n + 1,) bool.

    The list has its length first. False past the last offset.
    """
    count, offset = alternatives.astype(np.int64), np.arange(len(alternatives))
    holds = (count >= 1) & (count <= MOST_ALTERNATIVES) & (offset + count < len(alternatives))
    n_wrong = np.append(0, np.cumsum(~is_plain))
    begin = offset[holds] + 1
    holds[holds] = n_wrong[begin + count[holds]] == n_wrong[begin]
    return np.append(holds, False)


def _bad_ending(starts: list[int], endings: list[int], n_sets: int, n_terminals: int) -> int:
    """The first offset of the endings at which they are not as the engine reads them, or -1.

    starts : ascending, up to the length of `endings`.
    """
    for at, end in pairwise(starts):
        while at < end:
            if not -1 <= endings[at] < 2 * n_sets or at + 1 >= end:
                return at
            after = at + 2 + endings[at + 1]
            if not at + 2 <= after <= end:
                return at
            for offset in range(at + 2, after):
                if not 0 <= endings[offset] < n_terminals:
                    return offset
            at = after
    return -1
