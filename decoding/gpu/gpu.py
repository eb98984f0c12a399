"""The engine on a GPU: texts, tables and rows are on the device, and no step waits for the host.

Experimental. A step takes longer than that of `ResidentRows`: begin there (docs/gpu.md has both
measured).

A step is `prepare()`, the model, `apply(logits)`, and a sampler that writes `tokens`. Its kernels
have fixed shapes, allocate nothing and never synchronise. So a CUDA graph can capture them together
with the model's step and the sampler. `prepare` reads tokens and finds masks beside the forward
pass. Between steps, slots are given to new texts and taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, as_integer, clip, need_type, refuse_argument
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.engine import constants
from maskwright.decoding.engine.alone import Alone, Shared, alone
from maskwright.decoding.engine.arguments import as_int64, integers
from maskwright.decoding.gpu import _slot_kernels as slot_kernels
from maskwright.decoding.gpu.devices import Backend, Cpu, Cuda, is_simulated
from maskwright.decoding.gpu.regions import arena_offset, image_of, message_of, new_header, region_size
from maskwright.decoding.logits import apply_rows, need_torch
from maskwright.decoding.logits.staging import named_device
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.table.compiled import EngineTable

Int32 = npt.NDArray[np.int32]

FIRST_RECORDS = 2048
"""The records of a slot's own region, for stack frames and open indents.

Reading a token needs some of them for a time. A slot then takes 34 KB, or 54 KB if the grammar has
conflicts, since several readings are followed in scratch memory (`GpuBatch.slot_bytes`).
"""

DEEP_RECORDS = 1 << 18
"""The records of a deep region."""

STATES = {
    constants.OK: "reading",
    constants.AFTER_END: "ended",
    constants.IDLE: "idle",
    constants.DEAD_END: "dead end",
    constants.ILLEGAL: "illegal token",
    constants.OUT_OF_RANGE: "token out of range",
    constants.NO_TEXT: "token without text",
    constants.NOT_COMPLETE: "ended too early",
    constants.NO_ROOM: "no room",
    constants.TOO_MANY: "too many readings",
    constants.SPLIT: "readings that lex differently",
    constants.TOO_LONG: "too many steps",
}
"""The meaning of the numbers in `results`, in words.

