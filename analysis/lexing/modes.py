"""Contextual lexing: the parser's state chooses which terminals compete where a lexeme begins.

In a state of the parser the terminals compete that the parser can take there, and with them the
ignored terminals and the layout's newline. So ``/`` may begin a regular expression in one state and
divide in another, ``>>`` may close two lists, and free text may follow a label. Lark's own
contextual lexer does the same, with two differences. Of the terminals that compete, Lark takes the
first in its order that matches, and we take the longest match. And we leave out rules from which no
text can be derived, while Lark keeps them.

`Grammar.reserved` says which string literals compete everywhere all the same, together with the
patterns that match them:

- "none": none, as in Lark. ``x = y isz`` is read as ``x = y is z`` where only ``is`` could come.
- "words": literals that are words (`str.isidentifier`) and that some pattern matches. So a keyword
  is never a name, and ``isz`` is a name.
- "all": every literal that some pattern matches.

If some rule offers a literal and the pattern as alternatives, the grammar makes the literal soft:
it is not reserved. Terminals that occur in no rule compete everywhere too. They exist to be refused
(option `refused`).

We join sets of competing terminals that never behave differently to one *mode*. Two sets can be
joined if each byte that begins terminals of both begins the same terminals in both. The terminals
that a mode has beyond a state's own set begin with other bytes than those of that set, and the
parser refuses them there.

A terminal of other lengths (`Terminal.beyond`) competes exactly where the one competes that it
belongs to.

*Verbatim* terminals make modes under both lexings. Where the parser's state can take a verbatim
terminal, the mode consists of the terminals that it can take, without ignored ones, and of the
refused terminals (option `refused`) that share no first byte with these verbatim terminals.
Elsewhere verbatim terminals do not compete.

Source: Lark 1.3, `lark.lexer.ContextualLexer`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_terminals
from maskwright.analysis.marks import PART_FLAGS
from maskwright.analysis.regex.minimise import sorted_rows

MODE_LIMIT = 256
"""The most modes of a grammar."""


@dataclass(frozen=True)
class Modes:
    """The modes of a lexer. In all LR states of one mode the same terminals compete.

    competing : for each mode the terminals that compete.
    of_state : (n_lr_states,) int32; the mode of each state of the parser.
    may_follow : (n_terminals, n_modes) bool; whether the lexeme after a terminal may be read in a
        mode. False is a proof, True is not.
    """

    competing: tuple[frozenset[int], ...]
    of_state: npt.NDArray[np.int32]
    may_follow: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.competing)


def lexing_modes(
    grammar: Grammar,
    acceptable: npt.NDArray[np.bool_],
    terminal_column: npt.NDArray[np.int32],
    accessing: npt.NDArray[np.int32] | None,
) -> Modes:
    """The modes of a grammar's lexing, "longest" or "contextual".

    acceptable : (n_lr_states, n_columns) bool; for which columns each state of the parser has an
        action.
    terminal_column : (n_terminals,) int32; the column of each terminal, -1 for terminals in no
        rule.
    accessing : (n_lr_states,) int32; the symbol that leads to each state, as in `LrTables`. None:
        `may_follow` proves nothing.

    Raises: LimitError past MODE_LIMIT modes; GrammarError if a verbatim terminal would lock out the
        layout's newline; as `compile_terminals`. Cost: O(sets * modes) for the competing sets.
    """
    every = frozenset(t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared)
    beyond = _beyond(grammar)
    common = every - grammar.verbatim - frozenset(beyond.values())
    is_contextual = grammar.lexing == "contextual"
    begins = _first_bytes(grammar) if is_contextual or grammar.verbatim else np.zeros((0, 256), np.bool_)
    always = common
    if is_contextual:
        in_rules = {symbol for rule in grammar.rules for symbol in rule.rhs}
        # a mark is like no other text, so that it takes nothing from anyone
        marks = {t for t in common if grammar.terminals[t].flags == PART_FLAGS}
        always = _silent(grammar) | (_reserved(grammar) & common) | {t for t in common if t not in in_rules} | marks
    refused = sorted(t for t in common - _silent(grammar) if terminal_column[t] < 0)
    lexable = np.array([t for t in sorted(every) if terminal_column[t] >= 0], np.int64)
    flags = acceptable[:, terminal_column[lexable]]
    row_of_state, first = sorted_rows(np.packbits(flags, axis=1))
    set_of_row: list[frozenset[int]] = []
    for row in flags[first]:
        taken = frozenset(lexable[row].tolist())
        if taken & grammar.verbatim:
            competing = _verbatim_set(grammar, taken, refused, begins)
        else:
            competing = always | taken & common if is_contextual else common
        set_of_row.append(competing.union(beyond[t] for t in competing & beyond.keys()))
    mode_of_set = {one: one for one in set_of_row}
    if is_contextual:
        # INVARIANT: nothing is ignored where a verbatim terminal can come, so such sets, which are
        # just those of `_verbatim_set`, are never joined with others.
        sets = [one for one in mode_of_set if not one & grammar.verbatim]
        mode_of_set |= _joined(grammar, sorted(sets, key=lambda one: (-len(one), sorted(one))), begins)
    number: dict[frozenset[int], int] = {}
    of_state = np.zeros(len(acceptable), np.int32)
    for state, row in enumerate(row_of_state.tolist()):
        of_state[state] = number.setdefault(mode_of_set[set_of_row[row]], len(number))
    if len(number) > MODE_LIMIT:
        raise _too_many_modes(grammar)
    may_follow = (
        np.ones((grammar.n_terminals, len(number)), np.bool_)
        if accessing is None
        else _may_follow(grammar, tuple(number), of_state, terminal_column, accessing)
    )
    return Modes(tuple(number), of_state, may_follow)


def _too_many_modes(grammar: Grammar) -> LimitError:
    advice = "; load the grammar with lexing='longest'" if grammar.lexing == "contextual" else ""
    return LimitError(
        f"grammar {grammar.name}: {grammar.lexing} lexing has more than {MODE_LIMIT} different sets of competing terminals, "
        f"which is the limit{advice}"
    )


def _silent(grammar: Grammar) -> frozenset[int]:
    """The terminals that may stand between any two lexemes: ignored ones, the layout's newline."""
    return grammar.ignored if grammar.layout is None else grammar.ignored | {grammar.layout.newline}


