"""What the texts of every kind of constraint do alike: they end, go back, are copied and pickled, and stand in batches."""

from __future__ import annotations

import copy
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from mask_bits import ids

import maskwright as mw

PIECES = (b"{", b'"name"', b":", b'"a', b'"', b"}")
"""A text of each of the constraints, which want at least small letters in the second string."""
TAG = {"type": "tag", "begin": '{"name":"', "content": {"type": "regex", "pattern": "[a-z]*"}, "end": '"}'}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}
KINDS: dict[str, Any] = {
    "contextual": mw.parse_grammar('start: "{" "\\"name\\"" ":" NAME "}"\nNAME: /"[a-z]*"/', lexing="contextual"),
    "longest": mw.parse_grammar('start: "{" "\\"name\\"" ":" NAME "}"\nNAME: /"[a-z]*"/', lexing="longest"),
    "schema": mw.load_schema(SCHEMA, whitespace="compact"),
    "pattern": mw.load_regex(r'\{"name":"[a-z]*"\}'),
    "composition": mw.compose('start: "{\\"name\\":" NAME "}"\n%declare NAME', {"NAME": mw.load_regex('"[a-z]*"')}),
    "string of a schema": mw.compose(
        mw.load_schema(SCHEMA, whitespace="compact"), {"/properties/name": mw.load_regex("[a-z]*")}
    ),
    "tag": mw.read_structural_tag({"type": "structural_tag", "format": TAG}),
}


@cache
def store(kind: str) -> Any:
    return mw.build_store(KINDS[kind], "python-tiny")


def token(text: bytes) -> int:
    return mw.load_vocabulary("python-tiny").tokens.index(text)


def allowed(text: Any) -> list[int]:
    """The tokens of a mask, in all the ways that there are to ask for them."""
    words = np.full(text.store.n_words, 0xFFFFFFFF, np.uint32)
    text.fill(words)
    found = sorted(ids(words))
    tokens = text.store.vocabulary.tokens
    assert text.allowed_tokens() == found and text.allowed_tokens(as_bytes=True) == [tokens[one] for one in found]
    assert [one for one in range(0, len(tokens), 7) if text.is_allowed(one)] == [one for one in found if one % 7 == 0]
    return found


def check_said(text: Any, data: bytes) -> None:
    """What the text has read. Those of grammars do not keep it."""
    assert isinstance(text.store, mw.Store) or text.said() == data


pytestmark = pytest.mark.parametrize("kind", KINDS)


def test_texts_go_back_and_are_copied(kind: str) -> None:
    matcher, masks = store(kind).matcher(max_rollback=4), []
    for piece in PIECES:
        masks.append(allowed(matcher))
        matcher.advance_bytes(piece)
    masks.append(allowed(matcher))
    copies = [matcher.fork(), copy.copy(matcher), copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))]
    with pytest.raises(mw.MaskwrightError, match=r"cannot roll back 5 tokens: 4 are remembered"):
        matcher.rollback(5)
    for n in range(1, 5):
        matcher.rollback()
        assert allowed(matcher) == masks[-1 - n]
    with pytest.raises(mw.MaskwrightError, match="0 are remembered"):
        matcher.rollback()
    for each in copies:
        assert each.is_accepting() and allowed(each) == masks[-1]
        check_said(each, b"".join(PIECES))
        each.rollback(3)
        assert not each.is_accepting() and allowed(each) == masks[-4]
        each.advance_bytes(b'"b"}')
        assert each.is_accepting()
        check_said(each, b'{"name":"b"}')
        each.reset()
        assert allowed(each) == masks[0]
        check_said(each, b"")
    assert allowed(matcher) == masks[-5]


