"""`maskwright verify`: are all masks of a store right, behind every text?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maskwright.cli.command import NeededTokenizer, command
from maskwright.cli.common import check_writable, load_or_build_store, progress_bars, show
from maskwright.cli.constraints import DEFAULTS, OF_LARK, GrammarOptions

_EPILOG = """Example: maskwright verify python.safetensors

Exit codes: 0 every mask is right; 1 some is not, or the grammar's LALR tables are wrong; 2 usage, bad input,
a file that is not what its grammar gives, or nothing was decided;
130 interrupted."""


@command(epilog=_EPILOG, takes=(*OF_LARK, "syntax"))
def verify(
    store: str,
    *,
    tokenizer: NeededTokenizer = None,
    options: GrammarOptions = DEFAULTS,
    refresh: bool = False,
    grammar: str | None = None,
    seconds: float | None = None,
    json_file: Path | None = None,
) -> None:
    """Check all of a store's automaton against its parser and lexer, by code that shares nothing with the builder.

    Every look-up, edge and mask is checked, and that the LALR tables accept the texts of the grammar and no others (where that can be
    told), so that no text has to be tried. Takes seconds; for large grammars minutes. Grammar
    and vocabulary are those in the store, by the names that it gives them: that the grammar is the one you expect, --grammar checks.

    grammar G : The grammar that the store must be of; the options for grammars are of it. By default the store's own is believed.
    seconds S : Give up after this time, that of building not counted; by default never.
    """
    from maskwright.verification import verify as run

    check_writable(json_file, inputs=(store, tokenizer, grammar))
    given = None if grammar is None else options.load(grammar)
    is_file = tokenizer is None and given is not None
    loaded: Any = load_or_build_store(store, tokenizer, GrammarOptions() if is_file else options, refresh=refresh)
    if tokenizer is not None and given is None:
        given = getattr(loaded, "grammar", None)  # it has been built from the very grammar that was named
    with progress_bars() as progress:
        report = run(loaded, grammar=given, seconds=seconds, progress=progress)
    show(report, json_file, report.passed)
