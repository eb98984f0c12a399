"""The interpreter of JSON texts against its definition: hand-made cases, and all small texts of random graphs."""

from __future__ import annotations

import random

import pytest
from json_endings import JsonEndings
from naive_json_texts import is_legal, small_texts
from random_graphs import automaton, random_graph
from random_texts import ESCAPES, random_text
from shares import share

from maskwright.analysis.errors import LimitError
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.keys import key_automaton
from maskwright.analysis.schema.shapes import (
    NO_NODE,
    Arrays,
    Contained,
    Numbers,
    Objects,
    SchemaGraph,
    Shape,
    Spellings,
    StringLiterals,
    Strings,
    Texts,
)
from maskwright.analysis.schema.spacing import everywhere, spacing_of
from maskwright.decoding.reference.json_texts import JsonInterpreter, bytes_allowed, tokens_allowed

WORD = (Spellings((b"null",)),)
INTEGER = (Numbers(automaton("0|-?[1-9][0-9]*")),)
ANY = (Strings(None, 0, None),)


def graph(*nodes: tuple[Shape, ...]) -> SchemaGraph:
    return SchemaGraph(nodes, 0)


def plain(keys: str, values: int = 1, required: str = "", **more: object) -> Objects:
    """An object with keys of one letter, all of one node."""
    names = tuple(key.encode() for key in keys)
    empty = Objects(names, (values,) * len(names), tuple(key in required for key in keys), (), None, 0, None)
    return empty._replace(**more)


def after(texts: SchemaGraph | Texts, text: bytes) -> bytes | None:
    """The bytes that may follow a text, without white space; None if it is no legal prefix."""
    interpreter = JsonInterpreter(Texts(texts) if isinstance(texts, SchemaGraph) else texts)
    readings = interpreter.read_bytes(interpreter.start(), text)
    return bytes(sorted(set(bytes_allowed(interpreter, readings)) - set(b" \t\n\r"))) if readings else None


B_KEYS = key_automaton([automaton("b[ab]*")], {1: 0}, (b"b",))

