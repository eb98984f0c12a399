"""Samples: what is drawn under right masks is accepted; under wrong masks, or by a narrower reference, it is refused, and made short."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import build_store, compile_store
from maskwright.stores.store import Store
from maskwright.validation import validate
from maskwright.validation.judges import REFUSED_GRAMMAR, REFUSED_REFERENCE, UNDECIDED
from maskwright.validation.references import OLDER
from maskwright.validation.replay import plain_replay
from maskwright.validation.sampling import NO_ENDING


def test_samples_of_a_right_store_are_accepted(store: Store) -> None:
    report = validate(store, check="sample", amount=40, budget=30, cuts=3)
    assert report.passed and report.classes == {"accepted": 40, REFUSED_GRAMMAR: 0}
    assert 40 * 3 < report.figures["closed"] <= 40 * 4 and report.figures["tokens"] > 500
    assert report.settings["samples"] == 40 and report.settings["seed"] == 0


def test_equal_seeds_draw_equal_texts(store: Store) -> None:
    reports = [validate(store, check="sample", amount=10, reference="false", seed=seed) for seed in (1, 1, 2)]
    first, again, other = ([finding.before for finding in report.findings] for report in reports)
    assert first == again != other


def test_samples_go_on_from_texts(store: Store, corpus: Path, encoder: Encoder) -> None:
    report = validate(
        store,
        corpus / "more" / "plain.txt",
        tokenizer=encoder,
        check="sample",
        amount=30,
        budget=1,
        reference="grep -q abc",
    )
    assert report.classes["accepted"] > 0 and report.classes[REFUSED_REFERENCE] > 0
    assert any(finding.before.startswith("ab") for finding in report.findings) or report.classes["accepted"] > 5


def test_refusals_are_counted_by_cause_and_made_short(store: Store) -> None:
    """A reference that knows no strings."""
    command = "sh -c 'if grep -q \\\"; then echo no string 7 here; exit 1; fi'"
    report = validate(store, check="sample", amount=150, cuts=0, budget=12, reference=command)
    assert not report.passed and 1 < report.classes[REFUSED_REFERENCE] < 150
    assert report.causes == {"no string N here": report.classes[REFUSED_REFERENCE]}
    first = report.findings[0]
    assert first.why == "no string 7 here"
    minimal = first.more["minimal"]["text"]
    # the shortest such prefix ends in the first quotation mark
    before = minimal[: minimal.index('"') + 1]
    assert minimal.count('"') == 2 and len(minimal) <= len(before) + 3
    assert "minimal" not in report.findings[1].more  # one of each cause


def test_a_store_that_lets_in_too_much_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text that is judged is made of other bytes than those that the store's tables stand for."""
    tokens = list(store.vocabulary.tokens)
    equal, plus = tokens.index(b"="), tokens.index(b"+")
    tokens[equal], tokens[plus] = tokens[plus], tokens[equal]
    wrong = dataclasses.replace(store, vocabulary=dataclasses.replace(store.vocabulary, tokens=tuple(tokens)))
    report = validate(wrong, check="sample", amount=40, budget=10)
    assert not report.passed and report.classes[REFUSED_GRAMMAR] > 5
    assert any("no terminal matches '+" in finding.why for finding in report.findings)


