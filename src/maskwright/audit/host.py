"""The process that an audited engine runs in: it is asked over a connection.

    PYTHON host.py NUMBER

NUMBER is that of a file, which `multiprocessing.connection.Connection` opens. What comes over it is
pickled: it is of plain types, and nobody else has the file. The process first says GREETING. Then
a request is an operation, a method of `Host`, with its arguments; an answer is a status and a
value. Before it answers it may ask for tokens itself, with status ENCODE and bytes; it then expects
token ids. Any Python from 3.9 on with NumPy and the engine will do; maskwright is not needed.

The value is what the method returns, if the status is OK; else what went wrong, in words; and for
MISSING that and the package.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

GREETING = "maskwright audit 2"
OK, FAILED, UNSUPPORTED, MISSING, ENCODE = "ok", "failed", "unsupported", "missing", "encode"


class Host:
    """Runs one session of an engine at a time.

    If a text ended in an error, the next one gets a new session. Times do not include what the
    other side takes to encode.

    engines : the module `engines`.
    connection : to the asking process.
    """

    def __init__(self, engines: Any, connection: Connection) -> None:
        self.engines, self.connection = engines, connection
        self.encoding = 0
        self.sessions: Any = None
        self.session: Any = None
        self.words: Any = None

    def start(self, engine: str, grammar: Any, vocabulary: Any) -> dict[str, Any]:
        """Build the engine. Returns what it says of itself: version, python, seconds.

        grammar : the members of an `EngineGrammar`.
        vocabulary : the members of an `EngineVocabulary`, without `encode`.
        """
        import numpy as np

        begin = time.perf_counter()
        given = self.engines.EngineVocabulary(*vocabulary, self.encode)
        self.sessions = self.engines.make_sessions(engine, self.engines.EngineGrammar(*grammar), given)
        self.session = self.sessions()
        self.words = np.zeros((len(given.tokens) + 31) // 32, dtype=np.uint32)
        return {
            "version": self.engines.version_of(engine),
            "python": ".".join(map(str, sys.version_info[:3])),
            "seconds": time.perf_counter() - begin,
        }

    def encode(self, data: bytes) -> list[int]:
        """The tokens that spell some bytes; [] if none do."""
        begin = time.perf_counter_ns()
        self.connection.send((ENCODE, bytes(data)))
        tokens: list[int] = self.connection.recv()
        self.encoding += time.perf_counter_ns() - begin
        return tokens

    def reset(self) -> None:
        """Go back to the start of the text. Makes a new session after an error."""
        if self.session is None:
            self.session = self.sessions()
        self.session.reset()

    def fill(self) -> tuple[int, bytes]:
        """The nanoseconds that a mask takes, and its words, little-endian."""
        self.words[:] = 0
        self.encoding = 0
        begin = time.perf_counter_ns()
        self.session.fill(self.words)
        return time.perf_counter_ns() - begin - self.encoding, self.words.astype("<u4").tobytes()

    def advance(self, tokens: list[int]) -> int:
        """How many tokens are taken. A session that returns None has taken the token."""
        for taken, token in enumerate(tokens):
            answer = self.session.advance(token)
            if answer is not None and not answer:
                return taken
        return len(tokens)

    def answer(self, operation: str, *arguments: Any) -> tuple[str, Any]:
        """The status of a request, and the value of the answer."""
        try:
            return OK, getattr(self, operation)(*arguments)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            self.session = None
            if isinstance(error, self.engines.MissingError):
                return MISSING, (str(error), error.package)
            if isinstance(error, self.engines.UnsupportedError):
                return UNSUPPORTED, str(error)
            text = str(error).strip()
            return FAILED, f"{type(error).__name__}: {text}" if text else type(error).__name__


def main() -> None:
    """Answer requests until nobody asks any more."""
    # Do not import from this file's folder: its files have names that packages may have.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != folder]
    connection = Connection(int(sys.argv[1]))
    connection.send(GREETING)
    # This interpreter may not know the module under any name.
    engines = os.path.join(folder, "engines.py")
    host: Host | None = None
    while True:
        asked = connection.recv()
        try:
            if host is None:
                host = Host(SimpleNamespace(**runpy.run_path(engines)), connection)
            said = host.answer(*asked)
        except ModuleNotFoundError as error:  # of NumPy
            said = MISSING, (str(error), error.name)
        connection.send(said)


if __name__ == "__main__":
    try:
        main()
    except (EOFError, OSError):  # the asking process is gone
        sys.exit(0)
