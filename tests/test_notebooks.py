"""The committed notebooks are what running them gives, and hold nothing of the machine that ran them.

A cell with the tag "measured" shows times, or what a model draws: it has to run and to show something of the same kind, no more.
A cell that shows a picture says in its metadata what is to be seen, for who does not see it on the website.

Run as a script to run the notebooks again and write them: python tests/test_notebooks.py [NAME ...]
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

sys.path.insert(0, str(Path(__file__).parent / "support"))  # as a script
from paths import ROOT
from shares import share

FOLDER = ROOT / "notebooks"
NOTEBOOKS = ["01_a_n_b_n", "02_python_lark", "03_my_own", "04_a_mask_taken_apart", "05_hugging_face"]
LONG = {"02_python_lark", "03_my_own", "04_a_mask_taken_apart", "05_hugging_face"}
"""Run in slow tests: six seconds and more each."""
MEASURED = {"tags": ["measured"]}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TIMEOUT_S = 600
MAX_BYTES = 400_000
NEVER_IN_OUTPUTS = {
    "a machine's path": r"(?<![\w.<])/(?:home|root|tmp|usr|work|Users|var|opt|private)/|[A-Z]:\\\\",
    "a memory address": r"\b0x[0-9a-f]{6,}\b",
    "a time": r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b",
}


def committed(name: str) -> Any:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def executed(name: str) -> Any:
    """The notebook run from its first cell to its last, in an empty folder. Raises CellExecutionError."""
    notebook = committed(name)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    notebook.metadata = METADATA
    for number, cell in enumerate(notebook.cells, start=1):
        cell["id"] = f"cell-{number}"
        cell.metadata = expected_metadata(cell)
    return notebook


def is_measured(cell: Any) -> bool:
    return cell.metadata.get("tags") == MEASURED["tags"]


def alternative(cell: Any) -> str:
    """What the metadata say for a picture, where myst-nb looks for it."""
    return str(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))


def expected_metadata(cell: Any) -> dict[str, Any]:
    """All that a cell's metadata may hold."""
    about = {"mystnb": {"image": {"alt": alternative(cell)}}} if alternative(cell) else {}
    return (MEASURED if is_measured(cell) else {}) | about


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[list[dict[str, Any]]]:
    """What each code cell shows: texts by the stream's name, results by their media type."""
    return [
        [
            {output.name: output.text} if output.output_type == "stream" else dict(output.get("data", {}))
            for output in cell.outputs
        ]
        for cell in code_cells(notebook)
    ]


@pytest.mark.parametrize("name", share(sorted(NOTEBOOKS, key=LONG.__contains__), len(NOTEBOOKS) - len(LONG)))
def test_running_a_notebook_gives_what_is_committed(name: str) -> None:
    before = committed(name)
    cells = zip(code_cells(before), outputs(executed(name)), outputs(before), strict=True)
    for cell, fresh, old in cells:
        if is_measured(cell):
            assert [set(shown) for shown in fresh] == [set(shown) for shown in old], cell.source
        else:
            assert fresh == old


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_committed_with_all_outputs_and_no_error(name: str) -> None:
    notebook = committed(name)
    nbformat.validate(notebook)
    code = code_cells(notebook)
    assert all(cell.metadata == expected_metadata(cell) for cell in notebook.cells)
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        assert all(output.output_type != "error" for output in cell.outputs), cell.source
        assert all(output.get("name") != "stderr" for output in cell.outputs), cell.source
        assert cell.outputs or all(line.startswith(("import", "from", "#")) for line in cell.source.split("\n") if line)
    assert notebook.metadata == METADATA
    assert (FOLDER / f"{name}.ipynb").stat().st_size < MAX_BYTES


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_pictures_of_a_notebook_are_described(name: str) -> None:
    notebook = committed(name)
    for cell, shown in zip(code_cells(notebook), outputs(notebook), strict=True):
        is_picture = any(kind.startswith("image/") for part in shown for kind in part)
        assert (len(alternative(cell).split()) > 5) == is_picture, cell.source


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_holds_nothing_of_the_machine_that_ran_it(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert re.search(NEVER_IN_OUTPUTS["a machine's path"], text) is None
    notebook = committed(name)
    for cell, parts in zip(code_cells(notebook), outputs(notebook), strict=True):
        forbidden = {
            what: pattern for what, pattern in NEVER_IN_OUTPUTS.items() if what != "a time" or not is_measured(cell)
        }
        for shown in parts:
            for what, pattern in forbidden.items():
                found = [match.group() for part in shown.values() for match in re.finditer(pattern, str(part))]
                assert not found, f"{what}: {found}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("wrote /tmp/x/store.safetensors", "a machine's path"),
        ("/" + "home/someone/python.lark", "a machine's path"),
        ("<object at 0x7f2f3c0a1b50>", "a memory address"),
        ("walked in 1.25 s", "a time"),
    ],
)
def test_what_the_patterns_find(text: str, what: str) -> None:
    assert [name for name, pattern in NEVER_IN_OUTPUTS.items() if re.search(pattern, text)] == [what]


if __name__ == "__main__":
    for chosen in sys.argv[1:] or NOTEBOOKS:
        nbformat.write(executed(chosen), FOLDER / f"{chosen}.ipynb")
