"""`maskwright validate`: is a store right, on one's own texts?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.common import (
    FieldOption,
    GrammarOrStoreArgument,
    JsonOption,
    LimitOption,
    NeededTokenizerOption,
    SuffixOption,
    app,
    check_not_texts,
    check_writable,
    clean_errors,
    files_of_reference,
    load_any_store,
    load_or_build_store,
    progress_bars,
    write_json,
)
from maskwright.cli.constraints import (
    DEFAULTS,
    OF_SCHEMAS,
    GrammarOptions,
    is_composition,
    is_constraint,
    path_or_text,
    syntax_of,
    takes_options,
)

_EPILOG = """Example: maskwright validate python.safetensors src/ --check replay --reference python

Exit codes: 0 passed; 1 failed, a text could not be read or judged, or none is of the grammar; 2 usage or bad input; 130 interrupted."""


@app.command(epilog=_EPILOG)
@takes_options(("restrict", "syntax", *OF_SCHEMAS))
def validate(
    store: GrammarOrStoreArgument,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Files, folders, globs, .jsonl or .jsonl.xz files with one text per record."
        ),
    ] = None,
    check: Annotated[
        Literal["replay", "sample", "streamlined", "oracle", "negative"] | None,
        typer.Option(
            "--check",
            help="replay: every true next token is allowed. sample: texts drawn under the masks and closed are accepted by the reference. "
            "streamlined: masks are those of the store before streamlining. oracle: sampled tokens are judged by an independent oracle. "
            "negative: texts are refused at the byte where they go wrong. By default replay; of a schema without texts, sample.",
        ),
    ] = None,
    tokenizer: NeededTokenizerOption = None,
    options: GrammarOptions = DEFAULTS,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="PARSER",
            help="python, python:EXECUTABLE, json, none, or a command that reads a text on standard input, or from the file {}, and ends "
            "with 0 if it takes it. By default chosen by the grammar: a Python of its version, json, or Lark.",
        ),
    ] = None,
    reference_seconds: Annotated[
        float, typer.Option("--reference-seconds", metavar="S", help="Time that the reference has for a text.")
    ] = 10.0,
    suffixes: SuffixOption = None,
    field: FieldOption = "text",
    limit: LimitOption = None,
    amount: Annotated[
        int | None,
        typer.Option(
            "--amount",
            "-n",
            min=1,
            metavar="N",
            help="The number of samples (1,000), or the least number of positions (streamlined, 300,000) or pairs (oracle, 10,000).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all random choices.")] = 0,
    budget: Annotated[
        int, typer.Option("--budget", metavar="N", min=1, help="sample: tokens drawn for each text.")
    ] = 100,
    cuts: Annotated[
        int, typer.Option("--cuts", metavar="N", min=0, help="sample: cut-offs of each text that are closed too.")
    ] = 4,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M",
            help="sample: what draws the tokens: python-tiny, a model's folder or its name on the hub.",
        ),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Of a schema: each line of the files is an instance, not each file.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, instead of processes here.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="FILE", help="A log of results: what it holds is not done again; new results are added."
        ),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Check a store against texts: are its masks right?

    Of a schema, instances are replayed, and instances drawn under the masks are judged by the package jsonschema.
    """
    with clean_errors():
        from maskwright.analysis.loading.names import find_source
        from maskwright.validation.corpus import check_paths, suffixes_of
        from maskwright.validation.references import make_reference
        from maskwright.validation.run import validate as run

        outputs, texts = (json_file, resume), tuple(paths or ())
        check_writable(*outputs, inputs=(store, tokenizer, *texts, *files_of_reference(reference)), model=model)
        check_paths(texts)
        composed = is_composition(store, options)
        in_lark = is_constraint(store, options) and syntax_of(store, options) == "lark" and not composed
        loaded = None if in_lark else load_any_store(store, tokenizer, options)
        if check is None:
            check = "sample" if getattr(loaded, "engine", "") == "schema" and not paths else "replay"
        if model is not None and check != "sample":
            raise MaskwrightError(f"a model draws samples (--check sample); --check {check} has no use for one")
        if not paths and check != "sample":
            raise MaskwrightError("no texts to validate on: name files, folders, globs or .jsonl files")
        if reference not in (None, "jsonschema") and check in ("replay", "sample"):
            made = make_reference(reference, reference_seconds)
            if made is not None:
                made.close()
        if loaded is None:
            check_not_texts(outputs, texts, suffixes or suffixes_of(find_source(path_or_text(store)).name))
            loaded = load_or_build_store(store, tokenizer, options)
        else:
            of_schema = (".json", ".jsonl", ".ndjson")
            own = of_schema if loaded.engine == "schema" else () if composed else suffixes_of(loaded.name)
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
            Console(stderr=True, soft_wrap=True).print(f"interrupted; {kept}", markup=False, highlight=False)
            raise typer.Exit(130) from None
        if write_json(json_file, report.to_dict()):
            Console().print(report)
    if not report.passed:
        raise typer.Exit(1)


def _next_token(store: Any, name: str, seed: int) -> Any:
    """What draws the tokens of samples: a model, which must be of the store's tokenizer."""
    from maskwright.completion import ModelDraw, check_model, load_model

    model = load_model(name)
    check_model(store, model)
    return ModelDraw(model, seed=seed)
