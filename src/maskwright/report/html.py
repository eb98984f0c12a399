"""Shows the analysis report as one page of HTML that needs no network and no further files.

In: the facts of an analysis. Out: the page, by the template `page.html`. Its only script is part of
the page; it reads out the matrix and sorts tables, and the page can be read without it. Equal facts
give equal pages, byte for byte.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from maskwright.report.figures import (
    STEP_FACTS,
    Bars,
    Cell,
    Code,
    Facts,
    Section,
    Table,
    headline,
    largest_step,
    main_entry,
    sections,
)
from maskwright.report.parts import Words, counted
from maskwright.report.svg import (
    STEP_LABELS,
    Markup,
    cumulative_picture,
    joined,
    matrix_picture,
    node,
    printable,
    shortened,
    variants_picture,
)

N_FINDINGS = 20
"""Most findings of lint that are shown."""


@cache
def pieces() -> dict[str, Markup]:
    """Name of a piece of `page.html` -> the piece: a section by its heading, or a part of one."""
    text = files("maskwright.report").joinpath("page.html").read_text(encoding="utf-8")
    parts = re.split(r"^<!-- ([^:\n]+?)(?::.*)? -->\n", text, flags=re.MULTILINE)[1:]
    return {name: Markup(piece.strip("\n")) for name, piece in zip(parts[::2], parts[1::2], strict=True)}


class _Filler(Words):
    """Fills fields of markup. Values that are not `Markup` are made printable and escaped."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Markup) else escape(printable(super().format_field(value, format_spec)))


def fill(template: str, *values: Any, **named: Any) -> Markup:
    """Markup with values in its fields, see `_Filler`; a field without a value is left empty.

    >>> fill("<p>{} has {n:rule}</p>", "<b>", n=1200)
    '<p>&lt;b&gt; has 1,200 rules</p>'
    """
    return Markup(_Filler().vformat(template, values, defaultdict(Markup, named)))


def _piece(name: str, values: Mapping[str, Any] | None = None, **more: Any) -> Markup:
    """A piece of the template, filled."""
    return fill(pieces()[name], **{**(values or {}), **more})


def render_html(facts: Facts) -> str:
    """The whole page.

    facts : of `maskwright.report.analysis.analyze`, with or without a vocabulary. A section for
        which there are no facts is left out.
    """
    title = f"Grammar analysis: {facts['grammar']['name']}"
    digests = f"grammar {facts['grammar']['digest']}"
    if "tokenizer" in facts:
        title += f" with {facts['tokenizer']['name']}"
        digests += f", vocabulary {facts['tokenizer']['digest']}"
    links, parts = [], []
    for heading, content in [
        *((each.title, _section(facts, each)) for each in sections(facts)),
        ("Glossary", _piece("Glossary")),
    ]:
        anchor = heading.lower().replace(",", "").replace(" ", "-")
        links.append(fill('<a href="#{}">{}</a>', anchor, heading))
        parts.append(_piece("section", anchor=anchor, heading=heading, content=content))
    page = _piece(
        "page",
        title=title,
        style=joined([pieces()["style"], pieces()["pictures"]], "\n"),
        summary=_summary(facts),
        links=joined(links),
        sections=joined(parts, "\n"),
        digests=digests,
        script=pieces()["script"],
    )
    return f"{page}\n"


def _summary(facts: Facts) -> Markup:
    spent = f"of processor time for the whole analysis, with {facts['peak_rss_mb']:,.0f} MB of memory"
    tiles = []
    for numbers, words in [*headline(facts), (f"{facts['seconds']['total']:.1f} s", spent)]:
        shown = numbers.replace("->", "→")
        tiles.append(fill('<div class="tile"><b>{}</b><span class="quiet">{}</span></div>', shown, words))
    drawn = node("div", *tiles, class_="tiles")
    if "entries" not in facts:
        return _piece("summary without a vocabulary", tiles=drawn)
    main = main_entry(facts)
    step, removed = largest_step(main)
    names = {"step": STEP_LABELS[step], "fact": STEP_FACTS[step], "share": removed / max(1, main["original"])}
    return _piece("summary", facts, tiles=drawn, main=main, removed=removed, **names)


