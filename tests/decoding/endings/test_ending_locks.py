"""Who waits for whom where endings are searched for in several threads."""

from __future__ import annotations

import os
import threading
import warnings

import pytest
from engine_cases import vocabulary_of

from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.endings.ending import endings_of
from maskwright.decoding.grammar.ending_states import GrammarStates
from maskwright.stores.build import compile_store


def test_a_search_of_one_store_does_not_wait_for_another_stores() -> None:
    texts = []
    for text in ('start: "a" "b"', 'start: "b" "a"'):
        grammar = parse_grammar(text, name="test")
        texts.append(compile_store(grammar, vocabulary_of(b"a", b"b")).matcher())
    busy, other = texts
    found = []
    with endings_of(busy.text)._lock:
        thread = threading.Thread(target=lambda: found.append(other.shortest_ending().data), daemon=True)
        thread.start()
        thread.join(timeout=60)
    assert found == [b"ba"]
    assert busy.shortest_ending().data == b"ab"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_begins_its_searches_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread had begun at the fork is half made, and nobody is there to end it."""
    is_begun, can_go_on = threading.Event(), threading.Event()
    store = compile_store(parse_grammar('start: "a" "b"', name="test"), vocabulary_of(b"a", b"b"))
    busy, other = store.matcher(), store.matcher()
    bounds = GrammarStates._bounds

    def halt(states: GrammarStates, values: list[int]) -> object:
        if threading.current_thread() is not threading.main_thread():
            is_begun.set()
            can_go_on.wait()
        return bounds(states, values)

    monkeypatch.setattr(GrammarStates, "_bounds", halt)
    thread = threading.Thread(target=lambda: busy.shortest_ending())
    thread.start()
    assert is_begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks of processes with threads
        child = os.fork()
    if child == 0:
        os._exit(0 if other.shortest_ending().data == b"ab" else 1)
    can_go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
