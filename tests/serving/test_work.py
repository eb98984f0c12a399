"""What requests cost: limits of CPU time and memory, here and in worker processes, which make the same masks."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from request_cases import takes

import maskwright as mw
from maskwright import worker_pool
from maskwright.analysis.deadline import OutOfTimeError
from maskwright.serving import work
from maskwright.serving.options import RequestLimits
from maskwright.serving.reading import RequestReader
from maskwright.serving.requests import RequestChecker, RequestCompiler
from maskwright.worker_pool import WorkerError

LARK = 'start: "a" start "b" | "a" "b"\n'
LR_BOMB = "start: " + " | ".join(f'x{i} "e{i}"' for i in range(14)) + "\n"
LR_BOMB += "\n".join(f"x{i}: " + " | ".join(f'"t{j}" x{i}' for j in range(14) if j != i) + ' | "z"' for i in range(14))
"""Two kilobytes whose LR automaton takes 40 CPU seconds, and 1.8 GB."""
LONG = json.dumps({"prefixItems": [{"const": number} for number in range(30_000)]})
"""Half a megabyte that takes 16 CPU seconds."""
TAG = {
    "type": "triggered_tags",
    "triggers": ["<"],
    "tags": [
        {
            "type": "tag",
            "begin": "<f>",
            "content": {"type": "json_schema", "json_schema": {"type": "object"}},
            "end": "</f>",
        },
        {
            "type": "tag",
            "begin": "<g>",
            "content": {"type": "grammar", "grammar": 'root ::= "a" root "b" | "ab"'},
            "end": "</g>",
        },
    ],
}
CASES = [
    (
        "json",
        '{"type": "object", "properties": {"a": {"enum": [1, "x", null]}}, "required": ["a"]}',
        b'{"a": 1, "b": [2]}',
    ),
    ("regex", "(ab|c){2,9}x", b"abcabx"),
    ("choice", '["yes", "no", "not yet"]', b"not yet"),
    ("grammar", LARK, b"aaabbb"),
    ("grammar", "json.compact", b'{"a":[1,true]}'),
    ("grammar", 'start: "x" S "y" start?\n%schema S {"type": "integer"}\n', b"x12yx3y"),
    ("structural_tag", json.dumps({"type": "structural_tag", "format": TAG}), b'text <f>{"a": 1}</f> <g>aabb</g>.'),
]

pytestmark = pytest.mark.usefixtures("own_cache")


def masks(store: Any, text: bytes) -> list[bytes]:
    """The masks along a text and along some others, which masks choose."""
    found, words = [], np.zeros(store.n_words, np.uint32)
    for seed in range(4):
        matcher, rng = store.matcher(), random.Random(seed)
        for step in range(25):
            try:
                matcher.fill(words)
            except mw.DeadEndError:
                break
            found.append(words.tobytes())
            if seed == 0:
                if step == len(text):
                    break
                matcher.advance_bytes(text[step : step + 1])
                continue
            ids = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            if not len(ids):
                break
            matcher.advance(int(rng.choice(ids.tolist())))
    return found


@pytest.mark.parametrize("on_disk", [False, True])
def test_masks_are_the_same_wherever_they_are_made(on_disk: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    here = RequestCompiler("python-tiny", workers=0, on_disk=on_disk)
    expected = [masks(here.compile(kind, spec), text) for kind, spec, text in CASES]
    monkeypatch.setattr(work, "SMALL", -1)
    there = RequestCompiler("python-tiny", workers=1, on_disk=on_disk)
    for (kind, spec, text), wanted in zip(CASES, expected, strict=True):
        there.check(kind, spec)
        store: Any = there.compile(kind, spec)
        assert len(wanted) > 8 or kind == "choice"
        assert masks(store, text) == wanted, (kind, spec)
        store.close()
        assert masks(store, text) == wanted, (kind, spec)
    pool = there._workshop.pool
    assert pool is not None and len(pool._workers) == 1


def test_workers_close_what_they_have_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "SMALL", -1)
    store: Any = RequestCompiler("python-tiny", workers=1, on_disk=False).compile("grammar", LARK)
    store.close()
    closed = mw.build_store(mw.parse_grammar(LARK), "python-tiny")
    assert isinstance(closed, mw.Store) and store.is_closed and np.array_equal(store.table, closed.table)


def test_errors_are_the_same_wherever_they_arise(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        ("json", '{"type": "nothing"}'),
        ("json", '{"a": {"$ref": "#/b"}, "items": {"$ref": "#/c"}}'),
        ("json", "{" * 50_000),
        ("regex", "(a"),
        ("regex", "(?=x)" * 4 + "(a|b)*a(a|b){30}"),
        ("choice", "[1]"),
        ("grammar", 'start: "a" b'),
        ("grammar", 'start: "a" start'),
        ("grammar", "start: %json {"),
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "nothing"}}'),
    ]

    def heard(compiler: RequestCompiler) -> list[tuple[str, str, str]]:
        found = []
        for kind, spec in cases:
            for method in (compiler.check, compiler.compile):
                with pytest.raises(mw.MaskwrightError) as caught:
                    method(kind, spec)
                found.append((type(caught.value).__name__, str(caught.value), getattr(caught.value, "pointer", "")))
        return found

    expected = heard(RequestCompiler("python-tiny", workers=0))
    monkeypatch.setattr(work, "SMALL", -1)
    assert heard(RequestCompiler("python-tiny", workers=1)) == expected


def test_a_verdict_does_not_depend_on_the_load_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading that is kept from the processor for long is no long reading; one that computes for long is refused, however fast."""
    reader = RequestReader(limits=RequestLimits(check_seconds=0.3))
    original = RequestReader.read

    def slowly(self: RequestReader, request: Any) -> Any:
        time.sleep(1.0)
        return original(self, request)

    monkeypatch.setattr(RequestReader, "read", slowly)
    with pytest.raises(mw.SchemaError):
        RequestChecker(reader, workers=0).check(reader.request("json", '{"type": "nothing"}'))
    checker = RequestChecker(reader, workers=0)
    checker.check(reader.request("grammar", LARK))
    for _ in range(2):  # what was not read to its end is not remembered as right
        with pytest.raises(OutOfTimeError, match=r"reading the grammar took more than 0\.3 s of CPU time"):
            checker.check(reader.request("grammar", LR_BOMB))


