"""Patterns of terminals for the oracle: matches, and whether a match could still change.

In: a terminal. Out: compiled patterns, sample strings, first bytes. A pattern stands for its
longest match: ``a|ab`` matches all of ``ab``, where Python's `re` stops at ``a``. `Language` finds
it. If a pattern looks around, or says itself which match it prefers (``*?``, ``*+``, ``(?>...)``),
the match is that of `re`. Whether that could still change comes from the package `regex`: its
``partial=True`` says whether matching ran into the end of the text.
"""

from __future__ import annotations

import importlib
import re
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maskwright.analysis.errors import LimitError, MissingExtraError
from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.kept import cached_property
from maskwright.analysis.regex.properties import with_classes

sre: Any = importlib.import_module("re._parser")  # the parse trees of Python's own `re`

Members: TypeAlias = NDArray[np.bool_]
"""(0x110000,) bool; the code points that a pattern for one character matches."""

N_CODE_POINTS = 0x110000

MOST_STATES = 20_000
"""The most states of a pattern's automaton. Patterns with more are matched by `re`."""


def with_flags(pattern: str, flags: str) -> str:
    """The source of a pattern with its flags inside. flags : letters of `re`'s flags, or "".

    >>> with_flags("a+", "i"), with_flags("a+", "")
    ('(?i:a+)', 'a+')
    """
    return with_classes(f"(?{flags}:{pattern})" if flags else pattern)


