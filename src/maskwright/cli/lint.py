"""`maskwright lint`: what is wrong with a grammar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from maskwright.analysis.errors import EmptyLanguageError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.cli.command import command
from maskwright.cli.common import check_writable, show
from maskwright.cli.constraints import DEFAULTS, OF_LARK, GrammarOptions, is_composition, path_or_text, syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maskwright.lint.finding import Report
    from maskwright.maskstore.vocabulary import Vocabulary

_EPILOG = """Example: maskwright lint my.lark --tokenizer mistral-7b-v0.1 --json findings.json

Exit codes: 0 no errors and no warnings; 1 there are some; 2 usage or bad input, such as a grammar that cannot be read; 130 interrupted."""


@command(epilog=_EPILOG)
def lint(
    grammar: str,
    *,
    tokenizer: str | None = None,
    options: GrammarOptions = DEFAULTS,
    allow: list[str] | None = None,
    json_file: Path | None = None,
) -> None:
    """Say what is wrong with a grammar, a JSON schema or a composition, and what that does to a decoder.

    allow CODE : The code of a finding that is intended; may be given again.
    """
    from maskwright.lint import lint_grammar

    check_writable(json_file, inputs=(grammar, tokenizer))
    if syntax_of(grammar, options) == "schema":
        report = _of_schema(grammar, tokenizer, options, allow or ())
    elif is_composition(grammar, options):
        from maskwright.lint.compositions import lint_composition

        is_file = grammar.endswith(".lark")
        given = _vocabulary(tokenizer)
        report = lint_composition(path_or_text(grammar), given, file=grammar if is_file else None, allow=allow or ())
    else:
        try:
            loaded, vocabulary = options.load_constraint(grammar), _vocabulary(tokenizer)
        except EmptyLanguageError as error:
            # lint reports this as a finding; no check with a tokenizer applies then
            loaded, vocabulary = cast("Grammar", error.grammar), None
        if not isinstance(loaded, Grammar):
            raise MaskwrightError(f"{grammar} is a pattern or a choice, in which there is nothing to lint")
        is_file = grammar.endswith((".lark", ".gbnf", ".ebnf"))
        report = lint_grammar(loaded, vocabulary, file=grammar if is_file else loaded.name, allow=allow or ())
    show(report, json_file, report.passed)


def _of_schema(source: str, tokenizer: str | None, options: GrammarOptions, allow: Iterable[str]) -> Report:
    """The findings of a schema, which need not be one of which a store can be built."""
    from maskwright.lint.schemas import lint_schema

    options.refuse(OF_LARK, source, "a grammar in Lark")
    vocabulary = _vocabulary(tokenizer)
    is_file = source.endswith(".json")
    return lint_schema(
        path_or_text(source),
        vocabulary,
        documents=options.documents,
        lenient=options.lenient,
        additional_properties=not options.no_additional_properties,
        formats=options.formats,
        style=options.json_style(),
        file=source if is_file else None,
        allow=allow,
    )


def _vocabulary(tokenizer: str | None) -> Vocabulary | None:
    from maskwright.maskstore.vocabulary import load_vocabulary

    return None if tokenizer is None else load_vocabulary(tokenizer)
