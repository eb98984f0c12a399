"""Shows the analysis report as one page of HTML that needs no network and no further files.

In: the facts of an analysis. Out: the page. Its only script is part of the page; it reads out the
matrix and sorts tables, and the page can be read without it. Equal facts give equal pages, byte for
byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

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
from maskwright.report.html_texts import GLOSSARY, SCRIPT, STEP_FACTS, STYLE
from maskwright.report.svg import (
    MATRIX_LIMIT,
    PICTURE_STYLE,
    RULES_LABELS,
    STEP_LABELS,
    Markup,
    bars_picture,
    cumulative_picture,
    histogram_picture,
    joined,
    matrix_picture,
    node,
    shortened,
    steps_picture,
    variants_picture,
)

N_LARGEST = 12
"""Most lexer states, and most terminals, that a list shows."""
N_FINDINGS = 20
"""Most findings of lint that are shown."""


def render_html(facts: Facts) -> str:
    """The whole page.

    facts : of `maskwright.report.analysis.analyze`, with or without a vocabulary. A section for
        which there are no facts is left out.
    """
    name = facts["grammar"]["name"]
    title = f"Grammar analysis: {name}" + (f" with {facts['tokenizer']['name']}" if "tokenizer" in facts else "")
    sections = {
        "What is wrong with the grammar": _findings(facts),
        "Entries, step by step": _entries(facts),
        "Grammar and automata": _sizes(facts),
        "Entries and parser calls by lexer state": _distribution(facts),
        "The largest lexer states": _largest(facts),
        "What can follow what": _pairs(facts),
        "Interchangeable terminals": _classes(facts),
        "More context": _context(facts),
        "Exact engine": _engine(facts),
        "Store, time and memory": _costs(facts),
        "Glossary": (node("dl", *(joined([node("dt", word), node("dd", words)]) for word, words in GLOSSARY.items())),),
    }
    links, parts = [], []
    for heading, found in sections.items():
        content = list(found)
        if content:
            anchor = heading.lower().replace(",", "").replace(" ", "-")
            links.append(node("a", heading, href=f"#{anchor}"))
            parts.append(node("section", node("h2", heading), *content, id=anchor))
    header = node(
        "header", node("h1", title), *(_summary if "entries" in facts else _summary_without_vocabulary)(facts)
    )
    nav = node("nav", *links, aria_label="Sections")
    body = node("body", header, nav, node("main", *parts), _footer(facts), node("script", Markup(SCRIPT)))
    meta = '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
    head = node("head", Markup(meta), node("title", title), node("style", Markup(STYLE + PICTURE_STYLE)))
    return f"<!DOCTYPE html>\n{node('html', head, body, lang='en')}\n"


def _chip(text: str) -> Markup:
    return node("code", shortened(text, 40))


def _terminals(facts: Facts, names: Iterable[str]) -> list[Markup]:
    """Terminals, given by name, in the report's spelling; the tooltip of each is its name."""
    shown = terminal_names(facts)
    return [node("code", shortened(shown.get(name, name), 40), title=name) for name in names]


def _figure(picture: Markup, caption: str, heading: str) -> Markup:
    return node("figure", node("h3", heading), picture, node("figcaption", caption))


def _side_by_side(*parts: Markup) -> Markup:
    return node("div", *parts, class_="pair")


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


def _tiles(facts: Facts, *tiles: tuple[str, str]) -> Markup:
    """Tiles with a large number and words; the last tile is the cost of the analysis."""
    spent = f"of processor time for the whole analysis, with {facts['peak_rss_mb']:,.0f} MB of memory"
    shown = [*tiles, (f"{facts['seconds']['total']:.1f} s", spent)]
    parts = (node("div", node("b", big), node("span", words, class_="quiet"), class_="tile") for big, words in shown)
    return node("div", *parts, class_="tiles")


def _change(before: str, after: str) -> Markup:
    return joined([node("span", before, class_="was"), node("span", " → "), node("span", after, class_="now")])


