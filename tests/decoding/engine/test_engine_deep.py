"""Long and deeply nested texts: the same rows as shallow ones, at the same cost, whatever happens to the memory on the way."""

from __future__ import annotations

import random
import time
from functools import cache

import numpy as np
import pytest
from engine_cases import longest, real_store, vocabulary_of
from grammars import JSON
from mask_bits import ids, row

from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

CHAINS = r"""
start: test
test: or_ | or_ "if" or_ "else" test | "lambda" NAME? ":" test | "not" test
or_: atom | atom "**" or_
atom: NAME | "(" test ")" | "[" "]"
NAME: /[a-z]+/
%ignore " "
"""


@cache
def chains() -> Store:
    words = [
        b"x", b" if", b" else", b"lambda", b":", b"(", b")", b" ", b"**", b"not ", b" if x else", b"lambda x:", b"x**",
        b"))", b"[", b"]",
    ]  # fmt: skip
    return compile_store(longest(CHAINS, "chains"), vocabulary_of(*words))


@cache
def json() -> Store:
    return compile_store(longest(JSON, "json"), vocabulary_of(b"[[", b"]]", b"[[[[", b',"', singles=bytes(range(256))))


def token(store: Store, text: bytes) -> int:
    return store.vocabulary.tokens.index(text)


def test_a_hundred_thousand_brackets() -> None:
    store = json()
    matcher = store.matcher()
    opening, closing = token(store, b"["), token(store, b"]")
    shallow = store.matcher()
    for _ in range(5):
        shallow.advance(opening)
    inside = row(shallow)
    shallow.advance(closing)
    behind = row(shallow)
    depth = 100_000
    for n in range(depth):
        matcher.advance(opening)
        if n % 9973 == 10:
            assert row(matcher) == inside
    for n in range(depth):
        matcher.advance(closing)
        if n % 9973 == 10:
            assert row(matcher) == behind
            assert not matcher.is_accepting()
    assert matcher.is_accepting()
    with pytest.raises(ValueError, match="not legal here"):
        matcher.advance(closing)


def test_a_line_of_a_million_bytes() -> None:
    store = json()
    whole, pieces = store.matcher(), store.matcher()
    text = b'["' + b"a" * 400_000 + b'"' + b",1" * 300_000
    whole.advance_bytes(text)
    for begin in range(0, len(text), 65_537):
        pieces.advance_bytes(text[begin : begin + 65_537])
    small = store.matcher()
    small.advance_bytes(b'["a",1,1')
    assert row(whole) == row(pieces) == row(small)
    whole.advance_bytes(b"]")
    assert whole.is_accepting()
    assert whole.n_bytes < 200_000_000


def test_memory_does_not_grow_with_the_length_of_a_flat_text() -> None:
    store = json()
    matcher = store.matcher(max_rollback=8)
    matcher.advance_bytes(b"[1")
    for n in range(60_000):
        matcher.advance(token(store, b",1"[n % 2 : n % 2 + 1]))
        if n == 5_000:
            before = matcher.n_bytes
    assert matcher.n_bytes == before


@pytest.mark.parametrize(
    ("part", "end"),
    [(b"lambda x:", b"x"), (b"x if x else ", b"x"), (b"not ", b"x"), (b"x**", b"x"), (b"(lambda:", b"x")],
)
def test_nested_chains_have_the_rows_of_shallow_ones(part: bytes, end: bytes) -> None:
    """Runs over such stacks go down to the bottom; from a certain depth on a cache answers for the rest."""
    store = chains()
    shallow, deep = store.matcher(), store.matcher()
    shallow.advance_bytes(part * 20)
    deep.advance_bytes(part * 20)
    for n in range(400):
        deep.advance_bytes(part)
        twin = shallow.fork()
        twin.advance_bytes(part)
        assert row(deep) == row(twin)
        deep.advance_bytes(end)
        twin.advance_bytes(end)
        assert row(deep) == row(twin) == {i for i in range(store.vocabulary.size) if deep.is_allowed(i)}
        assert deep.is_accepting() == twin.is_accepting()
        deep.rollback(1 + n % 2)
        deep.advance_bytes(part if n % 2 else b"")
        if n % 40 == 0:
            deep = deep.fork()


