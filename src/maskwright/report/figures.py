"""What the reports of an analysis show, in a terminal and as a page: sections of tables and bars.

In: the facts of an analysis. Out: the sections. The page adds prose and pictures to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from maskwright.report.parts import counted
from maskwright.report.svg import MATRIX_LIMIT, RULES_LABELS, STEP_LABELS

N_LARGEST = 12
"""Most lexer states, and most terminals, that a list has."""

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
"""Streamlining step -> the fact that it uses."""
ENGINE_LABELS = {
    "entries": "entries: what tokens ask of the parser in a lexer state",
    "rests": "different sequences and sets of terminals that are asked for",
    "never": "of them that no stack accepts",
    "distinct": "of them that differ on some stack",
    "suspended": "configuration sets: parses that wait for deeper cells",
    "nodes": "nodes of the stack automaton",
    "edges": "edges, each with the tokens decided by one cell of the stack",
    "masks": "different sets of tokens",
    "lexer_states": "states of the lexer",
    "parser_states": "states of the parser, equal ones merged",
    "table_bytes": "bytes of the table that an engine reads",
}
"""Name of a size among the facts `engine` -> what it counts, in the order of computation."""

Facts = Mapping[str, Any]
"""The facts of an analysis, or a part of them."""


@dataclass(frozen=True)
class Code:
    """A text that stands as it is: a terminal, a rule, a text of the language. name : its name."""

    text: str
    name: str = ""


Cell = str | float | list[str | Code]
"""What stands in a table: words, a number, or words with codes among them."""


@dataclass(frozen=True)
class Table:
    """A table.

    heads : the columns' titles; ">" at the beginning aligns right.
    look : its class on the page. brief : how many of its columns a terminal shows; None: all.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    look: str = "plain"
    brief: int | None = None


Bar = tuple[str, Mapping[str, float], str]
"""A bar: its label; its parts from the left, colour -> value >= 0; and words."""


@dataclass(frozen=True)
class Bars:
    """Bars below each other, to one scale. is_brief : whether a terminal shows them too."""

    rows: Sequence[Bar]
    title: str = ""
    is_brief: bool = True


Blocks = dict[str, Table | Bars]
"""By the names of the page's fields."""


@dataclass(frozen=True)
class Section:
    """A part of a report: words, and blocks below them."""

    title: str
    words: str = ""
    blocks: Blocks = field(default_factory=dict)


def sections(facts: Facts) -> list[Section]:
    """The sections for which there are facts, in their order."""
    makers: dict[str, Callable[[Facts], Section]] = {
        "lint": _findings,
        "entries": _entries,
        "grammar": _sizes,
        "states": _distribution,
        "parser_calls": _largest,
        "pairs": _pairs,
        "interchange": _classes,
        "remembered": _context,
        "engine": _engine,
        "forecast": _forecast,
        "seconds": _costs,
    }
    found = [make(facts) for name, make in makers.items() if name in facts]
    return [one for one in found if one.words or any(block.rows for block in one.blocks.values())]


def headline(facts: Facts) -> Iterator[tuple[str, str]]:
    """What an analysis comes to: numbers, with an arrow from what one was before, and words."""
    forecast, pairs = facts.get("forecast", {"unavailable": ""}), facts["pairs"]
    if "unavailable" not in forecast:
        size, n_bytes = next(iter(forecast["bytes"].items()))
        tokens = f"with {int(size) // 1024}k tokens"
        yield f"{n_bytes / 1e6:,.1f} MB", f"your store, lexing {facts['grammar']['lexing']}, {tokens}"
        if not forecast["is_open"]:
            yield f"{forecast['stack_reads']['mean']:,.1f}", "stack cells that a mask of it reads, mean"
    yield f"{pairs['never']:,}", f"of {pairs['pairs']:,} pairs of terminals can never stand side by side"
    if "entries" not in facts:
        yield f"{pairs['always']['normalised']:,}", "pairs where the second can always follow the first"
        return
    entry, calls = main_entry(facts), facts["parser_calls"]
    before, after, lexing = entry["original"], entry["exact"], facts["figures_for"]["lexing"]
    fewer = f"{before / after:,.1f} times fewer" if after else "none left"
    yield f"{before:,} -> {after:,}", f"entries of the post's store, lexing {lexing}: {fewer}"
    asked = f"{calls['original']:,.1f} -> {calls['streamlined']:,.1f}"
    yield asked, "parser calls for a mask of it, mean over lexer states"
    step, removed = largest_step(entry)
    yield f"{removed:,}", f"most go at one step: {STEP_LABELS[step]}"