def _section(facts: Facts, section: Section) -> Markup:
    """The piece of a section, with its blocks, and what only a page has: findings and pictures."""
    found = {name: _block(block) for name, block in section.blocks.items()}
    match section.title:
        case "What is wrong with the grammar":
            found["findings"] = joined(_findings(facts), "\n")
        case "Entries, step by step":
            found["picture"] = variants_picture(facts["entries"])
        case "Entries and parser calls by lexer state":
            before, after = ([state[step] for state in facts["states"]] for step in ("ignored", "exact"))
            found["picture"] = cumulative_picture(before, after)
        case "What can follow what":
            pairs = facts["pairs"]
            never, always = pairs["never"], pairs["always"]["normalised"]
            counts = {"never": never, "sometimes": pairs["pairs"] - never - always, "always": always}
            shares = ((name, n, n / max(1, pairs["pairs"])) for name, n in counts.items())
            found["keys"] = joined(_piece("key", verdict=name, n=n, share=share) for name, n, share in shares)
            found["picture"] = matrix_picture(pairs, facts["grammar"]["terminal_texts"])
    return _piece(section.title, facts, words=section.words, **found)


def _findings(facts: Facts) -> Iterator[Markup]:
    """The errors and warnings of lint in the order of the facts; info findings are only counted."""
    shown = [finding for finding in facts["lint"]["findings"] if finding["severity"] != "info"]
    for finding in shown[:N_FINDINGS]:
        place = f" at {finding['line']}:{finding['column']}" if finding["line"] else ""
        text = finding["example"] and fill("<p>text: <code>{}</code></p>", shortened(finding["example"], 200))
        yield _piece("finding", finding, place=place, text=text)
    if len(shown) > N_FINDINGS:
        more = f"and {counted(len(shown) - N_FINDINGS, 'other')}: maskwright lint lists them"
        yield node("p", more, class_="quiet")
    yield from (node("p", f"not checked: {reason}", class_="quiet") for reason in facts["lint"]["skipped"])


def _block(block: Table | Bars) -> Markup:
    if not block.rows:
        return Markup()
    drawn = bars(block) if isinstance(block, Bars) else node("div", _table(block), class_="scroll")
    return joined([node("h3", block.title), drawn]) if block.title else drawn


def _table(table: Table) -> Markup:
    kinds = ["n" if head.startswith(">") else "text" for head in table.heads]

    def shown(kind: str, cell: Cell) -> Markup:
        if isinstance(cell, list):
            return node("td", *map(_part, cell), class_=kind)
        return (
            node("td", cell, class_=kind)
            if isinstance(cell, str)
            else node("td", f"{cell:,}", class_=kind, data_value=cell)
        )

    heads = (node("th", head.lstrip(">"), class_=kind) for kind, head in zip(kinds, table.heads, strict=True))
    rows = (node("tr", *map(shown, kinds, row)) for row in table.rows)
    return node("table", node("thead", node("tr", *heads)), node("tbody", *rows), class_=table.look)


def _part(part: str | Code) -> str:
    if isinstance(part, str):
        return part
    return node("code", shortened(part.text, 40), **({"title": part.name} if part.name else {}))


def bars(block: Bars) -> Markup:
    """Bars below each other, to one scale; nothing where there are none."""
    most = max((sum(parts.values()) for _, parts, _ in block.rows), default=0) or 1
    rows = []
    for label, parts, words in block.rows:
        drawn = [node("i", class_=colour, style=f"width:{100 * n / most:.2f}%") for colour, n in parts.items()]
        rows.append(fill("<tr><th>{}</th><td>{}</td><td>{}</td></tr>", shortened(label, 40), joined(drawn), words))
    return node("table", joined(rows), class_="bars")
