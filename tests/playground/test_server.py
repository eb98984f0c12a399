"""What the playground's server answers to browsers, to other pages and to hostile clients."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from shares import share

from maskwright import worker_pool
from maskwright.playground.questions import examples
from maskwright.playground.server import MOST_BODY, MOST_CONNECTIONS, QUESTIONS, AnswerPool, PlaygroundServer

SUM = 'start: N ("+" N)*\nN: /[0-9]+/\n'
SECONDS = 5.0


@contextmanager
def serving(seconds: float) -> Iterator[PlaygroundServer]:
    """A server that gives answers so much time."""
    pool = AnswerPool("python-tiny", seconds, 4 << 30)
    made = PlaygroundServer(pool)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield made
    made.shutdown()
    pool.close()
    made.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[PlaygroundServer]:
    with serving(SECONDS) as made:
        yield made


def send(
    server: PlaygroundServer, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    given = {"Content-Type": "application/json"} if data is not None else {}
    connection.request(method, path, data, {**given, **(headers or {})})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def post(server: PlaygroundServer, name: str, **question: Any) -> tuple[int, Any]:
    status, _, data = send(server, "POST", f"/api/{name}", question)
    return status, json.loads(data)


def wait_for_workers(server: PlaygroundServer) -> None:
    """Wait until all workers have started."""
    deadline = time.monotonic() + 120
    while not all(worker.is_ready or worker.connection.poll(0) for worker in list(server.pool._workers)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_the_page_and_its_policy(server: PlaygroundServer) -> None:
    status, headers, data = send(server, "GET", "/")
    assert status == 200 and b"maskwright playground" in data
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert b"http://" not in data and b"https://" not in data and b"src=" not in data and b"style=" not in data
    assert send(server, "HEAD", "/")[2] == b""


def test_every_question_has_an_answer() -> None:
    pytest.importorskip("transformers")
    with serving(100) as server:  # a busy machine loads a model for longer than SECONDS
        check_questions(server)


def check_questions(server: PlaygroundServer) -> None:
    questions: dict[str, dict[str, Any]] = {
        "about": {},
        "mask": {"before": "1"},
        "explain": {"before": "1", "byte": 43},
        "ending": {"before": "1+"},
        "lint": {},
        "complete": {"before": "1+", "max_tokens": 3},
    }
    assert set(questions) == set(QUESTIONS)
    for name, more in questions.items():
        status, found = post(server, name, constraint=SUM, **more)
        assert status == 200 and "error" not in found, (name, found)
    found = json.loads(send(server, "GET", "/api/examples")[2])
    assert len(found["examples"]) == len(examples())
    assert "start:" in json.loads(send(server, "GET", "/api/library/json")[2])["text"]
    assert post(server, "mask", constraint="start: (")[0] == 422


@pytest.mark.parametrize(
    "path", ["/x", "/../../etc/passwd", "/api/library/../server.py", "/api/library/%2e%2e/x", "/page.html", "/?x"]
)
def test_nothing_else_is_served(server: PlaygroundServer, path: str) -> None:
    assert send(server, "GET", path)[0] == 404
    assert send(server, "POST", path, {})[0] == 404


def test_requests_of_others_are_refused(server: PlaygroundServer) -> None:
    port = server.server_port
    right = [f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"]
    wrong = [
        "evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}",
        f"10.0.0.1:{port}", f"a@127.0.0.1:{port}", f"127.0.0.1:{port}/x", "", f"[::1:{port}", f"127.0.0.1:{'9' * 30}",
    ]  # fmt: skip
    for host in right:
        assert send(server, "GET", "/", None, {"Host": host})[0] == 200, host
    for host in wrong:
        assert send(server, "GET", "/", None, {"Host": host})[0] == 421, host
        assert send(server, "POST", "/api/about", {}, {"Host": host})[0] == 421, host
    for origin in ("https://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}"):
        assert send(server, "POST", "/api/about", {}, {"Origin": origin})[0] == 403, origin
    assert send(server, "POST", "/api/about", {}, {"Origin": f"http://localhost:{port}"})[0] == 200
    assert send(server, "POST", "/api/about", {}, {"Sec-Fetch-Site": "cross-site"})[0] == 403
    with socket.create_connection(("127.0.0.1", port)) as bare:
        bare.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n".encode())
        assert b" 421 " in bare.recv(100)
    with socket.create_connection(("127.0.0.1", port)) as bare:
        bare.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 421 " in bare.recv(100)


def test_bodies_are_limited(server: PlaygroundServer) -> None:
    assert send(server, "POST", "/api/about", b"{}", {"Content-Type": "text/plain"})[0] == 415
    for length, status in (("x", 411), ("-1", 411), ("²", 411), (str(MOST_BODY + 1), 413), ("9" * 100, 413)):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        connection.putrequest("POST", "/api/about")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", length.encode())
        connection.endheaders()
        assert connection.getresponse().status == status, length
    for body in (b"", b"[]", b"7", b"{", b"[" * 100_000, b"\xff"):
        assert send(server, "POST", "/api/about", body)[0] == 400, body[:9]
    status, found = post(server, "mask", constraint="x" * (MOST_BODY - 100))
    assert status == 422 and "at most" in found["error"]["message"]


@pytest.mark.slow
def test_two_requests_at_once(server: PlaygroundServer) -> None:
    """A quick question is answered while a slow one is under way."""
    wait_for_workers(server)
    slow: list[Any] = []
    thread = threading.Thread(target=lambda: slow.append(post(server, "mask", constraint="(a|a)*" * 3_000)))
    thread.start()
    time.sleep(0.3)
    status, found = post(server, "mask", constraint=SUM, before="1")
    assert status == 200 and found["is_whole"] and thread.is_alive()
    thread.join()
    assert slow[0][0] in (422, 504), slow


def test_many_requests_at_once(server: PlaygroundServer) -> None:
    found: list[Any] = []
    texts = [str(number) + "+" for number in range(24)]
    threads = [
        threading.Thread(
            target=lambda text=text: found.append((text, post(server, "mask", constraint=SUM, before=text)))
        )
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(text for text, _ in found) == sorted(texts)
    assert all(status == 200 and answer["at"] == len(text) for text, (status, answer) in found)


@pytest.mark.parametrize("constraint", ["{" * 100_000, 'start: "a"~1000000\n', '{"enum": [' + "1," * 400_000 + "1]}"])
def test_hostile_grammars_do_not_take_the_server_down(server: PlaygroundServer, constraint: str) -> None:
    status, found = post(server, "mask", constraint=constraint)
    assert status in (200, 422, 504) and "please report" not in str(found)
    assert post(server, "ending", constraint=SUM, before="1+")[1]["text"] == "0"


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(server: PlaygroundServer) -> None:
    for worker in server.pool._workers:
        worker.process.kill()
    answers = [post(server, "mask", constraint=SUM, before="1") for _ in range(4)]
    assert answers[-1][0] == 200
    assert all(status == 200 or "has died" in found["error"]["message"] for status, found in answers)


def test_a_client_that_leaves_cancels_its_question(server: PlaygroundServer) -> None:
    wait_for_workers(server)
    connection = socket.create_connection(("127.0.0.1", server.server_port))
    body = json.dumps({"constraint": "(a|a)*" * 3_000, "kind": "regex"}).encode()
    head = f"POST /api/mask HTTP/1.0\r\nHost: 127.0.0.1:{server.server_port}\r\nContent-Type: application/json\r\n"
    connection.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    deadline = time.monotonic() + 30
    while len(server.pool._idle) == 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    begin = time.monotonic()
    connection.close()
    while len(server.pool._idle) < 2:
        assert time.monotonic() < begin + SECONDS - 2, "the worker was not ended"
        time.sleep(0.02)


def test_a_client_that_says_nothing_does_not_keep_others_out(server: PlaygroundServer) -> None:
    held = [socket.create_connection(("127.0.0.1", server.server_port)) for _ in range(10)]
    assert post(server, "about")[0] == 200
    for connection in held:
        connection.close()


def bare(server: PlaygroundServer, head: bytes = b"") -> socket.socket:
    """A connection that sends what it is told, and waits."""
    connection = socket.create_connection(("127.0.0.1", server.server_port), timeout=60)
    connection.sendall(head)
    return connection


def read_all(connection: socket.socket) -> tuple[bytes, Any]:
    """The first line of an answer, and its JSON."""
    with connection:
        data = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = data.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0], json.loads(body)


def test_a_thread_that_cannot_start_takes_no_place(server: PlaygroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        for _ in range(MOST_CONNECTIONS + 1):
            bare(server, b"GET / HTTP/1.1\r\n\r\n").recv(1)
    assert send(server, "GET", "/")[0] == 200


def test_all_workers_are_busy(server: PlaygroundServer) -> None:
    """Those that come then hear it, also who sends a long body; who does not send a request is dropped."""
    held = [bare(server, b"POST /api/mask HTTP/1.1\r\nHost: ") for _ in range(MOST_CONNECTIONS)]
    begin = time.monotonic()
    while server._places._value:
        assert time.monotonic() < begin + 4
        time.sleep(0.01)
    for body in (None, {"constraint": "x" * 1_000_000}):
        status, headers, data = send(server, "POST" if body else "GET", "/api/mask" if body else "/", body)
        assert status == 503 and headers["Content-Type"] == "application/json" and "Content-Security-Policy" in headers
        assert "busy" in json.loads(data)["error"]["message"]
    line, found = read_all(held[0])
    assert b" 408 " in line and "within 5 s" in found["error"]["message"] and time.monotonic() < begin + 8
    held[1].recv(1)
    assert send(server, "GET", "/")[0] == 200
    for connection in held:
        connection.close()


def test_bytes_that_trickle_in_do_not_keep_a_place(server: PlaygroundServer) -> None:
    connection, begin = bare(server, b"GET / HTTP/1.1\r\nX: "), time.monotonic()
    connection.settimeout(0.2)
    answer = b""
    while not answer:
        assert time.monotonic() < begin + 8
        connection.sendall(b"x")
        with suppress(TimeoutError):
            answer = connection.recv(100)
    assert b" 408 " in answer
    connection.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"BREW / HTTP/1.1\r\n\r\n", 501),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/x\r\n\r\n", 400),
        (b"POST /api/mask HTTP/1.1\r\nHost: x\r\n\r\n" + b"x" * 1_000_000, 421),
    ],
)
def test_all_errors_are_json_and_arrive(server: PlaygroundServer, head: bytes, status: int) -> None:
    line, found = read_all(bare(server, head))
    assert f" {status} ".encode() in line and found["error"]["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"constraint": SUM, "befor": "1"}, "did you mean 'before'"),
        ({"constraint": SUM, "ask": "lint"}, "no member 'ask'"),
        (b'{"constraint": "a", "constraint": "b"}', "member 'constraint' twice"),
    ],
)
def test_members_that_are_unknown_or_come_twice_are_refused(server: PlaygroundServer, body: Any, said: str) -> None:
    status, _, data = send(server, "POST", "/api/mask", body)
    assert status == 400 and said in json.loads(data)["error"]["message"]


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("localhost", "localhost"), ("0.0.0.0", "127.0.0.1")])
def test_it_listens_where_it_is_told(server: PlaygroundServer, host: str, shown: str) -> None:
    try:
        other = PlaygroundServer(server.pool, host)
    except OSError:
        pytest.skip(f"there is no {host} here")
    threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        assert other.url == f"http://{shown}:{other.server_port}/" and other.is_local == (host != "0.0.0.0")
        connection = http.client.HTTPConnection(shown.strip("[]"), other.server_port, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        other.shutdown()
        other.server_close()


def test_other_addresses() -> None:
    class Anywhere(PlaygroundServer):
        def __init__(self, named: str) -> None:
            self._named, self.server_port = named, 80

    assert Anywhere("0.0.0.0").is_ours("192.168.3.4") and not Anywhere("0.0.0.0").is_ours("evil.example")
    assert Anywhere("box.local").is_ours("box.local:80") and not Anywhere("box.local").is_ours("192.168.3.4")


# as from a terminal: a process started in the background may have been told to ignore the signal
obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("is_busy", [False, True])
def test_ctrl_c_ends_it_within_a_second(is_busy: bool) -> None:
    command = [sys.executable, "-m", "maskwright", "playground", "--no-browser", "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=obey, start_new_session=True
    )
    assert process.stdout is not None and process.stderr is not None
    url = process.stdout.readline().split()[-1]
    port = int(url.rstrip("/").rpartition(":")[2])
    if is_busy:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"constraint": "(a|a)*" * 3_000})
        connection.request("POST", "/api/mask", body, {"Content-Type": "application/json"})
        time.sleep(1)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
    code = process.wait(30)
    assert code == 0 and time.monotonic() - begin < 2
    said = process.stderr.read()
    assert "the playground has ended" in said and "Traceback" not in said


STARTED = """
import os
from maskwright.playground.server import AnswerPool
if __name__ == "__main__":
    pool = AnswerPool("python-tiny", 5, 4 << 30)
    for worker in pool._workers:
        print(os.getsid(worker.process.pid) == worker.process.pid)
    pool.close()
