"""A matcher, a batch and rows are for one thread at a time: a second call is an error, and leaves all as it is."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from paths import TESTS
from stores import small_automaton

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.decoding.batch import Batch
from maskwright.decoding.engine.entries import entries
from maskwright.decoding.matcher import Matcher

IN_USE = "is in use by another thread, or by a call that has not returned; give each thread one of its own: "


class Slow:
    """A token, or a slot, that is not known until the test lets it be."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_asked, self.may_go = threading.Event(), threading.Event()

    def __index__(self) -> int:
        self.is_asked.set()
        assert self.may_go.wait(60)
        return self.number


def state(matcher: Matcher) -> tuple[Any, ...]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    matcher.fill(words)
    return matcher.text.stacks(), words.tolist(), matcher.is_accepting()


MATCHER_CALLS: list[Callable[[Matcher], object]] = [
    lambda m: m.fill(np.zeros(m.store.n_words, np.uint32)),
    lambda m: m.advance(0),
    lambda m: m.advance_bytes(b"a"),
    lambda m: m.replay([0, 0]),
    lambda m: m.is_allowed(0),
    lambda m: m.is_accepting(),
    lambda m: m.is_finished(),
    lambda m: m.rollback(1),
    lambda m: m.reset(),
    lambda m: m.fork(),
    lambda m: copy.copy(m),
    lambda m: m.shortest_ending(),
    lambda m: m.short_ending(),
    lambda m: m.min_bytes_left(),
    lambda m: m.explain(0),
]

BATCH_CALLS: list[Callable[[Batch], object]] = [
    lambda b: b.fill(np.zeros((2, b.store.n_words), np.uint32)),
    lambda b: b.advance([0, 0]),
    lambda b: b.advance_bytes(1, b"a"),
    lambda b: b.is_allowed(1, 0),
    lambda b: b.is_accepting(1),
    lambda b: b.is_finished(1),
    lambda b: b.rollback(1),
    lambda b: b.reset(1),
    lambda b: b.copy(0, 1),
    lambda b: b.explain(1, 0),
    lambda b: b.shortest_ending(1),
    lambda b: b.min_bytes_left(1),
]


@contextmanager
def held(call: Callable[[Slow], object], slow: Slow) -> Iterator[None]:
    """Another thread is inside a call, where it waits, until the block ends."""
    thread = threading.Thread(target=call, args=(slow,))
    thread.start()
    assert slow.is_asked.wait(60)
    try:
        yield
    finally:
        slow.may_go.set()
        thread.join()


def test_a_second_thread_is_refused_whatever_it_calls() -> None:
    matcher = small_automaton("lines").matcher()
    matcher.advance_bytes(b"if a")
    before = state(matcher)
    with held(matcher.advance, Slow(matcher.store.vocabulary.tokens.index(b"b"))):
        for call in MATCHER_CALLS:
            with pytest.raises(MaskwrightError, match=f"this matcher {IN_USE}store.matcher\\(\\) or fork\\(\\)"):
                call(matcher)
    matcher.rollback()
    assert state(matcher) == before


def test_a_batch_is_refused_as_a_whole() -> None:
    batch = small_automaton("lines").batch(2, n_threads=2)
    with held(lambda slow: batch.is_allowed(0, slow), Slow(0)):
        for call in BATCH_CALLS:
            with pytest.raises(MaskwrightError, match=f"this batch {IN_USE}store.batch\\(size\\)"):
                call(batch)
    for call in BATCH_CALLS:
        if call not in BATCH_CALLS[6:7]:  # nothing to roll back
            call(batch)


def test_rows_and_the_texts_that_they_are_of() -> None:
    pytest.importorskip("torch")
    from maskwright.decoding.logits import ResidentRows

    store = small_automaton("lines")
    matcher, rows = store.matcher(), ResidentRows(store, "cpu", 8)
    matcher._is_busy = True
    with pytest.raises(MaskwrightError, match=f"this matcher {IN_USE}"):
        rows.ids([matcher])
    matcher._is_busy = False
    rows._is_busy = True
    with pytest.raises(MaskwrightError, match=f"these rows {IN_USE}ResidentRows\\(store\\)"):
        rows.ids([matcher])
    rows._is_busy = False
    assert rows.ids([matcher]).tolist() == [1]


