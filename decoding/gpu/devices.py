"""Where the engine's kernels for slots run: loops on the CPU, or `engine_cuda` on a device."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.decoding.gpu import _slot_kernels as slot_kernels

LEAST_MESSAGE = 4096
"""Places of pinned memory that are taken for what goes to the device between steps, at least: so the same are taken again."""


class Cpu:
    """The kernels as loops over the slots."""

    def __init__(self, torch: Any, device: Any) -> None:
        self.device = device

    def view(self, tensor: Any) -> Any:
        return tensor.numpy()

    def sent(self, tensor: Any) -> Any:
        return tensor

    @contextmanager
    def fork(self) -> Iterator[None]:
        yield

    def join(self) -> None:
        pass

    def advance(self, size: int, arguments: tuple[Any, ...]) -> None:
        slot_kernels.advance_slots(*arguments)

    def find(self, size: int, arguments: tuple[Any, ...], to_write: tuple[Any, ...]) -> None:
        slot_kernels.find_slots(*arguments)
        slot_kernels.write_slots(*to_write)

    def begin(self, n: int, arguments: tuple[Any, ...]) -> None:
        slot_kernels.begin_slots(*arguments)

    def load(self, n: int, arguments: tuple[Any, ...]) -> None:
        slot_kernels.load_slots(*arguments)


class Cuda:
    """The kernels of `engine_cuda`, on PyTorch's current stream of a device, which need not be the current one.

    numba-cuda works in the context that is current in the thread; so whatever calls it does so with the device made current.
    """

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
            device = torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)
        self._cuda, self._kernels = cuda_modules()
        self._torch, self.device = torch, device
        self._launchers: dict[tuple[Any, int, int], Any] = {}
        simulated = is_simulated()
        self._warp = 1 if simulated else self._kernels.WARP
        self._writers = 3 if simulated else self._kernels.WRITERS
        self._beside = None if simulated else torch.cuda.Stream(device)
        self._is_forked = False

    def view(self, tensor: Any) -> Any:
        if is_simulated():
            from numba.cuda.simulator.cudadrv import devicearray

            return devicearray.FakeCUDAArray(tensor.numpy())
        with self._torch.cuda.device(self.device):
            return self._cuda.as_cuda_array(tensor)

    def sent(self, tensor: Any) -> Any:
        """A copy of a tensor of the host's, made in stream order: from pinned memory, which PyTorch keeps until it has been read."""
        if is_simulated():
            return tensor
        size = max(LEAST_MESSAGE, 1 << (len(tensor) - 1).bit_length())
        pinned = self._torch.empty(size, dtype=tensor.dtype, pin_memory=True)[: len(tensor)]
        pinned.copy_(tensor)
        there = self._torch.empty(len(tensor), dtype=tensor.dtype, device=self.device)
        there.copy_(pinned, non_blocking=True)
        return there

    @contextmanager
    def fork(self) -> Iterator[None]:
        """What is launched inside follows what the current stream has been told so far, and runs beside what it is told until `join`."""
        if self._beside is None:
            yield
            return
        self._beside.wait_stream(self._torch.cuda.current_stream(self.device))
        self._is_forked = True
        with self._torch.cuda.stream(self._beside):
            yield

    def join(self) -> None:
        """The current stream goes on when what `fork` launched is done."""
        if self._is_forked:
            self._torch.cuda.current_stream(self.device).wait_stream(self._beside)
            self._is_forked = False

    def advance(self, size: int, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.advance, size, self._warp, arguments)

    def find(self, size: int, arguments: tuple[Any, ...], to_write: tuple[Any, ...]) -> None:
        self._launch(self._kernels.find, size, self._warp, arguments)
        self._launch(self._kernels.write, size, self._writers, to_write)

    def begin(self, n: int, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.begin, n, self._warp, arguments)

    def load(self, n: int, arguments: tuple[Any, ...]) -> None:
        self._launch(self._kernels.load, n, self._writers, arguments)

    def _launch(self, kernel: Any, blocks: int, threads: int, arguments: tuple[Any, ...]) -> None:
        if is_simulated():
            kernel[blocks, threads](*arguments)
            return
        with self._torch.cuda.device(self.device):
            handle = int(self._torch.cuda.current_stream(self.device).cuda_stream)
            launcher = self._launchers.get((kernel, blocks, handle))
            if launcher is None:
                launcher = self._configured(kernel, blocks, threads, handle)
                self._launchers[kernel, blocks, handle] = launcher
            launcher(*arguments)

    def _configured(self, kernel: Any, blocks: int, threads: int, handle: int) -> Any:
        """A kernel with its grid and stream. Kept, since making one takes longer than the launch."""
        with warnings.catch_warnings():
            # of few blocks: a block a slot is what there is to do, however few slots there are
            warnings.simplefilter("ignore")
            return kernel[blocks, threads, self._cuda.external_stream(handle) if handle else 0]


Backend = Cpu | Cuda


def cuda_modules() -> tuple[Any, Any]:
    """`numba.cuda`, and the kernels. Raises MissingExtraError if numba-cuda is not there."""
    try:
        from numba import cuda

        from maskwright.decoding.gpu import engine_cuda
    except ImportError as error:
        raise MissingExtraError(
            f"numba-cuda is not installed or does not fit this Python's Numba ({error}): pip install 'maskwright[gpu]'"
        ) from None
    return cuda, engine_cuda


def is_simulated() -> bool:
    """Whether Numba's CUDA simulator takes the place of a GPU (NUMBA_ENABLE_CUDASIM=1)."""
    from numba.core import config

    return bool(vars(config)["ENABLE_CUDASIM"])
