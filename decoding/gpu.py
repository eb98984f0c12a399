"""The engine on a GPU: texts, tables and rows live on the device, and a decoding step never waits for the host.

A step is three calls, `advance(tokens)`, `find_rows()` and `apply(logits)`: a handful of kernels of fixed shape, without an allocation or
a synchronisation, so that they can be captured in a CUDA graph together with the model's step and the sampler. Between steps, slots are
given to new texts and taken back.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.decoding import _kernels as kernels
from maskwright.decoding import _slot_kernels as slot_kernels
from maskwright.decoding.kernels import apply_rows, need_torch
from maskwright.decoding.kernels.staging import named_device
from maskwright.decoding.matcher import Matcher

if TYPE_CHECKING:
    from maskwright.maskstore.automaton_store import AutomatonStore

Int32 = npt.NDArray[np.int32]

FIRST_RECORDS = 2048
"""Stack frames and open indents that a slot's own region holds, and those that reading a token makes for a time; 32 KB."""

DEEP_RECORDS = 1 << 18

STATES = {
    kernels.OK: "reading",
    kernels.AFTER_END: "ended",
    kernels.IDLE: "idle",
    kernels.DEAD_END: "dead end",
    kernels.ILLEGAL: "illegal token",
    kernels.OUT_OF_RANGE: "token out of range",
    kernels.NO_TEXT: "token without text",
    kernels.NOT_COMPLETE: "ended too early",
    kernels.NO_ROOM: "no room",
    kernels.TOO_MANY: "too many readings",
    kernels.SPLIT: "readings that lex differently",
}
"""What the numbers in `results` mean. All but the first three are flags: the text is as it was before the token or the mask that failed."""


_STATE = (
    kernels.LEXER, kernels.COLUMN, kernels.NARROW, kernels.DEPTH, kernels.INDENTS, kernels.STACKS, kernels.FINISHED, kernels.USED,
)  # fmt: skip
"""The places of a region that say where a text is."""


