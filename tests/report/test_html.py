"""The page: one file, whole, safe, and with the numbers of the facts."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.report import figures, html, svg
from maskwright.report.analysis import analyze
from maskwright.report.figures import ENGINE_LABELS, STEP_FACTS, Bars
from maskwright.report.html import render_html
from maskwright.report.svg import printable
from maskwright.report.terminal import render_terminal

Facts = dict[str, Any]


def parsed(page: str) -> ElementTree.Element:
    """The page is well-formed XML behind its first line, so that every tag is closed."""
    first, _, rest = page.partition("\n")
    assert first == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def headings(root: ElementTree.Element) -> list[str]:
    return [words(element) for element in root.iter("h2")]


def rows(root: ElementTree.Element, class_: str) -> list[list[str]]:
    """The cells of the first table of a class."""
    table = next(element for element in root.iter("table") if element.get("class") == class_)
    return [[words(cell) for cell in row.iter("td")] for row in table.iter("tr")][1:]


def test_exact_engine(facts: Facts, engine_facts: Facts) -> None:
    assert "Exact engine" not in headings(parsed(render_html(facts)))
    root = parsed(render_html(engine_facts))
    section = next(element for element in root.iter("section") if element.get("id") == "exact-engine")
    cells = [[words(cell) for cell in row.iter("td")] for row in section.iter("tr")][1:]
    engine = engine_facts["engine"]
    assert cells == [[f"{engine[name]:,}", text] for name, text in ENGINE_LABELS.items() if name in engine]
    assert len(cells) >= 9
    assert "Lexing: longest; the figures here, except those of the exact engine, are counted under lexing nfa" in words(
        root
    )


def test_page_says_what_the_facts_say(facts: Facts) -> None:
    root = parsed(render_html(facts))
    assert root.findtext("head/title") == "Grammar analysis: sums with letters"
    text = words(root)
    main = facts["entries"][-1]
    assert f"{main['original']} → {main['exact']}" in text
    calls = facts["parser_calls"]
    assert f"{calls['original']:.1f} → {calls['streamlined']:.1f}" in text
    for step, row in zip(svg.STEP_LABELS, rows(root, "entries"), strict=False):
        assert row[1:5] == [f"{entry[step]:,}" for entry in facts["entries"]]
        assert row[0] == svg.STEP_LABELS[step] and row[-1] == STEP_FACTS[step]
    assert set(STEP_FACTS) == set(svg.STEP_LABELS)
    assert headings(root) == [
        "Entries, step by step",
        "Grammar and automata",
        "Entries and parser calls by lexer state",
        "The largest lexer states",
        "What can follow what",
        "Interchangeable terminals",
        "More context",
        "Forecast of costs",
        "Store, time and memory",
        "Glossary",
    ]


def bars(markup: str) -> list[tuple[str, dict[str, float], str]]:
    """The label, the widths by colour, and the words of each bar."""
    found = []
    for row in ElementTree.fromstring(markup).iter("tr"):
        label, drawn, shown = row
        widths = {each.get("class", ""): float(each.get("style", "")[len("width:") : -1]) for each in drawn}
        found.append((label.text or "", widths, shown.text or ""))
    return found


def test_bars_are_to_scale() -> None:
    rows = [("<b>", {"after": 4}, "four"), ("x" * 50, {"after": 1, "gone": 1}, "one")]
    assert bars(html.bars(Bars(rows))) == [
        ("<b>", {"after": 100}, "four"),
        (f"{'x' * 37}...", {"after": 25, "gone": 25}, "one"),
    ]
    assert bars(html.bars(Bars([("none", {"after": 0}, "0")]))) == [("none", {"after": 0}, "0")]


def test_steps_show_what_is_left_and_what_was_removed(facts: Facts) -> None:
    main = facts["entries"][-1]
    main.update(dict(zip(svg.STEP_LABELS, (1000, 1000, 800, 200, 100, 80, 50, 25, 25), strict=True)))
    page = parsed(render_html(facts))
    table = next(element for element in page.iter("table") if element.get("class") == "bars")
    found = bars(ElementTree.tostring(table, encoding="unicode"))
    assert [label for label, *_ in found] == [words for step, words in svg.STEP_LABELS.items() if step != "ignored"]
    assert found[0][1:] == ({"before": 100}, "1,000")
    assert found[2][1:] == ({"after": 20, "gone": 60}, "200 -600") and found[-1][2] == "25 -0"
    main["ignored"] = 900
    assert svg.STEP_LABELS["ignored"] in words(parsed(render_html(facts)).find(".//table[@class='bars']"))  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5000), min_size=1), st.lists(st.integers(0, 5000), min_size=1))
@settings(deadline=None, max_examples=50)
def test_histogram_counts_every_state_once(before: list[int], after: list[int]) -> None:
    bins = [(0, 0)] * (0 in before + after) + [
        (1 << k, (2 << k) - 1) for k in range(max(1, *before, *after).bit_length())
    ]
    found = bars(html.bars(figures.histogram(before, after)))
    for colour, values in (("before", before), ("after", after)):
        counts = [int(shown.replace(",", "")) for _, widths, shown in found if colour in widths]
        assert counts == [sum(low <= value <= high for value in values) for low, high in bins]
        assert sum(counts) == len(values)


def test_bins_are_named() -> None:
    labels = [label for label, *_ in figures.histogram([0, 8], [1]).rows if label]
    assert labels == ["0 entries", "1 entry", "2 to 3 entries", "4 to 7 entries", "8 to 15 entries"]


def test_fill_escapes_text_but_not_markup_and_counts_nouns() -> None:
    filled = html.fill("<p>{} {} {a[n]:class|classes} {b:,}</p>", "<\n", svg.Markup("<i/>"), a={"n": 1}, b=1000)
    assert filled == "<p>&lt;\\n <i/> 1 class 1,000</p>"


def test_largest_states_are_in_order_and_named(facts: Facts) -> None:
    found = rows(parsed(render_html(facts)), "sortable")
    left = [int(row[3]) for row in found]
    assert left == sorted((state["exact"] for state in facts["states"]), reverse=True)[: figures.N_LARGEST]
    assert {row[0] for row in found} >= {"NUMBER", '"+"', "RPAR"}


def test_classes_show_texts_with_names_as_tooltips(facts: Facts) -> None:
    root = parsed(render_html(facts))
    assert [row[2] for row in rows(root, "chips")] == ["NUMBER other", '"+" "-"']
    assert '<code title="__ANON_0">&quot;+&quot;</code>' in render_html(facts)


def test_page_without_a_vocabulary(grammar_facts: Facts) -> None:
    root = parsed(render_html(grammar_facts))
    assert root.findtext("head/title") == "Grammar analysis: sums"
    assert headings(root) == [
        "Grammar and automata",
        "What can follow what",
        "Interchangeable terminals",
        "Forecast of costs",
        "Store, time and memory",
        "Glossary",
    ]
    assert "analysed without a vocabulary" in words(root)


def test_parts_that_an_analysis_may_lack(facts: Facts) -> None:
    del facts["pair_contexts"], facts["lexer"]["post"], facts["token_nfa"]["post"]
    facts["entries"] = facts["entries"][2:]
    facts["remembered"]["states"] = 0
    facts["interchange"] = {"classes": [], "terminals": 0, "further": [], "classes_normalised": []}
    for state in facts["states"]:
        state["causes"] = []
    root = parsed(render_html(facts))
    assert "More context" not in headings(root)
    assert "No two terminals are interchangeable" in words(root)
    assert "Terminals that begin what is left" not in words(root)
    assert len(rows(root, "entries")[0]) == 5


def test_a_store_without_entries_left(facts: Facts) -> None:
    facts["entries"][-1].update(exact=0)
    facts["parser_calls"]["streamlined"] = 0.0
    assert "entries of the post's store, lexing nfa: none left" in words(parsed(render_html(facts)))


def test_a_large_matrix_is_cut_and_says_so(facts: Facts) -> None:
    n = svg.MATRIX_LIMIT + 1
    facts["pairs"].update(live=[0] * n, matrix=["1" * n] * (n + 1))
    page = render_html(facts)
    assert f"{n} terminals reach the parser, the {svg.MATRIX_LIMIT} with most neighbours are drawn." in page
    assert len(page) < 1_000_000


def test_no_text_of_a_user_becomes_markup(hostile_facts: Facts) -> None:
    name, text = hostile_facts["grammar"]["name"], hostile_facts["states"][0]["text"]
    assert "<script>" in name and "<script>" in text
    page = render_html(hostile_facts)
    root = parsed(page)
    assert [element.text for element in root.iter("script")] == [html.pieces()["script"]]
    assert page.count("<script") == 1 and page.count("</script") == 1
    assert printable(name) in words(root)
    assert any(element.text == printable(text) for element in root.iter("code"))
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page)


def test_page_needs_nothing_else(facts: Facts) -> None:
    page = render_html(facts).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\(|<link|<img|<iframe| src=", page)
    assert "prefers-color-scheme: dark" in page and "@media print" in page
    anchors = {element.get("id") for element in parsed(page).iter("section")}
    links = [element.get("href", "")[1:] for element in parsed(page).iter("a")]
    assert links and set(links) == anchors


def test_everything_is_there_without_the_script(facts: Facts) -> None:
    """The script only reads what the page shows: nothing is hidden until it runs."""
    page = render_html(facts)
    assert "display: none" not in page.replace("nav, .readout { display: none; }", "")
    assert not re.search("[<&]", html.pieces()["script"])  # it stands in the page as it is


def test_every_colour_is_defined_in_light_and_dark(facts: Facts) -> None:
    page = render_html(facts)
    used = set(re.findall(r"var\((--[\w-]+)\)", page))
    light, _, dark = html.pieces()["style"].partition("prefers-color-scheme: dark")
    assert used and used <= set(re.findall(r"(--[\w-]+):", light)) and used <= set(re.findall(r"(--[\w-]+):", dark))


def contrast(one: str, other: str) -> float:
    """The ratio of two colours' relative luminances. Source: WCAG 2.2, "contrast ratio"."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(scheme: str) -> None:
    light, _, dark = html.pieces()["style"].partition("prefers-color-scheme: dark")
    colours = dict(re.findall(r"(--[\w-]+): (#\w{3,6})[; ]", light if scheme == "light" else dark))
    for ink in ("--ink", "--soft", "--before-ink", "--after-ink"):
        for ground in ("--paper", "--panel"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert contrast(colours["--sometimes"], colours["--always"]) >= 3
    assert contrast(colours["--never"], colours["--sometimes"]) >= 1.9


def test_same_facts_same_page(facts: Facts) -> None:
    assert render_html(facts) == render_html(dict(reversed(facts.items())))


def test_findings_come_first(facts: Facts) -> None:
    """What is wrong with the grammar stands before all figures, errors before warnings."""
    grammar = parse_grammar('start: "x" dead? | s\ns: s s | "y"\ndead: dead "z"\nunused: "u"\n')
    found = analyze(grammar, lint=True, forecast=False).to_dict()
    severities = [finding["severity"] for finding in found["lint"]["findings"]]
    assert severities == sorted(severities, key=["error", "warning", "info"].index) and {"warning", "info"} <= set(
        severities
    )
    root = parsed(render_html(found))
    assert headings(root)[0] == "What is wrong with the grammar"
    text = words(root)
    for finding in found["lint"]["findings"]:
        assert (finding["code"] in text) == (finding["severity"] != "info")
    assert "What is wrong with the grammar" not in headings(parsed(render_html(facts)))


def test_findings_cannot_become_markup(facts: Facts) -> None:
    hostile = "<script>alert('x')</script>"
    finding = {"code": hostile, "severity": "error", "line": 1, "column": 2, "file": hostile}
    finding |= {"message": hostile, "decoding": hostile, "remedy": hostile, "example": hostile}
    facts["lint"] = {"counts": {"error": 25, "warning": 0, "info": 0}, "findings": [finding] * 25, "skipped": [hostile]}
    page = render_html(facts)
    assert hostile not in page and "and 5 others: maskwright lint lists them" in words(parsed(page))


@pytest.mark.parametrize("text", ['start: "a"', 'start: "a" | "b"', 'start: A\nA: /a/\n%ignore " "'])
def test_one_is_not_a_plural(text: str) -> None:
    """Neither report says "1 classes"."""
    vocabulary = Vocabulary.from_tokens([b"", b"a", b"b"], eos=[0])
    found = analyze(parse_grammar(text), vocabulary, lint=True).to_dict()
    file = io.StringIO()
    Console(file=file, width=80).print(render_terminal(found))
    nouns = "class|terminal|rule|state|mask|cell|entrie|context|transition|combination|error|warning"
    plural = re.compile(rf"(?<![\d.,])1 (?:interchange |lexer |further or larger )?(?:{nouns})e?s\b")
    root = parsed(render_html(found))
    parts = [words(element) for tag in ("p", "td", "figcaption", "li", "desc") for element in root.iter(tag)]
    for shown in (*file.getvalue().splitlines(), *parts):
        assert not plural.search(shown), shown


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE = """<body style="margin:0"><iframe id="page" src="report.html" style="border:0;width:390px;height:800px"></iframe><script>
document.getElementById("page").onload = event => {
  const page = event.target.contentDocument, width = page.documentElement.clientWidth;
  const wide = [...page.querySelectorAll("body *")].filter(element => element.getBoundingClientRect().right > width + 1);
  const out = wide.filter(element => !element.closest(".scroll")).map(element => element.outerHTML.slice(0, 80));
  const boxes = [...page.querySelectorAll(".scroll")].filter(box => box.scrollWidth > box.clientWidth + 1);
  const tables = boxes.filter(box => box.querySelector("table")).map(box => box.textContent.slice(0, 80));
  document.body.replaceChildren(JSON.stringify([page.documentElement.scrollWidth <= width, out, tables]));
};</script>"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_page_fits_a_phone(engine_facts: Facts, tmp_path: Path) -> None:
    """390 pixels wide: nothing stands out of the page, and tables with words need no scrolling."""
    assert CHROMIUM is not None
    facts = {**engine_facts, "lint": {"counts": {"error": 0, "warning": 0, "info": 0}, "findings": [], "skipped": []}}
    (tmp_path / "report.html").write_text(render_html(facts))
    (tmp_path / "phone.html").write_text(PHONE)
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--virtual-time-budget=4000",
    ]
    command += [
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=500,900",
        "--dump-dom",
        (tmp_path / "phone.html").as_uri(),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = json.loads(unescape(re.sub(r"<[^>]*>", "", run.stdout)))
    assert found[0] is True and found[1] == []
    assert [
        text for text in found[2] if "fact it uses" in text or "begins with" in text or "could be done" in text
    ] == []
