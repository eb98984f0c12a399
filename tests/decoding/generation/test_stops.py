"""Stop strings: how far a matcher must go back, tokens that a composition takes whole, names behind a cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.generation.generation import generate
from maskwright.stores.build import compile_store


def writer(vocabulary: mw.Vocabulary, *tokens: int) -> Any:
    """A model that wants to write some tokens, and then to end."""
    wanted = [*tokens, *vocabulary.eos]

    def logits(read: Sequence[int]) -> Any:
        found = np.zeros(vocabulary.size, np.float32)
        found[wanted[min(len(read) - 1, len(wanted) - 1)]] = 9
        return found

    return logits


@pytest.mark.parametrize("close", [True, False])
def test_a_stop_string_that_the_matcher_could_not_take_back_is_refused_at_once(close: bool) -> None:
    vocabulary = mw.Vocabulary.from_tokens([b"", *(bytes([byte]) for byte in range(97, 123))], eos=[0])
    store = mw.build_store("start: /[a-z]+/", vocabulary)
    model = writer(vocabulary, 1, *[2] * 400)
    options: dict[str, Any] = {"stop": ["c", "b" * 300], "close": close, "max_tokens": 500}
    with pytest.raises(MaskwrightError, match=r"300 bytes.*take back 256.*matcher\(max_rollback=300\)"):
        generate(model, store.matcher(), [1], **options)
    found = generate(model, store.matcher(max_rollback=300), [1], **options).run()
    assert (found.data, found.reason) == (b"a", "stop")
    assert generate(model, None, [1], vocabulary=vocabulary, **options).run().data == b"a"


def test_a_long_stop_string_of_a_completion() -> None:
    pytest.importorskip("transformers")
    store = mw.build_store("start: /[a-z]+/", "python-tiny")
    assert mw.complete(store, "a", max_tokens=5, stop=["b" * 300]).is_complete
    with pytest.raises(MaskwrightError, match="stop is 'b', a str; expected a list"):
        mw.complete(store, "a", stop="b")


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize("stop", [b"tool", b"<", b"ol>12", b">1", b"x<t", b"12"])
def test_a_text_ends_before_a_token_that_is_taken_whole(stop: bytes, close: bool) -> None:
    vocabulary = mw.Vocabulary.from_tokens([b"", *(bytes([byte]) for byte in range(256)), b"<tool>"], eos=[0])
    whole = 257
    elements = [
        {"type": "const_string", "value": "x"},
        {"type": "token", "token": whole},
        {"type": "json_schema", "json_schema": {"type": "integer"}},
    ]
    form = {"type": "sequence", "elements": elements}
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary)
    digits = [1 + byte for byte in b"123"]
    model = writer(vocabulary, 1 + ord("x"), whole, *digits)
    generation = generate(model, store.matcher(), [0], stop=[stop], max_tokens=9, close=close)
    steps = list(generation)
    found = generation.completion
    assert found.reason == "stop"
    assert b"".join(step.data for step in steps) == found.data  # nothing that was shown is taken back
    at = b"x<tool>123".index(stop)
    kept = found.data[: len(found.data) - len(found.closing)]
    assert kept == (b"x<tool>123"[:at] if at <= 1 or at >= 7 else b"x")
    assert found.is_complete == close  # the integer is missing otherwise, or more


def test_a_name_that_begins_before_a_stop_string_is_held() -> None:
    grammar = longest('start: (v ";")*\nv: NAME ("." NAME)*\nNAME: /[a-z]+/\n%ignore " "')
    vocabulary = vocabulary_of(b"os.path", b"x;os.pathconf", singles=b"abcdefghijklmnopqrstuvwxyz .;")
    store = compile_store(grammar, vocabulary)
    ids = {data: token for token, data in enumerate(vocabulary.tokens) if data}

    def source(text: bytes) -> tuple[str, list[str]] | None:
        return ("NAME", ["path", "pathconf"]) if text.endswith(b"os.") else None

    for first, stop, kept in (
        (b"os.path", "path", b"os."),
        (b"os.path", "th", b"os.pa"),
        (b"x;os.pathconf", "conf", b"x;os.path"),
        (b"x;os.pathconf", "athconf", b"x;os.p"),
    ):
        model = writer(vocabulary, ids[first], ids[b";"])
        found = generate(model, store.matcher(), [0], names=source, stop=[stop], max_tokens=12).run()
        assert found.reason == "stop" and found.is_complete and found.data.startswith(kept)
        assert found.data[len(kept) :].startswith(b"path;"[len(kept.partition(b"os.")[2]) :]), found.data
