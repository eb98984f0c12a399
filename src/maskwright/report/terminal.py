"""Shows the analysis report in a terminal, as tables and bars of `rich` that fit 80 columns.

In: the facts of an analysis. Out: an object that a `rich.console.Console` prints, in colour or not,
wide or narrow.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.text import Text

from maskwright.report.figures import Bars, Cell, Code, Facts, Table, headline, sections, sentences
from maskwright.report.parts import table
from maskwright.report.svg import printable, shortened

N_LARGEST = 6
"""Most rows of a table that can be sorted on the page."""
N_FINDINGS = 5
"""Most findings of lint that are shown."""
MAX_WIDTH = 100
"""Most columns that the report uses."""
BAR_WIDTH = 20


def render_terminal(facts: Facts) -> RenderableType:
    """The whole report.

    facts : of `maskwright.report.analysis.analyze`, with or without a vocabulary.
    """
    title = facts["grammar"]["name"]
    title += f" with {facts['tokenizer']['name']}" if "tokenizer" in facts else ", analysed without a vocabulary"
    panel = Panel(
        table("", "", rows=headline(facts)), title=Text(shortened(title, 70), style="bold"), title_align="left"
    )
    parts: list[RenderableType] = [Text("\n".join(sentences(facts))), panel]
    for section in sections(facts):
        parts.append(Rule(Text(section.title), align="left", style="dim"))
        parts += [Text(printable(section.words))] if section.words else []
        parts += _findings(facts) if section.title == "What is wrong with the grammar" else ()
        parts += [shown for block in section.blocks.values() for shown in _block(block)]
    return Constrain(Group(*parts), MAX_WIDTH)


def _block(block: Table | Bars) -> Iterator[RenderableType]:
    if isinstance(block, Bars):
        most = max((sum(parts.values()) for _, parts, _ in block.rows), default=0) or 1
        bars = [
            (label, words, ProgressBar(most, next(iter(parts.values())), BAR_WIDTH, complete_style="cyan"))
            for label, parts, words in block.rows
        ]
        if block.is_brief:
            yield table("", ">", "", rows=bars)
    elif block.rows and block.brief != 0:
        heads = [head.replace(", ", ",\n") for head in block.heads[: block.brief]]
        cut = block.rows[: N_LARGEST if block.look == "sortable" else None]
        rows = [[_cell(cell, 72 // len(heads)) for cell in row[: block.brief]] for row in cut]
        yield table(*heads, rows=rows, title=block.title or None)


def _cell(cell: Cell, most: int) -> str:
    """A cell in words. most : letters that are shown of a code."""
    if isinstance(cell, list):
        return "".join(shortened(part.text, most) if isinstance(part, Code) else printable(part) for part in cell)
    return printable(cell) if isinstance(cell, str) else f"{cell:,}"


def _findings(facts: Facts) -> Iterator[RenderableType]:
    """The first errors and warnings of lint, a line each; errors come first."""
    for finding in [each for each in facts["lint"]["findings"] if each["severity"] != "info"][:N_FINDINGS]:
        place = f"{finding['line']}:{finding['column']}: " if finding["line"] else ""
        first = finding["message"].split("\n")[0]
        shown = f"{place}{finding['severity']} {finding['code']}: {first}"
        yield Text(shortened(shown, 79), style="red" if finding["severity"] == "error" else "yellow")
