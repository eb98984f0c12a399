r"""Terminals -> byte automata. In: the patterns of a `Grammar`. Out: a minimal `Dfa` for each.

The automata read UTF-8. The language of a pattern P is

    L(P) = { s : there is a text t such that P can match exactly s at the start of s t }

with these readings, named where they differ from what `re.match` returns:

- *Alternatives and greedy quantifiers* are free. A lexer takes the longest match over L, so L
  contains every s that some order of trying would find. `re` takes the first alternative that
  matches: of ``a|ab`` it never returns ``ab``, but L has both.
- *Lazy quantifiers* stop at the first position from which the remaining pattern can match
  (`rewrite`). So a string terminal ``".*?"`` has ``"a"`` but not ``"a"+"b"``, though fullmatch
  takes both.
- *Look-behinds* see the text from the lexeme's start only. Before it there is nothing: ``^`` holds
  there, and ``\b`` sees a non-word.
- *Look-aheads* (also ``$``, ``\b``, ``\Z`` and the end of a possessive quantifier) may reach past
  the lexeme's end, where an automaton of the lexeme cannot see. Within the lexeme they are checked.
  Beyond it s counts if *some* t would satisfy them: ``0(?![1-9])`` has ``0``. Before which bytes a
  lexeme is none says `refused_before`, and the lexer obeys where it can (`messages.unheld`).
- Strings with surrogates have no UTF-8 form and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from maskwright.analysis.errors import GrammarError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Lengths, Terminal
from maskwright.analysis.kept import Kept
from maskwright.analysis.lexing.messages import check_language, excerpt, name_of, naming
from maskwright.analysis.marks import PART_FLAGS, mark
from maskwright.analysis.regex.bounds import check_least
from maskwright.analysis.regex.charset import LAST
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa, difference, intersect
from maskwright.analysis.regex.machine import determinise
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.positions import ClassRows
from maskwright.analysis.regex.rewrite import resolve
from maskwright.analysis.regex.spell import in_bytes
from maskwright.analysis.regex.tree import looks_ahead_first

Refused = tuple[tuple[tuple[int, ...], Dfa], ...]
"""Bytes, 256 for the end of the text, and the lexemes that are none before them."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    """An automaton, and the look-aheads that can be open at the end of a lexeme.

    refused : the lexemes that these refuse. is_at_once : as `is_refused_at_once`.
    """

    dfa: Dfa
    beyond: tuple[str, ...] = ()
    refused: Refused = ()
    is_at_once: bool = False

    @property
    def automata(self) -> tuple[Dfa, ...]:
        """What it holds for most of its bytes, for `Kept`."""
        return self.dfa, *[dfa for _, dfa in self.refused]


@Kept
def _compile(pattern: str, flags: str, max_states: int) -> _Compiled:
    tree = parse(pattern, flags)
    check_least(tree, max_states)
    found, looks = determinise(resolve(tree, max_states), max_states, looks_beyond=True)
    beyond = tuple([source.text for source in sorted(looks, key=lambda source: (source.start, source.text))])
    refused = _refused(found, max_states) if beyond else ()
    return _Compiled(in_bytes(found, max_states), beyond, refused, looks_ahead_first(tree))


def _refused(found: ClassRows, max_states: int) -> Refused:
    """A byte counts if a lexeme is refused before *all* characters that begin with it."""
    begun: dict[int, set[int]] = {256: {len(found.rows[0])}}  # byte -> the classes of the characters that it begins
    for low, high, number in zip(found.bounds, [*found.bounds[1:], LAST + 1], found.class_of, strict=True):
        for byte in range(chr(low).encode()[0], chr(high - 1).encode()[0] + 1) if number >= 0 else ():
            begun.setdefault(byte, set()).add(number)
    before: dict[tuple[bool, ...], list[int]] = {}  # whether each state is refused -> the bytes
    for byte, classes in sorted(begun.items()):
        before.setdefault(tuple([classes <= each for each in found.refused]), []).append(byte)
    some = [(tuple(each), found._replace(is_accepting=[*states])) for states, each in before.items() if any(states)]
    return tuple([(each, in_bytes(rows, max_states)) for each, rows in some])


def compile_pattern(pattern: str, flags: str = "", *, max_states: int = MAX_STATES) -> Dfa:
    r"""The automaton of L(pattern), as defined in the module, over UTF-8.

    flags : letters of ``aimsux``, as in ``(?...)``.
    max_states : the most states of each automaton on the way.

    Raises: TerminalError if `re` refuses the syntax or the pattern has no regular reading;
        LimitError if there are more than `max_states` states or groups are nested too deeply.
    Cost: that of the subset construction. The first ``\w`` of a process takes a scan of Unicode.

    Example:
        >>> dfa = compile_pattern(r'".*?(?<!\\)"')
        >>> dfa.matches(b'"a"'), dfa.matches(b'"a"+"b"')
        (True, False)
    """
    with naming(f"pattern {excerpt(pattern)}", pattern):
        return _compile(pattern, flags, max_states).dfa


def compile_terminal(terminal: Terminal, *, where: str = "", max_states: int = MAX_STATES) -> Dfa:
    """The automaton of L for a terminal's pattern or literal. where : the grammar file's name.

    Raises: as `compile_pattern`; TerminalError if it is declared, or matches nothing or b"".
    """
    return _compile_terminal(terminal, where, max_states).dfa


def lookahead_beyond_end(terminal: Terminal, *, where: str = "", max_states: int = MAX_STATES) -> tuple[str, ...]:
    r"""The look-aheads that can be open at the end of an accepted lexeme, in the pattern's order.

    Without any, `re` matches wherever the automaton accepts a prefix of the text.

    where, max_states, Raises : as `compile_terminal`.
    """
    return _compile_terminal(terminal, where, max_states).beyond


def refused_before(terminal: Terminal) -> Refused:
    r"""The lexemes of a terminal that are none before some bytes, whatever follows these.

    Raises: as `compile_terminal`.

    Example:
        >>> ((some, lexemes),) = refused_before(Terminal("IF", r"if\b", "a"))
        >>> bytes(some)[:11], lexemes.matches(b"if")
        (b'0123456789A', True)
    """
    return _compile_terminal(terminal, "", MAX_STATES).refused


def is_refused_at_once(terminal: Terminal) -> bool:
    """Whether its look-aheads stand in front, as in ``(?!if)[a-z]+``: all lexemes fail them."""
    return _compile_terminal(terminal, "", MAX_STATES).is_at_once


@lru_cache(maxsize=8)
def compile_terminals(grammar: Grammar) -> tuple[Dfa | None, ...]:
    """The automata of all terminals, by number; None for declared ones. Raises: as for one of them.

    PERF: kept for the last grammars, since a store asks for them several times. Automata of more
    bytes than `_compile` keeps would be compiled each time.
    """
    return tuple([None if t.is_declared else compile_terminal(t, where=grammar.name) for t in grammar.terminals])


def compile_lexemes(grammar: Grammar) -> tuple[Dfa | None, ...]:
    """As `compile_terminals`, but the layout's newline by `with_line_feed`, or a GrammarError."""
    automata = list(compile_terminals(grammar))
    if grammar.layout is not None:
        newline = grammar.layout.newline
        automata[newline] = with_line_feed(automata[newline])
        if automata[newline] is None:
            where = f"grammar {grammar.name}: the layout's newline {grammar.display_name(newline)}"
            raise GrammarError(rf"{where} matches no text with a line feed; write it as in (\r?\n[\t ]*)+")
    return tuple(automata)


