"""What must hold of an engine's table (see `schema`) so that no engine that reads it leaves it, whoever made it: checks for `fileformat`.

What is proved: every offset, column, state, rule, node, mask and token that an engine finds in the table is in range, and no stack
that the LALR tables can build is popped below its bottom or has no goto. Not proved: that the masks are right (the checksum tells damage,
and whoever may write the file may write other masks into it), nor that a parse under made-up tables ends, nor that a lexer that backs up
comes to the end of what it reads anew, nor that a run of the stack automaton ends before the stack does: there an engine counts its steps
(`decoding/engine/_kernels.BELOW`), or ends where the stack does. What no engine counts, since a lexer's step bounds it, is bounded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import LimitError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.transducer import MAX_PENDING, RESTART
from maskwright.analysis.lr.encoding import ACCEPT, CONFLICT
from maskwright.maskstore.automaton import _parse_kernels as lr
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.table import engine_table as places
from maskwright.maskstore.table.schema import ANY, NEVER_NONE, NUMBERS, PARTS, STARTS
from maskwright.maskstore.table.stackcheck import bad_reduction
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

Int32 = npt.NDArray[np.int32]
Truths = npt.NDArray[np.bool_]

MOST_ALTERNATIVES = 16
"""BOUND: an engine makes room for so many actions of one conflict before it follows them."""

MOST_AT_ONCE = 1024
"""BOUND: places of what one step of the lexer emits, and of a state's endings. A lexer backs up over a dozen lexemes at most."""

MOST_PROBES = 1 << 14
"""BOUND: slots of the hash table of edges that are looked at for one edge. In python's store of 527,574 slots, 122."""

WORK_LIMIT = 1 << 23
"""Steps back over stacks, some 400 MB of them; python.lark takes 10,000, and a grammar of Python 3.13 of 1,365 states 27,000."""


def part_bytes(where: str, table: Int32) -> dict[str, int]:
    """Bytes of the header and of each part, in the order of the table."""
    spans = _spans(where, table)
    return {"header": 4 * lr.HEADER, **{PARTS[place].name: 4 * (end - begin) for place, (begin, end) in spans.items()}}


def table_sizes(table: Int32) -> dict[str, int]:
    """What the header says of sizes, by the words of `NUMBERS`."""
    return {word: int(table[place]) for place, word in NUMBERS.items()}


def check_table(where: str, grammar: Grammar, vocabulary: Vocabulary, table: Int32) -> None:
    """Refuse a table that could lead an engine out of it or below its stack.

    table : (n,) int32, C-contiguous.

    Raises: StoreError naming the part, what it holds and what was expected. Cost: one pass over the table.
    """
    check = _Checks(where, grammar, vocabulary, table)
    check.ranges()
    check.starts()
    check.settings()
    check.parser()
    check.lexer()
    check.automaton()
    check.tokens()
    check.masks()


def _spans(where: str, table: Int32) -> dict[int, tuple[int, int]]:
    """Where each part begins and ends."""
    if len(table) < lr.HEADER:
        raise refuse(where, f"tensor table has {len(table)} places, expected {lr.HEADER} or more")
    offsets = [int(table[place]) for place in PARTS] + [len(table)]
    if offsets[0] != lr.HEADER or any(begin > end for begin, end in pairwise(offsets)):
        raise refuse(where, f"the table's parts do not lie end to end from {lr.HEADER} to {len(table)}")
    return dict(zip(PARTS, pairwise(offsets), strict=True))


