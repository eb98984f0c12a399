"""Structural tags with sets and budgets of tokens, against the definition and against xgrammar."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import naive_structural_tags
import pytest
from mask_bits import mask_of
from naive_structural_tags import VOCABULARY, Text, random_tag
from shares import share

import maskwright as mw

SMALL = mw.Vocabulary("small", (b"", *(one.encode() for one in VOCABULARY[1:])), {0: VOCABULARY[0]}, (0,))


def store_of(form: dict[str, Any], vocabulary: mw.Vocabulary = SMALL) -> mw.ComposedStore:
    return mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary)


@pytest.mark.parametrize("seed", share(range(120), 3))
def test_masks_of_random_tags(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        check_tag(random_tag(rng), rng, SMALL)


@pytest.mark.parametrize("seed", share(range(120), 3))
def test_masks_of_random_tags_with_parts_of_characters(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text does not end within a character, and a spent budget does not either."""
    first, second = naive_structural_tags.HALVES
    texts = [*VOCABULARY, first, second, first + second, second + "a", "b" + first]
    monkeypatch.setattr(naive_structural_tags, "VOCABULARY", texts)
    monkeypatch.setattr(naive_structural_tags, "IDS", range(1, len(texts)))
    tokens = (b"", *(one.encode("latin-1") for one in texts[1:]))
    rng, vocabulary = random.Random(f"characters {seed}"), mw.Vocabulary("halves", tokens, {0: texts[0]}, (0,))
    for _ in range(4):
        free = [{"type": "any_text", "max_tokens": rng.randint(1, 3)} for _ in range(rng.randint(0, 3))]
        check_tag({"type": "sequence", "elements": [*free, random_tag(rng, 2)]}, rng, vocabulary)


def check_tag(form: dict[str, Any], rng: random.Random, vocabulary: mw.Vocabulary) -> None:
    """Masks and verdicts along random texts of a format are those of the definition."""
    store = store_of(form, vocabulary)
    for _ in range(2):
        matcher, naive, said = store.matcher(4), Text(form), list[int]()
        for _ in range(10):
            wanted = naive.allowed()
            shown = form, [vocabulary.tokens[token] for token in said]
            assert mask_of(matcher) == wanted, shown
            assert matcher.is_accepting() == (0 in wanted), shown
            assert {token for token in range(1, vocabulary.size) if matcher.is_allowed(token)} == wanted - {0}, shown
            going_on = sorted(wanted - {0})
            if not going_on:
                break
            token = rng.choice(going_on)
            if rng.random() < 0.2:
                matcher.advance(rng.choice(going_on))
                matcher.rollback()
                matcher = matcher.fork()
                assert mask_of(matcher) == wanted, shown
            matcher.advance(token)
            naive.advance(token)
            said.append(token)
        if rng.random() < 0.5 and not matcher.is_accepting():
            for token in matcher.short_ending().tokens:
                assert token in naive.allowed(), (form, said)
                naive.advance(token)
            assert 0 in naive.allowed(), (form, said)


@pytest.mark.parametrize("step", share([3, 1], 1))
def test_masks_that_xgrammar_gave(step: int) -> None:
    """Recorded by tests/support/record_structural_tags.py. Where they differ says docs/composition.md."""
    cases = json.loads((Path(__file__).parents[2] / "data" / "cases" / "structural_tag_masks.json").read_text())
    reasons = {"text and token", "trigger begins an end", "shared"}
    for case in cases[::step]:
        matcher = store_of(case["format"]).matcher()
        for n, (mask, token) in enumerate(case["walk"]):
            found = sum(1 << one for one in mask_of(matcher))
            is_last = n == len(case["walk"]) - 1
            if is_last and case["differs"]:
                assert case["differs"] in reasons and found != int(mask, 16)
            else:
                assert found == int(mask, 16), (case["format"], n)
            if token >= 0:
                matcher.advance(token)
    assert sum(not case["differs"] for case in cases[::step]) > 110 // step


CALLS = mw.Vocabulary(
    "calls",
    (b"", b"", b"", b"", *(bytes((byte,)) for byte in range(256)), "éa".encode(), b"ab", b"a<"),
    {0: "</s>", 1: "<call>", 2: "</call>", 3: "<think>"},
    (0,),
)


def ids(text: str) -> list[int]:
    return [4 + byte for byte in text.encode()]


def test_special_tokens_among_free_ones() -> None:
    tag = {
        "type": "tag",
        "begin": {"type": "token", "token": "<call>"},
        "content": {"type": "json_schema", "json_schema": {"type": "integer"}},
        "end": {"type": "token", "token": "</call>"},
    }
    form = {
        "type": "token_triggered_tags",
        "trigger_tokens": ["<call>"],
        "tags": [tag],
        "exclude_tokens": ["</s>", "</call>"],
    }
    matcher = store_of(form, CALLS).matcher()
    for token in (*ids("a"), 3, 1):
        assert matcher.is_allowed(token) and not matcher.is_allowed(2)
        matcher.advance(token)
    assert not matcher.is_allowed(3) and not matcher.is_accepting()
    assert matcher.short_ending().tokens[-1] == 2
    for token in (*ids("12"), 2, *ids("é"), 1):
        matcher.advance(token)
    matcher.rollback()
    assert matcher.is_accepting() and mask_of(matcher) == set(range(CALLS.size)) - {2}


