"""Shortest endings against a search over all bytes that asks the engine alone."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from engine_cases import vocabulary_of
from grammars import random_grammar
from shares import share

from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.decoding.endings import ending_search
from maskwright.decoding.endings.ending import Ending, endings_of
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

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
start: (AAA | AB | BX | DOT | DOTS | FLOAT | INT | RANGE | NAME)+ ";"
AAA: "aaa"
AB: /a{3,5}b{1,2}z/
BX: /b+x/
DOT: "."
DOTS: "..."
FLOAT: /[0-9]+\.([0-9]+(e[0-9]+)?)/
INT: /[0-9]+/
RANGE: /[0-9]+\.\.[0-9]+z/
NAME: /e[l]?/
"""

SPACES_BACK_UP = r"""
start: (A | B | SPACED | SPACED_B)+ ";"
A: "a"
B: /b+/
SPACED: / +x/
SPACED_B: / +ab+y/
%ignore / +/
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
_NEWLINE: /(\n[ ]*)+/
%declare _INDENT _DEDENT
"""

# what follows a block stands at the column of what came before it, in the same rule
ENDED = r"""
start: line*
line: "x" _NL
    | "do" _NL _INDENT line+ _DEDENT "end" _NL
    | "try" _NL line "or" _NL line
    | "a" _NL "b" _NL "c" _NL
    | "in" _NL _INDENT "a" _NL "b" _NL "c" _NL _DEDENT
_NL: /(\n[ ]*|#[#y]*)+/
COMMENT: /#[#y]*/
%ignore COMMENT
%declare _INDENT _DEDENT
"""

TABS = r"""
// maskwright: tabs = consistent
start: line*
line: "x" _NL | "do" _NL _INDENT line+ _DEDENT "end" _NL
_NL: /(\n[ \t]*)+/
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
    "spaces back up": SPACES_BACK_UP,
    "blocks": BLOCKS,
    "no tabs": NO_TABS,
    "ended": ENDED,
    "tabs": TABS,
    "ambiguous": AMBIGUOUS,
}


def byte_vocabulary(*more: bytes, without: bytes = b"") -> Vocabulary:
    tokens = [bytes([b]) for b in range(256) if b not in without] + list(more)
    return Vocabulary("bytes", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))


def store_of(grammar: Grammar, vocabulary: Vocabulary | None = None, lexing: str = "longest") -> Store:
    return compile_store(dataclasses.replace(grammar, lexing=lexing), vocabulary or byte_vocabulary())


@functools.cache
def named_store(name: str) -> Store:
    return store_of(parse_grammar(TEXTS[name], name=name))


@functools.cache
def python_store() -> Store:
    return store_of(load_grammar("lark:python"), byte_vocabulary(b"0\n", b":0"))


def signature(matcher: Matcher) -> tuple[object, ...]:
    """All that the engine knows of a text."""
    stacks = frozenset(map(tuple, matcher.text.stacks()))
    numbers = matcher.text.memory[[constants.LEXER, constants.COLUMN, constants.DEPTH]].tolist()
    return (*numbers, tuple(matcher.text.columns()), stacks)


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


def random_texts(store: Store, rng: random.Random, n: int, longest: int) -> Iterator[Matcher]:
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


@pytest.mark.parametrize("n", share([12, 40], 1))
@pytest.mark.parametrize("name", TEXTS)
def test_endings_are_the_first_of_the_shortest(name: str, n: int) -> None:
    rng = random.Random(name)
    n_compared = 0
    for matcher in random_texts(named_store(name), rng, n, 14):
        ending = matcher.shortest_ending()
        assert_spelt(matcher, ending)
        assert matcher.min_bytes_left() == len(ending.data)
        expected = naive_shortest_ending(matcher, len(ending.data), 400)
        if expected is not None:
            n_compared += 1
            assert ending.data == expected
    assert n_compared >= n // 2


@pytest.mark.parametrize("seed", share(range(60), 3))
def test_endings_of_random_grammars(seed: int) -> None:
    try:
        store = store_of(random_grammar(seed))
    except (GrammarError, LimitError):
        pytest.skip("the engine refuses this grammar")
    rng = random.Random(seed)
    for matcher in random_texts(store, rng, 8, 6):
        try:
            ending = matcher.shortest_ending()
            assert_spelt(matcher, ending)
            expected = naive_shortest_ending(matcher, len(ending.data), 400)
        except LimitError:  # an ambiguous text has too many readings for the engine
            continue
        assert expected is None or ending.data == expected


def test_endings_under_contextual_lexing() -> None:
    text = (
        'start: ("print" NAME | "set" NAME "=" value)+ "end"\nvalue: NAME | "(" value ")"\nNAME: /[a-z]+/\n%ignore " "'
    )
    store = store_of(parse_grammar(text, name="contextual"), lexing="contextual")
    for matcher in random_texts(store, random.Random(1), 25, 12):
        ending = matcher.shortest_ending()
        assert_spelt(matcher, ending)
        expected = naive_shortest_ending(matcher, len(ending.data), 400)
        assert expected is None or ending.data == expected


def test_unpaired_indents_are_ended_too() -> None:
    store = store_of(parse_grammar(UNPAIRED, name="unpaired"))
    for matcher in random_texts(store, random.Random(3), 25, 10):
        ending = matcher.shortest_ending()
        assert_spelt(matcher, ending)
        expected = naive_shortest_ending(matcher, len(ending.data), 400)
        assert expected is None or ending.data == expected


def test_python_endings() -> None:
    store = python_store()
    cases = {
        "def f(": "):0\n",
        "x = (1, [2, {3: (": ")}])\n",
        "for x in y": ":0\n",
        "x = '''abc": "'''\n",
        "try:": "0\nexcept:0\n",
        "def f():\n    try:\n        x": "\n    except:0\n",
        "def f():\n  if x:\n    pass\n ": "",  # blanks at the end of a text have no column
        "def f():\n  if x:\n    pass\n  x": "\n",
        "class A:\n    def f(self):\n": "\t0\n",
        "": "",
    }
    matcher = store.matcher(max_rollback=0)
    for text, expected in cases.items():
        matcher.reset()
        matcher.advance_bytes(text.encode())
        ending = matcher.shortest_ending()
        assert ending.data == expected.encode(), text
        assert_spelt(matcher, ending)
    matcher.reset()
    matcher.advance_bytes("# caf\u00e9".encode()[:-1])
    assert matcher.shortest_ending().data == b"\x80"


@pytest.mark.slow
@pytest.mark.parametrize("every", share([3, 1], 1))
def test_python_endings_match_a_search_over_all_bytes(every: int) -> None:
    store = python_store()
    matcher = store.matcher(max_rollback=0)
    n_compared = 0
    texts = (b"f(x", b"1.e", b"..", b"x = y", b"rb'a", b"de", b"[x, y", b"x if", b"if ", b"not ")
    for text in texts[::every]:
        matcher.reset()
        matcher.advance_bytes(text)
        ending = matcher.shortest_ending()
        assert_spelt(matcher, ending)
        expected = naive_shortest_ending(matcher, len(ending.data), 3000)
        if expected is not None:
            n_compared += 1
            assert ending.data == expected
    assert n_compared >= 6 // every


def test_blocks_that_the_end_of_the_text_closes_are_ended_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds know that a block ends without a newline only there, and that tabs get no further in than blanks."""
    text = """
// maskwright: tabs = consistent
start: (line _NL)* [line]
line: "x" | "try:" suite "end"
suite: _NL _INDENT (line _NL)+ _DEDENT | _NL _INDENT (line _NL)* line _DEDENT
_NL: /(\\r?\\n[\\t ]*|#[^\\n]*)+/
COMMENT: /#[^\\n]*/
%ignore COMMENT
%ignore /[ \\f]+/
%declare _INDENT _DEDENT
"""
    store = store_of(parse_grammar(text), byte_vocabulary())
    matcher = store.matcher()
    matcher.advance_bytes(b"try:\n    try:\n        try:\n")
    monkeypatch.setattr(ending_search, "MAX_NODES", 300)
    assert matcher.shortest_ending().data == b"         x\n        end\n    end\nend"


