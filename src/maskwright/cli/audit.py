"""`maskwright audit`: which tokens does another engine refuse or allow wrongly?"""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.console import Console

from maskwright.cli.common import (
    FieldOption,
    JsonOption,
    LimitOption,
    SuffixOption,
    TokenizerOption,
    app,
    check_not_texts,
    check_writable,
    clean_errors,
    load_or_build_store,
    progress_bars,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, OF_LARK, GrammarOptions, syntax_of, takes_options

_EPILOG = """Examples: maskwright audit llguidance --grammar json.lark --tokenizer mistral-7b-v0.1 data/ --suffix .json;
maskwright audit person.schema.json

Exit codes: 0 the engines agree; 1 they differ, or a text could not be compared; 2 usage or bad input; 130 interrupted."""

_ALL = ("llguidance", "xgrammar", "outlines")
"""Engines that read JSON schemas, which a schema's file stands for."""


@app.command(epilog=_EPILOG)
@takes_options((*OF_LARK, "syntax"))
def audit(
    engine: Annotated[
        str,
        typer.Argument(
            metavar="ENGINE",
            help="llguidance, interegular, outlines, syncode, xgrammar, or a function of your own: module:function. A JSON schema's file "
            "stands for all of them that are installed and read schemas.",
        ),
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Files, folders, globs, .jsonl or .jsonl.xz files with one text per record. Of a schema: instances to begin with, if any.",
        ),
    ] = None,
    grammar: Annotated[
        str | None,
        typer.Option(
            "--grammar",
            "-g",
            metavar="GRAMMAR",
            help="The grammar of the texts, or a JSON schema, as for maskwright analyze; with --from regex a pattern, for the engine too.",
        ),
    ] = None,
    tokenizer: TokenizerOption = None,
    engine_grammar: Annotated[
        str | None,
        typer.Option(
            "--engine-grammar",
            metavar="FILE",
            help="The grammar in the engine's own language, by suffix (.lark, .json: JSON Schema, .regex, .ebnf, .gbnf); or builtin:NAME.",
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="The Python that has the engine; by default this one."),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", metavar="S", help="Seconds that the engine has for a mask; ten times as many to start."
        ),
    ] = 60.0,
    max_positions: Annotated[
        int,
        typer.Option("--max-positions", "-n", min=1, metavar="N", help="Masks to compare; drawn if there are more."),
    ] = 10_000,
    values: Annotated[
        int | None, typer.Option("--values", min=1, metavar="N", help="Of a schema: values to try, by default 2,000.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random choices.")] = 0,
    examples: Annotated[
        int,
        typer.Option("--examples", min=0, metavar="N", help="Differences of each kind that are shortened and listed."),
    ] = 10,
    suffixes: SuffixOption = None,
    field: FieldOption = "text",
    limit: LimitOption = None,
    options: GrammarOptions = DEFAULTS,
    json_file: JsonOption = None,
) -> None:
    """Compare another engine's masks with the exact ones: what does it refuse that is legal, and allow that is not?

    Of a JSON schema, whole values are compared, and each keyword that an engine gets wrong is named.
    """
    given = list(paths or ())
    with clean_errors():
        from maskwright.analysis.errors import MaskwrightError
        from maskwright.analysis.loading.names import find_source, grammar_text
        from maskwright.audit.remote import check_engine
        from maskwright.audit.run import audit as run
        from maskwright.audit.run import read_pattern
        from maskwright.cli.audit_schemas import audit_of_schema, is_schema
        from maskwright.validation.corpus import suffixes_of

        engines = _ALL if grammar is None and is_schema(engine) else (engine,)
        source = engine if grammar is None and engines is _ALL else grammar
        if engines is not _ALL:
            check_engine(engine)
        module = "" if engines is _ALL else engine.partition(":")[0].replace(".", "/") + ".py"
        check_writable(json_file, inputs=(source, tokenizer, engine_grammar, python, module or None, *given))
        if source is None:
            raise MaskwrightError(
                "name what is right: --grammar GRAMMAR, --grammar PATTERN --from regex, or a JSON schema's file in place of the engine"
            )
        syntax, own = syntax_of(source, options), cast(Any, engine_grammar)
        if syntax == "schema":
            options.refuse(OF_LARK, source, "a grammar in Lark")
            others = {"--tokenizer": tokenizer, "--engine-grammar": engine_grammar, "--limit": limit}
            for name, value in others.items():
                if value is not None:
                    raise MaskwrightError(
                        f"{name} is for a grammar; the values of a schema are read byte by byte: leave it out"
                    )
            if json_file is not None:
                check_not_texts([json_file], given, suffixes or (".json",))
            settings: dict[str, Any] = {"python": python, "timeout": timeout, "seed": seed, "examples": examples}
            if values is not None:
                settings["values"] = values
            agrees = audit_of_schema(source, engines, given, suffixes or (), settings, json_file)
            raise typer.Exit(0 if agrees else 1)
        if values is not None:
            raise MaskwrightError("--values is for a JSON schema; of a grammar there is --max-positions")
        if not given:
            raise MaskwrightError("no texts to audit on: name files, folders, globs or .jsonl files")
        assert grammar is not None
        if syntax == "regex":
            grammar, of_pattern = read_pattern(grammar)
            own, syntax, options = own or of_pattern, "lark", options._replace(syntax=None)
        if tokenizer is None:
            raise MaskwrightError("masks need a vocabulary: name the tokenizer (--tokenizer)")
        if options.lexing == "nfa":
            raise MaskwrightError("lexing 'nfa' has no exact masks to audit against: --lexing longest or contextual")
        if json_file is not None:
            check_not_texts([json_file], given, suffixes or suffixes_of(find_source(grammar).name))
        if syntax != "lark":
            raise MaskwrightError(
                f"{grammar} is neither a grammar in Lark nor a JSON schema or pattern, and only these are audited"
            )
        store = load_or_build_store(grammar, tokenizer, options)
        with progress_bars() as progress:
            report = run(
                cast(Any, store),
                given,
                engine,
                grammar_text=grammar_text(grammar),
                tokenizer=tokenizer,
                engine_grammar=own,
                python=python,
                timeout=timeout,
                suffixes=suffixes or (),
                field=field,
                limit=limit,
                max_positions=max_positions,
                seed=seed,
                examples=examples,
                progress=progress,
            )
        if write_json(json_file, report.to_dict()):
            Console().print(report)
    if not report.agrees:
        raise typer.Exit(1)
