"""`allowed_tokens` is the mask as a list, of matchers of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maskwright as mw

LETTERS = [b"</s>", b"a", b"ab", b"b", b'"', b"1", b"[", b"]"]
GRAMMAR = mw.parse_grammar('start: "a" "b"*')
CONSTRAINTS = [
    GRAMMAR,
    mw.load_regex("a|ab"),
    mw.load_schema({"type": "array", "items": {"const": 1}}),
    mw.compose('start: "[" P "]"\n%declare P\n', {"P": mw.load_regex("a|b")}),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda one: type(one).__name__)
def test_it_is_the_mask_as_a_list(constraint: Any) -> None:
    vocabulary = mw.Vocabulary.from_tokens(LETTERS, eos=[0])
    matcher = mw.build_store(constraint, vocabulary).matcher()
    words = np.zeros(1, np.uint32)
    while not matcher.is_finished():
        matcher.fill(words)
        found = matcher.allowed_tokens()
        assert found == [token for token in range(len(LETTERS)) if int(words[0]) >> token & 1] != []
        assert matcher.allowed_tokens(as_bytes=True) == [b"" if token == 0 else LETTERS[token] for token in found]
        matcher.advance(found[0])
    assert matcher.allowed_tokens() == []
