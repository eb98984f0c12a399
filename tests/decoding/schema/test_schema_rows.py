"""Rows of automata beside the plain interpreter: vocabularies with many tokens of each group of characters."""

from __future__ import annotations

import random

import numpy as np
import pytest
from mask_bits import ids
from shares import share

import maskwright as mw
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.decoding.schema import constants
from maskwright.decoding.schema._union_kernels import TIMES
from maskwright.decoding.schema.text import SchemaText
from maskwright.decoding.schema.workspace import make_workspace, shared_workspace
from maskwright.maskstore.schema import layout
from maskwright.maskstore.schema.vocabulary_tables import groups_of_bytes, vocabulary_tables
from maskwright.stores.schema_store import build_schema_store

PATTERNS = (
    *("^.*$", "^.+$", r"^\S*$", r"\s", "^[^.]*$", "ab", "^x-", "^(x-|[A-Z])", "^[a-z]+(\\.[a-z]+)*$", "^[a-z0-9_]*$"),
    *("^[^é]*$", "^[\u4e00-\u9fff]+$", "^[a\u2028-\u3000]*$", "^[^\u2028]+$", "^[^a-f]*$", "^.{2,}$", "^(aé|…b)*$"),
    *("^[^\x7f]*$", "^[~*]+a", "^[\U0001f600-\U0001f64f]*$", "^[\u00a0-\u00bfa-c]*$", r"^\d+|[^0-9]+$", "é$", "^..?$"),
)
CHARACTERS = "abcdefgxyzABZ0129 -_./:,@#+=()!?&;%$'*~[]{}|<>^`\x7f\u00a0é\u0700\u2028…\u3000一二\ufeff😀😁\\"


def vocabulary_of(rng: random.Random, n: int) -> mw.Vocabulary:
    """All bytes, and some random texts, of which some end or begin within a character."""
    tokens = [bytes([byte]) for byte in range(256)]
    while len(tokens) < n:
        some = rng.sample(CHARACTERS, rng.choice((1, 2, 5, len(CHARACTERS))))
        text = "".join(rng.choice(some) for _ in range(rng.choice((1, 2, 2, 3, 4)))).encode()
        if rng.random() < 0.2:
            text = text[rng.choice((0, 0, 1)) : len(text) - rng.choice((0, 1, 2))]
        if rng.random() < 0.1:
            text += rng.choice((b'"', b'":', b'"}'))
        tokens.append(text)
    tokens = list(dict.fromkeys(text for text in tokens if text))
    return mw.Vocabulary(f"random {n}", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))


def random_schema(rng: random.Random) -> dict[str, object]:
    strings: dict[str, object] = {"type": "string", "pattern": rng.choice(PATTERNS)}
    if rng.random() < 0.3:
        strings["minLength"] = rng.choice((1, 2, 5))
    if rng.random() < 0.3:
        strings["maxLength"] = rng.choice((5, 6, 40))
    if rng.random() < 0.5:
        return strings
    patterns = {rng.choice(PATTERNS): {"type": "string"} for _ in range(rng.choice((1, 1, 2)))}
    named = {name: {"type": "null"} for name in rng.sample(["ab", "abc", "x-a", "é", "1", "z"], rng.choice((0, 1, 3)))}
    closed = {} if rng.random() < 0.5 else {"additionalProperties": False}
    return {"type": "object", "patternProperties": patterns, "properties": named, **closed}


@pytest.mark.parametrize("seeds", share([range(2), range(2, 10), *(range(k, k + 10) for k in range(10, 60, 10))], 1))
def test_masks_within_strings_are_those_of_the_interpreter(seeds: range) -> None:
    n_masks = 0
    for seed in seeds:
        rng = random.Random(f"rows {seed}")
        vocabulary = vocabulary_of(rng, rng.choice((400, 1500)))
        for _ in range(6):
            try:
                schema = mw.load_schema(random_schema(rng))
            except mw.SchemaError:
                continue
            n_masks += follow(build_schema_store(schema, vocabulary), rng)
    assert n_masks > 10 * len(seeds)


def follow(store: mw.SchemaStore, rng: random.Random) -> int:
    """Compare masks along a random text. Returns how many."""
    interpreter = JsonInterpreter(store.texts)
    matcher, readings = store.matcher(), interpreter.start()
    tokens, n_masks = store.vocabulary.tokens, 0
    words = np.zeros(store.n_words, np.uint32)
    for data in (b'"', b'{"'):
        if matcher.try_bytes(data):
            for byte in data:
                readings = interpreter.read(readings, byte)
            break
    for _ in range(4):
        matcher.fill(words)
        found = ids(words)
        known = {b"": readings}

        def read(data: bytes, known: dict[bytes, object] = known) -> object:
            if data not in known:
                before = read(data[:-1])
                known[data] = interpreter.read(before, data[-1]) if before else ()  # type: ignore[arg-type]
            return known[data]

        wanted = {number for number, token in enumerate(tokens) if token and read(token)}
        assert found - set(store.vocabulary.eos) == wanted, (
            store.constraint.schema,
            matcher.said(),
            [tokens[number] for number in sorted(found ^ wanted)][:8],
        )
        n_masks += 1
        token = rng.choice(sorted(wanted)) if wanted else -1
        if token < 0:
            break
        matcher.advance(token)
        readings = read(tokens[token])  # type: ignore[assignment]
    return n_masks


def test_rows_of_groups_say_where_a_byte_of_the_group_stands() -> None:
    vocabulary = vocabulary_of(random.Random(3), 700)
    voc, group_of = vocabulary_tables(vocabulary), groups_of_bytes()
    for group in range(32):
        at = voc[layout.GROUP_ROWS] + group * layout.GROUP_SIZE
        sets = []
        for row in voc[at : at + 2].tolist():
            bits = voc[row : row + voc[layout.N_ROW_WORDS]] if row else np.zeros(voc[layout.N_ROW_WORDS], np.int32)
            sets.append(ids(bits))
        tokens = list(enumerate(vocabulary.tokens))
        assert sets[0] == {number for number, token in tokens if token and group_of[token[0]] == group}
        assert sets[1] == {number for number, token in tokens if any(group_of[byte] == group for byte in token[1:])}
        assert voc[at + layout.GROUP_COUNT] == len(sets[0])


def test_masks_that_come_together_again_and_again_become_one_row() -> None:
    vocabulary = vocabulary_of(random.Random(5), 500)
    branches = [{"type": "string", "pattern": pattern} for pattern in ("^a", "b", "^[^c]*$", "é$")]
    store = build_schema_store(mw.load_schema({"anyOf": branches}), vocabulary)
    workspace = make_workspace(shared_workspace(vocabulary).voc)
    words = np.zeros((TIMES + 3, store.n_words), np.uint32)
    tops = []
    for row in words:
        matcher = Matcher.of(SchemaText(store, 0, workspace))
        matcher.advance_bytes(b'"a')
        matcher.fill(row)
        tops.append(int(workspace.work[constants.DATA_TOP]))
    assert (words == words[0]).all() and words[0].any()
    assert tops[1] == tops[TIMES - 2] < tops[TIMES - 1] == tops[-1]
