"""Whether the terminals of a grammar can be told apart without a lexer's rules of precedence.

In: a grammar, and the same with what it ignores in its rules. Out: an expression for each terminal,
such that each text is a lexeme of one terminal and no lexeme can run on into the next one. Then any
way to lex reads the same texts.

A language that lexes by context may let lexemes run on, if there the same terminals compete.
A contextual lexer of ours asks the LALR parser which terminals compete (`lexing/modes.py`). Its
states merge contexts, and with them what may follow. An Earley parser, as llguidance has one, knows
exactly what can come. So where t can come, u may compete with it here and not there.

What can come in a state s is a terminal of Read(s), on all stacks; else a terminal of Follow(p, A)
for a rule of A that ends in s and began in p (`lr/lookaheads.py`). Follow(p, A) is Read(state after
A), and Follow(p', B) for the rules of B that A may end, which began in p'. Each real stack takes
one of these ways, until its terminal is read. So u can come on all stacks on which t can if on each
way u is read where t is, or sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.automata import from_pattern, without
from maskwright.analysis.fronts.expressions import Expr, literal
from maskwright.analysis.fronts.lexicon import RunOn, run_ons
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.graphs import reachable
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.lookaheads import relations
from maskwright.analysis.regex.dfa import concatenate, difference


def separate(grammar: Grammar, with_ignored: Grammar, language: str, is_lexed_alike: bool) -> list[Expr]:
    """The expressions of the terminals, by number.

    with_ignored : the grammar with what it ignores in its rules. language : for messages.
    is_lexed_alike : whether the language takes the longest match, too, of the terminals that can
    come; then lexemes may run on, but not without coming to an end, and only where our lexer has
    the same terminals compete (`Competition`).

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


class Competition:
    """Which terminals compete in the states of a grammar's LALR parser, and where they can come."""

    def __init__(self, grammar: Grammar) -> None:
        self._ignored = _bits(grammar.ignored)
        automaton = build_automaton(parsed_grammar(grammar, "all"))
        self._read, self._behind, self._includes, self._follow, lookback = relations(automaton)
        self._lookback: list[list[int]] = [[] for _ in self._read]
        for ends, heads in lookback:
            for state, head in zip(ends.tolist(), heads.tolist(), strict=True):
                self._lookback[state].append(head)
        self._known: dict[tuple[int, int], bool] = {}

    @cached_property
    def sets(self) -> tuple[int, ...]:
        """The distinct sets of terminals that compete in a state, as bits."""
        found = []
        for read, ways in zip(self._read, self._lookback, strict=True):
            for way in ways:
                read |= self._follow[way]
            found.append(read | self._ignored)
        return tuple(dict.fromkeys(found))

    def is_alike(self, run_on: RunOn, accepting: Iterable[int]) -> bool:
        """Whether the longest match decides a run-on alike by LALR states and by what can come.

        accepting : the terminals of which the lexeme is one behind the run-on's byte. Where the
            lexeme may go on, it must be one, since only our lexer backs up.
        """
        longer, ends = _bits(run_on.longer), _bits(accepting)
        for competing in self.sets:
            if competing >> run_on.terminal & 1 and competing & longer and not competing & ends:
                return False
        return all(self._comes_with(run_on.terminal, other) for other in run_on.longer)

    def _comes_with(self, first: int, second: int) -> bool:
        """Whether `second` can come wherever `first` can and `second` competes with it."""
        key = first, second
        if key not in self._known:
            self._known[key] = first == second or bool(self._ignored >> second & 1) or self._always(first, second)
        return self._known[key]

    def _always(self, first: int, second: int) -> bool:
        is_ignored = bool(self._ignored >> first & 1)
        for read, ways in zip(self._read, self._lookback, strict=True):
            if read >> second & 1 or not any(self._follow[way] >> second & 1 for way in ways):
                continue  # it can come on all stacks, or does not compete
            if is_ignored or read >> first & 1 or not self._on_ways(ways, first, second):
                return False
        return True

    def _on_ways(self, ways: Iterable[int], first: int, second: int) -> bool:
        """Whether on each way on which `first` is read `second` is, there or sooner."""

        def further(way: int) -> Sequence[int]:
            is_read = self._read[self._behind[way]] >> second & 1
            return () if is_read or not self._follow[way] >> first & 1 else self._includes[way]

        reads = (self._read[self._behind[way]] for way in reachable(ways, further))
        return not any(read >> first & 1 and not read >> second & 1 for read in reads)


def _bits(terminals: Iterable[int]) -> int:
    return sum(1 << terminal for terminal in terminals)
