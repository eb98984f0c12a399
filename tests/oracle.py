"""Which bytes are legal under `longest` lexing with layout, straight from the definition and from no fast code.

A prefix is legal iff *some* continuation C makes it a legal text. So the lexer here never simulates anything: it takes
concrete continuations C, lexes prefix + C with Python's own `re`, and keeps the lexemes that begin in the prefix (a
*reading*). Only two things come from elsewhere: `regex` with ``partial=True`` says whether a terminal's match could
still change if the text went on, and Lark's own LALR analysis builds the parse table, which is driven over linked
stacks that are never changed.

What is sound and what is bounded: every reading is that of a real continuation. The continuations that are tried are
suffixes of sample strings of the terminals and one character of every class that the patterns distinguish, so a
terminal that needs more than that to be completed or to fail would be missed (`_completing`, `_can_fail`).

Assumed, as in the definition: after a terminal that Lark's parser shifts some terminal can follow (checked only one
terminal deep), and some continuation separates two lexemes. Shift/reduce conflicts are resolved as Lark resolves them.
"""

from __future__ import annotations

import codecs
import importlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import regex  # type: ignore[import-untyped]
from lark.common import ParserConf
from lark.grammar import NonTerminal
from lark.grammar import Rule as LarkRule
from lark.grammar import Terminal as LarkTerminal
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift
from lark.utils import get_regexp_width
from numpy.typing import NDArray

from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols

sre: Any = importlib.import_module("re._parser")  # the parse trees of Python's own `re`

Members: TypeAlias = NDArray[np.bool_]  # (0x110000,) which code points one character of a pattern stands for
Stack: TypeAlias = "tuple[int, Stack | None]"
Lexeme: TypeAlias = tuple[int, int, int]  # terminal, begin, end

_N_CODE_POINTS = 0x110000
_CHUNK = 256  # bytes between two states that `Oracle.feed` remembers
_MEMO_LENGTH = 120  # characters: longer tails are not worth remembering
_MEMO_SIZE = 1 << 16


class Step(NamedTuple):
    """A lexeme as the parser sees it. Only of a newline: its column, and whether more spaces or tabs may still follow."""

    terminal: int
    column: int | None = None
    by_space: bool = False
    by_tab: bool = False


Reading: TypeAlias = tuple[Step, ...]


class Oracle:
    """Legality of texts, prefixes and tokens for one grammar; slow, and written to be believed.

    conflicts : how the parser resolves shift/reduce conflicts.
    """

    conflicts = "shift"

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.lexer = _Lexer(grammar)
        self.parser = _Parser(grammar)
        self.root = State(self, self.parser.initial)
        self._trail: list[tuple[bytes, State]] = [(b"", self.root)]

    def is_legal_prefix(self, text: bytes) -> bool:
        """Does some continuation make it a legal text?"""
        return self.feed(text).is_legal

    def is_legal_text(self, text: bytes) -> bool:
        """Does it lex into terminals that the parser accepts?"""
        return self.feed(text).is_legal_text

    def is_allowed(self, prefix: bytes, token: bytes) -> bool:
        return self.feed(prefix).allows(token)

    def feed(self, prefix: bytes) -> State:
        """The state after `prefix`; resumes from the last prefix that was fed as far as the two agree."""
        while not prefix.startswith(self._trail[-1][0]):
            self._trail.pop()
        fed, state = self._trail[-1]
        for begin in range(len(fed), len(prefix), _CHUNK):
            state = state.feed(prefix[begin : begin + _CHUNK])
            self._trail.append((prefix[: begin + _CHUNK], state))
        return state


