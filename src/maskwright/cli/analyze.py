"""`maskwright analyze`: a grammar, and how far its mask store shrinks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from maskwright.cli.common import (
    ConflictsOption,
    GrammarArgument,
    GrammarOptions,
    JsonOption,
    LexingOption,
    ReservedOption,
    RestrictOption,
    SoftOption,
    StartOption,
    TokenizerOption,
    app,
    check_writable,
    clean_errors,
    load_inputs,
    progress_bars,
    write_json,
    write_text,
)


@app.command(epilog="Example: maskwright analyze lark:python --tokenizer mistral-7b-v0.1 --html report.html")
def analyze(
    grammar: GrammarArgument,
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = None,
    reserved: ReservedOption = None,
    conflicts: ConflictsOption = None,
    soft: SoftOption = None,
    restrict: RestrictOption = None,
    json_file: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page.")] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Count what a second terminal of context would save.")
    ] = True,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also build the store of the grammar's own lexing, and report its sizes.")
    ] = False,
    lint: Annotated[
        bool,
        typer.Option("--lint/--no-lint", help="First show what is wrong with the grammar, as maskwright lint does."),
    ] = True,
    forecast: Annotated[
        bool, typer.Option("--forecast/--no-forecast", help="Say what masks and stores will cost with any tokenizer.")
    ] = True,
) -> None:
    """Analyse a grammar; with a tokenizer, how far its mask store shrinks and why."""
    with clean_errors():
        from maskwright.report.analysis import analyze as run

        check_writable(json_file, html, inputs=(grammar, tokenizer))
        loaded, vocabulary = load_inputs(
            grammar, tokenizer, GrammarOptions(start, lexing, reserved, conflicts, soft, restrict)
        )
        with progress_bars() as progress:
            report = run(loaded, vocabulary, pairs=pairs, exact=exact, forecast=forecast, lint=lint, progress=progress)
        if html is not None:
            write_text(html, report.to_html())
        if json_file is not None:
            write_json(json_file, report.to_dict())
        if json_file is None or str(json_file) != "-":
            console = Console()
            console.print(report)
            for path in (html, json_file):
                if path is not None:
                    console.print(f"wrote {path}", highlight=False)
