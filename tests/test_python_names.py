"""The names of a Python project that jedi finds, and `maskwright complete --names`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwright.analysis.errors import MissingExtraError, UnknownNameError
from maskwright.cli import app
from maskwright.python_names import PythonNames, kind_of_place


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jedi = pytest.importorskip("jedi", reason="jedi is not installed: pip install 'maskwright[names]'")
    # other processes of the suite write to the usual folder
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))
    folder = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text("def area(width, height=1): ...\ndef loose(a, **rest): ...\nSIDE = 3\n")
    return folder


@pytest.fixture(scope="module")
def names(project: Path) -> PythonNames:
    return PythonNames(project)


@pytest.mark.parametrize(
    ("code", "there", "not_there"),
    [
        ("import ", {"shapes", "os", "json"}, {"shape", "not_installed"}),
        ("import os, ", {"shapes"}, {"not_installed"}),
        ("from shapes import ", {"area", "SIDE"}, {"perimeter", "os"}),
        ("from shapes import (area,\n    ", {"SIDE"}, {"perimeter"}),
        ("import shapes\nshapes.", {"area", "loose", "SIDE"}, {"perimeter"}),
        ("import sys\nx = sys.", {"_getframe", "path"}, {"paths"}),
        ("z = 'abc'\nz.", {"upper", "join"}, {"uppercase"}),
        ("def f(width):\n    side = 2\n    return ", {"width", "side", "f", "len"}, {"height"}),
        ("import shapes\nw = 2\nshapes.area(w, ", {"height", "w"}, {"depth", "rest"}),
    ],
)
def test_names_that_can_come(names: PythonNames, code: str, there: set[str], not_there: set[str]) -> None:
    found = names(code.encode())
    assert found is not None and found[0] == "NAME"
    assert there <= found[1] and not not_there & found[1]


@pytest.mark.parametrize(
    "code",
    [
        "x = ",
        "unknown.",
        "from unknown import ",
        "def f(x):\n    return x.",
        "class A:\n    pass\nA().",
        "import shapes\nshapes.loose(1, ",
        "import argparse\nargparse.Namespace().",
        "f(1, ",
        "'import ",
        "# from os import ",
        "x = '''\nreturn ",
        "return [x for x in y if ",
    ],
)
def test_what_is_not_known_stays_open(names: PythonNames, code: str) -> None:
    assert names(code.encode()) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("import ", "import"),
        ("import a as b, c.", "import"),
        ("from a.", "import"),
        ("from a.b import c, ", "from"),
        ("from . import ", None),
        ("a.", "attribute"),
        ("1.", "attribute"),
        ("a = ", None),
        ("if not ", "scope"),
        ("f(return ", None),
        ("[1, ", None),
        ("(1, ", None),
        ("f(a)(b, ", "argument"),
        ("f(x for x in a, ", None),
        ("for x in ", "scope"),
        ("    async for x, y in not ", "scope"),
        ("for x in lambda y: y or ", None),
        ("return a in lambda x: x or ", None),
        ("", None),
    ],
)
def test_kinds_of_places(code: str, kind: str | None) -> None:
    assert kind_of_place(code) == kind


def test_complete_writes_names_that_exist(project: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    prompt = "import shapes\nx = shapes."
    done = CliRunner().invoke(app, ["complete", "python", prompt, "--names", str(project), "--max-tokens", "12"])
    assert done.exit_code == 0, done.output
    name = done.stdout[len(prompt) :].strip()
    assert name.startswith(("area", "loose", "SIDE")), done.stdout


def test_errors_name_the_extra_and_the_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="expected the folder of a Python project"):
        PythonNames(project / "none")
    monkeypatch.setitem(sys.modules, "jedi", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'maskwright\[names\]'"):
        PythonNames(project)
