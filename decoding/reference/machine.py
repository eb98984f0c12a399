"""The lexer and the parser of a grammar in plain Python lists, for `interpreter`.

The LR tables are not merged. The machine also knows which of its states the engine's tables merge,
and which stacks lead into dead ends, so that its stacks can be compared with the engine's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_lexemes
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.reference.parser import Stacks
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser

INSERTED = -1
"""Stands for the lexing mode of a terminal that the layout inserted and no text spells."""
Read = tuple[int, int, "Read | None"]
"""The terminals read: the last one, the mode in which it was lexed, and those before it."""


class Configuration(NamedTuple):
    """The state of the readings of a text that the lexer cannot tell apart.

    lexer : the transducer's state.
    column : of the newline under way.
    depth : open brackets.
    columns : of the open blocks, the outermost first.
    stacks : the parser's.
    last_was_newline : whether the last thing read was a newline whose column is known.
    read : all that was read, as a linked list from the last terminal.
    """

    lexer: int
    column: Column
    depth: int
    columns: tuple[Column, ...]
    stacks: Stacks
    last_was_newline: bool
    read: Read | None


class Machine:
    """The lexer and the parser of a grammar.

    The parser's tables are the full ones, with no states merged.

    grammar : its lexing is "longest" or "contextual".

    Raises: the errors of `build_store`; GrammarError if lexing is "nfa".
    Cost: 1.5 s for python.lark.
    """

    def __init__(self, grammar: Grammar) -> None:
        if grammar.lexing == "nfa":
            raise GrammarError(
                f"grammar {grammar.name}: lexing 'nfa' keeps several hypotheses, which are not explained; load it with lexing='longest'"
            )
        self.grammar = grammar
        found = build_lexer_and_parser(grammar)
        modes, self.transducer = found.modes, found.transducer
        self.tables = build_lr_tables(grammar, grammar.conflicts)
        self.automaton = build_automaton(parsed_grammar(grammar, grammar.conflicts)).restricted(self.tables.origin)
        self.class_of: list[int] = coarsest_partition(self.tables).states.tolist()
        """The merged LR state of each state.

        Several states of the engine may stand for one merged state (`LexerAndParser`).
        """
        self.origin: list[int] = found.origin.tolist()
        self.live = found.live
        """Tells which stacks lead into dead ends; None if none do."""
        of_class = dict(zip(self.origin, modes.of_state.tolist(), strict=True))
        # States that occur only in dead ends have no mode.
        self.mode_of = [of_class.get(number, 0) for number in self.class_of]
        self.next_state: list[list[int]] = self.transducer.next_state.tolist()
        self.output: list[list[int]] = self.transducer.output.tolist()
        self.byte_class: list[int] = self.transducer.byte_class.tolist()
        self.is_newline: list[bool] = self.transducer.is_newline.tolist()
        self.mode_state: list[int] = self.transducer.mode_state.tolist()
        self.competing = modes.competing
        self.column_of: list[int] = self.tables.terminal_column.tolist()
        layout = grammar.layout
        self.newline = grammar.newline
        brackets = layout.brackets if layout else ()
        self.bracket = {opening: 1 for opening, _ in brackets} | {closing: -1 for _, closing in brackets}
        self.corners: dict[int, frozenset[int]] = {}
        """A cache of explanations: the nonterminals that each nonterminal's text may begin with."""

    @cached_property
    def _union(self) -> tuple[list[list[int]], list[int], list[bool], list[int]]:
        """The automaton of all terminals side by side.

        Returns transitions, winner of each state (-1: none), whether each state can go on, and the
            start state of each mode.
        """
        nfa = build_terminal_nfa(compile_lexemes(self.grammar))
        starts = [tuple(int(nfa.initial[t]) for t in sorted(mode)) for mode in self.competing]
        union = build_union_dfa(nfa, [terminal.name for terminal in self.grammar.terminals], STATE_LIMIT, starts)
        rank = terminal_rank(self.grammar.terminals)
        winners = [min(found, key=rank.__getitem__, default=-1) for found in union.accepting]
        can_grow = [bool(row.any()) for row in union.next_state >= 0]
        next_state: list[list[int]] = union.next_state.tolist()
        return next_state, winners, can_grow, list(union.starts)

    def longest_match(self, text: bytes, begin: int, mode: int) -> tuple[int, int, bool]:
        """The longest match that begins at an offset.

        begin : in bytes. mode : the lexing mode.

        Returns its terminal (-1: none), its end, and whether no further text can change it.
        """
        next_state, winners, can_grow, starts = self._union
        state, terminal, end = starts[mode], -1, begin
        for at in range(begin, len(text)):
            state = next_state[state][text[at]]
            if state < 0:
                return terminal, end, True
            if winners[state] >= 0:
                terminal, end = winners[state], at + 1
        return terminal, end, not can_grow[state]

    def lexemes(self, text: bytes, configuration: Configuration, mode: int) -> tuple[list[tuple[int, int, int]], int]:
        """The lexemes of a text up to a configuration of its reading.

        Ignored lexemes are included. Terminals that the layout inserted have no length.

        mode : in which the lexeme under way is lexed.

        Returns a list of (terminal, begin, end), and the offset at which the lexeme under way
            begins.
        """
        chain: list[tuple[int, int]] = []
        read = configuration.read
        while read is not None:
            chain.append(read[:2])
            read = read[2]
        found: list[tuple[int, int, int]] = []
        at = 0
        for terminal, own_mode in reversed(chain):
            if own_mode == INSERTED:
                found.append((terminal, at, at))
                continue
            lexeme, end, _ = self.longest_match(text, at, own_mode)
            while lexeme in self.grammar.ignored:
                found.append((lexeme, at, end))
                at = end
                lexeme, end, _ = self.longest_match(text, at, own_mode)
            found.append((terminal, at, end))
            at = end
        is_sure = True
        while at < len(text) and is_sure:
            lexeme, end, is_sure = self.longest_match(text, at, mode)
            is_sure = is_sure and lexeme in self.grammar.ignored
            if is_sure:
                found.append((lexeme, at, end))
                at = end
        return found, at

    def ends_before(self, text: bytes, configuration: Configuration, mode: int) -> bool:
        """Whether a lexeme ends just before the last byte, and none begins with that byte."""
        _, begin = self.lexemes(text[:-1], configuration, mode)
        terminal, end, _ = self.longest_match(text[:-1], begin, mode)
        next_state, _, _, starts = self._union
        return terminal >= 0 and end == len(text) - 1 and next_state[starts[mode]][text[-1]] < 0


@lru_cache(maxsize=4)
def machine_of(grammar: Grammar) -> Machine:
    """The machine of a grammar. The last four are kept."""
    return Machine(grammar)
