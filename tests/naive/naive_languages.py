"""Random regular languages: a constraint of the library, and an automaton from the definition that shares no code with it.

A language is a tree: bytes; a sequence (a tuple); a choice (a list); or any number of times (`Star`).
"""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import maskwright as mw


class Star(NamedTuple):
    """A tree any number of times."""

    of: Any


States = frozenset[int]


class Automaton:
    """The texts of a tree: Thompson's automaton, followed as sets of states. All states lead to an end."""

    def __init__(self, tree: Any) -> None:
        self._empty: list[list[int]] = []
        self._byte: list[dict[int, int]] = []
        first, self._last = self._build(tree)
        self.start = self._closed({first})
        self._after = functools.cache(self._find_after)

    def _state(self) -> int:
        self._empty.append([])
        self._byte.append({})
        return len(self._empty) - 1

    def _build(self, tree: Any) -> tuple[int, int]:
        first = last = self._state()
        if isinstance(tree, bytes):
            for byte in tree:
                new = self._state()
                self._byte[last][byte], last = new, new
        elif isinstance(tree, Star):
            begin, end = self._build(tree.of)
            self._empty[first].append(begin)
            self._empty[end].append(first)
        elif isinstance(tree, list):
            last = self._state()
            for each in tree:
                begin, end = self._build(each)
                self._empty[first].append(begin)
                self._empty[end].append(last)
        else:
            for each in tree:
                begin, end = self._build(each)
                self._empty[last].append(begin)
                last = end
        return first, last

    def _closed(self, states: set[int]) -> States:
        agenda = list(states)
        while agenda:
            new = set(self._empty[agenda.pop()]) - states
            states |= new
            agenda += new
        return frozenset(states)

    def _find_after(self, states: States, byte: int) -> States:
        return self._closed({self._byte[state][byte] for state in states if byte in self._byte[state]})

    def after(self, states: States, data: bytes) -> States:
        """The states behind more bytes; none if they are illegal."""
        for byte in data:
            states = self._after(states, byte)
        return states

    def bytes_at(self, states: States) -> list[int]:
        """The bytes that may come, ascending."""
        return sorted({byte for state in states for byte in self._byte[state]})

    def accepts(self, states: States) -> bool:
        return self._last in states


class Case(NamedTuple):
    """kind : a key of KINDS. make : the constraint. tree : the same texts. letters : what they are made of."""

    kind: str
    make: Callable[[], Any]
    tree: Any
    letters: str


def random_tree(rng: random.Random, depth: int, letters: str) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        n = rng.randrange(0 if rng.random() < 0.1 else 1, 4)
        return "".join(rng.choices(letters, k=n)).encode()
    if kind < 0.8:
        some = [random_tree(rng, depth - 1, letters) for _ in range(rng.randrange(1, 4))]
        return tuple(some) if kind < 0.55 else some
    return Star(random_tree(rng, depth - 1, letters))


def pattern(tree: Any) -> str:
    """The tree as a regular expression."""
    if isinstance(tree, bytes):
        return re.escape(tree.decode())
    if isinstance(tree, Star):
        return f"(?:{pattern(tree.of)})*"
    return f"(?:{('|' if isinstance(tree, list) else '').join(f'(?:{pattern(each)})' for each in tree)})"


def lark(tree: Any) -> str:
    """The tree as a Lark grammar of single characters."""
    rules: list[str] = []

    def rule(tree: Any) -> str:
        if isinstance(tree, bytes):
            said = " ".join(json.dumps(letter, ensure_ascii=False) for letter in tree.decode())
        elif isinstance(tree, Star):
            said = f"{rule(tree.of)}*"
        else:
            said = (" | " if isinstance(tree, list) else " ").join(map(rule, tree))
        rules.append(f"r{len(rules)}: {said}")
        return f"r{len(rules) - 1}"

    return f"start: {rule(tree)}\n" + "\n".join(rules)


def spelled(text: str) -> Any:
    """All ways to write a text as a JSON string."""

    def character(letter: str) -> list[Any]:
        units = [
            f"{int.from_bytes(letter.encode('utf-16-be')[i : i + 2]):04x}"
            for i in range(0, 2 * (1 + (letter > "\uffff")), 2)
        ]
        digits = ((b"\\u", *([each.encode(), each.upper().encode()] for each in unit)) for unit in units)
        short = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}.get(letter, letter if letter in '"\\/' else "")
        plain = [] if letter < " " or letter in '"\\' else [letter.encode()]
        return [*plain, *([f"\\{short}".encode()] if short else []), tuple(digits)]

    return (b'"', *map(character, text), b'"')


def _digits(letters: bytes) -> list[bytes]:
    return [bytes((byte,)) for byte in letters]


_INTEGER = (
    [b"-", b""],
    [b"0", (_digits(b"123456789"), Star(_digits(b"0123456789")))],
    [b"", (b".0", Star(b"0"))],  # 1.0 is an integer
)


def _pattern(rng: random.Random) -> Case:
    letters = rng.choice(["ab", "abc", "ab€", "aé\0", "xyz<>", 'ab "'])
    tree = random_tree(rng, rng.randrange(1, 5), letters)
    return Case("pattern", lambda: mw.load_regex(pattern(tree)), tree, letters)