def _summary(facts: Facts) -> Iterator[Markup]:
    grammar, entry, calls = facts["grammar"], main_entry(facts), facts["parser_calls"]
    yield node(
        "p",
        "A language model writes tokens, a grammar is written in terminals. A mask store prepares the step from one to "
        "the other: for each state of the lexer it lists the sequences of terminals that tokens can lead to, and the "
        "tokens that are allowed if the parser accepts that sequence. Facts about the grammar make most of these entries "
        f"superfluous; the masks stay exactly the same. This grammar has {counted(grammar['terminals'], 'terminal')} and "
        f"{counted(grammar['rules'], 'rule')}, its lexer {counted(facts['lexer']['sound']['states'], 'state')}.",
    )
    yield _tiles(
        facts,
        (
            _change(f"{entry['original']:,}", f"{entry['exact']:,}"),
            f"entries in the mask store: {times_fewer(entry['original'], entry['exact'])}",
        ),
        (
            _change(f"{calls['original']:,.1f}", f"{calls['streamlined']:,.1f}"),
            "parser calls for one mask, mean over lexer states",
        ),
    )
    step, removed = largest_step(entry)
    share = f": {removed:,} of {entry['original']:,} entries ({removed / max(1, entry['original']):.0%}). "
    yield node("p", "Most go at one step, ", node("b", STEP_LABELS[step]), share, STEP_FACTS[step])


def _summary_without_vocabulary(facts: Facts) -> Iterator[Markup]:
    grammar, pairs = facts["grammar"], facts["pairs"]
    yield node(
        "p",
        "What the grammar says about sequences of terminals: which can never, sometimes or always follow. It was analysed "
        "without a vocabulary; with one, the report also shows what these facts save in its mask store.",
    )
    yield _tiles(
        facts,
        (f"{grammar['terminals']:,}", f"terminals, in {counted(grammar['rules'], 'rule')}"),
        (f"{pairs['never']:,}", f"of {pairs['pairs']:,} pairs of terminals can never stand side by side"),
        (f"{pairs['always']['normalised']:,}", "pairs where the second can always follow the first"),
    )


def _findings(facts: Facts) -> Iterator[Markup]:
    """The errors and warnings of lint in the order of the facts; info findings are only counted."""
    if "lint" not in facts:
        return
    found = facts["lint"]
    shown = [finding for finding in found["findings"] if finding["severity"] != "info"]
    yield node("p", f"maskwright lint: {findings_line(facts)}.", class_="quiet")
    for finding in shown[:N_FINDINGS]:
        place = f" at {finding['line']}:{finding['column']}" if finding["line"] else ""
        head = node("dt", node("span", finding["severity"], class_=finding["severity"]), f" {finding['code']}{place}")
        parts = [node("pre", finding["message"])]
        if finding["example"]:
            parts.append(node("p", "text: ", node("code", shortened(finding["example"], 200))))
        parts += [node("p", f"when decoding: {finding['decoding']}"), node("p", f"remedy: {finding['remedy']}")]
        yield node("dl", head, node("dd", *parts), class_="finding")
    if len(shown) > N_FINDINGS:
        yield node("p", f"and {counted(len(shown) - N_FINDINGS, 'other')}: maskwright lint lists them", class_="quiet")
    for reason in found["skipped"]:
        yield node("p", f"not checked: {reason}", class_="quiet")


def _entries(facts: Facts) -> Iterator[Markup]:
    if "entries" not in facts:
        return
    entries, main = facts["entries"], main_entry(facts)
    caption = "The store that is built: sound reading, rules normalised. Pale: what the step removed."
    if main["walked"] != main["original"]:
        caption += (
            f" The walk of the vocabulary found {main['walked']:,}; those that differ only in ignored terminals are "
            "counted once from the beginning, so that the saving is not flattered."
        )
    other = "How tokens are read and which form the rules have changes the numbers, not the picture. Logarithmic axis."
    yield _side_by_side(
        _figure(steps_picture(main), caption, "What each step leaves"),
        _figure(variants_picture(entries), other, "Readings and forms of the rules"),
    )
    variants = [f"{entry['reading']}, {RULES_LABELS[entry['rules']]}" for entry in entries]
    rows: list[list[str | float]] = []
    for step, label in STEP_LABELS.items():
        seconds = round(main["seconds"].get(step, 0.0), 3)
        rows.append([label, *(entry[step] for entry in entries), seconds, STEP_FACTS[step]])
    for words, key in (("up to always-legal remainders", "ratio"), ("in all", "ratio_exact")):
        rows.append(["times fewer", *(round(entry[key], 1) for entry in entries), "", words])
    heads = ["step", *variants, "seconds", "the fact it uses"]
    yield _table(heads, rows, "entries", main=1 + entries.index(main))


