"""Shows the analysis report as one page of HTML that needs no network and no further files.

In: the facts of an analysis. Out: the page, by the template `page.html`. Its only script is part of
the page; it reads out the matrix and sorts tables, and the page can be read without it. Equal facts
give equal pages, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from statistics import median
from typing import Any

from maskwright.report.figures import (
    Facts,
    counted,
    engine_rows,
    findings_line,
    forecast_rows,
    largest_states,
    largest_step,
    main_causes,
    main_entry,
    state_text,
    terminal_names,
    times_fewer,
)
from maskwright.report.parts import Words
from maskwright.report.svg import (
    MATRIX_LIMIT,
    PICTURE_STYLE,
    RULES_LABELS,
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

N_LARGEST = 12
"""Most lexer states, and most terminals, that a list shows."""
N_FINDINGS = 20
"""Most findings of lint that are shown."""

STEP_FACTS = {
    "original": "Every sequence of terminals that some token can complete or begin, from every state of the lexer.",
    "ignored": "White space and comments never reach the parser: sequences that differ only in them are one.",
    "classes": "Each terminal of a class can take another's place in every rule, so one of them stands for all.",
    "follow": "No sentence has these two terminals side by side (the follow graph has no such edge).",
    "pairs": "The last terminal can follow the one before it in every context: asking about it tells nothing.",
    "never": "No sentence contains the whole sequence after the state's terminal, though each pair in it occurs.",
    "always": "The rest of the sequence can follow its beginning in every context: the beginning decides.",
    "joint": "Two sequences are legal after exactly the same prefixes: one question answers both.",
    "exact": "The same facts, judged on all stacks that an LR parser can have, instead of by approximations.",
}
"""Streamlining step -> the fact that it uses, as the page says it."""

Values = Mapping[str, Any]
"""What the fields of a piece of the template stand for."""
Bar = tuple[str, Mapping[str, float], str]
"""A bar: its label; its parts from the left, colour -> value >= 0; and words."""


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
    """Markup with values in its fields, see `_Filler`.

    >>> fill("<p>{} has {n:rule}</p>", "<b>", n=1200)
    '<p>&lt;b&gt; has 1,200 rules</p>'
    """
    return Markup(_Filler().vformat(template, values, named))


def _piece(name: str, values: Values | None = None, **more: Any) -> Markup:
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
    sections = {
        "What is wrong with the grammar": _findings(facts) if "lint" in facts else "",
        "Entries, step by step": _entries(facts) if "entries" in facts else "",
        "Grammar and automata": _sizes(facts),
        "Entries and parser calls by lexer state": _distribution(facts) if "states" in facts else "",
        "The largest lexer states": _largest(facts) if "states" in facts else "",
        "What can follow what": _pairs(facts),
        "Interchangeable terminals": _classes(facts),
        "More context": _context(facts),
        "Exact engine": _piece(
            "Exact engine", facts["engine"], table=_table(["number", "in words"], engine_rows(facts))
        )
        if "engine" in facts
        else "",
        "Store, time and memory": _costs(facts),
        "Glossary": _piece("Glossary"),
    }
    links, parts = [], []
    for heading, content in sections.items():
        if content:
            anchor = heading.lower().replace(",", "").replace(" ", "-")
            links.append(fill('<a href="#{}">{}</a>', anchor, heading))
            parts.append(_piece("section", anchor=anchor, heading=heading, content=content))
    page = _piece(
        "page",
        title=title,
        style=Markup(pieces()["style"] + PICTURE_STYLE),
        summary=_summary(facts) if "entries" in facts else _summary_without_vocabulary(facts),
        links=joined(links),
        sections=joined(parts, "\n"),
        digests=digests,
        script=pieces()["script"],
    )
    return f"{page}\n"


def _chip(text: str) -> Markup:
    return node("code", shortened(text, 40))


def _terminals(facts: Facts, names: Iterable[str]) -> Markup:
    """Terminals, given by name, in the report's spelling; the tooltip of each is its name."""
    shown = terminal_names(facts)
    return joined((node("code", shortened(shown.get(name, name), 40), title=name) for name in names), " ")


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str | float]], class_: str = "plain", main: int = -1
) -> Markup:
    """A table. Columns whose first cell is a number are aligned right; `main` is emphasised."""

    def cell(tag: str, value: str | float, column: int) -> Markup:
        kind = ("text" if isinstance(rows[0][column], str) else "n") + (" main" if column == main else "")
        if isinstance(value, str):
            return node(tag, value, class_=kind)
        return node(tag, f"{value:,}", class_=kind, data_value=value)

    head = node("thead", node("tr", *(cell("th", title, i) for i, title in enumerate(heads))))
    body = node("tbody", *(node("tr", *(cell("td", value, i) for i, value in enumerate(row))) for row in rows))
    return node("div", node("table", head, body, class_=class_), class_="scroll")


