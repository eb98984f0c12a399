"""The website: its links are looked at, its pictures are of today's output, and its pages are made of docstrings and records.

`make check-site` builds it and looks at it in a browser.
"""

from __future__ import annotations

import doctest
import html
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from paths import ROOT

import maskwright as mw


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that imports a module of the folders website and scripts."""
    before = set(sys.modules)
    for folder in ("website", "scripts", "reports/bench"):
        monkeypatch.syspath_prepend(ROOT / folder)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(ROOT / "website") in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def plain(text: str) -> str:
    return re.sub(r"\s+", "", html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", text, flags=re.DOTALL)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lint", "explain"])
def test_pictures_of_commands_are_what_they_print(name: str, load: Any) -> None:
    script = load("site_pictures")
    picture = plain((ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8"))
    assert plain(html.escape(script.printed(name))) in picture, "run scripts/site_pictures.py --terminal"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pictures_of_the_architecture_are_of_its_text(scheme: str, load: Any) -> None:
    picture = (ROOT / "docs" / "images" / f"architecture-{scheme}.svg").read_text(encoding="utf-8")
    assert picture.startswith(f"<!-- {load('site_pictures').digest()} -->"), "run scripts/site_pictures.py"


def test_all_pictures_load_nothing() -> None:
    for path in (ROOT / "docs" / "images").glob("*.svg"):
        assert not re.search(r"@import|url\((?!#|&quot;#|\"#)|<script|@font-face", path.read_text(encoding="utf-8")), (
            path
        )


def test_broken_links_are_found(tmp_path: Path, load: Any) -> None:
    (tmp_path / "index.html").write_text(
        '<p id=here><a href="#here">a</a><a href="other.html#there">b</a><a href="#no">c</a><a href="none.html">d</a>'
        '<a href="https://example.org/">e</a><script src="https://example.org/x.js"></script><img src="//example.org/y.png">'
    )
    (tmp_path / "other.html").write_text("<p id=there>")
    (tmp_path / "site.css").write_text("@import url(https://example.org/z.css);")
    assert list(load("check_site").broken(tmp_path)) == [
        "index.html loads https://example.org/x.js",
        "index.html loads //example.org/y.png",
        "index.html links to #no: the page has no such place",
        "index.html links to none.html, which is not there",
        "site.css loads https://example.org/z.css",
    ]


def test_broken_links_within_pictures_are_found(tmp_path: Path, load: Any) -> None:
    (tmp_path / "index.html").write_text(
        '<svg aria-labelledby="a b"><g id="a" clip-path="url(#c)"/><use xlink:href="#d"/><use href="#a"/>'
        '<path style="fill: url(#a)"/></svg>'
    )
    assert list(load("check_site").broken(tmp_path)) == [
        f"index.html links to #{name}: the page has no such place" for name in "bcd"
    ]


def test_images_without_words_and_repeated_ids_are_found(tmp_path: Path, load: Any) -> None:
    (tmp_path / "index.html").write_text(
        '<p id=a><p id=b><img src="x.svg" alt="A curve"><img src="x.svg"><img src="y.png" alt=" "><img src="z" alt="z">'
        '<img src="../_images/0ad0.svg" alt="../_images/0ad0.svg"><svg><g id="a"/></svg><a name=b>see b.png</a>'
    )
    (tmp_path / "other.html").write_text("<p id=b>")
    assert list(load("check_site").unclear(tmp_path)) == [
        "index.html shows x.svg without an alternative text",
        "index.html shows y.png without an alternative text",
        "index.html shows z with a file's name as the alternative text, z",
        "index.html shows ../_images/0ad0.svg with a file's name as the alternative text, ../_images/0ad0.svg",
        "index.html has the id a 2 times",
    ]


def test_docstrings_become_restructured_text(load: Any) -> None:
    module: ModuleType = load("docstrings")
    assert doctest.testmod(module).failed == 0
    text = module.restructured(
        "Sum of `f`s *over* x_.\n\na, b : first\n    and second.\nRaises: E.\nCost: O(n).\n\n>>> f(1)\n2"
    )
    assert text == (
        "Sum of ``f``\\ s \\*over\\* x\\_.\n\n:param a, b: first and second.\n\n**Raises:** E.\n\n**Cost:** O(n).\n\n>>> f(1)\n2\n"
    )


def test_the_reference_has_each_public_name_once(tmp_path: Path, load: Any) -> None:
    """On the website, and in docs/api.md, which `python website/api.py` writes anew."""
    api = load("api")
    api.write(tmp_path / "api")
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "api").iterdir())
    page = api.PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.MULTILINE)) == sorted(mw.__all__)
    assert sorted(re.findall(r"^\| `(\w+)` \| .+ \|$", page, re.MULTILINE)) == sorted(mw.__all__)
    assert page == api.reference(), "run website/api.py"


def test_each_page_is_in_the_navigation(tmp_path: Path, load: Any) -> None:
    """The groups are those of docs/README.md, in its order."""
    pages = load("pages")
    pages.gather(tmp_path)
    load("api").write(tmp_path / "api")
    pages.write_navigation(tmp_path)
    captions = re.findall(r"^:caption: (.*)$", (tmp_path / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert captions == ["Use", "Know", "Make"] == list(pages.groups())
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md"))
    listed = set(re.findall(r"^/(\S+)$", text, re.MULTILINE))
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").iterdir()]:
        if path.suffix in (".md", ".ipynb"):
            assert path.relative_to(ROOT).with_suffix("").as_posix() in listed


def test_engines_of_a_chart_have_colours_of_their_own(load: Any) -> None:
    pytest.importorskip("matplotlib")
    charts = load("charts")
    for names in (["maskwright", "GpuBatch", "GpuBatch, forked", "xgrammar"], [*charts.COLOURS], [*map(str, range(9))]):
        found = charts.colours(names)
        alike = len({"maskwright, index", "maskwright, lazy"} & set(names)) == 2  # two forms of one engine
        assert set(found) == set(names)
        assert len(set(found.values())) == len(names) - alike


def test_labels_of_a_chart_do_not_touch(load: Any) -> None:
    pytest.importorskip("matplotlib")
    charts = load("charts")
    rows = {"maskwright": {"median": 50.0, "mean": 100.0, "p99": 110.0}, "another": {"median": 200.0}}
    drawn = charts.ranges("A title that is as long as the chart is wide", rows)
    shown = re.findall(r">([\d.]+) us</text>", drawn)
    assert "100" in shown and "110" not in shown


def test_reports_are_made_of_the_records(tmp_path: Path, load: Any) -> None:
    pytest.importorskip("matplotlib")
    load("reports").write(tmp_path)
    text = (tmp_path / "latency.md").read_text(encoding="utf-8")
    for engine in ("maskwright", "llguidance", "xgrammar", "kbnf", "outlines"):
        assert engine in text
    assert "currentColor" in text and "#000000" not in text
    for path in tmp_path.glob("*.md"):
        page = load("check_site").Page(path.read_text(encoding="utf-8"))
        assert set(page.ids.values()) <= {1}, path
        assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids.keys(), path
    for name in re.findall(r"\(record/([\w.-]+)\)", "".join(path.read_text() for path in tmp_path.iterdir())):
        assert (ROOT / "reports" / "record" / name).is_file()