def _beyond(grammar: Grammar) -> dict[int, int]:
    """For terminals with a terminal of other lengths (`Terminal.beyond`) that one's number."""
    number = grammar.terminal_number
    return {number[t.beyond]: i for i, t in enumerate(grammar.terminals) if t.beyond in number}


def _first_bytes(grammar: Grammar) -> npt.NDArray[np.bool_]:
    """(n_terminals, 256) bool; the bytes that a terminal's lexemes begin with."""
    begins = np.zeros((grammar.n_terminals, 256), np.bool_)
    for terminal, dfa in enumerate(compile_terminals(grammar)):
        if dfa is not None:
            begins[terminal] = dfa.next_state[0] >= 0
    return begins


def _verbatim_set(
    grammar: Grammar, taken: frozenset[int], refused: list[int], begins: npt.NDArray[np.bool_]
) -> frozenset[int]:
    """The terminals that compete where the parser can take `taken`, some of them verbatim.

    Raises: GrammarError if the parser can take the layout's newline there too.
    """
    verbatim = sorted(taken & grammar.verbatim)
    if grammar.layout is not None and grammar.layout.newline in taken:
        name, newline = grammar.display_name(verbatim[0]), grammar.display_name(grammar.layout.newline)
        raise GrammarError(
            f"grammar {grammar.name}: in one state the parser may take both the verbatim terminal {name} and the layout's "
            f"newline {newline}, so no newline could be read there; put another terminal before the verbatim terminal"
        )
    first = begins[verbatim].any(axis=0)
    return taken - _silent(grammar) | {t for t in refused if not (first & begins[t]).any()}


