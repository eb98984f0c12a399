"""Are LR tables those of a grammar? Asked of the tables that deciders of terminal sequences read.

In: rules, LR tables, of whatever builder. Out: what is wrong with them, and what was not shown.

Three conditions are checked, by code that shares nothing with the builder of the tables:

- *sound*: what the parser accepts, the grammar derives (`maskstore/verify/tables.py`);
- *complete*: what the grammar derives, the parser accepts (`maskstore/verify/tables.py`);
- *viable*: each stack begins a sentential form, and each nonterminal derives a text
  (`maskstore/verify/viable.py`). With soundness, the text that the parser has read can then still
  become a word.

They make `analysis.legality.exact` right for the grammar's language, whoever made the tables. Let P
be the prefixes of its words. If a text is in P, some run of the parser reads it, by completeness;
if the parser reads it, it is in P, by the other two. So a stack that accepts a sequence stands for
texts of P, and a text of P that no stack accepts does not exist (proofs/viable.v: `reads_exact`,
`never_exact`, `always_exact`, `jointly_exact`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import Cache
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.encoding import Array, LrTables
from maskwright.analysis.lr.lookaheads import has_conflicts, lookaheads
from maskwright.maskstore.verify.tables import Certificate, missing_entries, unsound_reductions
from maskwright.maskstore.verify.trusted import read_full_tables
from maskwright.maskstore.verify.viable import stuck_states, without_text

MOST_STEPS = 2_500_000
"""Steps of the search for missing entries, some two microseconds each: the library's python takes
1,820,000, sql 690,000."""

_KEPT: Cache[str, Validation] = Cache()
"""Results by the digests of rules and tables."""


@dataclass(frozen=True)
class Validation:
    """What was found of LR tables.

    faults : what is wrong, in words; a verdict on these tables means nothing.
    not_shown : why it is not known that the parser accepts all that the grammar derives, or
        anything of the tables, in words; "" if the tables are validated.
    is_sound : whether what the parser has read is known to begin a word.
    """

    faults: tuple[str, ...] = ()
    not_shown: str = ""
    is_sound: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether the tables are shown to be those of the grammar."""
        return self.is_sound and not self.faults and not self.not_shown

    def __str__(self) -> str:
        if self.faults:
            return "WRONG"
        if self.is_complete:
            return "validated"
        return "sound, but not shown to be complete" if self.is_sound else "not validated"


def validate_lr_tables(rules: Grammar, tables: LrTables) -> Validation:
    """Whether tables are sound, viable and complete for rules.

    rules : what the tables are made of, as `parsed_grammar` gives it.
    tables : of these rules, a column for each terminal and a goto for each nonterminal, as
        `build_lr_tables` makes them, before any merging.

    Where the rules have conflicts, tables leave actions out on purpose. Then entries that are
    missing are `not_shown`, and no faults. A limit is told in `not_shown` too.

    Cost: python (2038 states) 5 s, sql and java 2 s, json some ms; once for equal tables.
    """
    key = tables_digest(rules, tables)
    found: Validation | None = _KEPT.get(key)
    return _KEPT.put(key, _validate(rules, tables)) if found is None else found


def tables_digest(rules: Grammar, tables: LrTables) -> str:
    """SHA-256 (hex) of rules and tables. Equal ones have equal digests on every machine."""
    state = hashlib.sha256(f"maskwright LR tables 1\n{rules.digest}\n{tables.n_terminals}\n".encode())
    arrays: tuple[Array, ...] = (
        tables.action,
        tables.goto,
        tables.rule_lhs,
        tables.rule_length,
        tables.alternatives,
        tables.terminal_column,
    )
    for array in arrays:
        state.update(f"{array.shape}\n".encode())
        state.update(array.astype("<i4", copy=False).tobytes())
    return state.hexdigest()


def _validate(rules: Grammar, tables: LrTables) -> Validation:
    full = read_full_tables(rules, tables)
    if isinstance(full, str):
        return Validation((full,))
    parser, lexer = full
    certificate = Certificate(rules, tuple(range(rules.n_nonterminals)))
    try:
        faults = unsound_reductions(certificate, parser, lexer)
    except LimitError as error:
        return Validation(not_shown=str(error), is_sound=False)
    faults = faults or without_text(rules) or stuck_states(rules, parser, lexer)
    if faults:
        return Validation(faults)

    def report(done: int, known: int) -> None:
        if done > MOST_STEPS:
            raise LimitError(f"the search for missing entries takes more than {MOST_STEPS:,} steps")

    try:
        missing = missing_entries(certificate, parser, lexer, report)
    except LimitError as error:
        return Validation(not_shown=str(error))
    if not missing:
        return Validation()
    return Validation(not_shown=missing[0]) if _may_leave_out(rules) else Validation(missing)


def _may_leave_out(rules: Grammar) -> bool:
    """Whether the rules have conflicts, so that right tables may lack entries.

    This asks the builder. It says whether a missing entry is a fault, never that none is missing.
    """
    try:
        automaton = build_automaton(rules)
        return has_conflicts(automaton, lookaheads(automaton))
    except LimitError:
        return True