class GpuBatch:
    """Texts of one store in the slots of a device.

    size : slots; all are idle at first. device : "cuda", "cuda:1", or "cpu", where the same functions run (slower than `Batch`; for
    tests, and for trying things out). held : the tokens that remain for a slot which is not reading (None: the end-of-text tokens), so
    that no row of logits is ever all -inf. n_records, n_deep, deep_records : see Memory.

    results : (size,) int32 on the device, what each slot is (`STATES`). A slot that is not "reading" reads nothing until it is admitted or
    reset, and its row holds the held tokens; so one illegal token, dead end or overflow stops one text, and the others go on.
    lengths : (size,) int32 on the device, the tokens read in each slot.
    words : (size, ceil(V / 32)) int32 on the device, the rows that `find_rows` wrote.

    Memory: the table (`nbytes`) and, for each slot, 16 bytes a record. A text needs a record for each stack frame and each open indent, and
    as many as a token's reading makes for a time; one that needs more than n_records moves, on the device, to one of n_deep regions of
    deep_records; where none is free, the slot is flagged "no room", and the text can go on elsewhere (`fetch`).

    Raises MissingExtraError without PyTorch or, on a CUDA device, numba-cuda, MaskwrightError for bad sizes or no such device.

    >>> import maskwright as mw
    >>> tokens = (*(bytes([byte]) for byte in range(256)), b"")
    >>> store = mw.build_store(mw.load_grammar("json"), mw.Vocabulary("bytes", tokens, {256: "</s>"}, (256,)))
    >>> batch = GpuBatch(store, 2, device="cpu")
    >>> batch.admit([0, 1])
    >>> batch.advance([ord("["), ord("7")])
    >>> batch.find_rows()
    >>> [bool(batch.words[slot, ord("]") >> 5] >> (ord("]") & 31) & 1) for slot in (0, 1)]
    [True, False]
    """

    def __init__(
        self,
        store: AutomatonStore,
        size: int,
        device: Any = "cuda",
        *,
        held: Sequence[int] | None = None,
        n_records: int = FIRST_RECORDS,
        n_deep: int = 4,
        deep_records: int = DEEP_RECORDS,
    ) -> None:
        torch = need_torch()
        least = 2 * slot_kernels.INDENT_ZONE
        if size < 1 or n_deep < 0 or n_records < least or (n_deep and deep_records <= n_records):
            raise MaskwrightError(
                f"size is {size}, n_records {n_records}, n_deep {n_deep} and deep_records {deep_records}; expected at least 1, {least} and "
                "0, and deep regions larger than the others"
            )
        self.store = store
        self.size = size
        self.device = named_device(device)
        self._torch = torch
        self._backend: _Backend = (
            _Cpu() if self.device.type == "cpu" and not is_simulated() else _Cuda(torch, self.device)
        )
        self._held = self._checked_held(held)
        self._table_on_host = store.table
        scratch = kernels.scratch_size(store.table)
        self._stride = slot_kernels.region_size(scratch, n_records)
        self._deep_first = size * self._stride
        self._deep_stride = slot_kernels.region_size(scratch, deep_records)
        self._deep_records = deep_records
        memory = torch.zeros(self._deep_first + n_deep * self._deep_stride, dtype=torch.int32, device=self.device)
        for begin, stride, n, capacity in (
            (0, self._stride, size, n_records),
            (self._deep_first, self._deep_stride, n_deep, deep_records),
        ):
            if n:
                header = torch.from_numpy(slot_kernels.new_header(scratch, capacity))
                memory[begin : begin + n * stride].view(n, stride)[:, : len(header)] = header.to(self.device)
        self._image_start = kernels.REGION_HEADER + scratch
        self._table = torch.from_numpy(np.array(store.table)).to(self.device)
        self._memory = memory
        self._regions = torch.zeros(size, dtype=torch.int64, device=self.device)
        # one owner at least, since an empty array has no address; `size` is nobody's number
        self._owners = torch.full((max(1, n_deep),), -1 if n_deep else size, dtype=torch.int32, device=self.device)
        self._tokens = torch.full((size,), -1, dtype=torch.int64, device=self.device)
        self._found = torch.full((size,), kernels.IDLE, dtype=torch.int32, device=self.device)
        self._row_ids = torch.full((size,), -1, dtype=torch.int32, device=self.device)
        self.results = torch.full((size,), kernels.IDLE, dtype=torch.int32, device=self.device)
        self.lengths = torch.zeros(size, dtype=torch.int32, device=self.device)
        self.words = torch.zeros((size, store.n_words), dtype=torch.int32, device=self.device)
        self._holds = torch.tensor(self._held, dtype=torch.int32, device=self.device)
        deep = (self._deep_first, self._deep_stride, deep_records)
        view = self._backend.view
        table, memory_, regions_, owners = view(self._table), view(memory), view(self._regions), view(self._owners)
        results, lengths, words = view(self.results), view(self.lengths), view(self.words)
        found = view(self._found)
        self._advance_arguments = (table, memory_, regions_, owners, results, lengths, view(self._tokens), *deep)
        self._find_arguments = (table, memory_, regions_, owners, results, found, words, *deep)
        self._write_arguments = (
            table,
            memory_,
            regions_,
            results,
            found,
            words,
            view(self._holds),
            view(self._row_ids),
        )
        self._begin_arguments = (table, memory_, regions_, owners, results, lengths)
        self._load_arguments = (memory_, regions_, owners, results)
        self._deep = deep
        self._begin(range(size), kernels.IDLE)
        # compiled code is loaded at the first call, which must not be inside the capture of a graph
        self.advance(self._tokens)
        self.find_rows()

    @property
    def nbytes(self) -> int:
        """Bytes of device memory that tables, rows and texts take."""
        tensors = (
            self._table, self._memory, self._regions, self._owners, self._tokens, self._found, self._row_ids, self._holds,
            self.results, self.lengths, self.words,
        )  # fmt: skip
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def advance(self, tokens: Any) -> None:
        """Read a token in each slot that is reading. What came of it is in `results`: nothing is raised, nothing waits.

        tokens : (size,) integers, -1 = nothing to read; a tensor on the device, or else what can be copied there.
        """
        tensor = tokens if isinstance(tokens, self._torch.Tensor) else self._torch.as_tensor(np.asarray(tokens))
        if tuple(tensor.shape) != (self.size,) or tensor.dtype.is_floating_point or tensor.dtype == self._torch.bool:
            raise MaskwrightError(
                f"tokens have shape {tuple(tensor.shape)} and dtype {tensor.dtype}; expected {self.size} integers, -1 for slots to leave "
                "alone"
            )
        if tensor is not self._tokens:
            self._tokens.copy_(tensor, non_blocking=True)
        self._backend.advance(self.size, self._advance_arguments)

    def find_rows(self) -> None:
        """Write `words`: the masks of the tokens that may come next in each slot."""
        self._backend.find(self.size, self._find_arguments, self._write_arguments)

    def apply(self, logits: Any) -> None:
        """-inf for the tokens that the rows found do not have, in place. Idle slots' logits are left alone.

        logits : (size, N) floating point, N >= V, on the device. Raises MaskwrightError for another shape, dtype or device.
        """
        if not isinstance(logits, self._torch.Tensor):
            raise MaskwrightError(
                f"the logits are a {type(logits).__name__}; expected a tensor on {self._memory.device}"
            )
        if logits.device != self._memory.device:
            raise MaskwrightError(f"the logits are on {logits.device}; expected a tensor on {self._memory.device}")
        if logits.ndim != 2 or logits.shape[0] != self.size or logits.shape[1] < self.store.vocabulary.size:
            raise MaskwrightError(
                f"the logits have shape {tuple(logits.shape)}; expected ({self.size}, N) with N of at least {self.store.vocabulary.size}, "
                f"the size of vocabulary {self.store.vocabulary.name}"
            )
        apply_rows(logits, self._row_ids, self.words)

    def admit(self, slots: Sequence[int], matchers: Sequence[Matcher | None] | None = None) -> None:
        """Begin texts in some slots, whatever was there: at the start, or where a matcher is (its history stays behind).

        The device does it in stream order; the host does not wait. A text too deep for any region is flagged "no room".
        """
        chosen = self._checked_slots(slots)
        given = [None] * len(chosen) if matchers is None else list(matchers)
        if len(given) != len(chosen):
            raise MaskwrightError(f"{len(given)} matchers are given for {len(chosen)} slots; expected one for each")
        for matcher in given:
            if matcher is not None and not self._is_mine(matcher):
                raise MaskwrightError("a matcher is of another store than the batch; build both from the same")
        self._begin(chosen, kernels.OK)
        for slot, matcher in zip(chosen, given, strict=True):
            if matcher is not None:
                image = self._torch.from_numpy(self._image(matcher)).to(self.device)
                where = self._torch.tensor([slot], dtype=self._torch.int64).to(self.device)
                view = self._backend.view
                self._backend.load((*self._load_arguments, view(where), view(image), *self._deep))

    def reset(self, slots: Sequence[int]) -> None:
        """Begin new texts in some slots: `admit` without matchers."""
        self.admit(slots)

    def evict(self, slots: Sequence[int]) -> None:
        """Make some slots idle; a deep region that one has is free again."""
        self._begin(self._checked_slots(slots), kernels.IDLE)

    def states(self) -> list[str]:
        """What each slot is, in words (`STATES`). Waits for the device."""
        return [STATES.get(code, f"error {code}") for code in self.results.tolist()]

    def fetch(self, slot: int, max_rollback: int = 0) -> Matcher:
        """A matcher where a slot's text is: to explain a flag, to complete the text, or to go on with it. Waits for the device."""
        (slot,) = self._checked_slots([slot])
        region = int(self._regions[slot])
        header: Int32 = self._memory[region : region + kernels.REGION_HEADER].cpu().numpy()
        used = int(header[kernels.USED])
        arena: Int32 = self._memory[region + self._image_start : region + self._image_start + 3 * used].cpu().numpy()
        matcher = Matcher(self.store, max_rollback)
        matcher._lay_out({0: max(2 * used, slot_kernels.INDENT_ZONE)})
        memory = matcher._memory
        for place in _STATE:
            memory[place] = header[place]
        memory[kernels.AFTER] = 0
        begin = int(memory[kernels.ARENA])
        memory[begin : begin + len(arena)] = arena
        return matcher

    def _image(self, matcher: Matcher) -> Int32:
        """A matcher's text as a region without a history: header, scratch and the records in use, settled."""
        memory = matcher._memory
        used, begin = int(memory[kernels.USED]), int(memory[kernels.ARENA])
        capacity = used + 2 * slot_kernels.INDENT_ZONE
        image = np.zeros(self._image_start + 4 * capacity, np.int32)
        for place in _STATE:
            image[place] = memory[place]
        image[kernels.ARENA], image[kernels.CAPACITY] = self._image_start, capacity
        image[self._image_start : self._image_start + 3 * used] = memory[begin : begin + 3 * used]
        slot_kernels.tidy(self._table_on_host, image, 0)
        return image[: self._image_start + 3 * int(image[kernels.USED])].copy()

    def _begin(self, slots: Sequence[int], result: int) -> None:
        chosen = self._torch.tensor(list(slots), dtype=self._torch.int64).to(self.device)
        if len(chosen):
            self._backend.begin((*self._begin_arguments, self._backend.view(chosen), 0, self._stride, result))

    def _is_mine(self, matcher: Matcher) -> bool:
        return matcher.store is self.store or np.array_equal(matcher.store.table, self.store.table)

    def _checked_slots(self, slots: Sequence[int]) -> list[int]:
        chosen = [int(slot) for slot in slots]
        for slot in chosen:
            if not 0 <= slot < self.size:
                raise MaskwrightError(f"slot {slot} is out of range: the batch has the slots 0 to {self.size - 1}")
        if len(set(chosen)) < len(chosen):
            raise MaskwrightError(f"slots {chosen} name one twice; expected each once")
        return chosen

    def _checked_held(self, held: Sequence[int] | None) -> list[int]:
        vocabulary = self.store.vocabulary
        chosen = sorted(vocabulary.eos) if held is None else sorted({int(token) for token in held})
        if not chosen:
            raise MaskwrightError(
                f"vocabulary {vocabulary.name} has no end-of-text token, so held must name what remains for slots that are not reading"
            )
        if not 0 <= chosen[0] <= chosen[-1] < vocabulary.size:
            raise MaskwrightError(f"held names {chosen}; expected ids from 0 to {vocabulary.size - 1}")
        return chosen


