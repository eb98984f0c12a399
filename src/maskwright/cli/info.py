"""`maskwright info`: what a store file holds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from maskwright.cli.command import NeededTokenizer, Rules, command
from maskwright.cli.common import (
    build_or_find,
    check_writable,
    load_or_build_store,
    progress_bars,
    show,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions


@command(epilog="Example: maskwright info python.safetensors")
def info(
    store: str,
    *,
    tokenizer: NeededTokenizer = None,
    options: GrammarOptions = DEFAULTS,
    rules: Rules = "normalised",
    refresh: bool = False,
    json_file: Path | None = None,
) -> None:
    """What a store file holds, checked as on loading; of a composition, host and parts."""
    from maskwright.analysis.composition import Composition
    from maskwright.analysis.schema.text_patterns import Regex
    from maskwright.maskstore.file.fileformat import save_store, store_info
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.report.constraint_report import analyze_constraint, index_facts, render_store_facts

    check_writable(json_file, inputs=(store, tokenizer))
    begin = time.process_time()
    if tokenizer is None:
        loaded: Any = load_or_build_store(store, None, options)
    else:
        given = options.read(store)
        if isinstance(given, Composition):
            with progress_bars() as progress:
                report = analyze_constraint(given, load_vocabulary(tokenizer), progress)
            show(report, json_file)
            return
        loaded = build_or_find(given, tokenizer, rules, refresh)
    seconds = round(time.process_time() - begin, 3)
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
    if write_json(json_file, facts):
        Console().print(render_store_facts(facts))
