"""Tables altered at random, their values inside their ranges: what `check_table` lets through is run, and must come to an end.

Run as a script, in a process of its own, which a fault kills:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=... python tests/support/table_mutator.py SEED FIRST END [SECONDS]

Table i is made from (SEED, i) alone, so `SEED i i+1` makes it again. Before each one its number is printed. A table that takes longer than
SECONDS ends the process with a traceback. At the end: a line of JSON with what was tried, and what was let through.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engine_cases import (
    longest,
    random_contextual_grammar,
    random_layout_grammar,
    random_longest_grammar,
    random_verbatim_grammar,
    random_vocabulary,
)
from grammars import JSON
from stores import CONTEXTUAL_TEXT, read_parts, small_automaton, small_vocabulary, write_parts

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.endings import ending_search
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton
from maskwright.maskstore.file.automaton_file import table_checksum
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.table import schema
from maskwright.maskstore.table.check import _Checks, check_table, range_of
from maskwright.maskstore.table.schema import PARTS
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store, load_store

SECONDS = 60.0
MAX_NODES = 2_000
"""States that a search for an ending looks at here: it is plain Python, and made-up tables make it look at all."""

BACKING_TEXT = """
start: (p | q)+
p: "(" /[ab]/ ")"
q: "=" ("abbab" | "a" | "b" | "ab") (/b/ | "bi")* ":"
%ignore " "
"""

EMPTY_TEXT = 'start: s+\ns: "a" o p "=" | "(" s ")" | p q\no: "i" |\np: "b" | "f"\nq: "#" |'
RIGHT_TEXT = 'start: a\na: "a" a | "a" | "(" a ")" a | b\nb: c\nc: "b"? d\nd: "i"?'


def bytes_vocabulary(*more: bytes) -> Vocabulary:
    tokens = (*(bytes([byte]) for byte in range(128)), *more, b"")
    return Vocabulary("bytes", tokens, {len(tokens) - 1: "</s>"}, (len(tokens) - 1,))


def opened(grammar: Grammar, vocabulary: Vocabulary) -> Store:
    """A store whose automaton is not closed: the parser is asked."""
    automaton = build_automaton(grammar, vocabulary, budget=Budget(edges=2))
    return Store(grammar, vocabulary, engine_table(grammar, vocabulary, automaton), automaton.counts)


def stores() -> dict[str, Store]:
    """Every kind of store: closed and open, with and without layout, contextual, verbatim, ambiguous."""
    found = {name: small_automaton(name) for name in ("lines", "sums", "modes")}
    makers: dict[str, tuple[Callable[[int], Grammar], int]] = {
        "longest": (random_longest_grammar, 0),
        "layout": (random_layout_grammar, 1),
        "contextual": (random_contextual_grammar, 2),
        "verbatim": (random_verbatim_grammar, 3),
    }
    for name, (make, first) in makers.items():
        n = 0
        for seed in range(first, first + 40):
            try:
                grammar = make(seed)
                vocabulary = random_vocabulary(grammar, seed, 20)
                found[f"{name}-{seed}"] = compile_store(grammar, vocabulary)
                found[f"open-{name}-{seed}"] = opened(grammar, vocabulary)
            except MaskwrightError:
                continue
            n += 1
            if n == 3:
                break
    backing = parse_grammar(BACKING_TEXT, name="backing", lexing="contextual")
    found["backing"] = compile_store(backing, small_vocabulary())
    found["open-modes"] = opened(parse_grammar(CONTEXTUAL_TEXT, name="modes", lexing="contextual"), small_vocabulary())
    found["right"] = compile_store(longest(RIGHT_TEXT, "right"), small_vocabulary())
    found["empty"] = compile_store(longest(EMPTY_TEXT, "empty"), small_vocabulary())
    found["json"] = compile_store(longest(JSON, "json"), bytes_vocabulary(b'{"', b'":', b"true", b"[[", b"]]"))
    return found


class Mutator:
    """Changes of one table that could pass for a table."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self.rng = rng
        self.table = store.table.copy()
        checks = _Checks("x", store.grammar, store.vocabulary, store.table)
        self.spans, self.sizes = checks.spans, checks.sizes
        fixed = (schema.TOKEN_START, schema.TOKEN_BYTES, schema.EOS)
        self.parts = [place for place, (begin, end) in self.spans.items() if begin < end and place not in fixed]

    def mutate(self) -> np.ndarray:
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 6))):
            self.rng.choice((self.value, self.value, self.value, self.value, self.row, self.whole, self.number))()
        self.table.setflags(write=False)
        return self.table

    def part(self) -> tuple[int, np.ndarray]:
        place = self.rng.choice(self.parts)
        begin, end = self.spans[place]
        return place, self.table[begin:end]

    def new(self, place: int, at: int, values: np.ndarray) -> int:
        """A value for a place: in its range, one that its column has elsewhere, one beside it, or any bits."""
        columns = PARTS[place].columns
        rng = self.rng
        kind = rng.random()
        if kind < 0.3:
            return int(rng.choice(values[at % len(columns) :: len(columns)]))
        if kind < 0.5:
            return int(np.clip(int(values[at]) + rng.choice((-2, -1, 1, 2)), -(1 << 31), (1 << 31) - 1))
        span = range_of(columns[at % len(columns)], self.sizes)
        if span is None:
            if place in (schema.ACTION, schema.ALTERNATIVES):
                return rng.randint(-self.sizes["rules"], self.sizes["states"])
            return rng.randint(-3, 3 * self.sizes["columns"]) if kind < 0.8 else rng.randint(-(1 << 31), (1 << 31) - 1)
        least, end = span
        return rng.choice(
            (least, end - 1, rng.randrange(least, max(least + 1, end)), rng.randrange(least, max(least + 1, end)))
        )

    def value(self) -> None:
        place, values = self.part()
        at = self.rng.randrange(len(values))
        values[at] = self.new(place, at, values)

    def row(self) -> None:
        """A run of values becomes another, or one value."""
        place, values = self.part()
        n = self.rng.randint(1, min(len(values), 64))
        into, source = self.rng.randrange(len(values) - n + 1), self.rng.randrange(len(values) - n + 1)
        values[into : into + n] = (
            values[source : source + n].copy() if self.rng.random() < 0.6 else self.new(place, into, values)
        )

    def whole(self) -> None:
        """A column of a part becomes one value."""
        place, values = self.part()
        width = len(PARTS[place].columns)
        at = self.rng.randrange(len(values))
        chosen = values[at % width :: width]
        chosen[chosen >= 0 if self.rng.random() < 0.5 else slice(None)] = self.new(place, at, values)

    def number(self) -> None:
        place = self.rng.choice((schema.AGAIN, schema.AFTER_NEWLINE, schema.N_MODES, schema.N_ROOTS))
        self.table[place] += self.rng.choice((-1, 1, 3))