@dataclass(frozen=True)
class State:
    """After a text: what is decided has gone into `parse` (None: illegal), the rest is `text` from `start` on.

    text : a few decided characters that look-behinds may see, then the undecided ones. rest : bytes of an incomplete
    last character.
    """

    oracle: Oracle = field(repr=False)
    parse: Parse | None
    text: str = ""
    start: int = 0
    rest: bytes = b""

    def feed(self, more: bytes) -> State:
        """The state after some more bytes."""
        if self.parse is None:
            return self
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = self.text + decoder.decode(self.rest + more)
        except UnicodeDecodeError:
            return State(self.oracle, None)
        lexer, parser = self.oracle.lexer, self.oracle.parser
        parse: Parse | None = self.parse
        start = self.start
        while parse is not None and start < len(text):
            terminal, end, open_ones = lexer.scan(text, start)
            if open_ones or end == len(text):
                break
            if terminal is None:
                return State(self.oracle, None)
            parse, start = parser.step(parse, lexer.step((terminal, start, end), text)), end
        cut = max(0, start - lexer.context)
        return State(self.oracle, parse, text[cut:], start - cut, decoder.getstate()[0])

    def allows(self, token: bytes) -> bool:
        return self.feed(token).is_legal

    @property
    def is_legal(self) -> bool:
        """Is the text so far a legal prefix?"""
        if self.parse is None:
            return False
        lexer = self.oracle.lexer
        texts = [self.text + c for c in lexer.completions(self.rest)] if self.rest else [self.text]
        return any(self._leads_on(reading) for text in texts for reading in lexer.readings(text, self.start))

    @property
    def is_legal_text(self) -> bool:
        parse, lexer, parser = self.parse, self.oracle.lexer, self.oracle.parser
        chain = None if self.rest else lexer.at_end_of_text(self.text, self.start)
        for lexeme in chain or ():
            parse = None if parse is None else parser.step(parse, lexer.step(lexeme, self.text))
        return chain is not None and parse is not None and parser.accepts_end(parse)

    def _leads_on(self, reading: Reading) -> bool:
        parse, parser = self.parse, self.oracle.parser
        for step in reading[:-1]:
            parse = None if parse is None else parser.step(parse, step)
        if parse is None:
            return False
        after = parser.last_step(parse, reading[-1]) if reading else iter([parse])
        return any(parser.leads_on(found) for found in after)


# ---------------------------------------------------------------------------------------------------------- lexing