def bars(rows: Iterable[Bar]) -> Markup:
    """Bars below each other, to one scale."""
    kept = list(rows)
    most = max((sum(parts.values()) for _, parts, _ in kept), default=0) or 1
    shown = []
    for label, parts, words in kept:
        drawn = [node("i", class_=colour, style=f"width:{100 * n / most:.2f}%") for colour, n in parts.items()]
        shown.append(fill("<tr><th>{}</th><td>{}</td><td>{}</td></tr>", shortened(label, 40), joined(drawn), words))
    return node("table", joined(shown), class_="bars")


def _tiles(facts: Facts, *tiles: tuple[str, str]) -> Markup:
    """Tiles with a large number and words; the last tile is the cost of the analysis."""
    spent = f"of processor time for the whole analysis, with {facts['peak_rss_mb']:,.0f} MB of memory"
    shown = [*tiles, (f"{facts['seconds']['total']:.1f} s", spent)]
    template = '<div class="tile"><b>{}</b><span class="quiet">{}</span></div>'
    return node("div", *(fill(template, *tile) for tile in shown), class_="tiles")


def _summary(facts: Facts) -> Markup:
    entry, calls = main_entry(facts), facts["parser_calls"]
    step, removed = largest_step(entry)
    change = '<span class="was">{}</span> → <span class="now">{}</span>'
    entries = fill(change, f"{entry['original']:,}", f"{entry['exact']:,}")
    asked = fill(change, f"{calls['original']:,.1f}", f"{calls['streamlined']:,.1f}")
    tiles = (
        (entries, f"entries in the mask store: {times_fewer(entry['original'], entry['exact'])}"),
        (asked, "parser calls for one mask, mean over lexer states"),
    )
    share = removed / max(1, entry["original"])
    names = {"step": STEP_LABELS[step], "fact": STEP_FACTS[step]}
    return _piece("summary", facts, tiles=_tiles(facts, *tiles), main=entry, removed=removed, share=share, **names)


def _summary_without_vocabulary(facts: Facts) -> Markup:
    grammar, pairs = facts["grammar"], facts["pairs"]
    tiles = (
        (f"{grammar['terminals']:,}", f"terminals, in {counted(grammar['rules'], 'rule')}"),
        (f"{pairs['never']:,}", f"of {pairs['pairs']:,} pairs of terminals can never stand side by side"),
        (f"{pairs['always']['normalised']:,}", "pairs where the second can always follow the first"),
    )
    return _piece("summary without a vocabulary", tiles=_tiles(facts, *tiles))


def _findings(facts: Facts) -> Markup:
    """The errors and warnings of lint in the order of the facts; info findings are only counted."""
    found = facts["lint"]
    shown = [finding for finding in found["findings"] if finding["severity"] != "info"]
    parts = []
    for finding in shown[:N_FINDINGS]:
        place = f" at {finding['line']}:{finding['column']}" if finding["line"] else ""
        text = finding["example"] and fill("<p>text: <code>{}</code></p>", shortened(finding["example"], 200))
        parts.append(_piece("finding", finding, place=place, text=text or ""))
    more = [f"not checked: {reason}" for reason in found["skipped"]]
    if len(shown) > N_FINDINGS:
        more.insert(0, f"and {counted(len(shown) - N_FINDINGS, 'other')}: maskwright lint lists them")
    parts += [fill('<p class="quiet">{}</p>', each) for each in more]
    return _piece("What is wrong with the grammar", counts=findings_line(facts), findings=joined(parts, "\n"))


