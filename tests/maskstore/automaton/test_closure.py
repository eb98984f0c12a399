"""The closed automaton against reading each token: every lexer state over stacks of real and random texts; and no edge is missing."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, random_layout_grammar, random_longest_grammar, random_vocabulary, real_automaton
from jitted import kernels_put_back
from mask_bits import ids
from paths import SHARED
from shares import share

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.jit import kernel
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.engine import _text_kernels as text_kernels
from maskwright.decoding.engine import constants
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.automaton import closure, closure_tables
from maskwright.maskstore.automaton.closure import Closure
from maskwright.maskstore.automaton.stack_automaton import Budget, StackAutomaton, build_automaton
from maskwright.maskstore.table.check import check_table
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

DATA = SHARED / "source"
N_FILES = 12

Pair = tuple[StackAutomaton, Store]


def built(grammar: Grammar, vocabulary: Vocabulary) -> Pair:
    automaton = build_automaton(grammar, vocabulary)
    table = engine_table(grammar, vocabulary, automaton)
    return automaton, Store(grammar, vocabulary, table, automaton.counts)


@pytest.fixture(scope="module", autouse=True)
def put_back() -> Iterator[None]:
    """Numba is for `compiled_read_each` alone."""
    with kernels_put_back():
        yield


@cache  # at module level pytest would look into the kernel, and Numba would be asked in every process
def compiled_read_each() -> Any:
    return kernel(read_each)


def read_each(table: Any, memory: Any, n_tokens: int, words: Any) -> bool:
    """The row by reading every token, without the automaton. False if there was not enough room."""
    for token in range(n_tokens):
        code = text_kernels.read_token(table, memory, 0, token, False)
        if code == constants.NO_ROOM:
            return False
        if code == constants.OK:
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    return True


def direct(matcher: Matcher, is_compiled: bool) -> set[int]:
    """The tokens that are legal when each is read. is_compiled : worth Numba's 15 seconds where it is asked often."""
    words = np.zeros(matcher.store.n_words, np.uint32)
    read = compiled_read_each() if is_compiled else read_each
    while not read(matcher.store.table, matcher.text.texts._memory, matcher.store.vocabulary.size, words):
        matcher.text.texts._give_room(0, 0)
        words[:] = 0
    return ids(words)


def row(matcher: Matcher) -> set[int]:
    words = np.zeros(matcher.store.n_words, np.uint32)
    try:
        matcher.fill(words)
    except DeadEndError:
        assert not words.any()
    return ids(words)


def stacks(matcher: Matcher) -> Iterator[list[int]]:
    """The parser's stacks, each with the top first."""
    for states in matcher.text.stacks():
        yield states[::-1]


class Edges:
    """A closure's own lists of edges and masks, looked up plainly."""

    def __init__(self, automaton: StackAutomaton) -> None:
        closure: Closure = automaton.closure
        self.closure = closure
        self.classes = automaton.required.classes
        self.n_cells = len(automaton.tables.action)
        self.edges = {
            key: (node, mask)
            for key, node, mask in zip(
                closure.edge_key.tolist(), closure.edge_node.tolist(), closure.edge_mask.tolist(), strict=True
            )
        }

    def mask(self, number: int) -> set[int]:
        count, at = int(self.closure.mask_count[number]), int(self.closure.mask_at[number])
        if count < 0:
            return ids(self.classes.rows(self.closure.dense[at : at + 1], n_words(int(self.classes.ids.max()) + 1))[0])
        return set(self.classes.tokens(self.closure.mask_ids[at : at + count], np.array([0, count]))[0].tolist())

    def run(self, node: int, stack: list[int]) -> set[int]:
        """The union of the masks on the run from a root. A root refuses cells that it does not list; any other node must list the cell."""
        found: set[int] = set()
        for cell in stack:
            if node == 0:
                break
            edge = self.edges.get(node * self.n_cells + cell)
            if edge is None:
                assert node <= self.closure.n_roots, f"node {node} has no edge for cell {cell}"
                break
            node, mask = edge
            found |= self.mask(mask)
        else:
            assert node == 0, "the bottom of the stack was reached and something is still undecided"
        return found


