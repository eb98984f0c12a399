"""Reference parsers: accepted, refused, over a limit, crashed, hung; and the next text is judged all the same."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.validation import references
from maskwright.validation.references import (
    OLDER,
    ChildReference,
    CommandReference,
    Judgement,
    cause_of,
    make_reference,
    reference_for,
)


def test_python() -> None:
    reference = make_reference("python")
    assert reference is not None
    assert reference.judge("x = 1\n") == Judgement("accepted")
    refused = reference.judge("x = 1\nx = = 2\n")
    assert refused == Judgement("refused", "SyntaxError: invalid syntax (line 2)")
    assert cause_of(refused.message) == "SyntaxError: invalid syntax (line N)"
    assert reference.judge("if x:\ny\n").message.startswith("IndentationError: ")
    assert reference.judge("x\0").answer == "refused"
    assert reference.judge("\ud800").answer == "refused"
    assert reference.judge("'\\d'\n").answer == "accepted"  # a warning only
    assert reference.judge("x = '" + "é" * 1_000_000 + "'\n").answer == "accepted"
    reference.close()


@pytest.mark.parametrize(
    "text",
    [
        "(" * 201 + ")" * 201,
        "\n".join(" " * i + "if x:" for i in range(101)) + "\n" + " " * 101 + "x\n",
        "-" * 100_000 + "1",
    ],
)
def test_limits_of_cpython_are_no_refusals(text: str) -> None:
    reference = ChildReference("python", 20.0)
    assert reference.judge(text).answer in ("limit", "crashed")
    assert reference.judge("x\n") == Judgement("accepted")
    reference.close()


def test_json() -> None:
    reference = ChildReference("json", 10.0)
    assert reference.judge('{"a": [1, null]}').answer == "accepted"
    assert reference.judge("{'a': 1}").answer == "refused"
    assert reference.judge("[" * 200_000).answer in ("limit", "crashed")
    assert reference.judge("[1]").answer == "accepted"
    reference.close()


def test_a_child_that_hangs_or_dies_is_told_and_replaced() -> None:
    reference = ChildReference("python", 0.5)
    assert reference.judge("x\n").answer == "accepted"
    assert reference._child is not None
    child = reference._child.process
    os.kill(child.pid, signal.SIGSTOP)
    begin = time.monotonic()
    assert reference.judge("y\n") == Judgement("hung", "no answer within 0.5 s")
    assert time.monotonic() - begin < 5
    assert child.poll() is not None  # it was ended
    reference.seconds = 20.0
    assert reference.judge("z\n").answer == "accepted"
    child = reference._child.process
    child.kill()
    child.wait()
    assert reference.judge("z\n").answer == "accepted"
    reference.close()
    assert reference._child is None


PYTHON = f"{sys.executable} -c"


def test_commands() -> None:
    grep = CommandReference("grep -q hello", 10.0)
    assert grep.judge("hello\n").answer == "accepted"
    assert grep.judge("other\n") == Judgement("refused", "exit code 1")
    named = CommandReference("sh -c 'echo bad; grep -q hello {}'", 10.0)
    assert named.judge("hello\n").answer == "accepted"
    assert named.judge("other\n") == Judgement("refused", "bad")


def test_commands_that_hang_crash_or_are_not_there() -> None:
    begin = time.monotonic()
    assert CommandReference("sleep 60", 0.3).judge("x") == Judgement("hung", "no answer within 0.3 s")
    assert time.monotonic() - begin < 10
    assert CommandReference("sh -c 'kill -SEGV $$'", 10.0).judge("x").answer == "crashed"
    with pytest.raises(MaskwrightError, match="cannot be run: No such file"):
        CommandReference("no-such-command-here", 10.0).judge("x")
    with pytest.raises(MaskwrightError, match="cannot be read: No closing quotation"):
        make_reference("sh -c 'x")
    with pytest.raises(MaskwrightError, match="is empty"):
        make_reference(" ")
    with pytest.raises(MaskwrightError, match="time limit is 0 s"):
        make_reference("python", 0)


def test_by_name() -> None:
    assert make_reference("none") is None
    assert [reference_for(name) for name in ("python.lark", "json", "lines")] == ["python", "json", "none"]
    assert reference_for(load_grammar("lark:python")) == "lark:python:file_input"
    assert reference_for(load_grammar("lark:python", start="eval_input")) == "lark:python:eval_input"
    own = load_grammar("lark:python").text
    assert reference_for(parse_grammar(own + "// mine\n", start="file_input", name="python.lark")) == "python"
    assert reference_for(load_grammar("json")) == "json"


def test_lark_reads_grammars_of_its_wheel() -> None:
    reference = make_reference("lark:python:file_input")
    assert reference is not None
    assert [reference.judge(text).answer for text in ("x = 1\n", "if x:\n  y\n\n    ", "x = = 1\n")] == [
        "accepted",
        "accepted",
        "refused",
    ]
    assert reference.judge("x = = 1\n").message.startswith("ValueError: Unexpected token Token('EQUAL', '=')")
    assert reference.judge("x = $\n").message.startswith("ValueError: No terminal matches '$'")
    assert reference.judge("print x\n").answer == "refused"
    reference.close()
    lark = make_reference("lark:lark:start")
    assert lark is not None and lark.judge('a: "b"\n').answer == "accepted" and lark.judge("a: (\n").answer == "refused"
    lark.close()


def test_an_older_python_refuses_nothing() -> None:
    reference = make_reference(OLDER)
    assert reference is not None and reference.name == "python"
    assert reference.judge("x = 1\n") == Judgement("accepted")
    said = reference.judge("x = = 1\n")
    assert said.answer == "not judged" and "older than the grammar's: name a newer one" in said.message
    assert "it says SyntaxError: invalid syntax" in said.message
    reference.close()


@pytest.mark.skipif(os.name == "nt", reason="a script with a first line stands for Python")
@pytest.mark.parametrize("where", ["PATH", "PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME", "HOME"])
def test_a_newer_python_is_found(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the PATH, or where pyenv and uv keep theirs; one that does not run is passed over."""
    folder = tmp_path / {
        "PATH": "bin", "PYENV_ROOT": "versions/3.99.1/bin", "UV_PYTHON_INSTALL_DIR": "cpython-3.99.1-linux/bin",
        "XDG_DATA_HOME": "uv/python/cpython-3.99.1-linux/bin", "HOME": ".pyenv/versions/3.99-dev/bin",
    }[where]  # fmt: skip
    for name in ("PATH", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(references, "PYTHON_VERSIONS", {"python": (3, 99)})
    references._newer_python.cache_clear()
    assert reference_for("python") == OLDER
    monkeypatch.setenv(where, str(folder if where == "PATH" else tmp_path))
    folder.mkdir(parents=True)
    (folder / "python3.99").write_text("#!/bin/sh\necho 3 99\n")
    references._newer_python.cache_clear()
    assert reference_for("python") == OLDER  # it cannot be run
    (folder / "python3.99").chmod(0o755)
    references._newer_python.cache_clear()
    assert reference_for("python") == f"python:{folder / 'python3.99'}"
    references._newer_python.cache_clear()


def test_causes_are_counted_without_names_and_numbers() -> None:
    causes = {cause_of(f"Traceback\nNameError: name '{name}' at {i}") for i, name in enumerate("abc")}
    assert causes == {"NameError: name '...' at N"}
    assert cause_of("") == "refused"