DEEP = b"".join(b" " * 7 * depth + b"do\n" for depth in range(4)) + b" " * 28


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DEEP, b"x\n" + b"".join(b" " * 7 * depth + b"end\n" for depth in (3, 2, 1, 0))),
        (DEEP + b"x\n", b" " * 21 + b"end\n" + b"".join(b" " * 7 * depth + b"end\n" for depth in (2, 1, 0))),
        (DEEP + b"try", None),
        (DEEP + b"a", None),
        (DEEP + b"in", None),
        (DEEP + b"try\n" + b" " * 28 + b"in\n", None),
        (DEEP[:-28] + b" " * 40 + b"#yyyyyyyy", None),
    ],
)
def test_the_bound_knows_how_deep_the_lines_of_a_rule_stand(
    monkeypatch: pytest.MonkeyPatch, text: bytes, expected: bytes | None
) -> None:
    """Else the search would look at all lines that are as long as an indentation."""
    matcher = named_store("ended").matcher()
    matcher.advance_bytes(text)
    monkeypatch.setattr(ending_search, "MAX_NODES", 20)
    monkeypatch.setattr(ending_search, "NODES_OF_A_BYTE", 4)
    ending = matcher.shortest_ending()
    assert_spelt(matcher, ending)
    assert expected is None or ending.data == expected


def test_a_try_within_blocks_is_ended_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second half of the statement has to be indented as deep as the first."""
    matcher = python_store().matcher()
    matcher.advance_bytes(b"class A:\n    def f(self):\n        def g():\n            try:")
    monkeypatch.setattr(ending_search, "MAX_NODES", 20)
    monkeypatch.setattr(ending_search, "NODES_OF_A_BYTE", 4)
    assert matcher.shortest_ending().data == b"0\n    \texcept:0\n"


def test_columns_of_blanks_and_tabs_are_compared_as_the_layout_does() -> None:
    """Nine blanks are more than a tab, though the tab's number is larger."""
    matcher = named_store("tabs").matcher()
    matcher.advance_bytes(b"do\n\tdo\n         ")
    assert matcher.shortest_ending().data == b"x\n\tend\nend\n"


