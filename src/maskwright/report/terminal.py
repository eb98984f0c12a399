"""Shows the analysis report in a terminal, as tables and bars of `rich` that fit 80 columns.

In: the facts of an analysis. Out: an object that a `rich.console.Console` prints, in colour or not,
wide or narrow.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from maskwright.report.figures import (
    Facts,
    counted,
    engine_rows,
    findings_line,
    forecast_rows,
    largest_states,
    largest_step,
    main_entry,
    sentences,
    state_text,
    terminal_names,
    times_fewer,
)
from maskwright.report.parts import filled, table
from maskwright.report.svg import STEP_LABELS, shortened

N_LARGEST = 6
"""Most lexer states that a list shows."""
N_FINDINGS = 5
"""Most findings of lint that are shown."""
MAX_WIDTH = 100
"""Most columns that the report uses."""
BAR_WIDTH = 20

_SIZES = (
    ("terminals", "{ignored} ignored, {declared} from layout"),
    ("nonterminals", "{grammar[normalised][nonterminals]:,} in normalised rules"),
    ("rules", "{grammar[normalised][rules]:,} normalised"),
    ("lexer states", ""),
    ("vocabulary", "tokens, {tokenizer[special_tokens]:,} of them special"),
    ("token automaton", "results of reading {token_nfa[sound][tokens]:token} from every state"),
    ("pairs", "{pairs[never]:,} never, {sometimes:,} sometimes, {always:,} always legal"),
)
_COSTS = (
    (
        "last terminal remembered",
        "{remembered[mean_entries_alone]:,.1f} -> {remembered[mean_entries_remembered]:,.1f} entries, "
        "{remembered[states]:state}",
    ),
    (
        "two terminals of context",
        "would leave {pair_contexts[mean_entries_after_one]:,.1f} -> {pair_contexts[mean_entries_after_two]:,.1f} entries, "
        "{pair_contexts[contexts]:context}",
    ),
    ("store", "{store[entries]:entry|entries} in {store[cells]:cell}; {store[masks]:mask} in {kb:,.0f} kB"),
    ("processor seconds", "{seconds[total]:.2f} ({spent})"),
    ("memory", "{peak_rss_mb:,.0f} MB at most"),
)


def render_terminal(facts: Facts) -> RenderableType:
    """The whole report.

    facts : of `maskwright.report.analysis.analyze`, with or without a vocabulary.
    """
    parts = [Text("\n".join(sentences(facts))), _headline(facts), *_findings(facts)]
    if "engine" in facts:
        parts += _engine(facts)
    if "forecast" in facts:
        parts += _forecast(facts)
    parts += [_sizes(facts), *_classes(facts)]
    if "entries" in facts:
        parts += [*_entries(facts), *_states(facts, "exact", "most entries left")]
        parts += _states(facts, "ignored", "most entries originally")
    return Constrain(Group(*parts, *_costs(facts)), MAX_WIDTH)


def _headline(facts: Facts) -> RenderableType:
    title = facts["grammar"]["name"]
    lines = Table.grid(padding=(0, 2))
    if "entries" in facts:
        title += f" with {facts['tokenizer']['name']}"
        if facts["grammar"]["lexing"] != facts["figures_for"]["lexing"]:
            for row in _store_rows(facts):
                lines.add_row(*row)
            lines.add_row("the post's store", Text("lexing nfa", style="bold"), "counted in what follows")
        entry, calls = main_entry(facts), facts["parser_calls"]
        entries = f"{entry['original']:,} -> {entry['exact']:,}"
        asked = f"{calls['original']:,.1f} -> {calls['streamlined']:,.1f}"
        lines.add_row("entries", Text(entries, style="bold"), times_fewer(entry["original"], entry["exact"]))
        lines.add_row("parser calls a mask", Text(asked, style="bold"), "mean over lexer states")
        step, removed = largest_step(entry)
        lines.add_row("most go as", Text(STEP_LABELS[step]), f"{removed:,}")
    else:
        lines.add_row("analysed without a vocabulary: facts about the grammar only")
    return Panel(lines, title=Text(shortened(title, 70), style="bold"), title_align="left")


def _store_rows(facts: Facts) -> list[tuple[str, Text, str]]:
    """The store that `build_store` makes, as it is forecast: how large, and what a mask costs."""
    found = facts.get("forecast", {"unavailable": ""})
    of = Text(f"lexing {facts['grammar']['lexing']}", style="bold")
    if "unavailable" in found:
        return [("your store", of, "")]
    size, nbytes = next(iter(found["bytes"].items()))
    rows = [("your store", of, f"{nbytes / 1e6:,.1f} MB at {int(size) // 1024}k tokens")]
    if not found["is_open"]:
        rows.append(("stack cells a mask", Text(f"{found['stack_reads']['mean']:,.1f}", style="bold"), "mean"))
    return rows


def _findings(facts: Facts) -> list[RenderableType]:
    """The first errors and warnings of lint, a line each; errors come first."""
    if "lint" not in facts:
        return []
    found = facts["lint"]["findings"]
    rows = _section(f"lint: {findings_line(facts)}")
    for finding in [each for each in found if each["severity"] != "info"][:N_FINDINGS]:
        place = f"{finding['line']}:{finding['column']}: " if finding["line"] else ""
        first = finding["message"].split("\n")[0]
        shown = f"{place}{finding['severity']} {finding['code']}: {first}"
        rows.append(Text(shortened(shown, 79), style="red" if finding["severity"] == "error" else "yellow"))
    return rows


def _sizes(facts: Facts) -> RenderableType:
    grammar, pairs = facts["grammar"], facts["pairs"]
    always = pairs["always"]["normalised"]
    known = {
        **facts,
        "ignored": len(grammar["ignored"]),
        "declared": len(grammar["declared"]),
        "sometimes": pairs["pairs"] - pairs["never"] - always,
        "always": always,
    }
    numbers = {
        "terminals": grammar["terminals"],
        "nonterminals": grammar["nonterminals"],
        "rules": grammar["rules"],
        "lexer states": facts["lexer"]["sound"]["states"],
        "pairs": pairs["pairs"],
    }
    if "tokenizer" in facts:
        numbers |= {"vocabulary": facts["tokenizer"]["size"], "token automaton": facts["token_nfa"]["sound"]["rows"]}
    return table("", ">", "", rows=((name, numbers[name], words) for name, words in filled(known, _SIZES).items()))


def _section(title: str, *parts: RenderableType) -> list[RenderableType]:
    return [Rule(Text(title), align="left", style="dim"), *parts]


def _classes(facts: Facts) -> list[RenderableType]:
    found, names = facts["interchange"], terminal_names(facts)
    if not found["classes"] and not found["further"]:
        return _section("no interchangeable terminals")
    rows = []
    for sign, classes in (("", found["classes"]), ("+", found["further"])):
        for members in classes:
            shown = " ".join(shortened(names.get(member, member), 24) for member in members)
            rows.append((f"{sign}{len(members)}", shortened(shown, 280)))
    more = [Text("+ seen after rewriting the rules only", style="dim")] if found["further"] else []
    classes_shown = counted(len(found["classes"]), "interchange class", "interchange classes")
    title = f"{classes_shown} with {counted(found['terminals'], 'terminal')}"
    return _section(title, table(">", "", rows=rows), *more)


def _entries(facts: Facts) -> list[RenderableType]:
    main = main_entry(facts)
    rows: list[tuple[RenderableType, ...]] = []
    previous = main["original"]
    for step, label in STEP_LABELS.items():
        left = main[step]
        if step == "ignored" and left == previous:
            continue
        bar = ProgressBar(max(1, main["original"]), left, BAR_WIDTH, complete_style="cyan", finished_style="yellow")
        rows.append((label, f"{left:,}", f"{previous - left:,}" if previous > left else "", bar))
        previous = left
    steps = table("sound, rules normalised", ">entries", ">removed", "", rows=rows)
    heads = ("original", "ignored", "follow", "always", "times", "joint", "exact", "times")
    others = []
    for entry in facts["entries"]:
        numbers = [f"{entry[step]:,}" for step in heads if step != "times"]
        numbers.insert(heads.index("times"), f"{entry['ratio']:.1f}")
        others.append((f"{entry['reading']}, {entry['rules']}", *numbers, f"{entry['ratio_exact']:.1f}"))
    variants = table("reading, rules", *(f">{head}" for head in heads), rows=others)
    legend = "sound: true bytes, as in decoding; post: as the streamlining post counts"
    return _section("entries after each step", steps, Text(""), variants, Text(legend, style="dim"))


def _states(facts: Facts, step: str, title: str) -> list[RenderableType]:
    names = terminal_names(facts)

    def shown(name: str, length: int) -> str:
        return shortened(names.get(name, name), length)

    rows = []
    for state in largest_states(facts, step, N_LARGEST):
        inside = "start of text" if state["terminal"] is None else shown(state["terminal"], 16)
        text = shortened(state_text(state["text"]), 14)
        causes = ", ".join(f"{shown(name, 10)} {count:,}" for name, count in state["causes"])
        rows.append((inside, text, f"{state['ignored']:,}", f"{state['exact']:,}", causes))
    heads = ("inside", "shortest text", ">original", ">left", "what is left begins with")
    return _section(f"lexer states: {title}", table(*heads, rows=rows))


def _engine(facts: Facts) -> list[RenderableType]:
    found = facts["engine"]
    title = f"exact engine: lexing {found['lexing']}, {found['seconds']:.1f} processor seconds"
    return _section(title, table(">", "", rows=engine_rows(facts)))


def _forecast(facts: Facts) -> list[RenderableType]:
    found = facts["forecast"]
    if "unavailable" in found:
        return _section("forecast of costs", Text(f"none: {found['unavailable']}"))
    sizes = [f">{int(size) // 1024}k tokens" for size in found["bytes"]]
    rows = [
        (name, *numbers, *[""] * (len(sizes) - len(numbers)), words) for name, numbers, words in forecast_rows(facts)
    ]
    advice = (Text(shortened(f"- {sentence}", 79)) for sentence in found["advice"][:2])
    return _section("forecast of costs, for tokenizers of two sizes", table("", *sizes, "", rows=rows), *advice)


def _costs(facts: Facts) -> list[RenderableType]:
    known, seconds = dict(facts), facts["seconds"]
    if "remembered" in facts and not facts["remembered"]["states"]:
        del known["remembered"]
    known["kb"] = facts.get("store", {}).get("mask_bytes", 0) / 1000
    known["spent"] = ", ".join(f"{part} {n:.2f}" for part, n in seconds.items() if part not in ("total", "wall") and n)
    return _section("context, store, costs", table("", "", rows=filled(known, _COSTS).items()))
