"""Slots on a device: the rows of a batch of matchers at every step, whatever is admitted, evicted, flagged or moved.

The device here is the CPU, where the functions of the GPU's kernels run in a loop; `test_gpu_simulated.py` runs the kernels themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from engine_cases import longest, random_layout_grammar, random_longest_grammar, random_vocabulary, vocabulary_of
from mask_bits import ids, row
from paths import ROOT
from shares import share

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError
from maskwright.analysis.kernel_sources import checksum, sources
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone
from maskwright.decoding.engine.constants import INDENT_ZONE
from maskwright.decoding.gpu.devices import is_simulated
from maskwright.decoding.gpu.gpu import STATES, GpuBatch
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

NESTED = 'start: "(" start ")" | "x" | "[" start'
AMBIGUOUS = '// maskwright: conflicts = all\nstart: s*\ns: "x" | "x" "x" | "(" start ")"'
LINES = """
start: (NAME _NEWLINE | "if" ":" _NEWLINE _INDENT start _DEDENT)+
NAME: /[ab]+/
_NEWLINE: /(\\n[ \\t]*)+/
%declare _INDENT _DEDENT
%ignore " "
"""


@cache
def random_store(kind: str, seed: int) -> Store:
    grammar = {"plain": random_longest_grammar, "layout": random_layout_grammar}[kind](seed)
    return compile_store(grammar, random_vocabulary(grammar, seed))


@cache
def store_of(text: str, *tokens: bytes) -> Store:
    return compile_store(longest(text), vocabulary_of(*tokens))


def nested() -> Store:
    return store_of(NESTED, b"(", b")", b"[", b"x", b"((((", b"))))", b"()")


def rows(batch: GpuBatch) -> list[set[int]]:
    batch.find_rows()
    return [ids(each) for each in batch.words.numpy().view(np.uint32)]


CASES = [case for kind in ("plain", "layout") for case in share([(kind, seed, 90) for seed in range(14)], 3)]
CASES += [("layout", 1, 20)]  # for the simulator


@pytest.mark.parametrize("kind, seed, n_steps", CASES)
def test_rows_are_those_of_matchers(kind: str, seed: int, n_steps: int) -> None:
    """Random texts, illegal tokens, ends, evictions and admissions at the start and in the middle of texts."""
    store = random_store(kind, seed)
    rng = random.Random(seed)
    size = 5
    eos = set(store.vocabulary.eos)
    batch = GpuBatch(store, size, "cpu", n_records=1024, n_deep=1, deep_records=8192)
    matchers: list[Matcher | None] = [None] * size
    flagged = ended = admitted = 0
    for _ in range(n_steps):
        found = rows(batch)
        states = batch.states()
        for slot, matcher in enumerate(matchers):
            if matcher is None:
                assert found[slot] == eos
            elif states[slot] == "dead end":
                with pytest.raises(DeadEndError):
                    row(matcher)
                assert found[slot] == eos
            elif states[slot] in ("illegal token", "token out of range", "ended too early"):
                assert found[slot] == eos
            elif matcher.is_finished():
                assert (states[slot], found[slot]) == ("ended", eos)
            else:
                assert states[slot] == "reading"
                assert found[slot] == row(matcher)
        tokens = []
        for slot, matcher in enumerate(matchers):
            if matcher is None or rng.random() < 0.1:
                tokens.append(-1)
            elif states[slot] != "reading" or rng.random() > 0.03:
                tokens.append(rng.choice(sorted(found[slot])))
            else:
                tokens.append(rng.randrange(store.vocabulary.size + 2))
        batch.advance(np.array(tokens))
        after = batch.states()
        for slot, (matcher, token) in enumerate(zip(matchers, tokens, strict=True)):
            if matcher is None or token == -1 or states[slot] != "reading":
                assert after[slot] == states[slot]
                continue
            try:
                matcher.advance(token)
                assert after[slot] == ("ended" if matcher.is_finished() else "reading")
                ended += matcher.is_finished()
            except IllegalTokenError:
                assert after[slot] not in ("reading", "ended", "idle")
                flagged += 1
        gone = [slot for slot in range(size) if rng.random() < 0.04]
        batch.evict(gone)
        for slot in gone:
            matchers[slot] = None
        for slot in range(size):
            if after[slot] != "reading" or slot in gone:
                if rng.random() < 0.4:
                    matcher = store.matcher()
                    for _ in range(rng.randrange(6)):
                        choices = sorted(row(matcher) - eos)
                        if choices:
                            matcher.advance(rng.choice(choices))
                    batch.admit([slot], [matcher])
                    admitted += 1
                    matchers[slot] = matcher
                else:
                    batch.reset([slot])
                    matchers[slot] = store.matcher()
    assert admitted and flagged + ended


def test_deep_texts_move_to_a_deep_region_and_the_overflow_is_flagged() -> None:
    store = nested()
    batch = GpuBatch(store, 3, "cpu", n_records=2 * INDENT_ZONE, n_deep=1, deep_records=1200)
    batch.admit([0, 1, 2])
    matcher = store.matcher(0)
    opening = 4
    full: dict[int, int] = {}
    for step in range(400):
        batch.advance([opening, opening, -1])
        matcher.advance(opening)
        found, states = rows(batch), batch.states()
        for slot in (0, 1):
            if states[slot] == "no room":
                full.setdefault(slot, step)
                assert found[slot] == set(store.vocabulary.eos)
            else:
                assert found[slot] == row(matcher)
        assert states[2] == "reading"
    assert sorted(full) == [0, 1], "one had the deep region, and filled it at last"
    assert abs(full[0] - full[1]) > 100
    # the text is as it was before the token: it goes on elsewhere
    for slot in (0, 1):
        taken = batch.fetch(slot)
        assert int(batch.lengths[slot]) == full[slot]
        taken.advance(opening)
        assert row(taken) == row(matcher)
        ending = taken.shortest_ending()
        assert ending.data.count(b")") == 4 * (full[slot] + 1)
    # an evicted slot's deep region serves another, and a text deeper than all regions is flagged
    batch.evict([0, 1])
    half = store.matcher(0)
    for _ in range(60):
        half.advance(opening)
    batch.admit([2, 1], [half, matcher])
    assert batch.states() == ["idle", "no room", "reading"]
    assert rows(batch)[2] == row(half)


def test_without_deep_regions() -> None:
    batch = GpuBatch(nested(), 1, "cpu", n_records=2 * INDENT_ZONE, n_deep=0)
    batch.admit([0])
    for _ in range(60):
        batch.advance([4])
    assert batch.states() == ["no room"]


def test_several_stacks_are_collected_when_they_fill_the_region() -> None:
    store = store_of(AMBIGUOUS, b"x", b"xxx", b"(", b")", b"x(x", b"))")
    batch = GpuBatch(store, 2, "cpu", n_records=512, n_deep=0)
    batch.admit([0, 1])
    matchers = [store.matcher(0), store.matcher(0)]
    rng = random.Random(3)
    most = 0
    for _ in range(300):
        found = rows(batch)
        tokens = []
        for slot, matcher in enumerate(matchers):
            assert found[slot] == row(matcher)
            depth = max(len(stack) for stack in matcher.text.stacks())
            most = max(most, len(matcher.text.stacks()))
            choices = [t for t in sorted(found[slot]) if t not in store.vocabulary.eos and (t != 2 or depth < 12)]
            tokens.append(rng.choice(choices))
            matcher.advance(tokens[-1])
        batch.advance(np.array(tokens))
    assert batch.states() == ["reading"] * 2
    assert most > 1


def test_many_open_indents() -> None:
    """More than the zone of a settled text holds."""
    store = store_of(LINES, b"if:", b"\n", b" ", b"a")
    batch = GpuBatch(store, 1, "cpu", n_records=2048, n_deep=0)
    batch.admit([0])
    matcher = store.matcher(0)
    for depth in range(INDENT_ZONE + 20):
        for token in (0, 1, *([2] * (depth + 1))):
            batch.advance([token])
            matcher.advance(token)
        assert rows(batch)[0] == row(matcher), depth
    again = GpuBatch(store, 1, "cpu", n_records=2048, n_deep=0)
    again.admit([0], [matcher])
    for token in (3, 1, 2, 2, 3):
        for each in (batch, again):
            each.advance([token])
        matcher.advance(token)
        assert rows(batch)[0] == rows(again)[0] == row(matcher)


def test_a_fetched_matcher_goes_on() -> None:
    store = random_store("layout", 1)
    assert store is not None
    batch = GpuBatch(store, 1, "cpu")
    batch.admit([0])
    rng = random.Random(1)
    for _ in range(40):
        choices = sorted(rows(batch)[0] - set(store.vocabulary.eos))
        if not choices:
            break
        batch.advance([rng.choice(choices)])
        taken = batch.fetch(0, max_rollback=2)
        assert row(taken) == rows(batch)[0]
    assert int(batch.lengths[0]) > 10
    assert taken.is_accepting() == (taken.shortest_ending().data == b"")


def test_apply_masks_the_rows_and_leaves_idle_slots_alone() -> None:
    store = nested()
    batch = GpuBatch(store, 3, "cpu")
    batch.admit([0, 2])
    batch.advance([0, -1, 3])
    batch.find_rows()
    logits = torch.randn(3, store.vocabulary.size + 5)
    before = logits.clone()
    batch.apply(logits)
    assert torch.equal(logits[1], before[1])
    for slot, allowed in ((0, {0, 2, 3, 4}), (2, set(store.vocabulary.eos))):
        kept = set(torch.isfinite(logits[slot]).nonzero().ravel().tolist())
        assert kept == allowed
        assert torch.equal(logits[slot, sorted(kept)], before[slot, sorted(kept)])


def test_a_flag_stays_until_the_slot_is_admitted_again() -> None:
    store = nested()
    batch = GpuBatch(store, 2, "cpu")
    batch.admit([0, 1])
    batch.advance([1, 0])
    assert batch.states() == ["illegal token", "reading"]
    batch.advance([0, 3])
    assert batch.states() == ["illegal token", "reading"]
    assert batch.lengths.tolist() == [0, 2]
    with pytest.raises(IllegalTokenError, match="not legal here"):
        batch.fetch(0).advance(1)
    batch.reset([0])
    assert batch.states() == ["reading", "reading"]
    assert batch.lengths.tolist() == [0, 2]


def sampled(logits: Any, rng: random.Random) -> Any:
    """The end of the text where it may end, else anything that is left."""
    eos = nested().vocabulary.eos[0]
    kept = [torch.isfinite(one).nonzero().flatten().tolist() for one in logits]
    return torch.tensor([eos if eos in each else rng.choice(each) for each in kept])


@pytest.mark.parametrize("size", [64, 8])  # the few for the simulator
def test_the_documented_loop_goes_on_after_the_end_of_a_text(size: int) -> None:
    """Slots are reset, admitted and evicted where an end of text, or any token, was sampled for the text before."""
    text = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    (code,) = (block for block in text.split("```python")[1:] if "batch.prepare()" in block)
    code = (
        code.split("graph = ")[0]
        .replace('"cuda"', '"cpu"')
        .replace("GpuBatch(store, 64)", 'GpuBatch(store, 64, "cpu")')
        .replace("64", str(size))
    )
    rng, store = random.Random(5), nested()
    names: dict[str, Any] = {
        "mw": SimpleNamespace(GpuBatch=GpuBatch),
        "torch": torch,
        "store": store,
        "model_step": lambda inputs: torch.zeros(size, store.vocabulary.size + 1),
        "sample": lambda logits: sampled(logits, rng),
    }
    exec(code, names)
    batch, step = names["batch"], names["step"]
    n_ended = 0
    for _ in range(60):
        step()
        states = batch.states()
        assert set(states) <= {"reading", "ended", "idle"}
        ended = [slot for slot, state in enumerate(states) if state == "ended"]
        n_ended += len(ended)
        batch.reset(ended[::2])
        batch.evict(ended[1::2])
        idle = [slot for slot, state in enumerate(states) if state == "idle"]
        begun = store.matcher()
        begun.advance_bytes(b"((")
        batch.admit(idle, [begun] * len(idle))
        reading = [slot for slot, state in enumerate(states) if state == "reading"][:3]
        batch.reset(reading)  # in the middle of a text: the token sampled for it is not read
        assert batch.lengths[[*ended, *idle, *reading]].tolist() == [0] * len(ended + idle + reading)
    assert n_ended > 1.5 * size


@pytest.mark.parametrize("how", ["reset", "admit", "evict"])
def test_a_new_text_does_not_read_what_was_sampled_for_the_old(how: str) -> None:
    store = nested()
    batch = GpuBatch(store, 2, "cpu")
    batch.admit([0, 1])
    batch.advance([3, 0])
    batch.tokens.copy_(torch.tensor([store.vocabulary.eos[0], 0]))
    batch.advance()
    assert batch.states() == ["ended", "reading"]
    if how == "evict":
        batch.evict([0, 1])
        batch.admit([1, 0])
    else:
        getattr(batch, how)([0, 1])
    assert batch.tokens.tolist() == [-1, -1]
    batch.prepare()
    assert batch.states() == ["reading"] * 2 and batch.lengths.tolist() == [0, 0]
    batch.prepare([0, -1])  # what is given is read, in a new text too
    assert batch.lengths.tolist() == [1, 0]
    with pytest.raises(MaskwrightError, match=r"tokens have shape \(1,\)"):
        batch.prepare([0])


@pytest.mark.skipif(is_simulated(), reason="nothing is compiled")
def test_machine_code_is_kept_under_the_checksum_of_what_it_is_made_of() -> None:
    """Or each process would compile for a minute, or run what an older engine was compiled to."""
    engine_cuda = pytest.importorskip("maskwright.decoding.gpu.engine_cuda")
    root = ROOT
    made_of = {Path(path).resolve().relative_to(root).as_posix() for path in sources(engine_cuda.__file__)}
    engine = {f"decoding/engine/_{name}_kernels.py" for name in ("draft", "end", "lexer", "mask", "stack", "text")}
    assert made_of >= engine | {
        "decoding/engine/constants.py",
        "decoding/gpu/_slot_kernels.py",
        "maskstore/table/schema.py",
        "maskstore/table/_table_kernels.py",
        "analysis/lr/encoding.py",
        "analysis/lexing/encoding.py",
    }
    found = checksum(engine_cuda.__file__)
    for name in ("advance", "find", "write", "begin", "load"):
        kernel = getattr(engine_cuda, name)
        assert [cell.cell_contents for cell in kernel.py_func.__closure__] == [found]
        assert type(kernel._cache).__name__ == "CUDACache"


def test_held_tokens() -> None:
    batch = GpuBatch(nested(), 1, "cpu", held=[3, 1])
    assert rows(batch) == [{1, 3}]
    without = compile_store(longest('start: "a"'), Vocabulary("endless", (b"a",), {}, ()))
    with pytest.raises(MaskwrightError, match="no end-of-text token, so held must name"):
        GpuBatch(without, 1, "cpu")
    with pytest.raises(MaskwrightError, match="expected ids from 0 to"):
        GpuBatch(nested(), 1, "cpu", held=[99])


def test_every_result_has_a_name() -> None:
    codes = {value for name, value in vars(constants).items() if name.isupper() and isinstance(value, int)}
    assert set(STATES) <= codes
    assert len(set(STATES.values())) == len(STATES)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"size": 0}, "size is 0"),
        ({"size": 1, "n_records": 10}, "n_records 10"),
        ({"size": 1, "n_deep": -1}, "n_deep -1"),
        ({"size": 1, "deep_records": 100}, "deep regions larger than the others"),
        ({"size": 1, "device": "meta"}, "expected cuda or cpu"),
        ({"size": 1, "device": "nowhere"}, "'nowhere' is not a device"),
        ({"size": 1, "device": 1.5}, "1.5 is not a device"),
    ],
)
def test_bad_sizes_and_devices(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskwrightError, match=message):
        GpuBatch(nested(), **{"device": "cpu", **arguments})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda_device() -> None:
    with pytest.raises(
        MaskwrightError, match=r"there is no CUDA device here that PyTorch .* can use; give device='cpu'"
    ):
        GpuBatch(nested(), 1)


def test_bad_calls() -> None:
    batch = GpuBatch(nested(), 2, "cpu")
    with pytest.raises(MaskwrightError, match=r"tokens have shape \(3,\)"):
        batch.advance([0, 1, 2])
    with pytest.raises(MaskwrightError, match="expected 2 integers"):
        batch.advance(torch.zeros(2))
    with pytest.raises(MaskwrightError, match=r"logits have shape \(2, 3\)"):
        batch.apply(torch.zeros(2, 3))
    with pytest.raises(MaskwrightError, match="logits are a ndarray"):
        batch.apply(np.zeros((2, 40), np.float32))
    with pytest.raises(MaskwrightError, match="slot 2 is out of range: the batch has the slots 0 to 1"):
        batch.admit([0, 1, 2])
    with pytest.raises(MaskwrightError, match="name a slot twice"):
        batch.evict([1, 1])
    with pytest.raises(MaskwrightError, match="1 matchers are given for 2 slots"):
        batch.admit([0, 1], [nested().matcher()])
    with pytest.raises(MaskwrightError, match="a matcher belongs to a different store"):
        batch.admit([0], [store_of('start: "x"', b"x").matcher()])


def test_one_thread_at_a_time() -> None:
    batch = GpuBatch(nested(), 1, device="cpu")
    batch.reset([0])
    logits = torch.zeros(1, batch.store.vocabulary.size)
    calls = [
        batch.advance, batch.find_rows, batch.prepare, lambda: batch.apply(logits), lambda: batch.reset([0]), lambda: batch.evict([0]),
        lambda: batch.fetch(0),
    ]  # fmt: skip
    for call in calls:
        batch._is_busy = True  # as inside another thread's call
        with pytest.raises(MaskwrightError, match=r"this batch is in use by another thread.*: GpuBatch\(store, size\)"):
            call()
        batch._is_busy = False
        call()


GPU_CALLS: list[Callable[[GpuBatch], object]] = [
    lambda b: b.advance([-1, -1]),
    lambda b: b.find_rows(),
    lambda b: b.prepare(),
    lambda b: b.apply(torch.zeros(2, b.store.vocabulary.size)),
    lambda b: b.admit([1]),
    lambda b: b.reset([1]),
    lambda b: b.evict([1]),
    lambda b: b.states(),
    lambda b: b.fetch(1),
]


def test_a_second_thread_is_refused() -> None:
    """While a call has not returned every other one is an error, and changes nothing."""
    batch = GpuBatch(nested(), 2, device="cpu")
    batch.admit([0, 1])
    before = batch.states(), batch.lengths.tolist()
    with Alone(batch):
        for call in GPU_CALLS:
            with pytest.raises(MaskwrightError, match=r"^this batch is in use by another thread"):
                call(batch)
    assert (batch.states(), batch.lengths.tolist()) == before
    for call in GPU_CALLS:
        call(batch)
