"""Host memory for copies to a device that the host does not wait for: two buffers in turn.

No buffer is written before its last copy is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits.optional import need_torch


class Staging:
    """Two int32 buffers. Each turn takes the one not used last, once that one's copies are done.

    size : integers of a buffer.
    is_pinned : whether the buffers are in pinned memory.
    make_event : makes an event. Its `record()` marks that all copies so far were asked for, and its
        `synchronize()` waits until they are done. None if copies are not asynchronous.

    INVARIANT: when a turn begins, all copies from host memory of two turns ago or earlier are done.
    In practice this does not wait: the host has seen the tokens of the last step, which were drawn
    after its copies.
    """

    def __init__(self, size: int, is_pinned: bool, make_event: Callable[[], Any] | None) -> None:
        torch = need_torch()
        self.buffers = [torch.zeros(size, dtype=torch.int32, pin_memory=is_pinned) for _ in range(2)]
        self._events = [make_event() for _ in range(2)] if make_event else []
        self._is_used = [False, False]
        self._turn = 1

    def begin(self) -> Any:
        """The next buffer, which may be written now: (size,) int32."""
        self._turn = 1 - self._turn
        if self._is_used[self._turn]:
            self._events[self._turn].synchronize()
            self._is_used[self._turn] = False
        return self.buffers[self._turn]

    def end(self) -> None:
        """End a turn: all its copies have been asked for, on the current stream."""
        if self._events:
            self._events[self._turn].record()
            self._is_used[self._turn] = True


class StreamEvent:
    """An event on a given device, recorded on the stream that is current there.

    The current device may be another one.
    """

    def __init__(self, device: Any) -> None:
        self._device, self._event = device, need_torch().cuda.Event()

    def record(self) -> None:
        """Mark that all work so far on the device's current stream was asked for."""
        self._event.record(need_torch().cuda.current_stream(self._device))

    def synchronize(self) -> None:
        """Wait until the marked work is done."""
        self._event.synchronize()


def named_device(device: Any) -> Any:
    """A device as torch names it.

    Raises: MaskwrightError if there is no device of that name; MissingExtraError if torch is not
    installed.
    """
    try:
        return need_torch().device(device)
    except (RuntimeError, TypeError) as error:
        raise MaskwrightError(f"{device!r} is not a device: {error}") from None


def checked_device(device: Any) -> Any:
    """A device that exists, as torch names it; a CUDA device with its index.

    Raises: MaskwrightError if it does not exist; MissingExtraError if torch is not installed.
    """
    torch = need_torch()
    found = named_device(device)
    if found.type == "cuda":
        if not torch.cuda.is_available():
            raise MaskwrightError(
                f"there is no CUDA device here that PyTorch {torch.__version__} can use; give device='cpu', or install PyTorch for CUDA"
            )
        index = torch.cuda.current_device() if found.index is None else found.index
        if index >= torch.cuda.device_count():
            raise MaskwrightError(f"there is no {found}: PyTorch finds {torch.cuda.device_count()} CUDA devices")
        found = torch.device("cuda", index)
    return found