def _joined(
    grammar: Grammar, sets: list[frozenset[int]], begins: npt.NDArray[np.bool_]
) -> dict[frozenset[int], frozenset[int]]:
    """For each set of competing terminals the mode that it belongs to, as the union of its sets.

    Greedy: each set joins the first mode that it agrees with. Two agree if at each byte the same
    terminals begin, or none of one. Raises: LimitError past MODE_LIMIT. Cost: O(sets * modes).
    """
    numbers: dict[bytes, int] = {}
    modes = np.full((0, 256), -1, np.int32)
    members: list[list[frozenset[int]]] = []
    for one in sets:
        order = np.array(sorted(one), np.int64)
        group_of_byte = np.full(256, -1, np.int32)
        for byte in np.flatnonzero(begins[order].any(axis=0)).tolist():
            beginning = order[begins[order, byte]].tobytes()
            group_of_byte[byte] = numbers.setdefault(beginning, len(numbers))
        agrees = ((modes == group_of_byte) | (modes < 0) | (group_of_byte < 0)).all(axis=1)
        if agrees.any():
            mode = int(agrees.argmax())
            modes[mode] = np.maximum(modes[mode], group_of_byte)
            members[mode].append(one)
        else:
            if len(modes) == MODE_LIMIT:
                raise _too_many_modes(grammar)
            modes = np.concatenate([modes, group_of_byte[None]])
            members.append([one])
    return {one: frozenset[int]().union(*mode) for mode in members for one in mode}


def _may_follow(
    grammar: Grammar,
    competing: tuple[frozenset[int], ...],
    of_state: npt.NDArray[np.int32],
    terminal_column: npt.NDArray[np.int32],
    accessing: npt.NDArray[np.int32],
) -> npt.NDArray[np.bool_]:
    """`Modes.may_follow`."""
    found = np.zeros((grammar.n_terminals, len(competing)), np.bool_)
    entered = accessing >= 0
    by_symbol = np.zeros((int(max(accessing.max(), terminal_column.max(initial=-1))) + 1, len(competing)), np.bool_)
    by_symbol[accessing[entered], of_state[entered]] = True
    is_used = terminal_column >= 0
    found[is_used] = by_symbol[terminal_column[is_used]]
    for terminal in sorted(grammar.ignored):
        found[terminal] |= [terminal in mode for mode in competing]
    layout = grammar.layout
    if layout is not None:
        # An indent or dedents may be on top of the parser's stack after a newline. In brackets it
        # is ignored.
        found[layout.newline] = found[[layout.newline, layout.indent, layout.dedent]].any(axis=0)
        found[layout.newline] |= [layout.newline in mode for mode in competing]
    return found


def _reserved(grammar: Grammar) -> frozenset[int]:
    """The literals that compete everywhere and the patterns that match them: `Grammar.reserved`."""
    if grammar.reserved == "none":
        return frozenset()
    rules = {(rule.lhs, rule.rhs) for rule in grammar.rules}
    uses: dict[int, list[tuple[int, tuple[int, ...], int]]] = {}
    for rule in grammar.rules:
        for dot, symbol in enumerate(rule.rhs):
            uses.setdefault(symbol, []).append((rule.lhs, rule.rhs, dot))

    def is_soft(literal: int, pattern: int) -> bool:
        return any((lhs, (*rhs[:i], pattern, *rhs[i + 1 :])) in rules for lhs, rhs, i in uses.get(literal, ()))

    every = [
        t for t in range(grammar.n_terminals) if not grammar.terminals[t].is_declared and t not in grammar.verbatim
    ]
    nfa = build_terminal_nfa(compile_terminals(grammar))
    names = [terminal.name for terminal in grammar.terminals]
    union = build_union_dfa(nfa, names, starts=[tuple(int(nfa.initial[t]) for t in every)])
    whole = {other: t for t, other in _beyond(grammar).items()}
    found: set[int] = set()
    for accepting in union.accepting:
        texts = {t: grammar.terminals[t].literal for t in accepting}
        patterns = [t for t, text in texts.items() if text is None]
        for literal, text in texts.items():
            if text is None or (grammar.reserved == "words" and not text.isidentifier()):
                continue
            for pattern in [whole.get(t, t) for t in patterns]:
                if not is_soft(literal, pattern):
                    found |= {literal, pattern}
    return frozenset(found)
