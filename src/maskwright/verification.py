"""`mw.verify`: are a store's masks right, at every place of every text?

In: a store. Out: a `VerificationReport`. What is checked, and what is taken as right, says
docs/verify.md. The work is done by `maskstore/verify/`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import clip, need_number, need_progress
from maskwright.analysis.errors import LimitError, MaskwrightError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.lookaheads import has_conflicts, lookaheads
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore.table.build import check_made_anew
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.verify import MOST_FOUND, Difference, verify_table
from maskwright.maskstore.verify.tables import Certificate
from maskwright.maskstore.verify.verification import NOT_ASKED
from maskwright.report.parts import table
from maskwright.stores.store import Store, as_store

_FIRST_COMPARED = ("rules", "terminals", "nonterminals", "start", "lexing", "conflicts", "layout", "ignored")
"""Parts of a grammar that are compared before the others: those that change masks."""

TOO_LARGE = "the full LR tables are too large"

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

SHOWN = 5
"""Most differences that are shown in a terminal, and most tokens of each."""


@dataclass(frozen=True)
class VerificationReport:
    """The result of `maskwright.verify`.

    grammar, vocabulary : their names, as the store has them.
    grammar_sha256 : the digest of the store's grammar, its name and text included.
    is_given_grammar : whether it was compared with a grammar that the caller gave. If not, the name
        and the text are what the file says.
    differences : none if the automaton is right. At most MOST_FOUND: then the search ends.
    faults : what makes the LALR tables accept what the grammar does not derive, refuse what it
        derives, or read what begins no text of the grammar, in words.
    has_checked_tables : False where the full LR tables, which the check starts from, are too large:
        then nothing is known of `faults`.
    not_shown : why it was not shown that the LALR tables accept all that the grammar derives, in
        words; "" if it was. For many grammars with conflicts it cannot be shown.
    dead_ends_not_shown : why it was not shown that what the parser reads begins a text of the
        grammar, in words; "" if it was. Where conflicts are decided it is not asked.
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
    dead_ends_not_shown: str = NOT_ASKED
    grammar_sha256: str = ""
    is_given_grammar: bool = False

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
            "grammar_sha256": self.grammar_sha256,
            "is_given_grammar": self.is_given_grammar,
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
            "dead_ends_not_shown": self.dead_ends_not_shown,
            "seconds": round(self.seconds, 3),
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        whose = "the one that was named" if self.is_given_grammar else "named so by the store; see --grammar"
        rows = {
            "store": f"{self.grammar} x {self.vocabulary}",
            "grammar": f"{self.grammar}, sha256 {self.grammar_sha256[:16]}: {whose}",
            **{name: f"{count:,}" for name, count in self.counts.items()},
            "wall time": f"{self.seconds:.1f} s",
        }
        yield table("", "", rows=rows.items())
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
        if self.has_checked_tables and not self.faults:
            if self.dead_ends_not_shown:
                yield Text(f"\ndead ends: not shown that there are none: {self.dead_ends_not_shown}", style="yellow")
            else:
                yield Text("\ndead ends: none, all that the parser reads begins a text of the grammar")
        verdict = "passed" if self.passed else f"FAILED: {', '.join(failures)}"
        yield Text(f"\nverify: {verdict}", style="bold green" if self.passed else "bold red")