class Pattern:
    """One terminal's pattern.

    looks_back : most characters before a match that the pattern looks at.
    looks_ahead : whether the pattern looks at characters after a match.
    members : for each part of the pattern that matches one character, the characters it matches.

    The three have their values after a first `scan`.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.name = terminal.name
        source = with_flags(terminal.pattern or "", terminal.flags)
        self.looks_back = 0
        self.looks_ahead = False
        self.members: list[Members] = []
        self._complete = re.compile(source)
        self._tree = sre.parse(source)
        self._language = language_of(self._tree)
        if terminal.lengths is not None:
            if self._language is None:
                raise LimitError(
                    f"terminal {self.name}: the oracle does not bound the length of a pattern that looks around or prefers one match"
                )
            self._language = self._language.of_lengths(*terminal.lengths, bool(terminal.beyond))
        if self._language is not None:
            self.members = self._language.members

    def scan(self, text: str, begin: int) -> tuple[int, bool]:
        """The match at `begin`, and whether it could change if the text went on.

        text : the text. begin : an offset in it, in characters.

        Returns: (end, open); the end is -1 if nothing matches.
        Raises: as `_unfinished`, for a pattern that is not for `Language`.
        """
        if self._language is not None:
            return self._language.scan(text, begin)
        return self.end(text, begin), self._unfinished.match(text, begin, partial=True) is not None

    def end(self, text: str, begin: int) -> int:
        """The end of the match at `begin`; -1 if nothing matches. It does without regex."""
        if self._language is not None:
            return self._language.scan(text, begin)[0]
        match = self._complete.match(text, begin)
        return match.end() if match else -1

    @cached_property
    def _unfinished(self) -> Any:
        """A pattern of the package `regex` that never matches, but may match partially.

        It matches partially iff `re`, on its way to a match or to failure, runs into the end of the
        text. More text could change the result then. It is an atomic copy of the pattern, followed
        by a failure.

        Raises: MissingExtraError if regex is not installed; LimitError for a part of the pattern
            that the oracle does not know.
        """
        try:
            import regex
        except ImportError:
            raise MissingExtraError(
                "the oracle needs the package regex, which is not installed: pip install 'maskwright[oracle]'"
            ) from None
        return regex.compile(f"(?>{self._translate(self._tree, self._tree.state.flags)})(?!)")

    @cached_property
    def suffixes(self) -> list[str]:
        """All non-empty suffixes of the sample strings, the shortest first."""
        samples = self._samples(self._tree, self._tree.state.flags)
        suffixes = {sample[i:] for sample in samples for i in range(len(sample))}
        return sorted(suffixes, key=lambda suffix: (len(suffix), suffix))

    def _translate(self, nodes: Any, flags: int) -> str:
        """The pattern for `regex`, with each set of characters spelled out.

        Some sets have other members in `regex` than in `re`.
        """
        return "".join(self._translate_node(str(op), argument, flags) for op, argument in nodes)

    def _translate_node(self, op: str, argument: Any, flags: int) -> str:
        if op in _SINGLE:
            members = _members(_source(op, argument), flags & _MATTERS)
            self.members.append(members)
            # `regex` misses the partial match of a repeated set at the end of the text, unless the
            # set is in a branch
            return f"(?:{_spell(members)}|(?!))"
        if op == "BRANCH":
            return "(?:" + "|".join(self._translate(nodes, flags) for nodes in argument[1]) + ")"
        if op == "SUBPATTERN":
            _, added, deleted, nodes = argument
            return f"(?:{self._translate(nodes, _combine(flags, added, deleted))})"
        if op in _REPEATS:
            least, most, nodes = argument
            bounds = f"{{{least},{'' if most == sre.MAXREPEAT else most}}}"
            return f"(?:{self._translate(nodes, flags)}){bounds}{_REPEATS[op]}"
        if op == "ATOMIC_GROUP":
            return f"(?>{self._translate(argument, flags)})"
        if op in ("ASSERT", "ASSERT_NOT"):
            direction, nodes = argument
            if direction < 0:
                self.looks_back = max(self.looks_back, nodes.getwidth()[1])
            self.looks_ahead |= direction > 0
            sign = "=" if op == "ASSERT" else "!"
            return f"(?{'<' if direction < 0 else ''}{sign}{self._translate(nodes, flags)})"
        if op == "AT":
            self.looks_back, self.looks_ahead = max(self.looks_back, 1), True
            at = str(argument)
            if at in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
                word = self._translate_node("IN", [(sre.CATEGORY, sre.CATEGORY_WORD)], flags)
                inside, outside = f"(?<={word})(?={word})|(?<!{word})(?!{word})", f"(?<={word})(?!{word})"
                return f"(?:{outside}|(?<!{word})(?={word}))" if at == "AT_BOUNDARY" else f"(?:{inside})"
            multiline = bool(flags & re.MULTILINE)
            return {
                "AT_BEGINNING": r"(?<![^\n])" if multiline else r"(?<![\s\S])",
                "AT_BEGINNING_STRING": r"(?<![\s\S])",
                "AT_END": r"(?![^\n])" if multiline else r"(?![^\n]|\n[\s\S])",
                "AT_END_STRING": r"(?![\s\S])",
            }[at]
        if op == "FAILURE":
            return "(?!)"
        raise LimitError(f"terminal {self.name}: the oracle does not know {op} in {self._complete.pattern}")

    def _samples(self, nodes: Any, flags: int) -> list[str]:
        """At most 100 strings that show the parts of a pattern; the plainest one comes first."""
        parts = [self._samples_of(str(op), argument, flags) for op, argument in nodes]
        plain = [part[0] for part in parts]
        found = ["".join(plain)]
        for i, part in enumerate(parts):
            found += ["".join([*plain[:i], other, *plain[i + 1 :]]) for other in part[1:]]
        found.append("".join(part[-1] for part in parts))
        return list(dict.fromkeys(found))[:100]

    def _samples_of(self, op: str, argument: Any, flags: int) -> list[str]:
        if op in _SINGLE:
            return _plainest(_members(_source(op, argument), flags & _MATTERS))
        if op == "BRANCH":
            return list(dict.fromkeys(s for nodes in argument[1] for s in self._samples(nodes, flags)))
        if op == "SUBPATTERN":
            return self._samples(argument[3], _combine(flags, argument[1], argument[2]))
        if op == "ATOMIC_GROUP":
            return self._samples(argument, flags)
        if op == "ASSERT" and argument[0] > 0:
            return ["", *self._samples(argument[1], flags)]
        if op in _REPEATS:
            least, most, nodes = argument
            once = self._samples(nodes, flags)
            least, most = min(int(least), 50), min(int(most), 50)
            counts = [count for count in (least, least + 1) if count <= most]
            found = [""] if 0 in counts else []
            for more in (once[0] * (count - 1) for count in counts if count):
                # what ends a repetition may differ from what it begins with
                found += [one for s in once for one in (s + more, more + s)]
            return list(dict.fromkeys(found))
        return [""]


class Language:
    """The strings of a pattern as an automaton, whose states are made when a text needs them.

    members : the characters of each edge.
    edges[s] : (number of an edge, state) of each edge from a state of the NFA.
    empty[s] : where state s leads without a character.
    last : the NFA's last state; the first is 0.
    """

    def __init__(
        self, members: list[Members], edges: list[list[tuple[int, int]]], empty: list[list[int]], last: int
    ) -> None:
        self.members, self._edges, self._empty, self._last = members, edges, empty, last
        self._live = self._find_live()
        self._numbers: dict[frozenset[int], int] = {}
        self._states: list[frozenset[int]] = []
        self._after: list[dict[str, int]] = []
        self._may_grow: list[bool] = []
        self._number({0})

    def of_lengths(self, least: int, most: int | None, is_beyond: bool) -> Language:
        """The strings of so many characters; all others if `is_beyond`.

        Each state knows how many characters came before it, as far as it matters.
        """
        cap = (least if most is None else most) + 1
        n = len(self._edges)

        def at(state: int, count: int) -> int:
            return min(count, cap) * n + state

        edges = [[(edge, at(to, count + 1)) for edge, to in row] for count in range(cap + 1) for row in self._edges]
        empty = [[at(to, count) for to in row] for count in range(cap + 1) for row in self._empty]
        for count in range(cap + 1):
            if (least <= count and (most is None or count <= most)) != is_beyond:
                empty[at(self._last, count)].append(len(edges))
        return Language(self.members, [*edges, []], [*empty, []], len(edges))

    def scan(self, text: str, begin: int) -> tuple[int, bool]:
        """The longest match at `begin`, see `Pattern.scan`."""
        state, last, states = 0, self._last, self._states
        if not states[0]:
            return -1, False
        end = begin if last in states[0] else -1
        for i in range(begin, len(text)):
            after = self._after[state].get(text[i])
            if after is None:
                after = self._after[state][text[i]] = self._step(state, ord(text[i]))
            if not states[after]:
                return end, False
            state = after
            if last in states[state]:
                end = i + 1
        return end, self._may_grow[state]

    @property
    def first(self) -> Members:
        """The characters with which a string may begin."""
        found = np.zeros(N_CODE_POINTS, dtype=np.bool_)
        for edge in {edge for state in self._states[0] for edge, _ in self._edges[state]}:
            found |= self.members[edge]
        return found

    def _step(self, state: int, code: int) -> int:
        found = {to for s in self._states[state] for edge, to in self._edges[s] if self.members[edge][code]}
        return self._number(found)

    def _number(self, reached: set[int]) -> int:
        """The number of a set of NFA states, with what they lead to without a character."""
        agenda = list(reached)
        while agenda:
            new = set(self._empty[agenda.pop()]) - reached
            reached |= new
            agenda += new
        key = frozenset(reached & self._live)
        if key not in self._numbers:
            self._numbers[key] = len(self._states)
            self._states.append(key)
            self._after.append({})
            self._may_grow.append(
                any(to in self._live and self.members[edge].any() for s in key for edge, to in self._edges[s])
            )
        return self._numbers[key]

    def _find_live(self) -> set[int]:
        """The NFA states from which some string leads to the last one."""
        before: list[list[int]] = [[] for _ in self._edges]
        for state, (edges, empty) in enumerate(zip(self._edges, self._empty, strict=True)):
            for to in [*empty, *(to for edge, to in edges if self.members[edge].any())]:
                before[to].append(state)
        found, agenda = {self._last}, [self._last]
        while agenda:
            new = set(before[agenda.pop()]) - found
            found |= new
            agenda += new
        return found


def language_of(tree: Any, is_loose: bool = False) -> Language | None:
    """The strings of a pattern.

    tree : as `re` parses it.
    is_loose : for a language of which only the beginnings are those of the pattern's strings. What
        looks around is left out, no match is preferred, and a part comes twice at most.

    Returns: None if the pattern looks around, prefers one match to another, or is too large.
    """
    members: list[Members] = []
    edges: list[list[tuple[int, int]]] = [[]]
    empty: list[list[int]] = [[]]

    def new() -> int:
        if len(edges) >= MOST_STATES:
            raise _NoLanguage
        edges.append([])
        empty.append([])
        return len(edges) - 1

    def read(nodes: Any, flags: int, at: int) -> int:
        for op, argument in nodes:
            at = read_node(str(op), argument, flags, at)
        return at

    def read_node(op: str, argument: Any, flags: int, at: int) -> int:
        """Add what a node reads in state `at`, and return the state behind it."""
        if op in _SINGLE:
            behind = new()
            edges[at].append((len(members), behind))
            members.append(_members(_source(op, argument), flags & _MATTERS))
            return behind
        if op == "SUBPATTERN":
            return read(argument[3], _combine(flags, argument[1], argument[2]), at)
        if op == "BRANCH":
            behind = new()
            for nodes in argument[1]:
                empty[read(nodes, flags, at)].append(behind)
            return behind
        if op == "FAILURE":
            return new()
        if op == "ATOMIC_GROUP" and is_loose:
            return read(argument, flags, at)
        if op not in (_REPEATS if is_loose else ("MAX_REPEAT",)):
            if is_loose:
                return at
            raise _NoLanguage
        least, most, nodes = argument
        if is_loose:
            least, most = min(least, 1), min(most, 2)
        for _ in range(int(least)):
            n_before, at = len(edges), read(nodes, flags, at)
            if len(edges) == n_before:  # the body is empty, and so is every copy
                return at
        behind = new()
        empty[at].append(behind)
        if most == sre.MAXREPEAT:
            empty[read(nodes, flags, behind)].append(behind)
            return behind
        for _ in range(int(most) - int(least)):
            n_before, at = len(edges), read(nodes, flags, at)
            empty[at].append(behind)
            if len(edges) == n_before:
                break
        return behind

    try:
        last = read(tree, tree.state.flags, 0)
    except _NoLanguage:
        return None
    return Language(members, edges, empty, last)


class _NoLanguage(Exception):
    """A pattern is not for `Language`."""


def first_bytes(terminal: Terminal) -> frozenset[int]:
    """The bytes with which the terminal's strings can begin.

    Look-aheads are ignored, so bytes that one forbids may be included.
    """
    language = language_of(sre.parse(with_flags(terminal.pattern or "", terminal.flags)), is_loose=True)
    assert language is not None
    codes = np.flatnonzero(language.first)
    # as UTF-8 has it: with one byte, two, three and four
    first = np.select(
        [codes < 0x80, codes < 0x800, codes < 0x10000],
        [codes, 0xC0 | codes >> 6, 0xE0 | codes >> 12],
        0xF0 | codes >> 18,
    )
    return frozenset(first.tolist())


_SINGLE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_REPEATS = {"MAX_REPEAT": "", "MIN_REPEAT": "?", "POSSESSIVE_REPEAT": "+"}
_MATTERS = re.IGNORECASE | re.DOTALL | re.ASCII
"""The flags on which the members of a set of characters depend."""
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _combine(flags: int, added: int, deleted: int) -> int:
    kinds = re.ASCII | re.UNICODE | re.LOCALE
    return ((flags & ~kinds if added & kinds else flags) | added) & ~deleted


def _source(op: str, argument: Any) -> str:
    """The source for `re` of a pattern that matches one character."""
    if op == "ANY":
        return "."
    if op != "IN":
        return f"[{'^' if op == 'NOT_LITERAL' else ''}\\U{argument:08x}]"
    found = ""
    for kind, value in argument:
        match str(kind):
            case "NEGATE":
                found += "^"
            case "LITERAL":
                found += f"\\U{value:08x}"
            case "RANGE":
                found += f"\\U{value[0]:08x}-\\U{value[1]:08x}"
            case "CATEGORY":
                found += _CATEGORIES[str(value)]
            case other:
                raise LimitError(f"the oracle does not know {other} in a set of characters")
    return f"[{found}]"


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(map(chr, range(N_CODE_POINTS)))


@lru_cache(maxsize=4096)
def _members(source: str, flags: int) -> Members:
    """The characters that a pattern for one character matches."""
    found = np.zeros(N_CODE_POINTS, dtype=np.bool_)
    for match in re.finditer(f"(?:{source})+", _all_characters(), flags):
        found[match.start() : match.end()] = True
    found.setflags(write=False)
    return found


def _spell(members: Members) -> str:
    """A set of characters as ranges, for `regex`."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], members, [False])).astype(np.int8)))
    ranges = [f"\\U{low:08x}-\\U{high - 1:08x}" for low, high in edges.reshape(-1, 2).tolist()]
    return f"[{''.join(ranges)}]" if ranges else "(?!)"


def _plainest(members: Members) -> list[str]:
    """Some characters of a set: all of up to four, else a letter, a digit and others, as it has."""
    codes = np.flatnonzero(members)
    if len(codes) <= 4:
        return [chr(code) for code in codes] or [""]
    kinds = (re.compile(kind) for kind in ("[A-Za-z]", "[0-9]", "[!-~]", r"[\s\S]"))
    firsts = (next((chr(c) for c in codes[:256] if kind.match(chr(c))), None) for kind in kinds)
    return list(dict.fromkeys([first for first in firsts if first is not None] or [chr(codes[0])]))
