"""Replay: right stores refuse nothing that the grammar takes, wrong ones are found out, and other texts are told apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.analysis.errors import GrammarError, LimitError, VocabularyError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, replay, validate
from maskwright.validation.kinds import UNREADABLE
from maskwright.validation.oracle import GrammarParse


def run(store: Any, path: Path, encoder: Encoder, **options: Any) -> ValidationReport:
    return validate(store, path, tokenizer=encoder, suffixes=[".txt"], **options)


def test_texts_inside_and_outside(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder)
    assert report.passed
    assert report.classes == {"replayed": 4, "outside the grammar": 3, "false refusal": 0}
    places = {Path(finding.name).name: finding for finding in report.findings}
    operator = places["operator.txt"]
    assert (operator.line, operator.column, operator.byte) == (2, 7, 12)
    assert operator.before == "x = y\nz = x " and operator.token is not None and operator.token[1] == "+"
    assert operator.said == ("the grammar's own parse refuses it at 2:7: no terminal matches '+ y\\n'",)
    assert "not legal here" in operator.why
    assert places["unfinished.txt"].token is None and places["no end.txt"].token is None
    assert places["no end.txt"].said[0].endswith("the text cannot end here")
    assert (places["no end.txt"].line, places["no end.txt"].column) == (1, 6)


def test_the_reference_says_whose_fault_it_is(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder, reference="sh -c 'if grep -q +; then echo no; exit 1; fi'")
    assert report.classes["outside: not a text of the language"] == 1
    assert report.classes["outside: the grammar lacks it"] == 2
    (refused,) = [finding for finding in report.findings if "not a text" in finding.kind]
    assert refused.said[1].endswith("refused: no")
    assert report.passed


def test_a_wrong_store_is_found_out(wrong_store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(wrong_store, corpus, encoder)
    assert not report.passed and report.classes["false refusal"] == 1
    (finding,) = [finding for finding in report.findings if finding.is_failure]
    assert Path(finding.name).name == "plain.txt"
    assert (finding.line, finding.column, finding.before) == (1, 1, "")
    assert finding.token is not None and finding.token[1] == "abc"
    assert finding.said[0] == "the grammar's own parse takes the text"


def break_masks(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    """Let every mask be spoiled after it is made; reading a token does not look at masks."""
    fill = Matcher.fill

    def spoiled(self: Matcher, bitmask: Any) -> None:
        fill(self, bitmask)
        spoil(self.store.vocabulary.tokens, bitmask)

    monkeypatch.setattr(Matcher, "fill", spoiled)
    monkeypatch.setattr(Matcher, "replay", replay.plain_replay)


def test_one_lost_bit_is_found(store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(tokens: tuple[bytes, ...], words: Any) -> None:
        token = tokens.index(b" = ")
        words[token >> 5] &= ~np.uint32(1 << (token & 31))

    break_masks(monkeypatch, spoil)
    report = run(store, corpus, encoder)
    assert (
        report.classes["false refusal"] == 6
    )  # all that hold " = " before they leave the grammar, and the one without an end
    finding = next(finding for finding in report.findings if finding.is_failure)
    assert "the mask refuses token" in finding.why and "which may come next" in finding.why


def test_a_false_refusal_before_a_true_one_is_found(
    store: Store, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is outside the grammar, but further on: that does not excuse the mask."""

    def spoil(tokens: tuple[bytes, ...], words: Any) -> None:
        token = tokens.index(b"q")
        words[token >> 5] &= ~np.uint32(1 << (token & 31))

    (tmp_path / "a.txt").write_text("x = q\ny = x + y\n")
    assert run(store, tmp_path, encoder).n_failures == 0
    break_masks(monkeypatch, spoil)
    report = run(store, tmp_path, encoder, reference="false")
    assert report.classes["false refusal"] == 1
    assert "refuses it at 2:7" in report.findings[0].said[0]


