"""The process of an engine: what it needs, what it may do, and that it ends."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maskwright.analysis.errors import MissingExtraError
from maskwright.audit import EngineFailed, engines, host
from maskwright.audit.engines import EngineGrammar
from maskwright.audit.remote import RemoteEngine
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.validation.references import Child

HERE = Path(__file__).parent
VOCABULARY = Vocabulary("few", (b"", b"[", b"]", b"a", b","), {0: "</s>"}, (0,))
GRAMMAR = EngineGrammar("WORD")


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE))


def start(engine: str = "lists_engine:make", **options: object) -> RemoteEngine:
    return RemoteEngine(engine, GRAMMAR, VOCABULARY, lambda data: [3], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [engines, host])
def test_the_other_interpreter_needs_numpy_alone(module: object) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text())  # type: ignore[attr-defined]
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}


def test_masks_and_texts() -> None:
    with start() as engine:
        assert engine.facts["python"] == sys.version.split()[0] and engine.facts["seconds"] >= 0
        engine.reset()
        words, nanoseconds = engine.fill()
        assert words.tolist() == [0b10] and nanoseconds > 0
        assert engine.advance([1, 3, 4, 4, 3]) == 3
        assert engine.fill()[0].tolist() == [0b1010]
        engine.reset()
        assert engine.advance([]) == 0 and engine.advance([1, 2]) == 2
        assert engine.fill()[0].tolist() == [0b1]


def test_a_process_that_died_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTS_CASE", '{"die": 1}')
    with start() as engine:
        engine.reset()
        engine.advance([1])
        with pytest.raises(EngineFailed, match="exit code 7") as caught:
            engine.fill()
        assert caught.value.kind == "crash"
        with pytest.raises(EngineFailed, match="has ended"):
            engine.fill()
        engine.reset()
        assert engine.fill()[0].tolist() == [0b10]


def test_what_a_dying_process_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud.py").write_text(
        "import os, signal, sys\n"
        "class Session:\n"
        "    def reset(self): pass\n"
        "    def fill(self, words):\n"
        "        print('out of luck', file=sys.stderr, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "def make(text, vocabulary): return Session\n"
    )
    with start("loud:make") as engine:
        engine.reset()
        with pytest.raises(EngineFailed, match=r"signal SIGKILL\): out of luck"):
            engine.fill()


def test_errors_that_are_no_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panic.py").write_text(
        "class Panic(BaseException): pass\n"
        "class Session:\n"
        "    def reset(self): pass\n"
        "    def fill(self, words): words[0] = 6\n"
        "    def advance(self, token):\n"
        "        if token == 2: raise Panic('index out of bounds')\n"
        "        return None\n"
        "def make(text, vocabulary): return Session\n"
    )
    with start("panic:make") as engine:
        engine.reset()
        assert engine.advance([1, 1]) == 2  # an engine that returns nothing has taken the token
        with pytest.raises(EngineFailed, match="Panic: index out of bounds") as caught:
            engine.advance([2])
        assert caught.value.kind == "exception"
        engine.reset()
        assert engine.fill()[0].tolist() == [6]


@pytest.mark.parametrize("engine", sorted(engines.ENGINES))
def test_a_missing_package_is_named_with_its_installation(engine: str) -> None:
    module = {"outlines": "outlines_core", "syncode": "syncode"}.get(engine, engine)
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed")
    with pytest.raises(
        MissingExtraError, match=f"engine {engine} needs the package .* -m pip install numpy "
    ) as caught:
        start(engine)
    assert "--python" in str(caught.value) and sys.executable in str(caught.value)


def test_a_python_without_numpy(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if not subprocess.run([str(bare), "-c", "import numpy"], capture_output=True, env=environment).returncode:
        pytest.skip("numpy is part of this Python")
    with pytest.raises(MissingExtraError, match="needs the package numpy"):
        start(python=str(bare))


def test_the_process_ends_with_whoever_asks() -> None:
    child = Child([sys.executable, host.__file__])
    assert child.receive(20) == host.GREETING
    grammar, vocabulary = ("WORD", None, ""), ("v", [b"", b"["], {0: "</s>"}, [0], "")
    child.send(("start", "lists_engine:make", grammar, vocabulary))
    status, facts = child.receive(20)
    assert status == host.OK and facts["version"] == ""
    assert child.end(20) == 0


def test_closing_ends_a_process_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTS_CASE", '{"sleep": 0}')
    engine = start(timeout=0.3)
    assert engine._child is not None
    pid = engine._child.process.pid
    engine.reset()
    begin = time.monotonic()
    with pytest.raises(EngineFailed, match=r"no answer within 0\.3 s"):
        engine.fill()
    assert time.monotonic() - begin < 10
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    engine.close()