def sentences(facts: Facts) -> list[str]:
    """What an analysis comes to, in three sentences; fewer where a part of it is missing."""
    pairs = facts["pairs"]
    said = [f"{pairs['never']:,} of {pairs['pairs']:,} pairs of terminals can never follow one another."]
    if "entries" in facts:
        entry, calls = main_entry(facts), facts["parser_calls"]
        now, before = calls["streamlined"], calls["original"]
        said.append(f"So {entry['original']:,} entries of a mask store become {entry['exact']:,}, with the same masks.")
        return [*said, f"A mask asks the parser {now:.1f} questions in the mean, where it asked {before:.1f}."]
    found = facts.get("forecast", {})
    for size, n_bytes in list(found.get("bytes", {}).items())[:1]:
        said.append(f"A mask store for a tokenizer of {int(size) // 1024}k tokens has about {n_bytes / 1e6:,.1f} MB.")
        reads = found["stack_reads"]
        said += [f"A mask reads {reads['mean']:,.1f} cells of the parser's stack in the mean."] if reads else []
    return said


def main_entry(facts: Facts) -> Facts:
    """The member of `entries` for the store that is built: sound reading, normalised rules."""
    return next(e for e in facts["entries"] if (e["reading"], e["rules"]) == ("sound", "normalised"))


def largest_step(entry: Facts) -> tuple[str, int]:
    """The step that removes most entries, and how many. entry : one of the facts' `entries`."""
    removed = {step: entry[before] - entry[step] for before, step in pairwise(STEP_LABELS)}
    step = max(removed, key=lambda name: removed[name])
    return step, removed[step]


def _texts(facts: Facts) -> dict[str, str]:
    """Name of a terminal -> its spelling in the report."""
    return dict(zip(facts["grammar"]["terminal_names"], facts["grammar"]["terminal_texts"], strict=True))


def _codes(facts: Facts, names: Iterable[str]) -> list[str | Code]:
    """Terminals, given by name."""
    texts = _texts(facts)
    return [part for name in names for part in (Code(texts.get(name, name), name), " ")][:-1]


def _text(text: str, otherwise: str = "") -> Cell:
    """A text that leads to a lexer state, in quotes if it begins or ends with a space."""
    return [Code(text if text == text.strip(" ") else f'"{text}"')] if text else otherwise


def _findings(facts: Facts) -> Section:
    counts = facts["lint"]["counts"]
    said = f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}, {counts['info']:,} info"
    return Section("What is wrong with the grammar", f"maskwright lint: {said}.")


def _entries(facts: Facts) -> Section:
    entries, main = facts["entries"], main_entry(facts)
    steps = [step for step in STEP_LABELS if step != "ignored" or main["ignored"] != main["original"]]
    left: list[Bar] = [(STEP_LABELS["original"], {"before": main["original"]}, f"{main['original']:,}")]
    for before, step in pairwise(steps):
        parts = {"after": main[step], "gone": main[before] - main[step]}
        left.append((STEP_LABELS[step], parts, f"{main[step]:,} -{parts['gone']:,}"))
    rows: list[list[Cell]] = [
        [label, *(entry[step] for entry in entries), round(main["seconds"].get(step, 0.0), 3), STEP_FACTS[step]]
        for step, label in STEP_LABELS.items()
    ]
    for words, key in (("times fewer, to always-legal", "ratio"), ("times fewer, in all", "ratio_exact")):
        rows.append([words, *(round(entry[key], 1) for entry in entries), "", ""])
    variants = [f">{entry['reading']}, {RULES_LABELS[entry['rules']].removeprefix('rules ')}" for entry in entries]
    heads = ["step", *variants, ">seconds", "the fact it uses"]
    blocks: Blocks = {"bars": Bars(left), "table": Table(heads, rows, look="entries", brief=1 + len(entries))}
    alike = "those that differ only in ignored terminals are counted once from the beginning"
    said = f"The walk of the vocabulary found {main['walked']:,}; {alike}, so that the saving is not flattered."
    return Section("Entries, step by step", said if main["walked"] != main["original"] else "", blocks)


