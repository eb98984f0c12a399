"""The cuts of tokens, from the definition; and that a vocabulary keeps them, and nobody else."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.marks import MARK, MOST_PARTS, mark
from maskwright.analysis.schema.spacing import spacing_of
from maskwright.maskstore.composition.splits import LONG, Split, Splits, marked_vocabulary, splits_of


def random_vocabulary(rng: random.Random) -> mw.Vocabulary:
    """Tokens with many common beginnings: some twice, some with bytes of marks, some long."""
    letters = [b"a", b"b", b"\xc3", b"\x00", bytes((MARK - 1,))]
    tokens = [b"".join(rng.choices(letters, k=rng.choice([1, 2, 3, 4, 6]))) for _ in range(rng.randrange(1, 40))]
    tokens += [rng.choice(tokens) for _ in range(5)]
    tokens += [bytes((MARK,)), b"a\xff", b"\xf8@@", b"b" + mark(1) + b"a"][: rng.randrange(5)]
    tokens += [rng.choice(letters) * rng.choice([LONG - 1, LONG, LONG + 1, 3 * LONG]) for _ in range(rng.randrange(4))]
    rng.shuffle(tokens)
    return mw.Vocabulary.from_tokens([b"</s>", *tokens, b""], eos=[0])


def naive_cuts(vocabulary: mw.Vocabulary) -> list[Split]:
    """All cuts of tokens that are not long, by what stands before them."""
    texts = [(data, number) for number, data in enumerate(vocabulary.tokens) if data and max(data) < MARK]
    texts = [one for one in texts if len(one[0]) <= LONG]
    first: dict[bytes, int] = {}
    behind: dict[bytes, list[tuple[bytes, int]]] = {}
    for data, number in texts:
        first.setdefault(data, number)
        for at in range(1, len(data)):
            behind.setdefault(data[:at], []).append((data[at:], number))
    return [Split(before, first.get(before, -1), tuple(sorted(tails))) for before, tails in sorted(behind.items())]


@pytest.mark.parametrize("seed", range(60))
def test_cuts(seed: int) -> None:
    vocabulary = random_vocabulary(random.Random(seed))
    splits, wanted, tokens = Splits(vocabulary), naive_cuts(vocabulary), vocabulary.tokens
    assert [splits.cut(number) for number in range(splits.n_cuts)] == wanted
    assert splits.beginnings() == [cut.before for cut in wanted]
    assert splits.marked == {number for number, data in enumerate(tokens) if data and max(data) >= MARK}
    legal = sorted((data, number) for number, data in enumerate(tokens) if data and number not in splits.marked)
    assert list(splits.long) == [(data, number) for data, number in legal if len(data) > LONG]
    for byte in (*b"abc\xc3\x00", MARK - 1):
        before = [
            Split(cut.before, cut.token, tuple(one for one in cut.behind if one[0][0] == byte))
            for cut in wanted
            if any(one[0][0] == byte for one in cut.behind)
        ]
        assert list(splits.before_byte(byte)) == before == list(splits.before_byte(byte))
        assert splits.starting_with(byte) == tuple(sorted(number for data, number in legal if data[0] == byte))


@pytest.mark.parametrize("seed", range(20))
def test_marked_vocabularies(seed: int) -> None:
    vocabulary = random_vocabulary(random.Random(seed))
    marked, cuts = marked_vocabulary(vocabulary), naive_cuts(vocabulary)
    own = tuple(b"" if data and max(data) >= MARK else data for data in vocabulary.tokens)
    assert marked.tokens[: vocabulary.size] == own and marked.eos == vocabulary.eos
    assert marked.tokens[vocabulary.size :] == (
        *(cut.before + bytes((MARK,)) for cut in cuts),
        *map(mark, range(MOST_PARTS)),
    )


def test_no_text() -> None:
    splits = Splits(mw.Vocabulary("<none>", (b"", b""), {0: "</s>"}, (0,)))
    assert (splits.n_cuts, splits.beginnings(), splits.long) == (0, [], ())
    assert splits.before_byte(97) == splits.starting_with(97) == () and splits.id_of(b"a") == -1


def test_a_vocabulary_keeps_its_own() -> None:
    first = mw.Vocabulary.from_tokens([b"</s>", b"ab", b"a"], eos=[0], name="first")
    size = len(pickle.dumps(first))
    splits, marked = splits_of(first), marked_vocabulary(first)
    assert splits_of(first) is splits and marked_vocabulary(first) is marked
    assert len(pickle.dumps(first)) == size
    for other in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):
        assert other == first and splits_of(other) is not splits
        assert marked_vocabulary(other) == marked
    second = mw.Vocabulary.from_tokens([b"</s>", b"ab", b"a"], eos=[0], name="second")
    assert (marked.name, marked_vocabulary(second).name) == ("first with marks", "second with marks")
    gone = weakref.ref(splits), weakref.ref(marked)
    del first, splits, marked
    gc.collect()
    assert [each() for each in gone] == [None, None]


def test_stores_of_many_tags_hold_little() -> None:
    """What the vocabulary decides is not in a store."""
    tokens = [bytes((a, b)) for a in range(128) for b in range(128)]
    vocabulary = mw.Vocabulary.from_tokens([b"</s>", *tokens, *(bytes((a,)) for a in range(128))], eos=[0])
    tool = {"type": "function", "name": "now"}
    store = mw.build_store(mw.read_tools([tool], begin="<{name}>", end="</{name}>"), vocabulary)
    assert store.host.vocabulary is vocabulary and store.host.n_bytes < 20_000
    shared = len(pickle.dumps(vocabulary)) + len(pickle.dumps(spacing_of("natural")))
    assert len(pickle.dumps(store)) - shared < 60_000
    again = pickle.loads(pickle.dumps(store))
    masks = np.zeros((2, store.n_words), np.uint32)
    for text in (b"", b"x <", b"<now>", b"<now>{", b"<now>{}<", b"<now>{}</now>"):
        for one, words in zip((store, again), masks, strict=True):
            matcher = one.matcher()
            matcher.advance_bytes(text)
            matcher.fill(words)
        assert (masks[0] == masks[1]).all() and masks[0].any()
