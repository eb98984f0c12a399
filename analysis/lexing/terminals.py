r"""Terminals -> byte automata. In: the patterns of a `Grammar`. Out: one minimal `Dfa` each, over UTF-8.

The language of a pattern P is

    L(P) = { s : there is a text t such that P can match exactly s at the start of s t }

with these readings, named where they differ from what `re.match` returns:

- *Alternatives and greedy quantifiers* are free: a lexer takes the longest match over L, so every s that some order
  of trying would find is in L. `re` takes the first alternative that matches: of ``a|ab`` it never returns ``ab``,
  but L has both.
- *Lazy quantifiers* stop at the first place from which all the rest of the pattern can match (`rewrite`). So a string
  terminal ``".*?"`` has ``"a"`` but not ``"a"+"b"``, though fullmatch takes both.
- *Look-behinds* see the text from the lexeme's start only; before it there is nothing (``^`` holds there, ``\b`` sees a
  non-word).
- *Look-aheads* (``$``, ``\b``, ``\Z`` and the end of a possessive quantifier too) may reach past the lexeme's end,
  where an automaton of the lexeme cannot see. Within the lexeme they are checked; beyond it s counts if *some* t
  would satisfy them. So L lacks no lexeme, but a lexer that knows L alone accepts one that the following text
  forbids: ``0(?![1-9])`` before ``1``. `lookahead_beyond_end` names the look-aheads for which this can happen.
- Strings with surrogates have no UTF-8 form and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from maskwright.analysis.errors import GrammarError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.lexing.messages import check_language, excerpt, name_of, naming
from maskwright.analysis.regex.determinise import determinise
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa, intersect
from maskwright.analysis.regex.parse import parse
from maskwright.analysis.regex.rewrite import resolve
from maskwright.analysis.regex.utf8 import to_bytes


@dataclass(frozen=True, slots=True)
class _Compiled:
    dfa: Dfa
    beyond: tuple[str, ...]


@lru_cache(maxsize=4096)
def _compile(pattern: str, flags: str, max_states: int) -> _Compiled:
    dfa = determinise(resolve(parse(pattern, flags), max_states), max_states)
    beyond = sorted(dfa.beyond, key=lambda source: (source.start, source.text))
    return _Compiled(Dfa.minimal(*to_bytes(dfa, max_states)), tuple([source.text for source in beyond]))


def compile_pattern(pattern: str, flags: str = "", *, max_states: int = MAX_STATES) -> Dfa:
    r"""L(pattern), as above, over the UTF-8 encodings.

    flags : letters of ``aimsux``, as in ``(?...)``.

    Raises TerminalError for syntax that `re` refuses and for what has no regular reading, LimitError beyond
    `max_states`.
    Cost: the subset construction's, exponential at worst but stopped at the limit; the first ``\w`` of a process
    takes a scan of Unicode.

    Example:
        >>> dfa = compile_pattern(r'".*?(?<!\\)"')
        >>> dfa.matches(b'"a"'), dfa.matches(b'"a"+"b"')
        (True, False)
    """
    with naming(f"pattern {excerpt(pattern)}", pattern):
        return _compile(pattern, flags, max_states).dfa


def compile_terminal(terminal: Terminal, *, where: str = "", max_states: int = MAX_STATES) -> Dfa:
    """L of a terminal's pattern or literal.

    where : the grammar file's name, for messages.

    Raises TerminalError and LimitError as `compile_pattern`; TerminalError too for a terminal that matches nothing or
    the empty string, and for a declared one.
    """
    return _compile_terminal(terminal, where, max_states).dfa


def lookahead_beyond_end(terminal: Terminal, *, where: str = "", max_states: int = MAX_STATES) -> tuple[str, ...]:
    r"""The look-aheads of the pattern that can be open at the end of an accepted lexeme, in the pattern's order.

    Each of them can make `compile_terminal` accept a lexeme that `re` refuses before some following texts. An empty
    tuple is a proof that `re` matches wherever the automaton accepts a prefix of the text. Raises as
    `compile_terminal`.

    Example:
        >>> lookahead_beyond_end(Terminal("ZERO", "0+(?![1-9])"))
        ('(?![1-9])',)
    """
    return _compile_terminal(terminal, where, max_states).beyond


def compile_terminals(grammar: Grammar) -> tuple[Dfa | None, ...]:
    """The automata of all terminals by number; None for declared ones. Raises as `compile_terminal`."""
    return tuple(
        [
            None if terminal.is_declared else compile_terminal(terminal, where=grammar.name)
            for terminal in grammar.terminals
        ]
    )


def compile_lexemes(grammar: Grammar) -> tuple[Dfa | None, ...]:
    """As `compile_terminals`, but the layout's newline by `with_line_feed`.

    Raises as `compile_terminals`, and GrammarError for a newline without a text that has one.
    """
    automata = list(compile_terminals(grammar))
    if grammar.layout is not None:
        newline = grammar.layout.newline
        automata[newline] = with_line_feed(automata[newline])
        if automata[newline] is None:
            raise GrammarError(
                f"grammar {grammar.name}: the layout's newline {grammar.display_name(newline)} matches no text with a line feed; "
                r"write it as in (\r?\n[\t ]*)+"
            )
    return tuple(automata)


def with_line_feed(newline: Dfa | None) -> Dfa | None:
    """Of the texts of a layout's newline those with a line feed, since others have no column; None if there are none."""
    found = newline and intersect(newline, compile_pattern(r"[\s\S]*\n[\s\S]*"))
    return None if found is None or found.is_empty else found


def _compile_terminal(terminal: Terminal, where: str, max_states: int) -> _Compiled:
    name = name_of(terminal, where)
    if terminal.pattern is None:
        raise TerminalError(f"{name} is declared without a pattern, so there is nothing to compile")
    with naming(name, terminal.pattern):
        literal = terminal.literal
        if literal is not None and "i" not in terminal.flags and literal.isprintable():  # so without surrogates
            compiled = _Compiled(Dfa.literal(literal.encode("utf-8")), ())
        else:
            compiled = _compile(terminal.pattern, terminal.flags, max_states)
    check_language(name, terminal, compiled.dfa)
    return compiled