def _sizes(facts: Facts) -> Section:
    grammar, lexer, pairs = facts["grammar"], facts["lexer"], facts["pairs"]
    normalised, always = grammar["normalised"], pairs["always"]["normalised"]
    ignored, declared = (_codes(facts, grammar[each]) for each in ("ignored", "declared"))
    some = pairs["pairs"] - pairs["never"] - always
    said: list[str | Code] = [f"{len(grammar['ignored'])} ignored ", *ignored]
    rows: list[list[Cell]] = [
        ["Terminals", grammar["terminals"], [*said, f" {len(grammar['declared'])} inserted by layout ", *declared]],
        ["Nonterminals", grammar["nonterminals"], f"{normalised['nonterminals']:,} in normalised rules"],
        ["Rules", grammar["rules"], f"{normalised['rules']:,} normalised; the start symbol is {grammar['start']}"],
        [
            "Pairs of terminals",
            pairs["pairs"],
            f"{pairs['never']:,} never, {some:,} sometimes, {always:,} always legal",
        ],
    ]
    readings = [reading for reading in ("sound", "post") if reading in lexer]
    for reading in readings:
        words = f"{counted(lexer[reading]['transitions'], 'transition')} on characters"
        rows.append([f"Lexer states, {reading} reading", lexer[reading]["states"], words])
    if beyond := lexer["open_lookaheads"]:
        words = " a look-ahead past the terminal's end: lexing nfa sees nothing there, others a byte"
        rows.append(["Look-aheads left open", sum(map(len, beyond.values())), [*_codes(facts, beyond), words]])
    if "tokenizer" in facts:
        of = facts["tokenizer"]
        words = f"tokens, {of['text_tokens']:,} with text, {of['special_tokens']:,} special"
        rows.append([f"Vocabulary {of['name']}", of["size"], words])
        for reading in readings:
            found = facts["token_nfa"][reading]
            words = f"results (state, token, sequence, new state) of reading {counted(found['tokens'], 'token')}"
            rows.append([f"Token automaton, {reading} reading", found["rows"], f"{words} from every state"])
    lexing, counted_under = grammar["lexing"], facts["figures_for"]["lexing"]
    others = f"; the figures here, except those of the exact engine, are counted under lexing {counted_under}"
    lexed = f"Lexing: {lexing}{others if lexing != counted_under else ''}. Layout: {_layout(grammar['layout'])}."
    return Section("Grammar and automata", lexed, {"table": Table(["", ">number", "in words"], rows)})


def _layout(layout: Facts | None) -> str:
    if layout is None:
        return "the grammar has no layout, so indentation means nothing in it"
    pairs = ", ".join(f"{a} {b}" for a, b in layout["brackets"]) or "none"
    tabs = f"a tab counts {layout['tab_length']} columns"
    if layout["tabs"] == "consistent":
        tabs = "tabs and blanks have to agree as in CPython"
    decided = f"after {layout['newline']} the indentation decides on {layout['indent']} and {layout['dedent']}"
    return f"{decided}; newlines in brackets ({pairs}) are left out; {tabs}"


def _distribution(facts: Facts) -> Section:
    before, after = ([state[step] for state in facts["states"]] for step in ("ignored", "exact"))
    rows: list[list[Cell]] = [
        [name, len(n), round(median(n), 1), round(sum(n) / len(n), 1), max(n), sum(value <= 1 for value in n)]
        for name, n in (("original", before), ("streamlined", after))
    ]
    table = Table(["entries", ">states", ">median", ">mean", ">largest", ">states with at most one"], rows, brief=0)
    blocks: Blocks = {"histogram": histogram(before, after), "table": table}
    return Section("Entries and parser calls by lexer state", blocks=blocks)


