"""Pictures of a grammar: graphs as SVG, DOT or GraphML, and the distribution of its entries.

In: a grammar, a question about one, or the facts of an analysis. Out: texts of files. These are the
figures of the streamlining post (docs/sources.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.follow import build_follow_graph, sentential_forms
from maskwright.analysis.legality.graph import Graph, to_svg
from maskwright.analysis.legality.pushdown import Pushdown, Run
from maskwright.analysis.legality.verdict import START
from maskwright.report.html import pieces
from maskwright.report.parts import table
from maskwright.report.question import MOST_DRAWN, Question
from maskwright.report.svg import STEP_LABELS, Markup, cumulative_picture, node

if TYPE_CHECKING:
    from rich.console import RenderableType

OF_GRAMMAR, OF_QUESTION = ("follow", "pushdown"), ("exploration", "nfa", "run")
PICTURES = (*OF_GRAMMAR, "entries", *OF_QUESTION)
"""What `--draw` takes."""
GRAPHS = (".dot", ".graphml")
"""Suffixes of files that hold a graph, and no picture of it. All others are SVG."""
MOST_ARROWS = 1_500
"""The most edges of a graph that are drawn as SVG."""
_COLOURS = (
    "svg { background: #fff; --ink: #1d2430; --soft: #596273; --line: #dfe3ea; --before: #d98c2b; --after: #1b6fb5; }"
)
"""The variables of a report's page, for a picture on its own."""


def check_drawing(
    draw: str | None, drawing: Path | None, has_question: bool, has_tokenizer: bool, has_more: bool
) -> None:
    """Check the options `--draw` and `--drawing` before the work begins.

    has_more : whether other outputs of an analysis are asked for.

    Raises: MaskwrightError if they do not go with each other or with the other options.
    """
    if drawing is None:
        wrong = {"--draw says what to draw: add --drawing FILE": draw is not None}
    elif draw is None:
        what = " or ".join(PICTURES[:3])
        wrong = {f"--drawing needs to know what: add --then TERMINALS, or --draw {what}": not has_question}
    elif draw not in PICTURES:
        raise UnknownNameError(f"there is no picture {draw!r}" + suggestion(draw, PICTURES))
    else:
        about = f"is {'not ' * has_question}about a question: {'leave out' if has_question else 'add'} --then"
        others = "--tokenizer, --json, --html, --exact and certificates"
        wrong = {
            f"--draw {draw} {about}": has_question != (draw in OF_QUESTION),
            "--draw entries counts entries of a vocabulary: add --tokenizer T": draw == "entries" and not has_tokenizer,
            f"{drawing}: the entries are no graph; name a file that ends in .svg": draw == "entries"
            and drawing.suffix in GRAPHS,
            f"--draw {draw} only draws: leave out {others}": draw in OF_GRAMMAR and (has_tokenizer or has_more),
        }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise MaskwrightError(message)


def render(graph: Graph[Any], title: str, path: Path) -> str:
    """A graph in the format that the suffix of a path names.

    Raises: LimitError if it has too many nodes or edges for SVG; MissingExtraError if GraphML is
        wanted and networkx is not installed.
    """
    if path.suffix == ".dot":
        return graph.to_dot(title)
    if path.suffix == ".graphml":
        return graph.to_graphml()
    if len(graph.nodes) > MOST_DRAWN or len(graph.edges) > MOST_ARROWS:
        raise LimitError(
            f"{title}: {len(graph.nodes):,} nodes and {len(graph.edges):,} edges are too many for a picture; "
            "write them as .dot or .graphml"
        )
    return to_svg(graph, title)


def render_grammar(grammar: Grammar, draw: str, path: Path) -> str:
    """A picture of a grammar: "follow" or "pushdown"."""
    if draw == "follow":
        graph = build_follow_graph(Deciders(sentential_forms(grammar))).graph
        return render(graph, f"What can stand next to what in {grammar.name}", path)
    return render(Pushdown(grammar).graph, f"Pushdown automaton of the grammar {grammar.name}", path)


def render_question(question: Question, draw: str, path: Path) -> str:
    """A picture of a question: "exploration", "nfa" or "run".

    Raises: GrammarError if there is no run, or the context of one is not START; as
        `Question.picture`.
    """
    if draw == "run":
        automaton, run, names = _run_of(question)
        return render(automaton.run_graph(run), f"The run on {names}", path)
    return render(*question.picture("nfa" if draw == "nfa" else "exploration"), path)


def render_run(question: Question) -> RenderableType:
    """The run on a question's sequence as a table, a configuration a row.

    Raises: as `render_question`.
    """
    automaton, run, _ = _run_of(question)
    rows = enumerate(automaton.run_rows(run, question.sequence), start=1)
    return table("step", "position", "stack", "to read", "move", rows=((str(step), *row) for step, row in rows))


def _run_of(question: Question) -> tuple[Pushdown, Run, str]:
    """The automaton, its run on the question's sequence, and the names of that sequence."""
    if question.context != (START,):
        raise GrammarError("a run begins at the start of the text: leave out --after, or give START")
    automaton = Pushdown(reduce(question.grammar))
    run = automaton.run(question.sequence)
    names = " ".join(map(question.grammar.display_name, question.sequence))
    if run is None:
        raise GrammarError(f"grammar {question.grammar.name}: {names} is no whole word, so there is no run to draw")
    return automaton, run, names


def render_entries(facts: dict[str, Any]) -> str:
    """The distribution of entries over lexer states after each step, as SVG.

    It is that of the post reading, on the rules as loaded, if the grammar has one.
    """
    states = facts.get("post_states", facts["states"])
    columns = {step: [state[step] for state in states] for step in STEP_LABELS}
    picture = cumulative_picture(columns.pop("original"), columns.pop("exact"), columns)
    head, mark, rest = picture.partition(">")
    return f"{head}{mark}{node('style', Markup(_COLOURS + pieces()['pictures']))}{rest}\n"