def _sizes(facts: Facts) -> Iterator[Markup]:
    grammar, normal = facts["grammar"], facts["grammar"]["normalised"]
    special = [node("span", f"{len(grammar['ignored'])} ignored"), *_terminals(facts, grammar["ignored"])]
    if grammar["declared"]:
        special.append(node("span", f"and {len(grammar['declared'])} inserted by layout"))
        special += _terminals(facts, grammar["declared"])
    rows: list[tuple[str, float, str]] = [
        ("Terminals", grammar["terminals"], joined(special, " ")),
        ("Nonterminals", grammar["nonterminals"], f"{normal['nonterminals']:,} once the rules are normalised"),
        ("Rules", grammar["rules"], f"{normal['rules']:,} once normalised; the start symbol is {grammar['start']}"),
    ]
    readings = [reading for reading in ("sound", "post") if reading in facts["lexer"]]
    for reading in readings:
        found = facts["lexer"][reading]
        words = f"{counted(found['transitions'], 'transition')} on characters"
        rows.append((f"Lexer states, {reading} reading", found["states"], words))
    if beyond := facts["lexer"]["open_lookaheads"]:
        words = node("span", "a look-ahead past the terminal's end is not enforced")
        words = joined([*_terminals(facts, list(beyond)), words], " ")
        rows.append(("Look-aheads left open", sum(map(len, beyond.values())), words))
    if "tokenizer" in facts:
        vocabulary = facts["tokenizer"]
        words = f"tokens, {vocabulary['text_tokens']:,} with text, {vocabulary['special_tokens']:,} special"
        rows.append((f"Vocabulary {vocabulary['name']}", vocabulary["size"], words))
        for reading in readings:
            found = facts["token_nfa"][reading]
            words = (
                f"results (state, token, sequence, new state) of reading {found['tokens']:,} tokens from every state"
            )
            rows.append((f"Token automaton, {reading} reading", found["rows"], words))
    yield _table(["", "number", "in words"], rows)
    layout = grammar["layout"]
    words = "the grammar has no layout, so indentation means nothing in it."
    if layout is not None:
        words = (
            f"after {layout['newline']} the indentation decides on {layout['indent']} and {layout['dedent']}; newlines in "
            f"brackets ({', '.join(f'{a} {b}' for a, b in layout['brackets']) or 'none'}) are left out; "
            + (
                "tabs and blanks have to agree as in CPython."
                if layout["tabs"] == "consistent"
                else f"a tab counts {layout['tab_length']} columns."
            )
        )
    figures_for = facts["figures_for"]["lexing"]
    lexing = f"Lexing: {grammar['lexing']}"
    if grammar["lexing"] != figures_for:
        lexing += (
            f"; the figures on this page, except those of the exact engine, are counted under lexing {figures_for}"
        )
    yield node("p", f"{lexing}. Layout: {words}", class_="quiet")


def _distribution(facts: Facts) -> Iterator[Markup]:
    if "states" not in facts:
        return
    calls = facts["parser_calls"]
    before, after = ([state[step] for state in facts["states"]] for step in ("ignored", "exact"))
    yield node(
        "p",
        "Before each token the decoder is in one lexer state, and asks the parser about each entry of that state whose "
        "sequence is not empty. So a mask costs little where a terminal is far from its end, and much after a complete word. It "
        f"was {calls['original']:,.1f} questions on average, and is "
        f"{calls['streamlined']:,.1f} now.",
    )
    yield _side_by_side(
        _figure(histogram_picture(before, after), "Bins double in width.", "Lexer states by number of entries"),
        _figure(cumulative_picture(before, after), "Higher is better; logarithmic axis.", "Cumulative share of states"),
    )
    yield _table(
        ["entries", "states", "median", "mean", "largest", "states with at most one"],
        [
            [name, len(n), round(median(n), 1), round(sum(n) / len(n), 1), max(n), sum(value <= 1 for value in n)]
            for name, n in (("original", before), ("streamlined", after))
        ],
    )