def test_masks_that_contradict_themselves_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second mask lacks all that begins a name: the ending cannot be written under the masks."""
    fill = Matcher.fill
    letters = [i for i, token in enumerate(store.vocabulary.tokens) if token[:1].isalpha()]
    calls = [0]

    def spoiled(self: Matcher, bitmask: Any) -> None:
        fill(self, bitmask)
        calls[0] += 1
        if calls[0] % 2:
            for token in letters:
                bitmask[token >> 5] &= ~np.uint32(1 << (token & 31))

    monkeypatch.setattr(Matcher, "fill", spoiled)
    monkeypatch.setattr(Matcher, "replay", plain_replay)
    report = validate(store, check="sample", amount=20, budget=10)
    assert not report.passed
    assert any("masks refuse" in finding.why for finding in report.findings)


def test_a_vocabulary_that_cannot_end_a_text(encoder: Encoder) -> None:
    grammar = parse_grammar('start: "a"* "b"', name="ab", lexing="longest")
    vocabulary = Vocabulary("a", (b"a", b"c", b""), {2: "</s>"}, (2,))
    report = validate(compile_store(grammar, vocabulary), check="sample", amount=3, budget=4)
    assert report.classes[NO_ENDING] == 3 and not report.passed
    assert "no token contains the bytes b'b'" in report.findings[0].why


def test_crashes_and_hangs_of_the_reference(store: Store) -> None:
    report = validate(store, check="sample", amount=2, cuts=0, reference="sleep 60", reference_seconds=0.1)
    assert report.classes[UNDECIDED] == 2 and not report.passed and report.findings[0].why.startswith("hung: ")
    report = validate(store, check="sample", amount=2, cuts=0, reference="sh -c 'kill -SEGV $$'")
    assert report.classes[UNDECIDED] == 2 and report.findings[0].why.startswith("crashed: ")


def test_an_older_python_does_not_judge(store: Store) -> None:
    """What it refuses is counted, and is no failure: lists in other brackets are no Python."""
    report = validate(store, check="sample", amount=20, reference="python")
    judged = validate(store, check="sample", amount=20, reference=OLDER)
    assert judged.passed and judged.figures["closed"] == report.figures["closed"]
    assert judged.figures["not_judged"] > 0 and report.figures["not_judged"] == 0 and not report.passed


def test_texts_of_a_grammar_of_lark_are_judged_by_lark() -> None:
    report = validate(build_store("lark:lark", "python-tiny"), check="sample", amount=10)
    assert report.passed and report.settings["reference"] == "lark:lark:start"


def test_a_model_chooses_under_the_mask(store: Store) -> None:
    seen: list[int] = []

    def last(tokens: Sequence[int], mask: Any) -> int:
        seen.append(len(tokens))
        return int(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))[-1])

    report = validate(store, check="sample", amount=1, budget=7, next_token=last)
    assert report.passed and seen == list(range(7)) and report.settings["model"]
    plus = store.vocabulary.tokens.index(b"+")
    with pytest.raises(MaskwrightError, match=f"the model chose token {plus}, which is masked"):
        validate(store, check="sample", amount=1, next_token=lambda tokens, mask: plus)


def test_what_a_model_drew_is_drawn_again_to_be_made_short(store: Store) -> None:
    """A reference that refuses what only the third text has: the drawing knows which text it is at."""
    pieces = {piece: store.vocabulary.tokens.index(piece.encode()) for piece in "a=("}

    class Draw:
        number = -1

        def begin_text(self, number: int) -> None:
            self.number = number

        def __call__(self, tokens: Sequence[int], mask: Any) -> int:
            return pieces[("a=((((" if self.number == 3 else "aaaaaa")[len(tokens)]]

    command = "sh -c 'if grep -q \\(; then echo a bracket; exit 1; fi'"
    report = validate(store, check="sample", amount=5, cuts=0, budget=6, reference=command, next_token=Draw())
    assert report.classes[REFUSED_REFERENCE] == 1 and report.findings[0].why == "a bracket"
    assert report.findings[0].more["minimal"]["text"] == "a=(a)\n"


@pytest.mark.slow
def test_what_only_one_cut_off_shows_is_shown_short(store: Store) -> None:
    """A reference that refuses texts of one length: hardly any other prefix of a refused text is refused."""
    command = "sh -c 'if [ $(($(wc -c) % 79)) = 0 ]; then echo of that length; exit 1; fi'"
    report = validate(store, check="sample", amount=40, cuts=6, budget=150, reference=command)
    assert 0 < report.classes[REFUSED_REFERENCE] < 40
    assert report.findings[0].more["minimal"]["why"] == report.findings[0].why == "of that length"
    assert len(report.findings[0].more["minimal"]["text"].encode()) % 79 == 0


def test_an_end_of_text_token_ends_the_text(store: Store) -> None:
    report = validate(store, check="sample", amount=1, next_token=lambda tokens, mask: 0)
    assert report.passed and report.figures["tokens"] == 0 and report.figures["closed"] == 1
