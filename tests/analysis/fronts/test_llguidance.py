"""llguidance's dialect: its lexing against the definition, its syntax, and what is refused by name."""

from __future__ import annotations

import itertools
import re
import time

import pytest
from front_cases import random_llguidance
from naive_llguidance import ALPHABET, Naive
from paths import SHARED
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_llguidance

EVERY = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])
SMALL = mw.Vocabulary.from_tokens([b"</s>", *(c.encode() for c in ALPHABET)], eos=[0])
PEERS = SHARED / "peer_grammars"
TEXTS = ["".join(word) for n in range(5) for word in itertools.product(ALPHABET, repeat=n)]


def legal(grammar: mw.Grammar, *samples: str) -> list[bool]:
    """Of each sample whether the grammar has it."""
    store = mw.build_store(grammar, EVERY)
    return [_is_legal(store, sample) for sample in samples]


def _is_legal(store: mw.Store, text: str) -> bool:
    matcher = store.matcher()
    try:
        matcher.advance_bytes(text.encode())
    except mw.IllegalTokenError:
        return False
    return matcher.is_accepting()


@pytest.mark.parametrize("seed", share(range(0, 72, 6), 1))
def test_random_grammars(seed: int) -> None:
    n = 0
    for each in range(seed, seed + 6):
        text, ignores = random_llguidance(each)
        naive = Naive(text, ignores)
        try:
            store = mw.build_store(parse_llguidance(text), SMALL)
        except mw.DeadEndError:
            assert not any(naive.matches(one) for one in TEXTS)
            continue
        except mw.GrammarError as error:
            assert not naive.is_productive or "stand where different terminals compete" in str(error)
            continue
        for one in TEXTS:
            wanted = naive.matches(one)
            if wanted is not None:
                assert _is_legal(store, one) == wanted, (text, one)
                n += 1
    assert n > 300


def test_a_text_of_two_terminals_is_read_as_both() -> None:
    grammar = parse_llguidance("""start: "'foo'" /a+/ | STRING /b+/\nSTRING: /'[^']*'/""")
    assert legal(grammar, "'foo'aa", "'bar'bb", "'foo'b", "'bar'a") == [True, True, True, False]
    grammar = parse_llguidance('start: INT "!" | HEX "?"\nINT: /[0-9x]+/\nHEX: /[0-9a]+/')
    assert legal(grammar, "1!", "1?", "x!", "x?", "a?", "a!") == [True, True, True, False, True, False]


def test_what_is_ignored_may_not_begin_a_text() -> None:
    text = "start: /a/+\n%ignore /[ ]+/\n%ignore /#[^\\n]*\\n/"
    assert legal(parse_llguidance(text), "a a", "a ", "a#x\n a", " a", "a#x") == [True, True, True, False, False]
    text = '%llguidance {"allow_initial_skip": true, "no_forcing": false}\n' + text
    assert legal(parse_llguidance(text), " a", "a a") == [True, True]


def test_what_is_ignored_ends_a_text_only_if_it_can_go_on() -> None:
    text = 'start: "[" (start ("," start)*)? "]" | "x"\n%ignore " "'
    assert legal(parse_llguidance(text), "[ x , [ ] ]", "x", "[x] ", "x ") == [True, True, False, False]
    assert legal(parse_llguidance('start: "x" ("," "x")*\n%ignore " "'), "x ", "x , x ") == [True, True]
    initial = '%llguidance {"allow_initial_skip": true}\n' + text
    assert legal(parse_llguidance(initial), " x", " [ ]", " x ") == [True, True, False]


