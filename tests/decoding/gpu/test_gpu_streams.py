"""`GpuBatch` on devices that are not there (`fake_cuda`): what the host waits for, which device is told what, and in which order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from engine_cases import longest, vocabulary_of
from fake_cuda import FakeCuda, FakeNumba, FakeTorch, as_array, kernels
from mask_bits import ids, row

from maskwright.decoding.gpu import devices, gpu
from maskwright.decoding.logits import apply_rows, staging
from maskwright.decoding.matcher import Matcher
from maskwright.stores.build import compile_store

torch = pytest.importorskip("torch")

STORE = compile_store(
    longest('start: "(" start ")" | "x" | "[" start'), vocabulary_of(b"(", b")", b"[", b"x", b"((((", b"))))", b"()")
)
EOS = STORE.vocabulary.eos[0]
OPENING = 4


@pytest.fixture(params=[False, True], ids=["late", "eager"])
def cuda(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCuda]:
    """Two devices; the first is current, and stays it."""
    made = FakeCuda(request.param)
    monkeypatch.setattr(gpu, "need_torch", lambda: FakeTorch(made))
    monkeypatch.setattr(staging, "need_torch", lambda: FakeTorch(made))
    monkeypatch.setattr(devices, "cuda_modules", lambda: (FakeNumba(made), kernels(made)))
    monkeypatch.setattr(gpu, "apply_rows", lambda *given: late_apply(made, *given))
    yield made
    assert made.now == 0


def late_apply(cuda: FakeCuda, logits: Any, row_ids: Any, rows: Any) -> None:
    logits, row_ids, rows = (as_array(each) for each in (logits, row_ids, rows))
    cuda.current_stream("cuda:1").tell(lambda: apply_rows(logits, row_ids, rows))


def batch_of(size: int) -> gpu.GpuBatch:
    return gpu.GpuBatch(STORE, size, "cuda:1", n_records=1024, n_deep=2, deep_records=4096)


def at_random_place(rng: random.Random) -> Matcher:
    matcher = STORE.matcher()
    for _ in range(rng.randrange(40)):
        matcher.advance(rng.choice([0, 2, OPENING]))
    return matcher


class Loop:
    """docs/gpu.md's loop. The sampler, and who checks it, run in the order of the stream; the host sees nothing before it asks."""

    def __init__(self, cuda: FakeCuda, size: int, seed: int) -> None:
        self.cuda, self.rng = cuda, random.Random(seed)
        self.batch = batch_of(size)
        self.logits = cuda.there(torch.zeros((size, STORE.vocabulary.size + 3)), "cuda:1")
        self.twins: list[Matcher | None] = [None] * size
        self.n_checked = 0

    def tell(self, what: Any) -> None:
        self.cuda.current_stream("cuda:1").tell(what)

    def admit(self, slots: list[int], matchers: list[Matcher | None] | None) -> None:
        if matchers is None:
            self.batch.reset(slots)
        else:
            self.batch.admit(slots, matchers)
        twins = [STORE.matcher() if each is None else each.fork() for each in matchers or [None] * len(slots)]

        def begin() -> None:
            for slot, twin in zip(slots, twins, strict=True):
                self.twins[slot] = twin

        self.tell(begin)

    def evict(self, slots: list[int]) -> None:
        self.batch.evict(slots)
        self.tell(lambda: [self.twins.__setitem__(slot, None) for slot in slots])

    def step(self) -> None:
        self.batch.prepare()
        logits, tokens = as_array(self.logits), as_array(self.batch.tokens)
        self.tell(lambda: logits.fill(0.0))  # the forward pass
        self.batch.apply(self.logits)

        def sample() -> None:
            for slot, twin in enumerate(self.twins):
                kept = set(np.flatnonzero(np.isfinite(logits[slot])).tolist())
                if twin is None:
                    tokens[slot] = self.rng.choice([0, EOS])
                    continue
                assert kept == ({EOS} if twin.is_finished() else row(twin)), slot
                tokens[slot] = EOS if EOS in kept else self.rng.choice(sorted(kept))
                if not twin.is_finished():
                    twin.advance(int(tokens[slot]))
                self.n_checked += 1

        self.tell(sample)


@pytest.mark.parametrize("seed", range(3))
def test_the_documented_loop(cuda: FakeCuda, seed: int) -> None:
    """Texts end, and others take their slots, while the host waits for nothing, and device 0 is current."""
    loop = Loop(cuda, 4, seed)
    rng = random.Random(seed)
    loop.admit([0, 1, 2, 3], None)
    n_ended = 0
    for step in range(60):
        before = cuda.n_waits
        loop.step()
        assert cuda.n_waits == before, "a step waited"
        if step % 3:
            continue
        states = loop.batch.states()  # this one waits, and says so
        assert set(states) <= {"reading", "ended", "idle"}
        n_ended += states.count("ended")
        before = cuda.n_waits
        free = [slot for slot, state in enumerate(states) if state != "reading"]
        fresh = [slot for slot in free if rng.random() < 0.4]
        loop.admit(fresh, None)
        others = [slot for slot in free if slot not in fresh and rng.random() < 0.5]
        loop.admit(others, [at_random_place(rng) for _ in others])
        # a text that is under way gives way, too: what was sampled for it is no token of the next
        reading = [slot for slot, state in enumerate(states) if state == "reading" and rng.random() < 0.2]
        loop.admit(reading[:1], [at_random_place(rng)] * len(reading[:1]))
        loop.evict(reading[1:])
        assert cuda.n_waits == before, "an admission waited"
    loop.batch.states()
    assert n_ended > 5 and loop.n_checked > 100


def test_what_the_host_gives_is_read_from_pinned_memory(cuda: FakeCuda) -> None:
    batch = batch_of(2)
    before = cuda.n_waits
    batch.admit([0, 1])
    tokens = np.array([0, OPENING])
    batch.advance(tokens)
    tokens[:] = 99
    given = torch.tensor([3, 3], dtype=torch.int32)
    batch.advance(given)
    given[:] = 99
    assert cuda.n_waits == before
    assert batch.lengths.tolist() == [2, 2] and batch.states() == ["reading"] * 2


def test_the_fetched_text_is_behind_what_was_forked(cuda: FakeCuda) -> None:
    batch = batch_of(1)
    batch.admit([0])
    batch.prepare([0])
    assert row(batch.fetch(0)) == {0, 2, 3, OPENING}
    batch.prepare([3])
    batch.find_rows()
    assert ids(batch.words.cpu().numpy().view(np.uint32)[0]) == {1}


def test_a_device_without_a_number_is_the_one_that_was_current(cuda: FakeCuda) -> None:
    with cuda.device("cuda:1"):
        batch = gpu.GpuBatch(STORE, 1, "cuda")
    assert batch.device == torch.device("cuda", 1) and batch.words.device == torch.device("cuda", 1)
    batch.admit([0])
    assert batch.states() == ["reading"]
    with pytest.raises(gpu.MaskwrightError, match="logits are on cpu; expected a tensor on cuda:1"):
        batch.apply(torch.zeros(1, 40))
    with pytest.raises(gpu.MaskwrightError, match="there is no cuda:2: PyTorch finds 2 CUDA devices"):
        gpu.GpuBatch(STORE, 1, "cuda:2")


def test_an_event_is_recorded_where_the_copies_are(cuda: FakeCuda) -> None:
    """Those of `Staging` are on the stream of the rows' device, whichever device is current."""
    event = staging.StreamEvent(torch.device("cuda", 1))
    event.record()
    assert event._event.place[0] is cuda.current[1]