def check_state(
    matcher: Matcher, automaton: StackAutomaton, edges: Edges, state: int, is_compiled: bool = False
) -> int:
    """Lexer state `state` over the matcher's stacks: automaton, closure's lists and direct reading agree. Returns the tokens allowed."""
    kept = int(matcher.text.texts._memory[constants.LEXER])
    matcher.text.texts._memory[constants.LEXER] = state
    expected = direct(matcher, is_compiled)
    assert row(matcher) == expected
    depth_cases = automaton.depth_cases[state]
    depth = int(matcher.text.texts._memory[constants.DEPTH])
    unconditional = {lookup.line_breaks for lookup in depth_cases[min(depth, len(depth_cases) - 1)]} <= {0}
    listed: set[int] = set()
    for lookup in depth_cases[min(depth, len(depth_cases) - 1)]:
        if lookup.line_breaks == 0:
            listed |= edges.mask(lookup.own)
            for stack in stacks(matcher):
                listed |= edges.run(lookup.root, stack)
    eos = set(matcher.store.vocabulary.eos)
    assert listed - eos <= expected - eos
    if unconditional:
        assert listed - eos == expected - eos
    matcher.text.texts._memory[constants.LEXER] = kept
    return len(expected)


def texts(name: str) -> list[bytes]:
    path = DATA / f"{name}.jsonl.xz"
    if not path.exists():
        return (
            [b'{"a": [1, {"b": null}, "c"]}'] if name == "json" else [b"def f(x):\n    return [x, {1: (2,)}]\n\nf(1)\n"]
        )
    found = []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            data = json.loads(line)["text"].encode()
            if len(data) < 20_000:
                found.append(data)
            if len(found) >= N_FILES:
                break
    return found


def corpus_places(store: Store, name: str, rng: random.Random, n: int) -> Iterator[Matcher]:
    """Matchers at random places of real files, as far as the grammar takes these."""
    every = texts(name)
    for number in range(n):
        data = every[number % len(every)]
        matcher = store.matcher()
        for line in data[: rng.randrange(len(data))].splitlines(keepends=True):
            try:
                matcher.advance_bytes(line)
            except ValueError:
                break
        yield matcher


def random_places(store: Store, rng: random.Random, n: int) -> Iterator[Matcher]:
    """Matchers after random tokens that the masks allow."""
    for _ in range(n):
        matcher = store.matcher()
        for _ in range(rng.randint(0, 60)):
            allowed = sorted(row(matcher) - set(store.vocabulary.eos))
            if not allowed:
                break
            try:
                matcher.advance(rng.choice(allowed))
            except LimitError as error:  # of very many readings: tokens read one by one would be refused for them
                assert "readings" in str(error)
                matcher = store.matcher()
                break
        yield matcher


def check_real(name: str, n_places: int, n_states: int) -> None:
    automaton, store = real_automaton(name)
    edges, rng = Edges(automaton), random.Random(5)
    n_all = automaton.required.transducer.n_states
    allowed = 0
    for places in (corpus_places(store, name, rng, n_places), random_places(store, rng, n_places)):
        for matcher in places:
            for state in rng.sample(range(n_all), min(n_states, n_all)):
                allowed += check_state(matcher, automaton, edges, state, is_compiled=n_states > 10)
    assert allowed > 0


@pytest.mark.parametrize(
    ("name", "n_places", "n_states"), share([("json", 1, 8), ("python", 2, 5), ("json", 3, 25), ("python", 6, 15)], 2)
)
def test_lexer_states_over_stacks(name: str, n_places: int, n_states: int) -> None:
    check_real(name, n_places, n_states)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_places"), [("json", 60), ("python", 25)])
def test_every_lexer_state_over_stacks(name: str, n_places: int) -> None:
    check_real(name, n_places, 1 << 30)


@pytest.mark.parametrize("seed", share(range(12), 3))
@pytest.mark.parametrize("kind", [random_longest_grammar, random_layout_grammar])
def test_every_lexer_state_of_random_grammars(kind: Any, seed: int) -> None:
    grammar = kind(seed)
    automaton, store = built(grammar, random_vocabulary(grammar, seed))
    edges = Edges(automaton)
    for matcher in random_places(store, random.Random(seed), 4):
        for state in range(automaton.required.transducer.n_states):
            check_state(matcher, automaton, edges, state)


