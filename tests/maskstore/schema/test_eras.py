"""Content ids: small numbers for as long as a process runs, and never one for two things."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.kept import SHARED
from maskwright.analysis.schema.shapes import StringLiterals
from maskwright.decoding.matcher import Matcher
from maskwright.decoding.schema import workspace
from maskwright.decoding.schema.text import SchemaText
from maskwright.maskstore.schema import eras, layout
from maskwright.maskstore.schema.eras import Era, current_era
from maskwright.stores.schema_store import SchemaStore


@pytest.fixture
def vocabulary(monkeypatch: pytest.MonkeyPatch) -> mw.Vocabulary:
    """One that nothing is kept for, and an era of its own for the test."""
    monkeypatch.setattr(eras, "_now", [Era(current_era().number + 1)])
    return mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])


def numbered(number: int) -> dict[str, Any]:
    """A schema whose objects, arrays, strings and numbers are those of no other one."""
    inside = {"type": "array", "items": {"enum": [f"v{number}", f"w{number}"]}, "maxItems": 3}
    members = {f"k{number}": inside, "n": {"type": "integer", "minimum": number}}
    return {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}


def check(store: SchemaStore, number: int) -> None:
    """All bytes of a text are legal, and each mask is that of a matcher of its own."""
    text = f'{{"k{number}":["v{number}","w{number}"],"n":{number}}}'.encode()
    shared = store.matcher()
    own = Matcher.of(SchemaText(store, 0, workspace.make_workspace(shared.text._workspace.voc)))
    words = [np.zeros(store.n_words, np.uint32) for _ in range(2)]
    for byte in text:
        for matcher, row in zip((shared, own), words, strict=True):
            matcher.fill(row)
            matcher.advance(byte + 1)
        assert np.array_equal(*words)
        assert words[0][byte + 1 >> 5] >> (byte + 1 & 31) & 1
    assert shared.is_accepting()


def test_another_era_begins_before_the_ids_are_used_up(
    monkeypatch: pytest.MonkeyPatch, vocabulary: mw.Vocabulary
) -> None:
    monkeypatch.setattr(eras, "MOST_IDS", 40)
    stores = []
    for number in range(30):
        store = mw.build_store(numbered(number), vocabulary)
        assert isinstance(store, SchemaStore)
        stores.append(store)
        assert 0 < store.table[layout.SPACING_ID] < 100
        assert 0 < store.table[store.table[layout.ROOT] + layout.NODE_ID] < 100
        for back in (0, 1, 7):  # tables of this era and of earlier ones, in turn
            if number >= back:
                check(stores[number - back], number - back)
    assert len({store.era for store in stores}) > 5
    assert 0 < len(workspace.workspaces_of(vocabulary)) < 6


def test_ids_just_below_the_limit_of_int32(monkeypatch: pytest.MonkeyPatch, vocabulary: mw.Vocabulary) -> None:
    era = current_era()
    monkeypatch.setattr(era.ids, "_next", itertools.count(eras.MOST_IDS - 20))
    for number in range(20):
        check(mw.build_store(numbered(number), vocabulary), number)
    assert current_era().number == era.number + 1
    monkeypatch.setattr(current_era().spacings, "last", eras.MOST_SPACINGS + 1)
    assert current_era().number == era.number + 2


def test_threads_build_while_eras_begin(monkeypatch: pytest.MonkeyPatch, vocabulary: mw.Vocabulary) -> None:
    monkeypatch.setattr(eras, "MOST_IDS", 60)

    def work(thread: int) -> None:
        for number in range(100 * thread, 100 * thread + 20):
            check(mw.build_store(numbered(number), vocabulary), number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_texts_are_counted_and_not_held_by_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SHARED, "most", 100_000)
    era = Era(0)
    for number in range(50):
        era.leaf_of(StringLiterals((b"a" * 10_000, b"%d" % number)))
        assert 0 < len(era.leaves) < 11
    assert all(len(repr(key)) < 300 for key in era.ids._numbers)


def test_ids_are_equal_for_equal_content_only() -> None:
    era = Era(0)
    texts = [(b"ab", b"c"), (b"a", b"bc"), (b"abc",), (b"ab", b"c")]
    found = [era.leaf_of(StringLiterals(some)).row[layout.SHAPE_ID] for some in texts]
    assert found[0] == found[3] and len({*found}) == 3
    rows = [[*range(20)], [*range(19), 5], [*range(19)], [1], [1, 0], [*range(20)]]
    numbers = [era.ids.of_numbers("rows", row) for row in rows]
    assert numbers[0] == numbers[5] and len({*numbers}) == 5
