"""`maskwright export`: build a store and write it to a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from maskwright.analysis.errors import MaskwrightError
from maskwright.cli.command import NeededTokenizer, Rules, command
from maskwright.cli.common import (
    build_or_find,
    check_writable,
    progress_bars,
    say,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions

if TYPE_CHECKING:
    from maskwright.stores.store import AnyStore


@command(epilog="Example: maskwright export lark:python --tokenizer mistral-7b-v0.1 -o python.safetensors")
def export(
    grammar: str,
    *,
    output: Path,
    tokenizer: NeededTokenizer = None,
    options: GrammarOptions = DEFAULTS,
    rules: Rules = "normalised",
    original: bool = False,
    context: Annotated[int, {"min": 1, "max": 2}] = 1,
    refresh: bool = False,
    json_file: Path | None = None,
) -> None:
    """Build a store and write it to a file.

    output -o FILE : The store's file.
    original : Lexing nfa: keep every entry, no streamlining, for comparison.
    context N : Lexing nfa: keep entries by the last N terminals, 1 or 2.
    """
    begin = time.process_time()
    from maskwright.maskstore.file.fileformat import save_store, store_info
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.stores.build import build_store

    if str(output) == "-":
        raise MaskwrightError("a store is not written to standard output; name a file")
    check_writable(output, json_file, inputs=(grammar, tokenizer))
    if tokenizer is None:
        raise MaskwrightError("a mask store is for one tokenizer: name it (--tokenizer)")
    if original or context != 1:
        given: Any = options.load_constraint(grammar)
        vocabulary = load_vocabulary(tokenizer)
        with progress_bars() as progress:
            store: AnyStore = build_store(
                given, vocabulary, streamlined=not original, rules=rules, context=context, progress=progress
            )
    else:
        store = build_or_find(options.read(grammar), tokenizer, rules, refresh)
    save_store(store, output)
    facts = {**store_info(output), "cpu_seconds": round(time.process_time() - begin, 3)}
    if write_json(json_file, facts):
        say(f"wrote {output}: {store!r}, in {facts['cpu_seconds']:.1f} s of processor time")