class _Checks:
    def __init__(self, where: str, grammar: Grammar, vocabulary: Vocabulary, table: Int32) -> None:
        self.where = where
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.table = table
        self.spans = _spans(where, table)
        self.sizes = self._sizes()

    def refuse(self, found: str) -> StoreError:
        return refuse(self.where, f"the table's {found}")

    def part(self, place: int) -> Int32:
        begin, end = self.spans[place]
        return self.table[begin:end]

    def _sizes(self) -> dict[str, int]:
        """The numbers of the words in `PARTS`; each part has the length that they give."""
        sizes = table_sizes(self.table)
        for word, value in sizes.items():
            if value < (word in NEVER_NONE):
                raise self.refuse(f"header says {value} {word}, expected more")
        sizes |= {"2^31": 1 << 31, "2^12": 1 << 12, "terminals": self.grammar.n_terminals}
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
                "expected more nodes than roots, and products below 2^31"
            )
        for place, part in PARTS.items():
            length = self.spans[place][1] - self.spans[place][0]
            rest = 1
            for word in part.shape[1:]:
                rest *= _count(word, sizes)
            first, _, more = part.shape[0].partition("+")
            if not first.isdigit() and first not in sizes:
                sizes[first] = length // max(1, rest) - int(more or 0)
            expected = _count(part.shape[0], sizes) * rest
            if length != expected or _count(first, sizes) < 0:
                shape = " x ".join(part.shape)
                raise self.refuse(f"part {part.name} has {length} places, expected {expected} ({shape})")
        return sizes

    def ranges(self) -> None:
        for place, part in PARTS.items():
            width = len(part.columns)
            for column, (least, word) in enumerate(part.columns):
                values, end = self.part(place)[column::width], _count(word, self.sizes)
                # PERF: two passes without a copy; 0.8 ms for python.lark's 2,000,000 places
                if part.columns == (ANY,) or not len(values) or (least <= values.min() and values.max() < end):
                    continue
                found = int(((values < least) | (values >= end)).argmax())
                self._wrong(place, width * found + column, f"{least} to {end - 1}")

    def starts(self) -> None:
        for place, (of, step) in STARTS.items():
            values = self.part(place).astype(np.int64)
            last = _count(PARTS[of].shape[0], self.sizes) - (of == places.LOOKUP_START)
            is_wrong = np.diff(values, prepend=-step) < step
            is_wrong[0] = values[0] != 0
            is_wrong[-1] |= values[-1] != last
            if is_wrong.any():
                by = f" by {step} or more a step" if step else ""
                self._wrong(place, int(is_wrong.argmax()), f"an ascent from 0 to {last}{by}")
        for place, (begin, most) in {
            places.OUTPUT_START: (0, MOST_AT_ONCE),
            places.ENDING_START: (0, MOST_AT_ONCE),
            places.PENDING_START: (0, MAX_PENDING),
            places.PATH_START: (1, self.sizes["newlines"]),
        }.items():
            lengths = np.diff(self.part(place))
            is_wrong = (lengths > most) | (lengths < (place == places.PATH_START))
            is_wrong[:begin] = lengths[:begin] != 0  # path 0 has no newline, the others have one
            if is_wrong.any():
                found = int(is_wrong.argmax())
                least, most = (0, 0) if found < begin else (begin, most)
                self._wrong(place, found + 1, f"{least} to {most} more than before it")

    def _wrong(self, place: int, found: int, expected: str) -> None:
        part = PARTS[place]
        at: list[int] = []
        rest = found
        for word in reversed(part.shape[1:]):
            rest, index = divmod(rest, _count(word, self.sizes))
            at.insert(0, index)
        at.insert(0, rest)
        shown = ", ".join(map(str, at))
        raise self.refuse(f"part {part.name} holds {int(self.part(place)[found])} at [{shown}], expected {expected}")

    def settings(self) -> None:
        layout = self.grammar.layout
        column = self.part(places.SYMBOL_COLUMN)
        none = places.NONE
        expected = {
            places.TAB_LENGTH: ("tab length", layout.tab_length if layout else 1),
            places.TABS: ("way to count tabs", int(layout is not None and layout.tabs == "consistent")),
            places.NEWLINE: ("newline", layout.newline if layout else none),
            places.INDENT: ("indent", int(column[layout.indent]) if layout else none),
            places.DEDENT: ("dedent", int(column[layout.dedent]) if layout else none),
            places.EOS_IN_MASKS: ("end-of-text tokens in masks", int(layout is None)),
        }
        for place, (name, value) in expected.items():
            if self.table[place] != value:
                raise self.refuse(f"{name} is {int(self.table[place])}, expected {value}")
        again, longest = int(self.table[places.AGAIN]), int(np.diff(self.part(places.PENDING_START)).max())
        if not 0 <= again <= 4 * (longest + 2):
            raise self.refuse(f"room for bytes to read anew is {again}, expected 0 to {4 * (longest + 2)}")
        after = int(self.table[places.AFTER_NEWLINE])
        if not 0 <= after < self.sizes["sets"]:
            raise self.refuse(f"set after a newline is {after}, expected 0 to {self.sizes['sets'] - 1}")
        if layout is None and self.sizes["newlines"]:
            raise self.refuse(
                f"paths have {self.sizes['newlines']} newlines, expected none, the grammar having no layout"
            )

    def parser(self) -> None:
        action, alternatives, goto = map(self.part, (lr.ACTION, lr.ALTERNATIVES, lr.GOTO))
        n_states, n_rules = self.sizes["states"], self.sizes["rules"]
        is_plain = _plain(action, n_states, n_rules)
        conflicts = np.flatnonzero((action != 0) & ~is_plain)
        first = action[conflicts].astype(np.int64) - CONFLICT
        first[(first < 0) | (first >= len(alternatives))] = len(alternatives)
        is_wrong = ~_followed(alternatives, _plain(alternatives, n_states, n_rules))[first]
        if is_wrong.any():
            found = int(conflicts[is_wrong.argmax()])
            self._wrong(lr.ACTION, found, f"one of {n_states} states, of {n_rules} rules or of the alternatives")
        default, lhs, length = map(self.part, (lr.DEFAULT, lr.RULE_LHS, lr.RULE_LENGTH))
        try:
            bad = bad_reduction(action, alternatives, goto, default, lhs, length, WORK_LIMIT)
        except LimitError as error:
            raise self.refuse(f"{error}, expected fewer") from error
        if bad is not None:
            raise self.refuse(
                f"state {bad[0]} reduces by rule {bad[1]} on a stack that is too short or has no goto for it"
            )

    def lexer(self) -> None:
        self._columns(places.SET_BITS)
        self._columns(places.SHIFT_BITS)
        self._restarts()
        starts, endings = self.part(places.ENDING_START).tolist(), self.part(places.ENDINGS).tolist()
        found = _bad_ending(starts, endings, self.sizes["sets"], self.grammar.n_terminals)
        if found >= 0:
            self._wrong(places.ENDINGS, found, "a set, a number of terminals and so many terminals")
        if self.grammar.layout is None:
            self._newlines()
        paths = self.part(places.PATHS).reshape(-1, 5)
        wrong = np.flatnonzero(paths[:, 0] > paths[:, 1])
        if len(wrong):
            self._wrong(places.PATHS, 5 * int(wrong[0]), f"{paths[wrong[0], 1]} at most")

    def _columns(self, place: int) -> None:
        """A set of columns has no bit past the last of them."""
        n, words = self.sizes["columns"], self.sizes["set words"]
        last = self.part(place)[words - 1 :: words].view(np.uint32)
        beyond = np.uint32((0xFFFFFFFF << ((n - 1) % 32 + 1)) & 0xFFFFFFFF)
        is_wrong = (last & beyond) != 0
        if is_wrong.any():
            self._wrong(place, words * int(is_wrong.argmax()) + words - 1, f"no bit of a column past {n - 1}")

    def _newlines(self) -> None:
        """Without a layout no ending has the newline in its set."""
        endings = self.part(places.ENDINGS).tolist()
        for at, end in pairwise(self.part(places.ENDING_START).tolist()):
            while at < end:
                if endings[at] >= 0 and endings[at] & 1:
                    self._wrong(places.ENDINGS, at, "twice a set's number, the grammar having no layout")
                at += 2 + endings[at + 1]

    def _restarts(self) -> None:
        """A lexer with one mode reads nothing anew; at its end, one with several has something to read anew where it says so."""
        n_modes, n_classes = self.sizes["modes"], self.sizes["classes"]
        again = self.table[places.AGAIN]
        has_pending = np.diff(self.part(places.PENDING_START)) > 0
        for place, width in ((places.NEXT_STATE, n_classes), (places.END_OUTPUT, 1)):
            values = self.part(place)
            is_wrong = values == RESTART
            if n_modes > 1:
                is_wrong &= place == places.END_OUTPUT
                is_wrong &= ~np.repeat(has_pending, width)
            if is_wrong.any():
                what = "one mode" if n_modes == 1 else "nothing pending there"
                self._wrong(place, int(is_wrong.argmax()), f"-1 or more, the lexer having {what}")
        if n_modes == 1 and (again or has_pending.any()):
            raise self.refuse(
                f"lexer has one mode, but {again} places for bytes to read anew and {int(has_pending.sum())} states with such; "
                "expected none"
            )

    def automaton(self) -> None:
        targets = self.part(places.EDGE_PAIRS)[::2]
        n_roots, n_pairs = self.sizes["roots"], self.sizes["pairs"]
        wrong = np.flatnonzero((targets > 0) & (targets <= n_roots))
        if len(wrong):
            self._wrong(places.EDGE_PAIRS, 2 * int(wrong[0]), f"0 or {n_roots + 1} and more: no edge leads to a root")
        n_keys = self.sizes["nodes"] * self.sizes["states"]
        # PERF: as unsigned numbers, so that one comparison does for both ends; -1, a free slot, is the greatest
        edges = self.part(places.EDGES).view(np.uint32)
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
            self._wrong(places.EDGES, found, f"-1, or 0 to {n_keys - 1} followed by 0 to {n_pairs - 1}")

        lookups = self.part(places.LOOKUPS).reshape(-1, 3)[:, 1]
        n_open, n_rests, n_sets = self.sizes["open roots"], self.sizes["rests"], self.sizes["sets"]
        wrong = np.flatnonzero((lookups < -n_open) | (lookups > n_roots))
        if len(wrong):
            self._wrong(places.LOOKUPS, 3 * int(wrong[0]) + 1, f"{-n_open} to {n_roots}")
        after = self.part(places.REST_NEXT)
        wrong = np.flatnonzero((after < -n_sets) | (after >= np.arange(n_rests)))
        if len(wrong):
            self._wrong(
                places.REST_NEXT,
                int(wrong[0]),
                f"{-n_sets} to {wrong[0] - 1}: a rest is made before those that end in it",
            )
        rests = self.part(places.OPEN_ITEMS)[::2]
        wrong = np.flatnonzero((rests < -n_sets) | (rests >= n_rests))
        if len(wrong):
            self._wrong(places.OPEN_ITEMS, 2 * int(wrong[0]), f"{-n_sets} to {n_rests - 1}")

    def masks(self) -> None:
        masks = self.part(places.MASKS).reshape(-1, 3).astype(np.int64)
        wrong = np.flatnonzero(masks[:, 1] + masks[:, 2] > self.sizes["ids"])
        if len(wrong):
            left = self.sizes["ids"] - masks[wrong[0], 1]
            self._wrong(places.MASKS, 3 * int(wrong[0]) + 2, f"{left} at most")
        allowed = np.zeros(32 * self.sizes["words"], np.bool_)
        allowed[: self.vocabulary.size] = np.diff(self.part(places.TOKEN_START)) > 0
        allowed[list(self.vocabulary.eos)] = True
        words = np.packbits(allowed, bitorder="little").view("<i4").astype(np.int32)
        rows = self.part(places.ROWS).reshape(self.sizes["rows"], len(words))
        if (np.bitwise_or.reduce(rows, axis=0) & ~words).any():
            row, word = next(
                (row, int(at[0])) for row in range(len(rows)) if len(at := np.flatnonzero(rows[row] & ~words))
            )
            stray = int(rows[row, word]) & ~int(words[word]) & 0xFFFFFFFF
            token = 32 * word + (stray & -stray).bit_length() - 1
            raise self.refuse(f"row {row} of masks allows token {token}, which stands for no text")
        is_allowed = allowed[self.part(places.MASK_IDS)]
        if not is_allowed.all():
            self._wrong(places.MASK_IDS, int(is_allowed.argmin()), "a token that stands for text or ends it")

    def tokens(self) -> None:
        """The tokens' bytes are the vocabulary's."""
        data = b"".join(self.vocabulary.tokens)
        starts = np.zeros(self.vocabulary.size + 1, np.int64)
        np.cumsum(np.fromiter(map(len, self.vocabulary.tokens), np.int64, self.vocabulary.size), out=starts[1:])
        own = np.frombuffer(data + bytes(-len(data) % 4), "<i4")
        for place, expected in (
            (places.TOKEN_START, starts),
            (places.TOKEN_BYTES, own),
            (places.EOS, np.array(self.vocabulary.eos, np.int32)),
        ):
            if not np.array_equal(self.part(place), expected):
                raise self.refuse(f"part {PARTS[place].name} is not that of the vocabulary in the file")


