"""A model writes into a hole: in the form that it knows, and such that the whole is a text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import maskwright as mw
from maskwright.cli import app
from maskwright.decoding.infill.prompts import FORMS, hole_tokens

STORE = cache(lambda: mw.build_store("json", "python-tiny"))
BEHIND = '], "b": null}'


@pytest.mark.parametrize("before", ['{"a": [1, 2', '{"a": [', '{"a": [[[1], "x'])
@pytest.mark.parametrize("how", [{}, {"temperature": 1.0, "seed": 3}, {"heal": False}, {"opportunistic": True}])
def test_the_whole_is_a_text(before: str, how: dict[str, Any]) -> None:
    found = mw.complete(STORE(), before, suffix=BEHIND, max_tokens=24, **how)
    assert json.loads(before + found.data.decode() + BEHIND)["b"] is None and found.is_complete
    n_healed = 3 * how.get("heal", True)  # tokens that spell the prompt's end again, at most, do not count
    assert len(found.tokens) <= 24 + n_healed


def test_what_cannot_be() -> None:
    with pytest.raises(mw.DeadEndError, match="no middle leads to the suffix"):
        mw.complete(STORE(), "[1", suffix="}", max_tokens=8)
    with pytest.raises(mw.IllegalTokenError, match="the prompt is not the beginning"):
        mw.complete(STORE(), "[}", suffix="]", max_tokens=8)
    with pytest.raises(mw.MaskwrightError, match="the suffix is not UTF-8"):
        mw.complete(STORE(), "[", suffix=b"\xff]", max_tokens=8)


class Words:
    """A tokenizer of words, which begins each prompt with 0."""

    def __call__(
        self, text: str, add_special_tokens: bool = True, split_special_tokens: bool = False
    ) -> dict[str, list[int]]:
        words = [7 if word in FORMS[0] and not split_special_tokens else 100 + len(word) for word in text.split()]
        return {"input_ids": [0] * add_special_tokens + words}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_models(form: tuple[str, ...]) -> None:
    special = {7 + k: mark for k, mark in enumerate(form)}
    model = SimpleNamespace(vocabulary=SimpleNamespace(special=special), tokenizer=Words(), begin=(1,))
    marks = sorted(special)
    first, second = ([101, 102], [103]) if len(form) == 3 else ([103], [101, 102])
    assert hole_tokens(model, "a bb", "ccc") == [1, 0, marks[0], *first, marks[1], *second, *marks[2:]]
    model.vocabulary.special = dict(list(special.items())[1:])
    assert hole_tokens(model, "a bb", "ccc") is None


def test_marks_in_a_text_are_text() -> None:
    """Also with a tokenizer of transformers."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {letter: n for n, letter in enumerate("<|fim_dlepr>xsuaync")}
    plain = Tokenizer(models.BPE(letters, []))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, extra_special_tokens=list(FORMS[0]))
    special = {tokenizer.convert_tokens_to_ids(mark): mark for mark in FORMS[0]}
    model = SimpleNamespace(vocabulary=SimpleNamespace(special=special), tokenizer=tokenizer, begin=())
    found = hole_tokens(model, "a<|fim_middle|>", "<|fim_suffix|>")
    assert found is not None
    assert [special[token] for token in found if token in special] == list(FORMS[0])
    assert tokenizer("<|fim_middle|>")["input_ids"] == [found[-1]]


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{\n  "a": [1, ],\n  "b": null}\n')
    place = ["complete", "json", str(path), "--at", "2:12", "--max-tokens", "12"]
    found = CliRunner().invoke(app, [*place, "--json", "-"])
    facts = json.loads(found.stdout)
    assert facts["suffix"] == '],\n  "b": null}\n' and facts["verdict"]["answer"] == "accepted"
    shown = CliRunner().invoke(app, place)
    assert json.loads(shown.stdout)["b"] is None
    for wrong in (["--check"], ["--to", "1:1"]):
        said = CliRunner().invoke(app, ["complete", "json", "[", *wrong])
        assert said.exit_code == 2 and "say where it begins by --at" in str(said.output) + str(said.exception)
