"""Limits of a composition's languages, and budgets of tokens: said, not read as what is illegal."""

from __future__ import annotations

import random
import signal
from typing import Any

import pytest

import maskwright as mw

BYTES = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])
MANY_WAYS = '// maskwright: conflicts = all\nstart: r1 | "q"\nr0: r1 "x"\nr1: r0 | start start r0 |'


def after(store: Any, text: bytes, n: int) -> mw.Matcher:
    """The matcher of a text behind which as many `x` came as could, of n."""
    matcher = store.matcher()
    matcher.advance_bytes(text)
    with pytest.raises(mw.LimitError, match="more than 1024 readings"):
        for _ in range(n):
            matcher.advance_bytes(b"x")
    return matcher  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("host", "parts", "text"),
    [
        (MANY_WAYS + '| "y" Q\n%declare Q', {"Q": mw.load_regex("b+")}, b""),
        ('start: "<" Q ">"\n%declare Q', {"Q": MANY_WAYS}, b"<"),
        ('start: "<" Q ">"\n%declare Q', {"Q": mw.in_json_string(mw.parse_grammar(MANY_WAYS))}, b'<"'),
        ('start: A ">" | B "!"\n%declare A B', {"A": MANY_WAYS, "B": mw.load_regex("x*y")}, b""),
    ],
)
def test_too_many_readings_of_a_language_are_no_refusal(host: str, parts: dict[str, Any], text: bytes) -> None:
    parts = {name: mw.parse_grammar(part) if isinstance(part, str) else part for name, part in parts.items()}
    matcher = after(mw.build_store(mw.compose(host, parts), BYTES), text, 40)
    for ask in (lambda: matcher.try_bytes(b"x"), lambda: matcher.advance(1 + ord("x"))):
        with pytest.raises(mw.LimitError):
            ask()


def budget(most: int, tokens: list[bytes]) -> mw.Matcher:
    form = {"type": "tag", "begin": "<t>", "content": {"type": "any_text", "max_tokens": most}, "end": "</t>"}
    vocabulary = mw.Vocabulary.from_tokens([b"", *tokens], eos=[0])
    store = mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary)
    return store.matcher()


def test_a_spent_budget_ends_the_character_and_no_more() -> None:
    euro = "€".encode()
    tokens = [b"<t>", b"</t>", b"<", b"o", euro[:2], euro[2:], euro[2:] + b"o", euro[2:] + b"o" + euro[:2]]
    tokens += [euro[2:] + b"</t>", euro[2:] + b"</t", euro[1:2]]
    matcher = budget(1, tokens)
    matcher.advance(1 + tokens.index(b"<t>"))
    matcher.advance(1 + tokens.index(euro[:2]))
    allowed = set(matcher.allowed_tokens(as_bytes=True))
    assert allowed == {euro[2:], euro[1:2], euro[2:] + b"</t>", euro[2:] + b"</t"}
    assert allowed == {token for number, token in enumerate(tokens, 1) if matcher.is_allowed(number)}
    matcher.advance(1 + tokens.index(euro[2:]))
    assert set(matcher.allowed_tokens(as_bytes=True)) == {b"</t>", b"<"}
    matcher.rollback(1)
    matcher.advance(1 + tokens.index(euro[2:] + b"</t>"))
    assert matcher.is_accepting()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signal.setitimer")
def test_an_interrupted_matcher_can_be_used_on() -> None:
    """Ctrl-C comes at any place of short calls, many times."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    matcher = budget(3, [b"<t>", b"</t>", b"a"])
    rng = random.Random(1)
    before = signal.signal(signal.SIGALRM, stop)
    n_hits = 0
    try:
        for _ in range(600):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(5e-6, 8e-5))
                for _ in range(400):
                    matcher.remembered()
                    matcher.said()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                n_hits += 1
            assert matcher.remembered() == 0  # says so if the matcher is in use
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_hits > 100