def test_a_budget_ends_a_text_at_a_whole_character() -> None:
    """A character under way is finished; then there is nothing but the end."""
    form = {"type": "tag", "begin": "<", "content": {"type": "any_text", "max_tokens": 2}, "end": ">"}
    matcher = store_of(form, CALLS).matcher()
    for token in (*ids("<a"), 4 + 0xC3):
        matcher.advance(token)
    assert mask_of(matcher) == {4 + byte for byte in range(0x80, 0xC0)}
    matcher.advance(4 + 0xA9)
    assert mask_of(matcher) == set(ids(">"))
    matcher.advance_bytes(b">")
    assert matcher.is_accepting()


def test_bytes_without_tokens_spend_no_budget() -> None:
    matcher = store_of({"type": "any_text", "max_tokens": 1}, CALLS).matcher()
    matcher.advance_bytes(b"a text that is longer than sixteen bytes")
    matcher.advance(ids("a")[0])
    assert mask_of(matcher) == {0}
    matcher.rollback()
    assert len(mask_of(matcher)) > 150


@pytest.mark.parametrize("most", [10**6, 2**31 - 1])
def test_long_budgets_take_no_room(most: int) -> None:
    for kind in ("any_tokens", "any_text"):
        matcher = store_of({"type": kind, "max_tokens": most}, CALLS).matcher()
        for token in ids("abc" * 20):
            matcher.advance(token)
        assert matcher.is_accepting() and len(mask_of(matcher)) > 150


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "exclude_token", "exclude_tokens": ["<none>"]}, "no token '<none>'"),
        ({"type": "any_tokens", "exclude_tokens": [10**6]}, "token 1000000 is out of range"),
        ({"type": "token", "token": "</s>"}, "ends the text"),
        ({"type": "any_tokens", "exclude_tokens": list(range(CALLS.size))}, "is left: exclude fewer"),
    ],
)
def test_tokens_that_a_vocabulary_lacks(form: dict[str, Any], message: str) -> None:
    with pytest.raises(mw.VocabularyError, match="part token at /format") as error:
        store_of(form, CALLS)
    assert message in str(error.value)


def test_a_composition_with_token_sets_inside_another() -> None:
    inner = mw.read_structural_tag(
        {"type": "structural_tag", "format": {"type": "exclude_token", "exclude_tokens": ["a"]}}
    )
    store = mw.build_store(mw.compose('start: "<" X "b"\n%declare X', {"X": inner}), CALLS)
    matcher = store.matcher()
    matcher.advance_bytes(b"<")
    assert mask_of(matcher) == set(range(1, CALLS.size)) - set(ids("a"))
    matcher.advance(CALLS.tokens.index(b"ab"))
    assert mask_of(matcher) == set(ids("b"))
    matcher.advance_bytes(b"b")
    assert matcher.is_accepting()


def test_a_budget_inside_another_composition_is_refused() -> None:
    inner = mw.read_structural_tag({"type": "structural_tag", "format": {"type": "any_text", "max_tokens": 2}})
    with pytest.raises(mw.GrammarError, match="part X has a budget of tokens"):
        mw.compose('start: "<" X ">"\n%declare X', {"X": inner})


def test_no_byte_is_forced_where_a_token_comes_for_itself() -> None:
    """Behind the token `ab` comes `!`, behind its bytes `?`."""
    whole = {"type": "sequence", "elements": [{"type": "token", "token": "ab"}, {"type": "const_string", "value": "!"}]}
    text = {"type": "const_string", "value": "ab?"}
    for elements in ([whole], [whole, text]):
        form = {"type": "tag", "begin": "<", "content": {"type": "or", "elements": elements}, "end": ">"}
        matcher = store_of(form, CALLS).matcher()
        assert matcher.forced_bytes() == b"<"
        matcher.advance(ids("<")[0])
        assert matcher.forced_bytes() == b""
        matcher.advance(CALLS.tokens.index(b"ab"))
        assert mask_of(matcher) == set(ids("!?" if text in elements else "!"))
    inner = mw.read_structural_tag({"type": "structural_tag", "format": {"type": "token", "token": "ab"}})
    matcher = mw.build_store(mw.compose('start: "<" X ">"\n%declare X', {"X": inner}), CALLS).matcher()
    assert matcher.forced_bytes() == b"<"
    matcher = store_of(
        {"type": "tag", "begin": "<", "content": {"type": "any_tokens", "max_tokens": 1}, "end": ">"}, CALLS
    ).matcher()
    assert matcher.forced_bytes() == b"<"


def test_a_part_whose_budget_is_spent_does_not_go_on_beside_another() -> None:
    """Two parts are within a character, and the first one's budget is spent: the text goes on in the second."""
    form = {"type": "sequence", "elements": [{"type": "any_text", "max_tokens": most} for most in (1, 2)]}
    matcher = store_of(form, CALLS).matcher()
    first, second = ids("é")
    matcher.advance(first)
    matcher.advance_bytes("é".encode()[1:])
    assert len(mask_of(matcher)) > 150
    matcher.advance(ids("a")[0])
    assert mask_of(matcher) == {0}
    matcher.rollback(2)
    matcher.advance(second)
    assert mask_of(matcher) == {0}
    matcher.rollback()
    assert mask_of(matcher) == {4 + byte for byte in range(0x80, 0xC0)}
