"""The house rules that can be measured: sizes of files and functions, numbers of parameters, docstrings."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from paths import ROOT
from test_layers import LAYERS, blocks, sources, tree

import maskwright as mw

MOST_LINES = 500
MOST_LINES_OF_FUNCTION = 80
MOST_PARAMETERS = 10

CEILINGS = {
    "analysis": 2_050,
    "analysis/composition": 2_575,
    "analysis/dialects": 300,
    "analysis/fronts": 4_060,
    "analysis/grammar": 1_800,
    "analysis/legality": 3_600,
    "analysis/lexing": 1_950,
    "analysis/loading": 1_650,
    "analysis/lr": 3_450,
    "analysis/regex": 3_350,
    "analysis/restrict": 1_050,
    "analysis/schema": 7_090,
    "decoding": 1_190,
    "decoding/adapters": 1_020,
    "decoding/composition": 2_050,
    "decoding/endings": 2_050,
    "decoding/engine": 3_950,
    "decoding/explain": 1_200,
    "decoding/generation": 2_300,
    "decoding/gpu": 1_310,
    "decoding/grammar": 650,
    "decoding/infill": 1_795,
    "decoding/logits": 2_000,
    "decoding/names": 1_550,
    "decoding/reference": 4_000,
    "decoding/schema": 5_750,
    "decoding/tags": 300,
    "maskstore": 50,
    "maskstore/automaton": 4_150,
    "maskstore/canonical": 1_400,
    "maskstore/composition": 850,
    "maskstore/entries": 1_550,
    "maskstore/file": 1_750,
    "maskstore/index": 600,
    "maskstore/schema": 1_450,
    "maskstore/table": 1_850,
    "maskstore/tokens": 3_460,
    "maskstore/verify": 3_250,
    "maskstore/vocabulary": 2_600,
    "src/maskwright": 2_500,
    "src/maskwright/audit": 2_800,
    "src/maskwright/cli": 2_900,
    "src/maskwright/lint": 3_600,
    "src/maskwright/models": 170,
    "src/maskwright/playground": 1_070,
    "src/maskwright/report": 3_400,
    "src/maskwright/servecheck": 1_250,
    "src/maskwright/serving": 4_850,
    "src/maskwright/stores": 1_750,
    "src/maskwright/validation": 4_800,
}
"""The most lines of each folder's own files. They only fall: who makes a folder smaller lowers its ceiling."""
SLACK = 100
"""The lines that a folder may have fewer than its ceiling."""
LOADED = {"build": (155, 29_500), "decode": (65, 9_500)}
"""The most modules of ours, and their lines, that are loaded to build a grammar's store, and to decode from its file."""

FILES = [path for layer in LAYERS for path in sources(layer)]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, Function, bool]]:
    """Each function of a file, nested ones too: where it is, it, and whether users may see it."""
    yield from _inside(tree(path), path.relative_to(ROOT).as_posix() + ":", True)


def _inside(node: ast.AST, where: str, is_public: bool) -> Iterator[tuple[str, Function, bool]]:
    for child in blocks(node):
        if isinstance(child, Function):
            yield where + child.name, child, is_public and not child.name.startswith("_")
            yield from _inside(child, f"{where}{child.name}.", False)
        elif isinstance(child, ast.ClassDef):
            yield from _inside(child, f"{where}{child.name}.", is_public and not child.name.startswith("_"))
        else:
            yield from _inside(child, where, is_public)


def lines_of(function: Function) -> int:
    """The lines of a function without its docstring and the functions inside it."""
    n = span(function)
    if ast.get_docstring(function) is not None:
        n -= span(function.body[0])
    return n - sum(span(inside) for _, inside, _ in _inside(function, "", False))


def span(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def decorators(function: Function) -> set[str]:
    return {ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list}


def is_command(function: Function) -> bool:
    """Whether the arguments are a command's options, which typer takes from the signature."""
    return "command" in decorators(function)


OTHERS = sorted(path for folder in ("tests", "scripts", "reports", "website") for path in (ROOT / folder).rglob("*.py"))
"""Files that are no part of the product."""


def test_files_are_short() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in [*FILES, *OTHERS]
    }
    assert len(found) > 900
    assert {path: n for path, n in found.items() if n > MOST_LINES} == {}


