"""What a slot costs, in places read: ends of blocks are remembered, rows are looked up once, and a slot has the size that is told.

Counted where the engine runs as plain Python, in processes of their own, over arrays that count.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from mask_bits import ids, row
from numba.core import config
from paths import ROOT

from maskwright.decoding.engine import _end_kernels as end_kernels
from maskwright.decoding.engine import constants
from maskwright.decoding.gpu.devices import is_simulated
from maskwright.decoding.gpu.gpu import GpuBatch
from maskwright.maskstore.table import schema
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")

DOCS = ROOT / "docs" / "gpu.md"
IS_PLAIN = bool(vars(config)["DISABLE_JIT"])
plain_only = pytest.mark.skipif(
    not IS_PLAIN or is_simulated(), reason="counts in plain Python; run by tests/test_plain_kernels.py"
)
simulated_only = pytest.mark.skipif(not is_simulated(), reason="counts in the simulator; run by test_gpu_simulated.py")

LINES = r"""
start: (NAME _NEWLINE | "if" ":" _NEWLINE _INDENT start _DEDENT)+
NAME: /[ab]+/
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""
TRIES = r"""
start: (st | _NEWLINE)*
st: NAME _NEWLINE | "if" ":" block | "try" ":" block "or" ":" block
block: _NEWLINE _INDENT st+ _DEDENT
NAME: /[ab]+/
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""
HEADS = r"""
start: st+
st: NAME _NEWLINE | head st+ _DEDENT | head st+ _DEDENT "or"
head: ("if" | "try") ":" _NEWLINE _INDENT
NAME: /[ab]+/
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""
"""Here the frame of the indent is popped as soon as it is there, while the block is open."""

PARITY = r"""
start: st+
st: NAME _NEWLINE | open "p" "p" odd tail | open "p" "p" even tail "or"
open: "if" ":" _NEWLINE _INDENT NAME "."
odd: NAME _NEWLINE | even NAME _NEWLINE
even: odd NAME _NEWLINE
tail: NAME _NEWLINE _DEDENT
NAME: /[ab]+/
_NEWLINE: /(\n[ \t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""
"""Where the frame of the indent was, there is one that changes with each line, and the end of the block goes back to just that one."""


class Counted(np.ndarray):
    """An array that counts how often its places are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        Counted.reads += 1
        return super().__getitem__(index)


def lines_store(text: str = LINES) -> Store:
    return compile_store(longest(text), vocabulary_of(b"if:\n", b"a\n", b" " * 8, singles=b"ab:\n iftryop."))


def nested(matcher: Any, depth: int) -> None:
    """Blocks in blocks, a line in each, and the blanks of the next line of the innermost."""
    for d in range(depth):
        matcher.advance_bytes(b"a\n" + b" " * d + b"if:\n" + b" " * (d + 1))


