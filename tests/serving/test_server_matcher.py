"""A request's matcher: own ends, padded rows, drafts; held against the definition, token by token."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest
from shares import share

import maskwright as mw
from maskwright.serving import server_matcher
from maskwright.serving.server_matcher import ServerMatcher

PIECES = [b"", b"a", b"b", b"ab", b"aa", b"<stop>", b"", b"1", b"{", b"}", b'"', b'{"', b'":', b"\n", b""]
"""0 ends texts, 6 and 14 stand for no text; 13 is a line break, which a request may name as an end."""
VOCABULARY = mw.Vocabulary.from_tokens(PIECES, eos=[0], special={"<other>": 14})
CONSTRAINTS: dict[str, Any] = {
    "lark": mw.parse_grammar('start: "a" start "b" | "a" "b" | "a" "\\n"? "b"'),
    "loop": mw.parse_grammar('start: "a"+'),
    "regex": mw.load_regex(r"(a|b)*\n?b|1+"),
    "json": mw.load_schema({"type": "object", "additionalProperties": {"const": 1}}),
}
N_TOKENS = 70
"""More than the tokenizer has, and no multiple of 32."""


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")).tolist()


class Naive:
    """The same from the definition: the text so far is a list of tokens, which is read anew for each question."""

    def __init__(self, constraint: Any, ends: Collection[int]) -> None:
        self.store, self.ends, self.said = mw.build_store(constraint, VOCABULARY), set(ends), list[int]()

    def is_finished(self) -> bool:
        return bool(self.said) and self.said[-1] in self.ends

    def may_come(self, token: int) -> bool:
        if self.is_finished():
            return False
        if token not in self.ends and (token >= len(PIECES) or not PIECES[token]):
            return False
        text = b"".join(PIECES[each] for each in self.said)
        matcher = self.store.matcher()
        matcher.advance_bytes(text)
        if token in self.ends:
            return matcher.is_accepting()
        try:
            matcher.advance_bytes(PIECES[token])
        except mw.IllegalTokenError:
            return False
        return True

    def mask(self) -> list[int]:
        return [token for token in range(N_TOKENS) if self.may_come(token)]


@pytest.mark.parametrize(
    "ends", share(map(pytest.param, [(0,), (5, 6, 0), (69,), (0, 14), (14,), (13, 0), (13,)]), 1), ids=str
)
@pytest.mark.parametrize("n", share([25, 120], 1))
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_random_texts_are_those_of_the_definition(name: str, n: int, ends: tuple[int, ...]) -> None:
    draw = random.Random(f"{name} {ends}")
    naive = Naive(CONSTRAINTS[name], ends)
    fast = ServerMatcher(naive.store, ends, N_TOKENS, 100)
    rows = np.full((3, -(-N_TOKENS // 32)), 0xFFFFFFFF, np.uint32)
    for _ in range(n):
        action = draw.random()
        if action < 0.15 and naive.said:
            n = draw.randint(1, len(naive.said))
            del naive.said[-n:]
            fast.rollback(n)
        elif action < 0.2:
            naive.said.clear()
            fast.reset()
        elif naive.is_finished():
            naive.said.pop()
            fast.rollback(1)
        else:
            mask = naive.mask()
            said = fast.fill_row(rows[1])
            assert (said is not None) == (not mask)
            assert allowed(rows[1]) == (mask or sorted(ends))
            drafts = [draw.choice(mask) if mask and draw.random() < 0.7 else draw.randrange(N_TOKENS) for _ in range(4)]
            drafts = drafts[: draw.randint(0, 4)]
            before = len(naive.said)
            wanted = []
            for token in drafts:
                if not naive.may_come(token):
                    break
                naive.said.append(token)
                wanted.append(token)
            del naive.said[before:]
            assert fast.longest_prefix(drafts) == wanted
            token = draw.choice(mask) if mask and draw.random() < 0.9 else draw.randrange(N_TOKENS)
            may = naive.may_come(token)
            assert fast.try_advance(token) == may
            if may:
                naive.said.append(token)
        assert fast.is_finished() == naive.is_finished()
    assert (rows[0] == 0xFFFFFFFF).all() and (rows[2] == 0xFFFFFFFF).all()


def test_without_ends_those_of_the_vocabulary_hold() -> None:
    for ends in (None, (), (5000,)):
        matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), ends, N_TOKENS)
        row = np.zeros(3, np.uint32)
        assert matcher.try_advance(1)
        matcher.fill_row(row)
        assert allowed(row) == [0, 1, 4]


@pytest.mark.parametrize("ends", [(0,), (5, 14), (0, 6)], ids=str)
def test_after_the_end_the_ends_are_allowed_alone(ends: tuple[int, ...]) -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), ends, N_TOKENS)
    row = np.full(5, 0xFFFFFFFF, np.uint32)
    assert matcher.try_advance(1)
    matcher.fill_row(row)
    assert allowed(row) == sorted({1, 4, *ends}), "behind the tokens all is refused"
    assert matcher.try_advance(ends[-1]) and matcher.fill_row(row) is None
    assert allowed(row) == sorted(ends)
    for token in (*ends, 1):
        assert not matcher.try_advance(token)
        with pytest.raises(mw.IllegalTokenError):
            matcher.advance(token)
    matcher.rollback(1)
    assert matcher.fill_row(row) is None and allowed(row) == sorted({1, 4, *ends})


def test_a_rollback_that_is_refused_changes_nothing() -> None:
    """Also behind an end of the request's own, which the matcher does not know."""
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (5,), N_TOKENS)
    assert matcher.try_advance(1) and matcher.try_advance(5) and matcher.is_finished()
    for n in (-1, 7):
        with pytest.raises(mw.MaskwrightError):
            matcher.rollback(n)
        assert matcher.is_finished()
    matcher.rollback(2)
    assert not matcher.is_finished() and matcher.try_advance(1)