def use(store: Store, rng: random.Random) -> None:
    """Fill, advance and so on, mostly by what the masks allow. Only MaskwrightErrors come of it."""
    for _ in range(2):
        use_matcher(store.matcher(4), rng)
    batch = store.batch(3, 2)
    masks = np.zeros((3, store.n_words), np.uint32)
    for _ in range(6):
        tried(lambda: batch.fill(masks))
        tried(lambda: batch.advance([chosen(row, rng, store.vocabulary.size) for row in masks]))
    tried(lambda: batch.copy(0, 1))


def use_matcher(matcher: Matcher, rng: random.Random) -> None:
    words = np.zeros(matcher.store.n_words, np.uint32)
    size = matcher.store.vocabulary.size
    texts = (b"a", b"((", b"\n ", b"ab:\n  a", b"=abba", b"[[[[1")
    for _ in range(12):
        tried(lambda: matcher.fill(words))
        tried(lambda: matcher.is_allowed(rng.randrange(size)))
        if rng.random() < 0.5:
            tried(matcher.is_accepting)
        tried(lambda: matcher.advance(chosen(words, rng, size)))
        if rng.random() < 0.2:
            tried(lambda: matcher.advance_bytes(rng.choice(texts)))
        if rng.random() < 0.2:
            tried(matcher.rollback)
    if rng.random() < 0.3:
        tried(rng.choice((matcher.shortest_ending, matcher.short_ending, matcher.min_bytes_left)))
    if rng.random() < 0.1:
        tried(lambda: matcher.explain(rng.randrange(size)))
    tried(lambda: matcher.replay([rng.randrange(size) for _ in range(4)]))
    tried(matcher.fork)


def tried(call: Callable[[], Any]) -> None:
    with contextlib.suppress(MaskwrightError):
        call()


def chosen(words: np.ndarray, rng: random.Random, size: int) -> int:
    allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")[:size])
    return int(rng.choice(allowed)) if len(allowed) and rng.random() < 0.9 else rng.randrange(size)


def mapped(store: Store, table: np.ndarray, folder: Path) -> Store:
    """The table as a file from a stranger: written with its checksums, and loaded. Raises StoreError."""
    path = folder / "forged.safetensors"
    save_store(store, path)
    facts, tensors = read_parts(path)
    facts["table_checksum"] = table_checksum(table)
    tensors["table"] = table
    write_parts(path, facts, tensors)
    return load_store(path, mapped=True)  # type: ignore[return-value]


def main(seed: int, first: int, end: int, seconds: float = SECONDS) -> None:
    faulthandler.enable()
    ending_search.MAX_NODES = MAX_NODES
    originals = stores()
    for store in originals.values():  # compiles
        check_table("x", store.grammar, store.vocabulary, store.table)
        use(store, random.Random(0))
    print("kinds", *originals, flush=True)
    tally: Counter[str] = Counter()
    slowest = (0.0, -1)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(first, end):
            rng = random.Random(f"{seed}-{i}")
            name = rng.choice(list(originals))
            store = originals[name]
            print(i, name, flush=True)
            faulthandler.dump_traceback_later(seconds, exit=True)
            begin = time.process_time()
            table = Mutator(store, rng).mutate()
            tally["tried"] += 1
            try:
                if rng.random() < 0.1:
                    forged = mapped(store, table, Path(folder))
                    tally["mapped"] += 1
                else:
                    check_table("x", store.grammar, store.vocabulary, table)
                    forged = Store(store.grammar, store.vocabulary, table, store.counts)
            except StoreError:
                continue
            tally["let through"] += 1
            use(forged, rng)
            slowest = max(slowest, (time.process_time() - begin, i))
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps({**tally, "slowest": slowest}))


if __name__ == "__main__":
    seed, first, end, *more = sys.argv[1:]
    main(int(seed), int(first), int(end), *map(float, more))