"""


def test_workers_are_of_no_terminal(tmp_path: Path) -> None:
    """The first one too, with which Python starts a tracker."""
    script = tmp_path / "started.py"
    script.write_text(STARTED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "True"]


@pytest.mark.parametrize(
    ("more", "said"),
    share(
        [
            (["--port"], "cannot listen"),
            (["--host", "no.such.host.invalid"], "cannot listen"),
            (["--tokenizer", "no-such-tokenizer"], "no-such-tokenizer"),
        ],
        1,
    ),
)
def test_a_port_in_use_is_an_error(server: PlaygroundServer, more: list[str], said: str) -> None:
    command = [sys.executable, "-m", "maskwright", "playground", "--no-browser"]
    more = ["--port", str(server.server_port)] if more == ["--port"] else more
    run = subprocess.run([*command, *more], capture_output=True, text=True, timeout=120)
    assert run.returncode == 2 and said in run.stderr, run.stderr
    assert "Traceback" not in run.stderr


def test_a_worker_that_cannot_be_replaced_now_is_replaced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = AnswerPool("python-tiny", 20, 4 << 30, size=1)
    question = {"kind": "nonsense", "constraint": "a"}
    try:
        pool.answer(question)
        with monkeypatch.context() as patch:
            patch.setattr(worker_pool, "get_executable", lambda: "/no/python")
            (worker,) = pool._workers
            worker.process.kill()
            worker.process.wait()
            for _ in range(2):
                with pytest.raises(worker_pool.NoProcessError, match="no worker process can be started: "):
                    pool.answer(question)
            assert not pool._workers
        assert "error" in pool.answer(question) and len(pool._workers) == len(pool._idle) == 1
    finally:
        pool.close()
