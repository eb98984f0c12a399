"""A budget of tokens is kept: whatever a model wants, the text is whole within it, under stores of all kinds."""

from __future__ import annotations

import bisect
import functools
import keyword
import random
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from library_cases import texts_of
from shares import share

import maskwright as mw
from maskwright.decoding.generation import generation
from maskwright.decoding.generation.budget import Budget
from maskwright.maskstore.vocabulary import Vocabulary

LIBRARY = ("c", "go", "java", "json", "lark", "python", "sql", "toml")
SCHEMAS: tuple[Any, ...] = (
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}, "minItems": 300}]},
    {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 40}, "b": {"type": "null"}},
        "required": ["b"],
    },
    {"type": "array", "items": {"type": "array", "items": {"enum": ["one", "two"]}, "minItems": 3}},
)
LOPSIDED = 'start: "x" | "y" LONG | "[" start "]"\nLONG: /(ab){40}/\n'
IN_TAGS = mw.compose('start: "<a>" A "</a>" start | "end"\n%declare A', {"A": SCHEMAS[2]})


@functools.cache
def store(source: Any) -> Any:
    if isinstance(source, int):
        source = SCHEMAS[source]
    return mw.build_store(source, "python-tiny")


def random_model(seed: int, size: int) -> Any:
    """Logits by the number of tokens read: what has many tokens of a kind gets many of its tokens."""

    def logits(tokens: Sequence[int]) -> Any:
        return np.random.default_rng((seed, len(tokens))).normal(size=size).astype(np.float32)

    return logits


def check(source: Any, prompt: bytes, n_tokens: int, seed: int, **options: Any) -> str:
    """One completion within the least budget and some tokens more. Returns why it ended."""
    under = store(source)
    matcher = under.matcher()
    matcher.advance_bytes(prompt)
    least = len(matcher.short_ending().tokens)
    most = max(1, least + n_tokens)
    found = mw.generate(
        random_model(seed, under.vocabulary.size), matcher, [1], max_tokens=most, temperature=1.0, seed=seed, **options
    ).run()
    assert len(found.tokens) <= most and found.is_complete, (source, prompt, most, found)
    again = under.matcher()
    again.advance_bytes(prompt + found.data)
    assert again.is_accepting()
    return found.reason


@pytest.mark.parametrize("n", share([1, 6], 1))
@pytest.mark.parametrize("source", [LOPSIDED, IN_TAGS, *range(len(SCHEMAS))], ids=["lopsided", "tags", "0", "1", "2"])
def test_what_opens_too_much_is_not_taken(source: Any, n: int) -> None:
    """One token may ask for hundreds behind it, far from the end of the budget."""
    reasons = {check(source, b"", extra, seed) for seed in range(n) for extra in (0, 1, 2, 7, 30, 120)}
    assert "tokens" in reasons


@pytest.mark.parametrize("source", ["json", "toml"])
def test_texts_of_the_library_are_whole_wherever_they_are_cut(source: str) -> None:
    cut_texts(source, 60)


@pytest.mark.slow
@pytest.mark.parametrize("source", LIBRARY)
def test_hundreds_of_cuts(source: str) -> None:
    cut_texts(source, 400)


def cut_texts(source: str, n: int) -> None:
    rng = random.Random(f"{source} {n}")
    if source == "python":
        texts = [Path(module.__file__).read_bytes()[:3000] for module in (textwrap, bisect, keyword)]
    else:
        texts = texts_of(source, "accept")
    for seed in range(n):
        text = rng.choice(texts)
        prompt = text[: rng.randint(0, len(text))]
        check(source, prompt, rng.choice((0, 1, 2, 3, 5, 10, 40)), seed)


def test_a_model_that_always_wants_what_does_not_fit_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b""]
    vocabulary = Vocabulary("bytes", tuple(tokens), {256: "</s>"}, (256,))
    under = mw.build_store('start: "(" start ")" | WORD\nWORD: /[a-z]+/', vocabulary)
    calls = []

    def opens(so_far: Sequence[int]) -> Any:
        calls.append(len(so_far))
        return np.array([10.0 if byte == ord("(") else -byte / 1000 for byte in range(257)], np.float32)

    found = mw.generate(opens, under.matcher(), [256], max_tokens=6).run()
    assert found.data == b"((a))" or found.data == b"((aa))"
    assert len(calls) <= 6
    monkeypatch.setattr(generation, "MOST_TRIES", 1)
    assert mw.generate(opens, under.matcher(), [256], max_tokens=6).run().is_complete


def test_the_ending_kept_is_always_one() -> None:
    """Of random texts, token by token: it completes the text, and a token is refused only if no ending fits."""
    under = store("json")
    rng = random.Random(1)
    for _ in range(20):
        matcher = under.matcher()
        kept = Budget(matcher, b"")
        words = np.zeros(under.n_words, np.uint32)
        for _ in range(30):
            matcher.fill(words)
            allowed = [
                t
                for t in range(under.vocabulary.size)
                if words[t >> 5] >> (t & 31) & 1 and t not in under.vocabulary.eos
            ]
            if not allowed:
                break
            token = rng.choice(allowed)
            before, left = kept.ending, rng.randint(0, 6)
            matcher.advance(token)
            least = len(matcher.short_ending().tokens)
            fits = kept.take(token, left)
            assert fits or least > left
            if not fits:
                assert kept.ending == before
                matcher.rollback(1)
            there = matcher.fork()
            for each in kept.ending:
                there.advance(each)
            assert there.is_accepting() and (not fits or len(kept.ending) <= left)


