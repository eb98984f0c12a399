"""`maskwright analyze`: a grammar, and how far its mask store shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, Group

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.cli.command import command
from maskwright.cli.common import check_writable, progress_bars, say, show, write_json, write_text
from maskwright.cli.constraints import DEFAULTS, GrammarOptions

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.analysis.schema.load import JsonSchema
    from maskwright.analysis.schema.text_patterns import Regex
    from maskwright.maskstore.vocabulary import Vocabulary

_EPILOG = """Example: maskwright analyze lark:python --tokenizer mistral-7b-v0.1 --html report.html

A question: maskwright analyze json --after '","' --then 'STRING ":"'"""

ENGINES = ("paths", "exact")
"""The engines that are asked by default."""


@command(epilog=_EPILOG)
def analyze(
    grammar: str,
    *,
    tokenizer: str | None = None,
    options: GrammarOptions = DEFAULTS,
    json_file: Path | None = None,
    html: Path | None = None,
    pairs: bool = True,
    exact: bool = False,
    lint: bool = True,
    forecast: bool = True,
    tree: str | None = None,
    after: list[str] | None = None,
    then: list[str] | None = None,
    jointly: list[str] | None = None,
    engine: list[str] | None = None,
    drawing: Path | None = None,
    draw: str | None = None,
    certificates: Path | None = None,
    check_certificates: Path | None = None,
) -> None:
    """Analyse a grammar; with a tokenizer, how far its mask store shrinks and why.

    Of a JSON schema or a pattern: what it has become, and how large its tables are. Of a
    composition: host and parts, where each stands, and how large it is.

    html FILE : Write one self-contained page.
    pairs : Count what a second terminal of context would save.
    exact : Also build the store of the grammar's own lexing, and report its sizes.
    lint : First show what is wrong with the grammar, as maskwright lint does.
    forecast : Say what masks and stores will cost with any tokenizer.
    tree STATE : With --tokenizer: only write the subterminal tree of a lexer state (START, or a number), in DOT or into --drawing.
    after TERMINALS : With --then: after which terminals, the nearest last. START: at the start.
    then TERMINALS : Only say whether these terminals can never or always follow those of --after.
    jointly TERMINALS : With --then: whether these can follow exactly where those can.
    engine NAME : With --then: paths, exact, exploration or pyformlang; may be repeated.
    drawing FILE : Draw what --draw says, as SVG; into .dot or .graphml, the graph itself.
    draw WHAT : follow: which symbols can stand side by side; pushdown: the grammar as an automaton; with --tokenizer entries: their
        distribution after each step; with --then exploration (default), nfa (over what it borrows), or run: its path from the start
        through the automaton.
    certificates FILE : With --then: write the certificates of the engine exact as JSON.
    check_certificates FILE : Only check a file of --certificates, on LR tables made anew and validated.
    """
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.report.analysis import analyze as run
    from maskwright.report.pictures import check_drawing, render_entries, render_grammar

    check_writable(json_file, html, drawing, certificates, inputs=(grammar, tokenizer, check_certificates))
    for name, given in (("--after", after), ("--then", then), ("--jointly", jointly)):
        if given is not None and len(given) > 1:
            raise MaskwrightError(
                f"{name} is given {len(given)} times; name all terminals of one question in one: {name} '{' '.join(given)}'"
            )
    if then is None and (after is not None or jointly is not None or engine or certificates is not None):
        raise MaskwrightError(
            "--after, --jointly, --engine and --certificates are about a question: add --then TERMINALS"
        )
    more = json_file is not None or html is not None or exact or check_certificates is not None
    if tree is not None and (tokenizer is None or then is not None or html is not None or exact or draw is not None):
        raise MaskwrightError("--tree shows tokens: add --tokenizer, and leave out --then, --draw, --html and --exact")
    check_drawing(draw, drawing, then is not None or tree is not None, tokenizer is not None, more)
    if certificates is not None and "exact" not in (engine or ENGINES):
        raise MaskwrightError(
            "only the engine exact gives certificates: add --engine exact, or leave out --certificates"
        )
    if check_certificates is not None and (drawing or then or tokenizer is not None or html is not None or exact):
        raise MaskwrightError(
            "--check-certificates checks a file, without --then, --drawing, --tokenizer, --html and --exact: leave these out"
        )
    if then is not None and (tokenizer is not None or html is not None or exact):
        raise MaskwrightError("--then asks one question, without --tokenizer, --html and --exact: leave these out")
    loaded = options.read(grammar)
    vocabulary = None if tokenizer is None else load_vocabulary(tokenizer)
    if not isinstance(loaded, Grammar):
        if any(x is not None for x in (then, drawing, html, check_certificates, tree)) or exact:
            raise MaskwrightError(
                f"{grammar} is no grammar: --check-certificates, --then, --drawing, --tree, --html and --exact are for one; "
                "leave them out"
            )
        _of_others(loaded, vocabulary, json_file)
        return
    if tree is not None and vocabulary is not None:
        _show_tree(loaded, vocabulary, tree, drawing)
        return
    if check_certificates is not None:
        from maskwright.report.certificates import check_certificates as check

        show(check(check_certificates, loaded), json_file)
        return
    if then is not None:
        question = ((after or ["START"])[0], then[0], jointly[0] if jointly else None)
        _ask(loaded, question, engine or ENGINES, json_file, (draw, drawing), certificates)
        return
    if drawing is not None and draw != "entries":
        write_text(drawing, render_grammar(loaded, str(draw), drawing))
        say(f"wrote {drawing}")
        return
    with progress_bars() as progress:
        report = run(loaded, vocabulary, pairs=pairs, exact=exact, forecast=forecast, lint=lint, progress=progress)
    if html is not None:
        write_text(html, report.to_html())
    if drawing is not None:
        write_text(drawing, render_entries(report.facts))
    if write_json(json_file, report.to_dict()):
        _show(report, html, drawing, json_file)


def _show(report: Any, *paths: Path | None) -> None:
    """Print a report, and which files were written."""
    Console().print(report)
    for path in filter(None, paths):
        say(f"wrote {path}")


def _show_tree(grammar: Grammar, vocabulary: Vocabulary, state: str, drawing: Path | None) -> None:
    """Write the subterminal tree of a lexer state. state : as of --tree. drawing : None to print DOT."""
    from maskwright.maskstore.entries.subterminal_tree import subterminal_tree
    from maskwright.report.pictures import render

    if state != "START" and not state.isdecimal():
        raise MaskwrightError(
            f"--tree is {state!r}; expected START, or the number of a lexer state, as --json lists them"
        )
    tree = subterminal_tree(grammar, vocabulary, None if state == "START" else int(state))
    title = f"{grammar.name} x {vocabulary.name}, {state}"
    if drawing is None:
        print(tree.to_dot(title), end="")
    else:
        write_text(drawing, render(tree, title, drawing))
        say(f"wrote {drawing}")


def _of_others(
    constraint: JsonSchema | Regex | Composition, vocabulary: Vocabulary | None, json_file: Path | None
) -> None:
    """Report what a schema or a pattern has become, or what a composition is made of."""
    from maskwright.report.constraint_report import analyze_constraint

    with progress_bars() as progress:
        report = analyze_constraint(constraint, vocabulary, progress)
    if write_json(json_file, report.to_dict()):
        _show(report, json_file)


def _ask(
    grammar: Grammar,
    question: tuple[str, str, str | None],
    engines: Sequence[str],
    json_file: Path | None,
    drawn: tuple[str | None, Path | None],
    certificates: Path | None,
) -> None:
    """Answer one question; exit code 1 if the engines contradict each other, or one's LR tables are wrong.

    question : the terminals of --after, of --then and of --jointly.
    drawn : --draw and --drawing.
    """
    from maskwright.report.pictures import render_question, render_run
    from maskwright.report.question import ask

    after, then, jointly = question
    answers = ask(grammar, after, then, engines, jointly)
    draw, drawing = drawn
    to_read = True
    if certificates is not None and not answers.faults:
        from maskwright.report.certificates import certificates_to_dict

        to_read = write_json(certificates, certificates_to_dict(answers))
    if drawing is not None:
        write_text(drawing, render_question(answers.question, draw or "exploration", drawing))
    if write_json(json_file, answers.to_dict()) and to_read:
        shown = Group(answers, "", render_run(answers.question)) if draw == "run" else answers
        _show(shown, drawing, None if answers.faults else certificates, json_file)
    if answers.contradictions or answers.faults:
        raise typer.Exit(1)
