"""The server of the page: what a browser may ask, and what it hears.

It reads no file but the page: what requests bring goes to worker processes, which open none of the
files that it names. A request is refused unless it names this machine as its host, so that no name
that somebody has pointed at this machine (DNS rebinding) lets another page in, and unless it comes
from the page itself. The page loads nothing from anywhere, and its policy says so to the browser.
"""

from __future__ import annotations

import base64
import hashlib
import io
import ipaddress
import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from socketserver import TCPServer
from typing import Any
from urllib.parse import urlsplit

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.kept import cached_property
from maskwright.analysis.nesting import read_json
from maskwright.playground.questions import examples, library_text
from maskwright.worker import Setup
from maskwright.worker_pool import BusyError, CancelledError, Pool, WorkerError

MOST_BODY = 2_000_000
"""The most bytes of a request's body."""
MOST_CONNECTIONS = 32
"""The most requests at a time; others are turned away."""
HEADER_SECONDS = 5
"""How long a client may take to send the headers of its request."""
READ_SECONDS = 20
"""How long a client may take to send the body of its request."""
LINGER_SECONDS = 1.0
"""How long a client has to close the connection after its answer."""
MARGIN = 1.0
"""CPU seconds that a worker has beyond its own limit."""
_OF_ALL = ("constraint", "kind", "whitespace")
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "about": (),
    "mask": ("before", "after", "show", "sort", "search", "first", "size"),
    "explain": ("before", "token", "byte"),
    "ending": ("before",),
    "lint": (),
    "complete": ("before", "max_tokens", "temperature", "seed"),
}
QUESTIONS = tuple(_MEMBERS)
"""What can be asked, by the last part of the path."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class AnswerPool(Pool):
    """Workers that answer questions, see `Answers`. They begin to start at once.

    tokenizer : as for `load_vocabulary`.
    seconds : of CPU time that one answer may take, and of wall time that a worker is waited for.
    most_memory : bytes of memory that an answer may ask for, where the platform can limit it.
    size : how many there are.

    Raises: NoProcessError if none can be started.
    """

    def __init__(self, tokenizer: str, seconds: float, most_memory: int, size: int = 2) -> None:
        super().__init__(Setup("maskwright.playground.answers:answering", (tokenizer, seconds), most_memory), size)
        self.seconds = seconds
        self.start()

    def answer(self, question: Mapping[str, Any], is_cancelled: Callable[[], bool] = lambda: False) -> dict[str, Any]:
        """The answer to a question, as `Answers.answer`.

        is_cancelled : see `Pool.ask`, as for what it raises.
        """
        key = question.get("kind"), question.get("constraint")
        seconds = self.seconds + MARGIN
        found: dict[str, Any] = self.ask(
            dict(question), seconds, "the answer", key=key, waiting=self.seconds, is_cancelled=is_cancelled
        )
        return found


class PlaygroundServer(ThreadingHTTPServer):
    """Serves the page and its answers; one thread a request.

    pool : the workers, which are not the server's to close.
    host : a name or an address to listen at. Others than loopback let other machines in.
    port : 0 for any that is free.

    Raises: OSError if it cannot listen there.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(self, pool: AnswerPool, host: str = "127.0.0.1", port: int = 0) -> None:
        self.pool = pool
        self._named = host.strip("[]").lower()
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        found = socket.getaddrinfo(self._named, port, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        super().__init__((self._named, port), _Handler)

    def server_bind(self) -> None:
        """Listen, without asking a name server for the machine's name as `HTTPServer` does."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self._named, self.server_address[1]

    @property
    def is_local(self) -> bool:
        """Whether this machine alone can reach it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    @property
    def url(self) -> str:
        """The address of the page, for a browser on this machine."""
        named = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._named, self._named)
        shown = f"[{named}]" if ":" in named else named
        return f"http://{shown}:{self.server_port}/"

    @cached_property
    def page(self) -> bytes:
        """The page, in UTF-8."""
        return files("maskwright.playground").joinpath("page.html").read_bytes()

    @cached_property
    def policy(self) -> str:
        """The Content-Security-Policy: the page's own script and style, and requests to itself."""
        text = self.page.decode()
        scripts, styles = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("script", "style"))
        return "; ".join(
            [
                "default-src 'none'",
                f"script-src {_hashes(scripts)}",
                f"style-src {_hashes(styles)}",
                "connect-src 'self'",
                "img-src data:",
                "base-uri 'none'",
                "form-action 'none'",
                "frame-ancestors 'none'",
            ]
        )

    def is_ours(self, host: str) -> bool:
        """Whether a Host header, or the host of an origin, names this server.

        Where the server listens at all addresses of the machine, any address is right, since only a
        name can be pointed elsewhere.
        """
        try:
            found = urlsplit(f"//{host}")
            name, port = (found.hostname or "").lower(), found.port or 80
        except ValueError:
            return False
        if port != self.server_port or found.username is not None or found.path:
            return False
        if name in (*_LOOPBACK, self._named):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._named in ("", "0.0.0.0", "::")

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a request may have a thread, if only to hear that there are too many."""
        return threading.active_count() < 8 * MOST_CONNECTIONS

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer a request, in its thread; where too many are under way, say that alone."""
        has_place = self._places.acquire(blocking=False)
        try:
            (_Handler if has_place else _BusyHandler)(request, client_address, self)
        finally:
            if has_place:
                self._places.release()
        _linger(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that has gone is no error of the server."""


def _linger(connection: socket.socket) -> None:
    """Wait until a client has closed its connection, or for a short time.

    A socket that is closed while it holds bytes that nobody has read takes back (RST) what was sent
    before. So it is first closed for writing, and what the client still sends is read.
    """
    end = time.monotonic() + LINGER_SECONDS
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
        while (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(1 << 16):
                return


class _Incoming(io.RawIOBase):
    """What a client sends. It ends when the client's time is up, whatever has come until then."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.is_late = False
        self.wait(HEADER_SECONDS)

    def wait(self, seconds: float) -> None:
        """Let the client have so many seconds from now."""
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            self._connection.settimeout(max(self._end - time.monotonic(), 0.001))
            return 0 if self.is_late else self._connection.recv_into(buffer)
        except TimeoutError:
            self.is_late = True
            return 0


def _hashes(parts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts)
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


class _RefusedError(Exception):
    """A request that is refused: the status, and why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class _Handler(BaseHTTPRequestHandler):
    server: PlaygroundServer
    server_version = "maskwright"
    sys_version = ""
    default_request_version = "HTTP/1.0"  # an answer to what is no request has headers too

    def setup(self) -> None:
        super().setup()
        self.incoming = _Incoming(self.connection)
        self.rfile = io.BufferedReader(self.incoming)

    def do_GET(self) -> None:
        self._respond(self._get)

    def do_HEAD(self) -> None:
        self._respond(self._get)

    def do_POST(self) -> None:
        self._respond(self._post)

    def _respond(self, method: Any) -> None:
        try:
            self._check_sender()
            status, kind, body = method()
        except _RefusedError as refused:
            status, kind, body = refused.status, _JSON, _error(refused.message)
        self._send(status, kind, body)

    def _check_sender(self) -> None:
        """Refuse what does not come to this server by its own name, or from another page."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.is_ours(hosts[0]):
            raise _RefusedError(HTTPStatus.MISDIRECTED_REQUEST, "the request's Host is not this server")
        origin = self.headers.get("Origin")
        if origin is not None and (
            not origin.startswith("http://") or not self.server.is_ours(origin.removeprefix("http://"))
        ):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "the request comes from another page")
        if self.headers.get("Sec-Fetch-Site") not in (None, "same-origin", "none"):
            raise _RefusedError(HTTPStatus.FORBIDDEN, "the request comes from another site")

    def _get(self) -> tuple[HTTPStatus, str, bytes]:
        if self.path == "/":
            return HTTPStatus.OK, "text/html; charset=utf-8", self.server.page
        if self.path == "/api/examples":
            return HTTPStatus.OK, _JSON, _json({"examples": [each._asdict() for each in examples()]})
        if self.path.startswith("/api/library/"):
            text = library_text(self.path.removeprefix("/api/library/"))
            if text is not None:
                return HTTPStatus.OK, _JSON, _json({"text": text})
        raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _post(self) -> tuple[HTTPStatus, str, bytes]:
        name = self.path.removeprefix("/api/")
        if not self.path.startswith("/api/") or name not in QUESTIONS:
            raise _RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")
        question = self._question(name)
        try:
            found = self.server.pool.answer({**question, "ask": name}, self._has_gone)
        except CancelledError as error:
            raise _RefusedError(HTTPStatus.REQUEST_TIMEOUT, str(error)) from None
        except BusyError as error:
            raise _RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        except (WorkerError, MaskwrightError) as error:
            raise _RefusedError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None
        status = HTTPStatus.OK
        if "error" in found:
            is_late = found["error"].get("is_late", False)
            status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.UNPROCESSABLE_ENTITY
        return status, _JSON, _json(found)

    def _question(self, name: str) -> dict[str, Any]:
        """The body: a JSON object with the members of a question."""
        if self.headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is not said to be application/json")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdecimal()) or "Transfer-Encoding" in self.headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED, "the request does not say how long its body is")
        if len(length) > 12 or int(length) > MOST_BODY:
            raise _RefusedError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the body has more than {MOST_BODY:,} bytes, the most that is taken",
            )
        self.incoming.wait(READ_SECONDS)
        body = self.rfile.read(int(length))
        if self.incoming.is_late:
            raise _RefusedError(HTTPStatus.REQUEST_TIMEOUT, _LATE)
        try:
            return members_of(name, body)
        except MaskwrightError as error:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from None

    def _has_gone(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            if not select.select([self.connection], [], [], 0)[0]:
                return False
            return not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what is no request that is known here, in JSON like the rest."""
        status = HTTPStatus(code)
        self._send(status, _JSON, _error(message or status.phrase))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        """Answer. What has not come as a whole in time hears that alone."""
        if self.incoming.is_late:
            status, kind, body = HTTPStatus.REQUEST_TIMEOUT, _JSON, _error(_LATE)
        self.connection.settimeout(READ_SECONDS)
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", self.server.policy),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Nothing: requests are no news."""


class _BusyHandler(_Handler):
    """Does not wait for the request."""

    requestline = request_version = command = ""

    def handle(self) -> None:
        self._send(HTTPStatus.SERVICE_UNAVAILABLE, _JSON, _error(_BUSY))


def members_of(name: str, body: bytes) -> dict[str, Any]:
    """The members of a question.

    name : one of `QUESTIONS`.
    body : the JSON text.

    Raises: MaskwrightError for what is not a JSON object, or names a member twice; UnknownNameError
    for a member that the question does not have.

    >>> members_of("ending", b'{"constraint": "[a-z]+", "before": "a"}')
    {'constraint': '[a-z]+', 'before': 'a'}
    """
    try:
        found = read_json(body, object_pairs_hook=_once)
    except MaskwrightError:
        raise
    except ValueError:
        raise MaskwrightError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise MaskwrightError("the body is not a JSON object")
    known = _OF_ALL + _MEMBERS[name]
    for member in found:
        if member not in known:
            raise UnknownNameError(f"{name} has no member {clip(member)}{suggestion(member[:60], known)}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for member, _ in pairs:
            if member in seen:
                raise MaskwrightError(f"the body has the member {clip(member)} twice; leave one of them out")
            seen.add(member)
    return found


_JSON = "application/json"
_BUSY = f"busy: {MOST_CONNECTIONS} requests are under way, the most at a time; try again later"
_LATE = f"the request did not come within {HEADER_SECONDS} s, its body within {READ_SECONDS} s"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _error(message: str) -> bytes:
    return _json({"error": {"message": message}})


__all__ = ["MOST_BODY", "MOST_CONNECTIONS", "AnswerPool", "PlaygroundServer"]
