"""Matchers: what they are given wrong, what they say then, and that their state is as it was."""

from __future__ import annotations

import random
import sys
import types
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from mask_bits import ids, row

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

SUM = 'start: e\ne: e "+" e | "(" e ")" | INT\nINT: /[0-9]+/'
TOKENS = (b"1", b"+", b"(", b")", b"1+", b"+1", b"((", b"))", b"x", b"12345")


@cache
def sums() -> Store:
    return compile_store(longest(SUM, "sums"), vocabulary_of(*TOKENS))


EOS = len(TOKENS)


def after(*tokens: int, max_rollback: int = 256) -> Matcher:
    matcher = sums().matcher(max_rollback)
    for token in tokens:
        matcher.advance(token)
    return matcher


# -------------------------------------------------------------------------------------------------------- tokens


def test_an_illegal_token_is_named_with_its_bytes_the_byte_and_what_could_come() -> None:
    matcher = after(0)
    before = row(matcher)
    with pytest.raises(IllegalTokenError) as caught:
        matcher.advance(2)
    message = str(caught.value)
    assert "token 2 (b'(') is not legal here under grammar sums; the state is unchanged" in message
    assert "Byte 0 of it, '(', cannot come" in message or "Byte 0 of it, b'(', cannot come" in message
    assert message.endswith("; allowed: '+', '0' to '9'")
    assert row(matcher) == before == {0, 1, 4, 5, 9, EOS}


def test_the_byte_that_is_wrong_is_found_inside_a_token() -> None:
    matcher = after(2, 0)
    with pytest.raises(IllegalTokenError, match=r"token 7 \(b'\)\)'\).*Byte 1 of it"):
        matcher.advance(7)
    assert row(matcher) == {0, 1, 3, 4, 5, 9}


def test_bytes_are_refused_as_tokens_are() -> None:
    matcher = after(2)
    with pytest.raises(IllegalTokenError, match=r"bytes b'1\+\)' are not legal here.*Byte 2 of it"):
        matcher.advance_bytes(b"1+)")
    matcher.advance_bytes(b"")
    matcher.advance_bytes(b"1)")
    assert matcher.is_accepting()
    matcher.rollback()
    assert row(matcher) == row(after(2))


@pytest.mark.parametrize("token", [-1, -2, EOS + 1, 1 << 20, 1 << 40, -(1 << 40)])
def test_ids_out_of_range(token: int) -> None:
    matcher = after(0)
    assert not matcher.is_allowed(token)
    with pytest.raises(IllegalTokenError, match=r"out of range.*0 to 10"):
        matcher.advance(token)
    assert "out of range" in matcher.explain(token).summary
    assert row(matcher) == row(after(0))


@pytest.mark.parametrize("token", [np.int32(1), np.int64(1), np.uint32(1), np.uint8(1)])
def test_ids_of_any_integer_type(token: Any) -> None:
    matcher = after(0)
    assert matcher.is_allowed(token)
    matcher.advance(token)
    assert row(matcher) == row(after(0, 1))


def test_special_tokens_without_text_are_never_allowed() -> None:
    vocabulary = Vocabulary("special", (b"a", b"", b"", b""), {1: "</s>", 2: "<pad>"}, (1,))
    matcher = compile_store(longest('start: "a"+'), vocabulary).matcher()
    for token in (2, 3):
        assert not matcher.is_allowed(token)
        with pytest.raises(IllegalTokenError, match="stands for no text"):
            matcher.advance(token)
    matcher.advance(0)
    assert row(matcher) == {0, 1}


def test_the_end_of_the_text() -> None:
    matcher = after(0)
    assert EOS in row(matcher) and matcher.is_allowed(EOS) and matcher.is_accepting() and not matcher.is_finished()
    matcher.advance(EOS)
    assert matcher.is_finished() and matcher.is_accepting() and row(matcher) == set()
    assert not any(map(matcher.is_allowed, range(EOS + 1)))
    for token in (0, EOS):
        with pytest.raises(IllegalTokenError, match=r"after the end of the text.*reset\(\)"):
            matcher.advance(token)
    with pytest.raises(IllegalTokenError, match="after the end of the text"):
        matcher.advance_bytes(b"1")
    matcher.rollback()
    assert not matcher.is_finished() and row(matcher) == row(after(0))
    matcher.advance(EOS)
    matcher.reset()
    assert not matcher.is_finished() and row(matcher) == row(after())


def test_the_text_cannot_end_where_it_is_not_complete() -> None:
    matcher = after(0, 1)
    with pytest.raises(IllegalTokenError, match=r"token 10 \(b''\) ends the text, which is not complete here"):
        matcher.advance(EOS)
    assert row(matcher) == row(after(0, 1))


