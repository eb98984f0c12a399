"""Soft keywords: where a pattern may stand, they may."""

from __future__ import annotations

import pytest

import maskwright as mw
from maskwright.analysis.grammar.grammar import Rule
from maskwright.maskstore.vocabulary import Vocabulary

BYTES = Vocabulary("bytes", (*(bytes([i]) for i in range(256)), b""), {256: "</s>"}, (256,))
TEXT = """
start: (NAME "=" value ";")*
value: NAME -> name | "_" -> anything | "if" NAME
NAME: /[a-z_]+/
%ignore " "
"""


def accepts(grammar: mw.Grammar, text: bytes) -> bool:
    matcher = mw.build_store(grammar, BYTES).matcher()
    try:
        matcher.advance_bytes(text)
    except mw.MaskwrightError:
        return False
    return bool(matcher.is_accepting())


@pytest.mark.parametrize("lexing", ["longest", "contextual"])
def test_a_soft_keyword_is_a_name_too(lexing: str) -> None:
    hard = mw.parse_grammar(TEXT, lexing=lexing, reserved="words")  # type: ignore[arg-type]
    soft = mw.parse_grammar(TEXT, lexing=lexing, reserved="words", soft=["_"])  # type: ignore[arg-type]
    for text, by_hard, by_soft in (
        (b"a = _;", True, True),
        (b"_ = a;", lexing == "contextual", True),
        (b"_ = _; b = if _;", lexing == "contextual", True),
        (b"if = a;", False, False),
        (b"a = if if;", False, False),
        (b"_a = _b;", True, True),
    ):
        assert accepts(hard, text) == by_hard and accepts(soft, text) == by_soft, text


def test_no_second_reading_is_made() -> None:
    """`value: NAME | "_"` needs no rule for the keyword of its own once it may be a NAME."""
    hard, soft = mw.parse_grammar(TEXT), mw.parse_grammar(TEXT, soft=["_"])
    keyword = soft.terminal_number["UNDERSCORE" if "UNDERSCORE" in soft.terminal_number else hard.terminals[-1].name]
    assert [rule.rhs for rule in soft.rules if keyword in rule.rhs] == [(keyword,)]
    assert soft.nonterminals[-1].startswith("NAME or ")
    assert all(isinstance(rule, Rule) for rule in soft.rules) and soft.terminals == hard.terminals


def test_python_takes_its_underscore() -> None:
    assert not mw.load_grammar("lark:python", soft=()).nonterminals[-1].startswith("NAME or")
    assert mw.load_grammar("lark:python").nonterminals[-1].startswith("NAME or")
    assert mw.load_grammar("lark:python", lexing="nfa") == mw.load_grammar("lark:python", lexing="nfa", soft=["_"])


def test_a_keyword_of_several_texts() -> None:
    text = 'start: "match"i NAME | "!" "match" NAME\n%ignore " "\nNAME: '
    soft = mw.parse_grammar(text + "/[a-z]+/i", soft=["match"])
    assert accepts(soft, b"MATCH Match") and accepts(soft, b"match match") and accepts(soft, b"! match MATCH")
    with pytest.raises(
        mw.GrammarError, match=r"all texts of soft keyword 'match'i \(not 'MATCH'\).*as in /\[a-z\]\+/i"
    ):
        mw.parse_grammar(text + "/[a-z]+/", soft=["match"])
    plain = mw.parse_grammar('start: "match" NAME\nNAME: /[a-z]+/\n%ignore " "', soft=["match"])
    assert accepts(plain, b"match match") and not accepts(plain, b"match MATCH")


def test_what_is_no_keyword() -> None:
    with pytest.raises(mw.GrammarError, match="soft keyword 'else' is not a string literal of its rules"):
        mw.parse_grammar(TEXT, soft=["else"])
    with pytest.raises(mw.GrammarError, match="no pattern matches soft keyword '='"):
        mw.parse_grammar(TEXT, soft=["="])
