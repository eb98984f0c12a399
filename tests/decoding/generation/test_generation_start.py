"""White space before a text: none that means nothing, unless the prompt needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import maskwright as mw

EOS, BEGIN = 257, 258
VOCABULARY = mw.load_vocabulary([*(bytes([byte]) for byte in range(256)), b" {", b"", b""], eos=[EOS])
COLON, SPACE = ord(":"), ord(" ")


def blank_model(tokens: list[int]) -> npt.NDArray[np.float32]:
    """It likes " {" best, then a blank, then a line feed, then letters from z to a."""
    logits = np.linspace(0, 1, BEGIN + 1, dtype=np.float32)
    logits[[10, SPACE, 256]], logits[EOS] = (7, 8, 9), 6
    return logits


def written(constraint: Any, before: int = BEGIN, read: bytes = b"", **options: Any) -> bytes:
    matcher = mw.build_store(constraint, VOCABULARY).matcher()
    matcher.advance_bytes(read)
    return mw.generate(blank_model, matcher, [before], max_tokens=24, **options).run().data


OBJECT = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    "options", [{}, {"opportunistic": True}, {"fast_forward": True}, {"temperature": 1.0}], ids=str
)
@pytest.mark.parametrize("constraint", ["json", "python", "c", "java", "go", "toml"])
def test_no_text_of_the_library_begins_with_white_space(constraint: str, options: dict[str, Any]) -> None:
    assert not written(constraint, **options)[:1].isspace()


def test_schemas_begin_with_their_value() -> None:
    assert written(mw.load_schema(OBJECT)).startswith(b"{")
    assert written(mw.load_schema(OBJECT), SPACE).startswith(b"{")


def test_behind_other_text_white_space_may_come() -> None:
    assert written(mw.load_schema(OBJECT), COLON).startswith(b" {")


def test_what_was_read_already_is_no_start() -> None:
    assert written("json", read=b"[").startswith(b" {")
    assert written("json", read=b"\n").startswith(b" {")


@pytest.mark.parametrize(
    ("pattern", "expected"), [(" yes|no", b" yes"), (" yes", b" yes"), ("\\n?\\{\\}", b"{}"), (" *", b"")]
)
def test_white_space_that_means_something_stays(pattern: str, expected: bytes) -> None:
    assert written(mw.load_regex(pattern)) == expected