@pytest.mark.parametrize("name", TEXTS)
def test_short_endings_end_the_text_where_the_search_may_not_look(name: str) -> None:
    store, n_longer = named_store(name), 0
    for matcher in random_texts(store, random.Random(name), 12, 14):
        shortest = matcher.shortest_ending()
        endings_of(matcher.text).search().forget()
        ending = endings_of(matcher.text).short(matcher.text, max_nodes=-(10**6))
        assert_spelt(matcher, ending)
        longer = len(ending.data) - len(shortest.data)
        assert longer == 0 or (longer > 0 and not ending.is_shortest)
        n_longer += longer
        assert matcher.short_ending() == shortest
    # where lexemes back up the bound knows little
    assert n_longer <= (48 if name in ("backing up", "spaces back up") else 12)


def test_a_search_that_takes_too_much_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = named_store("ended").matcher()
    matcher.advance_bytes(DEEP)
    search = endings_of(matcher.text).search()
    for limit, value, what in (("MAX_NODES", -(10**6), "1 states"), ("MAX_HELD", 20_000, "20,000 bytes of memory")):
        search.forget()
        with monkeypatch.context() as patched:
            patched.setattr(ending_search, limit, value)
            with pytest.raises(LimitError, match=rf"no shortest ending .* among {what}.*short_ending"):
                matcher.shortest_ending()
    search.forget()
    monkeypatch.setattr(ending_search, "MAX_HELD", 20_000)
    ending = matcher.short_ending()
    assert_spelt(matcher, ending)
    assert ending.is_shortest and search.held < 40_000  # it is as near as the bound says


def test_what_was_learnt_is_dropped_when_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = store_of(parse_grammar(JSON, name="json")).matcher()
    monkeypatch.setattr(ending_search, "MAX_KEPT", 200_000)
    search = endings_of(matcher.text).search()
    most = 0
    for text in range(200):
        matcher.reset()
        matcher.advance_bytes(b'[{"a":' * (text % 17) + b"[" * (text % 13) + b"1")
        matcher.shortest_ending()
        most = max(most, search.held)
    assert 200_000 < most < 400_000


def test_deep_texts_are_ended() -> None:
    store = named_store("json")
    matcher = store.matcher(max_rollback=0)
    matcher.advance_bytes(b'[{"a":' * 3000)
    ending = matcher.shortest_ending()
    assert ending.data == b"0" + b"}]" * 3000
    assert_spelt(matcher, ending)


def test_fewest_tokens_spell_an_ending() -> None:
    store = store_of(parse_grammar(JSON, name="json"), byte_vocabulary(b"}]", b"]}", b"}]}", b"0}]"))
    matcher = store.matcher()
    matcher.advance_bytes(b'[{"a":[{"b":')
    ending = matcher.shortest_ending()
    tokens = store.vocabulary.tokens
    assert ending.data == b"0}]}]"
    assert [tokens[t] for t in ending.tokens] == [b"0}]", b"}]"]


def test_another_ending_is_found_where_the_vocabulary_cannot_spell_the_first() -> None:
    store = store_of(parse_grammar(JSON, name="json"), byte_vocabulary(b"null,", b" }", without=b"0123456789}"))
    matcher = store.matcher()
    matcher.advance_bytes(b'{"a":')
    ending = matcher.shortest_ending()
    assert ending.data == b'"" }'
    assert_spelt(matcher, ending)


def test_a_vocabulary_without_needed_bytes_is_a_dead_end() -> None:
    store = store_of(parse_grammar(JSON, name="json"), byte_vocabulary(without=b"}"))
    matcher = store.matcher()
    matcher.advance_bytes(b'[{"a":1')
    with pytest.raises(DeadEndError, match=r"no token contains the bytes b'}'"):
        matcher.shortest_ending()
    assert matcher.min_bytes_left() == 2


def test_texts_of_a_batch_are_ended_each_for_itself() -> None:
    batch = named_store("json").batch(2)
    batch.advance_bytes(0, b"[1")
    batch.advance_bytes(1, b'{"a')
    assert [batch.shortest_ending(slot).data for slot in (0, 1)] == [b"]", b'":0}']


def test_a_finished_text_has_an_empty_ending() -> None:
    matcher = named_store("pairs").matcher()
    matcher.advance_bytes(b"ab")
    matcher.advance(256)
    assert matcher.shortest_ending() == Ending(b"", ()) and matcher.min_bytes_left() == 0


def test_many_reductions_before_one_terminal() -> None:
    """Rules that may be empty, nested 15 deep: 32,768 reductions read nothing. The engine makes them too."""
    text = 'start: "(" x0 ")" | "(" "w" ")"\n' + "".join(f"x{i}: x{i + 1} x{i + 1}\n" for i in range(15)) + 'x15: | "a"'
    store = compile_store(parse_grammar(text, conflicts="shift"), vocabulary_of(singles=b"(wa)"))
    matcher = store.matcher()
    matcher.advance_bytes(b"(")
    assert matcher.fork().advance_bytes(b")") is None and matcher.shortest_ending().data == b")"
