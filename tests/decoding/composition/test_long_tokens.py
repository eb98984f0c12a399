"""Long tokens of a composition: the work on them is linear in their bytes, and ends at the first wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import maskwright as mw
from maskwright.decoding.composition.cursors import Cursor, PatternCursor, SchemaCursor

HOST = 'start: ("[" P "]" | ",")*\n%declare P\n'
TAG = {
    "type": "tags_with_separator",
    "tags": [{"type": "tag", "begin": "<t>", "content": {"type": "regex", "pattern": "(11)*"}, "end": "</t>"}],
    "separator": ",",
    "at_least_one": True,
}


def brackets(token: bytes) -> mw.Matcher:
    tokens = [b"</s>", b"[", b"]", b",", b"a", token]
    parts = {"P": mw.load_regex("[a]*")}
    return mw.build_store(mw.compose(HOST, parts), mw.Vocabulary.from_tokens(tokens, eos=[0])).matcher()


def tags(token: bytes) -> mw.Matcher:
    tokens = [b"</s>", *(bytes((byte,)) for byte in b"<t>/1,"), token]
    constraint = mw.read_structural_tag(json.dumps({"type": "structural_tag", "format": TAG}))
    return mw.build_store(constraint, mw.Vocabulary.from_tokens(tokens, eos=[0])).matcher()


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many bytes cursors are asked about while this lasts."""
    found = [0]
    with monkeypatch.context() as patch:
        for kind in (Cursor, SchemaCursor, PatternCursor):
            for name in kind.__dict__.keys() & {"reads", "read", "can_end_behind"}:
                method = kind.__dict__[name]

                def counting(self: Cursor, data: bytes, token: int = -1, *, method: object = method) -> bool:
                    found[0] += len(data)
                    return method(self, data, *(() if token < 0 else (token,)))  # type: ignore[operator, no-any-return]

                patch.setattr(kind, name, counting)
        yield found


def work(matcher: mw.Matcher, token: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, bool]:
    """The bytes read for the mask, and for the token itself; and whether it may come."""
    words = np.zeros(1, np.uint32)
    with counted(monkeypatch) as n_bytes:
        matcher.fill(words)
        is_allowed = bool(words[0] >> token & 1)
        assert matcher.is_allowed(token) == is_allowed
        if is_allowed:
            matcher.advance(token)
            matcher.rollback()
        else:
            with pytest.raises(mw.IllegalTokenError):
                matcher.advance(token)
    return n_bytes[0], is_allowed


@pytest.mark.parametrize(
    ("make", "piece", "before", "wanted"),
    [
        (brackets, b",", b"", True),
        (brackets, b"[]", b"", True),
        (brackets, b"[", b"", False),
        (brackets, b"[a],", b"", True),
        (brackets, b"a", b"[", True),
        (brackets, b"aa][", b"[", True),
        (brackets, b"a]a", b"[", False),
        (tags, b"<", b"", False),
        (tags, b"<", b"<t>11", False),
        (tags, b"1", b"<t>1", True),
        (tags, b"</t>,<t>11", b"<t>11", True),
    ],
)
def test_work_is_linear(
    make: object, piece: bytes, before: bytes, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for n in (200, 400, 800):
        matcher = make(piece * (n // len(piece)))  # type: ignore[operator]
        matcher.advance_bytes(before)
        n_bytes, is_allowed = work(matcher, matcher.store.vocabulary.size - 1, monkeypatch)
        assert is_allowed == wanted
        found.append(n_bytes)
    assert found[2] - found[1] <= 2.2 * (found[1] - found[0]) + 400, found


def test_dead_tokens_cost_their_first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for n in (100, 1000, 10_000):
        matcher = brackets(b"[a][" * (n // 4))  # a bracket in a bracket
        found.append(work(matcher, 5, monkeypatch)[0])
    assert found[2] <= 2 * found[0]  # the first wrong byte is found by halving, for the message


def test_refusal_of_a_long_token_names_its_first_wrong_byte() -> None:
    matcher = brackets(b"[]" * 50 + b"a" + b"[]" * 50)
    with pytest.raises(mw.IllegalTokenError, match=r"Byte 100 of it, b'a', cannot come here; allowed: ',', '\['"):
        matcher.advance(5)
    assert matcher.said() == b""
