"""Ctrl-C at any moment of a command: it ends with exit code 130, without a traceback and without a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_process import cpu_seconds_of

from maskwright.analysis.ahead import JIT_VARIABLE
from maskwright.cli import interrupts

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")

# as from a terminal: a process started in the background may have been told to ignore the signal, and its children would too
obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)


def frame(*functions: tuple[str, str]) -> Any:
    """A stack of functions (module, qualified name), the innermost first."""
    made = None
    for module, name in reversed(functions):
        code = SimpleNamespace(co_qualname=name)
        made = SimpleNamespace(f_globals={"__name__": module}, f_code=code, f_back=made)
    return made


PLAIN = frame(("maskwright.report.analysis", "analyze"), ("__main__", "<module>"))
HELD = [
    frame(("contextlib", "inner"), ("llvmlite.binding.ffi", "_lib_fn_wrapper.__call__"), ("__main__", "<module>")),
    frame(("llvmlite.binding", "<module>"), ("__main__", "<module>")),
    frame(("numba.core.codegen", "CPUCodeLibrary._raw_object_cache_notify"), ("__main__", "<module>")),
    frame(("numpy._core._internal", "_promote_fields"), ("numpy", "_unique1d"), ("__main__", "<module>")),
    frame(("somewhere", "Thing.close"), ("weakref", "finalize.__call__"), ("__main__", "<module>")),
    frame(("somewhere", "__del__"), ("__main__", "<module>")),
]


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the timer was set to."""
    asked: list[float] = []
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: asked.append(seconds))
    return asked


def test_where_it_does_no_harm_it_is_obeyed_at_once(timer: list[float]) -> None:
    handler = interrupts.Interrupts()
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, PLAIN)
    handler(signal.SIGALRM, PLAIN)  # nothing is noted
    assert not timer


@pytest.mark.parametrize("held", HELD)
def test_elsewhere_it_waits_until_the_stack_is_clear(held: Any, timer: list[float]) -> None:
    handler = interrupts.Interrupts()
    handler(signal.SIGINT, held)
    handler(signal.SIGALRM, held)
    assert timer == [interrupts.AGAIN] * 2
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGALRM, PLAIN)
    handler(signal.SIGALRM, PLAIN)  # once only
    handler(signal.SIGINT, held)  # and the next one is noted anew
    assert timer == [interrupts.AGAIN] * 3


def test_pressed_again_while_it_waits_it_ends_the_process(timer: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def left(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", left)
    handler = interrupts.Interrupts()
    handler(signal.SIGINT, HELD[0])
    with pytest.raises(SystemExit, match="130"):
        handler(signal.SIGINT, HELD[0])


def test_when_the_command_has_ended_there_is_nothing_to_interrupt(timer: list[float]) -> None:
    handler = interrupts.Interrupts()
    handler(signal.SIGINT, HELD[0])
    handler.end()
    handler(signal.SIGALRM, PLAIN)
    assert timer == [interrupts.AGAIN]


def test_a_child_has_the_usual_behaviour(timer: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    handler = interrupts.Interrupts()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, HELD[0])


CALLED_BY_C = """
import ctypes, os, signal, sys
from maskwright.cli.interrupts import Interrupts
if sys.argv[1] == "install":
    Interrupts().install()
source = '''
def callback():
    global done
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass
    done = True
'''
names = {"__name__": "llvmlite.binding.executionengine", "os": os, "signal": signal, "done": False}
exec(source, names)
try:
    ctypes.CFUNCTYPE(None)(names["callback"])()
    while True:
        pass
except KeyboardInterrupt:
    print("caught", names["done"])
"""


def test_a_callback_from_c_comes_to_its_end() -> None:
    run = [sys.executable, "-c", CALLED_BY_C]
    held = subprocess.run([*run, "install"], capture_output=True, text=True, timeout=60, preexec_fn=obey)
    assert (held.stdout, held.stderr) == ("caught True\n", "")
    with pytest.raises(subprocess.TimeoutExpired) as swallowed:  # what Python does by itself
        subprocess.run([*run, "not"], capture_output=True, timeout=3, preexec_fn=obey)
    assert b"KeyboardInterrupt" in (swallowed.value.stderr or b"")


COMPARED = """
import os, signal, sys
import numpy as np
from maskwright.cli.interrupts import Interrupts
if sys.argv[1] == "install":
    Interrupts().install()
def press(frame, event, argument):
    if frame.f_code.co_name == "_promote_fields":
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
rows = np.zeros((4, 2), np.int32).view([("", np.int32)] * 2)
try:
    sys.setprofile(press)
    rows[1:] != rows[:-1]
    while True:
        pass
except BaseException as error:
    print(type(error).__name__)
"""


def test_what_numpy_calls_comes_to_its_end() -> None:
    """NumPy made a TypeError of Ctrl-C while `np.unique` compared rows, and the command failed with a traceback."""
    run = [sys.executable, "-c", COMPARED]
    held, bare = (
        subprocess.run([*run, how], capture_output=True, text=True, timeout=60, preexec_fn=obey)
        for how in ("install", "not")
    )
    assert (held.stdout, held.stderr) == ("KeyboardInterrupt\n", "")
    assert bare.stdout == "TypeError\n", "what NumPy does by itself"


def test_what_left_the_text_of_an_exec_has_the_exit_code_too(tmp_path: Path) -> None:
    code = "from maskwright import cli; cli._run = lambda: exec('raise KeyboardInterrupt'); cli.main()"
    (tmp_path / "program.py").write_text(code)
    command = [sys.executable, "-m", "program"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, preexec_fn=obey)
    assert (run.returncode, run.stderr) == (130, "interrupted; nothing was written\n")


AT_A_CALL = """
import os, signal, sys
wanted = sys.argv.pop(1)
def look(frame, event, argument):
    if event == "call" and frame.f_code.co_qualname == wanted:
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(look)
from maskwright.cli import main
main()
"""


@pytest.mark.slow
def test_while_compiled_code_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text('start: "a" start "b" | "a" "b"')
    command = [sys.executable, "-c", AT_A_CALL, "ExecutionEngine._raw_object_cache_notify", "analyze", "g.lark"]
    command += ["-t", "python-tiny", "--json", "r.json"]
    environment = os.environ | {JIT_VARIABLE: "1"}
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, preexec_fn=obey
    )
    assert (run.returncode, run.stderr) == (130, "interrupted; nothing was written\n")
    assert not (tmp_path / "r.json").exists()


def moments(first: float, last: float, n: int) -> Iterator[float]:
    return (first + (last - first) * number / n for number in range(n))


@pytest.mark.slow
@pytest.mark.parametrize("command", [["analyze", "json"], ["export", "json", "-o", "s.safetensors", "--refresh"]])
def test_at_any_moment(command: list[str], tmp_path: Path) -> None:
    """After so many CPU seconds: sooner, Python itself may not have begun."""
    interrupted = 0
    for seconds in moments(0.3, 2.5, 40):
        run = [sys.executable, "-m", "maskwright", *command, "-t", "python-tiny"]
        process = subprocess.Popen(
            run, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=obey
        )
        while process.poll() is None and cpu_seconds_of(process.pid) < seconds:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 130) and b"Traceback" not in errors, (seconds, process.returncode, errors)
        interrupted += process.returncode == 130
    assert interrupted >= 5
