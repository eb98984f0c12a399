"""`maskwright audit`: which tokens does another engine refuse or allow wrongly?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.cli.command import Positive, command
from maskwright.cli.common import (
    check_not_texts,
    check_writable,
    load_or_build_store,
    progress_bars,
    say,
    show,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, OF_LARK, GrammarOptions, path_or_text, syntax_of

_EPILOG = """Examples: maskwright audit llguidance --grammar json.lark --tokenizer mistral-7b-v0.1 data/ --suffix .json;
maskwright audit person.schema.json

Exit codes: 0 the engines agree; 1 they differ, or a text could not be compared; 2 usage or bad input; 130 interrupted."""

_ALL = ("llguidance", "xgrammar", "outlines")
"""Engines that read JSON schemas, which a schema's file stands for."""


@command(epilog=_EPILOG, takes=(*OF_LARK, "syntax"))
def audit(
    engine: str,
    paths: list[str] | None = None,
    *,
    grammar: str | None = None,
    tokenizer: str | None = None,
    engine_grammar: str | None = None,
    python: str | None = None,
    timeout: float = 60.0,
    max_positions: Positive = 10_000,
    values: Annotated[int | None, {"min": 1}] = None,
    seed: int = 0,
    examples: Annotated[int, {"min": 0}] = 10,
    suffixes: list[str] | None = None,
    field: str = "text",
    limit: int | None = None,
    options: GrammarOptions = DEFAULTS,
    json_file: Path | None = None,
) -> None:
    """Compare another engine's masks with the exact ones: what does it refuse that is legal, and allow that is not?

    Of a JSON schema, whole values are compared, and each keyword that an engine gets wrong is named.

    engine ENGINE : llguidance, interegular, outlines, syncode, xgrammar, or a function of your own: module:function. A JSON
        schema's file stands for all of them that are installed and read schemas.
    paths PATH... : Files, folders, globs, .jsonl or .jsonl.xz files with one text per record. Of a schema: instances to begin with,
        if any.
    grammar -g GRAMMAR : The grammar of the texts, or a JSON schema, as for maskwright analyze; with --from regex a pattern, for the
        engine too.
    engine_grammar FILE : The grammar in the engine's own language, by suffix (.lark, .json: JSON Schema, .regex, .ebnf, .gbnf); or
        builtin:NAME.
    python PATH : The Python that has the engine; by default this one.
    timeout S : Seconds that the engine has for a mask; ten times as many to start.
    max_positions -n N : Masks to compare; drawn if there are more.
    values N : Of a schema: values to try, by default 2,000.
    seed N : Seed of the random choices.
    examples N : Differences of each kind that are shortened and listed.
    """
    given = list(paths or ())
    from maskwright.analysis.loading.names import find_source, grammar_text
    from maskwright.audit.remote import check_engine
    from maskwright.audit.run import audit as run
    from maskwright.audit.run import read_pattern
    from maskwright.validation.corpus import suffixes_of

    engines = _ALL if grammar is None and _is_schema(engine) else (engine,)
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
        agrees = _audit_schema(source, engines, given, suffixes or (), settings, json_file)
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
    show(report, json_file, report.agrees)


def _is_schema(source: str) -> bool:
    """Whether what stands in the place of an engine is a JSON schema: a file, or its text."""
    is_text = source.lstrip().startswith("{")
    is_file = source.lower().endswith(".json") or os.path.isfile(source)
    return (is_text or is_file) and syntax_of(source, GrammarOptions()) == "schema"


def _audit_schema(
    source: str,
    engines: Sequence[str],
    paths: Sequence[str],
    suffixes: Sequence[str],
    settings: dict[str, Any],
    json_file: Path | None,
) -> bool:
    """Audit engines on a schema, and print or write the reports.

    source : the schema's file or text.
    engines : names; of several, those that are not installed or refuse the schema are left out with
        a message.
    paths, suffixes : instances to begin with, one a file, or records.
    settings : for `audit_schema`.
    json_file : where the reports go as JSON, a list if there are several engines.

    Returns whether all engines that could be audited agree.
    Raises: as `audit_schema`, for one engine; MaskwrightError if none of several could be audited.
    """
    from maskwright.analysis.schema.load import load_schema
    from maskwright.audit.schema_run import audit_schema

    schema = load_schema(path_or_text(source), lenient=True)
    texts = _texts(paths, suffixes)
    reports, skipped = [], []
    console = Console()
    is_shown = json_file is None or str(json_file) != "-"
    for engine in engines:
        try:
            with progress_bars() as progress:
                report = audit_schema(schema, engine, texts=texts, progress=progress, **settings)
        except MaskwrightError as error:
            # without jsonschema none of them can be audited
            is_theirs = isinstance(error, MissingExtraError) or str(error).startswith("engine ")
            if len(engines) == 1 or not is_theirs or "jsonschema is not" in str(error):
                raise
            skipped.append((engine, " ".join(str(error).split())))
            continue
        reports.append(report)
        if is_shown:
            console.print(report)
            console.print()
    if not reports:
        said = "; ".join(why for _, why in skipped)
        raise MaskwrightError(f"no engine could be audited: {said}")
    for engine, why in skipped:
        say(f"{engine}: skipped: {why}", is_error=True)
    if json_file is not None:
        found = [report.to_dict() for report in reports]
        skips = [{"engine": engine, "skipped": why} for engine, why in skipped]
        write_json(json_file, found[0] if len(engines) == 1 else {"reports": found, "skipped": skips})
    return all(report.agrees for report in reports)


def _texts(paths: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """The texts of some files, each an instance. Raises: CorpusError for one that cannot be read."""
    from maskwright.validation.corpus import CorpusError, Text, find_corpus

    if not paths:
        return []
    found = []
    for text in find_corpus(paths, tuple(suffixes) or (".json",)):
        if not isinstance(text, Text):
            raise CorpusError(f"{text.name}: {text.reason}")
        found.append(text.text)
    return found
