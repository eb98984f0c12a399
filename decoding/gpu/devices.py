"""Where the engine's kernels for slots run: in loops on the CPU, or on a device (`engine_cuda`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.decoding.gpu import _slot_kernels as slot_kernels
from maskwright.decoding.logits.staging import checked_device

LEAST_MESSAGE = 4096
"""The least number of elements of pinned memory for a message to the device.

Messages of similar size then use the same memory again.
"""


class Cpu:
    """The kernels as loops over the slots.

    torch : the module; not used.
    device : the torch device, "cpu".
    """

    def __init__(self, torch: Any, device: Any) -> None:
        self.device = device

    def view(self, tensor: Any) -> Any:
        """A tensor as the kernels take it: a NumPy array in the same memory."""
        return tensor.numpy()

    def sent(self, tensor: Any) -> Any:
        """A tensor on the device: the tensor itself."""
        return tensor

    def beside(self) -> AbstractContextManager[None]:
        """A context without any effect: there are no streams."""
        return nullcontext()

    def join(self) -> None:
        """Wait for what was launched in `beside`: nothing to do here."""

    def run(self, name: str, n: int, arguments: tuple[Any, ...]) -> None:
        """Run a kernel for slots, such as `advance_slots`. n : the number of slots."""
        getattr(slot_kernels, f"{name}_slots")(*arguments)


class Cuda:
    """The kernels of `engine_cuda`, on PyTorch's current stream of a device.

    The device need not be the current one. numba-cuda works in the context that is current in the
    thread. So this class makes the device current for every call of it.

    torch : the module.
    device : the torch device; without an index, the current one.

    Raises: MaskwrightError if the device is no CUDA device or does not exist; MissingExtraError if
    numba-cuda cannot be imported.
    """

    def __init__(self, torch: Any, device: Any) -> None:
        simulated = is_simulated()
        if not simulated:
            if device.type != "cuda":
                raise MaskwrightError(f"device {device} is not supported; expected cuda or cpu")
            device = checked_device(device)
        self._cuda, self._kernels = cuda_modules()
        self._torch, self.device = torch, device
        self._launchers: dict[tuple[str, int, int], Any] = {}
        few, many = (1, 3) if simulated else (self._kernels.WARP, self._kernels.WRITERS)
        self._threads = {"write": many, "load": many, "advance": few, "find": few, "begin": few}
        self._beside = None if simulated else torch.cuda.Stream(device)
        self._is_forked = False

    def view(self, tensor: Any) -> Any:
        """A tensor as the kernels take it: an array of numba-cuda in the same memory."""
        if is_simulated():
            from numba.cuda.simulator.cudadrv import devicearray

            return devicearray.FakeCUDAArray(tensor.numpy())
        with self._torch.cuda.device(self.device):
            return self._cuda.as_cuda_array(tensor)

    def sent(self, tensor: Any) -> Any:
        """A copy of a host tensor on the device, made in stream order.

        It is copied from pinned memory, which PyTorch keeps until the device has read it.

        tensor : (n,); any dtype.

        Returns (n,) of the same dtype, on the device.
        """
        if is_simulated():
            return tensor
        size = max(LEAST_MESSAGE, 1 << (len(tensor) - 1).bit_length())
        pinned = self._torch.empty(size, dtype=tensor.dtype, pin_memory=True)[: len(tensor)]
        pinned.copy_(tensor)
        there = self._torch.empty(len(tensor), dtype=tensor.dtype, device=self.device)
        there.copy_(pinned, non_blocking=True)
        return there

    @contextmanager
    def beside(self) -> Iterator[None]:
        """A context: launches inside it run beside what the current stream does next, until `join`.

        They begin after everything that the current stream was given so far.
        """
        if self._beside is None:
            yield
            return
        self._beside.wait_stream(self._torch.cuda.current_stream(self.device))
        self._is_forked = True
        with self._torch.cuda.stream(self._beside):
            yield

    def join(self) -> None:
        """Make the current stream wait for what was launched in `beside`."""
        if self._is_forked:
            self._torch.cuda.current_stream(self.device).wait_stream(self._beside)
            self._is_forked = False

    def run(self, name: str, n: int, arguments: tuple[Any, ...]) -> None:
        """Launch a kernel of `engine_cuda` with a block for each slot. n : the number of slots."""
        kernel, threads = getattr(self._kernels, name), self._threads[name]
        if is_simulated():
            kernel[n, threads](*arguments)
            return
        with self._torch.cuda.device(self.device):
            handle = int(self._torch.cuda.current_stream(self.device).cuda_stream)
            launcher = self._launchers.get((name, n, handle))
            if launcher is None:
                # PERF: a kernel with its grid and stream is kept: making one takes longer than to
                # launch it
                with warnings.catch_warnings():
                    # it warns of small grids; there is one block for each slot, however few there
                    # are
                    warnings.simplefilter("ignore")
                    launcher = kernel[n, threads, self._cuda.external_stream(handle) if handle else 0]
                self._launchers[name, n, handle] = launcher
            launcher(*arguments)


Backend = Cpu | Cuda


def cuda_modules() -> tuple[Any, Any]:
    """`numba.cuda` and `engine_cuda`.

    Raises: MissingExtraError if numba-cuda is not installed or does not fit Numba.
    """
    try:
        from numba import cuda

        from maskwright.decoding.gpu import engine_cuda
    except ImportError as error:
        raise MissingExtraError(
            f"numba-cuda is not installed or does not fit this Python's Numba ({error}): pip install 'maskwright[gpu]'"
        ) from None
    return cuda, engine_cuda


def is_simulated() -> bool:
    """Whether Numba's CUDA simulator runs instead of a GPU (NUMBA_ENABLE_CUDASIM=1)."""
    from numba.core import config

    return bool(vars(config)["ENABLE_CUDASIM"])
