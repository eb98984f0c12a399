"""What a table claims: look-ups, roots, nodes, edges and masks, read from the table.

This is what `verify` checks. Masks are bits, first of tokens, then of classes of tokens.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.reading import Move
from maskwright.maskstore.verify.trusted import Int32, run_of

Ints = npt.NDArray[np.int64]
LineBreaks = tuple[tuple[tuple[int, ...], Move], ...]
"""Symbols read before a newline, and what the token does to its column; one for each newline."""


class Lookup(NamedTuple):
    """A question of a lexer state: line breaks, a root (0 for none), and a mask's number."""

    line_breaks: LineBreaks
    root: int
    own: int


class Claims:
    """The stack automaton of a table.

    n_roots, n_nodes, n_masks, n_tokens : as in the table.
    """

    def __init__(self, table: Int32) -> None:
        self._table = table
        self._n_cells = int(table[schema.N_STATES])
        self.n_tokens = int(table[schema.N_TOKENS])
        self.n_roots, self.n_nodes = int(table[schema.N_ROOTS]), int(table[schema.N_NODES])
        self.n_masks = int(table[schema.N_MASKS])
        self._roots: list[list[int]] = run_of(table, schema.ROOTS, self.n_roots, self._n_cells).tolist()
        self._nodes: list[list[int]] = run_of(table, schema.NODES, self.n_nodes - self.n_roots - 1, 2).tolist()
        n_pairs = (int(table[schema.ROOTS]) - int(table[schema.EDGE_PAIRS])) // 2
        self._pairs: list[list[int]] = run_of(table, schema.EDGE_PAIRS, n_pairs, 2).tolist()
        self._edges = self._read_edges(int(table[schema.N_EDGE_SLOTS]))
        self._others: dict[int, set[int]] = defaultdict(set)
        for key, number in self._edges.items():
            self._others[key // self._n_cells].add(number)
        self._lookups = self._read_lookups(int(table[schema.N_LEXER_STATES]))

    def lookups(self, state: int, depth: int) -> list[Lookup]:
        """The look-ups of a lexer state while some brackets are open."""
        cases = self._lookups[state]
        return cases[min(depth, len(cases) - 1)]

    def n_depth_cases(self, state: int) -> int:
        """How many numbers of open brackets the table tells apart in a lexer state."""
        return len(self._lookups[state])

    def edge(self, node: int, cell: int) -> tuple[int, int]:
        """The node that an edge leads to, and its mask's number. node : not 0."""
        if node <= self.n_roots:
            pair = self._roots[node - 1][cell]
        else:
            pair, has_others = self._nodes[node - self.n_roots - 1]
            if has_others:
                pair = self._edges.get(node * self._n_cells + cell, pair)
        target, mask = self._pairs[pair]
        return target, mask

    def pairs_of(self, node: int) -> set[tuple[int, int]]:
        """The targets and masks of all edges of a node. node : not 0."""
        is_root = node <= self.n_roots
        found = self._roots[node - 1] if is_root else [self._nodes[node - self.n_roots - 1][0], *self._others[node]]
        return {(self._pairs[pair][0], self._pairs[pair][1]) for pair in found}

    def _read_edges(self, n_slots: int) -> dict[int, int]:
        """The edges that a search in the hash table finds."""
        keys, values = run_of(self._table, schema.EDGES, n_slots, 2).T.tolist() if n_slots else ([], [])
        found: dict[int, int] = {}
        for key in dict.fromkeys(key for key in keys if key >= 0):
            at = _slot(key, n_slots)
            while keys[at] != key and keys[at] >= 0:
                at = at + 1 if at + 1 < n_slots else 0
            if keys[at] == key:
                found[key] = values[at]
        return found

    def _read_lookups(self, n_states: int) -> list[list[list[Lookup]]]:
        table = self._table
        cases = run_of(table, schema.DEPTH_CASE_START, n_states + 1).tolist()
        starts = run_of(table, schema.LOOKUP_START, cases[-1] + 1).tolist()
        rows = run_of(table, schema.LOOKUPS, starts[-1], 3).tolist()
        breaks = self._read_line_breaks()
        lookups = [Lookup(breaks[number], root, own) for number, root, own in rows]
        by_case = [lookups[first:last] for first, last in pairwise(starts)]
        return [by_case[first:last] for first, last in pairwise(cases)]

    def _read_line_breaks(self) -> list[LineBreaks]:
        table = self._table
        n_lists = int(table[schema.LINE_BREAKS]) - int(table[schema.LINE_BREAKS_START]) - 1
        starts = run_of(table, schema.LINE_BREAKS_START, n_lists + 1).tolist()
        symbols = int(table[schema.LINE_BREAK_SYMBOLS])
        found = [
            (tuple(table[symbols + begin : symbols + end].tolist()), _normal(Move(kind, wide, narrow)))
            for begin, end, kind, wide, narrow in run_of(table, schema.LINE_BREAKS, starts[-1], 5).tolist()
        ]
        return [tuple(found[first:last]) for first, last in pairwise(starts)]

    def token_bits(self) -> list[npt.NDArray[np.bool_]]:
        """For each row of MASKS' rows which tokens it has: (n_tokens,) bool."""
        n_words = int(self._table[schema.N_WORDS])
        n_rows = (int(self._table[schema.MASK_IDS]) - int(self._table[schema.ROWS])) // max(1, n_words)
        rows = run_of(self._table, schema.ROWS, n_rows, n_words)
        return [
            np.unpackbits(row.astype("<i4").view(np.uint8), bitorder="little")[: self.n_tokens].astype(np.bool_)
            for row in rows
        ]

    def ids_beside(self) -> tuple[Ints, Ints]:
        """The tokens that masks have beside their rows, each once: masks and tokens, sorted."""
        masks = run_of(self._table, schema.MASKS, self.n_masks, 3).astype(np.int64)
        which = np.repeat(np.arange(self.n_masks), masks[:, 2])
        first = np.cumsum(masks[:, 2]) - masks[:, 2]
        at = int(self._table[schema.MASK_IDS]) + masks[:, 1][which] + np.arange(len(which)) - first[which]
        both = np.unique(which * max(1, self.n_tokens) + self._table[at])
        return both // max(1, self.n_tokens), both % max(1, self.n_tokens)

    def row_of_masks(self) -> list[int]:
        """For each mask its row, -1 for none."""
        rows: list[int] = run_of(self._table, schema.MASKS, self.n_masks, 3)[:, 0].tolist()
        return rows


def _normal(move: Move) -> Move:
    """A move with columns from a form feed as one with columns from a line feed."""
    return move if move.kind >= -1 else Move(-3, move.wide, move.narrow)


def _slot(key: int, n_slots: int) -> int:
    """Where the search for a key of the hash table of edges begins."""
    return ((key * 0x9E3779B1 & 0xFFFFFFFF) * n_slots) >> 32


class Masks:
    """The masks of a table as bits of classes of tokens.

    Tokens are of one class if they are of one group everywhere and no mask tells them apart.

    class_of : (n_tokens,) int64; the class of each token. size : how many tokens each has.
    """

    def __init__(self, claims: Claims, groups: Ints) -> None:
        """groups : (n_tokens,) int64; tokens of one number ask the same everywhere."""
        self._rows = claims.token_bits()
        self._masks, self._tokens = claims.ids_beside()
        self._row_of_mask = claims.row_of_masks()
        self._bits: dict[int, int] = {}
        self._number(claims, groups, np.random.default_rng(0))
        while not self._is_exact():  # a file may be made so that signatures of known numbers are alike
            self._number(claims, groups, np.random.default_rng())

    def _number(self, claims: Claims, groups: Ints, rng: np.random.Generator) -> None:
        """Make a class of tokens of one signature, the xor of random numbers of what has them."""
        signature = np.zeros((2, len(groups)), np.int64)
        for row in self._rows:
            signature[:, row] ^= rng.integers(0, 1 << 63, (2, 1), np.int64)
        of_mask = rng.integers(0, 1 << 63, (2, max(1, claims.n_masks)), np.int64)
        for each, number in zip(signature, of_mask, strict=True):
            np.bitwise_xor.at(each, self._tokens, number[self._masks])
        columns = np.stack([groups, *signature])
        _, first, number = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        self.class_of = number.reshape(-1).astype(np.int64)
        self.size = np.bincount(self.class_of)
        self._representative = first

    def _is_exact(self) -> bool:
        """Whether each row and each list of ids is a union of classes."""
        for row in self._rows:
            if not np.array_equal(row[self._representative][self.class_of], row):
                return False
        n = len(self.size)
        keys, counts = np.unique(self._masks * n + self.class_of[self._tokens], return_counts=True)
        return np.array_equal(self.size[keys % n], counts)

    def bits(self, mask: int) -> int:
        """A mask as bits of classes."""
        found = self._bits.get(mask)
        if found is None:
            classes = np.zeros(len(self.size), np.bool_)
            row = self._row_of_mask[mask]
            if row >= 0:
                classes |= self._rows[row][self._representative]
            first, last = np.searchsorted(self._masks, [mask, mask + 1])
            classes[self.class_of[self._tokens[first:last]]] = True
            found = self._bits[mask] = to_bits(classes)
        return found

    def tokens(self, bits: int) -> list[int]:
        """The tokens of some classes, ascending."""
        chosen = np.zeros(len(self.size), np.bool_)
        chosen[members(bits)] = True
        found: list[int] = np.flatnonzero(chosen[self.class_of]).tolist()
        return found


def to_bits(flags: npt.NDArray[np.bool_]) -> int:
    """Flags as the bits of an integer, the first the lowest."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def members(bits: int) -> list[int]:
    """The positions of the one bits, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
