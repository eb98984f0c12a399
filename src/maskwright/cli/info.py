"""`maskwright info`: what a store file holds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from maskwright.cli.common import (
    ConflictsOption,
    JsonOption,
    LexingOption,
    RefreshOption,
    ReservedOption,
    RestrictOption,
    RulesOption,
    SoftOption,
    StartOption,
    TokenizerOption,
    app,
    check_writable,
    clean_errors,
    load_or_build_store,
    seconds_since,
    write_json,
)
from maskwright.cli.constraints import (
    FromOption,
    GrammarOptions,
    KeyOrderOption,
    LenientOption,
    WhitespaceOption,
)


@app.command(epilog="Example: maskwright info python.safetensors")
def info(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A store file; or a grammar, with --tokenizer.")],
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = None,
    reserved: ReservedOption = None,
    conflicts: ConflictsOption = None,
    soft: SoftOption = None,
    restrict: RestrictOption = None,
    syntax: FromOption = None,
    whitespace: WhitespaceOption = None,
    key_order: KeyOrderOption = None,
    lenient: LenientOption = False,
    rules: RulesOption = "normalised",
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """What a store file holds, checked as on loading."""
    with clean_errors():
        from maskwright.analysis.schema.text_patterns import Regex
        from maskwright.maskstore.file.fileformat import save_store, store_info
        from maskwright.report.index_report import index_facts
        from maskwright.report.store_facts import render_store_facts

        check_writable(json_file, inputs=(store, tokenizer))
        begin = time.process_time()
        loaded = load_or_build_store(
            store,
            tokenizer,
            GrammarOptions(start, lexing, reserved, conflicts, soft, restrict, syntax, whitespace, key_order, lenient),
            rules,
            refresh,
        )
        seconds = seconds_since(begin)
        if tokenizer is None:
            facts = store_info(store)
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "store.safetensors"
                save_store(loaded, path)
                facts = store_info(path)
        facts["cpu_seconds"] = seconds
        constraint = getattr(loaded, "constraint", None)
        if isinstance(constraint, Regex):
            facts["index"] = index_facts(constraint, loaded.vocabulary)
        if json_file is not None:
            write_json(json_file, facts)
        if json_file is None or str(json_file) != "-":
            Console().print(render_store_facts(facts))
