"""Lazy terminals of llguidance's Lark dialect: they end as soon as they match.

A lazy terminal has the texts of its pattern that begin with no other text of it. Where it competes
with another terminal, it ends that one too: the lexer stops at the first place at which a lazy
terminal matches, and takes that one. So the other terminal loses all texts that begin with a text
of the lazy one. (If it is lazy too, it loses only those that go on behind that text.)

Source: llguidance, parser/src/earley/regexvec.rs, lowest_match_inner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.assembly import assemble
from maskwright.analysis.fronts.automata import in_both, without
from maskwright.analysis.fronts.expressions import Expr, characters, repetition, sequence
from maskwright.analysis.fronts.lowering import TERMINAL, Lowered
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.merging import build_merged_tables
from maskwright.analysis.regex.charset import EVERYTHING

_ANY = characters(EVERYTHING)


class UsedTerminals(Protocol):
    """What is asked of `llguidance_rules.Rules`, which describes it."""

    terminals: dict[str, Expr]
    lazy: set[str]
    last: dict[str, int]

    @property
    def parts(self) -> Mapping[str, object]:
        """See `Rules`."""


def shortest(expr: Expr) -> Expr:
    """The texts of a regular expression of which no beginning is a text of it.

    expr : does not match the empty text.

    Raises: LimitError as `without`.
    """
    return without(expr, sequence((expr, repetition(_ANY, 1, None))))


def cut_by_lazy(reader: Reader, rules: UsedTerminals, lowered: Lowered, ignored: Expr) -> list[Expr]:
    """The terminals' expressions, without what lazy terminals end before.

    lowered : the rules. ignored : what is ignored; NEVER if nothing is.

    Raises: GrammarError if a terminal competes with a lazy one that ends it in some places and not
    in others, or if something may come behind ``stop=""``; LimitError as `without`.
    """
    found = list(rules.terminals.values())
    if not rules.lazy and not rules.last:
        return found
    keys = list(rules.terminals)
    plain = _plain_grammar(reader, [*keys, *rules.parts], lowered)
    if plain is None:
        return found  # it has no finite text, which is an error later on
    for key, at in rules.last.items():
        if not _is_last(plain, keys.index(key)):
            raise reader.error(
                'something may come behind a rule with stop="", which ends with the text; leave stop="" out', at
            )
    if not rules.lazy:
        return found
    tables = build_merged_tables(plain, "all").tables
    stands: list[npt.NDArray[np.bool_]] = [
        tables.action[:, column] != 0 if column >= 0 else np.zeros(len(tables.action), np.bool_)
        for column in tables.terminal_column.tolist()
    ]
    for z, lazy in enumerate(keys):
        if lazy not in rules.lazy:
            continue
        first = rules.terminals[lazy]
        for t, key in enumerate(keys):
            if t == z or not (stands[t] & stands[z]).any():
                continue
            ended = sequence((first, repetition(_ANY, 1 if key in rules.lazy else 0, None)))
            if in_both(rules.terminals[key], ended).is_never:
                continue
            if (stands[t] & ~stands[z]).any():
                raise _refused(
                    reader,
                    key,
                    f"the lazy rule {lazy} ends {key} in some places, and in others it does not stand there",
                )
            found[t] = without(found[t], ended)
            if found[t].is_never:
                raise _refused(reader, key, f"the lazy rule {lazy} takes all texts of {key}")
        if not ignored.is_never and not in_both(ignored, sequence((first, repetition(_ANY, 0, None)))).is_never:
            raise _refused(reader, lazy, f"the lazy rule {lazy} matches beginnings of what is ignored")
    return found


def _refused(reader: Reader, key: str, what: str) -> GrammarError:
    return GrammarError(f"grammar {reader.name}: {what}: give {key} a pattern that does not begin so")


def _plain_grammar(reader: Reader, keys: list[str], lowered: Lowered) -> Grammar | None:
    """The grammar in which each terminal and part is one, whatever its texts; None if empty."""
    grammar = assemble(
        lowered,
        [Terminal(f"t{i}", "a") for i in range(len(keys))],
        {TERMINAL + key: (i,) for i, key in enumerate(keys)},
        "longest",
        reader.name,
        "",
    )
    return reduce(grammar) if grammar.start in productive_symbols(grammar) else None


def _is_last(grammar: Grammar, terminal: int) -> bool:
    """Whether a terminal stands last in every text that has it."""

    def inside(state: tuple[int, bool]) -> Iterator[tuple[int, bool]]:
        symbol, is_inner = state
        for rule in grammar.rules_of.get(symbol, ()) if symbol >= grammar.n_terminals else ():
            for i, one in enumerate(rule.rhs):
                yield one, is_inner or i + 1 < len(rule.rhs)

    return (terminal, True) not in reachable([(grammar.start, False)], inside)
