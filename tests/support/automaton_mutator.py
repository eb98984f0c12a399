"""Stack automata altered at random, and by brute force whether an altered one gives another mask somewhere.

Only what `verify` checks is altered: look-ups, line breaks, roots, nodes, edges, masks. A parser reads texts as before, so a text's memory
under the right table serves the altered one too: `Places` keeps the memories of many texts, and `fill` asks both tables.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
from engine_cases import MAKERS, random_vocabulary
from naive_engine import NaiveEngine
from table_mutator import Mutator

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine.constants import NO_ROOM, OK
from maskwright.decoding.engine.entries import entries
from maskwright.maskstore.table import schema
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

ALTERED = (
    schema.DEPTH_CASE_START, schema.LOOKUP_START, schema.LOOKUPS, schema.LINE_BREAKS_START, schema.LINE_BREAKS,
    schema.LINE_BREAK_SYMBOLS, schema.EDGE_PAIRS, schema.ROOTS, schema.NODES, schema.EDGES, schema.MASKS, schema.ROWS,
    schema.MASK_IDS,
)  # fmt: skip


class AutomatonMutator(Mutator):
    """One or two changes of a table's stack automaton: of each part alike, however long it is."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        super().__init__(store, rng)
        self.parts = [place for place in self.parts if place in ALTERED]

    def mutate(self) -> np.ndarray:
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            self.rng.choice((self.value, self.value, self.value, self.bit, self.row, self.whole))()
        self.table.setflags(write=False)
        return self.table

    def bit(self) -> None:
        """A row of masks has a token more, or one less."""
        begin, end = self.spans[schema.ROWS]
        if begin < end:
            token = self.rng.randrange(self.sizes["tokens"])
            row = self.rng.randrange((end - begin) // self.sizes["words"])
            self.table[begin + row * self.sizes["words"] + token // 32] ^= np.uint32(1 << token % 32).view(np.int32)


@dataclass(frozen=True)
class Place:
    """A text, as tokens and as bytes, what the engine remembers of it, and its mask: a code and words."""

    tokens: tuple[int, ...]
    text: bytes
    memory: np.ndarray
    code: int
    words: np.ndarray


class Places:
    """Texts that a store allows, short ones and long ones."""

    def __init__(self, store: Store, seed: int, n: int) -> None:
        self.store = store
        rng = random.Random(seed)
        found: dict[bytes, Place] = {}
        agenda: list[tuple[int, ...]] = [()]
        for _ in range(20 * n):
            if len(found) == n or not agenda:
                break
            tokens = agenda.pop(0 if rng.random() < 0.5 else rng.randrange(len(agenda)))
            matcher = store.matcher()
            for token in tokens:
                matcher.advance(token)
            text = b"".join(store.vocabulary.tokens[token] for token in tokens)
            memory = matcher.text.texts._memory.copy()
            code, words = filled(store, store.table, memory.copy())
            if text in found or code == NO_ROOM:
                continue
            found[text] = Place(tokens, text, memory, code, words)
            if len(tokens) < 14 and code == OK:
                allowed = [t for t in ids_of(words) if store.vocabulary.tokens[t]]
                rng.shuffle(allowed)
                agenda += [(*tokens, token) for token in allowed[:8]]
        self.members = list(found.values())

    def difference(self, table: np.ndarray) -> Place | None:
        """The first text at which another table gives another mask; None if there is none here."""
        for place in self.members:
            code, words = filled(self.store, table, place.memory.copy())
            if code != NO_ROOM and (code != place.code or not np.array_equal(words, place.words)):
                return place
        return None


def filled(store: Store, table: np.ndarray, memory: np.ndarray) -> tuple[int, np.ndarray]:
    """What `fill` returns, and the mask: empty at a dead end or an error. memory : changed."""
    words = np.zeros(store.n_words, np.int32)
    code = int(entries.fill(table, memory, 0, words))
    return code, words if code == OK else np.zeros_like(words)


def ids_of(words: np.ndarray) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
    return found


def naive_mask(naive: NaiveEngine, vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The mask behind a text from the definition."""
    return [
        token
        for token, more in enumerate(vocabulary.tokens)
        if (naive.is_legal_prefix(text + more) if more else token in vocabulary.eos and naive.is_legal_text(text))
    ]


def small_stores(n: int, first: int = 0) -> list[Store]:
    """Closed stores of random grammars of all kinds of lexing, with both ways to treat conflicts. first : a seed."""
    found: list[Store] = []
    seed = first
    while len(found) < n:
        try:
            grammar = MAKERS[seed % len(MAKERS)](seed)
            if seed % 3 == 0:
                grammar = replace(grammar, conflicts="shift")
            store = compile_store(grammar, random_vocabulary(grammar, seed, 20))
            if store.is_closed:
                found.append(store)
        except MaskwrightError:
            pass
        seed += 1
    return found