def histogram(before: Sequence[int], after: Sequence[int]) -> Bars:
    """Bars of the lexer states by number of entries, in the bins 0, 1, 2-3, 4-7, ...

    before, after : (n_states,) entries of each lexer state, originally and streamlined.
    """
    sizes = {colour: Counter(map(int.bit_length, n)) for colour, n in (("before", before), ("after", after))}
    found = [*sizes["before"], *sizes["after"]]
    rows: list[Bar] = []
    for size in range(min(1, *found), max(1, *found) + 1):
        low, high = (1 << size) >> 1, (1 << size) - 1
        label = f"{low:,} to {high:,} entries" if high > low else counted(low, "entry", "entries")
        for colour, n in sizes.items():
            rows.append((label if colour == "before" else "", {colour: n[size]}, f"{n[size]:,}"))
    return Bars(rows, is_brief=False)


def _largest(facts: Facts) -> Section:
    blocks: Blocks = {}
    for step, title in (("exact", "Most entries left"), ("ignored", "Most entries originally")):
        rows: list[list[Cell]] = []
        # among equals, those with more entries left come first
        order = sorted(facts["states"], key=lambda s: (-s[step], -s["exact"], s["state"]))
        for state in order[:N_LARGEST]:
            causes = [part for name, n in state["causes"] for part in (", ", *_codes(facts, [name]), f" {n:,}")][1:]
            inside: Cell = "start of text" if state["terminal"] is None else _codes(facts, [state["terminal"]])
            rows.append([inside, _text(state["text"]), state["ignored"], state["exact"], causes])
        heads = ["inside", "shortest text", ">original", ">left", "what is left begins with"]
        blocks[step] = Table(heads, rows, title, "sortable")
    total: Counter[str] = Counter()  # each state contributes its three most frequent terminals only
    for state in facts["states"]:
        total.update(dict(state["causes"]))
    most = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:N_LARGEST]
    texts = _texts(facts)
    drawn = [(texts.get(name, name), {"after": n}, f"{n:,}") for name, n in most]
    bars = Bars(drawn, "Terminals that begin what is left, by entries over all states", is_brief=False)
    return Section("The largest lexer states", blocks={**blocks, "bars": bars})


def _pairs(facts: Facts) -> Section:
    pairs, n_live = facts["pairs"], len(facts["pairs"]["live"])
    proved = f"On the rules as loaded {pairs['always']['lark']:,} pairs are proved always legal"
    live = f"{counted(n_live, 'terminal')} {'reaches' if n_live == 1 else 'reach'} the parser"
    drawn = f", the {MATRIX_LIMIT} with most neighbours are drawn" if n_live > MATRIX_LIMIT else ""
    said = f"{proved}, on the normalised rules {pairs['always']['normalised']:,}. {live[0].upper()}{live[1:]}{drawn}."
    return Section("What can follow what", said)


def _classes(facts: Facts) -> Section:
    found = facts["interchange"]
    classes, further = found["classes"], found["further"]
    rows: list[list[Cell]] = [
        [seen, len(members), _codes(facts, members)]
        for seen, each in (("rules as loaded", classes), ("after rewriting", further))
        for members in each
    ]
    said = "No two terminals are interchangeable in this grammar."
    if rows:
        said = f"{counted(len(classes), 'class', 'classes')} with {counted(found['terminals'], 'terminal')}; rewriting the rules shows "
        said += f"{counted(len(further), 'further or larger class', 'further or larger classes')}."
    table = Table(["seen on", ">terminals", "members"], rows, look="chips")
    return Section("Interchangeable terminals", said, {"table": table})


def _context(facts: Facts) -> Section:
    rows: list[list[Cell]] = []
    if (known := facts["remembered"])["states"]:
        numbers = known["mean_entries_alone"], known["mean_entries_remembered"], known["contexts"]
        name = f"the last terminal, remembered in {counted(known['states'], 'lexer state')}"
        rows.append([name, *(round(number, 1) for number in numbers)])
    if two := facts.get("pair_contexts"):
        numbers = two["mean_entries_after_one"], two["mean_entries_after_two"], two["contexts"]
        rows.append(["the last two terminals, where one is known", *(round(number, 1) for number in numbers)])
    heads = ["what is known", ">entries, mean", ">left, mean", ">combinations"]
    return Section("More context", blocks={"table": Table(heads, rows)})