def test_a_refusal_that_the_engine_itself_contradicts_is_false(
    store: Store, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grammar's own parse stops at the same byte, but for the byte after it."""

    def spoil(tokens: tuple[bytes, ...], words: Any) -> None:
        token = tokens.index(b"=")
        words[token >> 5] &= ~np.uint32(1 << (token & 31))

    (tmp_path / "a.txt").write_text("x=+\n")
    assert run(store, tmp_path, encoder).n_failures == 0
    break_masks(monkeypatch, spoil)
    report = run(store, tmp_path, encoder)
    assert report.classes["false refusal"] == 1 and report.findings[0].column == 2


def test_a_mask_that_forbids_the_end_is_found(
    store: Store, corpus: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(tokens: tuple[bytes, ...], words: Any) -> None:
        words[0] &= ~np.uint32(1)  # id 0 is <eos>

    break_masks(monkeypatch, spoil)
    report = run(store, corpus, encoder)
    assert report.classes["false refusal"] == 4
    assert all("end-of-text token 0" in finding.why for finding in report.findings if finding.is_failure)


@pytest.fixture
def undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar's own parse gives up."""

    def give_up(self: GrammarParse, text: str) -> None:
        raise LimitError("too many readings")

    monkeypatch.setattr(GrammarParse, "refusal", give_up)


@pytest.mark.usefixtures("undecided")
def test_where_its_own_parse_is_undecided_the_reference_decides(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder)
    assert report.classes["false refusal"] == 3  # nobody else refuses them
    report = run(store, corpus, encoder, reference="false")
    assert report.passed and report.classes["outside: not a text of the language"] == 3


@pytest.mark.usefixtures("undecided")
def test_a_reference_that_hangs_or_crashes_excuses_nothing(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = run(store, corpus, encoder, reference="sleep 30", reference_seconds=0.2)
    assert report.classes["false refusal"] == 3
    assert report.findings[0].said[-1] == "sleep 30: hung: no answer within 0.2 s"
    report = run(store, corpus, encoder, reference="sh -c 'kill -ABRT $$'")
    assert report.classes["false refusal"] == 3 and "crashed" in report.findings[0].said[-1]


def test_unreadable_files_do_not_stop_the_rest_and_fail_the_check(store: Store, corpus: Path, encoder: Encoder) -> None:
    (corpus / "more" / "m.txt").write_bytes(b"\xff\xfe")
    report = run(store, corpus, encoder)
    assert report.classes["replayed"] == 4 and report.classes[UNREADABLE] == 1
    assert not report.passed
    (finding,) = [finding for finding in report.findings if finding.kind == UNREADABLE]
    assert finding.why == "not UTF-8 at byte 0"


def test_a_text_that_the_vocabulary_cannot_spell(grammar: Grammar, tmp_path: Path) -> None:
    pieces = [bytes([byte]) for byte in b"xyz=() \n"]
    vocabulary = Vocabulary("few", (*pieces, b""), {len(pieces): "</s>"}, (len(pieces),))
    encoder = Encoder(vocabulary, lambda text: [pieces.index(c.encode()) for c in text if c.encode() in pieces])
    (tmp_path / "a.txt").write_text("x = y\n")
    (tmp_path / "b.txt").write_text("x = a\n")
    report = run(compile_store(grammar, vocabulary), tmp_path, encoder)
    assert report.classes == {"replayed": 1, "false refusal": 0, "not spelled by the vocabulary": 1}
    assert not report.passed and "none contains the bytes b'a'" in report.findings[0].why


def test_respelled_bytes_are_counted(store: Store, tmp_path: Path, encoder: Encoder) -> None:
    (tmp_path / "a.txt").write_text("x = y # <eos> and more of it here\n")
    report = run(store, tmp_path, encoder)
    assert report.classes["replayed"] == 1 and report.figures["respelled_bytes"] == len("<eos>")


def test_limit_and_tokenizer(store: Store, corpus: Path, encoder: Encoder, tokenizer: str) -> None:
    assert sum(run(store, corpus, encoder, limit=2).classes.values()) == 2
    assert validate(store, corpus, tokenizer=tokenizer, suffixes=[".txt"]).to_dict()["classes"]["replayed"] == 4
    with pytest.raises(VocabularyError, match=r"not a built-in tokenizer.*--tokenizer"):
        validate(store, corpus, suffixes=[".txt"])


@pytest.mark.parametrize("text", ["", "x = y\n", "x = (y\n)\n", "if a:\n  x = y\n", 'x = "a" # b\n'])
def test_the_compiled_replay_and_the_plain_one(text: str, store: Store, encoder: Encoder) -> None:
    """Both stop before the first token that the mask lacks, and stand there."""
    tokens = encoder.exact_tokens(text).tokens
    assert replay.replay(store.matcher(), tokens) == len(tokens)
    colon = store.vocabulary.tokens.index(b":")
    for n in range(len(tokens) + 1):
        wrong = [*tokens[:n], colon, *tokens]
        fast, plain, slow = store.matcher(), store.matcher(), store.matcher()
        taken = replay.replay(fast, wrong)
        assert taken == replay.plain_replay(plain, wrong) >= n
        for token in wrong[:taken]:
            slow.advance(token)
        words = np.zeros((3, store.n_words), np.uint32)
        for matcher, row in zip((fast, plain, slow), words, strict=True):
            matcher.fill(row)
        assert np.array_equal(words[0], words[2]) and np.array_equal(words[1], words[2])
        assert taken == len(wrong) or not slow.is_allowed(wrong[taken])


def test_a_dead_end_is_a_refusal_at_its_place(tmp_path: Path) -> None:
    grammar = parse_grammar('start: "a"* "b"', name="ab", lexing="longest")
    vocabulary = Vocabulary("ac", (b"ac", b"a", b""), {2: "</s>"}, (2,))
    encoder = Encoder(vocabulary, lambda text: [1] * len(text))
    store = compile_store(dataclasses.replace(grammar, name="ab"), vocabulary)
    (tmp_path / "a.txt").write_text("aaa")
    report = run(store, tmp_path, encoder)
    assert report.classes["outside the grammar"] == 1 and report.figures["tokens"] == 3
    closed = parse_grammar('start: "a" "b"', name="ab", lexing="longest")
    report = run(compile_store(closed, vocabulary), tmp_path, encoder)
    (finding,) = report.findings
    assert report.figures["tokens"] == 1 and finding.column == 2 and finding.token == (1, "a")


def test_places_count_lines_and_characters() -> None:
    assert [replay.place_of("é\nab", offset) for offset in range(6)] == [(1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]


class TestGrammarParse:
    """The parse that shares no code with the engine."""

    @pytest.mark.parametrize(
        ("text", "begin", "why"),
        [
            ("x = y\n", None, ""),
            ("x = y", 5, "cannot end here"),
            ("x = = y\n", 4, r"EQUAL \('='\) cannot come here"),
            ("x ? y\n", 2, "no terminal matches '\\? y"),
            ("if x:\ny = z\n", 6, r"NAME \('y'\) cannot come here"),
            ("if x:\n  y = z\n z = y\n", 13, "_NEWLINE"),
            ("x = y)\n", 5, r"cannot come here"),
            ("x = (y\n\n)\n", None, ""),
        ],
    )
    def test_where_a_text_is_refused(self, text: str, begin: int | None, why: str, grammar: Grammar) -> None:
        refused = GrammarParse(grammar).refusal(text)
        if begin is None:
            assert refused is None
        else:
            assert refused is not None and refused.begin == begin
            with pytest.raises(ValueError, match=why):
                raise ValueError(refused.why)

    def test_all_readings_are_followed_unless_the_grammar_says_shift(self) -> None:
        text = 'start: "a" b? "c"? "d" | "a" "c" "e"\nb: "c"\n'
        both, shift = (parse_grammar(text, name="g", lexing="longest", conflicts=c) for c in ("all", "shift"))
        assert GrammarParse(both).refusal("acd") is None
        assert GrammarParse(shift).refusal("acd") is None
        text = 'start: x "b" | y "c"\nx: "a"\ny: "a"\n'
        assert GrammarParse(parse_grammar(text, name="g", lexing="longest")).refusal("ac") is None
        ambiguous = 'start: p "x" | q "y" \np: "a" | p "a"\nq: "a" | q "a" | p\n'
        both, shift = (parse_grammar(ambiguous, name="g", lexing="longest", conflicts=c) for c in ("all", "shift"))
        assert [GrammarParse(both).refusal(t) is None for t in ("aax", "aay", "aaz")] == [True, True, False]
        assert GrammarParse(shift).refusal("aax") is None

    def test_a_text_whose_end_cuts_a_lexeme_short(self) -> None:
        pytest.importorskip("regex")
        comment = 'start: N ("/" "*"? N)*\nN: /[a-z]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore " "\n'
        parse = GrammarParse(parse_grammar(comment, name="g", lexing="longest"))
        assert parse.refusal("x/*x*/") is None and parse.refusal("x/ *x") is None
        refused = parse.refusal("x/*x")
        assert refused is not None and "cuts a longer lexeme short" in refused.why

    def test_without_regex_it_still_parses(self, grammar: Grammar, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "regex", None)
        from maskwright.validation import oracle_lexing

        oracle_lexing.lexer_of.cache_clear()
        parse = GrammarParse(grammar)
        assert parse.refusal("x = y\n") is None and parse.refusal("x =\n") is not None

    def test_deep_texts(self, grammar: Grammar) -> None:
        parse = GrammarParse(grammar)
        n = 20_000
        assert parse.refusal("x = " + "(" * n + "y" + ")" * n + "\n") is None
        refused = parse.refusal("x = " + "(" * n + "y" + ")" * (n + 1) + "\n")
        assert refused is not None and refused.begin == 5 + 2 * n

    def test_other_lexings_have_none(self, grammar: Grammar) -> None:
        with pytest.raises(GrammarError, match="have an independent parse, not 'nfa'"):
            GrammarParse(dataclasses.replace(grammar, lexing="nfa"))
