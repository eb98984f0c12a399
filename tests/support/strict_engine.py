"""The engine as plain Python over arrays that refuse every index outside them, to see whether a table leads it astray.

Run as a script, with compilation off: NUMBA_DISABLE_JIT=1 python tests/support/strict_engine.py SEED N. It alters tables at random,
keeps those that `check_table` lets through, reads texts with them, and prints how many were kept and how many of these never came to
an end.
"""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import numpy as np
from stores import small_automaton

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.decoding.endings import ending
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.table.schema import PARTS
from maskwright.stores.store import Store

MOST_READS = 200_000


class EndlessError(Exception):
    """The engine has read more places than any text here needs."""


class Strict(np.ndarray):
    """An array whose single places can be read and written inside it only, and not without end."""

    reads = 0

    def _check(self, index: Any) -> None:
        Strict.reads += 1
        if Strict.reads > MOST_READS:
            raise EndlessError
        if isinstance(index, slice):
            inside = 0 <= (index.start or 0) <= (len(self) if index.stop is None else index.stop) <= len(self)
        else:
            inside = 0 <= index < len(self)
        if not inside:
            raise IndexError(f"{index} is outside of {len(self)}")

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)


def read_texts(store: Store, rng: random.Random) -> None:
    """Read random texts, mostly of tokens that the masks allow. Raises IndexError or EndlessError."""
    for _ in range(3):
        Strict.reads = 0
        matcher = store.matcher(4)
        words = np.zeros(store.n_words, np.int32).view(Strict)
        for _ in range(12):
            Strict.reads = 0
            read_strictly(matcher, words)
            try:
                matcher.fill(words)
                bits = np.unpackbits(np.asarray(words).view(np.uint8), bitorder="little")
                allowed = np.flatnonzero(bits).tolist()
                token = rng.choice(allowed) if allowed and rng.random() < 0.9 else rng.randrange(store.vocabulary.size)
                read_strictly(matcher, words)
                matcher.is_accepting()
                matcher.advance(token)
                if rng.random() < 0.1:
                    matcher.rollback(1)
            except MaskwrightError:
                pass


def read_strictly(matcher: Any, words: Any) -> None:
    """Have the matcher's memory checked, wherever it is now, and the words of its masks."""
    texts = matcher.text.texts
    texts.bound = texts._bound_to(texts._table, texts._memory.view(Strict), words)
    matcher._words = matcher._checked = words


def altered(store: Store, rng: random.Random) -> Store:
    """The store with some values of its table exchanged for values that could be in range."""
    table = store.table.copy()
    spans = [int(table[place]) for place in PARTS] + [len(table)]
    parts = [(begin, end) for begin, end in itertools.pairwise(spans) if end > begin]
    for _ in range(rng.randint(1, 3)):
        begin, end = rng.choice(parts)
        values = table[begin:end]
        place = rng.randrange(end - begin)
        values[place] = rng.choice(
            [int(rng.choice(values)), int(values[place]) + rng.choice([-1, 1]), rng.randint(-2, 40)]
        )
    if rng.random() < 0.1:
        table[rng.randrange(schema.HEADER)] += rng.choice([-1, 1])
    table.setflags(write=False)
    return Store(store.grammar, store.vocabulary, table, store.counts)


def main(seed: int, n: int) -> None:
    # limits that plain Python comes to
    for module in [module for name, module in sys.modules.items() if name.startswith("maskwright.decoding.engine")]:
        for name, limit in (("MOST_SPENT", 500), ("MOST_SINCE", 8), ("MAX_STACKS", 16)):
            if hasattr(module, name):
                setattr(module, name, limit)
    rng = random.Random(seed)
    originals = [small_automaton(name) for name in ("lines", "sums", "modes")]
    # what a dead end's message asks is Python's own, and counts from the end of arrays
    ending.Endings.is_completable = lambda endings, text, max_nodes=0: None
    kept = endless = 0
    for store in originals:
        read_texts(Store(store.grammar, store.vocabulary, store.table.view(Strict), store.counts), rng)
    for _ in range(n):
        store = altered(rng.choice(originals), rng)
        try:
            check_table("x", store.grammar, store.vocabulary, store.table)
        except StoreError:
            continue
        kept += 1
        try:
            read_texts(Store(store.grammar, store.vocabulary, store.table.view(Strict), store.counts), rng)
        except EndlessError:
            endless += 1
    print(kept, endless)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
