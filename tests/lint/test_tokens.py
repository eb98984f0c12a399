"""A grammar against a vocabulary: what is said to be a dead end is one for the engine."""

from __future__ import annotations

import ast

import pytest
from lint.seeds import grammar_of, vocabulary

from maskwright.analysis.errors import DeadEndError, MaskwrightError
from maskwright.decoding.matcher import Matcher
from maskwright.lint import Report, lint_grammar
from maskwright.lint.tokens import _bytes
from maskwright.stores.build import build_store

GRAMMARS = {
    "a bracket": ('start: "{" ("a" ",")* "}" | "n"', b"}", "{"),
    "a deeper bracket": ('start: "n" | "[" start "]"\n', b"]", "["),
    "another way on": ('start: "<" "a" (">" | ")")', b">", None),
    "a terminal that is begun": ('start: "x" ("->" | "=>") "y" | "n"', b">", "x"),
    "begun beside one that cannot come": ('start: "x" "->" "y" | "-" "z" | "x" "."', b">", "x-"),
    "a lexeme with one way out": ("start: TEXT\nTEXT: /'[a-z]*'|<[a-z]*>/", b">", "<"),
    "a literal that may yet become a name": ('start: NAME "." | "ab" "0"\nNAME: /[ab]+c?/\n%ignore " "', b"0", "ab "),
    "the first byte": ('start: "a" "b"', b"a", ""),
    "nothing is missing": ('start: "a" "b"', b"c", None),
    "bytes of characters": ('start: /[é]/ "." | "e"', b"\xa9", "Ã"),
}


def dead_end(report: Report) -> str | None:
    found = [f for f in report.findings if f.code == "vocabulary-dead-end"]
    assert len(found) <= 1
    return ast.literal_eval(found[0].example) if found else None


@pytest.mark.parametrize("case", GRAMMARS)
def test_dead_ends(case: str) -> None:
    text, missing, expected = GRAMMARS[case]
    grammar, tokens = grammar_of(text), vocabulary(missing)
    found = dead_end(lint_grammar(grammar, tokens))
    if case == "bytes of characters":
        assert found == "\\xc3"  # half a character is shown by its byte
        return
    assert found == expected
    matcher = Matcher(build_store(grammar, tokens, allow_dead=True))
    if found is not None:
        matcher.advance_bytes(found.encode())
        with pytest.raises(MaskwrightError):
            matcher.shortest_ending()
    else:
        assert matcher.shortest_ending().tokens


def test_a_shorter_text_is_no_dead_end() -> None:
    grammar, tokens = grammar_of('start: "x" "->" "y" | "-" "z" | "x" "."'), vocabulary(b">")
    matcher = Matcher(build_store(grammar, tokens))
    matcher.advance_bytes(b"x")
    assert matcher.shortest_ending().data == b"."
    matcher.advance_bytes(b"-")
    with pytest.raises(DeadEndError):
        matcher.shortest_ending()


def test_no_end_of_text_and_special_tokens() -> None:
    grammar = grammar_of('start: "<|im_end|>" | "a"')
    report = lint_grammar(grammar, vocabulary(eos=()))
    assert [f.code for f in report.findings] == ["no-eos"] and not report.passed
    from maskwright.maskstore.vocabulary import Vocabulary

    tokens = (b"", b"", *(bytes([b]) for b in range(256)))
    special = Vocabulary("chat", tokens, {0: "<eos>", 1: "<|im_end|>"}, (0,))
    (finding,) = lint_grammar(grammar, special).findings
    assert finding.code == "special-token-text" and "<|im_end|>" in finding.message and finding.line == 1
    assert lint_grammar(grammar_of('start: "a"'), special).findings == ()


def test_bytes_are_ranges() -> None:
    assert _bytes([0, 9, 10, 255]) == "0x00, 0x09-0x0A, 0xFF"