class _Lexer:
    """Longest match over all terminals, and the readings of a text that may go on."""

    def __init__(self, grammar: Grammar) -> None:
        self.layout = grammar.layout
        lexable = [number for number, terminal in enumerate(grammar.terminals) if terminal.pattern is not None]
        self.ranked = sorted(lexable, key=lambda number: _rank(grammar.terminals[number]))
        self.patterns = {number: _Pattern(grammar.terminals[number]) for number in lexable}
        self.context = max((pattern.looks_back for pattern in self.patterns.values()), default=0)
        classes = _classes([members for pattern in self.patterns.values() for members in pattern.members])
        self._class_of = classes
        first = np.unique(classes, return_index=True)[1]
        self.representatives = sorted((chr(c) for c in first if not 0xD800 <= c < 0xE000), key=_separators_first)
        self._beginning: dict[str, list[int]] = {}
        self._last_suffix: dict[int, str] = {}
        self._readings: dict[tuple[str, int], list[Reading]] = {}

    def scan(self, text: str, begin: int) -> tuple[int | None, int, list[int]]:
        """The longest match at `begin` if the text ended here (terminal, end), and the terminals whose match there
        could still change if it went on."""
        winner, longest, open_ones = None, begin, []
        for number in self._candidates(text[max(0, begin - self.context) : begin + 1], min(begin, self.context)):
            pattern = self.patterns[number]
            match = pattern.complete.match(text, begin)
            if match and match.end() > longest:
                winner, longest = number, match.end()
            if pattern.unfinished.match(text, begin, partial=True):
                open_ones.append(number)
        return winner, longest, open_ones

    def _candidates(self, key: str, begin: int) -> list[int]:
        """The terminals that one character does not rule out, the strongest first."""
        if key not in self._beginning:
            patterns = ((number, self.patterns[number]) for number in self.ranked)
            self._beginning[key] = [
                number
                for number, pattern in patterns
                if pattern.complete.match(key, begin) or pattern.unfinished.match(key, begin, partial=True)
            ]
        return self._beginning[key]

    def step(self, lexeme: Lexeme, text: str) -> Step:
        terminal, begin, end = lexeme
        if self.layout is None or terminal != self.layout.newline:
            return Step(terminal)
        _, line_feed, margin = text[begin:end].rpartition("\n")
        # Lark's Indenter counts all of what follows the line feed, be it a comment, and fails without a line feed
        column = margin.count(" ") + margin.count("\t") * self.layout.tab_length
        return Step(terminal, column if line_feed else None)

    def at_end_of_text(self, text: str, start: int) -> list[Lexeme] | None:
        """The lexemes of a whole text, or None if it does not lex.

        Where the longest match under way fails only because the text ends, it is backed up, unless nothing else could
        have made it fail.
        """
        chain = []
        while start < len(text):
            terminal, end, open_ones = self.scan(text, start)
            if terminal is None or (open_ones and end < len(text) and not self._can_fail(text, start, terminal, end)):
                return None
            chain.append((terminal, start, end))
            start = end
        return chain

    @lru_cache(maxsize=4096)  # noqa: B019 (an oracle lives as long as its tests)
    def _can_fail(self, text: str, begin: int, terminal: int, end: int) -> bool:
        """Is there a continuation after which the lexeme at `begin` is this one and nothing else can become of it?"""
        tails = (c * times for times in range(1, 5) for c in self.representatives)
        return any(self.scan(text + tail, begin) == (terminal, end, []) for tail in tails)

    def readings(self, text: str, start: int) -> list[Reading]:
        """All that continuations can make of the lexemes that begin in ``text[start:]``."""
        if len(text) > _MEMO_LENGTH:
            return self._find_readings(text, start)
        if (text, start) not in self._readings:
            if len(self._readings) >= _MEMO_SIZE:
                self._readings.clear()
            self._readings[text, start] = self._find_readings(text, start)
        return self._readings[text, start]

    def _find_readings(self, text: str, start: int) -> list[Reading]:
        found: dict[Reading, None] = {}
        heads: set[tuple[int, ...]] = set()  # the readings' terminals

        def add(chain: list[Lexeme] | None, continuation: str) -> None:
            if chain is not None:
                heads.add(tuple(terminal for terminal, _, _ in chain))
                found[self._reading(chain, text, start, continuation)] = None

        add(self.at_end_of_text(text, start), "")
        head: tuple[int, ...] = ()
        undecided: list[tuple[int, tuple[int, ...], int]] = []
        begin, is_sure = start, True
        while begin < len(text):  # the lexemes if all that is under way fails
            terminal, end, open_ones = self.scan(text, begin)
            undecided += [(begin, head, number) for number in open_ones]
            backs_up = bool(open_ones) and end < len(text)
            if terminal is None or (backs_up and not self._can_fail(text, begin, terminal, end)):
                break
            is_sure &= not backs_up and not (terminal in open_ones and self.patterns[terminal].looks_ahead)
            head, begin = (*head, terminal), end
        if not is_sure:
            for c in self.representatives:
                add(self._decided(text + c, start, len(text)), c)
        for begin, head, number in undecided:  # the lexemes if this one is completed
            is_newline = self.layout is not None and number == self.layout.newline
            for suffix in self._completing(number, text, begin):
                if (*head, number) in heads and not is_newline:  # of a newline every column is wanted
                    break
                add(self._decided(text + suffix, start, len(text)), suffix)
        return list(found)

    def _completing(self, number: int, text: str, begin: int) -> Iterator[str]:
        """Continuations that complete this terminal's match at `begin`; the one that helped last comes first."""
        pattern = self.patterns[number]
        for suffix in (self._last_suffix.get(number, ""), *pattern.suffixes):
            match = pattern.complete.match(text + suffix, begin)
            if suffix and match and (match.end() >= len(text) or pattern.looks_ahead):
                self._last_suffix[number] = suffix
                yield suffix

    def _decided(self, text: str, start: int, limit: int) -> list[Lexeme] | None:
        """The lexemes that begin before `limit`, None if they do not lex or are not decided yet."""
        chain = []
        while start < limit:
            terminal, end, open_ones = self.scan(text, start)
            if terminal is None or (open_ones and end < len(text)):
                return None
            chain.append((terminal, start, end))
            start = end
        return chain

    def _reading(self, chain: list[Lexeme], text: str, start: int, continuation: str) -> Reading:
        steps = [self.step(lexeme, text + continuation) for lexeme in chain]
        if steps and self.layout is not None and steps[-1].terminal == self.layout.newline:
            n = len(text)
            grows = [self._decided(text + continuation + more, start, n) for more in " \t"]
            longer = [other is not None and other[-1] == (*chain[-1][:2], chain[-1][2] + 1) for other in grows]
            steps[-1] = steps[-1]._replace(by_space=longer[0], by_tab=longer[1])
        return tuple(steps)

    def completions(self, rest: bytes) -> list[str]:
        """One character of every class among those whose UTF-8 begins with these bytes."""
        return _completions(self, rest)


