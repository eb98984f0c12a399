"""Store files of kind "entries": the arrays of an `EntryTable`.

What is read is checked so that no value can lead a decoder astray.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.maskstore.damaged import refuse
from maskwright.maskstore.entries.entry_table import NO_CELL, EntryTable
from maskwright.maskstore.file.fileheader import ENTRIES, TENSORS, Content, Header, grammar_facts, members
from maskwright.maskstore.tokens.events import EventCodes, Moves
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import MaskPool, tokens_of

Array = npt.NDArray[Any]


def written(store: EntryTable) -> tuple[dict[str, Any], dict[str, Array]]:
    """The store's own members of the JSON, and its tensors but those of the vocabulary."""
    arrays = {"counts": np.stack(list(store.counts.values()))}
    for name in TENSORS.keys() - arrays.keys():
        group, _, member = name.rpartition(".")
        if group != "vocabulary":
            arrays[name] = getattr(getattr(store, group) if group else store, member)
    facts = {
        "kind": ENTRIES,
        "rules": store.rules,
        "codes": {"n_terminals": store.codes.n_terminals, "n_moves": len(store.codes.moves)},
        "steps": [[step, int(counts.sum(dtype=np.int64))] for step, counts in store.counts.items()],
        **grammar_facts(store.grammar),
    }
    return facts, arrays


def read(file: Content) -> EntryTable:
    """The table in a file.

    Raises: StoreError unless indices are in range and the arrays obey the rules of their classes,
    which are `EntryTable`, `TerminalNfa` and `MaskPool`. It names the tensor, what it holds and
    what was expected.
    Cost: O(total size).
    """
    header, own, arrays = file.header, file.own_vocabulary, file.arrays
    moves = Moves(header.grammar.layout, (own.tokens[i] for i in own.text_ids().tolist()))
    if header.facts["codes"]["n_moves"] != len(moves):
        found = clip(header.facts["codes"]["n_moves"])
        raise refuse(
            file.where,
            f"codes.n_moves is {found}, expected {len(moves)}, the number for the layout and the tokens in the file",
        )
    codes = EventCodes(header.grammar.n_terminals, moves)
    steps = dict(header.facts["steps"])
    check = _Checks(file.where, header.grammar, arrays)
    check.lexer()
    check.sequences(codes)
    check.cells()
    check.masks(own)
    check.counts(steps)
    assert file.grammar is not None  # of this kind each has one
    return EntryTable(
        grammar=file.grammar,
        vocabulary=file.vocabulary,
        nfa=TerminalNfa(**members(arrays, "nfa")),
        codes=codes,
        rules=header.facts["rules"],
        masks=MaskPool(n_tokens=own.size, **members(arrays, "masks")),
        counts=MappingProxyType(dict(zip(steps, arrays["counts"], strict=True))),
        **{name: array for name, array in arrays.items() if "." not in name and name != "counts"},
    )


def info(where: str, header: Header, table: Array | None) -> dict[str, Any]:
    """What a file says about its entries, ready for JSON."""
    facts, sizes = header.facts, header.sizes
    return {
        "rules": facts["rules"],
        "is_streamlined": len(facts["steps"]) > 1,
        "steps": dict(facts["steps"]),
        "lexer_states": sizes["states"],
        "cells": sizes["cells"],
        "entries": sizes["entries"],
        "masks": {"dense": sizes["dense"], "sparse": sizes["sparse"]},
    }


