"""The terminals that tokens spell, against a lexer written in a few lines."""

from __future__ import annotations

import re

import pytest

from maskwright.analysis.loading import parse_grammar
from maskwright.audit.compare import END_OF_TEXT, TokenSequences
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store

GRAMMAR = """
start: (NAME | NUMBER | "(" start ")" | STRING)*
NAME: /[a-z]+/
NUMBER: /[0-9]+/
STRING: /"[^"]*"/
%ignore " "
"""
LEXEMES = re.compile(r'(?P<NAME>[a-z]+)|(?P<NUMBER>[0-9]+)|(?P<LPAR>\()|(?P<RPAR>\))|(?P<STRING>"[^"]*")|(?P<WS> )')

TEXTS = ["", "ab", "ab ", "ab 12", "(", "(a", "x(y)", '"s', '"s"', '"s" ', "a1", "0"]
TOKENS = ["a", "b(", " ", "(", "))", "1", "12a", '"', 'x"', '")', "$", "a$", "  a", '" "', "z9 (", "é", '"é"']


def expected(text: str, token: str) -> str:
    """What the lexer emits over the token, and what is under way at its end."""
    begin = 0
    words: list[str] = []
    whole = text + token
    # the lexemes that end within the token, and the last
    while begin < len(whole):
        match = LEXEMES.match(whole, begin)
        if match is None:
            rest = whole[begin:]
            words.append("STRING (begun)" if rest[0] == '"' else "then nothing that is a terminal")
            break
        is_at_once = match.lastgroup in ("LPAR", "RPAR", "STRING")
        emitted_at = match.end() if is_at_once else match.end() + 1
        if match.lastgroup != "WS" and emitted_at > len(text) and match.lastgroup is not None:
            words.append(match.lastgroup)
        begin = match.end()
    return " ".join(words) or "ignored text"


@pytest.mark.parametrize("text", TEXTS)
def test_sequences(text: str) -> None:
    tokens = (b"", *(bytes([i]) for i in range(256)), *(token.encode() for token in TOKENS))
    vocabulary = Vocabulary("v", tokens, {0: "</s>"}, (0,))
    store = compile_store(parse_grammar(GRAMMAR, name="g"), vocabulary)
    sequences = TokenSequences(store)
    matcher = store.matcher()
    matcher.advance_bytes(text.encode())
    numbers = sequences.numbers(matcher)
    assert numbers is sequences.numbers(matcher) and numbers.shape == (vocabulary.size,)
    found = {token: sequences.describe(int(numbers[257 + i])) for i, token in enumerate(TOKENS)}
    wanted = {token: expected(text, token) for token in TOKENS}
    assert found == wanted
    # equal sequences have equal numbers
    assert len(set(wanted.values())) == len(set(numbers[257:].tolist()))


def test_terminals_before() -> None:
    vocabulary = Vocabulary("v", (b"", *(bytes([i]) for i in range(256))), {0: "</s>"}, (0,))
    text = 'start: "(" value ")"\nvalue: "n" | "t" | "f" | "u"'
    store = compile_store(parse_grammar(text, name="g"), vocabulary)
    sequences = TokenSequences(store)
    matcher = store.matcher()
    shown = []
    for data in (b"", b"(", b"t", b")"):
        matcher.advance_bytes(data)
        shown.append(sequences.before(matcher))
    assert shown == ["the start", "LPAR", "N or T or F or ...", "RPAR"]
    assert sequences.describe(END_OF_TEXT) == "end of text"


def test_contextual_lexing_says_where_it_stops_knowing() -> None:
    vocabulary = Vocabulary("v", (b"", *(bytes([i]) for i in range(256)), b"x/a", b"=/a", b"/a/"), {0: "</s>"}, (0,))
    text = 'start: NAME ("=" REGEX | "/" NAME)\nNAME: /[a-z]+/\nREGEX: /\\/[a-z]+\\//'
    store = compile_store(parse_grammar(text, name="g", lexing="contextual"), vocabulary)
    sequences = TokenSequences(store)
    matcher = store.matcher()
    shown = []
    for data in (b"", b"y="):
        matcher.advance_bytes(data)
        numbers = sequences.numbers(matcher)
        shown.append([sequences.describe(int(number)) for number in numbers[257:]])
    assert shown[1][2] == "REGEX" and any("..." in one for one in shown[0])