@on_own_stack
def verify(
    store: Store | str | os.PathLike[str],
    *,
    grammar: GrammarSource | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> VerificationReport:
    """Check every look-up, edge and mask of a store's automaton against its parser and lexer.

    The walk over the automaton shares no code with its builder. If it passes, the mask is right
    behind every text: it has exactly the tokens that the parser and the lexer of the store accept
    (`masks_exact` of proofs/partial_stacks.v). The builder makes parser and lexer anew from the
    grammar, and they are compared. What the parser accepts is a word of the grammar, where
    `has_checked_tables` says so, and it accepts every word, where `not_shown` is ""
    (proofs/tables.v); what it reads begins a word, where `dead_ends_not_shown` is ""
    (proofs/viable.v). That the lexer is the grammar's is taken as right here; `maskwright validate`
    checks it on texts. Grammar and vocabulary are those of the store: of a stranger's file, give
    the grammar that you expect, and your vocabulary to `load_store`.

    store : a store of a grammar with lexing "longest" or "contextual", or its file.
    grammar : a grammar, or what `load_grammar` takes, that the store must be of; None if its own is
        believed, name and text included.
    seconds : the time after which it is given up, without that of loading and closing the store,
        and of making its parser, its lexer and the full LR tables; None for no limit.
    progress : called with the name of a step, how much is done, and how much there is.

    Raises: MaskwrightError for a store without a closed automaton: of a schema, a pattern, a
        composition, lexing "nfa", or over its budget; StoreError for a table that no engine may
        read, or whose parser or lexer is not the grammar's, or which is not of the given grammar,
        naming what differs; LimitError if the time is over, or
        nothing was decided.
    """
    need_progress(progress)
    if seconds is not None:
        need_number("seconds", seconds)
        if not seconds > 0:
            raise MaskwrightError(f"seconds is {seconds!r}, expected a number above 0, or None")
    loaded: Any = as_store(store)
    if getattr(loaded, "engine", "") != "grammar":
        raise MaskwrightError(
            f"{type(loaded).__name__} has no stack automaton to verify: only stores of grammars with lexing 'longest' or 'contextual' "
            "have one; maskwright validate checks others on texts"
        )
    own, vocabulary = loaded.grammar, loaded.vocabulary
    name = f"{own.name} x {vocabulary.name}"
    if grammar is not None:
        check_is_of(name, own, as_grammar(grammar))
    loaded.close(progress)
    if not loaded.is_closed:
        raise MaskwrightError(
            f"the automaton of {name} is open, since it went over its budget: its masks ask the parser, and there are no edges to verify"
        )
    begin = time.perf_counter()
    check_made_anew(name, own, loaded.table)
    certificate = certificate_of(own)
    found = verify_table(name, own, vocabulary, loaded.table, progress, seconds, certificate)
    tokens = {token: vocabulary.tokens[token] for each in found.differences for token in each.tokens}
    return VerificationReport(
        own.name,
        vocabulary.name,
        found.differences,
        tokens,
        found.counts,
        time.perf_counter() - begin,
        found.faults,
        certificate is not None,
        TOO_LARGE if certificate is None else found.not_shown,
        TOO_LARGE if certificate is None else found.dead_ends_not_shown,
        own.digest,
        grammar is not None,
    )


def check_is_of(where: str, own: Grammar, given: Grammar) -> None:
    """Refuse a store whose grammar is not the given one, in any part, name and text included.

    where : the store, as errors name it. own : its grammar.

    Raises: StoreError naming the first part that differs.
    """
    if own.digest == given.digest:
        return
    of_store, expected = own.to_dict(), given.to_dict()
    names = dict.fromkeys((*_FIRST_COMPARED, *of_store, *expected))
    part, *parts = [name for name in names if of_store.get(name) != expected.get(name)]
    one, other, at, nothing = of_store.get(part), expected.get(part), "", None
    if part == "text":
        one, other, nothing = own.text.splitlines(keepends=True), given.text.splitlines(keepends=True), ""
    if isinstance(one, list) and isinstance(other, list):
        pairs = enumerate(zip_longest(one, other, fillvalue=nothing))
        number, (one, other) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        at = f" in line {number + 1}" if part == "text" else f" at {number}"
    more = f"; also in {', '.join(parts)}" if parts else ", and in nothing else"
    raise StoreError(
        f"{where} is not of the grammar {clip(given.name)} (sha256 {given.digest[:16]}) but of {clip(own.name)} "
        f"({own.digest[:16]}). They differ in {part}{at}, where the store has {clip(one)}, expected {clip(other)}{more}"
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
    is_ambiguous = has_conflicts(automaton, lookaheads(automaton))
    # a parser that has decided a conflict may have read what it cannot go on with
    full = tables if grammar.conflicts == "all" or not is_ambiguous else None
    return Certificate(rules, columns, is_ambiguous, full)
