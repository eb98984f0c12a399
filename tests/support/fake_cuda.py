"""Two CUDA devices that are not there: PyTorch's and numba-cuda's calls that `gpu.py` makes, on memory of the host.

What is asked for is queued by stream and done as late as the order of streams and events lets it, or, on streams beside the first, as early
as that; so what nothing orders comes out wrong. The host's waits are counted: copies from memory that is not pinned, copies to the host,
and values that are looked at. What numba-cuda or a launch is given must be of the device that is current, as with contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from maskwright.decoding.gpu import _slot_kernels as slot_kernels


class Stream:
    """What a stream was told, in order: functions, and places of other streams to wait for."""

    def __init__(self, cuda: FakeCuda, index: int, handle: int) -> None:
        self.cuda, self.index, self.cuda_stream = cuda, index, handle
        self.queue: list[Callable[[], Any] | tuple[Stream, int]] = []
        self.n_told = self.n_done = 0

    def tell(self, what: Callable[[], Any] | tuple[Stream, int]) -> None:
        self.queue.append(what)
        self.n_told += 1
        if self.cuda.is_eager:
            for stream in self.cuda.beside:
                stream.run_what_may_run()

    def wait_stream(self, other: Stream) -> None:
        self.tell((other, other.n_told))

    def _next(self) -> None:
        what = self.queue.pop(0)
        if isinstance(what, tuple):
            what[0].run(what[1])
        else:
            what()
        self.n_done += 1

    def run(self, until: int | None = None) -> None:
        """Do what was told, up to a place, and what that waits for."""
        while self.queue and (until is None or self.n_done < until):
            self._next()

    def run_what_may_run(self) -> None:
        while self.queue and not (isinstance(self.queue[0], tuple) and self.queue[0][0].n_done < self.queue[0][1]):
            self._next()


class Tagged(torch.Tensor):
    """A tensor that knows whose memory it is; what is made from it is of the same kind."""

    index = 0

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            found = function(*args, **(kwargs or {}))
            if isinstance(found, torch.Tensor):
                first = next(each for each in args if isinstance(each, Tagged))
                found = found.as_subclass(type(first))
                found.index = first.index
        return found


class Host(Tagged):
    """Memory of the host, not pinned."""

    def to(self, device: Any, *given: Any, **named: Any) -> Any:  # type: ignore[override]
        if torch.device(device).type != "cuda":
            return super().to(device, *given, **named)
        return FakeCuda.it.there(self.as_subclass(torch.Tensor).clone(), device)


class Pinned(Tagged):
    """Pinned memory: read when the copy is done."""


class There(Tagged):
    """Memory of a device."""

    @property
    def device(self) -> Any:  # type: ignore[override]
        return torch.device("cuda", self.index)

    def plain(self) -> Any:
        return self.as_subclass(torch.Tensor)

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:  # type: ignore[override]
        cuda = FakeCuda.it
        stream = cuda.current_stream(self.device)
        given = source.as_subclass(torch.Tensor)
        stream.tell(lambda: self.plain().copy_(given))
        if not (non_blocking and isinstance(source, There | Pinned)):
            cuda.wait(stream)
        return self

    def seen(self) -> Any:
        """The values, once the device is done."""
        FakeCuda.it.wait(FakeCuda.it.current_stream(self.device))
        return self.plain()

    def cpu(self) -> Any:  # type: ignore[override]
        return self.seen().clone()

    def tolist(self) -> Any:
        return self.seen().tolist()

    def __int__(self) -> int:
        return int(self.seen())


class FakeCuda:
    """`torch.cuda`. is_eager : whether streams beside the first run as soon as they may. n_waits : how often the host waited."""

    it: FakeCuda

    def __init__(self, is_eager: bool) -> None:
        FakeCuda.it = self
        self.is_eager, self.n_waits, self.now = is_eager, 0, 0
        self.current = [Stream(self, 0, 0), Stream(self, 1, 0)]
        self.beside: list[Stream] = []

    def there(self, tensor: Any, device: Any) -> Any:
        found = tensor.as_subclass(There)
        found.index = torch.device(device).index
        return found

    def wait(self, stream: Stream) -> None:
        self.n_waits += 1
        stream.run()

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 2

    def current_device(self) -> int:
        return self.now

    def current_stream(self, device: Any = None) -> Stream:
        return self.current[self.now if device is None else torch.device(device).index]

    def Stream(self, device: Any) -> Stream:
        self.beside.append(Stream(self, torch.device(device).index, 100 + len(self.beside)))
        return self.beside[-1]

    def Event(self) -> Any:
        event = SimpleNamespace(place=None)
        event.record = lambda stream=None: setattr(event, "place", (stream or self.current_stream(), None))
        return event

    @contextmanager
    def device(self, device: Any) -> Iterator[None]:
        before, self.now = self.now, torch.device(device).index
        yield
        self.now = before

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.current[stream.index] = self.current[stream.index], stream
        with self.device(torch.device("cuda", stream.index)):
            yield
        self.current[stream.index] = before


class FakeTorch:
    """`torch`, but for what makes tensors."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def _made(self, make: Any, given: Any, device: Any = None, pin_memory: bool = False, **named: Any) -> Any:
        tensor = make(*given, **named)
        if device is not None and torch.device(device).type == "cuda":
            return self.cuda.there(tensor, device)
        return tensor.as_subclass(Pinned if pin_memory else Host)

    def zeros(self, *given: Any, **named: Any) -> Any:
        return self._made(torch.zeros, given, **named)

    def full(self, *given: Any, **named: Any) -> Any:
        return self._made(torch.full, given, **named)

    def empty(self, *given: Any, **named: Any) -> Any:
        return self._made(lambda *shape, **more: torch.full(shape, -77, **more), given, **named)

    def tensor(self, *given: Any, **named: Any) -> Any:
        return self._made(torch.tensor, given, **named)

    def as_tensor(self, *given: Any, **named: Any) -> Any:
        return self._made(torch.as_tensor, given, **named)

    def from_numpy(self, array: Any) -> Any:
        return torch.from_numpy(array).as_subclass(Host)


