"""Grammars of which no text can be finished, although their rules derive some.

The longest match joins or takes lexemes that every text needs, or conflicts decided by a shift
leave no text.
"""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError
from maskwright.analysis.grammar import Grammar
from maskwright.analysis.lr.live import Live
from maskwright.analysis.lr.merging import build_merged_tables
from maskwright.decoding.dead import refuse_dead
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding
from maskwright.maskstore.table.build import build_engine_table
from maskwright.maskstore.vocabulary import Vocabulary

_BYTES = Vocabulary("bytes", (b"", *(bytes([byte]) for byte in range(256))), {0: "</s>"}, (0,))
"""A vocabulary with a token for each byte."""

_SUSPICIOUS = frozenset(
    {
        "equal-terminals",
        "never-adjacent",
        "never-lexed",
        "newline-without-line-feed",
        "refused-dead-end",
        "stuck-after-ignored",
        "stuck-after-terminal",
    }
)
"""Findings that show what can take all texts from a grammar.

If there is none of them, we skip the check, which compiles the grammar.
"""


def no_text(facts: Facts, found: Sequence[Finding]) -> list[Finding]:
    """The finding that no text can be finished, whatever the tokenizer; [] if some text can.

    We try a vocabulary that has a token for each byte.

    found : the findings of lexing.

    Cost: where conflicts are decided by a shift, that of `Live`. If `found` makes it likely, also a
        store of 257 tokens and a shortest ending.
    """
    why = ""
    try:
        if _is_emptied_by_shifts(facts.grammar):
            why = "its conflicts are decided by a shift, and then every text lacks something"
            remedy = "left-factor the rules with conflicts, or load the grammar with conflicts='all' (--conflicts all)"
    except (GrammarError, LimitError):
        pass  # the checks of the parser report it too
    if not why and any(finding.code in _SUSPICIOUS and finding.severity != "info" for finding in found):
        try:
            refuse_dead(build_engine_table(facts.grammar, _BYTES))
        except DeadEndError:
            why = "terminals in other findings join or take lexemes that every text needs"
            remedy = "mend what the other findings name"
        except (GrammarError, LimitError) as error:
            # A check of lexing may have reported the same error.
            if not any(facts.without_name(error) in finding.message for finding in found):
                facts.notes.append(f"whether any text can be finished: {facts.without_name(error)}")
    if not why:
        return []
    message = f"no text of the grammar can be finished: {why}"
    place = facts.at_rule(facts.grammar.symbol_name(facts.grammar.start))
    return [facts.finding("no-text", "error", place, message, "no store is made", remedy)]


def _is_emptied_by_shifts(grammar: Grammar) -> bool:
    """Whether deciding conflicts by a shift leaves no text."""
    if grammar.conflicts != "shift" or grammar.lexing == "nfa":
        return False
    merged = build_merged_tables(grammar, grammar.conflicts)
    return merged.is_decided and not Live(merged.tables).accepts_some
