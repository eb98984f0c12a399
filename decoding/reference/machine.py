"""The lexer and the parser of a grammar in plain Python lists, for `interpreter`.

The LR tables are not merged. The machine also knows which of its states the engine's tables merge,
and which stacks lead into dead ends, so that its stacks can be compared with the engine's.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from maskwright.analysis.arrays import Int32
from maskwright.analysis.errors import GrammarError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lexing.transducer import STATE_LIMIT
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.bisimulation import coarsest_partition
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.decoding.reference.parser import INSERTED, Configuration
from maskwright.maskstore.automaton.stack_automaton import build_lexer_and_parser
from maskwright.maskstore.table import schema


class Lexer:
    """Finds lexemes with the union automaton of the terminals.

    known : the union automaton, and what is known of a lexeme in its states.
    rows : for each of its states and each byte the next state; -1 for none.
    winner : for each state the terminal that wins there; -1 for none.
    """

    def __init__(self, known: Lexemes) -> None:
        self.known = known
        self.grammar, self.union, self.winner = known.grammar, known.union, known.winner
        self.rows: list[list[int]] = known.union.next_state.tolist()

    def scan(self, mode: int, text: bytes, begin: int, is_whole: bool = False) -> tuple[int, int, int]:
        """The terminal of the longest match at an offset, its end, and the state behind the text.

        The terminal is -1 if there is no match, and the state -1 if no lexeme goes on so far.

        mode : lexing mode.
        begin : offset in bytes.
        is_whole : whether nothing comes behind the text, so that look-aheads see its end.
        """
        state = self.union.starts[mode]
        terminal, end = -1, begin
        for at in range(begin, len(text)):
            state = self.rows[state][text[at]]
            if state < 0:
                break
            won = self.winner[state]
            if state in self.known.choices and (is_whole or at + 1 < len(text)):
                next_class = self.known.byte_class[text[at + 1]] if at + 1 < len(text) else -1
                won = next((each for each, refused in self.known.choices[state] if not refused[next_class]), -1)
            if won >= 0:
                terminal, end = won, at + 1
        return terminal, end, state

    def longest(self, mode: int, text: bytes, begin: int, is_whole: bool = False) -> tuple[int, int]:
        """The terminal of the longest match at an offset, and its end; (-1, begin) if none.

        There is none either if the text ends inside an unfinished lexeme: one that only the end of
        the text could make fail, such as an open string. is_whole : as for `scan`.
        """
        terminal, end, state = self.scan(mode, text, begin, is_whole)
        if terminal < 0 or state < 0 or end == len(text) or self._may_fail(terminal, state, text[end:]):
            return terminal, end
        return -1, begin

    def _may_fail(self, terminal: int, under_way: int, pending: bytes) -> bool:
        """Whether some bytes make a lexeme fail behind its last end, and another reading survives.

        terminal : the one that won there. pending : the bytes since.
        """
        readings = sorted(self.known.readings(terminal, pending))
        return any(self.known.can_survive(terminal, under_way, state, is_first) for state, is_first in readings)


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
        self.modes = modes

    @cached_property
    def lexer(self) -> Lexer:
        """The longest match of the terminals, in the lexing modes."""
        return Lexer(Lexemes(self.grammar, lambda _, __: True, self.modes, STATE_LIMIT))

    def check_lexer(self, table: Int32) -> None:
        """Refuse the table of a store that has another lexer than this one.

        Raises: StoreError if it has.
        """
        at, built = int(table[schema.NEXT_STATE]), self.transducer.next_state
        known = table[at : at + built.size]
        if int(table[schema.N_LEXER_STATES]) != len(built) or not np.array_equal(known, built.ravel()):
            raise StoreError(
                f"the store of grammar {self.grammar.name} has a different lexer from the one that this version of maskwright builds for "
                "it under this Python's Unicode; build the store anew"
            )

    def lexemes(self, text: bytes, configuration: Configuration) -> tuple[list[tuple[int, int, int]], int]:
        """The lexemes of a text up to a configuration of its reading.

        Ignored lexemes are included. Terminals that the layout inserted have no length.

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
            lexeme, end, _ = self.lexer.scan(own_mode, text, at)
            while lexeme in self.grammar.ignored:
                found.append((lexeme, at, end))
                at = end
                lexeme, end, _ = self.lexer.scan(own_mode, text, at)
            found.append((terminal, at, end))
            at = end
        mode = self.mode_of[configuration.stacks[0].top]
        while at < len(text):
            lexeme, end, state = self.lexer.scan(mode, text, at)
            if lexeme not in self.grammar.ignored or (state >= 0 and self.lexer.known.reads_on[state]):
                break
            found.append((lexeme, at, end))
            at = end
        return found, at

    def ends_before(self, text: bytes, configuration: Configuration) -> bool:
        """Whether a lexeme ends just before the last byte, and none begins with that byte."""
        mode, (_, begin) = self.mode_of[configuration.stacks[0].top], self.lexemes(text[:-1], configuration)
        terminal, end, _ = self.lexer.scan(mode, text[:-1], begin)
        return terminal >= 0 and end == len(text) - 1 and self.lexer.scan(mode, text, end)[2] < 0


@lru_cache(maxsize=4)
def machine_of(grammar: Grammar) -> Machine:
    """The machine of a grammar. The last four are kept."""
    return Machine(grammar)
