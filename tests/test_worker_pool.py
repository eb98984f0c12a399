"""Worker processes: answers, limits, deaths; nothing that a question does keeps the next from its answer."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paths import TESTS

from maskwright import worker_pool
from maskwright.analysis.deadline import OutOfTimeError, look, time_limit
from maskwright.analysis.errors import LimitError, SchemaError
from maskwright.worker import Setup
from maskwright.worker_pool import BusyError, CancelledError, NoProcessError, Pool, WorkerError

SETUP = Setup("worker_tasks:answering", (), 400 << 20)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(SETUP, 1)
    yield made
    made.close()


def ask(pool: Pool, what: str, value: Any = None, seconds: float = 5.0, **more: Any) -> Any:
    return pool.ask((what, value), seconds, "the work", **more)


def pid_of(pool: Pool) -> int:
    (worker,) = pool._workers
    return worker.process.pid


def has_ended(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_answers_and_errors_come_back(pool: Pool) -> None:
    assert ask(pool, "echo", {"a": [1]}) == {"a": [1]}
    with pytest.raises(SchemaError, match="no luck") as caught:
        ask(pool, "refuse", "luck")
    assert caught.value.pointer == "/a/b"
    pid = pid_of(pool)
    assert ask(pool, "echo", 3) == 3 and pid_of(pool) == pid


def test_large_arrays_come_back(pool: Pool) -> None:
    sizes = [1 << 20, 1, 0]
    assert [array.tolist() for array in ask(pool, "arrays", sizes)] == [list(range(size)) for size in sizes]


def test_fifty_that_take_too_long_leave_the_worker_as_it_was(pool: Pool) -> None:
    assert ask(pool, "echo", 1) == 1
    pid = pid_of(pool)
    for _ in range(50):
        with pytest.raises(OutOfTimeError, match=r"the work took more than 0\.01 s of CPU time and was given up"):
            ask(pool, "spin and look", seconds=0.01)
    assert ask(pool, "echo", 1) == 1 and pid_of(pool) == pid and len(pool._idle) == 1


def test_a_call_that_never_looks_is_ended_with_its_process(pool: Pool) -> None:
    for _ in range(3):
        with pytest.raises(OutOfTimeError, match=r"took more than 0\.1 s of CPU time"):
            ask(pool, "spin", seconds=0.1)
    assert ask(pool, "echo", 2) == 2 and len(pool._workers) == len(pool._idle) == 1


def test_sleep_is_no_cpu_time_but_has_an_end_too(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(pool, "sleep", 0.6, seconds=0.1) is None
    monkeypatch.setattr(worker_pool, "SLEEP", 0.2)
    with pytest.raises(WorkerError, match="the work took longer than"):
        ask(pool, "sleep", 60, seconds=0.01)
    assert ask(pool, "echo", 2) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux alone")
def test_memory_has_a_limit_and_is_given_back(pool: Pool) -> None:
    for _ in range(2):
        assert ask(pool, "fill", 100 << 20) == 100 << 20
        with pytest.raises(LimitError, match="too large"):
            ask(pool, "fill", 600 << 20)
    assert ask(pool, "echo", 1) == 1


def test_a_worker_that_dies_is_one_refused_question(pool: Pool) -> None:
    ask(pool, "echo", 1)
    threading.Timer(0.3, os.kill, (pid_of(pool), signal.SIGKILL)).start()
    with pytest.raises(WorkerError, match="the work was given up: the worker process has died"):
        ask(pool, "sleep", 60)
    assert ask(pool, "echo", 2) == 2
    (idle,) = pool._workers
    idle.process.kill()  # while nobody asks it: nobody is refused
    idle.process.wait()
    assert ask(pool, "echo", 3) == 3


def test_who_waits_for_long_hears_that_all_are_busy(pool: Pool) -> None:
    ask(pool, "echo", 1)
    other = threading.Thread(target=ask, args=(pool, "sleep", 1.5))
    other.start()
    while pool._idle:
        time.sleep(0.01)
    with pytest.raises(BusyError, match="all 1 workers are busy"):
        ask(pool, "echo", 2, waiting=0.1)
    assert ask(pool, "echo", 3) == 3
    other.join()


def test_who_leaves_ends_the_work(pool: Pool) -> None:
    ask(pool, "echo", 1)
    pid, begin = pid_of(pool), time.monotonic()
    with pytest.raises(CancelledError):
        ask(pool, "sleep", 60, is_cancelled=lambda: time.monotonic() > begin + 0.2)
    assert has_ended(pid) and ask(pool, "echo", 2) == 2


def test_what_can_wait_does(pool: Pool) -> None:
    """It leaves the worker to others, and begins anew behind them until its own time is up."""
    ask(pool, "echo", 1)
    pid, said = pid_of(pool), []

    def wait() -> None:
        try:
            ask(pool, "spin and look", seconds=1.0, is_patient=True)
        except OutOfTimeError:
            said.append("out of time")

    patient = threading.Thread(target=wait)
    patient.start()
    while not any(worker.is_patient for worker in pool._workers):
        time.sleep(0.01)
    assert [ask(pool, "echo", number) for number in range(20)] == list(range(20)) and not said
    patient.join()
    assert said == ["out of time"] and pid_of(pool) == pid


def test_two_that_can_wait_do_not_stop_one_another(pool: Pool) -> None:
    answers: list[float] = []
    both = [threading.Thread(target=lambda: answers.append(ask(pool, "work", 0.3, is_patient=True))) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert answers == [0.3, 0.3]


def test_one_who_waits_stops_one_that_can_wait() -> None:
    pool = Pool(SETUP, 2)
    try:
        both = [threading.Thread(target=ask, args=(pool, "work", 1.0), kwargs={"is_patient": True}) for _ in range(2)]
        for each in both:
            each.start()
        while sum(worker.is_patient for worker in pool._workers) < 2:
            time.sleep(0.01)
        with pool._free:
            pool._n_waiting = 1
            pool._hurry()
            pool._hurry()
            assert [worker.is_patient for worker in pool._workers].count(True) == 1
            pool._n_waiting = 0
        for each in both:
            each.join(60)
        assert len(pool._idle) == 2 and not any(worker.is_leaving for worker in pool._workers)
    finally:
        pool.close()


def test_a_worker_that_hears_nonsense_ends(pool: Pool) -> None:
    ask(pool, "echo", 1)
    pid = pid_of(pool)
    pool._workers[0].connection.send_bytes(b"no pickle")
    assert has_ended(pid) and ask(pool, "echo", 2) == 2


def test_a_default_timeout_of_the_host_does_not_count(pool: Pool) -> None:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(0.2)
    try:
        assert ask(pool, "sleep", 0.5) is None
        assert sum(each.size for each in ask(pool, "arrays", [1 << 20, 3])) == (1 << 20) + 3
    finally:
        socket.setdefaulttimeout(before)


def test_where_no_file_can_be_opened_questions_are_refused(pool: Pool) -> None:
    """And answered again once one can be."""
    ask(pool, "echo", 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    files: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                files.append(os.dup(0))
        assert ask(pool, "echo", 1) == 1
        pool._workers[0].process.kill()
        pool._workers[0].process.wait()
        with pytest.raises(BusyError, match=r"no worker process can be started: .*try again later"):
            ask(pool, "echo", 1)
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ask(pool, "echo", 2) == 2


def test_a_question_with_a_key_goes_where_it_was_asked() -> None:
    pool = Pool(SETUP, 2)
    try:
        pool.start()
        ask(pool, "echo", 1, key="a")
        (first,) = (worker for worker in pool._workers if worker.key == "a")
        for _ in range(5):
            ask(pool, "echo", 1, key="a")
        assert first.key == "a" and not any(worker.key == "a" for worker in pool._workers if worker is not first)
    finally:
        pool.close()


def test_many_threads_share_few_workers() -> None:
    pool, wrong = Pool(SETUP, 2), []

    def work(seed: int) -> None:
        for step in range(30):
            try:
                if step % 10 == seed:
                    ask(pool, "spin and look", seconds=0.01)
                if ask(pool, "echo", (seed, step)) != (seed, step):
                    wrong.append(seed)
            except OutOfTimeError:
                pass

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(pool._workers) == len(pool._idle) <= 2
    pool.close()


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_worker_does_not_outlive_who_asks(is_busy: bool, tmp_path: Path) -> None:
    """Neither at work nor idle, whether that process ends, or is killed."""
    for end in ("os.kill(os.getpid(), signal.SIGKILL)", "sys.exit()"):
        script = tmp_path / "asks.py"
        script.write_text(
            "import os, signal, sys, threading, time\n"
            f"sys.path.insert(0, {str(TESTS / 'support')!r})\n"
            "from maskwright.worker import Setup\nfrom maskwright.worker_pool import Pool\n"
            'pool = Pool(Setup("worker_tasks:answering", (), 1 << 28), 1)\n'
            'pool.ask(("echo", 1), 5, "it")\n'
            "print(pool._workers[0].process.pid, flush=True)\n"
            f'if {is_busy}:\n    threading.Thread(target=pool.ask, args=(("sleep", 600), 5, "it"), daemon=True).start()\n'
            f"time.sleep(0.3)\n{end}\n"
        )  # not under `if __name__ == "__main__"`: a worker does not read the program
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
        assert has_ended(int(done.stdout)), done.stderr


def test_a_pool_that_is_garbage_has_no_workers() -> None:
    pool = Pool(SETUP, 1)
    ask(pool, "echo", 1)
    pid = pid_of(pool)
    del pool
    gc.collect()
    assert has_ended(pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_has_workers_of_its_own(pool: Pool) -> None:
    ask(pool, "echo", 1)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if not pool._workers and ask(pool, "echo", 2) == 2 else 2
            pool.close()
        finally:
            os._exit(code)
    assert ask(pool, "echo", 3) == 3
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ask(pool, "echo", 4) == 4


def test_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pool = Pool(SETUP, 1)
    with monkeypatch.context() as patch:
        patch.setattr(worker_pool, "get_executable", lambda: str(tmp_path / "no python"))
        with pytest.raises(NoProcessError, match=r"no worker process can be started: .*No such file"):
            ask(pool, "echo", 1)
        patch.setattr(worker_pool, "get_executable", lambda: None)
        with pytest.raises(NoProcessError, match="there is no Python"):
            pool.start()
        patch.setattr(worker_pool, "get_executable", lambda: "/bin/false")
        with pytest.raises(NoProcessError, match="ended while it started"):
            ask(pool, "echo", 1)
    pool.close()
    again = Pool(SETUP._replace(make="worker_tasks:failing"), 1)
    with pytest.raises(NoProcessError, match="RuntimeError: nothing to answer with"):
        ask(again, "echo", 1)
    again.close()
    with pytest.raises(CancelledError, match="the server ends"):
        ask(again, "echo", 1)


def test_a_limit_counts_cpu_time_of_its_thread() -> None:
    with time_limit(0.05, "this"):
        time.sleep(0.2)
        look()
    busy = threading.Event()

    def spin() -> None:
        while not busy.is_set():
            pass

    other = threading.Thread(target=spin)
    other.start()
    try:
        with time_limit(0.2, "this"):
            time.sleep(0.5)
            look()
        with (
            pytest.raises(OutOfTimeError, match=r"this took more than 0\.05 s of CPU time and was given up"),
            time_limit(0.05, "this"),
        ):
            while True:
                look()
    finally:
        busy.set()
        other.join()


def test_whoever_is_asked_may_end_the_work() -> None:
    """Also who was asked by a limit outside, and where there is no end."""
    said: list[str] = []
    with (
        time_limit(math.inf, "outer", lambda: said.append("outer")),
        time_limit(5, "inner", lambda: said.append("inner")),
    ):
        look()
    assert said == ["inner", "outer"]


def test_the_sooner_end_of_two_limits_counts() -> None:
    def spin() -> None:
        while True:
            with contextlib.suppress(Exception):  # what catches errors does not keep the work going
                look()

    with pytest.raises(OutOfTimeError, match="inner"), time_limit(5, "outer"), time_limit(0.02, "inner"):
        spin()
    with pytest.raises(OutOfTimeError, match="outer"), time_limit(0.02, "outer"), time_limit(5, "inner"):
        spin()
    look()