def test_a_budget_that_cannot_suffice_is_an_error_whatever_its_size() -> None:
    matcher = store(0).matcher()
    matcher.advance_bytes(b"[")
    with pytest.raises(mw.LimitError, match="max_tokens is 100, but the shortest ending"):
        mw.generate(random_model(0, store(0).vocabulary.size), matcher, [1], max_tokens=100).run()


@pytest.mark.parametrize("source", [IN_TAGS], ids=["tags"])
def test_a_budget_below_the_ending_of_a_composition_is_an_error(source: Any) -> None:
    matcher = store(source).matcher()
    matcher.advance_bytes(b"<a>[[")
    with pytest.raises(mw.LimitError, match="max_tokens is 2, but the shortest ending of the text that is known takes"):
        mw.generate(random_model(0, store(source).vocabulary.size), matcher, [1], max_tokens=2).run()


def test_a_token_behind_which_the_vocabulary_spells_no_ending_is_not_taken() -> None:
    """The vocabulary has no `q`, so `b` leads to no ending."""
    vocabulary = mw.load_vocabulary([b"x", b"z", b"b", b"</s>"], eos=[3])
    under = mw.build_store('start: "x" start | "z" | "b" "q"', vocabulary)

    def wants(tokens: Sequence[int]) -> Any:
        return np.array([1, 0, 2, 0], np.float32)

    for options in ({}, {"opportunistic": True}):
        found = mw.generate(wants, under.matcher(), [3], max_tokens=5, **options).run()
        assert found.data == b"xxxxz" and found.is_complete


def test_only_what_the_mask_has_is_asked_again() -> None:
    """The one finite logit is of a token that does not fit: the text is closed, and that is no error."""
    vocabulary = mw.load_vocabulary([b"(", b")", b"a", b"</s>"], eos=[3])
    under = mw.build_store('start: "(" start ")" | "a"', vocabulary)

    def wants(tokens: Sequence[int]) -> Any:
        return np.array([1, 0.5, -np.inf, -np.inf], np.float32)

    for options in ({}, {"opportunistic": True}):
        found = mw.generate(wants, under.matcher(), [3], max_tokens=4, **options).run()
        assert found.data == b"(a)" and found.reason == "tokens"


def test_a_budget_needs_a_token_that_can_be_taken_back() -> None:
    under = store("json")
    model = random_model(0, under.vocabulary.size)
    with pytest.raises(mw.MaskwrightError, match="max_rollback=0"):
        mw.generate(model, under.matcher(max_rollback=0), [1])
    found = mw.generate(model, under.matcher(max_rollback=0), [1], max_tokens=5, close=False).run()
    assert len(found.tokens) <= 5


def test_when_time_is_up_the_ending_at_hand_closes_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search is made then, so none can fail."""
    under = store("json")
    matcher = under.matcher()
    matcher.advance_bytes(b"[1, ")
    generation_ = mw.generate(random_model(0, under.vocabulary.size), matcher, [1], seconds=1e-9)
    first = mw.generate(random_model(0, under.vocabulary.size), matcher.fork(), [1], seconds=1e-9).run()
    searches = []
    monkeypatch.setattr(
        Budget, "_search", lambda self, of, search=Budget._search: searches.append(1) or search(self, of)
    )
    found = generation_.run()
    assert found.reason == "seconds" and found.is_complete and len(searches) == 1 and found.data == first.data


NESTED = 'start: "(" start ")" | "x" | "()"'
NESTED_PIECES = (b"((", b"))", b"()", b"(((", b")))", b"x", b"(x", b"</s>")


@pytest.mark.parametrize("n", share([10, 60], 1))
@pytest.mark.parametrize("most", [2, 3, 4, 5])
@pytest.mark.parametrize("heal", [b"", b"("])
def test_a_stop_string_inside_a_token_keeps_the_budget(most: int, heal: bytes, n: int) -> None:
    """The token before the stop string counts, though only its beginning stays, and more may close the text then."""
    under = mw.build_store(NESTED, mw.load_vocabulary(list(NESTED_PIECES), eos=[7]))
    reasons = set()
    for seed in range(n):
        found = []
        for options in ({}, {"opportunistic": True}):
            matcher = under.matcher()
            generation_ = mw.generate(
                random_model(seed, 8), matcher, [7], max_tokens=most, stop=[")"], heal=heal, **options
            )
            try:
                found.append(generation_.run())
            except mw.LimitError:
                assert most == 2
                continue
            assert len(found[-1].tokens) <= most + (heal != b"") and found[-1].is_complete, (seed, found)
            assert b")" not in found[-1].data[: len(found[-1].data) - len(found[-1].closing)]
            assert under.matcher().try_bytes(heal + found[-1].data)
        assert len({(each.data, each.tokens, each.reason) for each in found}) <= 1
        reasons |= {each.reason for each in found}
    assert "stop" in reasons or most < 4