def _largest(facts: Facts) -> Iterator[Markup]:
    if "states" not in facts:
        return
    yield node(
        "p",
        "A lexer state is shown by the terminal that it is inside of and the shortest text that leads there. The last "
        "column names the terminals that begin most of the sequences left: there, further facts would pay.",
    )
    heads = ["inside", "shortest text", "original", "left", "what is left begins with"]
    for title, step in (("Most entries left", "exact"), ("Most entries originally", "ignored")):
        rows: list[list[str | float]] = []
        for state in largest_states(facts, step, N_LARGEST):
            chips = _terminals(facts, [name for name, _ in state["causes"]])
            counts = [f" {count:,}" for _, count in state["causes"]]
            causes = joined((node("span", *pair) for pair in zip(chips, counts, strict=True)), ", ")
            inside = _terminals(facts, [state["terminal"]])[0] if state["terminal"] is not None else "start of text"
            rows.append(
                [
                    inside,
                    _chip(state_text(state["text"])) if state["text"] else "",
                    state["ignored"],
                    state["exact"],
                    causes,
                ]
            )
        yield node("h3", title)
        yield _table(heads, rows, "sortable")
    names = terminal_names(facts)
    bars = [(names.get(name, name), count, f"{count:,}") for name, count in main_causes(facts)[:N_LARGEST]]
    if bars:
        caption = (
            "Entries left by the terminal that begins them, over all lexer states (the three most frequent of each)."
        )
        yield _figure(
            bars_picture(bars, "Terminals that begin what is left"), caption, "Which terminals cause what is left"
        )


def _pairs(facts: Facts) -> Iterator[Markup]:
    pairs = facts["pairs"]
    total, never, always = pairs["pairs"], pairs["never"], pairs["always"]
    yield node(
        "p",
        "For each two terminals: can the second stand directly after the first? Never and always are proved and hold in every "
        "sentence; sometimes means that it can, and that always is not proved. "
        f"On the rules as loaded {always['lark']:,} pairs are proved always legal, on the normalised "
        f"rules {always['normalised']:,}.",
    )
    counts = {"never": never, "sometimes": total - never - always["normalised"], "always": always["normalised"]}
    keys = []
    for verdict, count in counts.items():
        keys.append(node("span", class_="key", style=f"background: var(--{verdict})"))
        keys.append(node("span", f"{verdict} {count:,} ({count / max(1, total):.0%})", class_="keyed"))
    n_live = len(pairs["live"])
    reaching = f"{counted(n_live, 'terminal')} reach{'es' if n_live == 1 else ''} the parser"
    caption = f"The last row is the start of the text. Rules normalised; {reaching}"
    caption += f", the {MATRIX_LIMIT} with most neighbours are drawn." if n_live > MATRIX_LIMIT else "."
    yield node(
        "figure",
        node("p", *keys),
        node("p", "Row: the left terminal. Column: the one that follows.", class_="readout quiet"),
        node("div", matrix_picture(pairs, facts["grammar"]["terminal_texts"]), class_="scroll"),
        node("figcaption", caption),
        class_="wide",
    )


def _classes(facts: Facts) -> Iterator[Markup]:
    found = facts["interchange"]
    if not found["classes"] and not found["further"]:
        yield node("p", "No two terminals are interchangeable in this grammar.")
        return
    classes = counted(len(found["classes"]), "class", "classes")
    further = counted(len(found["further"]), "further or larger class", "further or larger classes")
    yield node(
        "p",
        f"{classes} with {counted(found['terminals'], 'terminal')}: the members of a class can be swapped everywhere without "
        "changing the grammar, so the parser is asked about one of them only. Rewriting the rules into an equivalent form "
        f"shows {further}.",
    )
    rows: list[list[str | float]] = []
    for seen, classes in (("rules as loaded", found["classes"]), ("after rewriting", found["further"])):
        rows += [[seen, len(members), joined(_terminals(facts, members), " ")] for members in classes]
    yield _table(["seen on", "terminals", "members"], rows, "chips")


def _context(facts: Facts) -> Iterator[Markup]:
    if "remembered" in facts and facts["remembered"]["states"]:
        found = facts["remembered"]
        yield node(
            "p",
            f"In {counted(found['states'], 'lexer state')}, inside ignored terminals and newlines, the state does not tell which "
            "terminal the parser saw last. The store remembers it: that turns "
            f"{found['mean_entries_alone']:,.1f} entries a state into {found['mean_entries_remembered']:,.1f} on average, in "
            f"{counted(found['contexts'], 'combination')} of state and last terminal.",
        )
    if "pair_contexts" in facts:
        found = facts["pair_contexts"]
        yield node(
            "p",
            f"Knowing the last two terminals would leave {found['mean_entries_after_two']:,.1f} entries on average where the "
            f"last one alone leaves {found['mean_entries_after_one']:,.1f}, at the price of {found['contexts']:,} "
            "combinations of state and terminal before. This is counted, not stored.",
        )


