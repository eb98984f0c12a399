"""Masks of compositions against the definition, on random hosts and parts."""

from __future__ import annotations

import random

import pytest
from mask_bits import mask_of
from naive_composition import LETTERS, Case, automaton_of, json_prefix_lives, random_case, random_pattern
from shares import share

import maskwright as mw
from maskwright.analysis.marks import MARK
from maskwright.analysis.regex.dfa import Dfa

HEAD = '{"k":"'
"""How the only member of the tests' objects begins."""


def vocabulary_of(rng: random.Random, letters: str, more: list[str]) -> mw.Vocabulary:
    texts = {"".join(rng.choices(letters, k=rng.randrange(1, 5))) for _ in range(60)}
    # long ones too: of pieces that come again, since few others are legal
    texts |= {"".join(rng.choices(letters, k=rng.randrange(1, 4))) * rng.randrange(9, 30) for _ in range(12)}
    tokens = sorted({each.encode() for each in (*texts, *letters, *more)})
    return mw.Vocabulary.from_tokens([b"</s>", *tokens, b"\xf8", b"a\xf8@", bytes([0x80])], eos=[0], name="random")


def parts_of(case: Case, rng: random.Random) -> dict[str, object]:
    """Each part as a pattern or as a grammar of the same texts."""
    found: dict[str, object] = {}
    for name, pattern in case.parts.items():
        may_be_grammar = not automaton_of(Case("", {}, pattern)).is_accepting[0]
        if may_be_grammar and rng.random() < 0.5:
            found[name] = mw.parse_grammar(f"start: T\nT: /{pattern}/")
        else:
            found[name] = mw.load_regex(pattern)
    return found


@pytest.mark.parametrize("seed", share(range(60), 3))
def test_regular_hosts_with_regular_parts(seed: int) -> None:
    rng = random.Random(seed)
    checked = 0
    for _ in range(4):
        case = random_case(rng)
        try:
            composition = mw.compose(case.host, parts_of(case, rng))
        except mw.GrammarError:
            continue
        vocabulary = vocabulary_of(rng, LETTERS + "x", [])
        try:
            store = mw.build_store(composition, vocabulary)
        except mw.DeadEndError:
            continue
        dfa = automaton_of(case)
        # found of host and first bytes of parts alone; a part that may be empty counts as any byte
        may_begin = frozenset(byte for byte in range(MARK) if dfa.next_state[0, byte] >= 0)
        assert store.begins == (frozenset(range(MARK)) if dfa.is_accepting[0] else may_begin) or any(
            len(each) == MARK for each in store.first
        )
        assert may_begin <= store.begins
        matcher = store.matcher(8)
        try:
            checked += walk(matcher, store, dfa, rng, case)
        except mw.LimitError:
            continue
    assert checked


def walk(matcher: object, store: object, dfa: object, rng: random.Random, case: Case) -> int:
    tokens = store.vocabulary.tokens
    text = b""
    for step in range(14):
        state = dfa.run(text)
        wanted = {i for i, data in enumerate(tokens) if data and dfa.run(data, state) >= 0}
        if dfa.is_accepting[state]:
            wanted.add(0)
        found = mask_of(matcher)
        shown = (case, text, sorted(tokens[i] for i in found ^ wanted))
        assert found == wanted, shown
        assert matcher.is_accepting() == bool(dfa.is_accepting[state]), shown
        assert all(matcher.is_allowed(i) == (i in wanted) for i in rng.sample(range(len(tokens)), 12)), shown
        going_on = sorted(wanted - {0})
        if not going_on:
            return step + 1
        if rng.random() < 0.2:
            other = matcher.fork()
            other.advance(rng.choice(going_on))
            assert mask_of(matcher) == wanted, shown
        token = rng.choice(going_on)
        matcher.advance(token)
        if rng.random() < 0.3:
            matcher.rollback()
            assert mask_of(matcher) == wanted, shown
            matcher.advance(token)
        text += tokens[token]
    return 14


@pytest.mark.parametrize("seed", share(range(40), 3))
def test_strings_of_json(seed: int) -> None:
    """A pattern inside a JSON string of a schema: all spellings of what it says, and no other text."""
    rng = random.Random(seed)
    letters = [
        "a", "b", '"', "\\", "n", "u", "0", "1", "6", "d", "8", "3", "c", "é", "\n", "/", ":", "{", "}", "k", " ",
    ]  # fmt: skip
    pieces = [
        "\\u", "\\n", '\\"', "\\u00", "\\u006", "\\ud83d", "\\ude00", '":', '"}', '{"k":', '"a', "\\\\", '\\u0061"',
        'b"}',
    ]  # fmt: skip
    for _ in range(3):
        pattern = random_pattern(rng) + rng.choice(["", "\n", "é?", '"', "(?:\\U0001f600|n)*", "[^c]?"])
        dfa = automaton_of(Case("", {}, pattern))
        host = {
            "type": "object",
            "properties": {"k": {"type": "string"}},
            "required": ["k"],
            "additionalProperties": False,
        }
        composition = mw.compose(mw.load_schema(host, whitespace="compact"), {"/properties/k": mw.load_regex(pattern)})
        texts = (
            {"".join(rng.choices(letters + pieces, k=rng.randrange(1, 4))) for _ in range(60)}
            | set(letters)
            | set(pieces)
        )
        tokens = [b"</s>", *sorted(text.encode() for text in texts)]
        store = mw.build_store(composition, mw.Vocabulary.from_tokens(tokens, eos=[0]))

        def inside_and_behind(text: str) -> tuple[str, str]:
            """The string of the member with its quote, and what stands behind it."""
            inside, at = text[len(HEAD) :], 0
            while at < len(inside) and inside[at] != '"':
                at += 2 if inside[at] == "\\" else 1
            return inside[: at + 1], inside[at + 1 :]

        def lives(text: str, dfa: Dfa = dfa) -> bool:
            if len(text) <= len(HEAD) or not text.startswith(HEAD):
                return HEAD.startswith(text)
            inside, behind = inside_and_behind(text)
            return json_prefix_lives(dfa, inside) and behind in ("", "}")

        for _ in range(3):
            matcher, text = store.matcher(), '{"k"'  # the key may be spelled with escapes as well
            matcher.advance_bytes(text.encode())
            for _ in range(8):
                wanted = {i for i, data in enumerate(tokens) if i and lives(text + data.decode())}
                if text.startswith(HEAD) and inside_and_behind(text)[1] == "}":
                    wanted.add(0)
                found = mask_of(matcher)
                assert found == wanted, (pattern, text, sorted(tokens[i] for i in found ^ wanted))
                going_on = sorted(wanted - {0})
                if not going_on:
                    break
                token = rng.choice(going_on)
                matcher.advance(token)
                text += tokens[token].decode()
