"""Shortest endings against a search over all bytes that asks the engine alone."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from grammars import random_grammar

from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError
from maskwright.analysis.grammar import Grammar, parse_grammar
from maskwright.decoding import _kernels as engine
from maskwright.decoding.ending import Ending, min_bytes_left, shortest_ending
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.automaton_store import AutomatonStore, build_automaton_store
from maskwright.maskstore.vocabulary import Vocabulary

PREFERRED = bytes([*range(0x20, 0x7F), *range(0x20), *range(0x7F, 0x100)])

PAIRS = 'start: "a" start "b" | "a" "b"'

JSON = r"""
start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
array: "[" [value ("," value)*] "]"
pair: STRING ":" value
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\n\r]+/
"""

ARITHMETIC = r"""
start: "let" NAME "=" sum "in" start | sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom | product "mod" atom
?atom: NUMBER | NAME | "-" atom | "(" sum ")" | NAME "(" sum ("," sum)* ")"
NAME: /[a-z]\w*/
NUMBER: /[0-9]+/
COMMENT: /\/\*([^*]|\*+[^*\/])*\*+\//
%ignore /[ ]+/
%ignore COMMENT
"""

BACKING_UP = r"""
start: (AAA | AB | BX | DOT | DOTS | FLOAT | NAME)+ ";"
AAA: "aaa"
AB: /a{3,5}b{1,2}z/
BX: /b+x/
DOT: "."
DOTS: "..."
FLOAT: /[0-9]+\.([0-9]+(e[0-9]+)?)?/
NAME: /e[l]?/
"""

NOT_PARTED = r"""
start: (one | two)* "end"
one: "if" NAME "then" start
two: NAME NAME
NAME: /[a-m]+/
%ignore "_"
"""

BLOCKS = r"""
start: (statement | _NEWLINE)*
?statement: NAME "=" value _NEWLINE
         | "try" ":" suite "end" ":" suite
         | "@" NAME _NEWLINE statement
         | "if" value ":" suite ["or" ":" suite]
suite: NAME _NEWLINE | _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "(" value ")"
NAME: /[a-d]+/
COMMENT: /#[ab]*/
_NEWLINE: /(\r?\n[ \t]*)+/
%ignore " "
%ignore COMMENT
%declare _INDENT _DEDENT
"""

NO_TABS = BLOCKS.replace(r"[ \t]*", "[ ]*")
UNPAIRED = r"""
start: line*
line: NAME _NEWLINE _INDENT | _DEDENT "." NAME _NEWLINE | NAME _NEWLINE
NAME: /[a-d]+/
_NEWLINE: /\n[ ]*/
%declare _INDENT _DEDENT
"""

AMBIGUOUS = r"""
start: e
e: e "+" e | e "**" e | "(" e ")" | INT | "x"
INT: /0|[1-9][0-9]*/
"""

TEXTS = {
    "pairs": PAIRS,
    "json": JSON,
    "arithmetic": ARITHMETIC,
    "backing up": BACKING_UP,
    "not parted": NOT_PARTED,
    "blocks": BLOCKS,
    "no tabs": NO_TABS,
    "ambiguous": AMBIGUOUS,
}


def byte_vocabulary(*more: bytes, without: bytes = b"") -> Vocabulary:
    tokens = [bytes([b]) for b in range(256) if b not in without] + list(more)
    return Vocabulary("bytes", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))


def store_of(grammar: Grammar, vocabulary: Vocabulary | None = None, lexing: str = "longest") -> AutomatonStore:
    return build_automaton_store(dataclasses.replace(grammar, lexing=lexing), vocabulary or byte_vocabulary())


@functools.cache
def named_store(name: str) -> AutomatonStore:
    return store_of(parse_grammar(TEXTS[name], name=name))


def signature(matcher: Matcher) -> tuple[object, ...]:
    """All that the engine knows of a text."""
    memory = matcher._memory
    arena = int(memory[engine.ARENA])

    def chain(at: int) -> Iterator[int]:
        while at >= 0:
            yield int(memory[arena + 3 * at])
            at = int(memory[arena + 3 * at + 1])

    stacks = frozenset(tuple(chain(frame)) for frame in chain(int(memory[engine.STACKS])))
    numbers = tuple(int(memory[place]) for place in (engine.LEXER, engine.COLUMN, engine.DEPTH))
    return (*numbers, tuple(chain(int(memory[engine.INDENTS]))), stacks)


def allowed_bytes(matcher: Matcher) -> list[int]:
    """The bytes that may come next, printable ASCII first; each is a token of the vocabulary."""
    words = np.zeros(matcher.store.n_words, np.uint32)
    try:
        matcher.fill(words)
    except DeadEndError:
        return []
    return [b for b in PREFERRED if words[b >> 5] >> np.uint32(b & 31) & 1]


def naive_shortest_ending(matcher: Matcher, longest: int, limit: int) -> bytes | None:
    """The first in the order of bytes of all shortest endings, from every byte string of up to `longest` bytes."""
    level = [(b"", matcher.fork())]
    seen = {signature(matcher)}
    for _ in range(longest + 1):
        for data, reader in level:
            if reader.is_accepting():
                return data
        further = []
        for data, reader in level:
            for byte in allowed_bytes(reader):
                after = reader.fork()
                after.advance_bytes(bytes([byte]))
                if (key := signature(after)) not in seen:
                    seen.add(key)
                    further.append((data + bytes([byte]), after))
            if len(seen) > limit:
                return None
        level = further
    return None


def random_texts(store: AutomatonStore, rng: random.Random, n: int, longest: int) -> Iterator[Matcher]:
    """Matchers after random legal prefixes."""
    for _ in range(n):
        matcher = store.matcher(max_rollback=0)
        for _ in range(rng.randint(0, longest)):
            allowed = allowed_bytes(matcher)
            if not allowed:
                break
            ascii_first = [b for b in allowed if b < 128]
            matcher.advance_bytes(bytes([rng.choice(ascii_first or allowed)]))
        yield matcher


def assert_spelt(matcher: Matcher, ending: Ending) -> None:
    """The tokens spell the bytes, and the text is legal after them."""
    tokens = matcher.store.vocabulary.tokens
    assert b"".join(tokens[t] for t in ending.tokens) == ending.data
    reader = matcher.fork()
    for token in ending.tokens:
        reader.advance(token)
    assert reader.is_accepting()


@pytest.mark.parametrize("name", TEXTS)
def test_endings_are_the_first_of_the_shortest(name: str) -> None:
    rng = random.Random(name)
    n_compared = 0
    for matcher in random_texts(named_store(name), rng, 40, 14):
        ending = shortest_ending(matcher)
        assert_spelt(matcher, ending)
        assert min_bytes_left(matcher) == len(ending.data)
        expected = naive_shortest_ending(matcher, len(ending.data), 400)
        if expected is not None:
            n_compared += 1
            assert ending.data == expected
    assert n_compared >= 20


@pytest.mark.parametrize("seed", range(60))
def test_endings_of_random_grammars(seed: int) -> None:
    try:
        store = store_of(random_grammar(seed))
    except (GrammarError, LimitError):
        pytest.skip("the engine refuses this grammar")
    rng = random.Random(seed)
    for matcher in random_texts(store, rng, 8, 6):
        ending = shortest_ending(matcher)
        try:
            assert_spelt(matcher, ending)
            expected = naive_shortest_ending(matcher, len(ending.data), 400)
        except LimitError:  # an ambiguous text has too many readings for the engine
            continue
        assert expected is None or ending.data == expected