def _engine(facts: Facts) -> Iterator[Markup]:
    if "engine" not in facts:
        return
    found = facts["engine"]
    yield node(
        "p",
        f"Under lexing {found['lexing']} everything is decided ahead of time: a mask is read off the parser's stack from the top, "
        f"and no parser is asked. Built in {found['seconds']:.1f} s of processor time.",
    )
    yield _table(["number", "in words"], [[number, words] for number, words in engine_rows(facts)])


def _forecast(facts: Facts) -> Iterator[Markup]:
    if "forecast" not in facts:
        return
    found = facts["forecast"]
    yield node("h3", "Forecast of costs")
    if "unavailable" in found:
        yield node("p", f"There is none: {found['unavailable']}")
        return
    yield node(
        "p",
        f"What the exact engine of this grammar will cost, from its automata and {found['generic_tokens']:,} made-up tokens of the kinds "
        "that tokenizers have; no tokenizer was read. Figures are good to a small factor.",
    )
    sizes = [f"{int(size) // 1024}k tokens" for size in found["bytes"]]
    rows: list[list[str | float]] = [
        [name, *(numbers if len(numbers) > 1 else numbers * len(sizes)), words]
        for name, numbers, words in forecast_rows(facts)
    ]
    yield _table(["", *sizes, "in words"], rows)
    if found["worst_states"]:
        yield node("p", "Lexer states with most entries:")
        states = [
            [
                _chip(state_text(state["text"])) if state["text"] else "between lexemes",
                joined(_terminals(facts, state["may_become"][:4]), " "),
                *state["entries"].values(),
            ]
            for state in found["worst_states"]
        ]
        yield _table(["shortest text", "may become", *sizes], states)
    if found["causes"]:
        yield node("p", "Rules that make a mask read further down the stack:")
        causes = [[_chip(cause["rule"]), f"{cause['share']:.0%}", cause["why"]] for cause in found["causes"]]
        yield _table(["rule, open at the dot", "share of the reads", "what could be done"], causes, "wordy")
    if found["advice"]:
        yield node("p", "What could be rewritten:")
        yield node("ul", *(node("li", sentence) for sentence in found["advice"]))


def _costs(facts: Facts) -> Iterator[Markup]:
    parts = []
    if "store" in facts:
        store = facts["store"]
        rows = [
            ("Cells", store["cells"], "tables of entries; lexer states with equal tables share one"),
            ("Entries", store["entries"], "in all cells together"),
            ("Sequences", store["sequences"], "different sequences of terminals"),
            (
                "Masks",
                store["masks"],
                f"different sets of tokens, {store['dense_masks']:,} as bitmaps, others as lists",
            ),
            ("Bytes", store["mask_bytes"], "for all masks"),
        ]
        parts.append(node("figure", node("h3", "The store"), _table(["", "number", "in words"], rows)))
    seconds = facts["seconds"]
    bars = [(part, seconds[part], f"{seconds[part]:.2f} s") for part in seconds if part not in ("total", "wall")]
    caption = (
        f"{seconds['total']:.2f} s of processor time in all, {seconds['wall']:.2f} s by the clock, at most "
        f"{facts['peak_rss_mb']:,.0f} MB of memory. Lexer: its automata; walk: the vocabulary read from every state; "
        "legality: verdicts on sequences."
    )
    picture = bars_picture([bar for bar in bars if bar[1]], "Seconds by part of the analysis")
    yield _side_by_side(*parts, _figure(picture, caption, "Time and memory"))
    yield from _forecast(facts)


def _footer(facts: Facts) -> Markup:
    words = [f"grammar {facts['grammar']['digest']}"]
    if "tokenizer" in facts:
        words.append(f"vocabulary {facts['tokenizer']['digest']}")
    return node("footer", node("p", f"Written by maskwright. SHA-256: {', '.join(words)}.", class_="quiet"))
