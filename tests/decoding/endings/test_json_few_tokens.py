"""Endings of JSON texts under vocabularies that lack bytes: beside a search over all texts of tokens."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pytest
from json_endings import JsonEndings
from mixed_schemas import schema
from naive_json_texts import is_legal
from shares import parts, share

import maskwright as mw
from maskwright.analysis.errors import DeadEndError, LimitError, SchemaError
from maskwright.analysis.schema import keys
from maskwright.decoding.reference.json_places import Readings
from maskwright.decoding.reference.json_texts import JsonInterpreter

POOL = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"a", b"b", b"1", b"null", b'":1', b'{"', b'","', b'":', b'"}', b"ab"),
    *(b',"', b'"]', b'["', b"aa", b'ba"', b"\xc3", b"\xa9", b"\xc3\xa9", b"\\u0061", b"\\u00", b"61", b"e9", b'1,"'),
    *(b"null}", b'":"a"', b"[]", b'""', b" ", b"\n", b"\n  ", b'": ', b', "', b"\n}", b"  ", b"\n]", b",\n"),
)  # fmt: skip
STYLES: tuple[Any, ...] = ("any", "any", "natural", "json.dumps", "indent2")
NEEDED = {b"{", b'"', b"}", b'":', b"1"}


def can_end(interpreter: JsonInterpreter, readings: Readings, tokens: list[bytes], most: int) -> bool | None:
    """Whether some tokens complete a text; None if so many tokens do not tell."""
    seen, todo = {readings}, deque([readings])
    while todo:
        here = todo.popleft()
        if interpreter.is_complete(here):
            return True
        for token in tokens:
            most -= 1
            after = interpreter.read_bytes(here, token)
            if after and after not in seen:
                seen.add(after)
                todo.append(after)
        if most < 0:
            return None
    return False


def check(seed: int) -> int:
    """Follow a random text of some tokens. Returns how many beginnings it took that no tokens complete."""
    rng = Random(f"few tokens {seed}")
    keys.MOST_NAMED = rng.choice((0, 1, 2, 255))
    try:
        texts = mw.load_schema(
            schema(rng, rng.choice((0, 1))), style=rng.choice(STYLES), escapes=rng.choice(("any", "natural", "minimal"))
        ).texts
    except (SchemaError, LimitError):
        return 0
    tokens = sorted({*rng.sample(POOL, rng.randint(8, len(POOL) - 2)), *(NEEDED if rng.random() < 0.7 else ())})
    vocabulary = mw.Vocabulary.from_tokens([b"", *tokens], eos=[0], name="few")
    endings = JsonEndings(texts, vocabulary)
    interpreter = endings.interpreter
    readings, said, n_dead = interpreter.start(), b"", 0
    for _ in range(8):
        expected = can_end(interpreter, readings, tokens, 2000)
        try:
            ending = (endings.short if rng.random() < 0.5 else endings.shortest)(readings)
            assert b"".join(vocabulary.tokens[token] for token in ending.tokens) == ending.data
            assert is_legal(texts, said + ending.data) and expected is not False, (said, ending, tokens)
        except DeadEndError:
            assert expected is not True, (said, tokens)
            n_dead += expected is False
        following = [token for token in tokens if interpreter.read_bytes(readings, token)]
        if not following:
            break
        said += rng.choice(following)
        readings = interpreter.read_bytes(interpreter.start(), said)
    return n_dead


@pytest.mark.parametrize("seeds", share(parts(2_000, 20), 1))
def test_endings_exist_where_some_tokens_come_to_one(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "MOST_NAMED", keys.MOST_NAMED)  # restored behind the test
    n_dead = 0
    for seed in seeds:
        try:
            n_dead += check(seed)
        except LimitError:  # a search was given up, or items are compared
            continue
    assert n_dead > 0