class _Checks:
    def __init__(self, where: str, grammar: Grammar, arrays: Mapping[str, Array]) -> None:
        self.where = where
        self.grammar = grammar
        self.arrays = arrays

    def refuse(self, found: str) -> StoreError:
        return refuse(self.where, found)

    def within(self, name: str, low: int, high: int) -> Array:
        """The tensor. Its values must be low .. high."""
        array = self.arrays[name]
        outside = (array < low) | (array > high)
        if outside.any():
            index = np.unravel_index(int(outside.argmax()), array.shape)
            at = ", ".join(map(str, index))
            raise self.refuse(f"tensor {name} holds {array[index]} at [{at}], expected {low} to {high}")
        return array

    def offsets(self, name: str, of: str) -> Array:
        """The tensor. It must rise, or stay level, from 0 to the length of another tensor."""
        array, end = self.arrays[name], len(self.arrays[of])
        if array[0] != 0 or array[-1] != end or (array[1:] < array[:-1]).any():
            raise self.refuse(f"tensor {name} does not ascend from 0 to {end}, the length of {of}")
        return array

    def ascending(self, name: str, starts: Array) -> None:
        """The tensor must ascend strictly from each start to the next.

        BOUND: the values have been checked to be at least 0, so no difference overflows.
        """
        array = self.arrays[name]
        rises = np.diff(array) > 0
        rises[starts[(starts > 0) & (starts < len(array))] - 1] = True
        if not rises.all():
            at = int(rises.argmin()) + 1
            raise self.refuse(f"tensor {name} does not ascend: {array[at - 1]} is followed by {array[at]} at [{at}]")

    def each_once(self, what: str, contents: list[bytes]) -> None:
        """The contents must be distinct."""
        if len(set(contents)) != len(contents):
            raise self.refuse(f"two {what} are equal, expected each once")

    def each_true(self, holds: Array, describe: Callable[[int], str]) -> None:
        """All must hold; `describe` says of the first index that does not hold what is wrong."""
        if not holds.all():
            raise self.refuse(describe(int(holds.argmin())))

    def lexer(self) -> None:
        n_states = len(self.arrays["nfa.terminal"])
        terminal = self.within("nfa.terminal", 0, self.grammar.n_terminals - 1)
        next_state = self.within("nfa.next_state", -1, n_states - 1)
        initial = self.within("nfa.initial", -1, n_states - 1)
        is_resting = self.arrays["nfa.is_resting"]
        source, byte = np.nonzero(next_state >= 0)
        target = next_state[source, byte]
        self.each_true(
            terminal[target] == terminal[source],
            lambda i: (
                f"tensor nfa.next_state leads from state {source[i]} of terminal {terminal[source[i]]} to state "
                f"{target[i]} of terminal {terminal[target[i]]}, expected the same terminal"
            ),
        )
        self.each_true(
            is_resting[target],
            lambda i: f"tensor nfa.is_resting is 0 for state {target[i]}, which state {source[i]} leads to",
        )
        for number, state in enumerate(initial.tolist()):
            if self.grammar.terminals[number].is_declared != (state < 0):
                expected = "-1, because no text spells it" if state >= 0 else "a state"
                raise self.refuse(f"tensor nfa.initial holds {state} for terminal {number}, expected {expected}")
            if state >= 0 and terminal[state] != number:
                raise self.refuse(
                    f"tensor nfa.initial holds {state} for terminal {number}, a state of terminal {terminal[state]}"
                )

    def sequences(self, codes: EventCodes) -> None:
        symbols = self.within("sequence_symbols", 0, codes.n_symbols - 1)
        starts = self.offsets("sequence_start", "sequence_symbols").tolist()
        if len(starts) < 2 or starts[1] != 0:
            raise self.refuse("sequence 0 is not the empty sequence")
        data = symbols.tobytes()
        size = symbols.itemsize
        self.each_once("sequences", [data[size * a : size * b] for a, b in itertools.pairwise(starts)])

    def cells(self) -> None:
        n_sequences = len(self.arrays["sequence_start"]) - 1
        n_masks = len(self.arrays["masks.dense"]) + len(self.arrays["masks.sparse_start"]) - 1
        n_cells = len(self.arrays["cell_start"]) - 1
        n_states = len(self.arrays["nfa.terminal"])
        starts = self.offsets("cell_start", "entry_sequence")
        self.within("entry_sequence", 0, n_sequences - 1)
        self.ascending("entry_sequence", starts)
        self.within("entry_mask", 0, n_masks - 1)
        self.within("cell_of_last", NO_CELL, n_cells - 1)
        has_cell = self.within("cell_of_state", NO_CELL, n_cells - 1) != NO_CELL
        is_resting = np.append(self.arrays["nfa.is_resting"], True)
        self.each_true(
            has_cell == is_resting,
            lambda i: (
                f"tensor cell_of_state has {'a' if has_cell[i] else 'no'} cell for state {i}, in which "
                f"{'a' if is_resting[i] else 'no'} text can end"
            ),
        )
        dependent = self.within("dependent", 0, n_states - 1)
        self.ascending("dependent", np.zeros(0, np.int64))
        self.each_true(
            is_resting[dependent], lambda i: f"tensor dependent holds state {dependent[i]}, in which no text can end"
        )

    def masks(self, vocabulary: Vocabulary) -> None:
        dense = self.arrays["masks.dense"]
        starts = self.offsets("masks.sparse_start", "masks.sparse_ids")
        ids = self.within("masks.sparse_ids", 0, vocabulary.size - 1)
        has_tokens = np.concatenate([dense.any(axis=1), np.diff(starts) > 0])
        self.each_true(has_tokens, lambda i: f"mask {i} is empty, expected at least one token")
        self.ascending("masks.sparse_ids", starts)
        is_text = np.zeros(32 * dense.shape[1], np.bool_)
        is_text[vocabulary.text_ids()] = True
        allowed = np.packbits(is_text, bitorder="little").view("<u4")
        wrong = dense & ~allowed
        if wrong.any():
            row, bits = next((row, words) for row, words in enumerate(wrong) if words.any())
            token = int(tokens_of(bits)[0])
            self._refuse_token(row, token, vocabulary)
        textless = np.flatnonzero(~is_text[ids])
        if len(textless):
            mask = int(np.searchsorted(starts, textless[0], side="right")) - 1
            self._refuse_token(len(dense) + mask, int(ids[textless[0]]), vocabulary)
        data = ids.tobytes()
        bounds = (starts * ids.itemsize).tolist()
        self.each_once("bitmasks", [row.tobytes() for row in dense])
        self.each_once("sparse masks", [data[a:b] for a, b in itertools.pairwise(bounds)])

    def _refuse_token(self, mask: int, token: int, vocabulary: Vocabulary) -> None:
        why = f"past the last token, {vocabulary.size - 1}" if token >= vocabulary.size else "which stands for no text"
        raise self.refuse(f"mask {mask} allows token {token}, {why}")

    def counts(self, steps: Mapping[str, int]) -> None:
        counts = self.within("counts", 0, np.iinfo(np.int32).max)
        n_resting = int(self.arrays["nfa.is_resting"].sum()) + 1
        if counts.shape[1] != n_resting:
            raise self.refuse(
                f"tensor counts has {counts.shape[1]} columns, expected {n_resting}, one for each resting state"
            )
        for (step, total), row in zip(steps.items(), counts, strict=True):
            found = int(row.sum(dtype=np.int64))
            if found != total:
                raise self.refuse(
                    f"tensor counts has {found} entries after step {clip(step)}, but the metadata says {clip(total)}"
                )
