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
from maskwright.report.svg import STEP_LABELS, shortened

N_LARGEST = 6
"""Most lexer states that a list shows."""
N_FINDINGS = 5
"""Most findings of lint that are shown."""
MAX_WIDTH = 100
"""Most columns that the report uses."""
BAR_WIDTH = 20


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
    rows = [_section(f"lint: {findings_line(facts)}")]
    for finding in [each for each in found if each["severity"] != "info"][:N_FINDINGS]:
        place = f"{finding['line']}:{finding['column']}: " if finding["line"] else ""
        first = finding["message"].split("\n")[0]
        shown = f"{place}{finding['severity']} {finding['code']}: {first}"
        rows.append(Text(shortened(shown, 79), style="red" if finding["severity"] == "error" else "yellow"))
    return rows


def _sizes(facts: Facts) -> RenderableType:
    grammar, pairs, lexer = facts["grammar"], facts["pairs"], facts["lexer"]
    normal = grammar["normalised"]
    always, layouts = pairs["always"]["normalised"], len(grammar["declared"])
    rows = [
        ("terminals", grammar["terminals"], f"{len(grammar['ignored'])} ignored, {layouts} from layout"),
        ("nonterminals", grammar["nonterminals"], f"{normal['nonterminals']:,} in normalised rules"),
        ("rules", grammar["rules"], f"{normal['rules']:,} normalised"),
        ("lexer states", lexer["sound"]["states"], ""),
    ]
    if "tokenizer" in facts:
        vocabulary, walked = facts["tokenizer"], facts["token_nfa"]
        rows += [
            ("vocabulary", vocabulary["size"], f"tokens, {vocabulary['special_tokens']:,} of them special"),
            ("token automaton", walked["sound"]["rows"], ""),
        ]
    sometimes = pairs["pairs"] - pairs["never"] - always
    rows.append(
        ("pairs", pairs["pairs"], f"{pairs['never']:,} never, {sometimes:,} sometimes, {always:,} always legal")
    )
    table = _table("", ">", "")
    for name, number, words in rows:
        table.add_row(name, Text(f"{number:,}", style="bold"), words)
    return table


