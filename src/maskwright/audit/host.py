"""The process that an audited engine runs in: it is asked over a connection.

    PYTHON host.py NUMBER

NUMBER is that of a file, which `multiprocessing.connection.Connection` opens. The process first
says GREETING. A request is an operation (one byte) and some bytes, an answer a status (one byte)
and some bytes. Before it answers it may ask for tokens itself, with status ENCODE and bytes; it
then expects token ids (int32, little-endian like everything). Any Python from 3.9 on with NumPy and
the engine will do; maskwright is not needed.

| operation | bytes | answer |
|---|---|---|
| START | JSON: engine, grammar, own, own_name, vocabulary | JSON: version, python, seconds |
| RESET | | |
| FILL | | nanoseconds (int64), words (uint32) |
| ADVANCE | token ids (int32) | how many were taken (int64) |

The status is OK, or the answer is a JSON object with `message` and, for MISSING, `package`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

GREETING = b"maskwright audit 1"
START, RESET, FILL, ADVANCE = range(4)
OK, FAILED, UNSUPPORTED, MISSING, ENCODE = range(5)
ONE = struct.Struct("<q")


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

    def start(self, data: bytes) -> bytes:
        """Build the engine from a START request. Returns the answer's bytes."""
        import numpy as np

        facts = json.loads(data.decode("utf-8"))
        vocabulary = facts["vocabulary"]
        begin = time.perf_counter()
        self.sessions = self.engines.make_sessions(
            facts["engine"],
            self.engines.EngineGrammar(facts["grammar"], facts["own"], facts["own_name"]),
            self.engines.EngineVocabulary(
                vocabulary["name"],
                [bytes.fromhex(token) for token in vocabulary["tokens"]],
                {int(token): name for token, name in vocabulary["special"].items()},
                vocabulary["eos"],
                vocabulary["path"],
                self.encode,
            ),
        )
        self.session = self.sessions()
        self.words = np.zeros((len(vocabulary["tokens"]) + 31) // 32, dtype=np.uint32)
        answer = {
            "version": self.engines.version_of(facts["engine"]),
            "python": ".".join(map(str, sys.version_info[:3])),
            "seconds": time.perf_counter() - begin,
        }
        return json.dumps(answer).encode()

    def encode(self, data: bytes) -> list[int]:
        """The tokens that spell some bytes; [] if none do."""
        begin = time.perf_counter_ns()
        self.connection.send_bytes(bytes((ENCODE,)) + data)
        tokens = _ids(self.connection.recv_bytes())
        self.encoding += time.perf_counter_ns() - begin
        return tokens

    def reset(self, data: bytes) -> bytes:
        """Go back to the start of the text. Makes a new session after an error."""
        if self.session is None:
            self.session = self.sessions()
        self.session.reset()
        return b""

    def fill(self, data: bytes) -> bytes:
        """The answer to FILL: nanoseconds and the mask."""
        self.words[:] = 0
        self.encoding = 0
        begin = time.perf_counter_ns()
        self.session.fill(self.words)
        return ONE.pack(time.perf_counter_ns() - begin - self.encoding) + bytes(self.words.tobytes())

    def advance(self, data: bytes) -> bytes:
        """The answer to ADVANCE. A session that returns None has taken the token."""
        taken = 0
        for token in _ids(data):
            answer = self.session.advance(token)
            if answer is not None and not answer:
                break
            taken += 1
        return ONE.pack(taken)

    def answer(self, operation: int, data: bytes) -> tuple[int, bytes]:
        """The status of a request and the answer's bytes."""
        try:
            return OK, (self.start, self.reset, self.fill, self.advance)[operation](data)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            self.session = None
            if isinstance(error, self.engines.MissingError):
                return MISSING, json.dumps({"message": str(error), "package": error.package}).encode()
            if isinstance(error, self.engines.UnsupportedError):
                return UNSUPPORTED, json.dumps({"message": str(error)}).encode()
            return FAILED, json.dumps({"message": _message(error)}).encode()


def _ids(data: bytes) -> list[int]:
    """Token ids of a message."""
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def _message(error: BaseException) -> str:
    """An error in one line: its type and what it says."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _engines() -> Any:
    """The module `engines`, loaded by its path.

    This interpreter may not know it under any name.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engines.py")
    spec = importlib.util.spec_from_file_location("maskwright_audit_engines", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer requests until nobody asks any more."""
    # Do not import from this file's folder: its files have names that packages may have.
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != folder]
    connection = Connection(int(sys.argv[1]))
    connection.send_bytes(GREETING)
    host: Host | None = None
    while True:
        asked = connection.recv_bytes()
        try:
            if host is None:
                host = Host(_engines(), connection)
        except ModuleNotFoundError as error:
            status, found = MISSING, json.dumps({"message": str(error), "package": error.name}).encode()
        else:
            status, found = host.answer(asked[0], asked[1:])
        connection.send_bytes(bytes((status,)) + found)


if __name__ == "__main__":
    try:
        main()
    except (EOFError, OSError):  # the asking process is gone
        sys.exit(0)
