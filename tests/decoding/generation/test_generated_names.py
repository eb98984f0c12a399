"""`generate(names=...)`: texts whose names a source knows, also where a token ends one lexeme and begins a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.generation.generation import generate
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store

TOKENS = (b"os.", b".path", b".pa", b"th", b"os", b".env", b"path", b".", b";", b"sys", b".pat", b"x.env", b"th.path;")


@pytest.fixture(scope="module")
def store() -> mw.Store:
    grammar = longest('start: (v ";")*\nv: NAME ("." NAME)*\nNAME: /[a-z]+/\n%ignore " "')
    return compile_store(grammar, vocabulary_of(*TOKENS, singles=b"abcdefghijklmnopqrstuvwxyz "))


def liking(store: mw.Store, *texts: bytes) -> Any:
    """A model that likes some tokens, the first most, and after them the end of text."""
    row = np.full(store.vocabulary.size, -9.0, np.float32)
    for place, text in enumerate(texts):
        row[store.vocabulary.tokens.index(text)] = 9 - place
    row[store.vocabulary.eos[0]] = 9 - len(texts)

    def model(_: Sequence[int]) -> np.ndarray:
        return row.copy()

    return model


def source(text: bytes) -> tuple[str, list[str]] | None:
    return ("NAME", ["path", "pathconf"]) if text.endswith(b"os.") else None


def written(store: mw.Store, model: Any, prompt: bytes = b"", **options: Any) -> bytes:
    matcher = store.matcher()
    matcher.advance_bytes(prompt)
    names = options.pop("names", lambda text: source(prompt + text))
    return generate(model, matcher, [0], names=names, **{"max_tokens": 6, **options}).run().data


def test_a_token_that_begins_a_name_which_is_not_there_is_taken_back(store: mw.Store) -> None:
    assert written(store, liking(store, b".env", b".path", b";"), b"os", max_tokens=3) == b".path.env;"
    # of another object nothing is known
    assert written(store, liking(store, b".env", b".path", b";"), b"sys", max_tokens=3).startswith(b".env")


def test_names_are_held_behind_the_prompt_and_behind_each_token(store: mw.Store) -> None:
    assert written(store, liking(store, b"x.env", b"th", b"path", b";"), b"os.", max_tokens=2) == b"path;"
    liked = liking(store, b"os.", b"x.env", b"path", b";")
    assert written(store, liked, max_tokens=3) == b"os.path;"
    liked = liking(store, b"x.env", b";")
    assert written(store, liked, b"os.", max_tokens=3, names=None).startswith(b"x.env")


def test_a_name_in_a_token_holds_what_follows_it(store: mw.Store) -> None:
    # `.pa` is the beginning of a name, and only a name may end behind it
    assert written(store, liking(store, b".pa", b";", b"x.env", b"th"), b"os", max_tokens=3) == b".path;"


def test_texts_end_within_the_budget_with_a_name(store: mw.Store) -> None:
    for budget in range(2, 7):
        text = written(store, liking(store, b"os.", b"os", b"."), b"os.", max_tokens=budget)
        matcher = store.matcher()
        matcher.restrict("NAME", ["os"])
        assert matcher.try_bytes(b"os." + text) and matcher.is_accepting()
        assert text.startswith(b"path")


def test_a_name_that_begins_in_the_prompt_is_held_if_it_can_be(store: mw.Store) -> None:
    def healed(model: Any, heal: bytes) -> mw.Completion:
        matcher = store.matcher()
        matcher.advance_bytes(b"os")
        return generate(model, matcher, [0], names=lambda text: source(b"os" + text), heal=heal, max_tokens=4).run()

    found = healed(liking(store, b".pa", b"x.env", b"th", b";"), b".pa")
    assert found.data.startswith(b"th.") and found.is_complete
    assert healed(liking(store, b".env", b"x.env", b";"), b".env").is_complete


def test_what_goes_with_no_names_is_refused(store: mw.Store) -> None:
    model = liking(store, b";")
    with pytest.raises(MaskwrightError, match="names is 3, an int; expected a function"):
        written(store, model, names=3)
    with pytest.raises(MaskwrightError, match="names go with neither canonical, fast_forward nor counts"):
        written(store, model, fast_forward=True)
    with pytest.raises(MaskwrightError, match="names go with neither"):
        written(store, model, counts=mw.TokenCounts(store.vocabulary))
    with pytest.raises(MaskwrightError, match="max_rollback is 0"):
        generate(model, Matcher(store, 0), [0], names=source, close=False)
    pattern = mw.build_store(mw.load_regex("[a-z]+"), store.vocabulary)
    with pytest.raises(MaskwrightError, match="names need the matcher of a grammar's store"):
        generate(model, pattern.matcher(), [0], names=source)
