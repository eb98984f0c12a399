"""Endings of whole strings and objects at once are those that are found byte by byte."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest
from json_endings import JsonEndings
from naive_json_texts import STYLES
from random_graphs import STRINGS, automaton, random_graph
from random_texts import ESCAPES, random_text
from shares import share

import maskwright as mw
from maskwright.analysis.schema.preferred import Preferred
from maskwright.analysis.schema.shapes import Texts
from maskwright.analysis.schema.spacing import CLOSES, EITHER, GOES_ON, SPACES, Spacing, spacing_of
from maskwright.decoding.reference.json_characters import Characters
from maskwright.decoding.reference.json_scalar_costs import NEVER, CharacterCosts, text_cost
from maskwright.decoding.schema.ending_states import JsonStates

BYTES = mw.Vocabulary.from_tokens([b"", *(bytes([i]) for i in range(256))], eos=[0])
KEYS = ("a", "ab", "b", "B", "~", "", 'q"', "é", "long_name")


def random_schema(rng: Random, level: int = 0) -> dict[str, Any]:
    kind = rng.random()
    if (level < 3 and kind < 0.55 - 0.1 * level) or level == 0:
        keys = rng.sample(KEYS, rng.randint(1, 4))
        schema = {"type": "object", "properties": {key: random_schema(rng, level + 1) for key in keys}}
        schema["required"] = rng.sample(keys, rng.randint(0, len(keys)))
        schema |= {"additionalProperties": False} if rng.random() < 0.4 else {}
        schema |= (
            {"minProperties": rng.randint(1, 3)} if "additionalProperties" not in schema and rng.random() < 0.3 else {}
        )
        schema |= {"default": {keys[0]: 7}} if rng.random() < 0.2 else {}
        return schema
    if kind < 0.65:
        if rng.random() < 0.3:
            return {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}
        return {"type": "array", "items": random_schema(rng, level + 1), "minItems": rng.randint(0, 2)}
    if kind < 0.75:
        return {"anyOf": [random_schema(rng, level + 1), random_schema(rng, level + 1)]}
    return rng.choice(
        [
            {"type": "integer"},
            {"type": "integer", "default": rng.randint(0, 12), "minimum": rng.choice([0, 10])},
            {"type": "string", "minLength": rng.randint(0, 9)},
            {"type": "string", "maxLength": 1, "pattern": '[é"]|😀$'},
            {"type": "string", "pattern": "^[b-d]{2,}x?$", "default": rng.choice(["cb", "bbx"])},
            {"type": "string", "format": rng.choice(["uri", "date", "uuid"])},
            {"enum": rng.sample(["a", "b", 1, None, True, "cc"], 3)},
        ]
    )


@pytest.mark.parametrize("seed", share(range(60), 6))
def test_plans_are_what_is_found_byte_by_byte(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    schema = random_schema(rng)
    order: Any = rng.choice(["any", "schema"])
    style: Any = rng.choice(["natural", "any", "json.dumps", "indent2"])
    loaded = mw.load_schema(schema, key_order=order, style=style)
    begun = JsonEndings(loaded.texts, None, Preferred(schema, {}))
    whole = [begun.shortest(begun.interpreter.start()).data]
    whole += [random_text(loaded.texts, rng, 3) for _ in range(2)]
    prefixes = {text[: rng.randint(0, len(text))] for text in whole for _ in range(5)} | {b""}
    found = [begun.shortest(begun.readings(prefix)) for prefix in sorted(prefixes)]
    monkeypatch.setattr(JsonStates, "_planned", lambda *_: [])
    slow = JsonEndings(loaded.texts, None, Preferred(schema, {}))
    for prefix, one in zip(sorted(prefixes), found, strict=True):
        other = slow.shortest(slow.readings(prefix))
        assert (one.data, one.is_shortest) == (other.data, other.is_shortest), (schema, prefix)


@pytest.mark.parametrize("seed", share(range(40), 6))
def test_plans_of_random_graphs_are_as_short(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    texts = Texts(random_graph(rng), spacing_of(rng.choice(STYLES)), ESCAPES[seed % 3])
    prefixes = [text[: rng.randint(0, len(text))] for text in [random_text(texts, rng, 3) for _ in range(8)]]
    fast = JsonEndings(texts)
    found = [fast.shortest(fast.readings(prefix)).data for prefix in prefixes]
    monkeypatch.setattr(JsonStates, "_planned", lambda *_: [])
    slow = JsonEndings(texts)
    assert found == [slow.shortest(slow.readings(prefix)).data for prefix in prefixes]


@pytest.mark.parametrize("begun", [b"", b'{"m7_url":"http://x/y","m8_url":"', b'{"m1'])
def test_hundreds_of_members_take_a_move_each(begun: bytes) -> None:
    names = [f"m{i}_url" for i in range(300)]
    schema = {"type": "object", "properties": {name: {"type": "string", "format": "uri"} for name in names}}
    store = mw.build_store(mw.load_schema({**schema, "required": names}), BYTES)
    store.matcher().shortest_ending()
    matcher = store.matcher()
    matcher.advance_bytes(begun)
    begin = time.thread_time()
    ending = matcher.shortest_ending()
    assert time.thread_time() - begin < 0.5  # byte by byte: two seconds
    assert ending.is_shortest
    mw.build_store(mw.load_schema({**schema, "required": names}), BYTES).matcher().advance_bytes(begun + ending.data)


def strings_of(characters: Characters, alphabet: str, most: int) -> list[tuple[str, int]]:
    """The strings of at most so many characters that do not fail, each with its state."""
    found = layer = [("", 0)]
    for _ in range(most):
        longer = [(text + one, characters.after(at, one.encode())) for text, at in layer for one in alphabet]
        layer = [one for one in longer if one[1] >= 0]
        found = [*found, *layer]
    return found


@pytest.mark.parametrize("pattern", STRINGS)
def test_costs_of_characters(pattern: str) -> None:
    dfa = automaton(pattern)
    alphabet, behind = (
        'ab"\n\x01éà😀',
        [5 * (i % 2) if end else NEVER for i, end in enumerate(dfa.is_accepting.tolist())],
    )
    costs = CharacterCosts(Characters(dfa), behind)
    told = strings_of(costs.characters, alphabet, 4)
    far = [(len(text), text_cost(text.encode()) + behind[at]) for text, at in told if behind[at] < NEVER]
    for least in range(3):
        known = min((cost for n, cost in far if n >= least), default=NEVER)
        assert costs.rest(0, least) == known or (costs.rest(0, least) < known and known == NEVER), least


@pytest.mark.parametrize("pattern", ["a*", "(ab)*", "a|b+", "[ab]{1,2}", "(aa)+|b", "é?a+", "(😀|a){0,3}"])
def test_numbers_of_strings_of_a_cost(pattern: str) -> None:
    dfa = automaton(pattern)
    behind = [2 * (i % 2) if end else NEVER for i, end in enumerate(dfa.is_accepting.tolist())]
    costs = CharacterCosts(Characters(dfa), behind)
    told = strings_of(costs.characters, "abé😀", 5)
    ends = [text_cost(text.encode()) + behind[at] for text, at in told]
    assert [costs.n_of(k) for k in (5, 0, 3, 1, 2, 4)] == [ends.count(k) for k in (5, 0, 3, 1, 2, 4)]


def spaces_by_length(spacing: Spacing, state: int, ends: int, level: int) -> bytes | None:
    """`Spacing.shortest` from its definition: all white space, the shortest first."""
    layer = [(b"", state)]
    for _ in range(70):
        for text, at in layer:
            if spacing.ends(at) & ends:
                return text
        behind = [(text + bytes([b]), spacing.after(at, b, level)) for text, at in layer for b in SPACES]
        layer = [*{at: (text, at) for text, at in reversed(behind) if at >= 0}.values()][::-1]
    return None


@pytest.mark.parametrize("style", [*STYLES, "indent16", r"\n *|\t\t|\r\n"])
def test_shortest_white_space(style: str) -> None:
    spacing = spacing_of(style)
    for state in range(len(spacing.rows)):
        for ends in (GOES_ON, CLOSES, EITHER):
            for level in (1, 3):
                found, known = spacing.shortest(state, ends, level), spaces_by_length(spacing, state, ends, level)
                assert found == known, (state, ends, level)