def test_texts_end(kind: str) -> None:
    matcher = store(kind).matcher()
    (eos,) = store(kind).vocabulary.eos
    with pytest.raises(mw.IllegalTokenError, match=r"ends the text, which is not complete here"):
        matcher.advance(eos)
    matcher.advance_bytes(b"".join(PIECES))
    assert eos in allowed(matcher)
    matcher.advance(eos)
    assert matcher.is_finished() and matcher.is_accepting() and allowed(matcher) == []
    for call in (
        lambda: matcher.advance_bytes(b"a"),
        lambda: matcher.advance(eos),
        lambda: matcher.advance(token(b"a")),
    ):
        with pytest.raises(mw.IllegalTokenError, match="after the end of the text"):
            call()
    words = np.full(store(kind).n_words, 0xFFFFFFFF, np.uint32)
    assert not matcher.try_bytes(b"2") and matcher.try_bytes(b"") and not matcher.try_fill(words) and not words.any()
    matcher.rollback()
    assert not matcher.is_finished() and eos in allowed(matcher)


@pytest.mark.parametrize("back", [0, 1, 2, 3])
def test_a_pickle_remembers_as_many_tokens_as_the_text(kind: str, back: int) -> None:
    """Behind a rollback less is remembered than the text has."""
    matcher, batch = store(kind).matcher(max_rollback=3), store(kind).batch(2, 3)
    for piece in PIECES[:-1]:
        matcher.advance_bytes(piece)
        batch.advance_bytes(1, piece)
    matcher.rollback(back)
    batch.rollback(1, back)
    again, texts = pickle.loads(pickle.dumps(matcher)), pickle.loads(pickle.dumps(batch))
    assert repr(again) == repr(matcher) and f"{3 - back} of 3 tokens" in repr(again)
    assert texts._texts[1].remembered() == again.remembered() == 3 - back
    for undo in (matcher.rollback, again.rollback, lambda n: texts.rollback(1, n)):
        with pytest.raises(mw.MaskwrightError, match=f"cannot roll back {4 - back} tokens: {3 - back} are remembered"):
            undo(4 - back)
        undo(3 - back)
    for each in (matcher, again, texts._texts[1]):
        check_said(each, b'{"name"')
    assert allowed(again) == allowed(matcher)


def test_steps_and_replays(kind: str) -> None:
    tokens = [token(bytes([byte])) for byte in b"".join(PIECES)]
    first, second = store(kind).matcher(), store(kind).matcher()
    words = np.zeros((2, store(kind).n_words), np.uint32)
    for one in tokens:
        first.step(one, words[0])
        second.advance(one)
        second.fill(words[1])
        assert np.array_equal(words[0], words[1])
    assert store(kind).matcher().replay(tokens) == len(tokens)
    assert store(kind).matcher().replay([*tokens[:3], tokens[0], *tokens]) == 3
    for wrong, said in (
        (store(kind).vocabulary.size, "out of range"),
        (-1, "out of range"),
        ("a", "expected an integer"),
    ):
        with pytest.raises(mw.IllegalTokenError, match=said):
            first.advance(wrong)
    assert not first.is_allowed(tokens[0]) and not first.is_allowed(10**6)
    assert np.array_equal(allowed(first), allowed(second))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_slots_of_a_batch_are_matchers(kind: str, n_threads: int) -> None:
    texts = [b"", b'{"name":"', b'{"nam', b'{"name":"', b'{"name":"a"}']
    batch, words = store(kind).batch(5, n_threads=n_threads), np.zeros((5, store(kind).n_words), np.uint32)
    for slot in (1, 2, 4):
        batch.advance_bytes(slot, texts[slot])
    batch.copy(1, 3)
    batch.fill(words)
    for slot, text in enumerate(texts):
        matcher = store(kind).matcher()
        matcher.advance_bytes(text)
        found = sorted(ids(words[slot]))
        assert found == allowed(matcher)
    with pytest.raises(mw.MaskwrightError, match="slot 5"):
        batch.fill(words, [5])
    with pytest.raises(mw.IllegalTokenError, match=r"^slot 4: "):
        batch.advance([token(b"{"), token(b"b"), -1, -1, token(b"}")])
    again = pickle.loads(pickle.dumps(batch))
    for each in (batch, again):
        assert each.is_allowed(0, token(b'"')) and each.is_allowed(1, token(b'"')) and each.is_accepting(4)
        for wrong in (lambda: each.advance_bytes(2, b"}"), lambda: each.rollback(2, 9)):  # noqa: B023
            with pytest.raises(mw.MaskwrightError, match=r"^slot 2: "):
                wrong()
    assert repr(batch).startswith("<Batch")
