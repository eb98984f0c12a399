"""Threads that use one matcher, one batch and their rows at once: they get errors, and nothing breaks.

Run as a script, in a process of its own, which a fault kills: python tests/support/thread_abuse.py SECONDS. Prints
how many calls came through and how many were refused; anything but a MaskwrightError is printed too, and makes the exit status 1.
"""

from __future__ import annotations

import faulthandler
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from stores import small_automaton

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine import texts

TEXTS = (b"if a:\n  b\n", b"(" * 300, b"a=(" * 50, b"ab\n", b"if a:\n if b:\n  a\n", b"if (a", b")" * 200, b"\n")


def calls(store: Any, n_threads: int) -> list[Callable[[random.Random], object]]:
    """What a thread may do, everything on the same texts."""
    matcher, batch = store.matcher(64), store.batch(4, 16, n_threads)
    row, masks = np.zeros(store.n_words, np.uint32), np.zeros((4, store.n_words), np.uint32)
    size = store.vocabulary.size
    return [
        lambda r: matcher.fill(row),
        lambda r: matcher.fill(np.zeros(store.n_words, np.uint32)),
        lambda r: matcher.advance_bytes(r.choice(TEXTS)),
        lambda r: matcher.advance(r.randrange(size)),
        lambda r: matcher.replay([r.randrange(size) for _ in range(8)]),
        lambda r: matcher.is_allowed(r.randrange(size)),
        lambda r: matcher.rollback(r.randrange(1, 4)),
        lambda r: matcher.is_accepting(),
        lambda r: matcher.fork().advance_bytes(r.choice(TEXTS)),
        lambda r: matcher.reset() if r.random() < 0.2 else None,
        lambda r: matcher.min_bytes_left() if r.random() < 0.02 else None,
        lambda r: batch.fill(masks, [0, 2] if r.random() < 0.3 else None),
        lambda r: batch.advance([r.randrange(-1, size) for _ in range(4)]),
        lambda r: batch.advance_bytes(r.randrange(4), r.choice(TEXTS)),
        lambda r: batch.copy(r.randrange(4), r.randrange(4)),
        lambda r: batch.reset(r.randrange(4)) if r.random() < 0.2 else None,
    ]


def main(seconds: float) -> int:
    faulthandler.enable()
    sys.setswitchinterval(1e-5)
    texts._FIRST_RECORDS = 64  # memory is replaced often
    store = small_automaton("lines")
    every = calls(store, 1) + calls(store, 3)
    for call in every:  # compiles
        tried(call, random.Random(0), Counter())
    tallies = [Counter[str]() for _ in range(8)]
    end = time.monotonic() + seconds

    def abuse(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end:
            tried(rng.choice(every), rng, tallies[number])

    threads = [threading.Thread(target=abuse, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = sum(tallies, Counter[str]())
    for wrong in total.keys() - {"through", "refused", "other"}:
        print(wrong)
    print(total["through"], total["refused"], total["other"])
    return int(len(total.keys() - {"through", "refused", "other"}) > 0)


def tried(call: Callable[[random.Random], object], rng: random.Random, tally: Counter[str]) -> None:
    try:
        call(rng)
        tally["through"] += 1
    except MaskwrightError as error:
        tally["refused" if "in use by another thread" in str(error) else "other"] += 1
    except Exception as error:
        tally[f"{type(error).__name__}: {error}"] += 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