@lru_cache(maxsize=8192)
def _completions(lexer: _Lexer, rest: bytes) -> list[str]:
    n_bytes = 2 if rest[0] < 0xE0 else 3 if rest[0] < 0xF0 else 4
    missing = n_bytes - len(rest)
    code = rest[0] & (0x7F >> n_bytes)
    for byte in rest[1:]:
        code = code << 6 | byte & 0x3F
    low = max(code << 6 * missing, {2: 0x80, 3: 0x800, 4: 0x10000}[n_bytes])
    codes = np.arange(low, min((code + 1) << 6 * missing, _N_CODE_POINTS))
    codes = codes[(codes < 0xD800) | (codes >= 0xE000)]
    first = np.unique(lexer._class_of[codes], return_index=True)[1]
    return [chr(codes[i]) for i in first]


def _rank(terminal: Terminal) -> tuple[int, bool, int, int, str]:
    """What wins between matches of equal length comes first."""
    pattern = terminal.pattern or ""
    width = get_regexp_width(_with_flags(pattern, terminal.flags))[1]
    length = len(pattern if terminal.literal is None else terminal.literal)
    return -terminal.priority, terminal.literal is None, -width, -length, terminal.name


def _separators_first(character: str) -> tuple[int, int]:
    order = " \n;,()\t"
    return order.index(character) if character in order else len(order), ord(character)


def _with_flags(pattern: str, flags: str) -> str:
    return f"(?{flags}:{pattern})" if flags else pattern


def _classes(members: list[Members]) -> NDArray[np.uint64]:
    """(0x110000,) numbers, equal for characters that belong to the same sets."""
    draw = random.Random(0)
    found = np.zeros(_N_CODE_POINTS, dtype=np.uint64)
    for distinct in {m.tobytes(): m for m in members}.values():
        found[distinct] ^= np.uint64(draw.getrandbits(64))
    return found


# -------------------------------------------------------------------------------------------------------- patterns


