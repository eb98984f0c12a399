"""Who waits for whom where endings are searched for in several threads."""

from __future__ import annotations

import threading

from engine_cases import vocabulary_of

from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.endings import ending as ending_module
from maskwright.decoding.endings.ending import shortest_ending
from maskwright.stores.build import compile_store


def test_a_search_of_one_store_does_not_wait_for_another_stores() -> None:
    texts = []
    for text in ('start: "a" "b"', 'start: "b" "a"'):
        grammar = parse_grammar(text, name="test")
        texts.append(compile_store(grammar, vocabulary_of(b"a", b"b")).matcher())
    busy, other = texts
    found = []
    with ending_module._tools_of(busy.store).lock:
        thread = threading.Thread(target=lambda: found.append(shortest_ending(other).data), daemon=True)
        thread.start()
        thread.join(timeout=60)
    assert found == [b"ba"]
    assert shortest_ending(busy).data == b"ab"