All but the first three are flags: the text is as it was before the token or the mask that failed.
"""


class GpuBatch(Shared):
    """Texts of one store in the slots of a device. Experimental: `ResidentRows` is faster.

    store : what the masks come from.
    size : the number of slots. All are idle at first.
    device : "cuda", "cuda:1", or "cpu", where the same functions run (slower than `Batch`; for
        tests, and for trying things out).
    held : ids of the tokens that remain for a slot which is not reading, so that no row of logits
        is ever all -inf. None: the end-of-text tokens.
    n_records, n_deep, deep_records : the records of a slot's own region, the number of deep
        regions, and the records of each; see "Memory" below.

    Attributes:

    tokens : (size,) int64 on the device; what `advance` and `prepare` read; -1 for nothing. A
        sampler writes it. `admit`, `reset` and `evict` set it to -1 in their slots, since a token
        sampled for the text before is no token of the new one.
    results : (size,) int32 on the device; what each slot is (`STATES`). A slot that is not
        "reading" reads nothing until it is admitted or reset, and its row holds the held tokens. So
        one illegal token, dead end or overflow stops one text, and the others go on.
    lengths : (size,) int32 on the device; the number of tokens read in each slot.
    words : (size, ceil(V / 32)) int32 on the device; the rows that were found. Bit i of word w is
        token 32 w + i.

    All calls for one batch must be made on one stream, or ordered by events, and by one thread at a
    time. A second thread gets an error.

    Memory: the table and the regions of the texts take `nbytes`. Each slot takes `slot_bytes`, most
    of which is 16 bytes for each record. A text needs one record for each stack frame, two for each
    open indent, and for a time those that reading a token makes. A text that needs more than
    n_records moves, on the device, to one of n_deep regions of deep_records. If none is free, the
    slot is flagged "no room". The text can then go on elsewhere (`fetch`).

    Raises: MissingExtraError if PyTorch is missing or, on a CUDA device, numba-cuda;
    MaskwrightError if an argument has the wrong type, a size is out of range, `held` names no token
    of the vocabulary or is empty, or the device does not exist.

    >>> import maskwright as mw
    >>> tokens = (*(bytes([byte]) for byte in range(256)), b"")
    >>> vocabulary = mw.Vocabulary("bytes", tokens, {256: "</s>"}, (256,))
    >>> store = mw.build_store("json", vocabulary)
    >>> batch = GpuBatch(store, 2, device="cpu")
    >>> batch.admit([0, 1])
    >>> batch.advance([ord("["), ord("7")])
    >>> batch.find_rows()
    >>> [bool(batch.words[slot, ord("]") >> 5] >> (ord("]") & 31) & 1) for slot in (0, 1)]
    [True, False]
    """

    _what = "this batch"
    _remedy = "GpuBatch(store, size)"

    def __init__(
        self,
        store: EngineTable,
        size: int,
        device: Any = "cuda",
        *,
        held: Sequence[int] | None = None,
        n_records: int = FIRST_RECORDS,
        n_deep: int = 4,
        deep_records: int = DEEP_RECORDS,
    ) -> None:
        torch = need_torch()
        need_type(
            "the store",
            store,
            EngineTable,
            "a Store, as mw.build_store and mw.load_store return it (not one with lexing 'nfa')",
        )
        size, n_records = as_integer("size", size), as_integer("n_records", n_records)
        n_deep, deep_records = as_integer("n_deep", n_deep), as_integer("deep_records", deep_records)
        least = 2 * constants.INDENT_ZONE
        if size < 1 or n_deep < 0 or n_records < least or (n_deep and deep_records <= n_records):
            raise MaskwrightError(
                f"size is {size}, n_records {n_records}, n_deep {n_deep} and deep_records {deep_records}; expected at least 1, {least} and "
                "0, and deep regions larger than the others"
            )
        self.store, self.size, self._torch = store, size, torch
        named = named_device(device)
        self._backend: Backend = Cpu(torch, named) if named.type == "cpu" and not is_simulated() else Cuda(torch, named)
        self.device = self._backend.device
        self._held = self._checked_held(held)
        store.close()
        scratch = constants.scratch_size(store.table)
        self._stride = region_size(scratch, n_records)
        self._deep_first = size * self._stride
        self._deep_stride = region_size(scratch, deep_records)
        self._deep_records = deep_records
        self._arena = arena_offset(scratch)
        self._table = torch.from_numpy(np.array(store.table)).to(self.device)
        self._memory = self._new_memory(scratch, n_records, n_deep)
        self._regions = torch.zeros(size, dtype=torch.int64, device=self.device)
        # one owner at least, since an empty array has no address; `size` is no slot's number
        self._owners = torch.full((max(1, n_deep),), -1 if n_deep else size, dtype=torch.int32, device=self.device)
        self.tokens = torch.full((size,), -1, dtype=torch.int64, device=self.device)
        self._found = torch.full((size,), constants.IDLE, dtype=torch.int32, device=self.device)
        self._row_ids = torch.full((size,), -1, dtype=torch.int32, device=self.device)
        self.results = torch.full((size,), constants.IDLE, dtype=torch.int32, device=self.device)
        self.lengths = torch.zeros(size, dtype=torch.int32, device=self.device)
        self.words = torch.zeros((size, store.n_words), dtype=torch.int32, device=self.device)
        self._holds = torch.tensor(self._held, dtype=torch.int32, device=self.device)
        self._deep = (self._deep_first, self._deep_stride, deep_records)
        given = (self._table, self._memory, self._regions, self._owners, self.results, self.lengths, self.tokens)
        table, memory, regions, owners, results, lengths, tokens = map(self._backend.view, given)
        found, words, holds, row_ids = map(self._backend.view, (self._found, self.words, self._holds, self._row_ids))
        self._arguments: dict[str, tuple[Any, ...]] = {
            "advance": (table, memory, regions, owners, results, lengths, tokens, *self._deep),
            "find": (table, memory, regions, owners, results, found, words, *self._deep),
            "write": (table, memory, regions, results, found, words, holds, row_ids),
            "begin": (table, memory, regions, owners, results, lengths, tokens),
            "load": (memory, regions, owners, results),
        }
        # the first call loads compiled code; this must not happen while a graph is captured, or
        # between two steps
        self._begin(range(size), [None] * size, constants.IDLE, is_loading=True)
        self.advance()
        self.find_rows()

    def _new_memory(self, scratch: int, n_records: int, n_deep: int) -> Any:
        """The regions of all slots, and then the deep ones, each with its header.

        scratch : integers of scratch in each region. Returns (m,) int32 on the device.
        """
        torch = self._torch
        memory = torch.zeros(self._deep_first + n_deep * self._deep_stride, dtype=torch.int32, device=self.device)
        for begin, stride, n, capacity in (
            (0, self._stride, self.size, n_records),
            (self._deep_first, self._deep_stride, n_deep, self._deep_records),
        ):
            if n:
                header = torch.from_numpy(new_header(scratch, capacity))
                memory[begin : begin + n * stride].view(n, stride)[:, : len(header)] = header.to(self.device)
        return memory

    @property
    def nbytes(self) -> int:
        """The bytes of device memory that tables, rows and texts take."""
        tensors = (
            self._table, self._memory, self._regions, self._owners, self.tokens, self._found, self._row_ids, self._holds,
            self.results, self.lengths, self.words,
        )  # fmt: skip
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def slot_bytes(self) -> int:
        """The bytes of device memory that a slot's own region takes."""
        return 4 * self._stride

    @alone
    def advance(self, tokens: Any = None) -> None:
        """Read a token in each slot that is reading. What came of it is in `results`.

        It raises no error for a text, and waits for nothing.

        tokens : (size,) integers, -1 for nothing to read; a tensor, or what NumPy makes an array
            of. They are copied to `tokens`, and are read in slots that have just begun, too. None:
            what `tokens` holds.

        Raises: MaskwrightError if the tokens have another shape or dtype.
        """
        self._backend.join()
        self._take(tokens)
        self._run("advance")

    @alone
    def find_rows(self) -> None:
        """Write `words`: the masks of the tokens allowed next in each slot."""
        self._backend.join()
        self._run("find", "write")

    def _run(self, *names: str) -> None:
        """Run kernels for all slots, one after the other."""
        for name in names:
            self._backend.run(name, self.size, self._arguments[name])

    @alone
    def prepare(self, tokens: Any = None) -> None:
        """Do `advance` and `find_rows` beside what the current stream does next.

        That is the forward pass above all. `apply` waits for both. They run on a stream of the
        batch's own, also while a CUDA graph is captured. Until `apply` or another call, nothing
        else may use `results`, `lengths` and `words`, or write `tokens`.

        tokens : as of `advance`.

        Raises: MaskwrightError as `advance`.
        """
        self._backend.join()
        self._take(tokens)
        with self._backend.beside():
            self._run("advance", "find", "write")

    @alone
    def apply(self, logits: Any) -> None:
        """Write -inf over the logits of the tokens that the rows refuse, in place.

        It waits until the rows are found. The logits of idle slots are left alone.

        logits : (size, N) floating point, N >= V, on the device.

        Raises: MaskwrightError if the logits have another shape, dtype or device.
        """
        if not isinstance(logits, self._torch.Tensor):
            raise MaskwrightError(f"the logits are {a_type(logits)}; expected a tensor on {self.device}")
        if logits.device != self.device:
            raise MaskwrightError(f"the logits are on {logits.device}; expected a tensor on {self.device}")
        if logits.ndim != 2 or logits.shape[0] != self.size or logits.shape[1] < self.store.vocabulary.size:
            raise MaskwrightError(
                f"the logits have shape {tuple(logits.shape)}; expected ({self.size}, N) with N of at least {self.store.vocabulary.size}, "
                f"the size of vocabulary {self.store.vocabulary.name}"
            )
        self._backend.join()
        apply_rows(logits, self._row_ids, self.words)

    def admit(self, slots: Sequence[int], matchers: Sequence[Matcher | None] | None = None) -> None:
        """Begin texts in some slots, whatever was there.

        A text begins at its start or, if a matcher is given, in the matcher's state, but without
        its history. `tokens` becomes -1 in these slots. The device does all this in stream order,
        after one copy from pinned memory, however many slots there are. The host does not wait. A
        text too deep for any region is flagged "no room".

        slots : slot numbers, each once.
        matchers : for each slot a matcher of the same store, or None; None: no matchers.

        Raises: MaskwrightError if a slot is out of range or named twice, if there are not as many
        matchers as slots, or if one is of another store.
        """
        chosen = self._checked_slots(slots)
        expected = "a list of matchers, one for each slot, or None"
        if not isinstance(matchers, Iterable | NoneType) or isinstance(matchers, str | bytes):
            refuse_argument("matchers", matchers, expected)
        given = [None] * len(chosen) if matchers is None else list(matchers)
        if len(given) != len(chosen):
            raise MaskwrightError(f"{len(given)} matchers are given for {len(chosen)} slots; expected one for each")
        for matcher in given:
            need_type("a member of matchers", matcher, (Matcher, NoneType), "a Matcher or None")
            if matcher is not None and not self._is_mine(matcher):
                raise MaskwrightError(
                    "a matcher belongs to a different store than the batch; make both from the same store"
                )
        self._begin(chosen, given, constants.OK)

    def reset(self, slots: Sequence[int]) -> None:
        """Begin new texts in some slots: `admit` without matchers. Raises: as `admit`."""
        self.admit(slots)

    def evict(self, slots: Sequence[int]) -> None:
        """Make some slots idle. Their deep regions become free.

        slots : slot numbers, each once.

        Raises: MaskwrightError if a slot is out of range or named twice.
        """
        chosen = self._checked_slots(slots)
        self._begin(chosen, [None] * len(chosen), constants.IDLE)

    @alone
    def states(self) -> list[str]:
        """What each slot is, in words (`STATES`). Waits for the device."""
        self._backend.join()
        return [STATES.get(code, f"error {code}") for code in self.results.tolist()]

    @alone
    def fetch(self, slot: int, max_rollback: int = 0) -> Matcher:
        """A matcher in the state of a slot's text. Waits for the device.

        It can explain a flag, complete the text, or go on with it.

        slot : the slot's number.
        max_rollback : as of `Matcher`; the history is empty at first.

        Raises: MaskwrightError if the slot is out of range, or max_rollback is no integer or
        negative.
        """
        (slot,) = self._checked_slots([slot])
        return self._fetch(slot, max_rollback)

    def _fetch(self, slot: int, max_rollback: int) -> Matcher:
        self._backend.join()
        region = int(self._regions[slot])
        header: Int32 = self._memory[region : region + constants.REGION_HEADER].cpu().numpy()
        used = int(header[constants.USED])
        arena: Int32 = self._memory[region + self._arena : region + self._arena + constants.RECORD * used].cpu().numpy()
        matcher = Matcher(self.store, max_rollback)
        text: Any = matcher.text  # a `SlotText`, since the store is a grammar's
        texts = text.texts
        texts._lay_out({0: max(2 * used, constants.INDENT_ZONE)})
        memory = texts._memory
        for field in slot_kernels.FIELDS_OF_TEXT:
            memory[field] = header[field]
        memory[constants.AFTER_NEWLINE_STACKS] = 0
        begin = int(memory[constants.ARENA])
        memory[begin : begin + len(arena)] = arena
        return matcher

    def _take(self, tokens: Any) -> None:
        """Copy the tokens to read to `tokens`."""
        if tokens is None or tokens is self.tokens:
            return
        torch = self._torch
        if isinstance(tokens, torch.Tensor):
            tensor = tokens
        else:
            tensor = torch.as_tensor(as_int64(integers("tokens", tokens, f"{self.size} integers")))
        dtype = tensor.dtype
        if tuple(tensor.shape) != (self.size,) or dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
            raise MaskwrightError(
                f"tokens have shape {tuple(tensor.shape)} and dtype {tensor.dtype}; expected {self.size} integers, -1 for slots to leave "
                "alone"
            )
        if tensor.device.type == "cpu":
            tensor = self._backend.sent(tensor)
        self.tokens.copy_(tensor, non_blocking=True)

    def _image_of(self, matcher: Matcher) -> Int32:
        text: Any = matcher.text  # a `SlotText`: its table is the store's
        with Alone(matcher):
            return image_of(self.store.table, text.memory)

    @alone
    def _begin(
        self, slots: Sequence[int], matchers: Sequence[Matcher | None], result: int, is_loading: bool = False
    ) -> None:
        """Begin new texts in some slots. All that the device must know crosses in one copy."""
        if not slots:
            return
        self._backend.join()
        images = [None if matcher is None else self._image_of(matcher) for matcher in matchers]
        message = self._backend.sent(self._torch.from_numpy(message_of(slots, images)))
        seen, n = self._backend.view(message), len(slots)
        chosen = self._backend.view(message[:n])
        self._backend.run("begin", n, (*self._arguments["begin"], chosen, self._stride, result))
        if is_loading or any(image is not None for image in images):
            self._backend.run("load", n, (*self._arguments["load"], seen, n, *self._deep))

    def _is_mine(self, matcher: Matcher) -> bool:
        store = matcher.store
        return store is self.store or (
            store.engine == self.store.engine and np.array_equal(store.table, self.store.table)
        )

    def _checked_slots(self, slots: Sequence[int]) -> list[int]:
        if not isinstance(slots, Iterable) or isinstance(slots, str | bytes):
            refuse_argument("slots", slots, "a list of slot numbers")
        chosen = [as_integer("a slot", slot) for slot in slots]
        for slot in chosen:
            if not 0 <= slot < self.size:
                raise MaskwrightError(
                    f"slot {clip(slot)} is out of range: the batch has the slots 0 to {self.size - 1}"
                )
        if len(set(chosen)) < len(chosen):
            raise MaskwrightError(f"slots {chosen} name a slot twice; expected each once")
        return chosen

    def _checked_held(self, held: Sequence[int] | None) -> list[int]:
        vocabulary = self.store.vocabulary
        if held is None:
            chosen = sorted(vocabulary.eos)
        elif isinstance(held, Iterable) and not isinstance(held, str | bytes):
            chosen = sorted({as_integer("a member of held", token) for token in held})
        else:
            refuse_argument("held", held, "a list of tokens, or None for those that end a text")
        if not chosen:
            raise MaskwrightError(
                f"vocabulary {vocabulary.name} has no end-of-text token, so held must name the tokens for slots that are not reading"
            )
        if not 0 <= chosen[0] <= chosen[-1] < vocabulary.size:
            raise MaskwrightError(f"held names {clip(chosen)}; expected ids from 0 to {vocabulary.size - 1}")
        return chosen


__all__ = ["STATES", "GpuBatch"]