def test_several_end_of_text_ids_and_none() -> None:
    several = Vocabulary("several", (b"a", b"", b""), {1: "</s>", 2: "<|end|>"}, (1, 2))
    matcher = compile_store(longest('start: "a"'), several).matcher()
    matcher.advance(0)
    assert row(matcher) == {1, 2}
    matcher.advance(2)
    assert matcher.is_finished()
    none = Vocabulary("none", (b"a", b"b"), {}, ())
    matcher = compile_store(longest('start: "a"'), none).matcher()
    matcher.advance(0)
    assert matcher.is_accepting()
    words = np.full(1, 0xFFFFFFFF, np.uint32)
    with pytest.raises(DeadEndError):  # complete, but there is no id to say so
        matcher.fill(words)


def test_explanations() -> None:
    matcher = after(0)
    assert matcher.explain(1).summary == "token 1 (b'+') may come next"
    assert "cannot come here; allowed:" in matcher.explain(3).summary
    assert row(matcher) == row(after(0))


# ------------------------------------------------------------------------------------------------------ bitmasks


@pytest.mark.parametrize(
    ("bitmask", "message"),
    [
        (np.zeros(0, np.uint32), r"shape \(0,\); expected shape \(1,\) or wider"),
        (np.zeros((1, 1), np.uint32), r"shape \(1, 1\)"),
        (np.zeros(1, np.uint64), "dtype uint64"),
        (np.zeros(1, np.float32), "dtype float32"),
        (np.zeros(1, np.bool_), "dtype bool"),
        (np.zeros(1, ">u4"), "dtype >u4"),
        (np.zeros(4, np.uint32)[::2], "not contiguous"),
        ([0], "is a list"),
        (None, "is a NoneType"),
    ],
)
def test_bitmasks_of_another_kind(bitmask: Any, message: str) -> None:
    matcher = after(0)
    with pytest.raises(MaskwrightError, match=message):
        matcher.fill(bitmask)
    assert row(matcher) == row(after(0))


def test_read_only_bitmasks() -> None:
    words = np.zeros(1, np.uint32)
    matcher = after(0)
    matcher.fill(words)
    words[:] = 0
    frozen = words.copy()
    frozen.setflags(write=False)
    with pytest.raises(MaskwrightError, match="not contiguous, not writable or not aligned"):
        matcher.fill(frozen)
    assert not frozen.any()


def test_wider_and_signed_bitmasks() -> None:
    matcher = after(0)
    words = np.full(5, -1, np.int32)
    matcher.fill(words)
    assert ids(words) == row(after(0)), "ids past the vocabulary are masked"


def test_the_same_bitmask_again_and_others_in_between() -> None:
    """The matcher remembers a bitmask that it has checked; the state and the other bitmask are looked at anew all the same."""
    words, other = np.zeros(1, np.uint32), np.zeros(2, np.int32)
    matcher = after()
    seen = []
    for token in (0, 1, 2, 0):
        for each in (words, other, words):
            each[:] = -1 if each is other else 0xFFFFFFFF
            matcher.fill(each)
            seen.append(ids(each))
        assert seen[-1] == seen[-2] == seen[-3] == {i for i in range(EOS + 1) if matcher.is_allowed(i)}
        matcher.advance(token)


class _Tensor:
    """What `check_words` uses of a torch tensor."""

    __module__ = "torch"

    def __init__(self, array: np.ndarray, device: str) -> None:
        self.array, self.device = array, types.SimpleNamespace(type=device)

    def detach(self) -> _Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.array


