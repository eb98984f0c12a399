"""What cursors know of their languages changes no mask: each fast path against its naive twin."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest
from mask_bits import ids
from naive_composition import LETTERS, random_case
from shares import share

import maskwright as mw
from maskwright.decoding.composition.cursors import Cursor, GrammarCursor, JsonCursor, PatternCursor
from maskwright.decoding.composition.exits import Exits
from maskwright.decoding.composition.masks import Shared
from maskwright.decoding.composition.text import ComposedText
from maskwright.decoding.engine import constants
from maskwright.maskstore.composition.json_places import START, Place, closes, place_after
from tests.decoding.composition.test_random import parts_of, vocabulary_of

JSON_LETTERS = '"\\/bnu0123[]{},: ae<>'
PIECES = [
    '{"', '":', '",', '"}', "}}", "]}", '"a', '\\"', "\\u00", '\\"b"', '"]', "}<", '"<', "] <", "}\n", "</", " <",
    "1<", "e<", '"e',
]  # fmt: skip


def naive_fill(cursor: Cursor, words: np.ndarray, exits: Exits) -> None:
    """The mask of a part by the methods that all languages have."""
    Cursor.fill_part(cursor, words, exits)


def check_readings(matcher: Any, store: mw.ComposedStore, kinds: set[type]) -> None:
    """Compare the mask of each reading of a text that is in a part, and whether it may end there."""
    for reading in matcher.text._close():
        if reading.back is None:
            continue
        kinds.add(type(getattr(reading.cursor, "_inner", reading.cursor)))
        fast, naive = np.zeros((2, store.n_words), np.int32)
        exits = reading.back.exits(reading.part)
        told = reading.cursor.fill_part(fast, exits)
        naive_fill(reading.cursor, naive, exits)
        assert (fast == naive).all(), (matcher.said(), reading.cursor)
        assert told == (reading.cursor.can_end() and exits.behind is None, bool(naive.any())), matcher.said()


def check_kept(matcher: Any, store: mw.ComposedStore, words: np.ndarray) -> None:
    """Write the mask, and compare it with the tokens that a text which shares nothing takes, each for itself."""
    try:
        matcher.fill(words)
    except mw.DeadEndError:
        words[:] = 0
    naive = ComposedText(store, 0, Shared(store, 0))
    naive.reset()
    naive.load((matcher.text.said, 0))
    taken = {token for token in range(store.vocabulary.size) if naive.read_token(token, False) == constants.OK}
    assert ids(words) == taken, matcher.said()


def walk(store: mw.ComposedStore, rng: random.Random, steps: int, kinds: set[type]) -> None:
    """Go on with random tokens, three times from the start, since a text may be known the next time."""
    again = rng.getrandbits(32)
    words = np.full(store.n_words + rng.randrange(2), 0xFFFFFFFF, np.uint32)
    for _ in range(3):
        matcher, choices = store.matcher(), random.Random(again)
        for _ in range(steps):
            check_readings(matcher, store, kinds)
            check_kept(matcher, store, words)
            allowed = sorted(ids(words))
            for token in rng.sample(range(store.vocabulary.size), 4):
                assert matcher.is_allowed(token) == bool(words[token >> 5] >> np.uint32(token & 31) & 1)
            if rng.random() < 0.8:
                allowed = [token for token in allowed if token not in store.vocabulary.eos]
            if not allowed or (matcher.remembered() and rng.random() < 0.1):
                matcher.rollback(rng.randint(min(1, matcher.remembered()), matcher.remembered()))
                continue
            if rng.random() < 0.1:
                matcher = matcher.fork()
            by = choices if rng.random() < 0.9 else rng
            token = by.choice(allowed)
            if rng.random() < 0.8:
                matcher.advance(token)
            else:
                with contextlib.suppress(mw.DeadEndError):
                    matcher.step(token, words)


@pytest.mark.parametrize("seed", share(range(30), 3))
def test_regular_parts(seed: int) -> None:
    rng = random.Random(seed)
    kinds: set[type] = set()
    for _ in range(4):
        case = random_case(rng)
        try:
            store = mw.build_store(mw.compose(case.host, parts_of(case, rng)), vocabulary_of(rng, LETTERS + "x", []))
            walk(store, rng, 10, kinds)
        except (mw.GrammarError, mw.DeadEndError, mw.LimitError):
            continue
    assert kinds <= {GrammarCursor, PatternCursor} and kinds


GRAMMAR = 'start: item*\nitem: WORD | "[" item* "]" | TEXT\nWORD: /[a-e]+/\nTEXT: /"([^"\\\\\\n]|\\\\.)*"/\n%ignore / +/\n%ignore /\\n/'


@pytest.mark.parametrize("seed", share(range(20), 2))
def test_json_grammars_and_strings(seed: int) -> None:
    rng = random.Random(seed)
    texts = {"".join(rng.choices([*JSON_LETTERS, *PIECES], k=rng.randrange(1, 4))) for _ in range(80)}
    tokens = sorted({text.encode() for text in (*texts, *JSON_LETTERS, *PIECES)})
    vocabulary = mw.Vocabulary.from_tokens([b"</s>", *tokens], eos=[0])
    host = 'start: (A "<" | "<" B ">" | C)+\n%declare A B C'
    parts = {"A": {"type": ["object", "array"]}, "B": GRAMMAR, "C": mw.in_json_string(GRAMMAR)}
    kinds: set[type] = set()
    for _ in range(3):
        walk(mw.build_store(mw.compose(host, parts), vocabulary), rng, 12, kinds)
    tool = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    walk(mw.build_store(mw.compose(tool, {"/properties/a": GRAMMAR}), vocabulary), rng, 14, kinds)
    assert GrammarCursor in kinds and kinds <= {GrammarCursor, JsonCursor}


@pytest.mark.parametrize("seed", share(range(16), 2))
def test_free_texts_that_follow_each_other(seed: int) -> None:
    """Parts that alone take nearly all tokens: the others are read one by one."""
    rng = random.Random(seed)
    pieces = ["a", "b", "<", "ab", "b<", "<a", "é", "aé<", "1", "} ", '{"', "x" * 40, "ab" * 20]
    tokens = [*map(str.encode, pieces), *(bytes((byte,)) for byte in range(256)), b"\xa9a", b"b\xc3"]
    vocabulary = mw.Vocabulary.from_tokens([b"</s>", *dict.fromkeys(tokens)], eos=[0])
    tag = {
        "type": "tag",
        "begin": "<a",
        "content": {"type": "json_schema", "json_schema": {"type": "object"}},
        "end": ">",
    }
    forms: list[dict[str, object]] = [
        {"type": "any_text"},
        {"type": "any_text", "excludes": ["ab", "<<"]},
        {"type": "any_text", "max_chars": 3},
        {"type": "any_text", "max_tokens": 2},
        {"type": "const_string", "value": "ab<"},
        {"type": "json_schema", "json_schema": {"type": "object"}},
        {"type": "triggered_tags", "triggers": ["<"], "tags": [tag]},
        {"type": "token", "token": 5},
    ]
    for _ in range(3):
        form = {"type": "sequence", "elements": rng.choices(forms, k=rng.randint(2, 4))}
        walk(
            mw.build_store(mw.read_structural_tag({"type": "structural_tag", "format": form}), vocabulary),
            rng,
            10,
            set(),
        )


@pytest.mark.parametrize("seed", range(4))
def test_places(seed: int) -> None:
    """Places piece by piece are those of the whole text, found byte by byte."""
    rng = random.Random(seed)
    for _ in range(200):
        data = "".join(rng.choices(JSON_LETTERS, k=rng.randrange(12))).encode()
        depth, inside, states = 0, 0, [(0, 0)]
        for byte in data:
            if inside:
                inside = 1 if inside == 2 else {0x22: 0, 0x5C: 2}.get(byte, 1)
            elif byte == 0x22:
                inside = 1
            else:
                depth += (byte in b"[{") - (byte in b"]}")
            states.append((inside, depth))
        cut = rng.randrange(len(data) + 1)
        assert place_after(data[cut:], place_after(data[:cut], START)) == place_after(data, START) == (inside, depth)
        place, behind = Place(*states[cut]), [state for state, byte in zip(states[cut + 1 :], data[cut:], strict=True)]
        blank = len(data[cut:]) - len(data[cut:].rstrip(b" "))
        # once all is closed that was open there is only white space
        early = [] if place == START else behind[: len(behind) - blank - 1]
        wanted = states[-1] == START and START not in early and all(depth >= 0 for _, depth in behind)
        assert place.depth < 0 or closes(data[cut:], place) == wanted, (data, cut)


def test_equal_parts_at_different_starts_are_one_reading() -> None:
    """The cuts of a text that no host tells apart are not followed twice, in any language."""
    vocabulary = mw.Vocabulary.from_tokens([b"</s>", *(bytes((byte,)) for byte in range(0x20, 0x7F))], eos=[0])
    for part in (mw.load_regex("[ab]+"), "start: T\nT: /[ab]+/"):
        matcher = mw.build_store(mw.compose("start: A* B\nB: /[ab]*c/\n%declare A", {"A": part}), vocabulary).matcher()
        for _ in range(600):
            matcher.advance_bytes(b"a")
        assert len(matcher.text._readings) < 8
    tools = {f"T{i}": {"type": "object", "properties": {f"k{i}": {}}} for i in range(5)}
    host = f"start: ({' | '.join(tools)})+\n%ignore / +/\n%declare {' '.join(tools)}"
    matcher = mw.build_store(mw.compose(host, tools), vocabulary).matcher()
    for _ in range(200):
        matcher.advance_bytes(b" ")
    assert len(matcher.text._readings) == 6
    matcher.advance_bytes(b'{"k3": 1')
    assert matcher.short_ending().data == b"}"


def test_what_is_kept_is_shared_by_texts() -> None:
    store = mw.build_store(mw.compose('start: "<" A ">"\n%declare A', {"A": mw.load_regex("a+")}), "python-tiny")
    one, other = store.matcher(4).text, store.matcher(4).text
    assert one._shared is other._shared and one._know() is other._know()