@pytest.mark.parametrize(
    ("token", "said"),
    [(2, "not legal here"), (14, "ends texts, but this text is not whole"), (0, r"ends none here: \[14\] do")],
)
def test_reading_says_why_a_token_is_refused(token: int, said: str) -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (14,), N_TOKENS)
    with pytest.raises(mw.IllegalTokenError, match=said):
        matcher.advance(token)
    matcher.advance(1)
    matcher.advance(14)
    assert matcher.is_finished()


def test_a_row_may_be_a_part_of_something_larger() -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (0,), N_TOKENS)
    rows = np.zeros((3, 2), np.uint32)
    matcher.fill_row(rows[:, 0])
    assert allowed(rows[:, 0]) == [1, 4] and not rows[:, 1].any()


def test_more_drafts_than_can_be_taken_back() -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (0,), N_TOKENS, 3)
    assert matcher.longest_prefix([1] * 10 + [0, 1]) == [1] * 10 + [0]
    assert matcher.longest_prefix([1, 2]) == [1] and not matcher.is_finished()
    row = np.zeros(3, np.uint32)
    matcher.fill_row(row)
    assert allowed(row) == [1, 4]


@pytest.mark.parametrize("n_drafts", range(5))
@pytest.mark.parametrize("end", [(), (0,), (14,)])
@pytest.mark.parametrize("most", [0, 1, 3, 100])
def test_drafts_leave_all_that_can_be_taken_back(most: int, end: tuple[int, ...], n_drafts: int) -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (0, 14), N_TOKENS, most)
    for n_read in range(5):
        assert matcher.longest_prefix([1] * n_drafts + [*end]) == [1] * n_drafts + [*end] * (n_read + n_drafts > 0)
        assert matcher.remembered() == min(n_read, most)
        matcher.rollback(matcher.remembered())
        for _ in range(min(n_read, most) + 1):
            assert matcher.try_advance(1)


def test_a_mask_that_cannot_be_made_lets_only_ends_through_which_are_refused() -> None:
    """Behind `a` the grammar wants a character that no token has."""
    vocabulary = mw.Vocabulary.from_tokens([b"", b"a", b"ab", b"b"], eos=[0])
    store = mw.build_store(mw.load_regex("ax|ab"), vocabulary)
    matcher = ServerMatcher(mw.build_store(mw.load_regex("x|a"), vocabulary), (0,), 4)
    row = np.zeros(1, np.uint32)
    assert matcher.fill_row(row) is None and allowed(row) == [1]
    blind = mw.Vocabulary.from_tokens([b"", b"a", b"ax"], eos=[0])
    matcher = ServerMatcher(mw.build_store(mw.load_regex("a[xy]"), blind), (0,), 3)
    assert matcher.try_advance(1)
    said = matcher.fill_row(row)
    assert said is not None and "no token" in said
    assert allowed(row) == [0] and not matcher.try_advance(0) and not matcher.is_finished()
    assert store.matcher().is_allowed(2)