def test_tensors() -> None:
    words = np.zeros(1, np.int32)
    after(0).fill(_Tensor(words, "cpu"))
    assert ids(words) == row(after(0))
    with pytest.raises(MaskwrightError, match="on device"):
        after(0).fill(_Tensor(words, "cuda"))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    words = torch.zeros(3, dtype=torch.int32)
    after(0).fill(words)
    assert ids(words.numpy()) == row(after(0))
    for wrong, message in (
        (torch.zeros(1, dtype=torch.int64), "dtype int64"),
        (torch.zeros((1, 1), dtype=torch.int32), "shape"),
        (torch.zeros(4, dtype=torch.int32)[::2], "not contiguous"),
        (torch.zeros(1, dtype=torch.int32, device="meta"), "device meta"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            after(0).fill(wrong)


# ----------------------------------------------------------------------------------------------- history, dead ends


def test_rollback_too_far() -> None:
    matcher = after(0, 1, 0, max_rollback=2)
    for n in (3, -1):
        with pytest.raises(
            MaskwrightError, match=rf"cannot roll back {n} tokens: 2 are remembered \(max_rollback is 2\)"
        ):
            matcher.rollback(n)
    matcher.rollback(0)
    matcher.rollback(2)
    assert row(matcher) == row(after(0))
    with pytest.raises(MaskwrightError, match="0 are remembered"):
        matcher.rollback()


def test_no_rollback_at_all() -> None:
    matcher = after(0, 1, max_rollback=0)
    with pytest.raises(MaskwrightError, match="0 are remembered"):
        matcher.rollback()
    assert row(matcher) == row(after(0, 1))
    with pytest.raises(MaskwrightError, match="max_rollback is -1"):
        sums().matcher(-1)


def test_history_goes_round_many_times() -> None:
    matcher = after(max_rollback=3)
    for n in range(200):
        matcher.advance((0, 1)[n % 2])
    matcher.rollback(3)
    assert row(matcher) == row(after(0))
    matcher.advance(1)
    matcher.rollback(1)
    assert row(matcher) == row(after(0))


def test_dead_ends_are_explained() -> None:
    store = compile_store(longest('start: "a" "é"', "accent"), vocabulary_of(b"a", b"e", b"\xa9"))
    matcher = store.matcher()
    matcher.advance(0)
    words = np.full(1, 0xFFFFFFFF, np.uint32)
    with pytest.raises(
        DeadEndError, match=r"no token of vocabulary small .* not complete under grammar accent.*bytes b'\\xc3'"
    ):
        matcher.fill(words)
    assert not words.any(), "a mask that was not made must not let anything through"


@pytest.mark.slow
def test_too_many_readings_are_a_limit() -> None:
    """A list on the right of items of one or two: a stack for each number of items; the error says what to do."""
    grammar = longest('start: list\nlist: item list | item\nitem: "a" | "a" "a"', "lengths")
    store = compile_store(grammar, vocabulary_of(b"a", b"a" * 16))
    matcher = store.matcher()
    with pytest.raises(LimitError, match=r"readings of the text.*conflicts='shift'"):
        for _ in range(400):
            matcher.advance(1)
            row(matcher)


def test_replay_is_fill_look_up_advance() -> None:
    rng = random.Random(5)
    n_refused = n_finished = 0
    for _ in range(80):
        plain, fast = after(max_rollback=3), after(max_rollback=3)
        tokens: list[int] = []
        legal = 0
        while len(tokens) < 40 and not plain.is_finished():
            allowed = row(plain)
            tokens.append(rng.choice(sorted(allowed)) if rng.random() < 0.95 else rng.randrange(EOS))
            if tokens[-1] not in allowed:
                n_refused += 1
                break
            plain.advance(tokens[-1])
            legal += 1
        n_finished += plain.is_finished()
        assert fast.replay(tokens) == legal
        assert fast.is_finished() == plain.is_finished() and fast.text.stacks() == plain.text.stacks()
        assert plain.is_finished() or row(fast) == row(plain)
        assert fast.replay([0, 0]) == 0 or not plain.is_finished()
    assert n_refused > 5 and n_finished > 5


def test_replay_of_what_is_no_token() -> None:
    matcher = after()
    with pytest.raises(IllegalTokenError, match="token 999 is out of range"):
        matcher.replay([0, 999])
    with pytest.raises(MaskwrightError, match=r"tokens have shape \(1, 1\)"):
        matcher.replay([[1]])
    assert matcher.replay([]) == 0 and row(matcher) == row(after())


@pytest.mark.parametrize("call", ["is_accepting", "rollback", "is_allowed"])
def test_ctrl_c_where_a_function_begins_leaves_the_matcher_free(call: str) -> None:
    """A signal's handler runs where a function begins; calls that loops make a token end well even then."""
    matcher = mw.build_store("json", "python-tiny").matcher()
    n_calls, at = 0, 0

    def interrupt(frame: types.FrameType, event: str, argument: object) -> None:
        nonlocal n_calls
        n_calls += event == "call"
        if event == "call" and n_calls == at:
            raise KeyboardInterrupt

    for at in range(1, 30):
        matcher.reset()
        matcher.advance_bytes(b"[1")
        n_calls, before = 0, sys.gettrace()
        sys.settrace(interrupt)
        try:
            getattr(matcher, call)(*[1][: call != "is_accepting"])
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert matcher.is_accepting() in (True, False), "it is in use"
        if n_calls < at:
            break
    assert at > 2


def test_the_bytes_of_a_grammars_text_are_not_kept_and_that_is_said() -> None:
    with pytest.raises(MaskwrightError, match="the bytes of a text under grammar sums are not kept"):
        after(0).said()
