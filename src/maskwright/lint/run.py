"""Run all checks of a grammar, in order, and report which could not be run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from maskwright.analysis.arguments import need_path
from maskwright.analysis.errors import DeadEndError, GrammarError, LimitError, MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import productive_symbols
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.lr.live import Live
from maskwright.analysis.lr.tables import build_merged_tables
from maskwright.analysis.nesting import on_own_stack
from maskwright.decoding.dead import refuse_dead
from maskwright.lint import (
    backup,
    conflicts,
    lexings,
    neighbours,
    rules,
    terminals,
    tokens,
    whitespace,
)
from maskwright.lint.facts import Facts
from maskwright.lint.finding import NO_STORE, SEVERITIES, Finding, Report, allowed_by_comments, codes_of
from maskwright.lint.remedies import Counts, Trials
from maskwright.maskstore.table.build import build_engine_table, byte_vocabulary
from maskwright.maskstore.vocabulary import VocabularySource, as_vocabulary

Check = Callable[[Facts], Iterator[Finding]]

OF_RULES: tuple[Check, ...] = (
    rules.unproductive,
    rules.unreachable,
    rules.unused_terminals,
    rules.ignored_in_rules,
    rules.unbalanced_layout,
    terminals.faulty,
    whitespace.endless_whitespace,
    rules.unread_options,
)
"""Checks of rules and terminals. They need no parser and no lexer."""
OF_PARSING: tuple[Check, ...] = (rules.endless_derivations, conflicts.conflict_findings)
"""Checks of derivations and of the parser's conflicts."""
OF_LEXING: tuple[Check, ...] = (
    terminals.equal,
    terminals.never_lexed,
    terminals.reserved_words,
    terminals.idle_priorities,
    terminals.open_lookaheads,
    terminals.open_lookbehinds,
    terminals.verbatim_brackets,
    neighbours.adjacent,
    backup.backing_up,
    backup.newline_without_line_feed,
    backup.refused_dead_ends,
    lexings.lexing_findings,
    conflicts.mode_findings,
)
"""Checks of a lexer that takes the longest match. Not for lexing "nfa"."""


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


@on_own_stack
def lint_grammar(
    grammar: GrammarSource,
    vocabulary: VocabularySource | None = None,
    *,
    file: str | os.PathLike[str] | None = None,
    allow: Iterable[str] = (),
) -> Report:
    """Report what is wrong with a grammar and, given a vocabulary, what its tokens cannot write.

    grammar, vocabulary : as `load_grammar` and `load_vocabulary` take them, or loaded ones.
    file : what findings call the grammar's file; by default the grammar's name.
    allow : codes of findings to leave out. A comment ``// lint: allow CODE`` in the grammar does
        the same for its own line and the next, ``// lint: allow-file CODE`` for the whole file.

    Returns a `Report`. It has the same findings in the same order for the same grammar and
        vocabulary, on every machine.
    Raises: UnknownNameError if `allow` has an unknown code; MaskwrightError if `allow` or `file` is
        of another kind; the errors of loading a grammar or vocabulary.
    Cost: 3 CPU seconds for python.lark.
    """
    wanted = codes_of(allow)
    if file is not None:
        need_path("the grammar", file)
    grammar = as_grammar(grammar)
    given = None if vocabulary is None else as_vocabulary(vocabulary)
    facts = Facts(grammar, os.fsdecode(file) if file is not None else grammar.name)
    facts.trials = Trials(grammar, _counts)
    skipped: list[str] = []
    found: list[Finding] = []
    if grammar.start not in productive_symbols(grammar):
        found += rules.unproductive(facts)
        skipped.append("all else: no text can be derived from the start symbol")
    else:
        found += _run(facts, (*OF_RULES, *OF_PARSING), skipped)
        if facts.faulty:
            skipped.append("lexing, texts and the vocabulary: a terminal has no automaton")
        elif grammar.lexing == "nfa":
            skipped.append("longest match: lexing is 'nfa'")
            found += _run(facts, (terminals.equal,), skipped)
        else:
            of_lexing = _run(facts, OF_LEXING, skipped)
            found += [*of_lexing, *_no_text(facts, of_lexing)]
        if given is not None and not facts.faulty:
            found += _run(facts, (lambda facts: tokens.vocabulary_findings(facts, given),), skipped)
    everywhere, at_line = allowed_by_comments(grammar.text)
    unique = list(dict.fromkeys(found))
    kept = [f for f in unique if f.code not in wanted and f.code not in everywhere and (f.line, f.code) not in at_line]
    # Findings without a place come last.
    kept.sort(key=lambda f: (f.line == 0, f.line, f.column, SEVERITIES.index(f.severity), f.code, f.message))
    return Report(
        grammar=grammar.name,
        lexing=grammar.lexing,
        conflicts=grammar.conflicts,
        tokenizer=None if given is None else given.name,
        findings=tuple(kept),
        skipped=tuple(dict.fromkeys([*skipped, *facts.notes])),
        n_allowed=len(unique) - len(kept),
    )


def _counts(grammar: Grammar) -> Counts | None:
    """The errors and warnings of a grammar that a remedy has changed, for `Trials`.

    Returns None if the checks cannot all be run.
    """
    try:
        facts = Facts(grammar, grammar.name)
        lexing = OF_LEXING if grammar.lexing != "nfa" and not facts.faulty else ()
        checks = [check for check in (*OF_RULES, *lexing) if check is not lexings.lexing_findings]
        skipped: list[str] = []
        found = dict.fromkeys(_run(facts, checks, skipped))
    except MaskwrightError:
        return None
    severities = [finding.severity for finding in found]
    return None if skipped else (severities.count("error"), severities.count("warning"))


def _run(facts: Facts, checks: Iterable[Check], skipped: list[str]) -> list[Finding]:
    """The findings of some checks.

    A check that exceeds a limit gives one finding that says so. A check that cannot be run is added
    to `skipped`.
    """
    found: list[Finding] = []
    for check in checks:
        try:
            found += list(check(facts))
        except LimitError as error:
            remedy = "make what the message names smaller, or split the grammar"
            found.append(facts.finding("too-large", "error", (0, 0), str(error), NO_STORE, remedy))
        except GrammarError as error:
            skipped.append(str(error))
    return found


def _no_text(facts: Facts, found: Sequence[Finding]) -> list[Finding]:
    """The finding that no text can be finished, whatever the tokenizer; [] if some text can.

    The longest match may join or take lexemes that every text needs, or conflicts decided by a
    shift leave no text. We try a vocabulary that has a token for each byte.

    found : the findings of lexing.

    Cost: where conflicts are decided by a shift, that of `Live`. If `found` makes it likely, also a
        store of 257 tokens and a shortest ending.
    """
    why, grammar = "", facts.grammar
    try:
        merged = build_merged_tables(grammar, "shift") if grammar.conflicts == "shift" else None
        if merged is not None and merged.is_decided and not Live(merged.tables).accepts_some:
            why = "its conflicts are decided by a shift, and then every text lacks something"
            remedy = "left-factor the rules with conflicts, or load the grammar with conflicts='all' (--conflicts all)"
    except (GrammarError, LimitError):
        pass  # the checks of the parser report it too
    if not why and any(finding.code in _SUSPICIOUS and finding.severity != "info" for finding in found):
        try:
            refuse_dead(build_engine_table(grammar, byte_vocabulary()))
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
    place = facts.at_rule(grammar.symbol_name(grammar.start))
    return [facts.finding("no-text", "error", place, message, "no store is made", remedy)]
