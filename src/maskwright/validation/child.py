"""A program that is asked over a connection, and answers within a time."""

from __future__ import annotations

import pickle
import subprocess
from contextlib import suppress
from multiprocessing.connection import Pipe
from typing import Any


class Child:
    """A process whose program answers over a connection. It may crash or hang.

    command : the program and its arguments. One more is the number of a file, which it opens by
        `multiprocessing.connection.Connection`. What comes over it is pickled.
    said : the file for what it prints; None for nowhere.

    Raises: OSError if it cannot be run.
    """

    def __init__(self, command: list[str], said: Any = subprocess.DEVNULL) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            # A session of its own: Ctrl-C reaches only this process, which then ends the other one.
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )

    def send(self, message: Any) -> None:
        """Send a message. Raises: EOFError if it has ended."""
        try:
            self._connection.send_bytes(pickle.dumps(message, protocol=4))  # any Python 3 reads that
        except OSError:
            raise EOFError from None

    def receive(self, seconds: float) -> Any:
        """The next message of the program.

        Raises: TimeoutError if none comes in time; EOFError if it has ended.
        """
        if not self._connection.poll(seconds):
            raise TimeoutError
        try:
            return self._connection.recv()
        except OSError:
            raise EOFError from None

    def end(self, seconds: float = 0.0) -> int:
        """End it, whatever it does; returns its exit code.

        seconds : how long it may take to end by itself.
        """
        self._connection.close()
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        self.process.kill()
        return self.process.wait()
