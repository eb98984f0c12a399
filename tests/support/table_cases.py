"""LALR tables of random grammars, as built and altered, and what their parsers read, by trying."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from engine_cases import MAKERS, random_vocabulary

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.table import schema
from maskwright.maskstore.verify.tables import Certificate, missing_entries, unsound_reductions
from maskwright.maskstore.verify.trusted import ACCEPTS, Lexer, Parser
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.verification import certificate_of

BYTES = Vocabulary("bytes", (*(bytes([byte]) for byte in range(256)), b""), {256: "</s>"}, (256,))
LONGEST = 4
"""Terminals of a word that is tried."""
MOST_STACKS = 300


@dataclass(frozen=True)
class Case:
    grammar: Grammar
    table: np.ndarray

    def faults(self) -> tuple[str, ...]:
        return unsound_reductions(self.certificate(), *self.read())

    def missing(self) -> tuple[str, ...]:
        return missing_entries(self.certificate(), *self.read())

    def certificate(self) -> Certificate:
        found = certificate_of(self.grammar)
        assert found is not None
        return found

    def read(self) -> tuple[Parser, Lexer]:
        return Parser(self.table), Lexer(self.table, self.grammar.n_terminals)


def case(seed: int, maker: object = None) -> Case | None:
    """The tables of a random grammar; None if it has none."""
    try:
        grammar = MAKERS[seed % len(MAKERS)](seed) if maker is None else maker(seed)  # type: ignore[operator]
        if seed % 3 == 0:
            grammar = replace(grammar, conflicts="shift")
        store = compile_store(grammar, random_vocabulary(grammar, seed, 8))
    except MaskwrightError:
        return None
    return Case(grammar, np.array(store.table))


def altered(one: Case, rng: random.Random) -> Case:
    """The tables with one entry changed to another value that this entry may have."""
    table = one.table.copy()
    sizes = {name: int(table[at]) for name, at in (("states", schema.N_STATES), ("rules", schema.N_RULES))}
    columns, nonterminals = int(table[schema.N_COLUMNS]), int(table[schema.N_NONTERMINALS])
    lengths = {
        schema.ACTION: sizes["states"] * columns,
        schema.GOTO: sizes["states"] * nonterminals,
        schema.RULE_LHS: sizes["rules"],
        schema.RULE_LENGTH: sizes["rules"],
        schema.DEFAULT: sizes["states"],
        schema.SYMBOL_COLUMN: one.grammar.n_terminals,
    }
    part = rng.choice([*lengths, schema.ACTION, schema.ACTION])
    at = int(table[part]) + rng.randrange(lengths[part])
    if part == schema.ACTION:
        table[at] = rng.choice([-1 - rng.randrange(sizes["rules"]), 1 + rng.randrange(sizes["states"]), ACCEPTS])
    elif part == schema.GOTO:
        table[at] = rng.randrange(sizes["states"])
    elif part == schema.SYMBOL_COLUMN:
        table[at] = rng.randrange(-1, columns)
    elif part == schema.RULE_LHS:
        table[at] = rng.randrange(nonterminals)
    elif part == schema.RULE_LENGTH:
        table[at] = max(0, int(table[at]) + rng.choice((-1, 1)))
    else:
        table[at] = rng.randrange(-1, sizes["rules"])
    return Case(one.grammar, table)


class TooManyStacks(Exception):
    """A parser has more than MOST_STACKS stacks, so not all of them are tried."""


def accepted(parser: Parser, columns: list[int], max_length: int, *, every: bool = False) -> Iterator[tuple[int, ...]]:
    """The words of some terminals that the parser accepts, by trying all. every : raise TooManyStacks if some may be missing."""
    return (word for word, ends in read(parser, columns, max_length, every=every) if ends)


def read(
    parser: Parser, columns: list[int], max_length: int, *, every: bool = False
) -> Iterator[tuple[tuple[int, ...], bool]]:
    """What the parser reads, and whether it accepts it."""

    def after(stacks: set[tuple[int, ...]], column: int) -> tuple[set[tuple[int, ...]], bool]:
        seen, agenda, shifted, ends = set(stacks), list(stacks), set(), False
        while agenda and len(seen) < MOST_STACKS:
            stack = agenda.pop()
            for action in parser.acts[stack[-1] * parser.n_columns + column]:
                if action == ACCEPTS:
                    ends = True
                elif action > 0:
                    shifted.add((*stack, action - 1))
                elif parser.length[-1 - action] < len(stack):
                    kept = stack[: len(stack) - parser.length[-1 - action]]
                    state = parser.goto[kept[-1]][parser.lhs[-1 - action]]
                    if state >= 0 and (*kept, state) not in seen:
                        seen.add((*kept, state))
                        agenda.append((*kept, state))
        if agenda and every:
            raise TooManyStacks
        return shifted, ends

    level: list[tuple[tuple[int, ...], set[tuple[int, ...]]]] = [((), {(0,)})]
    for length in range(max_length + 1):
        further = []
        for word, stacks in level:
            yield word, after(stacks, parser.n_columns - 1)[1]
            for terminal, column in enumerate(columns):
                if column >= 0 and length < max_length:
                    shifted, _ = after(stacks, column)
                    if shifted:
                        further.append(((*word, terminal), shifted))
        level = further
