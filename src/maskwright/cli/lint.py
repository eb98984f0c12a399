"""`maskwright lint`: what is wrong with a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from maskwright.analysis.errors import EmptyLanguageError
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
    write_json,
)

if TYPE_CHECKING:
    from maskwright.analysis.grammar.grammar import Grammar

_EPILOG = """Example: maskwright lint my.lark --tokenizer mistral-7b-v0.1 --json findings.json

Exit codes: 0 no errors and no warnings; 1 there are some; 2 usage or bad input, such as a grammar that cannot be read; 130 interrupted."""


@app.command(epilog=_EPILOG)
def lint(
    grammar: GrammarArgument,
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = None,
    reserved: ReservedOption = None,
    conflicts: ConflictsOption = None,
    soft: SoftOption = None,
    restrict: RestrictOption = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="CODE", help="The code of a finding that is intended; may be given again."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Say what is wrong with a grammar, and what that does to a decoder."""
    with clean_errors():
        from maskwright.lint import lint_grammar

        check_writable(json_file, inputs=(grammar, tokenizer))
        try:
            loaded, vocabulary = load_inputs(
                grammar, tokenizer, GrammarOptions(start, lexing, reserved, conflicts, soft, restrict)
            )
        except EmptyLanguageError as error:
            # lint reports this as a finding; no check with a tokenizer applies then
            loaded, vocabulary = cast("Grammar", error.grammar), None
        report = lint_grammar(
            loaded, vocabulary, file=grammar if grammar.endswith(".lark") else loaded.name, allow=allow or ()
        )
        if json_file is not None:
            write_json(json_file, report.to_dict())
        if json_file is None or str(json_file) != "-":
            Console(soft_wrap=True).print(str(report), markup=False, highlight=False)
    if not report.passed:
        raise typer.Exit(1)