def _grammar(rng: random.Random) -> Case:
    letters = rng.choice(["ab", "abc", "ab€", "xyz<>", 'ab "'])
    tree = random_tree(rng, rng.randrange(1, 5), letters)
    return Case("grammar", lambda: mw.parse_grammar(lark(tree)), tree, letters)


def _choice(rng: random.Random) -> Case:
    letters = rng.choice(["ab", "abc", "ab€", "aé\0", 'ab "'])
    texts = ["".join(rng.choices(letters, k=rng.randrange(7))) for _ in range(rng.randrange(1, 12))]
    return Case("choice", lambda: mw.load_choice(texts), [text.encode() for text in texts], letters)


def _schema(rng: random.Random) -> Case:
    def value(depth: int) -> tuple[Any, Any]:
        kind, text = rng.random(), rng.choice(["a", "é", '"', "/", "a b", "\n", "\U0001f600", ""])
        if depth == 0 or kind < 0.3:
            return {"const": text}, spelled(text)
        if kind < 0.45:
            return {"type": "integer"}, _INTEGER
        if kind < 0.6:
            return {"type": "boolean"}, [b"true", b"false"]
        schema, tree = value(depth - 1)
        if kind < 0.8:
            return {"type": "array", "items": schema}, (b"[", [b"", (tree, Star((b",", tree)))], b"]")
        members = {"properties": {text: schema}, "required": [text], "additionalProperties": False}
        return {"type": "object", **members}, (b"{", spelled(text), b":", tree, b"}")

    schema, tree = value(rng.randrange(4))
    return Case("schema", lambda: mw.load_schema(schema, whitespace="compact", escapes="any"), tree, 'ab"\\u0[],')


def _composition(rng: random.Random) -> Case:
    first, second = random_tree(rng, 2, rng.choice(["ab", "abc", "ab€"])), random_tree(rng, 2, "01")
    tree = Star([(b"[", first, b"]"), (b"{", second, b"}"), b","])
    is_grammar = rng.random() < 0.5

    def make() -> Any:
        parts = {"P": mw.load_regex(pattern(first)), "Q": mw.load_regex(pattern(second))}
        if is_grammar:
            parts["Q"] = mw.parse_grammar(lark(second))
        return mw.compose('start: ("[" P "]" | "{" Q "}" | ",")*\n%declare P Q\n', parts)

    return Case("composition", make, tree, "ab€[]{},01")


def _tag(rng: random.Random) -> Case:
    inside = random_tree(rng, 2, "01,")
    tag = {"type": "tag", "begin": "<t>", "content": {"type": "regex", "pattern": pattern(inside)}, "end": "</t>"}
    form = {"type": "tags_with_separator", "tags": [tag], "separator": ",", "at_least_one": True}
    tree = (b"<t>", inside, b"</t>", Star((b",<t>", inside, b"</t>")))
    return Case("tag", lambda: mw.read_structural_tag({"type": "structural_tag", "format": form}), tree, "<t>/,01")


KINDS = (_pattern, _grammar, _grammar, _choice, _schema, _composition, _tag)


def random_case(rng: random.Random) -> Case:
    """A random constraint of any kind."""
    return rng.choice(KINDS)(rng)


def random_vocabulary(rng: random.Random, case: Case, automaton: Automaton) -> mw.Vocabulary:
    """An odd vocabulary: pieces of legal texts, letters and bytes that may be missing or there twice, long tokens, no text."""
    letters = [letter.encode() for letter in sorted(set(case.letters))]
    tokens = [letter for letter in letters for chance in (0.9, 0.3) if rng.random() < chance]
    tokens += [bytes((byte,)) for byte in sorted(set(b"".join(letters))) if rng.random() < 0.5]
    tokens += [b"".join(rng.choices(letters, k=rng.randrange(1, 6))) for _ in range(rng.randrange(40))]
    for _ in range(6):  # of legal texts
        states, text = automaton.start, b""
        while (found := automaton.bytes_at(states)) and len(text) < rng.randrange(1, 80):
            text += bytes((rng.choice(found),))
            states = automaton.after(states, text[-1:])
        begin = rng.randrange(len(text) + 1)
        tokens += [text[begin : rng.randrange(begin, len(text) + 1)], text][: rng.randrange(1, 3)]
    tokens += [bytes((byte,)) for byte in range(256)] * (rng.random() < 0.25)
    odd = (
        b"\0", b"\xff\xfe", b"a\0b", b"\xc3", b"\xe2\x82", bytes(range(256)), b"\xed\xa0\x80",
        rng.choice(letters) * 10_000,
    )  # fmt: skip
    tokens += [each for each in odd if rng.random() < 0.3]
    rng.shuffle(tokens)
    if rng.random() < 0.2:
        del tokens[rng.choice([1, 3, 31, 32, 33, 64, 65]) :]
    n = rng.choice([0, 1, 1, 1, 2, 3])
    eos = rng.sample(range(len(tokens) + n), n)
    for token in sorted(eos):
        tokens.insert(token, rng.choice([b"</s>", b"", rng.choice(letters)]))
    special = {f"<|{token}|>": token for token in rng.sample(range(len(tokens)), rng.randrange(2)) if token not in eos}
    return mw.Vocabulary.from_tokens(tokens, eos=eos, special=special)
