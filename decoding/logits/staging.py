"""Host memory that is copied to a device while the host goes on: two buffers in turn, neither written before it was read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits.optional import need_torch


class Staging:
    """Two pinned int32 buffers. Each turn takes the one that was not used last, once the copies of its last turn are done.

    make_event : makes what has `record()`, behind copies, and `synchronize()`, until they are done; None where copies are not asynchronous.

    INVARIANT: whatever was copied from host memory two turns ago or earlier has been copied when a turn begins. In practice nothing is
    waited for: tokens of the last step, which the host has seen, were drawn behind its copies.
    """

    def __init__(self, size: int, is_pinned: bool, make_event: Callable[[], Any] | None) -> None:
        torch = need_torch()
        self.buffers = [torch.zeros(size, dtype=torch.int32, pin_memory=is_pinned) for _ in range(2)]
        self._events = [make_event() for _ in range(2)] if make_event else []
        self._is_used = [False, False]
        self._turn = 1

    def begin(self) -> Any:
        """The next buffer, free to be written."""
        self._turn = 1 - self._turn
        if self._is_used[self._turn]:
            self._events[self._turn].synchronize()
            self._is_used[self._turn] = False
        return self.buffers[self._turn]

    def end(self) -> None:
        """All copies of this turn have been asked for, on the current stream."""
        if self._events:
            self._events[self._turn].record()
            self._is_used[self._turn] = True


class StreamEvent:
    """An event on whatever is the current stream of a device when it is recorded, though another device may be the current one."""

    def __init__(self, device: Any) -> None:
        self._device, self._event = device, need_torch().cuda.Event()

    def record(self) -> None:
        self._event.record(need_torch().cuda.current_stream(self._device))

    def synchronize(self) -> None:
        self._event.synchronize()


def named_device(device: Any) -> Any:
    """A device as torch names it. Raises MaskwrightError for what names none."""
    try:
        return need_torch().device(device)
    except (RuntimeError, TypeError) as error:
        raise MaskwrightError(f"{device!r} is no device: {error}") from None


def checked_device(device: Any) -> Any:
    """A device that is there, as torch names it, with its index. Raises MaskwrightError."""
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