def _entries(facts: Facts) -> Markup:
    entries, main = facts["entries"], main_entry(facts)
    steps = [step for step in STEP_LABELS if step != "ignored" or main["ignored"] != main["original"]]
    left: list[Bar] = [(STEP_LABELS["original"], {"before": main["original"]}, f"{main['original']:,}")]
    for before, step in pairwise(steps):
        removed = main[before] - main[step]
        left.append((STEP_LABELS[step], {"after": main[step], "gone": removed}, f"{main[step]:,} −{removed:,}"))
    variants = [f"{entry['reading']}, {RULES_LABELS[entry['rules']]}" for entry in entries]
    rows: list[list[str | float]] = []
    for step, label in STEP_LABELS.items():
        seconds = round(main["seconds"].get(step, 0.0), 3)
        rows.append([label, *(entry[step] for entry in entries), seconds, STEP_FACTS[step]])
    for words, key in (("up to always-legal remainders", "ratio"), ("in all", "ratio_exact")):
        rows.append(["times fewer", *(round(entry[key], 1) for entry in entries), "", words])
    heads = ["step", *variants, "seconds", "the fact it uses"]
    return _piece(
        "Entries, step by step",
        bars=bars(left),
        walked=_piece("walked", main) if main["walked"] != main["original"] else "",
        picture=variants_picture(entries),
        table=_table(heads, rows, "entries", main=1 + entries.index(main)),
    )


def _sizes(facts: Facts) -> Markup:
    grammar, lexer, layout = facts["grammar"], facts["lexer"], facts["grammar"]["layout"]
    row = '<tr><td class="text">{}</td><td class="n">{:,}</td><td class="text">{}</td></tr>'
    rows = []
    readings = [reading for reading in ("sound", "post") if reading in lexer]
    for reading in readings:
        words = fill("{:transition} on characters", lexer[reading]["transitions"])
        rows.append(fill(row, f"Lexer states, {reading} reading", lexer[reading]["states"], words))
    if beyond := lexer["open_lookaheads"]:
        words = fill("{} a look-ahead past the terminal's end is not enforced", _terminals(facts, beyond))
        rows.append(fill(row, "Look-aheads left open", sum(map(len, beyond.values())), words))
    if "tokenizer" in facts:
        rows.append(_piece("vocabulary", facts["tokenizer"]))
        rows += [_piece("token automaton", facts["token_nfa"][reading], reading=reading) for reading in readings]
    said = "the grammar has no layout, so indentation means nothing in it"
    if layout is not None:
        pairs = ", ".join(f"{a} {b}" for a, b in layout["brackets"]) or "none"
        tabs = f"a tab counts {layout['tab_length']} columns"
        if layout["tabs"] == "consistent":
            tabs = "tabs and blanks have to agree as in CPython"
        said = _piece("layout", {**layout, "pairs": pairs, "tabs": tabs})
    declared = _terminals(facts, grammar["declared"])
    return _piece(
        "Grammar and automata",
        facts,
        n_ignored=len(grammar["ignored"]),
        ignored=_terminals(facts, grammar["ignored"]),
        declared=fill("and {} inserted by layout {}", len(grammar["declared"]), declared) if declared else "",
        rows=joined(rows),
        others="" if grammar["lexing"] == facts["figures_for"]["lexing"] else _piece("others", facts["figures_for"]),
        layout=said,
    )


def power_bins(values: Iterable[int]) -> list[tuple[int, int]]:
    """The bins 0, 1, 2-3, 4-7, ... that hold all values, each as its first and last value.

    values : integers >= 0. The bin of 0 is left out if no value is 0.

    >>> power_bins([1, 5])
    [(1, 1), (2, 3), (4, 7)]
    """
    found = list(values)
    bins = [(1 << power, (2 << power) - 1) for power in range(max(1, max(found, default=1).bit_length()))]
    return [(0, 0), *bins] if 0 in found else bins


def histogram(before: Sequence[int], after: Sequence[int]) -> Markup:
    """Bars of the lexer states by number of entries, in bins that double in width.

    before, after : (n_states,) entries of each lexer state, originally and streamlined.
    """
    rows: list[Bar] = []
    for low, high in power_bins([*before, *after]):
        label = f"{low:,} to {high:,} entries" if high > low else counted(low, "entry", "entries")
        for colour, values in (("before", before), ("after", after)):
            n = sum(low <= value <= high for value in values)
            rows.append((label if colour == "before" else "", {colour: n}, f"{n:,}"))
    return bars(rows)


def _distribution(facts: Facts) -> Markup:
    before, after = ([state[step] for state in facts["states"]] for step in ("ignored", "exact"))
    rows = [
        [name, len(n), round(median(n), 1), round(sum(n) / len(n), 1), max(n), sum(value <= 1 for value in n)]
        for name, n in (("original", before), ("streamlined", after))
    ]
    heads = ["entries", "states", "median", "mean", "largest", "states with at most one"]
    drawn = {"histogram": histogram(before, after), "picture": cumulative_picture(before, after)}
    return _piece("Entries and parser calls by lexer state", facts, **drawn, table=_table(heads, rows))