def _engine(facts: Facts) -> Section:
    engine = facts["engine"]
    rows = [[engine[name], words] for name, words in ENGINE_LABELS.items() if name in engine]
    said = f"Lexing {engine['lexing']}, built in {engine['seconds']:.1f} s of processor time."
    return Section("Exact engine", said, {"table": Table([">number", "in words"], rows)})


def _forecast(facts: Facts) -> Section:
    found, title = facts["forecast"], "Forecast of costs"
    if "unavailable" in found:
        return Section(title, f"There is none: {found['unavailable']}")
    sizes = list(found["bytes"])
    entries = [f"{found['entries'][size]['mean']:,.1f} ({found['entries'][size]['worst']:,})" for size in sizes]
    rows: list[list[Cell]] = [
        ["cost of a lexer state", *entries, "entries: mean (worst)"],
        ["store bytes", *found["bytes"].values(), ""],
        ["undecided parses", *[found["undecided"]] * len(sizes), "decided by the stack at run time"],
    ]
    if found["is_open"]:
        rows.append(["stack automaton", *["open"] * len(sizes), "past its budget: the parser is asked"])
    else:
        reads = found["stack_reads"]
        words = f"read in the mean; {reads['p99']:,.0f} at 99 %"
        rows.append(["stack cells a mask", *[round(reads["mean"], 1)] * len(sizes), words])
    states: list[list[Cell]] = [
        [_text(one["text"], "between lexemes"), _codes(facts, one["may_become"][:4]), *one["entries"].values()]
        for one in found["worst_states"]
    ]
    causes: list[list[Cell]] = [[[Code(one["rule"])], f"{one['share']:.0%}", one["why"]] for one in found["causes"]]
    heads = [f">{int(size) // 1024}k tokens" for size in sizes]
    rule = ["rule, open at the dot", "share of the reads", "what could be done"]
    said = f"Of its automata and {found['generic_tokens']:,} made-up tokens; no tokenizer was read."
    blocks: Blocks = {
        "table": Table(["", *heads, "in words"], rows),
        "states": Table(["shortest text", "may become", *heads], states, "Lexer states with most entries", brief=0),
        "causes": Table(rule, causes, "Rules that make a mask read further down the stack", "wordy", brief=0),
        "advice": Table([""], [[sentence] for sentence in found["advice"]], "What could be rewritten"),
    }
    return Section(title, said, blocks)


def _costs(facts: Facts) -> Section:
    seconds, blocks, kept = facts["seconds"], Blocks(), ""
    if store := facts.get("store"):
        dense = f"different sets of tokens, {store['dense_masks']:,} as bitmaps, others as lists"
        rows: list[list[Cell]] = [
            ["Cells", store["cells"], "tables of entries; lexer states with equal tables share one"],
            ["Entries", store["entries"], "in all cells together"],
            ["Sequences", store["sequences"], "different sequences of terminals"],
            ["Masks", store["masks"], dense],
            ["Bytes", store["mask_bytes"], "for all masks"],
        ]
        blocks["store"] = Table(["", ">number", "in words"], rows, "The store", brief=0)
        entries, cells = counted(store["entries"], "entry", "entries"), counted(store["cells"], "cell")
        kept = f"{entries} in {cells}; {counted(store['masks'], 'mask')} in {store['mask_bytes'] / 1000:,.0f} kB. "
    spent = {part: n for part, n in seconds.items() if n and part not in ("total", "wall")}
    blocks["bars"] = Bars([(part, {"after": n}, f"{n:.2f} s") for part, n in spent.items()], is_brief=False)
    parts = ", ".join(f"{part} {n:.2f}" for part, n in spent.items())
    said = f"{seconds['total']:.2f} s of processor time in all ({parts}), {seconds['wall']:.2f} s by the clock"
    memory = f"{facts['peak_rss_mb']:,.0f} MB of memory"
    return Section("Store, time and memory", f"{kept}{said}, at most {memory}.", blocks)
