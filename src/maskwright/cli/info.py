"""`maskwright info`: what a store file holds."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from maskwright.cli.common import (
    GrammarOrStoreArgument,
    JsonOption,
    NeededTokenizerOption,
    RefreshOption,
    RulesOption,
    app,
    check_writable,
    clean_errors,
    load_or_build_store,
    progress_bars,
    seconds_since,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, load_any, may_be_composition, takes_options

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition


@app.command(epilog="Example: maskwright info python.safetensors")
@takes_options()
def info(
    store: GrammarOrStoreArgument,
    tokenizer: NeededTokenizerOption = None,
    options: GrammarOptions = DEFAULTS,
    rules: RulesOption = "normalised",
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """What a store file holds, checked as on loading; of a composition, host and parts."""
    with clean_errors():
        from maskwright.analysis.composition import Composition
        from maskwright.analysis.schema.text_patterns import Regex
        from maskwright.maskstore.file.fileformat import save_store, store_info
        from maskwright.report.schema_report import index_facts
        from maskwright.report.store_facts import render_store_facts

        check_writable(json_file, inputs=(store, tokenizer))
        begin = time.process_time()
        if tokenizer is not None and may_be_composition(store, options):
            given = load_any(store, options)
            if isinstance(given, Composition):
                _of_composition(given, tokenizer, json_file)
                return
        loaded = load_or_build_store(store, tokenizer, options, rules, refresh)
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
        if write_json(json_file, facts):
            Console().print(render_store_facts(facts))


def _of_composition(composition: Composition, tokenizer: str, json_file: Path | None) -> None:
    """Report what a composition's stores are made of."""
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.report.composition_report import analyze_composition

    with progress_bars() as progress:
        report = analyze_composition(composition, load_vocabulary(tokenizer), progress)
    if write_json(json_file, report.to_dict()):
        Console().print(report)