CASES: dict[str, tuple[SchemaGraph, bytes, bytes | None]] = {
    # required keys and numbers of members
    "object opens": (graph((plain("ab", required="b"),), WORD), b"{", b'"'),
    "required first": (graph((plain("ab", required="b", most=1),), WORD), b'{"', b"b\\"),
    "required is there": (graph((plain("ab", required="b"),), WORD), b'{"b":null', b",}"),
    "required is missing": (graph((plain("ab", required="b"),), WORD), b'{"a":null', b","),
    "no key is left": (graph((plain("ab"),), WORD), b'{"a":null,"b":null', b"}"),
    "most members": (graph((plain("ab", most=1),), WORD), b'{"a":null', b"}"),
    "least members": (graph((plain("ab", least=2),), WORD), b'{"a":null', b","),
    "no member twice": (graph((plain("ab"),), WORD), b'{"a":null,"', b"b\\"),
    "no member at all": (graph((plain(""),)), b"{", b"}"),
    "key without a node": (graph((plain("a", values=NO_NODE),)), b"{", b"}"),
    # others
    "named key that is no other": (graph((plain("a", NO_NODE, others=(1,)),), WORD), b'{"a"', None),
    "longer than the named key": (graph((plain("a", NO_NODE, others=(1,)),), WORD), b'{"ab"', b":"),
    "other key twice": (graph((plain("", others=(1,)),), WORD), b'{"x":null,"x"', None),
    "other key goes on": (graph((plain("", others=(1,)),), WORD), b'{"x":null,"xy"', b":"),
    "key twice by an escape": (graph((plain("", others=(1,)),), WORD), b'{"x":null,"\\u0078"', None),
    "classes of keys": (graph((plain("b", NO_NODE, others=(1,), key_automaton=B_KEYS),), WORD), b'{"', b"\\b"),
    "key of an automaton": (graph((plain("b", NO_NODE, others=(1,), key_automaton=B_KEYS),), WORD), b'{"b', b"\\ab"),
    # orders
    "order of keys": (graph((plain("ab", ranks=(1, 0)),), WORD), b'{"a":null', b"}"),
    "others come last": (graph((plain("ab", ranks=(0, 1), others=(1,)),), WORD), b'{"c":null,"a"', None),
    "required by order": (graph((plain("ab", ranks=(0, 1), required="a"),), WORD), b'{"', b"\\a"),
    # arrays
    "array opens": (graph((Arrays((), 1, 0, None),), WORD), b"[", b"]n"),
    "least items": (graph((Arrays((), 1, 2, None),), WORD), b"[null", b","),
    "most items": (graph((Arrays((), 1, 0, 1),), WORD), b"[null", b"]"),
    "prefix": (graph((Arrays((1,), 2, 0, None),), WORD, INTEGER), b"[null,", b"-0123456789"),
    "prefix ends": (graph((Arrays((1, NO_NODE), 1, 0, None),), WORD), b"[null", b"]"),
    "contained is still needed": (
        graph((Arrays((), 1, 0, 2, Contained(1, None, (), 2)),), WORD, INTEGER),
        b"[null,",
        b"-0123456789",
    ),
    "no more contained": (graph((Arrays((), 1, 0, None, Contained(0, 1, (), 2)),), WORD, INTEGER), b"[1,", b"n"),
    "unique words": (graph((Arrays((), 1, 0, None, None, True),), WORD), b"[null", b"]"),
    "unique strings": (
        graph((Arrays((), 1, 0, None, None, True),), (StringLiterals((b"a", b"ab")),)),
        b'["a","a',
        b"\\b",
    ),
    "unique numbers": (graph((Arrays((), 1, 0, None, None, True),), INTEGER), b"[1,2,1", b"0123456789"),
    "unique numbers by value": (
        graph((Arrays((), 1, 0, None, None, True),), (Numbers(automaton(r"1[0-9]*|1\.0*1?")),)),
        b"[1.00,1.",
        b"01",
    ),
    # strings
    "control characters": (graph(ANY), b'"\n', None),
    "escapes": (graph(ANY), b'"\\', b'"/\\bfnrtu'),
    "half a pair": (graph(ANY), b'"\\udc', None),
    "pair goes on": (graph(ANY), b'"\\ud83d', b"\\"),
    "pair ends": (graph(ANY), b'"\\ud83d\\u', b"Dd"),
    "overlong UTF-8": (graph(ANY), b'"\xc0', None),
    "surrogates in UTF-8": (graph(ANY), b'"\xed\xa0', None),
    "longest string": (graph((Strings(None, 0, 1),)), '"😀'.encode(), b'"'),
    "a pair is one character": (graph((Strings(None, 0, 1),)), b'"\\ud83d\\ude00', b'"'),
    "shortest string": (graph((Strings(None, 2, 3),)), b'"aa"', b""),
    "length within an automaton": (graph((Strings(automaton("(aaa)*"), 2, 5),)), b'"aaa', b'"'),
    "no multiple fits": (graph((Strings(automaton("a(aaa)*|b"), 0, 3),)), b'"a', b'"'),
    "escape of few characters": (graph((StringLiterals((b"\n",)),)), b'"\\u00', b"0"),
    "escape of no character": (graph((StringLiterals(("é".encode(),)),)), b'"\\u00', b"eE"),
    "slash": (graph((StringLiterals((b"/",)),)), b'"\\', b"/u"),
    # numbers
    "number may end": (graph((Arrays((), 1, 0, None),), INTEGER), b"[1", b",0123456789]"),
    "number may not end": (graph((Arrays((), 1, 0, None),), INTEGER), b"[-", b"123456789"),
    # both readings
    "two readings": (graph((plain("a", 1), plain("a", 2)), WORD, INTEGER), b'{"a":', b"-0123456789n"),
    "one reading is left": (graph((plain("a", 1), plain("b", 2)), WORD, INTEGER), b'{"b":', b"-0123456789"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_may_follow(name: str) -> None:
    one, text, expected = CASES[name]
    found = after(one, text)
    assert found == (None if expected is None else bytes(sorted(expected)))


SPACED = Texts(graph((plain("a"), Arrays((), 1, 0, None)), WORD), everywhere(Dfa.literal(b" ")))


@pytest.mark.parametrize("text", [b" [ ] ", b' { "a" : null } ', b" { } ", b" [ null , null ] "])
def test_white_space_stands_where_the_automaton_wants_it(text: bytes) -> None:
    interpreter = JsonInterpreter(SPACED)
    assert interpreter.is_complete(interpreter.read_bytes(interpreter.start(), text))
    for i in range(len(text)):
        if text[i] == 0x20:
            shorter = interpreter.read_bytes(interpreter.start(), text[:i] + text[i + 1 :])
            assert not interpreter.is_complete(shorter), text[:i]
            longer = interpreter.read_bytes(interpreter.start(), text[:i] + b" " + text[i:])
            assert not longer


def test_no_white_space_at_all() -> None:
    """Nothing is legal if no white space is, not even the empty one."""
    interpreter = JsonInterpreter(Texts(graph(WORD), everywhere(Dfa.minimal([[-1] * 256], [False]))))
    assert interpreter.start() == () and not interpreter.is_complete(())


SMALL = small_texts(10, (b"a", b"b"), b"01", (b"null", b"true"))
ALPHABET = b'"ab01{}[],:nultre.-\\'
MOST_PREFIXES = 150


@pytest.mark.parametrize("seed", share([131, 178, *range(40)], 4))
def test_legal_prefixes_are_those_of_legal_texts(seed: int) -> None:
    """All legal texts are read. All prefixes that live are completed, by texts that are legal."""
    texts = Texts(random_graph(random.Random(seed)), escapes=ESCAPES[seed % 3])
    endings = JsonEndings(texts)
    interpreter = endings.interpreter
    legal = [text for text in SMALL if is_legal(texts, text)]
    for text in legal:
        assert interpreter.is_complete(interpreter.read_bytes(interpreter.start(), text)), text
    todo = [(b"", interpreter.start())]
    for prefix, readings in todo:  # grows while it is read
        assert interpreter.is_complete(readings) == is_legal(texts, prefix), prefix
        assert is_legal(texts, prefix + endings.shortest(readings).data), prefix
        if len(todo) < MOST_PREFIXES:
            after_byte = [(prefix + bytes([byte]), interpreter.read(readings, byte)) for byte in ALPHABET]
            todo += [(longer, found) for longer, found in after_byte if found]


@pytest.mark.parametrize("seed", share(range(2000, 2040), 3))
def test_legal_prefixes_where_items_of_any_kind_differ(seed: int) -> None:
    """As above, with items of any kind; and no prefix of a small legal text is refused."""
    rng = random.Random(seed)
    graphs = (random_graph(rng, is_deep=True) for _ in range(99))
    texts = Texts(next(one for one in graphs if any(getattr(s, "is_deep", False) for node in one.nodes for s in node)))
    endings = JsonEndings(texts)
    interpreter = endings.interpreter
    legal = [text for text in SMALL if is_legal(texts, text)]
    begun = {text[:end] for text in legal for end in range(len(text) + 1)}
    for text in legal:
        assert interpreter.is_complete(interpreter.read_bytes(interpreter.start(), text)), text
    todo = [(b"", interpreter.start())]
    for _ in range(MOST_PREFIXES // 2):
        if not todo:
            break
        prefix, readings = todo.pop(rng.randrange(len(todo)))
        assert interpreter.is_complete(readings) == is_legal(texts, prefix), prefix
        assert is_legal(texts, prefix + endings.shortest(readings).data), prefix
        for byte in ALPHABET:
            longer, found = prefix + bytes([byte]), interpreter.read(readings, byte)
            assert found or longer not in begun, longer
            if found:
                todo.append((longer, found))


FEW = Objects((b"a", b"b"), (2, 3), (True, False), (), None, 0, None)
BOOLEAN, WHOLE = (Spellings((b"false", b"true")),), (Numbers(automaton(r"(0|-?[1-9][0-9]*)(\.0+)?")),)


@pytest.mark.parametrize(
    ("text", "legal", "why"),
    [
        (b'[{"a":1},{"a":1}]', 15, "$[1]: the item would be equal to one before it, whatever follows"),
        (b'[{"b":true,"a":10},{"a":10,"b":true}]', 31, "$[1]: the item would be equal to one before it"),
        (b'[{"a":1},{"a":1,"b":true},{"a":1,"b":false},{"a":1.', 50, "$[3]: the item would be equal"),
        (b'[{"a":0},{"b":true,"a":0},{"b":false,"a":0},{"a":0', 49, "$[3]: the item would be equal"),
        (b'[{"a":0},{"a":0.0,"b":true},{"b":true,"a":0', 42, "$[2]: the item would be equal"),
        (b'[{"a":1},{"a":2},{"b":true,"a":1},{"a":1,"b":f', None, ""),
    ],
)
def test_items_that_can_only_become_equal(text: bytes, legal: int | None, why: str) -> None:
    interpreter = JsonInterpreter(Texts(graph((Arrays((), 1, 0, None, None, True, True),), (FEW,), WHOLE, BOOLEAN)))
    readings, n = interpreter.start(), 0
    while n < len(text) and (after := interpreter.read(readings, text[n])):
        readings, n = after, n + 1
    assert n == (len(text) if legal is None else legal)
    if legal is not None:
        assert interpreter.refusals(readings, text[n])[0].startswith(why)


SPACINGS = (
    spacing_of("any"),
    *(everywhere(automaton(one)) for one in (" ?", "\n *| ", "[ \t\r]+")),
    *map(spacing_of, ("natural", "json.dumps", "indent2", "indent1")),
)


@pytest.mark.parametrize("seed", share(range(100), 15))
def test_random_texts_and_their_neighbours(seed: int) -> None:
    rng = random.Random(seed)
    texts = Texts(random_graph(rng), rng.choice(SPACINGS), ESCAPES[seed % 3])
    interpreter = JsonInterpreter(texts)
    for _ in range(6):
        text = random_text(texts, rng, 3)
        assert is_legal(texts, text)
        assert interpreter.is_complete(interpreter.read_bytes(interpreter.start(), text)), text
        for _ in range(4):
            i = rng.randrange(len(text))
            changed = text[:i] + bytes([rng.choice(b'"ab01{}[],: \n\\u\xc3')]) + text[i + rng.randint(0, 1) :]
            found = interpreter.read_bytes(interpreter.start(), changed)
            assert interpreter.is_complete(found) == is_legal(texts, changed), changed


def test_deep_texts_need_no_deep_stack() -> None:
    interpreter = JsonInterpreter(Texts(graph((Arrays((), 0, 0, None),))))
    n = 3000
    assert interpreter.is_complete(interpreter.read_bytes(interpreter.start(), b"[" * n + b"]" * n))


@pytest.mark.slow
def test_readings_that_double_are_limited() -> None:
    interpreter = JsonInterpreter(Texts(graph((Arrays((), 0, 0, None), Arrays((), 0, 0, 1)))))
    with pytest.raises(LimitError, match="more than 20,000 readings"):
        interpreter.read_bytes(interpreter.start(), b"[" * 20)


@pytest.mark.parametrize("seed", range(20))
def test_allowed_tokens_are_those_that_are_read(seed: int) -> None:
    rng = random.Random(seed)
    texts = Texts(random_graph(rng))
    interpreter = JsonInterpreter(texts)
    samples = [random_text(texts, rng, 2) for _ in range(5)]
    tokens = [b"", b"x", *(text[i : i + rng.randint(1, 4)] for text in samples for i in range(0, len(text), 2))]
    text = rng.choice(samples)
    readings = interpreter.read_bytes(interpreter.start(), text[: rng.randint(0, len(text))])
    found = tokens_allowed(interpreter, readings, tokens)
    assert found == [bool(token) and bool(interpreter.read_bytes(readings, token)) for token in tokens]