@pytest.mark.parametrize("workers", [0, 1])
def test_fifty_that_are_given_up_keep_no_place(workers: int) -> None:
    limits = RequestLimits(check_seconds=0.06, compile_seconds=0.06)
    compiler = RequestCompiler("python-tiny", limits=limits, workers=workers, on_disk=False)
    before = threading.active_count()
    for number in range(25):
        bomb = LR_BOMB + f"\n// {number}"
        with pytest.raises(OutOfTimeError, match=r"the compilation of the grammar took more than 0\.06 s"):
            compiler.compile("grammar", bomb)
        with pytest.raises(OutOfTimeError, match="reading the grammar took more"):
            compiler.check("grammar", bomb)
    assert threading.active_count() == before
    begin = time.thread_time()
    assert takes(compiler.compile("regex", "a+b"), "aab")
    assert time.thread_time() - begin < 0.05


@pytest.mark.parametrize(("kind", "spec"), [("grammar", LR_BOMB), ("json", LONG)], ids=["LR", "prefixItems"])
def test_a_bomb_is_refused_within_its_limits(kind: str, spec: str) -> None:
    """With the limits that a server has where nobody says others. The next request is served at once."""
    compiler = RequestCompiler("python-tiny", workers=1, on_disk=False)
    compiler.compile("json", "true")
    own, theirs = time.process_time(), cpu_of_children()
    memory, is_over = [0], threading.Event()
    watch = threading.Thread(target=watch_memory, args=(compiler, memory, is_over), daemon=True)
    watch.start()
    with contextlib.suppress(mw.LimitError) if kind == "json" else pytest.raises(mw.LimitError):
        compiler.compile(kind, spec)  # a fast machine may compile the schema in time
    begin = time.thread_time()
    assert takes(compiler.compile("regex", "a+b"), "aab") and takes(compiler.compile("json", '{"const": 3}'), "3")
    assert time.thread_time() - begin < 0.05
    pool = compiler._workshop.pool
    assert pool is not None and time.process_time() - own < 4
    pool.close()
    assert cpu_of_children() - theirs < 1.1 * 8 + 4  # and the start of the process, and of the one in its place
    is_over.set()
    watch.join()
    assert memory[0] < 800 << 20  # 500, and what a worker has before


def watch_memory(compiler: RequestCompiler, most: list[int], is_over: threading.Event) -> None:
    """Note the most bytes that a worker has had, where the system says so."""
    pool = compiler._workshop.pool
    assert pool is not None
    while not is_over.wait(0.02):
        for worker in list(pool._workers):
            with contextlib.suppress(OSError, IndexError):
                pages = int(Path(f"/proc/{worker.process.pid}/statm").read_text().split()[1])
                most[0] = max(most[0], pages * resource.getpagesize())


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_worker_that_is_killed_refuses_one_request() -> None:
    compiler = RequestCompiler("python-tiny", workers=1, on_disk=False)
    pool = compiler._workshop.pool
    assert pool is not None

    def kill() -> None:
        while not any(worker.is_ready for worker in pool._workers):
            time.sleep(0.01)
        time.sleep(0.3)
        pool._workers[0].process.kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(WorkerError, match="the compilation of the grammar was given up: the worker process has died"):
        compiler.compile("grammar", LR_BOMB)
    killer.join()
    assert takes(compiler.compile("json", json.dumps({"enum": list(range(3_000))})), "7")


def test_without_processes_requests_are_compiled_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_pool, "get_executable", lambda: "/no/python")
    monkeypatch.setattr(work, "SMALL", -1)
    monkeypatch.setattr(work, "_warned", [])
    compiler = RequestCompiler("python-tiny", workers=3, limits=RequestLimits(compile_seconds=0.5), on_disk=False)
    with caplog.at_level(logging.WARNING, logger=work.__name__):
        compiler.start()
        for kind, spec, _ in CASES:
            compiler.check(kind, spec)
        assert takes(compiler.compile("grammar", LARK), "aabb")
        with pytest.raises(OutOfTimeError, match=r"took more than 0\.5 s of CPU time"):
            compiler.compile("grammar", LR_BOMB)
    (record,) = caplog.records
    assert "no worker process can be started" in record.getMessage() and "in this process" in record.getMessage()


def test_compilers_of_one_vocabulary_share_their_workers() -> None:
    one, other = (RequestCompiler("python-tiny", workers=1) for _ in range(2))
    assert one._workshop.pool is other._workshop.pool is not None
    assert RequestCompiler("python-tiny", workers=2)._workshop.pool is not one._workshop.pool
    assert RequestCompiler("python-tiny", workers=0)._workshop.pool is None
    one._workshop.start()
    pool = one._workshop.pool
    assert pool is not None and len(pool._workers) == 1