def _table(*heads: str) -> Table:
    """A table without lines. heads : the columns' titles; ">" at the beginning aligns right."""
    named = any(head.strip(">") for head in heads)
    table = Table(box=None, show_header=named, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for head in heads:
        right = head.startswith(">")
        table.add_column(head.lstrip(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _section(title: str) -> RenderableType:
    return Rule(Text(title), align="left", style="dim")


def _classes(facts: Facts) -> list[RenderableType]:
    found, names = facts["interchange"], terminal_names(facts)
    if not found["classes"] and not found["further"]:
        return [_section("no interchangeable terminals")]
    classes_shown = counted(len(found["classes"]), "interchange class", "interchange classes")
    title = f"{classes_shown} with {counted(found['terminals'], 'terminal')}"
    table = _table(">", "")
    for sign, classes in (("", found["classes"]), ("+", found["further"])):
        for members in classes:
            shown = " ".join(shortened(names.get(member, member), 24) for member in members)
            table.add_row(f"{sign}{len(members)}", Text(shortened(shown, 280)))
    more = [Text("+ seen after rewriting the rules only", style="dim")] if found["further"] else []
    return [_section(title), table, *more]


def _entries(facts: Facts) -> list[RenderableType]:
    main = main_entry(facts)
    table = _table("sound, rules normalised", ">entries", ">removed", "")
    previous = main["original"]
    for step, label in STEP_LABELS.items():
        left = main[step]
        if step == "ignored" and left == previous:
            continue
        bar = ProgressBar(max(1, main["original"]), left, BAR_WIDTH, complete_style="cyan", finished_style="yellow")
        table.add_row(label, f"{left:,}", f"{previous - left:,}" if previous > left else "", bar)
        previous = left
    others = _table(
        "reading, rules", ">original", ">ignored", ">follow", ">always", ">times", ">joint", ">exact", ">times"
    )
    for entry in facts["entries"]:
        numbers = [f"{entry[step]:,}" for step in ("original", "ignored", "follow", "always", "joint", "exact")]
        ratios = (f"{entry['ratio']:.1f}", f"{entry['ratio_exact']:.1f}")
        others.add_row(f"{entry['reading']}, {entry['rules']}", *numbers[:4], ratios[0], *numbers[4:], ratios[1])
    legend = "sound: true bytes, as in decoding; post: as the streamlining post counts"
    return [_section("entries after each step"), table, Text(""), others, Text(legend, style="dim")]


def _states(facts: Facts, step: str, title: str) -> list[RenderableType]:
    names = terminal_names(facts)

    def shown(name: str, length: int = 14) -> str:
        return shortened(names.get(name, name), length)

    table = _table("inside", "shortest text", ">original", ">left", "what is left begins with")
    for state in largest_states(facts, step, N_LARGEST):
        inside = "start of text" if state["terminal"] is None else shown(state["terminal"], 16)
        causes = ", ".join(f"{shown(name, 10)} {count:,}" for name, count in state["causes"])
        text = Text(shortened(state_text(state["text"]), 14))
        table.add_row(Text(inside), text, f"{state['ignored']:,}", f"{state['exact']:,}", Text(causes))
    return [_section(f"lexer states: {title}"), table]


def _engine(facts: Facts) -> list[RenderableType]:
    found = facts["engine"]
    table = _table(">", "")
    for number, words in engine_rows(facts):
        table.add_row(Text(f"{number:,}", style="bold"), words)
    return [_section(f"exact engine: lexing {found['lexing']}, {found['seconds']:.1f} processor seconds"), table]


def _forecast(facts: Facts) -> list[RenderableType]:
    found = facts["forecast"]
    if "unavailable" in found:
        return [_section("forecast of costs"), Text(f"none: {found['unavailable']}")]
    sizes = [f">{int(size) // 1024}k tokens" for size in found["bytes"]]
    table = _table("", *sizes, "")
    for name, numbers, words in forecast_rows(facts):
        table.add_row(name, *numbers, *[""] * (len(sizes) - len(numbers)), words)
    parts: list[RenderableType] = [_section("forecast of costs, for tokenizers of two sizes"), table]
    return [*parts, *(Text(shortened(f"- {sentence}", 79)) for sentence in found["advice"][:2])]


def _costs(facts: Facts) -> list[RenderableType]:
    seconds = facts["seconds"]
    table = _table("", "")
    if "remembered" in facts and facts["remembered"]["states"]:
        found = facts["remembered"]
        alone, known = found["mean_entries_alone"], found["mean_entries_remembered"]
        table.add_row(
            "last terminal remembered", f"{alone:,.1f} -> {known:,.1f} entries, {counted(found['states'], 'state')}"
        )
    if "pair_contexts" in facts:
        found = facts["pair_contexts"]
        one, two = found["mean_entries_after_one"], found["mean_entries_after_two"]
        table.add_row(
            "two terminals of context",
            f"would leave {one:,.1f} -> {two:,.1f} entries, {counted(found['contexts'], 'context')}",
        )
    if "store" in facts:
        store = facts["store"]
        size = f"{counted(store['masks'], 'mask')} in {store['mask_bytes'] / 1000:,.0f} kB"
        entries = counted(store["entries"], "entry", "entries")
        table.add_row("store", f"{entries} in {counted(store['cells'], 'cell')}; {size}")
    spent = ", ".join(
        f"{part} {seconds[part]:.2f}" for part in seconds if part not in ("total", "wall") and seconds[part]
    )
    table.add_row("processor seconds", f"{seconds['total']:.2f} ({spent})")
    table.add_row("memory", f"{facts['peak_rss_mb']:,.0f} MB at most")
    return [_section("context, store, costs"), table]
