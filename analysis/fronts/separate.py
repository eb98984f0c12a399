"""Whether the terminals of a grammar can be told apart without a lexer's rules of precedence.

In: a grammar, and the same with what it ignores in its rules. Out: an expression for each terminal,
such that each text is a lexeme of one terminal and no lexeme can run on into the next one. Then any
way to lex reads the same texts.
"""

from __future__ import annotations

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.automata import from_pattern, without
from maskwright.analysis.fronts.competing import Competition
from maskwright.analysis.fronts.expressions import Expr, literal
from maskwright.analysis.fronts.lexicon import run_ons
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal
from maskwright.analysis.regex.dfa import concatenate, difference


def separate(grammar: Grammar, with_ignored: Grammar, language: str, is_lexed_alike: bool) -> list[Expr]:
    """The expressions of the terminals, by number.

    with_ignored : the grammar with what it ignores in its rules. language : for messages.
    is_lexed_alike : whether the language takes the longest match, too, of the terminals that can
    come; then lexemes may run on, but not without coming to an end, and only where our lexer has
    the same terminals compete (`competing`).

    Raises: GrammarError, which names two terminals, if they compete and `language` cannot say which
        wins; GrammarError for terminals that no rule takes; LimitError if a pattern is too large.
    """
    used = {symbol for rule in grammar.rules for symbol in rule.rhs} | grammar.ignored
    found: list[Expr] = []
    for number, terminal in enumerate(grammar.terminals):
        if number not in used:
            raise GrammarError(
                f"grammar {grammar.name}: terminal {terminal.name} is in no rule, so that texts with it are refused; "
                f"{language} cannot say that"
            )
        if terminal.lengths is not None:
            raise GrammarError(
                f"grammar {grammar.name}: the length of terminal {terminal.name} is bounded, which {language} cannot say; write the "
                "bound into its pattern"
            )
        plain = terminal.literal is not None and "i" not in terminal.flags
        found.append(literal(str(terminal.literal)) if plain else from_pattern(str(terminal.pattern), terminal.flags))
    names = [grammar.display_name(t) for t in range(grammar.n_terminals)]
    nfa = build_terminal_nfa([compile_terminal(terminal, where=grammar.name) for terminal in grammar.terminals])
    union = build_union_dfa(nfa, names)
    rank = terminal_rank(grammar.terminals)
    losses: dict[int, set[int]] = {}
    for accepting in union.accepting:
        winner, *others = sorted(accepting, key=rank.__getitem__) or [-1]
        for other in others:
            if grammar.lexing != "longest":
                raise GrammarError(
                    f"grammar {grammar.name}: terminals {names[winner]} and {names[other]} have texts in common, and {language} cannot "
                    "say which of them is meant where both may come; make them differ, or load the grammar with lexing='longest'"
                )
            losses.setdefault(other, set()).add(winner)
    for loser, winners in losses.items():
        for winner in sorted(winners):
            found[loser] = without(found[loser], found[winner])
    for number, expr in enumerate(found):
        if expr.is_never:
            raise GrammarError(
                f"grammar {grammar.name}: terminal {names[number]} always loses against others; take it out"
            )
    automata = [compile_pattern(str(expr.pattern)) for expr in found]
    nfa = build_terminal_nfa(automata)
    union = build_union_dfa(nfa, names)
    ending = [min(accepting, default=-1) for accepting in union.accepting]
    follows = neighbours(reduce(with_ignored))
    for t in sorted(grammar.ignored):
        if difference(concatenate(automata[t], automata[t]), automata[t]).is_empty:
            # Lexemes of it in a row are one lexeme of it, so none need stand in a row.
            follows[t] &= ~(1 << t)
    competition: Competition | None = None
    for run_on in run_ons(nfa, union, ending, follows):
        if is_lexed_alike:
            competition = competition or Competition(grammar)
            if competition.is_alike(run_on, union.accepting[run_on.state]):
                continue
        raise GrammarError(
            f"grammar {grammar.name}: terminals compete: a lexeme of {names[run_on.terminal]} may run on into what follows it, as one "
            f"of {names[run_on.longer[0]]}; the longest match decides here, and {language} cannot say so; put something between them"
        )
    return found