def _largest(facts: Facts) -> Markup:
    tables = {}
    for step in ("exact", "ignored"):
        rows: list[list[str | float]] = []
        for state in largest_states(facts, step, N_LARGEST):
            causes = (fill("{} {:,}", _terminals(facts, [name]), count) for name, count in state["causes"])
            inside = "start of text" if state["terminal"] is None else _terminals(facts, [state["terminal"]])
            text = _chip(state_text(state["text"])) if state["text"] else ""
            rows.append([inside, text, state["ignored"], state["exact"], joined(causes, ", ")])
        heads = ["inside", "shortest text", "original", "left", "what is left begins with"]
        tables[step] = _table(heads, rows, "sortable")
    names = terminal_names(facts)
    most = [(names.get(name, name), {"after": n}, f"{n:,}") for name, n in main_causes(facts)[:N_LARGEST]]
    return _piece("The largest lexer states", tables, causes=_piece("causes", bars=bars(most)) if most else "")


def _pairs(facts: Facts) -> Markup:
    pairs = facts["pairs"]
    total, never, always = pairs["pairs"], pairs["never"], pairs["always"]["normalised"]
    counts = {"never": never, "sometimes": total - never - always, "always": always}
    n_live = len(pairs["live"])
    live = f"{counted(n_live, 'terminal')} {'reaches' if n_live == 1 else 'reach'}"
    return _piece(
        "What can follow what",
        facts,
        keys=joined(_piece("key", verdict=name, n=n, share=n / max(1, total)) for name, n in counts.items()),
        picture=matrix_picture(pairs, facts["grammar"]["terminal_texts"]),
        live=live,
        drawn=f", the {MATRIX_LIMIT} with most neighbours are drawn" if n_live > MATRIX_LIMIT else "",
    )


def _classes(facts: Facts) -> Markup:
    found = facts["interchange"]
    if not found["classes"] and not found["further"]:
        return fill("<p>No two terminals are interchangeable in this grammar.</p>")
    rows: list[list[str | float]] = []
    for seen, classes in (("rules as loaded", found["classes"]), ("after rewriting", found["further"])):
        rows += [[seen, len(members), _terminals(facts, members)] for members in classes]
    table = _table(["seen on", "terminals", "members"], rows, "chips")
    numbers = {"n": len(found["classes"]), "more": len(found["further"])}
    return _piece("Interchangeable terminals", found, **numbers, table=table)


def _context(facts: Facts) -> Markup:
    parts = []
    if "remembered" in facts and facts["remembered"]["states"]:
        parts.append(_piece("remembered", facts["remembered"]))
    if "pair_contexts" in facts:
        parts.append(_piece("two terminals", facts["pair_contexts"]))
    return joined(parts)


def _forecast(facts: Facts) -> Markup:
    found = facts["forecast"]
    if "unavailable" in found:
        return _piece("no forecast", found)
    sizes = [f"{int(size) // 1024}k tokens" for size in found["bytes"]]
    rows = [
        [name, *(numbers if len(numbers) > 1 else numbers * len(sizes)), words]
        for name, numbers, words in forecast_rows(facts)
    ]
    parts = [_piece("forecast", found), _table(["", *sizes, "in words"], rows)]
    if found["worst_states"]:
        states = [
            [
                _chip(state_text(state["text"])) if state["text"] else "between lexemes",
                _terminals(facts, state["may_become"][:4]),
                *state["entries"].values(),
            ]
            for state in found["worst_states"]
        ]
        parts += [node("p", "Lexer states with most entries:"), _table(["shortest text", "may become", *sizes], states)]
    if found["causes"]:
        causes = [[_chip(cause["rule"]), f"{cause['share']:.0%}", cause["why"]] for cause in found["causes"]]
        heads = ["rule, open at the dot", "share of the reads", "what could be done"]
        parts += [node("p", "Rules that make a mask read further down the stack:"), _table(heads, causes, "wordy")]
    if found["advice"]:
        items = (node("li", sentence) for sentence in found["advice"])
        parts += [node("p", "What could be rewritten:"), node("ul", *items)]
    return joined(parts, "\n")


def _costs(facts: Facts) -> Markup:
    seconds = facts["seconds"]
    spent = [(part, {"after": n}, f"{n:.2f} s") for part, n in seconds.items() if n and part not in ("total", "wall")]
    return _piece(
        "Store, time and memory",
        facts,
        sizes=_piece("store", facts["store"]) if "store" in facts else "",
        bars=bars(spent),
        costs=_forecast(facts) if "forecast" in facts else "",
    )