class _Cpu:
    """The kernels as loops over the slots."""

    def view(self, tensor: Any) -> Any:
        return tensor.numpy()

    def advance(self, size: int, arguments: tuple[Any, ...]) -> None:
        slot_kernels.advance_slots(*arguments)

    def find(self, size: int, arguments: tuple[Any, ...], to_write: tuple[Any, ...]) -> None:
        slot_kernels.find_slots(*arguments)
        slot_kernels.write_slots(*to_write)

    def begin(self, arguments: tuple[Any, ...]) -> None:
        slot_kernels.begin_slots(*arguments)

    def load(self, arguments: tuple[Any, ...]) -> None:
        memory, regions, owners, results, chosen, image, *deep = arguments
        slot_kernels.load_slot(memory, regions, owners, results, int(chosen[0]), image, *deep)


class _Cuda:
    """The kernels of `engine_cuda`, on PyTorch's current stream."""

    def __init__(self, torch: Any, device: Any) -> None:
        if device.type != "cuda" and not is_simulated():
            raise MaskwrightError(f"device {device} is not supported; expected cuda or cpu")
        if not is_simulated():
            if not torch.cuda.is_available():
                raise MaskwrightError(
                    "PyTorch finds no CUDA device here; use device='cpu' to try things out, or MaskwrightLogitsProcessor, whose masks are "
                    "found on the CPU"
                )
            if device.index is not None and device.index >= torch.cuda.device_count():
                raise MaskwrightError(f"device {device} does not exist; there are {torch.cuda.device_count()}")
        try:
            from numba import cuda

            from maskwright.decoding.kernels import engine_cuda
        except ImportError as error:
            raise MissingExtraError(
                f"numba-cuda is not installed or does not fit this Python's Numba ({error}): pip install 'maskwright[gpu]'"
            ) from None
        self._torch, self._cuda, self._kernels, self._device = torch, cuda, engine_cuda, device
        self._launchers: dict[tuple[Any, int, int], Any] = {}
        simulated = is_simulated()
        self._warp = 1 if simulated else engine_cuda.WARP
        self._writers = 3 if simulated else engine_cuda.WRITERS

    def view(self, tensor: Any) -> Any:
        if is_simulated():
            from numba.cuda.simulator.cudadrv import devicearray

            return devicearray.FakeCUDAArray(tensor.numpy())
        return self._cuda.as_cuda_array(tensor)

    def advance(self, size: int, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.advance, size, self._warp, arguments)

    def find(self, size: int, arguments: tuple[Any, ...], to_write: tuple[Any, ...]) -> None:
        self._launch(self._kernels.find, size, self._warp, arguments)
        self._launch(self._kernels.write, size, self._writers, to_write)

    def begin(self, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.begin, 1, self._warp, arguments)

    def load(self, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.load, 1, self._warp, arguments)

    def _launch(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        if is_simulated():
            kernel[blocks, threads](*arguments)
            return
        with self._torch.cuda.device(self._device):
            handle = int(self._torch.cuda.current_stream().cuda_stream)
            launcher = self._launchers.get((kernel, blocks, handle))
            if launcher is None:
                launcher = self._configured(kernel, blocks, threads, handle)
                self._launchers[kernel, blocks, handle] = launcher
            launcher(*arguments)

    def _configured(self, kernel: Any, blocks: int, threads: int, handle: int) -> Any:
        """A kernel with its grid and stream. Kept, since making one takes longer than the launch."""
        from numba.core.errors import NumbaPerformanceWarning

        with warnings.catch_warnings():
            # a block a slot is what there is to do, however few slots there are
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            return kernel[blocks, threads, self._cuda.external_stream(handle) if handle else 0]


_Backend = _Cpu | _Cuda


def is_simulated() -> bool:
    """Whether Numba's CUDA simulator takes the place of a GPU (NUMBA_ENABLE_CUDASIM=1)."""
    from numba.core import config

    return bool(vars(config)["ENABLE_CUDASIM"])


__all__ = ["STATES", "GpuBatch"]
