"""The syntax of xgrammar's EBNF: what is read, what is refused by name, and the grammars beside the repository."""

from __future__ import annotations

import re
import time

import pytest
from paths import SHARED
from shares import share

import maskwright as mw
from maskwright.analysis.fronts import parse_ebnf

EVERY = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])
PEERS = SHARED / "peer_grammars"


def legal(grammar: mw.Grammar, *samples: str) -> list[bool]:
    """Of each sample whether the grammar has it."""
    store = mw.build_store(grammar, EVERY)
    found = []
    for sample in samples:
        matcher = store.matcher()
        try:
            matcher.advance_bytes(sample.encode())
            found.append(matcher.is_accepting())
        except mw.IllegalTokenError:
            found.append(False)
    return found


def test_escapes() -> None:
    text = r'root ::= "\a\b\f\v\0\e\/\'\?" [\^\-\]\.] "\x1F600"'
    assert legal(parse_ebnf(text), "\a\b\f\v\0\x1b/'?-😀", "\a\b\f\v\0\x1b/'?a😀") == [True, False]


def test_sets() -> None:
    assert legal(parse_ebnf("root ::= [^] [^a] [+-]"), "\nb-", "\na-", "ab+") == [True, False, True]


def test_line_breaks_mean_nothing() -> None:
    text = 'root ::=\n  "a"\n  | x\n    y.z # one\n  | ()\nx ::= "b" y.z\n::= "c"'
    with pytest.raises(mw.GrammarError):
        parse_ebnf(text)  # the name y.z is not the first word on its line
    assert legal(parse_ebnf(text.replace("y.z\n::=", "\ny.z\n::=")), "a", "bc", "", "b") == [True, True, True, False]


def test_repetitions_and_root() -> None:
    grammar = parse_ebnf('main ::= ("a"{2} | "b"{1, -1}){1,2} | ("c"+)?', root_rule="main")
    assert legal(grammar, "aa", "a", "bbb", "aabb", "ccc", "") == [True, False, True, True, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('root ::= "a" |', '1:15: expected an element, found the end of the text; an empty alternative is written ""'),
        ("root ::=\nx ::= [a]", "2:1: expected an element, found 'x'; an empty alternative is written \"\""),
        ('root ::= "a"\n"b" x ::= "c"', "2:5: the name of rule 'x' must be the first word on its line"),
        ('root ::= "a\nb"', "1:10: this text has no closing quote on its line"),
        ("root ::= [a", "1:10: this set of characters has no closing bracket on its line"),
        ("root ::= []", "1:10: this set of characters is empty; write [^]"),
        (r"root ::= [\d]", r"1:11: \d is not supported in a set of characters"),
        (r'root ::= "\q"', r"1:11: unknown escape '\\q'"),
        (r'root ::= "\x"', "1:11: expected some hexadecimal digits"),
        (r'root ::= "\x110000"', "stands for no character"),
        ('root ::= "a"++', "1:14: expected an element of a rule, found '+'"),
        ("root ::= true", '1:10: true is a value and no element; write "true"'),
        ('true ::= "a"', "1:1: true is a value"),
        ('root ::= "a" (= "b")', "1:14: a look-ahead assertion (= ...) is not supported"),
        ("root ::= Token(3)", "1:10: the macro Token(...) is not supported"),
        ('root ::= "a" TagDispatch(("x", y))\ny ::= "b"', "1:14: the macro TagDispatch(...) is not supported"),
        ('root ::= Regex("a")', "the macro Regex(...) is not supported"),
        ('root[max_tokens=3] ::= "a"', "1:5: options of a rule are not supported: [max_tokens=3] of rule 'root'"),
        ('root ::= x\nx[lazy] ::= "a"', "2:2: options of a rule are not supported: [lazy] of rule 'x'"),
        ('root ::= ("a"', "1:14: expected ')' to close the group"),
        ('root ::= "a")', "1:13: this closing parenthesis closes no group"),
        ("root ::= x", "1:10: rule 'x' is not defined"),
        ('x ::= "a"', "1:1: there is no rule 'root'"),
        ('root ::= "a"\nroot ::= "b"', "2:1: rule 'root' is defined twice, first in line 1"),
        ("root ::= root", "rule 'root' has no finite text"),
        ('root ::= "a"{3,1}', "1:13: the repetition {3,1} has fewer at most than at least"),
        ("root ::= 5", "1:10: expected an element of a rule, found '5'"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=re.escape(message)):
        parse_ebnf(text)


@pytest.mark.parametrize(
    "text", ["root ::= " + "(" * 200_000, "root ::= x" + " " * 200_000 + "y", "root ::= " + '"a" ' * 50_000]
)
def test_hostile_texts_end_soon(text: str) -> None:
    start = time.process_time()
    try:
        parse_ebnf(text)
    except mw.MaskwrightError as error:
        assert len(str(error)) < 2_000
    assert time.process_time() - start < 30


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("json", ['{"a": [1, -2.5e3, null]}', "[]", '"x"'], ["{", "[1,]", "01"]),
        ("c_toy", ["int f(int x){return x;}", "void g(){whiley=1;}", "int f(){returnx;}"], ["int f()", "int f(int){}"]),
    ],
)
def test_grammars_of_the_peers(name: str, good: list[str], bad: list[str]) -> None:
    grammar = parse_ebnf((PEERS / f"{name}.ebnf").read_text(encoding="utf-8"), name)
    assert legal(grammar, *good, *bad) == [True] * len(good) + [False] * len(bad)


@pytest.mark.skipif(not PEERS.is_dir(), reason="no peers' grammars here")
@pytest.mark.parametrize("name", share(["c11_nocomment", "python_flat"], 1))
def test_large_grammars_of_the_peers(name: str) -> None:
    assert parse_ebnf((PEERS / f"{name}.ebnf").read_text(encoding="utf-8")).n_terminals > 50