def reads_of_ends(store: Store, depth: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Places read to see whether all blocks may be closed, for the masks of a line at some depth, in a slot and on the CPU."""
    counts: list[int] = []
    close_blocks = end_kernels.close_blocks

    def counted(table: Any, memory: Any, region: Any) -> Any:
        Counted.reads = 0
        answer = close_blocks(table.view(Counted), memory.view(Counted), region)
        counts.append(Counted.reads)
        return answer

    matcher = store.matcher(0)
    nested(matcher, depth)
    batch = GpuBatch(store, 1, "cpu", n_records=1024, n_deep=0)
    batch.admit([0], [matcher])
    assert batch._memory[int(batch._regions[0]) + constants.HISTORY_AT] == 1, "the text is settled"
    found = (0, 0)
    for _ in range(3):
        here: list[int] = []
        there: list[int] = []
        for data in (b"a", b"\n", *([b" " * 8] * (depth // 8)), *([b" "] * (depth % 8))):
            token = store.vocabulary.tokens.index(data)
            batch.advance([token])
            matcher.advance(token)
            with monkeypatch.context() as patch:
                patch.setattr(end_kernels, "close_blocks", counted)
                counts.clear()
                batch.find_rows()
                here += counts
                counts.clear()
                words = row(matcher)
                there += counts
            assert ids(batch.words.numpy().view(np.uint32)[0]) == words
        assert len(here) >= len(there) > 0
        found = (max(here), max(there))
    return found


@plain_only
def test_open_blocks_cost_a_slot_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came of closing a block is remembered, as on the CPU: all of them were closed anew for each mask, at 107 places a block."""
    store = lines_store()
    few, many = reads_of_ends(store, 3, monkeypatch), reads_of_ends(store, 43, monkeypatch)
    assert many[1] == few[1], "on the CPU"
    assert many[0] == few[0] <= many[1] + 5, "in a slot"


@simulated_only
def test_a_row_is_looked_up_once_for_all_of_its_words() -> None:
    singles = bytes(range(256))
    vocabulary = vocabulary_of(*(b"x" * n for n in range(2, 400)), singles=singles)
    store = compile_store(longest('start: ("x" | "(" start ")")*'), vocabulary)
    batch = GpuBatch(store, 1, "cpu", n_deep=0)
    batch.admit([0])
    batch.advance([ord("(")])
    batch.find_rows()
    table = batch._arguments["write"][0]
    table._ary = table._ary.view(Counted)
    region = int(batch._regions[0])
    masks = batch._memory[region + constants.COLLECTED :][: int(batch._memory[region + constants.N_COLLECTED])].tolist()
    beside = sum(int(store.table[store.table[schema.MASKS] + 3 * mask + 2]) for mask in masks)
    assert store.n_words > 15 and masks
    Counted.reads = 0
    batch._run("write")
    # a word of each row; each of three threads looks the masks and their ids up
    assert 0 < Counted.reads <= len(masks) * store.n_words + beside + 3 * (5 * len(masks) + 5)


@pytest.mark.parametrize("text", [LINES, TRIES, HEADS], ids=["lines", "tries", "heads"])
@pytest.mark.parametrize("seed", range(4))
def test_what_blocks_remember_is_right(text: str, seed: int) -> None:
    """Lines in many blocks, closed one by one and several at once. A matcher that has just read the text remembers nothing."""
    store, rng = lines_store(text), random.Random(seed)
    eos = set(store.vocabulary.eos)
    batch = GpuBatch(store, 2, "cpu", n_records=512, n_deep=0)
    batch.admit([0, 1])
    texts = [b"", b""]
    n_ends = 0
    for _ in range(300):
        batch.find_rows()
        for slot in (0, 1):
            found = ids(batch.words.numpy().view(np.uint32)[slot])
            fresh = store.matcher(0)
            fresh.advance_bytes(texts[slot])
            assert found == row(fresh), texts[slot]
            n_ends += bool(found & eos)
            token = rng.choice(sorted(found - eos))
            texts[slot] += store.vocabulary.tokens[token]
            batch.advance([token, -1] if slot == 0 else [-1, token])
    assert batch.states() == ["reading"] * 2 and n_ends > 3


def test_what_a_block_remembers_goes_with_the_frame_of_its_indent() -> None:
    store = lines_store(PARITY)
    batch = GpuBatch(store, 1, "cpu", n_records=512, n_deep=0)
    batch.admit([0])
    text, may_end = b"", []
    for byte in b"if:\n a.ppa\n" + b" b\n" * 7:
        batch.advance([store.vocabulary.tokens.index(bytes([byte]))])
        batch.find_rows()
        text += bytes([byte])
        matcher = store.matcher(0)
        matcher.advance_bytes(text)
        found = ids(batch.words.numpy().view(np.uint32)[0])
        assert found == row(matcher), text
        if text.endswith(b"b\n"):
            may_end.append(store.vocabulary.eos[0] in found)
    assert may_end == [True, False, True, False, True, False, True]


def test_a_slot_has_the_size_that_is_told() -> None:
    text = DOCS.read_text(encoding="utf-8")
    told = {int(number) for number in re.findall(r"(\d+)\s+KB", text)}
    plain = compile_store(longest('start: "x" start | "x"'), vocabulary_of(b"x"))
    ambiguous = compile_store(
        longest('// maskwright: conflicts = all\nstart: s*\ns: "x" | "x" "x" | "(" start ")"'), vocabulary_of(b"x")
    )
    sizes = [GpuBatch(store, 1, "cpu", n_deep=0).slot_bytes for store in (plain, ambiguous)]
    assert {round(size / 1000) for size in sizes} <= told
    assert sizes[1] - sizes[0] == 4 * 5 * constants.MAX_STACKS
    for size, store in zip(sizes, (plain, ambiguous), strict=True):
        ten, one = (GpuBatch(store, n, "cpu", n_deep=0).nbytes for n in (10, 1))
        assert 0 <= (ten - one) / 9 - size < 100, "a slot's region is nearly all that it takes"