def test_whatever_is_raised_gives_the_turn_back() -> None:
    class Broken:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    matcher, batch = small_automaton("lines").matcher(), small_automaton("lines").batch(2)
    wrong: list[Callable[[], object]] = [
        lambda: matcher.advance(1 << 40),
        lambda: matcher.advance(Broken()),  # type: ignore[arg-type]
        lambda: matcher.is_allowed(Broken()),  # type: ignore[arg-type]
        lambda: matcher.rollback(Broken()),  # type: ignore[arg-type]
        lambda: matcher.rollback(99),
        lambda: matcher.fill(None),
        lambda: matcher.advance_bytes(b"\x00"),
        lambda: matcher.replay([-1]),
        lambda: batch.fill(None),
        lambda: batch.fill(np.zeros((2, 4), np.uint32), [Broken()]),  # type: ignore[list-item]
        lambda: batch.advance([99, 999]),
        lambda: batch.reset(5),
        lambda: batch.copy(0, 5),
    ]
    for call in wrong:
        with pytest.raises((MaskwrightError, KeyboardInterrupt)):
            call()
        assert not matcher._is_busy and not batch._is_busy
    matcher.advance_bytes(b"a")
    batch.advance([0, 0])


def test_an_interrupted_fill_waits_for_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left working in memory that the next call may change."""
    batch = small_automaton("lines").batch(4, n_threads=2)
    words = np.zeros((4, batch.store.n_words), np.uint32)
    batch.fill(words)
    expected = words.copy()
    compiled, may_go, ended = entries.fill_batch, threading.Event(), []

    def fill_batch(*arguments: Any) -> bool:
        if arguments[-2] == 0:
            threading.Timer(0.2, may_go.set).start()
            raise KeyboardInterrupt
        assert may_go.wait(60)
        ended.append(True)
        return bool(compiled(*arguments))

    monkeypatch.setattr(entries, "fill_batch", fill_batch)
    with pytest.raises(KeyboardInterrupt):
        batch.fill(words)
    assert ended and not batch._is_busy
    monkeypatch.setattr(entries, "fill_batch", compiled)
    words[:] = 0
    batch.fill(words)
    assert (words == expected).all()


def test_threads_that_take_turns_may_share_a_matcher() -> None:
    matcher = small_automaton("lines").matcher()
    for _ in range(3):
        thread = threading.Thread(target=matcher.advance_bytes, args=(b"a",))
        thread.start()
        thread.join()
    with pytest.raises(IllegalTokenError):
        matcher.advance_bytes(b"\x00")
    matcher.rollback(3)


def abused(seconds: float) -> tuple[int, int, int]:
    script = [sys.executable, "thread_abuse.py", str(seconds)]
    run = subprocess.run(
        script, cwd=TESTS / "support", capture_output=True, text=True, check=False, timeout=seconds + 300
    )
    assert run.returncode == 0, f"rc {run.returncode}\n{run.stdout[-2000:]}{run.stderr[-3000:]}"
    through, refused, other = map(int, run.stdout.split())
    return through, refused, other


@pytest.mark.slow
def test_abuse_for_a_moment() -> None:
    through, _, _ = abused(2)
    assert through > 20


@pytest.mark.slow
def test_abuse_for_twenty_seconds() -> None:
    through, refused, _ = abused(20)
    assert through > 300 and refused > 30


def test_a_fork_has_threads_of_its_own() -> None:
    """The pool that a child inherits has none: its fill never ended."""
    code = (
        "import os, sys, numpy as np\nfrom stores import small_automaton\n"
        "batch = small_automaton('lines').batch(4, n_threads=2)\n"
        "words = np.zeros((4, batch.store.n_words), np.uint32)\n"
        "batch.fill(words)\nexpected = words.copy()\nwords[:] = 0\nchild = os.fork()\n"
        "batch.fill(words)\nassert (words == expected).all()\n"
        "if child:\n    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=TESTS / "support", check=True, timeout=120)