def test_runs_through_the_cache_equal_reading_each_token() -> None:
    """A random text of all kinds of nesting, with rollbacks: frames are freed and used again under the cache of runs."""
    store, rng = chains(), random.Random(4)
    matcher = store.matcher(max_rollback=64)
    opening = [i for i in range(store.vocabulary.size) if store.vocabulary.tokens[i] not in (b")", b"))", b" ", b"")]
    remembered = 0
    for n in range(3000):
        allowed = row(matcher)
        if n % 7 == 0:
            assert allowed == {i for i in range(store.vocabulary.size) if matcher.is_allowed(i)}
        wanted = [i for i in opening if i in allowed] or sorted(allowed - set(store.vocabulary.eos))
        matcher.advance(rng.choice(wanted))
        remembered = min(64, remembered + 1)
        if rng.random() < 0.2:
            back = rng.randint(1, min(20, remembered))
            matcher.rollback(back)
            remembered -= back


def test_rollback_and_fork_across_growth() -> None:
    store = json()
    matcher = store.matcher(max_rollback=5000)
    texts = [b"[" * (n % 3 + 1) + b'{"k":' for n in range(3000)]
    rows, sizes = [], []
    for text in texts:
        rows.append(row(matcher))
        sizes.append(matcher.n_bytes)
        matcher.advance_bytes(text)
    assert len(set(sizes)) > 2, "the memory has grown on the way"
    fork = matcher.fork()
    last = row(matcher)
    for n in (1, 700, 1200, 1099):
        matcher.rollback(n)
        texts, again = texts[:-n], texts[-n:]
        assert row(matcher) == rows[len(texts)]
        del again
    matcher.reset()
    assert row(matcher) == rows[0]
    assert row(fork) == last
    fork.rollback(3000)
    assert row(fork) == rows[0]


def test_batches_grow_slot_by_slot() -> None:
    store = json()
    batch = store.batch(5, max_rollback=2)
    words = np.zeros((5, store.n_words), np.uint32)
    opening = token(store, b"[")
    for n in range(4000):
        batch.advance([opening, -1, opening if n % 2 else -1, opening if n < 3 else -1, -1])
    batch.fill(words)
    assert ids(words[0]) == ids(words[2]) == ids(words[3])
    assert ids(words[1]) == ids(words[4]) == row(store.matcher())
    batch.copy(0, 1)
    for _ in range(4000):
        batch.advance([-1, token(store, b"]"), -1, -1, opening])
    assert batch.is_accepting(1) and not batch.is_accepting(0)
    batch.reset(0)
    batch.fill(words)
    assert ids(words[0]) == row(store.matcher())


def cost_per_token(store: Store, part: list[int], n: int) -> float:
    """Seconds a token for filling and advancing over the last tenth of n repetitions, the least of three runs."""
    words = np.zeros(store.n_words, np.int32)
    best = 1e9
    for _ in range(3):
        matcher = store.matcher()
        begin = 0.0
        for i in range(n):
            if i == n - n // 10:
                begin = time.perf_counter()
            for each in part:
                matcher.fill(words)
                matcher.advance(each)
        best = min(best, (time.perf_counter() - begin) / (n // 10) / len(part))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("part", ["(", "lambda x: ", "x if x else ", "not ", "x ** ", "[*", "{x: "])
def test_deep_python_costs_what_shallow_python_costs(part: str) -> None:
    store = real_store("python")
    tokens, at = [], 0
    data = part.encode()
    while at < len(data):
        longest_token = max((t for t in store.vocabulary.tokens if t and data.startswith(t, at)), key=len)
        tokens.append(store.vocabulary.tokens.index(longest_token))
        at += len(longest_token)
    shallow = cost_per_token(store, tokens, 30)
    deep = cost_per_token(store, tokens, 3000)
    assert deep < 2 * shallow + 1e-6, f"{deep * 1e6:.2f} us a token, {shallow * 1e6:.2f} us in shallow text"


@pytest.mark.slow
@pytest.mark.parametrize("part", [b"(", b"lambda x: ", b"x if x else ", b"not ", b"x ** ", b"if x:\n"])
def test_deep_python_rows(part: bytes) -> None:
    """Every row of a deep stack equals what reading each token says."""
    store = real_store("python")
    matcher = store.matcher()
    for n in range(90 if b"\n" in part else 1500):
        matcher.advance_bytes(b" " * n * (b"\n" in part) + part)
        if n % 30 == 29:
            assert row(matcher) == {i for i in range(store.vocabulary.size) if matcher.is_allowed(i)}