def test_folders_grow_no_more() -> None:
    found: Counter[str] = Counter()
    for path in FILES:
        found[path.parent.relative_to(ROOT).as_posix()] += path.read_text(encoding="utf-8").count("\n")
    assert {folder: n for folder, n in found.items() if n > CEILINGS.get(folder, 0)} == {}, (
        "make something else smaller"
    )
    assert {folder: found[folder] for folder, most in CEILINGS.items() if found[folder] < most - SLACK} == {}, (
        "lower these"
    )


@pytest.mark.parametrize("what", LOADED)
def test_few_modules_are_loaded(what: str, tmp_path: Path) -> None:
    path = tmp_path / "json.safetensors"
    if what == "decode":
        mw.build_store("json", "python-tiny").save(path)
    script = f"""
        import sys
        import numpy as np
        import maskwright as mw

        store = mw.build_store("json", "python-tiny") if {what!r} == "build" else mw.load_store({str(path)!r})
        store.matcher().fill(np.zeros(store.n_words, np.uint32))
        files = [m.__file__ for name, m in sys.modules.items() if name.startswith("maskwright") and m.__file__.endswith(".py")]
        print(len(files), sum(open(file, encoding="utf-8").read().count("\\n") for file in files))
    """
    modules, lines = map(
        int, subprocess.check_output([sys.executable, "-c", textwrap.dedent(script)], text=True).split()
    )
    most_modules, most_lines = LOADED[what]
    assert modules <= most_modules and lines <= most_lines, (modules, lines)
    assert modules > most_modules - 20 and lines > most_lines - 2_000, f"lower it: {modules} modules, {lines} lines"


def test_functions_are_short() -> None:
    found = {where: lines_of(one) for path in FILES for where, one, _ in functions(path) if not is_command(one)}
    assert {where: n for where, n in found.items() if n > MOST_LINES_OF_FUNCTION} == {}


def test_bodies_of_commands_are_short() -> None:
    """What their options are called and say is not counted."""
    found = {
        where: sum(map(span, one.body[1:]))
        for path in FILES
        for where, one, _ in functions(path)
        if is_command(one) and ast.get_docstring(one) is not None
    }
    assert len(found) >= 10
    assert {where: n for where, n in found.items() if n > MOST_LINES_OF_FUNCTION} == {}


def test_functions_take_few_arguments() -> None:
    """Arguments that are named where they are given are not counted. Triton's kernels can take no tuples."""
    found = {
        where: len([*one.args.posonlyargs, *one.args.args])
        - (bool(one.args.args) and one.args.args[0].arg in ("self", "cls"))
        for path in FILES
        for where, one, _ in functions(path)
        if not is_command(one) and "triton.jit" not in decorators(one)
    }
    assert {where: n for where, n in found.items() if n > MOST_PARAMETERS} == {}


def classes() -> dict[str, tuple[set[str], set[str]]]:
    """By the name of a class those of its bases, and of its methods that have a docstring."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for node in (node for path in FILES for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)):
        bases, documented = found.setdefault(node.name, (set(), set()))
        bases.update(ast.unparse(base).rpartition(".")[2] for base in node.bases)
        documented.update(one.name for one in node.body if isinstance(one, Function) and ast.get_docstring(one))
    return found


def inherits(where: str, known: dict[str, tuple[set[str], set[str]]]) -> bool:
    """Whether a method overrides one that has a docstring, which `inspect.getdoc` shows for it too."""
    *_, owner, name = ("", *where.rpartition(":")[2].split("."))
    agenda, seen = [owner], {owner}
    for each in agenda:  # grows while it is read
        bases = known.get(each, (set(), set()))[0] - seen
        if any(name in known.get(base, (set(), set()))[1] for base in bases):
            return True
        seen |= bases
        agenda += bases
    return False


def test_what_is_public_has_a_docstring() -> None:
    known = classes()
    missing = [
        where
        for path in FILES
        for where, one, is_public in functions(path)
        if is_public
        and ast.get_docstring(one) is None
        and not decorators(one) & {"overload", "typing.overload"}
        and not inherits(where, known)
    ]
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and ast.get_docstring(node) is None:
                missing.append(f"{path.relative_to(ROOT).as_posix()}:{node.name}")
    assert missing == []
