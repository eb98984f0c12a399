"""`maskwright validate`: is a store right, on one's own texts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.command import NeededTokenizer, Positive, command
from maskwright.cli.common import (
    check_not_texts,
    check_reference,
    check_writable,
    files_of_reference,
    load_any_store,
    load_or_build_store,
    progress_bars,
    say,
    show,
)
from maskwright.cli.constraints import (
    DEFAULTS,
    OF_SCHEMAS,
    GrammarOptions,
    is_composition,
    is_constraint,
    path_or_text,
    syntax_of,
)

_EPILOG = """Example: maskwright validate python.safetensors src/ --check replay --reference python

Exit codes: 0 passed; 1 failed, a text could not be read or judged, or none is of the grammar; 2 usage or bad input; 130 interrupted."""


@command(epilog=_EPILOG, takes=("restrict", "syntax", *OF_SCHEMAS))
def validate(
    store: str,
    paths: list[str] | None = None,
    *,
    check: Literal["replay", "sample", "streamlined", "oracle", "negative"] | None = None,
    tokenizer: NeededTokenizer = None,
    options: GrammarOptions = DEFAULTS,
    reference: str | None = None,
    reference_seconds: float = 10.0,
    suffixes: list[str] | None = None,
    field: str = "text",
    limit: int | None = None,
    amount: Annotated[int | None, {"min": 1}] = None,
    seed: int = 0,
    budget: Positive = 100,
    cuts: Annotated[int, {"min": 0}] = 4,
    model: str | None = None,
    jsonl: bool = False,
    jobs: Positive = 1,
    scheduler: str | None = None,
    resume: Path | None = None,
    json_file: Path | None = None,
) -> None:
    """Check a store against texts: are its masks right?

    Of a schema, instances are replayed, and instances drawn under the masks are judged by the package jsonschema.

    paths PATH... : Files, folders, globs, .jsonl or .jsonl.xz files with one text per record.
    check : replay: every true next token is allowed. sample: texts drawn under the masks and closed are accepted by the reference.
        streamlined: masks are those of the store before streamlining. oracle: sampled tokens are judged by an independent oracle.
        negative: texts are refused at the byte where they go wrong. By default replay; of a schema without texts, sample.
    reference PARSER : python, python:EXECUTABLE, json, none, or a command that reads a text on standard input, or from the file {},
        and ends with 0 if it takes it. By default chosen by the grammar: a Python of its version, json, or Lark.
    reference_seconds S : Time that the reference has for a text.
    amount -n N : The number of samples (1,000), or the least number of positions (streamlined, 300,000) or pairs (oracle, 10,000).
    seed N : Seed of all random choices.
    budget N : sample: tokens drawn for each text.
    cuts N : sample: cut-offs of each text that are closed too.
    model M : sample: what draws the tokens: python-tiny, a model's folder or its name on the hub.
    jsonl : Of a schema: each line of the files is an instance, not each file.
    jobs -j N : Processes.
    scheduler ADDRESS : A Dask scheduler, instead of processes here.
    resume FILE : A log of results: what it holds is not done again; new results are added.
    """
    from maskwright.analysis.loading.names import find_source
    from maskwright.validation.corpus import check_paths, suffixes_of
    from maskwright.validation.run import validate as run

    outputs, texts = (json_file, resume), tuple(paths or ())
    check_writable(*outputs, inputs=(store, tokenizer, *texts, *files_of_reference(reference)), model=model)
    check_paths(texts)
    in_lark = (
        is_constraint(store, options) and syntax_of(store, options) == "lark" and not is_composition(store, options)
    )
    loaded = None if in_lark else load_any_store(store, tokenizer, options)
    engine = getattr(loaded, "engine", "")
    of_schema = engine == "schema"
    if check is None:
        check = "sample" if of_schema and not paths else "replay"
    if model is not None and check != "sample":
        raise MaskwrightError(f"a model draws samples (--check sample); --check {check} has no use for one")
    if not paths and check != "sample":
        raise MaskwrightError("no texts to validate on: name files, folders, globs or .jsonl files")
    if reference not in (None, "jsonschema") and check in ("replay", "sample"):
        check_reference(reference, reference_seconds)
    if loaded is None:
        check_not_texts(outputs, texts, suffixes or suffixes_of(find_source(path_or_text(store)).name))
        loaded = load_or_build_store(store, tokenizer, options)
    else:
        known = {"schema": (".json", ".jsonl", ".ndjson"), "composition": ()}
        own = known[engine] if engine in known else suffixes_of(loaded.grammar.name)
        check_not_texts(outputs, texts, suffixes or own)
    next_token = None if model is None else _next_token(loaded, model, seed)
    try:
        with progress_bars() as progress:
            report = run(
                loaded,
                paths or [],
                check=check,
                tokenizer=tokenizer,
                reference=reference,
                reference_seconds=reference_seconds,
                suffixes=suffixes or (),
                field=field,
                limit=limit,
                amount=amount,
                seed=seed,
                budget=budget,
                cuts=cuts,
                next_token=next_token,
                jobs=jobs,
                scheduler=scheduler,
                resume=resume,
                progress=progress,
                jsonl=jsonl,
            )
    except KeyboardInterrupt:
        kept = "nothing was kept (use --resume FILE)" if resume is None else f"what was done is kept in {resume}"
        say(f"interrupted; {kept}", is_error=True)
        raise typer.Exit(130) from None
    show(report, json_file, report.passed)


def _next_token(store: Any, name: str, seed: int) -> Any:
    """What draws the tokens of samples: a model, which must be of the store's tokenizer."""
    from maskwright.completion import ModelDraw, check_model, load_model

    model = load_model(name)
    check_model(store, model)
    return ModelDraw(model, seed=seed)
