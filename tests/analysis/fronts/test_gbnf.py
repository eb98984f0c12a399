"""The syntax of GBNF: what is read, what is refused, and where errors point."""

from __future__ import annotations

import re
import time

import pytest
from naive_fronts import Recogniser, read

import maskwright as mw
from maskwright.analysis.fronts import parse_gbnf
from maskwright.analysis.fronts.reading import Reader

EVERY = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])


def legal(text: str, *samples: str) -> list[bool]:
    """Of each sample whether the grammar has it."""
    store = mw.build_store(parse_gbnf(text), EVERY)
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
    text = r'root ::= "\n\r\t\\\"\x41\u00e9\U0001F600" [\[\]\-a] "' + "\n" + '"'
    assert legal(text, '\n\r\t\\"Aé😀]\n', '\n\r\t\\"Aé😀-\n', '\n\r\t\\"Aé😀b\n') == [True, True, False]
    assert legal(r'root ::= "\x41B"', "AB") == [True]


def test_sets_and_any() -> None:
    assert legal("root ::= [a-c-]", "b", "-", "d") == [True, True, False]
    assert legal("root ::= [^a-c]", "b", "d", "\n", "\0", "é") == [False, True, True, True, True]
    assert legal("root ::= . .", "ab", "é\n", "a") == [True, True, False]


def test_repetitions() -> None:
    text = 'root ::= ("ab"{2} | "x"{1,} | "y"{0,2} "z"){1,2}'
    assert legal(text, "abab", "ab", "xxx", "yyz", "yyyz", "ababz", "") == [True, False, True, True, False, True, False]
    assert legal('root ::= "a"*+', "", "aa", "b") == [True, True, False]
    assert legal('root ::= "a"{0}', "", "a") == [True, False]


def test_lines_and_comments() -> None:
    text = 'root ::= # the whole\n  "a" | # one\n "b" (\n "c" # two\n | "d"\n)\n\n  other ::= "x"\n'
    assert legal(text, "a", "bc", "bd", "b") == [True, True, True, False]
    assert legal('root ::= x\r\nx ::= "a"\r\n', "a") == [True]


def test_recursion_of_all_kinds() -> None:
    assert legal('root ::= root "a" |', "", "aa", "b") == [True, True, False]
    assert legal('root ::= x\nx ::= "a" y | "b"\ny ::= x "c" | x', "ab", "abc", "aabcc", "c") == [
        True,
        True,
        True,
        False,
    ]
    assert legal('root ::= (root)? "a"', "a", "aaa", "") == [True, True, False]
    assert legal('root ::= "a" ()* ("")+ (){2} ("c"{0})? "b"', "ab", "a") == [True, False]
    assert legal("root ::= ws* ws*\nws ::= [ ]*", "", "   ") == [True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: there is no rule 'root'"),
        ('start ::= "a"', "1:1: there is no rule 'root'"),
        ('root ::= "a" x', "1:14: rule 'x' is not defined"),
        ('root ::= "a" roots', "did you mean 'root'?"),
        ('root ::= "a"\nroot ::= "b"', "2:1: rule 'root' is defined twice, first in line 1"),
        ('root ::= "abc', "1:10: this text has no closing quote"),
        ("root ::= [abc", "1:10: this set of characters has no closing bracket"),
        ("root ::= []", "1:10: this set of characters is empty"),
        ("root ::= [^]", "1:10: this set of characters is empty"),
        ("root ::= [z-a]", "1:11: the range z-a is empty"),
        (r'root ::= "\q"', r"1:11: unknown escape '\\q'"),
        (r'root ::= "\x4"', "1:11: expected 2 hexadecimal digits"),
        (r'root ::= "\ud800"', r"1:11: the escape \ud800"),
        (r'root ::= "\UFFFFFFFF"', "stands for no character"),
        ('root ::= ("a"', "1:14: expected ')' to close the group of line 1, found the end of the text"),
        ('root ::= "a")', "1:13: expected an element of rule 'root' or the end of its line, found ')'"),
        ("root ::= *", "1:10: there is nothing to repeat"),
        ('root ::= ""*', "1:12: there is nothing to repeat"),
        ('root ::= "a"{0}*', "1:16: there is nothing to repeat"),
        ('root ::= "a"{,3}', "1:14: expected a number of repetitions"),
        ('root ::= "a"{3,1}', "1:13: the repetition {3,1} has fewer at most than at least"),
        ('root ::= "a"{99999999}', "a repetition of more than 1000000 is not supported"),
        ('root ::= "a"{1', "expected '}' at the end of a repetition"),
        ("root ::= <think>", "1:10: the token <think> stands for no text"),
        ("root ::= !<[1000]> .", "1:10: the token !<[1000]> stands for no text"),
        ('root := "a"', "1:6: expected '::=' behind the name 'root', found ':'"),
        ('root ::= "a" \0', "1:14: expected an element"),
        ('root ::= "a"\n= "b"', "2:1: expected the name of a rule, found '='"),
        ("root ::= root", "1:1: rule 'root' has no finite text: 'root' always leads back to itself"),
        ('root ::= "a" x\nx ::= y "b"\ny ::= x', "2:1: rule 'root' has no finite text: 'x' always leads back"),
        ("root ::= \ud800", "the text has a lone surrogate"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(mw.GrammarError, match=re.escape(message)):
        parse_gbnf(text)


def test_no_finite_text_is_an_error_of_its_own() -> None:
    with pytest.raises(mw.GrammarError) as caught:
        parse_gbnf('root ::= "(" root ")"')
    assert type(caught.value).__name__ == "EmptyLanguageError"


def test_arguments_of_other_types() -> None:
    with pytest.raises(mw.GrammarError, match="the text of a grammar"):
        parse_gbnf(b'root ::= "a"')  # type: ignore[arg-type]


MANY = 200_000
HOSTILE = {
    "groups": "root ::= " + "(" * MANY,
    "signs": 'root ::= "a"' + "*" * MANY,
    "text": 'root ::= "' + "a" * MANY + '"',
    "set": "root ::= [" + "a" * MANY + "]",
    "blanks": " " * MANY + "#" * MANY,
    "copies": 'root ::= ("a" root | "b"){1000000}',
    "nested copies": "root ::= (([a-z]{0,900}){0,900}){0,900}",
    "doubling": "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(60)) + 'r60 ::= "c"',
    "chain": "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1} "b"\n' for i in range(3000)) + 'r3000 ::= "c"',
    "NUL": "\0" * MANY,
    "names": "a" * MANY,
    "pieces": "root ::= " + " | ".join(f'[\\u{i:04x}-\\u{i + 99:04x}] root "b"' for i in range(256, 1256)) + ' | "x"',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_soon(name: str) -> None:
    start = time.process_time()
    try:
        grammar = parse_gbnf(HOSTILE[name])
        assert grammar.n_terminals > 0
    except mw.MaskwrightError as error:
        assert len(str(error)) < 2_000
    assert time.process_time() - start < 60


def test_large_repetitions_of_a_set_are_one_terminal() -> None:
    grammar = parse_gbnf('root ::= "<" [a-z]{0,3000} ">"')
    assert grammar.n_terminals == 1
    naive = Recogniser(read('root ::= "<" [a-z]{0,3} ">"'))
    assert naive.matches(b"<abc>") and not naive.matches(b"<abcd>")


def test_places_of_a_text() -> None:
    reader = Reader("ab\ncd", "x")
    assert [reader.place(at) for at in (0, 2, 3, 5)] == [(1, 1), (1, 3), (2, 1), (2, 3)]