class _Pattern:
    """One terminal's pattern.

    complete : Python's `re`. unfinished : matches partially iff the way to `complete`'s match (or to its failure) runs
    into the end of the text, so that what follows may change it: an atomic copy of the pattern, then failure.
    """

    def __init__(self, terminal: Terminal) -> None:
        self.name = terminal.name
        source = _with_flags(terminal.pattern or "", terminal.flags)
        self.complete = re.compile(source)
        self.looks_back = 0
        self.looks_ahead = False
        self.members: list[Members] = []
        tree = sre.parse(source)
        self.unfinished = regex.compile(f"(?>{self._translate(tree, tree.state.flags)})(?!)")
        samples = self._samples(tree, tree.state.flags)
        suffixes = {sample[i:] for sample in samples for i in range(len(sample))}
        self.suffixes = sorted(suffixes, key=lambda suffix: (len(suffix), suffix))

    def _translate(self, nodes: Any, flags: int) -> str:
        """The same pattern with every set of characters spelled out, since `regex` has other sets than `re`."""
        return "".join(self._translate_node(str(op), argument, flags) for op, argument in nodes)

    def _translate_node(self, op: str, argument: Any, flags: int) -> str:
        if op in _SINGLE:
            members = _members(_source(op, argument), flags & _MATTERS)
            self.members.append(members)
            # `regex` misses partial matches where a repeated set stands at the end of the text, but not within a branch
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
        raise NotImplementedError(f"terminal {self.name}: the oracle does not know {op} in {self.complete.pattern}")

    def _samples(self, nodes: Any, flags: int) -> list[str]:
        """A few strings that show every part of the pattern at least once; the first is the plainest."""
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
            return list(dict.fromkeys(s + once[0] * (count - 1) if count else "" for count in counts for s in once))
        return [""]


_SINGLE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_REPEATS = {"MAX_REPEAT": "", "MIN_REPEAT": "?", "POSSESSIVE_REPEAT": "+"}
_MATTERS = re.IGNORECASE | re.DOTALL | re.ASCII  # the flags on which a set of characters depends
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
    """The source of one character's pattern."""
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
                raise NotImplementedError(f"the oracle does not know {other} in a set of characters")
    return f"[{found}]"


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(map(chr, range(_N_CODE_POINTS)))


@lru_cache(maxsize=4096)
def _members(source: str, flags: int) -> Members:
    found = np.zeros(_N_CODE_POINTS, dtype=np.bool_)
    for match in re.finditer(f"(?:{source})+", _all_characters(), flags):
        found[match.start() : match.end()] = True
    found.setflags(write=False)
    return found


def _spell(members: Members) -> str:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], members, [False])).astype(np.int8)))
    ranges = [f"\\U{low:08x}-\\U{high - 1:08x}" for low, high in edges.reshape(-1, 2).tolist()]
    return f"[{''.join(ranges)}]" if ranges else "(?!)"


def _plainest(members: Members) -> list[str]:
    """Some characters of a set: all of a small one, else a letter, a digit and another."""
    codes = np.flatnonzero(members)
    if len(codes) <= 4:
        return [chr(code) for code in codes] or [""]
    kinds = (re.compile(kind) for kind in ("[A-Za-z]", "[0-9]", "[!-~]", r"[\s\S]"))
    firsts = (next((chr(c) for c in codes[:256] if kind.match(chr(c))), None) for kind in kinds)
    return list(dict.fromkeys([first for first in firsts if first is not None] or [chr(codes[0])]))


# --------------------------------------------------------------------------------------------------------- parsing


class Parse(NamedTuple):
    """Where the parser stands: its stack of LR states, the open columns (the innermost last), the open brackets."""

    stack: Stack
    columns: tuple[int, ...] = (0,)
    depth: int = 0


