"""The names of a Python project that jedi finds, and `maskwright complete --names`."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner
from written_cases import parameters

from maskwright import python_names
from maskwright.analysis.errors import MissingExtraError, UnknownNameError
from maskwright.cli import app
from maskwright.python_names import PythonNames, kind_of_place
from maskwright.stores.cache import cached_store


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jedi = pytest.importorskip("jedi", reason="jedi is not installed: pip install 'maskwright[names]'")
    # other processes of the suite write to the usual folder
    jedi.settings.cache_directory = str(tmp_path_factory.mktemp("jedi"))
    folder = tmp_path_factory.mktemp("project")
    (folder / "shapes.py").write_text(
        "def area(width, height=1): ...\ndef loose(a, **rest): ...\nSIDE = 3\n"
        "@other.decorator\ndef kept(a, b): ...\nclass Side:\n    def __init__(self, width, height): ...\n"
    )
    (folder / "public.py").write_text(
        "from shapes import *\n__all__ = ['one', '_two', 'SIDE']\none = _two = three = 1\n"
    )
    (folder / "random.py").write_text("of_project = 1\n")
    (folder / "sys.py").write_text("of_project = 1\n")
    (folder / "package").mkdir()
    for name in ("__init__.py", "inner.py", "data.txt"):
        (folder / "package" / name).write_text("")
    (folder / "only_stub.pyi").write_text("name: int\n")
    (folder / "any_name.py").write_text("def __getattr__(name): ...\n")
    (folder / "made.py").write_text("import sys\nsys.modules[__name__].name = 1\n")
    (folder / "runs.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\nname = 1\n")
    (folder / "stars.py").write_text("from not_installed import *\nSIDE = 3\n")
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


@pytest.mark.parametrize("code", parameters("python_names", "open"))
def test_what_is_not_known_stays_open(names: PythonNames, code: str) -> None:
    assert names(code.encode()) is None


@pytest.mark.parametrize(("code", "name"), parameters("python_names", "may_come"))
def test_what_may_come_is_in_the_list(names: PythonNames, code: str, name: str) -> None:
    """Jedi leaves out what it cannot parse, and names of any module. All these places are held."""
    found = names(code.encode())
    assert found is not None and name in found[1]


BINDERS = [
    "q = 1",
    "q: int = 1",
    "*q, = a",
    "a.b = q = 2",
    "for a, [q] in b:\n    pass",
    "for q in *a, *b:\n    pass",
    "import q.a",
    "from a import b as q",
    "type q = int",
    "def q[T](a):\n    pass",
    "async def q():\n    pass",
    "with (open(a) as b, open(c) as q):\n    pass",
    "try:\n    pass\nexcept (A, B) as q:\n    pass",
    "try:\n    pass\nexcept* A as q:\n    pass",
    "match a:\n    case A(b=[q, *_]):\n        pass",
    "lambda: (q := 1)",
    "print(f'{(q := 1)}')",
    "x = f'{a!r:{b}}'; q = 1",
]


@pytest.mark.parametrize(
    ("block", "depth"),
    [
        ("", 0),
        ("def f(v):\n", 1),
        ("class C[T](A):\n    def f(self):\n        with (a as b, c as d):\n", 3),
        ("def f(v):\n    match v:\n        case 1:\n", 3),
        ("def f(v):\n    try:\n", 2),
        ("try:\n    pass\nexcept* A:\n    def f():\n", 2),
    ],
)
def test_names_that_are_bound_are_in_scope(names: PythonNames, block: str, depth: int) -> None:
    lines = [re.sub(r"\bq\b", f"q{n}", line) for n, binder in enumerate(BINDERS) for line in binder.split("\n")]
    indent = "    " * depth
    found = names((block + "".join(f"{indent}{line}\n" for line in lines) + f"{indent}assert ").encode())
    assert found is not None
    assert {f"q{n}" for n in range(len(BINDERS))} <= found[1]


@pytest.mark.parametrize(("code", "names_there", "names_not_there"), parameters("python_names", "there"))
def test_names_that_python_has(names: PythonNames, code: str, names_there: str, names_not_there: str) -> None:
    """What stubs import for themselves, and have for other versions, is not there."""
    found = names(code.encode())
    assert found is not None and {*names_there.split()} <= found[1] and not {*names_not_there.split()} & found[1]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("0x1F", int),
        ("1_0e3", float),
        ("2j", complex),
        ("'a' 'b'", str),
        ("f'a'", str),
        ('Rb"a"', bytes),
        ("[]", list),
        ("[a for a in b]", list),
        ("{}", dict),
        ("{1: 2}", dict),
        ("{**a}", dict),
        ("{a: 1 for a in b}", dict),
        ("{1}", set),
        ("{1, *a}", set),
        ("{a for a in b}", set),
    ],
)
def test_instances_of_the_language_have_what_their_class_has(names: PythonNames, value: str, kind: type) -> None:
    assert names(f"x = {value}\nx.".encode()) == ("NAME", frozenset(dir(kind)))


def test_no_module_of_the_project_is_run(names: PythonNames, project: Path) -> None:
    for code in ("import runs\nruns.", "from runs import ", "from runs import *\nassert ", "import runs, json\njson."):
        found = names(code.encode())
        assert found is not None and ("json" in code or "name" in found[1])
    assert not (project / "ran").exists()


REAL = {
    "told.py": "__all__ = ['one']\n__all__ += ['two']\n__all__.extend(['three', '_six'])\n__all__.append('four')\n"
    "__all__.remove('one')\none = two = three = four = five = _six = 1\n",
    "matched.py": "match (1, [2, 3], {'k': 4, 'l': 5}):\n"
    "    case (first, [second, *rest], {'k': value, **others}) as whole if (walrus := 1):\n        inside = 1\n",
    "unbound.py": "import sys\na = b = c = 1\ndel a\ndel b, c\nc = 2\ndef sys(): ...\ntry:\n    1 / 0\n"
    "except ZeroDivisionError as error:\n    kept = error\nfrom typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    import json\nelse:\n    other = 1\nif not TYPE_CHECKING:\n    there = 1\n",
    "scopes.py": "def f():\n    global made\n    made = local = 1\nf()\nclass C:\n    global of_class\n    of_class = attribute = 1\n"
    "values = [(inner := each) for each in range(3)]\nwith open(__file__) as file: pass\nfor i in [1]: pass\n",
    "starred.py": "from told import *\nfrom matched import *\n",
    "stars/__init__.py": "__all__ = ['sub', 'x']\nx = 1\n",
    "stars/sub.py": "",
    "pack/__init__.py": "from . import beside\nfrom .deep import inner\nimport xml\n",
    "pack/beside.py": "if 1: from pack import (  # (old)\n    needed,\n)\n",
    "pack/needed.py": "",
    "pack/alone.py": "",
    "pack/deep/__init__.py": "",
    "pack/deep/inner.py": "",
    "pack/deep/lone.py": "",
    "elsewhere.py": "import pack.alone\n",
}
"""Modules that are imported, to see what they have."""

_HARMLESS = {"__annotations__", "__builtins__", "__cached__", "__file__"}
"""What any module may have, or be given when it is asked for."""


@pytest.mark.parametrize(
    "code",
    [
        *(
            f"import {name}\n{name}."
            for name in ("told", "matched", "unbound", "scopes", "starred", "stars", "pack", "xml")
        ),
        *(
            f"from {name} import "
            for name in ("told", "matched", "unbound", "scopes", "starred", "pack", "pack.deep", "xml")
        ),
        *(
            f"from {name} import *\nreturn "
            for name in ("told", "matched", "unbound", "scopes", "starred", "stars", "pack")
        ),
        "import pack\npack.deep.",
        "import pack.deep.lone\npack.deep.",
        "from pack.deep import (\n  lone,\n)\nimport pack\npack.deep.",
        "import xml.dom\nxml.",
        "from xml import dom\nimport xml\nxml.",
    ],
)
def test_names_are_those_of_real_modules(code: str, tmp_path: Path) -> None:
    for name, source in REAL.items():
        if name != "elsewhere.py":
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(source)
    found = PythonNames(tmp_path)(code.encode())
    imports, _, place = code.rpartition("\n")
    if place.startswith("from"):
        module = place.split()[1]
        imports, there = (
            f"import {module}, pkgutil",
            f"vars({module}).keys() | {{each.name for each in pkgutil.iter_modules({module}.__path__)}}",
        )
        there = there if "pack" in module or "xml" in module else f"vars({module})"
    else:
        there = "globals()" if place == "return " else f"vars({place[:-1]})"
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nscope = {{}}\nexec({imports!r}, scope)\nprint(*eval({there!r}, scope))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    builtin = {*dir(types.ModuleType), *dir(builtins)} | python_names._OF_SCOPES
    assert found is not None and found[1] - builtin - _HARMLESS == {*run.stdout.split()} - builtin - _HARMLESS


def test_what_another_module_imports_is_there(tmp_path: Path) -> None:
    for name, source in REAL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    names = PythonNames(tmp_path)
    found = names(b"import elsewhere, pack\npack.")
    assert found is not None and "alone" in found[1] and "lone" not in found[1]
    (tmp_path / "elsewhere.py").write_text("import pack\n")
    found = names(b"import elsewhere, pack\n\npack.")  # another text: what is known of a file is let go of
    assert found is not None and "alone" not in found[1] and "needed" in found[1]


@pytest.mark.parametrize(
    "source",
    [
        "globals()['a'] = 1",
        "there = globals()\nthere.update(a=1)",
        "exec('a = 1')",
        "import sys\nvars(sys.modules[__name__])['a'] = 1",
        "import sys\nsetattr(sys.modules[__name__], 'a', 1)",
        "import importlib\nimportlib.import_module(__name__).__dict__['a'] = 1",
        "def __getattr__(name): ...",
    ],
)
def test_modules_that_may_have_more_stay_open(source: str, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(source + "\n")
    assert PythonNames(tmp_path)(b"import more\nmore.") is None and PythonNames(tmp_path)(b"from more import ") is None


@pytest.mark.parametrize(
    "told", ["__all__ = [*others]", "if others:\n    __all__ = ['a']", "__all__ = ['a']\nf(__all__)"]
)
def test_stars_whose_names_are_not_certain_stay_open(told: str, tmp_path: Path) -> None:
    (tmp_path / "more.py").write_text(f"a = b = 1\n{told}\n")
    assert PythonNames(tmp_path)(b"from more import *\nreturn ") is None


def test_what_was_asked_before_changes_nothing(names: PythonNames, project: Path) -> None:
    codes = [b"import json\njson.", b"import json.tool\njson.", b"import importlib\nimportlib.", b"import os\nos."]
    first = [PythonNames(project)(code) for code in codes]
    assert [PythonNames(project)(code) for code in reversed(codes)] == first[::-1]
    assert [names(code) for code in codes] == first


def test_some_places_are_held_though_a_name_may_be_bound(names: PythonNames) -> None:
    """docs/restrictions.md says so: the lists are worth more there than what they refuse."""
    for code in ("import os\nos.", "def f(a, b): ...\nf(1, ", "e = Exception()\ne."):
        found = names(code.encode())
        assert found is not None and "new" not in found[1]


def test_legal_text_is_not_refused(names: PythonNames) -> None:
    store = cached_store("python", "python-tiny")
    for before, after in [
        (b"import sys\nf = open('a')\nwhile ", b"chunk := f.read():\n    pass\n"),
        (b"def f(v):\n    match v:\n        case [q]:\n            return ", b"q\n"),
        (b"class P: ...\nmatch p:\n    case P(x, ", b"yy):\n        pass\n"),
        (b"import os\nif os.", b"__dict__: pass\n"),
    ]:
        matcher = store.matcher()
        matcher.advance_bytes(before)
        found = names(before)
        if found is not None:
            matcher.restrict(*found)
        assert matcher.try_bytes(after), before


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
        ("if ", None),
        ("    elif ", None),
        ("while ", None),
        ("x = a if ", "scope"),
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


@pytest.mark.slow
def test_complete_writes_names_that_exist(project: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    prompt = "import shapes\nx = shapes."
    done = CliRunner().invoke(app, ["complete", "python", prompt, "--names", str(project), "--max-tokens", "12"])
    assert done.exit_code == 0, done.output
    name = done.stdout[len(prompt) :].strip()
    assert name.startswith(("area", "loose", "SIDE")), done.stdout


@pytest.mark.parametrize("grammar", ["json", "sql", '{"type": "integer"}', "g.lark"])
def test_names_are_for_grammars_of_python(grammar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one is refused: no NAME, a NAME of another language, a schema, a grammar of one's own without NAME."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.lark").write_text('start: "a" WORD\nWORD: /[a-z]+/\n')
    done = CliRunner().invoke(app, ["complete", grammar, "", "--names", str(tmp_path)])
    assert done.exit_code == 2, done.output
    assert "--names is for grammars of Python, such as python, and" in " ".join(done.output.split())


def test_errors_name_the_extra_and_the_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownNameError, match="expected the folder of a Python project"):
        PythonNames(project / "none")
    monkeypatch.setitem(sys.modules, "jedi", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'maskwright\[names\]'"):
        PythonNames(project)