def test_a_missing_edge_is_detected() -> None:
    """`Edges.run` fails where an edge is gone; else the tests above would prove nothing."""
    automaton, store = built(longest('start: "a" start "b" | "c"'), random_vocabulary(longest('start: "a"'), 1))
    edges = Edges(automaton)
    matcher = store.matcher()
    matcher.advance_bytes(b"aacb")
    (stack,) = stacks(matcher)
    state = int(matcher.text.texts._memory[constants.LEXER])
    (depth_case,) = automaton.depth_cases[state]
    roots = [lookup.root for lookup in depth_case if lookup.root]
    assert roots and all(edges.run(root, stack) for root in roots)
    beyond = [key for key in edges.edges if key // edges.n_cells > automaton.closure.n_roots]
    assert beyond
    for key in beyond:
        del edges.edges[key]
    with pytest.raises(AssertionError, match="has no edge"):
        for root in roots:
            edges.run(root, stack)


def test_edges_are_listed_once_and_lead_to_nodes() -> None:
    for name in ("json", "python"):
        closure = real_automaton(name)[0].closure
        n_cells = len(real_automaton(name)[0].tables.action)
        assert len(np.unique(closure.edge_key)) == len(closure.edge_key)
        assert closure.edge_key.max() // n_cells < closure.n_nodes and closure.edge_node.max() < closure.n_nodes
        assert closure.edge_node.min() >= 0 and closure.edge_mask.min() >= 0
        assert closure.edge_mask.max() < len(closure.mask_count)
        # node 0 has nothing undecided, and nothing leads back to a root
        assert closure.edge_key.min() >= n_cells
        assert not np.isin(closure.edge_node, np.arange(1, closure.n_roots + 1)).any()


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(edges=2), Budget(bytes=10)])
def test_beyond_its_budget_an_automaton_is_open(budget: Budget) -> None:
    """What is not closed is left to the parser, which is asked at decoding time; the masks are the same."""
    _, closed = real_automaton("python")
    automaton = build_automaton(closed.grammar, closed.vocabulary, budget=budget)
    assert automaton.open_roots and automaton.closure.n_nodes == 1
    table = engine_table(closed.grammar, closed.vocabulary, automaton)
    stores = closed, Store(closed.grammar, closed.vocabulary, table, automaton.counts)
    rows = np.zeros((2, closed.n_words), np.uint32)
    for text in (b"", b"def f(x):\n    return x", b"x = [1, (2, {'a': lambda y: y", b"if x:\n  pass\n", b"x = 1 if"):
        for store, row in zip(stores, rows, strict=True):
            matcher = store.matcher()
            matcher.advance_bytes(text)
            matcher.fill(row)
        assert rows[0].any() and (rows[0] == rows[1]).all(), text


@pytest.mark.parametrize("edges", [10, 20, 40, 80, 160])
def test_masks_of_an_automaton_over_its_budget_are_those_before_it(edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool has grown since, again and again: no mask of it is left that is not in what is kept."""
    monkeypatch.setattr(closure_tables, "FIRST_IDS", 8)
    closed = real_automaton("json")[1]
    automaton = build_automaton(closed.grammar, closed.vocabulary, budget=Budget(edges=edges))
    found = automaton.closure
    assert automaton.open_roots and len(found.mask_count) == len(found.mask_at)
    is_dense = found.mask_count < 0
    assert is_dense.any() and found.mask_at[is_dense].max() < len(found.dense)
    assert (found.mask_at + found.mask_count)[~is_dense].max() <= len(found.mask_ids)
    table = engine_table(closed.grammar, closed.vocabulary, automaton)
    check_table("the table", closed.grammar, closed.vocabulary, table)


def test_tables_that_begin_small_grow_to_the_same_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    """A root has an edge and a visit for every cell: room for all of them is looked for before."""
    values = " | ".join(f'"v{i}"' for i in range(40))
    brackets = " | ".join(f'"{chr(97 + i)}(" x ")"' for i in range(20))
    grammar = parse_grammar(f"start: x+\nx: {values} | {brackets}")
    vocabulary = Vocabulary("bytes", (*(bytes([b]) for b in range(128)), b")x", b"v1v", b""), {130: "</s>"}, (130,))
    expected = compile_store(grammar, vocabulary)
    monkeypatch.setattr(closure, "FIRST_CAPACITY", 16)
    found = compile_store(grammar, vocabulary)
    assert np.array_equal(found.table, expected.table)
