"""Canonical tokens, copied and pickled: what they remember is their own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder


def said_of(canonical: Any, tokens: list[int]) -> list[bool]:
    """Whether the text may end after each token."""
    state, found = canonical.start(), []
    for token in tokens:
        state.advance(token)
        found.append(state.can_end())
    return found


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_say_the_same(twin: Callable[[Any], Any]) -> None:
    canonical = mw.load_canonical("python-tiny")
    tokens = list(load_encoder("python-tiny").tokenize("def say(what):\n    return what + 1\n"))
    before = twin(canonical)
    expected = said_of(canonical, tokens)
    assert said_of(before, tokens) == said_of(twin(canonical), tokens) == expected and len(expected) > 5
