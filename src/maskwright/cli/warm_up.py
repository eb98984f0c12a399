"""`maskwright warm-up`: put stores into the cache before they are needed."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.common import (
    ConflictsOption,
    JsonOption,
    LexingOption,
    ReservedOption,
    RestrictOption,
    SoftOption,
    StartOption,
    app,
    check_writable,
    clean_errors,
    progress_bars,
    seconds_since,
    write_json,
)
from maskwright.cli.constraints import GrammarOptions


@app.command(
    "warm-up",
    epilog="Example: MASKWRIGHT_CACHE=/opt/masks maskwright warm-up json python --tokenizer tokenizer.json --readable",
)
def warm_up(
    grammars: Annotated[list[str], typer.Argument(metavar="GRAMMAR...", help="Names, .lark files, or lark:NAME.")],
    tokenizers: Annotated[
        list[str] | None,
        typer.Option("--tokenizer", "-t", metavar="T", help="A tokenizer; may be given several times."),
    ] = None,
    start: StartOption = None,
    lexing: LexingOption = None,
    reserved: ReservedOption = None,
    conflicts: ConflictsOption = None,
    soft: SoftOption = None,
    restrict: RestrictOption = None,
    readable: Annotated[
        bool, typer.Option("--readable", help="Let all users read the cache: for an image that others run.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Put stores into the cache before they are needed, as when an image is built.

    The environment variable MASKWRIGHT_CACHE names the cache folder.
    """
    with clean_errors():
        from maskwright.maskstore.vocabulary import load_vocabulary
        from maskwright.stores.cache import warm_cache

        check_writable(json_file, inputs=(*grammars, *(tokenizers or ())))
        if not tokenizers:
            raise MaskwrightError("a mask store is for one tokenizer: name at least one (--tokenizer)")
        options = GrammarOptions(start, lexing, reserved, conflicts, soft, restrict)
        loaded = [options.load(grammar) for grammar in grammars]
        rows: list[dict[str, Any]] = []
        for tokenizer in tokenizers:
            vocabulary = load_vocabulary(tokenizer)
            for grammar in loaded:
                begin = time.process_time()
                with progress_bars() as progress:
                    path = warm_cache(grammar, vocabulary, progress=progress, readable=readable)
                facts = {"grammar": grammar.name, "tokenizer": vocabulary.name, "path": str(path)}
                rows.append({**facts, "bytes": path.stat().st_size, "cpu_seconds": seconds_since(begin)})
                if json_file is None or str(json_file) != "-":
                    Console().print(
                        f"{grammar.name} x {vocabulary.name}: {rows[-1]['bytes'] / 1e6:.1f} MB, in {rows[-1]['cpu_seconds']:.1f} s of "
                        f"processor time: {path}",
                        highlight=False,
                        markup=False,
                        soft_wrap=True,
                    )
        if json_file is not None:
            write_json(json_file, {"stores": rows})