def test_a_vocabulary_without_an_end_is_given_one_by_the_request() -> None:
    bare = mw.Vocabulary.from_tokens([b"a", b"b"])
    matcher = ServerMatcher(mw.build_store(mw.load_regex("ab"), bare), (3,), 5)
    row = np.zeros(1, np.uint32)
    assert matcher.fill_row(row) is None and allowed(row) == [0]
    assert matcher.try_advance(0) and matcher.try_advance(1)
    assert matcher.fill_row(row) is None and allowed(row) == [3]
    assert matcher.try_advance(3) and matcher.is_finished() and not matcher.try_advance(3)


def test_without_any_end_nothing_is_lost() -> None:
    bare = mw.Vocabulary.from_tokens([b"a", b"b"])
    matcher = ServerMatcher(mw.build_store(mw.load_regex("ab"), bare), (), 5)
    row = np.zeros(1, np.uint32)
    assert matcher.try_advance(0) and matcher.try_advance(1)
    said = matcher.fill_row(row)
    assert said is not None and "no end-of-text token" in said
    assert row[0] == 0xFFFFFFFF and not any(matcher.try_advance(token) for token in range(5))


def test_errors_that_are_not_expected_do_not_get_out(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = ServerMatcher(mw.build_store(CONSTRAINTS["loop"], VOCABULARY), (0,), N_TOKENS)

    def fails(*args: Any) -> None:
        raise ZeroDivisionError("here")

    for name in ("fill", "is_allowed", "advance"):
        monkeypatch.setattr(type(matcher), name, fails)
    row = np.zeros(3, np.uint32)
    assert matcher.fill_row(row) == "ZeroDivisionError('here')" and allowed(row) == [0]
    assert not matcher.try_advance(1) and matcher.longest_prefix([1]) == []


def test_a_model_with_fewer_logits_than_tokens_is_refused() -> None:
    large = mw.Vocabulary.from_tokens([*PIECES, *([b"x"] * 40)], eos=[0])
    with pytest.raises(mw.MaskwrightError, match="the store has 55 tokens and the model 20"):
        ServerMatcher(mw.build_store(CONSTRAINTS["loop"], large), (0,), 20)


def test_an_ending_is_spelled_by_other_tokens_where_that_is_legal() -> None:
    """A composition takes a token whole; its bytes by other tokens are no such token."""
    matcher = ServerMatcher(mw.build_store(mw.load_regex("ab"), VOCABULARY), (3,), N_TOKENS)
    assert matcher.short_ending().tokens == (1, 2) and all(matcher.try_advance(token) for token in (1, 2))
    pieces = [b"", *(bytes([byte]) for byte in b"<tol>x"), b"<tool>"]
    vocabulary = mw.Vocabulary.from_tokens(pieces, eos=[0])
    whole = len(pieces) - 1
    for content in ({"type": "token", "token": whole}, {"type": "const_string", "value": "<tool>"}):
        elements = [{"type": "const_string", "value": "x"}, content]
        form = {"type": "structural_tag", "format": {"type": "sequence", "elements": elements}}
        matcher = ServerMatcher(mw.build_store(mw.read_structural_tag(form), vocabulary), (whole,), N_TOKENS)
        if content["type"] == "token":
            with pytest.raises(mw.DeadEndError, match=rf"the server stops, \[{whole}\]"):
                matcher.short_ending()
        else:
            ending = matcher.short_ending().tokens
            assert whole not in ending and all(matcher.try_advance(token) for token in (*ending, whole))
            assert matcher.is_finished()


def test_a_whole_text_whose_mask_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends of the request's own make no difference: the text might go on."""
    store = mw.build_store(mw.load_schema({"type": "array", "uniqueItems": True}), mw.load_vocabulary("python-tiny"))
    for ends in ((), (store.vocabulary.eos[0], 5)):
        matcher = ServerMatcher(store, ends, store.vocabulary.size)
        for token in (store.vocabulary.tokens.index(byte) for byte in (b"[", b"1", b"]")):
            assert matcher.try_advance(token)
        matcher._slow_seconds = server_matcher.MOST_SLOW + 1
        said = matcher.fill_row(np.zeros(-(-store.vocabulary.size // 32), np.uint32))
        assert said is not None and "slow masks of this text" in said
