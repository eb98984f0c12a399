"""`mw.verify`: are a store's masks right, at every place of every text?

In: a store. Out: a `VerificationReport`. What is checked, and what is taken as right, says
docs/verify.md. The work is done by `maskstore/verify/`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import need_number, need_path, need_progress
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.lookaheads import lookaheads
from maskwright.analysis.lr.merging import has_conflicts
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.table.anew import check_made_anew
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.verify import MOST_FOUND, Difference, verify_table
from maskwright.maskstore.verify.tables import Certificate
from maskwright.maskstore.verify.verification import NOT_ASKED
from maskwright.stores.store import Store, load_store

TOO_LARGE = "the full LR tables are too large"

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

SHOWN = 5
"""Most differences that are shown in a terminal, and most tokens of each."""


@dataclass(frozen=True)
class VerificationReport:
    """The result of `maskwright.verify`.

    grammar, vocabulary : their names.
    differences : none if the automaton is right. At most MOST_FOUND: then the search ends.
    faults : what makes the LALR tables accept what the grammar does not derive, or refuse what it
        derives, in words.
    has_checked_tables : False where the full LR tables, which the check starts from, are too large:
        then nothing is known of `faults`.
    not_shown : why it was not shown that the LALR tables accept all that the grammar derives, in
        words; "" if it was. For many grammars with conflicts it cannot be shown.
    tokens : the bytes of each token in `differences`, by id.
    counts : what was checked, by name.
    seconds : wall time.
    """

    grammar: str
    vocabulary: str
    differences: tuple[Difference, ...]
    tokens: Mapping[int, bytes]
    counts: Mapping[str, int]
    seconds: float
    faults: tuple[str, ...] = ()
    has_checked_tables: bool = True
    not_shown: str = NOT_ASKED

    @property
    def passed(self) -> bool:
        """Whether every mask is right, and no fault was found in the LALR tables.

        See `has_checked_tables`.
        """
        return not self.differences and not self.faults

    def described(self, difference: Difference) -> str:
        """A difference in words."""
        shown = [repr(self.tokens[token])[1:] for token in difference.tokens[:SHOWN]]
        more = len(difference.tokens) - len(shown)
        tokens = " ".join(shown) + (f" and {more:,} more" if more else "")
        what = "allows what the parser refuses" if difference.is_allowed else "lacks what the parser accepts"
        early = ", decided before the stack decides" if difference.is_early else ""
        breaks = ""
        if difference.line_breaks:
            moves = ", ".join(str(tuple(move)) for _, move in difference.line_breaks)
            breaks = f", behind line breaks {moves}"
        depth = f", {difference.depth} brackets open" if difference.depth else ""
        return (
            f"the mask {what}: {tokens}{early}; lexer state {difference.lexer_state}{depth}{breaks}, node {difference.node}, stack from "
            f"the top {' '.join(difference.cells)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The report, JSON-ready."""
        return {
            "passed": self.passed,
            "store": {"grammar": self.grammar, "vocabulary": self.vocabulary},
            "counts": dict(self.counts),
            "differences": [
                {
                    "kind": "allows" if each.is_allowed else "lacks",
                    "early": each.is_early,
                    "lexer_state": each.lexer_state,
                    "depth": each.depth,
                    "line_breaks": [[list(symbols), list(move)] for symbols, move in each.line_breaks],
                    "node": each.node,
                    "cells": list(each.cells),
                    "tokens": list(each.tokens),
                    "says": self.described(each),
                }
                for each in self.differences
            ],
            "faults": list(self.faults),
            "has_checked_tables": self.has_checked_tables,
            "not_shown": self.not_shown,
            "seconds": round(self.seconds, 3),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_row("store", Text(f"{self.grammar} x {self.vocabulary}"))
        for name, count in self.counts.items():
            table.add_row(name, f"{count:,}")
        table.add_row("wall time", f"{self.seconds:.1f} s")
        yield table
        for each in self.differences[:SHOWN]:
            yield Text(f"\n{self.described(each)}", style="red")
        if len(self.differences) > SHOWN:
            yield Text(f"  and {len(self.differences) - SHOWN:,} more: --json has them all", style="dim")
        for fault in self.faults[:SHOWN]:
            yield Text(f"\nLALR tables: {fault}", style="red")
        number = f"{len(self.differences):,}" + " or more" * (len(self.differences) == MOST_FOUND)
        failures = ["wrong LALR tables"] * bool(self.faults) + [f"{number} differences"] * bool(self.differences)
        if not self.has_checked_tables:
            yield Text(f"\nLALR tables: not checked, since {TOO_LARGE}", style="yellow")
        elif self.not_shown and not self.faults:
            yield Text(
                f"\nLALR tables: not shown to accept every text of the grammar: {self.not_shown}", style="yellow"
            )
        elif not self.faults:
            yield Text("\nLALR tables: accept the texts of the grammar and no others")
        verdict = "passed" if self.passed else f"FAILED: {', '.join(failures)}"
        yield Text(f"\nverify: {verdict}", style="bold green" if self.passed else "bold red")


def verify(
    store: Store | str | os.PathLike[str], *, seconds: float | None = None, progress: Progress | None = None
) -> VerificationReport:
    """Check every look-up, edge and mask of a store's automaton against its parser and lexer.

    The walk over the automaton shares no code with its builder. If it passes, the mask is right
    behind every text: it has exactly the tokens that the parser and the lexer of the store accept
    (`masks_exact` of proofs/partial_stacks.v). The builder makes parser and lexer anew from the grammar, and they
    are compared. What the parser accepts is a word of the grammar, where `has_checked_tables` says
    so, and it accepts every word, where `not_shown` is "" (proofs/tables.v). That the lexer is the
    grammar's is taken as right here; `maskwright validate` checks it on texts. Grammar and
    vocabulary are those of the store: of a stranger's file, `load_store` must be told yours.

    store : a store of a grammar with lexing "longest" or "contextual", or its file.
    seconds : the time after which it is given up, without that of loading and closing the store,
        and of making its parser, its lexer and the full LR tables; None for no limit.
    progress : called with the name of a step, how much is done, and how much there is.

    Raises: MaskwrightError for a store without a closed automaton: of a schema, a pattern, a
        composition, lexing "nfa", or over its budget; StoreError for a table that no engine may
        read, or whose parser or lexer is not the grammar's; LimitError if the time is over, or
        nothing was decided.
    """
    need_progress(progress)
    if seconds is not None:
        need_number("seconds", seconds)
        if not seconds > 0:
            raise MaskwrightError(f"seconds is {seconds!r}, expected a number above 0, or None")
    if not isinstance(store, Store) and isinstance(store, str | os.PathLike):
        need_path("store", store)
        loaded: Any = load_store(store)
    else:
        loaded = store
    if not isinstance(loaded, Store):
        raise MaskwrightError(
            f"{type(loaded).__name__} has no stack automaton to verify: only stores of grammars with lexing 'longest' or 'contextual' "
            "have one; maskwright validate checks others on texts"
        )
    loaded.close(progress)
    grammar, vocabulary = loaded.grammar, loaded.vocabulary
    name = f"{grammar.name} x {vocabulary.name}"
    if not loaded.is_closed:
        raise MaskwrightError(
            f"the automaton of {name} is open, since it went over its budget: its masks ask the parser, and there are no edges to verify"
        )
    begin = time.perf_counter()
    check_made_anew(name, grammar, loaded.table)
    certificate = certificate_of(grammar)
    found = verify_table(name, grammar, vocabulary, loaded.table, progress, seconds, certificate)
    tokens = {token: vocabulary.tokens[token] for each in found.differences for token in each.tokens}
    return VerificationReport(
        grammar.name,
        vocabulary.name,
        found.differences,
        tokens,
        found.counts,
        time.perf_counter() - begin,
        found.faults,
        certificate is not None,
        TOO_LARGE if certificate is None else found.not_shown,
    )


def certificate_of(grammar: Grammar) -> Certificate | None:
    """What the builder says of a grammar's LALR tables; None if the full tables are too large."""
    rules = parsed_grammar(grammar, grammar.conflicts)
    try:
        tables = build_lr_tables(rules, grammar.conflicts)
        automaton = build_automaton(rules)
    except LimitError:
        return None
    columns = tuple(coarsest_partition(tables).nonterminals.tolist())
    return Certificate(rules, columns, has_conflicts(automaton, lookaheads(automaton)))
