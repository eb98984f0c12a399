"""A store under which no text can be finished is not made, and a dead end says who is at fault: the grammar or the vocabulary."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from typer.testing import CliRunner

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.fronts import parse_gbnf
from maskwright.cli import app
from maskwright.decoding.endings.ending import endings_of

BYTES = vocabulary_of(singles=bytes(range(256)))
DEAD = {
    "joined": 'start: N "x"\nN: /[0-9a-z]+/',
    "never lexed": "start: A B\nA: /[a-c]+/\nB: /[a-z]+/",
    "two errors": 'start: "T: " TEXT "\\nA: " TOOL "\\n"\nTOOL: "search" | "calculator"\nTEXT: /[^\\n]+/',
    "stuck in front": 'start: A "."\nA: /[a-b]/\nB.1: /[a-z]/\n%ignore B',
}


@pytest.mark.parametrize("name", DEAD)
def test_a_dead_grammar_has_no_store(name: str) -> None:
    grammar = longest(DEAD[name], "dead")
    with pytest.raises(
        DeadEndError, match=r"^grammar dead cannot finish any text under vocabulary .*, so no store is made: "
    ) as caught:
        mw.build_store(grammar, BYTES)
    findings = [f for f in mw.lint_grammar(grammar, BYTES).findings if f.severity != "info"]
    assert any(finding.message in str(caught.value) for finding in findings)
    assert "no-text" in {finding.code for finding in findings if finding.severity == "error"}
    store = mw.build_store(grammar, BYTES, allow_dead=True)
    with pytest.raises(DeadEndError, match=r"no bytes complete this text"):
        store.matcher().shortest_ending()


def test_a_vocabulary_that_lacks_what_every_text_needs() -> None:
    grammar = longest('start: "a" "é"', "accent")
    lame = vocabulary_of(b"a", b"\xa9")
    with pytest.raises(
        DeadEndError, match=r"accent cannot finish any text under .*no token contains the bytes b'\\xc3'"
    ):
        mw.build_store(grammar, lame)
    assert mw.build_store(grammar, lame, allow_dead=True).n_words == 1
    assert mw.build_store(grammar, vocabulary_of("é".encode(), b"a"))


def test_an_empty_first_mask_of_entries() -> None:
    grammar = mw.parse_grammar('start: "é" "a"', name="accent", lexing="nfa")
    with pytest.raises(DeadEndError, match=r"accent cannot finish any text .*no token can come first"):
        mw.build_store(grammar, vocabulary_of(b"a", b"b"))
    assert mw.build_store(grammar, vocabulary_of(b"a", b"b"), allow_dead=True)


@pytest.mark.parametrize("text", ["start:", 'start: "a"*', 'start: "x" start | "y"'])
def test_what_can_be_finished_is_built(text: str) -> None:
    if text == "start:":
        text = 'start: "a"?'
    assert mw.build_store(longest(text), BYTES)


def test_nothing_is_written_and_nothing_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    Path("dead.lark").write_text("// maskwright: lexing = longest\n" + DEAD["joined"])
    result = CliRunner().invoke(app, ["export", "dead.lark", "-t", "python-tiny", "-o", "s.safetensors"])
    assert result.exit_code == 2
    assert "cannot finish any text" in result.output and "never-adjacent" in result.output
    assert not Path("s.safetensors").exists() and not list(tmp_path.rglob("*.safetensors"))


def test_a_dead_end_of_the_grammar_is_not_the_vocabularys() -> None:
    """`B` takes every letter, and after `<` only an `A` could come."""
    store = mw.build_store(longest('start: "<" A | B\nA: /[a-b]/\nB.1: /[a-z]/', "either"), BYTES)
    matcher = store.matcher()
    words = np.zeros(store.n_words, np.uint32)
    matcher.advance_bytes(b"<")
    with pytest.raises(
        DeadEndError, match=r"under grammar either\. The grammar is at fault, not the vocabulary: no bytes at all"
    ):
        matcher.fill(words)


def test_a_whole_text_without_an_end_of_text_token() -> None:
    """It was said that the text is not complete, and the grammar at fault."""
    store = mw.build_store('start: "a" "b"', mw.Vocabulary.from_tokens([b"a", b"b", b"ab"], eos=[]))
    matcher = store.matcher()
    matcher.advance(2)
    assert matcher.is_accepting() and matcher.shortest_ending().data == b""
    with pytest.raises(
        DeadEndError, match=r"the text is complete .* has no end-of-text token to say so: ask is_accepting"
    ):
        matcher.fill(np.zeros(1, np.uint32))


def test_texts_too_long_to_spell_are_not_tried() -> None:
    begin = time.process_time()
    store = mw.build_store(parse_gbnf('root ::= (("a" "b"){1000}){1000}'), BYTES)
    with pytest.raises(LimitError, match=r"no ending of the text is found in [\d,]+ steps"):
        store.matcher().short_ending()
    assert time.process_time() - begin < 10  # a tenth of it on a quiet machine


def test_an_ending_may_be_wanted_for_some_bytes_only() -> None:
    matcher = mw.build_store(parse_gbnf('root ::= ("a" "b"){5}'), BYTES).matcher()
    assert endings_of(matcher.text).short(matcher.text, most_bytes=10).data == b"ab" * 5
    with pytest.raises(LimitError, match="an ending of the text has at least 10 bytes"):
        endings_of(matcher.text).short(matcher.text, most_bytes=9)
