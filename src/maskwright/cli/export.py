"""`maskwright export`: build a store and write it to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.common import (
    GrammarArgument,
    JsonOption,
    NeededTokenizerOption,
    RefreshOption,
    RulesOption,
    app,
    check_writable,
    clean_errors,
    load_inputs,
    load_or_build_store,
    progress_bars,
    seconds_since,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, takes_options

if TYPE_CHECKING:
    from maskwright.stores.store import AnyStore


@app.command(epilog="Example: maskwright export lark:python --tokenizer mistral-7b-v0.1 -o python.safetensors")
@takes_options()
def export(
    grammar: GrammarArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The store's file.")],
    tokenizer: NeededTokenizerOption = None,
    options: GrammarOptions = DEFAULTS,
    rules: RulesOption = "normalised",
    original: Annotated[
        bool, typer.Option("--original", help="Lexing nfa: keep every entry, no streamlining, for comparison.")
    ] = False,
    context: Annotated[
        int, typer.Option(min=1, max=2, metavar="N", help="Lexing nfa: keep entries by the last N terminals, 1 or 2.")
    ] = 1,
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """Build a store and write it to a file."""
    with clean_errors():
        begin = time.process_time()
        from maskwright.maskstore.file.fileformat import save_store, store_info
        from maskwright.stores.build import build_store

        if str(output) == "-":
            raise MaskwrightError("a store is not written to standard output; name a file")
        check_writable(output, json_file, inputs=(grammar, tokenizer))
        if tokenizer is None:
            raise MaskwrightError("a mask store is for one tokenizer: name it (--tokenizer)")
        if original or context != 1:
            loaded, vocabulary = load_inputs(grammar, tokenizer, options)
            assert vocabulary is not None
            given: Any = loaded
            with progress_bars() as progress:
                store: AnyStore = build_store(
                    given, vocabulary, streamlined=not original, rules=rules, context=context, progress=progress
                )
        else:
            store = load_or_build_store(grammar, tokenizer, options, rules, refresh)
        save_store(store, output)
        facts = {**store_info(output), "cpu_seconds": seconds_since(begin)}
        if write_json(json_file, facts):
            Console().print(
                f"wrote {output}: {store!r}, in {facts['cpu_seconds']:.1f} s of processor time",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
