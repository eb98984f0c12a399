"""White space before a text: none that is ignored, unless the prompt needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from shares import share

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
@pytest.mark.parametrize("constraint", share(["json", "c", "java", "lark:python", "go"], 2))
def test_no_text_of_the_library_begins_with_ignored_white_space(constraint: str, options: dict[str, Any]) -> None:
    """In Go a line feed is a token of the language, in `python` a blank line is."""
    begin = written(constraint, **options)[:1]
    assert not begin.isspace() or (constraint == "go" and begin == b"\n")


def test_schemas_begin_with_their_value() -> None:
    assert written(mw.load_schema(OBJECT)).startswith(b"{")
    assert written(mw.load_schema(OBJECT), SPACE).startswith(b"{")


def test_behind_other_text_white_space_may_come() -> None:
    assert written(mw.load_schema(OBJECT), COLON).startswith(b" {")


def test_what_was_read_already_is_no_start() -> None:
    assert written("json", read=b"[").startswith(b" {")
    assert written("json", read=b"\n").startswith(b" {")


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (mw.load_regex(" yes|no"), b" yes"),
        (mw.load_regex("  yes|no"), b"  yes"),
        (mw.load_regex("( {4}[a-z]|[a-z]!)"), b"    z"),
        (mw.parse_grammar('start: "  " "yes" | "no"'), b"  yes"),
        (mw.parse_grammar('start: " a" "b" | "a" "c"'), b" ab"),
    ],
    ids=str,
)
def test_white_space_that_means_something_stays(constraint: Any, expected: bytes) -> None:
    assert written(constraint)[: len(expected)] == expected