class View:
    """What `as_cuda_array` makes."""

    def __init__(self, array: Any, index: int) -> None:
        self.array, self.index = array, index


class FakeNumba:
    """`numba.cuda`."""

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda

    def as_cuda_array(self, tensor: Any) -> View:
        assert tensor.index == self.cuda.now, "numba-cuda was given memory of a device that is not current"
        return View(tensor.plain().numpy(), tensor.index)

    def external_stream(self, handle: int) -> Stream:
        return next(stream for stream in self.cuda.beside if stream.cuda_stream == handle)


class Kernel:
    """One that does what a loop on the CPU does."""

    def __init__(self, cuda: FakeCuda, loop: Any) -> None:
        self.cuda, self.loop = cuda, loop

    def __getitem__(self, config: Any) -> Any:
        _, _, given = config

        def launch(*arguments: Any) -> None:
            stream = given or self.cuda.current_stream()
            assert stream.index == self.cuda.now, "a kernel was launched on a stream of a device that is not current"
            assert all(each.index == self.cuda.now for each in arguments if isinstance(each, View))
            plain = [each.array if isinstance(each, View) else each for each in arguments]
            stream.tell(lambda: self.loop(*plain))

        return launch


def kernels(cuda: FakeCuda) -> Any:
    """`engine_cuda`."""
    loops = {
        name: Kernel(cuda, getattr(slot_kernels, f"{name}_slots"))
        for name in ("advance", "find", "write", "begin", "load")
    }
    return SimpleNamespace(WARP=32, WRITERS=256, **loops)


def as_array(tensor: Any) -> Any:
    """A device's memory for what is done in stream order."""
    found: np.ndarray = tensor.plain().numpy()
    return found