class _Parser:
    """Lark's parse table over stacks that are shared and never changed, with layout as Lark's `Indenter` does it."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.layout = grammar.layout
        brackets = () if self.layout is None else self.layout.brackets
        self.change = {opening: 1 for opening, _ in brackets} | {closing: -1 for _, closing in brackets}
        n = grammar.n_terminals
        alive = productive_symbols(grammar)

        def symbol(number: int) -> LarkTerminal | NonTerminal:
            return LarkTerminal(f"T{number}") if number < n else NonTerminal(f"n{number}")

        rules = [
            LarkRule(NonTerminal(f"n{rule.lhs}"), list(map(symbol, rule.rhs)), order)
            for order, rule in enumerate(dict.fromkeys(grammar.rules))
            if rule.lhs in alive and all(s < n or s in alive for s in rule.rhs)
        ]
        start = f"n{grammar.start}"
        analyzer: Any = LALR_Analyzer(ParserConf(rules, {}, [start]))
        analyzer.compute_lalr()
        table = analyzer.parse_table
        self.actions: dict[int, dict[str, tuple[Any, Any]]] = table.states
        self.end_state: int = table.end_states[start]
        self.initial = Parse((table.start_states[start], None))
        inserted = () if self.layout is None else (self.layout.indent, self.layout.dedent)
        self.lexable = [number for number in range(n) if number not in inserted and number not in grammar.ignored]

    def shift(self, stack: Stack, symbol: str) -> Stack | None:
        """The stack after a terminal; after the end of the text, `$END`, when that is accepted; else None."""
        while True:
            action = self.actions[stack[0]].get(symbol)
            if action is None:
                return None
            if action[0] is Shift:
                return action[1], stack
            below: Stack | None = stack
            for _ in action[1].expansion:
                assert below is not None
                below = below[1]
            assert below is not None
            stack = self.actions[below[0]][action[1].origin.name][1], below
            if symbol == "$END" and stack[0] == self.end_state:
                return stack

    def step(self, parse: Parse, step: Step) -> Parse | None:
        """After a lexeme that is finished: None if it is not accepted."""
        terminal, column = step.terminal, step.column
        if terminal in self.grammar.ignored:
            return parse
        is_newline = self.layout is not None and terminal == self.layout.newline
        if is_newline and parse.depth > 0:
            return parse
        stack = self.shift(parse.stack, f"T{terminal}")
        if stack is None:
            return None
        if is_newline:
            return None if column is None else self._indent(parse._replace(stack=stack), column)
        depth = parse.depth + self.change.get(terminal, 0)
        return Parse(stack, parse.columns, depth) if depth >= 0 else None

    def _indent(self, parse: Parse, column: int) -> Parse | None:
        assert self.layout is not None
        stack: Stack | None = parse.stack
        columns = parse.columns
        if column > columns[-1]:
            stack, columns = self.shift(parse.stack, f"T{self.layout.indent}"), (*columns, column)
        while stack is not None and column < columns[-1]:
            stack, columns = self.shift(stack, f"T{self.layout.dedent}"), columns[:-1]
        return None if stack is None or column != columns[-1] else parse._replace(stack=stack, columns=columns)

    def last_step(self, parse: Parse, step: Step) -> Iterator[Parse]:
        """All that can be after the last lexeme of a prefix: a newline may still come to stand at several columns."""
        columns = {step.column}
        if step.column is not None and (step.by_space or step.by_tab):
            assert self.layout is not None
            unit = 1 if step.by_space else self.layout.tab_length
            least, top = step.column, max(step.column, parse.columns[-1])
            wanted = (*parse.columns, *range(top + 1, top + unit + 1))
            columns |= {column for column in wanted if column >= least and (column - least) % unit == 0}
        for column in sorted(columns, key=lambda column: -1 if column is None else column):
            after = self.step(parse, step._replace(column=column))
            if after is not None:
                yield after

    def leads_on(self, parse: Parse) -> bool:
        """May the text end here, or is there a terminal that the parser accepts next?"""
        newline = -1 if self.layout is None or parse.depth == 0 else self.layout.newline
        following = (number for number in self.lexable if number != newline)
        return self.accepts_end(parse) or any(self.shift(parse.stack, f"T{number}") for number in following)

    def accepts_end(self, parse: Parse) -> bool:
        stack: Stack | None = parse.stack
        for _ in parse.columns[1:]:
            assert self.layout is not None
            stack = None if stack is None else self.shift(stack, f"T{self.layout.dedent}")
        return stack is not None and self.shift(stack, "$END") is not None