def _count(word: str, sizes: Mapping[str, int]) -> int:
    counted, _, more = word.partition("+")
    return (int(counted) if counted.isdigit() else sizes[counted]) + int(more or 0)


def _plain(actions: Int32, n_states: int, n_rules: int) -> Truths:
    """Whether each action shifts to a state, reduces by a rule or accepts."""
    is_plain: Truths = (actions == ACCEPT) | ((actions <= n_states) & (actions >= -n_rules) & (actions != 0))
    return is_plain


def _followed(alternatives: Int32, is_plain: Truths) -> Truths:
    """(n + 1,): whether a conflict's list of actions, its length before it, begins at each place; at none past the last."""
    count, place = alternatives.astype(np.int64), np.arange(len(alternatives))
    holds = (count >= 1) & (count <= MOST_ALTERNATIVES) & (place + count < len(alternatives))
    n_wrong = np.append(0, np.cumsum(~is_plain))
    begin = place[holds] + 1
    holds[holds] = n_wrong[begin + count[holds]] == n_wrong[begin]
    return np.append(holds, False)


def _bad_ending(starts: list[int], endings: list[int], n_sets: int, n_terminals: int) -> int:
    """The first place of the endings that is not as the engine reads it, or -1. starts : ascending to endings' length."""
    for at, end in pairwise(starts):
        while at < end:
            if not -1 <= endings[at] < 2 * n_sets or at + 1 >= end:
                return at
            after = at + 2 + endings[at + 1]
            if not at + 2 <= after <= end:
                return at
            for place in range(at + 2, after):
                if not 0 <= endings[place] < n_terminals:
                    return place
            at = after
    return -1
