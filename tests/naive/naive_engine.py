"""The exact engine from its definition: plain Python over strings and sets, from no fast code, with the reference's LR parser.

A text is legal iff its longest-match lexemes, ignored ones dropped and layout inserted, are a word of the LALR tables. A
prefix is legal iff some continuation makes it a legal text. `NaiveEngine.is_legal_prefix` says so by a rule (some terminal
that the lexeme under way may become is acceptable), `NaiveEngine.ending` by searching for the continuation itself.

Which terminals compete where a lexeme begins may be up to the parser's state (`NaiveEngine.competing`); a lexeme that fails is backed up
to its last end, and what follows is read anew among the terminals that compete after it. Each stack of the parser lexes for itself: a text
is legal iff one of them accepts it.

It knows no lexer states, nodes, masks or flags, so only a change of what is legal changes it. Terminals are read by `naive_regex`.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any, Literal, NamedTuple, TypeAlias

from naive_lexing import Lexeme, NaiveLexing
from naive_regex import is_nullable

from maskwright.analysis.grammar.grammar import Grammar, Layout
from maskwright.decoding.reference.parser import Parser, Stack
from maskwright.stores.store import Store

Columns: TypeAlias = tuple[int, int]
"""How far in a line begins, with tabs to multiples of 8 and with tabs of 1, as CPython's tokenizer counts; twice the same as Lark does."""

CONSISTENT = "consistent"

LOOK_BACK = 24
"""How many last bytes a text may have behind one whose places are known, for it to be read on from there."""

MAX_KNOWN = 1 << 16
"""Of so many texts the places are kept."""


def moved(layout: Layout, columns: Columns, byte: int) -> Columns:
    """The columns after one more byte of a newline."""
    col, altcol = columns
    if byte == 10 or (byte == 12 and layout.tabs == CONSISTENT):
        return 0, 0
    if byte == 32:
        return col + 1, altcol + 1
    if byte == 9 and layout.tabs == CONSISTENT:
        return col - col % 8 + 8, altcol + 1
    return (col + layout.tab_length, altcol + layout.tab_length) if byte == 9 else columns


def columns_of(layout: Layout, lexeme: bytes) -> Columns:
    return reduce(lambda columns, byte: moved(layout, columns, byte), lexeme, (0, 0))


class Parse(NamedTuple):
    """stacks : of the parser. columns : those open, the innermost last. depth : open brackets."""

    stacks: frozenset[Stack]
    columns: tuple[Columns, ...]
    depth: int


Place: TypeAlias = tuple[Parse, int]


