"""What the pages under docs/, README and ARCHITECTURE show is what the code prints, and what they name is there."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from maskwright.analysis.loading import load_grammar

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]  # fmt: skip
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
"""A Python block, and what it prints if a block without a language follows at once."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[tuple[str, str | None]]:
    """The Python blocks of a page, each with what it prints, or None where the page does not show it."""
    return [(found[1], found[2]) for found in BLOCK.finditer(page(name))]


def printed(code: str, names: dict[str, Any]) -> str:
    """What a block prints. names : what the blocks before it have defined; changed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "<block>", "exec"), names)
    return out.getvalue()


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Files are there, and headings of pages too."""
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
        path, _, heading = target.partition("#")
        if ":" in path:
            continue
        assert (folder / path).exists(), f"{name} links to {target}"
        if heading:
            assert heading in anchors((folder / path if path else ROOT / name).read_text()), f"{name} links to {target}"


@pytest.mark.parametrize("name", PAGES)
def test_files_that_are_named_are_there(name: str) -> None:
    """Records, and modules of the repository's folders."""
    text = page(name)
    for record in re.findall(r"reports/record/[\w.-]+\.json", text):
        assert (ROOT / record).is_file(), f"{name} names {record}"
    for path in re.findall(r"`((?:analysis|maskstore|decoding|src|tests|reports|scripts)/[\w./-]+\.\w+)`", text):
        assert (ROOT / path).is_file(), f"{name} names {path}"


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_are_python(name: str) -> None:
    for code, _ in blocks(name):
        ast.parse(code)


@pytest.mark.parametrize("name", ["docs/semantics.md", "docs/grammar-howto.md"])
def test_pages_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block in turn, in one namespace."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert len(blocks(name)) > 3
    for code, shown in blocks(name):
        assert printed(code, names) == (shown or ""), code
