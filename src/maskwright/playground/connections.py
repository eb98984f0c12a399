"""Connections of the server: how long each may take to say something, and how they are closed.

A socket that is closed while it holds bytes that nobody has read takes back (RST) what was sent
before. So a connection is first closed for writing, and what its client still sends is read, for a
short time and by nobody who would have to wait.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from contextlib import suppress

_LINGER = 1.0
"""Seconds that a client has to close a connection after its answer."""
_MOST = 128
"""The most connections that are waited for so; the oldest are closed at once."""
_MOST_READ = 1 << 20
"""The most bytes of one connection that a call reads."""


class Connections:
    """The connections whose clients are waited for. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[socket.socket, float] = {}
        self._late: set[socket.socket] = set()
        self._closing: deque[tuple[socket.socket, float]] = deque()

    def wait_for(self, connection: socket.socket, seconds: float) -> None:
        """Let a client have so many seconds from now, in place of what it had."""
        with self._lock:
            self._due[connection] = time.monotonic() + seconds

    def has_spoken(self, connection: socket.socket) -> bool:
        """Wait for a client no longer. Returns whether it has said all in time."""
        with self._lock:
            self._due.pop(connection, None)
            return connection not in self._late

    def close(self, connection: socket.socket) -> None:
        """Close a connection so that its client gets all that was sent. Returns at once."""
        self.has_spoken(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            connection.setblocking(False)
        with self._lock:
            self._late.discard(connection)
            self._closing.append((connection, time.monotonic() + _LINGER))
            over = [self._closing.popleft()[0] for _ in range(len(self._closing) - _MOST)]
        for each in over:
            each.close()

    def look(self) -> None:
        """Do what is due; to be called now and then. It does not wait.

        A client whose time is up is heard no more, and who reads from the connection finds its end.
        """
        now = time.monotonic()
        with self._lock:
            late = [each for each, end in self._due.items() if now > end]
            for each in late:
                del self._due[each]
                self._late.add(each)
            closing = list(self._closing)
            self._closing.clear()
        for each in late:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RD)
        kept = [(each, end) for each, end in closing if now < end and not _has_ended(each)]
        for each in {each for each, _ in closing}.difference(each for each, _ in kept):
            each.close()
        with self._lock:
            self._closing.extendleft(reversed(kept))

    def end(self) -> None:
        """Close those that are left."""
        with self._lock:
            left = [each for each, _ in self._closing]
            self._closing.clear()
        for each in left:
            each.close()


def _has_ended(connection: socket.socket) -> bool:
    """Read what a client has sent. Returns whether it has closed the connection."""
    read = 0
    try:
        while read < _MOST_READ:
            data = connection.recv(1 << 16)
            if not data:
                return True
            read += len(data)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return False


__all__ = ["Connections"]