def with_line_feed(newline: Dfa | None) -> Dfa | None:
    """The automaton of those texts of a layout's newline that have a line feed, and so a column.

    None if no text has one, or `newline` is None (declared). Raises: LimitError past MAX_STATES.
    """
    found = newline and intersect(newline, compile_pattern(r".*\n.*", "s"))
    return None if found is None or found.is_empty else found


@Kept
def length_automaton(lengths: Lengths) -> Dfa:
    """The texts of so many characters."""
    most = "" if lengths.most is None else lengths.most
    return compile_pattern(rf".{{{lengths.least},{most}}}", "s")


def _compile_terminal(terminal: Terminal, where: str, max_states: int) -> _Compiled:
    name = name_of(terminal, where)
    if terminal.pattern is None:
        raise TerminalError(f"{name} is declared without a pattern, so there is nothing to compile")
    if terminal.flags == PART_FLAGS:
        return _Compiled(Dfa.literal(mark(int(terminal.pattern))))
    with naming(name, terminal.pattern):
        literal = terminal.literal
        if literal is not None and "i" not in terminal.flags and literal.isprintable():  # so without surrogates
            compiled = _Compiled(Dfa.literal(literal.encode("utf-8")))
        else:
            compiled = _compile(terminal.pattern, terminal.flags, max_states)
        if terminal.lengths is not None:
            within = length_automaton(terminal.lengths)
            bounded = (difference if terminal.beyond else intersect)(compiled.dfa, within, max_states=max_states)
            refused = tuple([(some, intersect(bounded, dfa)) for some, dfa in compiled.refused])
            compiled = replace(compiled, dfa=bounded, refused=refused)
    check_language(name, terminal, compiled.dfa)
    return compiled
