r"""The terminals as the streamlining post reads them: for python.lark its lexer NFA has 410 states.

The post works on the characters of `string.printable`, not on bytes. Restricted to them, the
minimal automata of python.lark's 99 terminals have 408 states in all, and the NFA adds a start and
a final state. Other regex libraries reach this figure with plainer patterns: ``"([^"\\\n]|\\.)*"``
for STRING, a pattern of the same kind for LONG_STRING, and DEC_NUMBER without ``(?![1-9])``. Their
languages are exactly those that `compile_terminal` gives to python.lark's own patterns, since it
leaves a look-ahead past a lexeme's end open. So we replace no pattern here, and the function
applies to any grammar.
"""

from __future__ import annotations

import string

import numpy as np

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.messages import check_language, name_of
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.regex.dfa import Dfa

_NOT_PRINTABLE = np.setdiff1d(np.arange(256), np.frombuffer(string.printable.encode("ascii"), dtype=np.uint8))
"""The bytes outside `string.printable`."""


def post_terminals(grammar: Grammar) -> tuple[Dfa | None, ...]:
    """The automata of `compile_terminals`, restricted to texts over `string.printable`.

    Returns one automaton for each terminal, None for declared terminals.

    Raises: as `compile_terminals`; TerminalError if a terminal matches no such text.
    """
    restricted: list[Dfa | None] = []
    for terminal, dfa in zip(grammar.terminals, compile_terminals(grammar), strict=True):
        if dfa is None:
            restricted.append(None)
            continue
        table = dfa.next_state.copy()
        table[:, _NOT_PRINTABLE] = -1
        name = f"{name_of(terminal, grammar.name)}, read over string.printable"
        restricted.append(check_language(name, terminal, Dfa.minimal(table, dfa.is_accepting)))
    return tuple(restricted)