class NaiveEngine(NaiveLexing):
    """Legality of texts, prefixes and tokens under `longest` lexing, with verbatim terminals or without, and `contextual` lexing."""

    def __init__(self, grammar: Grammar, conflicts: Literal["all", "shift"] = "all") -> None:
        super().__init__(grammar, conflicts)
        is_dead = None if self.futures is None else self._is_dead
        self.parser = Parser(self.tables, grammar.name, is_dead=is_dead)
        self.root = Parse(frozenset({self.parser.start}), ((0, 0),), 0)
        self._places_after: dict[bytes, tuple[Place, ...]] = {b"": ((self.root, 0),)}

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def parts(self, parse: Parse | None) -> tuple[tuple[Parse, int], ...]:
        """The stacks in groups that lex alike, each with the union's state where its next lexeme begins."""
        groups: dict[frozenset[int], set[Stack]] = {}
        for stack in sorted(parse.stacks, key=Stack.states) if parse else ():
            groups.setdefault(self.competing(stack.top), set()).add(stack)
        assert parse is not None or not groups
        return tuple(
            (Parse(frozenset(stacks), parse.columns, parse.depth), self.begin(group))  # type: ignore[union-attr]
            for group, stacks in groups.items()
        )

    def may_back_up(self, parse: Parse, rest: bytes, winner: int, end: int, begin: int) -> bool:
        """May the lexeme under way over `rest` fail, and what is read anew past its last end begin with something acceptable?"""
        after = self.step(parse, winner, rest[:end])
        for part, anew in self.parts(after):
            firsts = (t for t in self.terminals if t in self.kept_out or self.shift(part.stacks, self.column(t)))
            if self.can_fail(rest, end, frozenset(firsts), begin, anew):
                return True
        return False

    def places(self, text: bytes) -> tuple[Place, ...]:
        """The parses after the lexemes that no continuation changes, each with where these end: one place where all stacks lex alike."""
        if text not in self._places_after:
            if len(self._places_after) > MAX_KNOWN:
                self._places_after = {b"": self._places_after[b""]}
            ends = range(len(text) - 1, max(0, len(text) - LOOK_BACK), -1)
            known = next((text[:end] for end in ends if text[:end] in self._places_after), b"")
            self._places_after[text] = self.places_from(self._places_after[known], text)
        return self._places_after[text]

    def places_from(self, places: Iterable[Place], text: bytes) -> tuple[Place, ...]:
        """The same, read on from the places after some beginning of the text."""
        found: dict[Place, None] = {}
        agenda = list(places)
        while agenda:
            whole, at = agenda.pop()
            if at == len(text):
                found[whole, at] = None
                continue
            for parse, begin in self.parts(whole):
                winner, end, state = self.scan(text, at, begin)
                if state >= 0 and (end < len(text) or self.can_grow((state, b"\n" in text[at:]))):
                    found[parse, at] = None
                elif winner >= 0:
                    after = self.step(parse, winner, text[at:end])
                    agenda += [(after, end)] if after else []
        return tuple(found)

    def decided(self, text: bytes) -> tuple[Parse | None, int]:
        """The only one of `places`; None and the text's length if there is none."""
        places = self.places(text)
        assert len(places) < 2, "the stacks lex in different ways"
        return places[0] if places else (None, len(text))

    # ------------------------------------------------------------------------------------------------------ parsing

    def shift(self, stacks: frozenset[Stack], column: int) -> frozenset[Stack]:
        """All stacks after a terminal."""
        return frozenset(self.parser.shift(tuple(stacks), column).stacks)

    def _is_dead(self, stack: Stack, state: int) -> bool:
        assert self.futures is not None
        linked: tuple[int, Any] | None = None
        for one in (*stack.states(), state):
            linked = one, linked
        return not self.futures.is_live(linked)

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def accepts_end(self, parse: Parse) -> bool:
        """May the text end here, dedents for all that is open coming first?"""
        stacks = parse.stacks
        for _ in parse.columns[1:]:
            assert self.layout is not None
            stacks = self.shift(stacks, self.column(self.layout.dedent))
        return self.parser.accepts_end(tuple(stacks))

    def step(self, parse: Parse, terminal: int, lexeme: bytes) -> Parse | None:
        """After a lexeme that is finished; None if the parser refuses it."""
        layout = self.layout
        if terminal in self.grammar.ignored:
            return parse
        if layout is None:
            stacks = self.shift(parse.stacks, self.column(terminal))
            return parse._replace(stacks=stacks) if stacks else None
        if terminal == layout.newline:
            if parse.depth > 0:
                return parse
            return self.newline(parse, columns_of(layout, lexeme))
        depth = parse.depth + sum((terminal == opening) - (terminal == closing) for opening, closing in layout.brackets)
        stacks = self.shift(parse.stacks, self.column(terminal))
        return Parse(stacks, parse.columns, max(0, depth)) if stacks else None

    def newline(self, parse: Parse, column: Columns) -> Parse | None:
        """After a newline of the layout that ended at some columns."""
        assert self.layout is not None
        stacks, columns = self.shift(parse.stacks, self.column(self.layout.newline)), parse.columns
        if column[0] > columns[-1][0]:
            if column[1] <= columns[-1][1] or column[0] >= 2**31 - 1:
                return None
            stacks, columns = self.shift(stacks, self.column(self.layout.indent)), (*columns, column)
        while column[0] < columns[-1][0]:
            stacks, columns = self.shift(stacks, self.column(self.layout.dedent)), columns[:-1]
        return parse._replace(stacks=stacks, columns=columns) if stacks and column == columns[-1] else None

    @lru_cache(maxsize=1 << 16)  # noqa: B019
    def leads_on(self, parse: Parse) -> bool:
        """May the text end here, or is there a terminal with bytes that the parser accepts next and that competes here?"""
        return self.accepts_end(parse) or any(
            t not in self.grammar.ignored and self.shift(frozenset({stack}), self.column(t))
            for stack in parse.stacks
            for t in self.competing(stack.top)
        )

    # ----------------------------------------------------------------------------------------------------- legality

    def is_legal_text(self, text: bytes) -> bool:
        """Does it lex into a word of the grammar? A longest match that only the end of the text cuts off is backed up."""
        return any(self._ends(parse, text[begin:]) for parse, begin in self.places(text))

    def _ends(self, whole: Parse | None, rest: bytes) -> bool:
        if not rest:
            return whole is not None and self.accepts_end(whole)
        for parse, begin in self.parts(whole):
            winner, end, state = self.scan(rest, 0, begin)
            is_over = state < 0 or end == len(rest)
            if winner < 0 or not (is_over or self.may_back_up(parse, rest, winner, end, begin)):
                continue
            is_last_newline = self.layout is not None and winner == self.layout.newline and end == len(rest)
            lexeme = (
                b"\n" if is_last_newline else rest[:end]
            )  # the text's end is behind its last line, whatever blanks follow
            if self._ends(self.step(parse, winner, lexeme), rest[end:]):
                return True
        return False

    def is_legal_prefix(self, text: bytes) -> bool:
        """Is some terminal acceptable that the lexeme under way may become, or another reading of its bytes?"""
        return any(self._goes_on(parse, text[begin:]) for parse, begin in self.places(text))

    def _goes_on(self, whole: Parse | None, rest: bytes) -> bool:
        if whole is None:
            return False
        if not rest:
            return self.leads_on(whole)
        return any(self._part_goes_on(parse, rest, begin) for parse, begin in self.parts(whole))

    def _part_goes_on(self, parse: Parse, rest: bytes, begin: int) -> bool:
        winner, end, state = self.scan(rest, 0, begin)
        lexeme = state, b"\n" in rest
        if state < 0 or (end == len(rest) and not self.can_grow(lexeme)):
            return winner >= 0 and self._goes_on(self.step(parse, winner, rest[:end]), rest[end:])
        for terminal in self.ahead(lexeme):
            if terminal in self.grammar.ignored and self._goes_on_behind(parse, lexeme, terminal):
                return True
            if terminal not in self.grammar.ignored and self._may_become(parse, terminal, state, rest):
                return True
        backs_up = winner >= 0 and end < len(rest) and self.may_back_up(parse, rest, winner, end, begin)
        return backs_up and self._goes_on(self.step(parse, winner, rest[:end]), rest[end:])

    @lru_cache(maxsize=1 << 14)  # noqa: B019
    def _goes_on_behind(self, parse: Parse, lexeme: Lexeme, terminal: int) -> bool:
        """May the lexeme become an ignored one, with the text's end behind it or something acceptable?"""
        if self.accepts_end(parse):
            return True
        seen = {place for place in self.reached(lexeme) if self.winner_of(*place) == terminal}
        agenda = list(seen)
        while agenda:
            place = agenda.pop()
            for (part, begin), byte in itertools.product(self.parts(parse), self.alphabet):
                begun, after = self.grow((begin, False), byte), self.grow(place, byte)
                if begun is None or (after is not None and self.winner_of(*after) >= 0):
                    continue
                every = frozenset(self.terminals)
                others = self._anew(frozenset({(begin, False, True)}), byte, every)
                if after is not None and not self._fails(after, others, every):
                    continue
                for t in self.ahead(begun):
                    if t not in self.grammar.ignored:
                        if self._may_become(part, t, begun[0], bytes([byte])):
                            return True
                        continue
                    new = {other for other in self.reached(begun) if self.winner_of(*other) == t} - seen
                    seen |= new
                    agenda += new
        return False

    def _may_become(self, parse: Parse, terminal: int, state: int, rest: bytes) -> bool:
        if self.layout is None or terminal != self.layout.newline or parse.depth > 0:
            after = self.step(parse, terminal, rest)
            return after is not None and self.leads_on(after)
        # more than any column that is open, and a multiple of 8: further in is further in
        limit = 8 * (max(parse.columns[-1]) // 8 + 2)
        begin = (state, b"\n" in rest, columns_of(self.layout, rest))
        found, agenda = {begin}, [begin]
        while agenda:
            here, has_line_feed, columns = agenda.pop()
            if has_line_feed and self.winner_of(here, True) == terminal:
                after = self.newline(parse, columns)
                if after is not None and self.leads_on(after):
                    return True
            for byte in self.alphabet:
                col, altcol = moved(self.layout, columns, byte)
                place = (self.read(here, byte), has_line_feed or byte == 10, (min(col, limit), min(altcol, limit)))
                if place[0] >= 0 and place not in found:
                    found.add(place)
                    agenda.append(place)
        return False

    def allowed(self, prefix: bytes, tokens: Sequence[bytes]) -> set[int]:
        """The ids of the tokens (with bytes) that leave a legal prefix."""
        return {i for i, token in enumerate(tokens) if token and self.is_legal_prefix(prefix + token)}

    def ending(self, text: bytes, tries: int = 2000) -> bytes | None:
        """Some continuation that makes a legal text, by search alone: None if `tries` places have none.

        It is made of single bytes and of whole terminals behind a blank. What has been tried once is not tried again: places
        are told apart by the parse and by how the undecided bytes lex.
        """
        agenda: list[tuple[int, int, bytes]] = [(0, 0, b"")]
        seen = set()
        for tried in range(tries):
            if not agenda:
                return None
            cost, _, more = heapq.heappop(agenda)
            if self.is_legal_text(text + more):
                return more
            for move in (*self.words, *(bytes([byte]) for byte in self.alphabet)):
                places = self.places(text + more + move)
                key = frozenset((parse, self._place(parse, text + more + move, at)) for parse, at in places)
                if places and key not in seen:
                    seen.add(key)
                    heapq.heappush(agenda, (cost + 1, tried, more + move))
        return None

    @cached_property
    def words(self) -> list[bytes]:
        """A shortest spelling of every terminal, behind a blank, and without one where not all terminals compete."""
        found: dict[tuple[int, bool], bytes] = {}
        seen, agenda = {0}, deque([(0, b"")])
        while agenda:
            state, text = agenda.popleft()
            for byte in self.alphabet:
                after = self.read(state, byte)
                if after >= 0 and after not in seen:
                    seen.add(after)
                    agenda.append((after, text + bytes([byte])))
                    for t, regex in zip(self.terminals, self.union[after], strict=True):
                        if is_nullable(regex):
                            found.setdefault((t, t == self.winner_of(after, True)), text + bytes([byte]))
        words = {
            wins: [w for (t, w_), w in found.items() if w_ == wins and t not in self.grammar.ignored]
            for wins in (True, False)
        }
        return [b" " + word for word in words[True]] + (words[True] + words[False] if self.begins != (0,) else [])

    def _place(self, parse: Parse, text: bytes, at: int) -> tuple[object, ...]:
        if at == len(text):
            return ()
        margin = text[at:].rpartition(b"\n")[2] if self.layout else b""
        scans = [self.scan(text, at, begin) for _, begin in self.parts(parse)]
        ways = tuple((state, winner, text[end:] if winner >= 0 else b"") for winner, end, state in scans)
        return ways, len(margin), b"\n" in text[at:]


def check_endings(store: Store, naive: NaiveEngine, texts: Iterable[bytes], tries: int) -> tuple[int, int]:
    """The engine accepts each text with an ending that the naive engine finds. How many have one, and how many it finds none for."""
    found = missed = 0
    for text in texts:
        ending = naive.ending(text, tries)
        if ending is None:
            missed += 1
            continue
        found += 1
        matcher = store.matcher()
        matcher.advance_bytes(text + ending)
        assert matcher.is_accepting(), (text, ending)
    return found, missed