def test_syntax() -> None:
    text = r"""
%llguidance {}
// one
start: greeting ["," NAME] list~2 tail{,2} # two
  | "none"i
  | x_y -> alias
?greeting: "hel\u006co" | "\x68i"
list: "<" ( "a".."c" | DIGIT{2} )? ">"
tail: "!"
x_y: %regex {"substring_words": "one two"} "."
%import common.DIGIT
%import common (INT, CNAME)
%import common.WORD -> NAME
"""
    grammar = parse_llguidance(text)
    good = ["hello<><>", "hi,Bob<a><12>!!", "NoNe", "one two.", ".", " two.", "hi<c><>!"]
    bad = ["hi", "hi<d><>", "hello<><>!!!", "one  two.", "on."]
    assert legal(grammar, *good, *bad) == [True] * len(good) + [False] * len(bad)


def test_and_and_not_of_terminals() -> None:
    grammar = parse_llguidance('start: NAME | "if" "!"\nNAME: /[a-z]+/ & ~/if|else/ & /.{1,4}/')
    assert legal(grammar, "abc", "if", "if!", "else", "elses", "iff") == [True, False, True, False, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: there is no rule 'start'"),
        ("start: x", "1:8: 'x' is not defined"),
        ("start: X", "1:8: 'X' is not defined"),
        ('start: A\nA: B\nB: "b" C', "3:8: terminal 'C' is not defined"),
        ("start: A\nA: B\nB: A", "3:4: terminal 'A' needs itself: A -> B -> A"),
        ('start: A\nA: b\nb: "x"', "2:4: terminal 'b' is not defined; b is a rule"),
        ('start: "a"\nstart: "b"', "2:1: rule 'start' is defined twice"),
        ('start: A\nA: "a"\nA: "b"', "3:1: terminal 'A' is defined twice"),
        ("start: <|end|>", "1:8: the special token <|end|> makes this a composition of languages"),
        ("start: <[128010]>", "1:8: the special token 128010 makes this a composition"),
        ("start: <[*]>", "1:8: <[*]> is not supported: it stands for tokens with text too"),
        ("start: <[^5]>", "1:8: <[^5]> is not supported"),
        ("start: <[5-3]>", "1:8: <[5-3]> is not read: expected ids and ranges"),
        ("start: <[,]>", "1:8: <[,]> names no token"),
        ("start: <[1-100]>", "1:8: <[1-100]> stands for more than 64 tokens"),
        ("start: A\nA: <|end|>", "2:4: a special token stands in rules only"),
        ("start: @other", "1:8: the grammar @other makes this a composition"),
        ('start: %json {"type": "object"}', "1:8: %json makes this a composition"),
        ("start: A\nA: %json {}", "2:4: %json stands in rules only"),
        ('start: %lark { start: "a" }', "1:8: %lark makes this a composition"),
        ('start: %lark { start: "a"', "expected '}' to close the grammar of line 1"),
        ('start: %regex {"x": 1}', "1:8: %regex takes an object with one of"),
        ("start: %regex {", "%regex is followed by no valid JSON"),
        ('start[lasy]: "a"', "1:7: expected an attribute of a rule, which are capture, lazy"),
        ('start: x\nx[stop="b", max_tokens=3]: /a/', "2:13: max_tokens=3 is not supported: it counts tokens"),
        ('start: x\nx[stop="b", suffix="c"]: /a/', "2:13: stop= and suffix= of one rule cannot be used together"),
        ("start: x\nx[stop=(/a/)]: /a/", "2:8: stop= takes a text, a pattern or a terminal"),
        ("start: x\nx[lazy]: y\ny: /a/", "2:10: terminal 'y' is not defined; y is a rule"),
        ('start: x "b"\nx[stop=""]: /a/', 'something may come behind a rule with stop=""'),
        ('start: "ab" x\nx[lazy: /a/', "2:7: expected a comma or ']' behind the attribute lazy"),
        (
            'start: x "c" | y "!" | "-" y\nx[lazy]: /ab?/\ny: /[ab]+/',
            "ends /[a-b]+/ in some places, and in others it does not",
        ),
        ("start: x | y\nx[lazy]: /ab?/\ny: /a+/", "takes all texts of /a+/"),
        ('start: p::0\np::_: "a"', "1:8: a parametric rule is not supported: p::"),
        ('p::_: "a"', "1:2: a parametric rule is not supported"),
        ('start: "a" %if eq(_, 1)', "1:12: a condition %if"),
        ('a{b}: "x"', "1:2: a template is not supported"),
        ('start.2: "x"', "1:1: a priority is not supported"),
        ('%declare A\nstart: "a"', "1:1: the directive %declare is not supported here"),
        ('%import python.NAME\nstart: "a"', "1:1: only terminals of common can be imported"),
        ('%import common.NOPE\nstart: "a"', "1:1: common has no terminal 'NOPE'"),
        ('%llguidance {"no_forcing": 3}\nstart: "a"', "1:1: %llguidance takes an object of options"),
        ("start: A\nA: ~/a/", "2:4: ~ alone also matches what is no text in UTF-8"),
        ('start: A\nA: (~"a")+ & /b/', "2:5: ~ alone"),
        ("start: x & x\nx: /a/", "1:12: & joins terminals only"),
        ('start: "ab".."c"', "1:8: a range needs one character on each side"),
        ('start: "c".."a"', "a range needs one character on each side, in order"),
        ('start: "a"~3..1', "1:11: this repetition has fewer at most"),
        ("start: /a*?/", "1:10: a lazy quantifier is not supported"),
        ("start: /^a/", "1:9: ^ is not supported"),
        ("start: /[a/", "this class of the pattern has no closing bracket"),
        ("start: /a/l", "1:8: the flag l is not supported"),
        ("start: / a", "1:8: expected an element of a definition, found '/'"),
        ('start: "a', "1:8: expected a text in quotes"),
        (r'start: "\q"', "1:8: expected a text in quotes"),
        ('start: ("a"', "1:12: expected ')' to close the group"),
        ('start: "a" )', "1:12: expected the end of the definition"),
        ("start: start", "1:1: rule 'start' has no finite text"),
        ('start "a"', "1:7: expected ':' behind the name start"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=re.escape(message)):
        parse_llguidance(text)


def test_what_is_ignored_once() -> None:
    text = '%llguidance {"ignore_once": true}\n%ignore " "\nstart: "a" "b"'
    assert legal(parse_llguidance(text), "ab", "a b", "a  b") == [True, True, False]


LAZY = {
    'start: a "b"\na[stop="<e>"]: /.*/': ["foo<e>b", "foob", "<e>b", "foo<e><e>b"],
    'start: a "<e>"\na[stop="<e>"]: /.*/': [
        "foo<e>",
        "<e>",
        "foo",
    ],  # llguidance takes the stop back, and reads it again
    'start: a "b"\na[suffix="<e>"]: /.*/': ["foo<e>b", "foob", "foo<e>", "<e>b", "foo<e><e>b"],
    'start: a "b"\na[lazy]: /.*<e>/': ["foo<e>b", "foob", "foo<e>", "<e>b", "foo<e><e>b"],
    'start: "x" a\na[stop=""]: /[a-z]*/': ["x", "xb", "xyb", "b"],
    "start: x | y\nx[lazy]: /[a-c]*c/\ny: /[a-d]+/": ["abc", "abd", "ac", "acd", "abcd"],
    'start: x /d+/ | y "!"\nx[lazy]: /[a-c]*c/\ny: /[a-d]+/': ["abcd", "abd!", "acd!", "abc!"],
    'start: "<" x ">"\nx[stop=/[0-9]/]: /[a-z]+/': ["<a1>", "<a>", "<ab12>", "<1>"],
    'start: "<" x ">"\nx[suffix=/[0-9]+/]: /[a-z0-9]+/': ["<a1>", "<a>", "<ab12>", "<1>", "<11>", "<123>"],
    'start: "a" x "b"\nx[max_tokens=0]: /x/': ["ab", "axb"],
    'start: a\na[capture]: b "c"\nb[capture="q", temperature=0.5]: /x+/': ["xxc", "c"],
    'start: x\nx[temperature=1]: "a" "b"\n%ignore " "': ["ab", "a b"],
}
"""Grammars with attributes, and texts. llguidance 1.9.1 says of all but the second what `SAID` says."""
SAID = [
    [True, False, True, False],
    [True, True, False],
    [True, False, False, True, False],
    [True, False, False, True, False],
    [True, True, True, False],
    [True, True, True, False, False],
    [True, True, False, False],
    [True, False, False, False],
    [True, False, False, False, True, False],
    [True, False],
    [True, False],
    [True, False],
]


@pytest.mark.parametrize("number", range(len(SAID)))
@pytest.mark.filterwarnings("ignore:grammar")
def test_attributes_as_in_llguidance(number: int) -> None:
    text = list(LAZY)[number]
    assert legal(parse_llguidance(text), *LAZY[text]) == SAID[number]


def test_attributes_that_say_nothing_of_the_texts_are_named() -> None:
    with pytest.warns(UserWarning, match="capture, temperature of rules say nothing of the texts"):
        parse_llguidance('start: a\na[capture, temperature=0.2]: "x"')


MANY = 100_000
HOSTILE = {
    "groups": "start: " + "(" * MANY,
    "negations": "start: " + "~" * MANY + '"a"',
    "pattern": "start: /" + "(" * MANY + "/",
    "classes": "start: /" + "[" * MANY + "/",
    "chain": "start: T0\n" + "".join(f'T{i}: "a" T{i + 1}\n' for i in range(5000)) + 'T5000: "x"',
    "doubling": "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(60)) + 'T60: "x"',
    "options": "%llguidance " + "[" * MANY,
    "choices": "start: " + " | ".join(f'"w{i}"' for i in range(3000)),
    "copies": 'start: "a"{1000000}',
    "blanks": "start: x" + " " * MANY + "y",
    "text": 'start: "' + "a" * MANY + '"',
    "NUL": "\0" * MANY,
    "larks": "start: " + "%lark { start: " * 3000,
    "attributes": "start[" + "lazy," * MANY + "]: /a/",
    "tokens": "start: " + "<[1-64]> " * 3000,
    "substring": 'start: %regex {"substring_chars": "' + "ab" * MANY + '"}',
}
LONG = {"tokens", "choices"}
"""They take seconds."""


@pytest.mark.parametrize("name", share(sorted(HOSTILE, key=LONG.__contains__), len(HOSTILE) - len(LONG)))
def test_hostile_texts_end_soon(name: str) -> None:
    start = time.process_time()
    try:
        parse_llguidance(HOSTILE[name])
    except mw.MaskwrightError as error:
        assert len(str(error)) < 2_000
    assert time.process_time() - start < 60


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
def test_json_of_the_peers() -> None:
    text = (PEERS / "json.lark").read_text(encoding="utf-8")
    assert legal(parse_llguidance(text), '{"a": [1, null]}', "[1,]", " []") == [True, False, False]


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    share(
        [
            ("c_toy", "int f(int x) { return x; }", "int f(intx) { return x; }"),
            ("c11", "int f(void) { return (a) * b; } // x\n", "int f( {}"),
            ("python_flat", "def f(a, b=2): return a\n", "def f("),
        ],
        1,
    ),
)
def test_grammars_of_the_peers(name: str, good: str, bad: str) -> None:
    text = (PEERS / f"{name}.lark").read_text(encoding="utf-8")
    with pytest.raises(mw.GrammarError, match="parses of one text stand where different terminals compete"):
        parse_llguidance(text, name)
    assert legal(parse_llguidance(text, name, lexing="longest"), good, bad) == [True, False]


def test_lexing_is_one_of_two() -> None:
    with pytest.raises(mw.GrammarError, match="lexing is 'nfa'; expected 'contextual' or 'longest'"):
        parse_llguidance('start: "a"', lexing="nfa")
