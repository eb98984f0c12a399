"""Grammars written in other engines' languages, where these can say the same.

A lexer's longest match cannot be said in GBNF, nor what happens where a text is a lexeme of two
terminals in llguidance's dialect. Both are written only if it makes no difference: if no lexeme can
run on into what may follow it (condition (b) of `scannerless`), and if each text is a lexeme of one
terminal: then any way to lex reads the same texts. Where all terminals compete, a terminal that
loses against others is written without their texts. Otherwise the error names the two terminals.

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

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from maskwright.analysis.arguments import need_type
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.expressions import Expr, from_pattern, literal, without
from maskwright.analysis.fronts.lexicon import RunOn, run_ons
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar.grammar import Grammar, Rule
from maskwright.analysis.grammar.normalise import normalise, nullable_symbols, reduce
from maskwright.analysis.graphs import reachable
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import terminal_rank
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal
from maskwright.analysis.lr.acyclic import parsed_grammar
from maskwright.analysis.lr.automaton import build_automaton
from maskwright.analysis.lr.lookaheads import relations
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.regex.charset import Ranges, complement
from maskwright.analysis.regex.dfa import concatenate, difference

MOST_REPETITIONS = 2_000
"""The largest number of a repetition that llama.cpp takes."""


@on_own_stack
def to_gbnf(grammar: Grammar) -> str:
    r"""A grammar in GBNF, for llama.cpp.

    Recursion on the left is rewritten, because llama.cpp refuses it.

    Raises: GrammarError if GBNF cannot say the same, with the reason: indentation, verbatim or
        refused terminals, two terminals that compete, left recursion that is not direct, or a
        repetition of more than MOST_REPETITIONS. LimitError if a pattern becomes too large.

    >>> from maskwright.analysis.loading import parse_grammar
    >>> print(to_gbnf(parse_grammar('start: "[" start "]" | /[0-9]+/')), end="")
    root ::= "[" root "]" | T2
    T2 ::= [0-9]+
    """
    need_type("grammar", grammar, Grammar, "a Grammar", GrammarError)
    expressions = _expressions(grammar, "GBNF", False)
    grammar = _with_ignored(grammar)
    grammar = normalise(grammar)
    _check_left_recursion(grammar)
    return "\n".join(_GBNF.rules(grammar, expressions, _names(grammar, "root"))) + "\n"


@on_own_stack
def to_llguidance(grammar: Grammar) -> str:
    """A grammar in llguidance's Lark dialect.

    Raises: GrammarError if it cannot say the same, with the reason: indentation, verbatim or
        refused terminals, or two terminals that compete, unless both languages lex by context and
        the longest match decides alike. LimitError if a pattern becomes too large.

    >>> from maskwright.analysis.loading import parse_grammar
    >>> grammar = parse_grammar('start: "[" start "]" | N\\nN: /[0-9]+/\\n%ignore " "')
    >>> print(to_llguidance(grammar), end="")
    %llguidance {"allow_initial_skip": true}
    start: main IGNORED?
    main: "[" main "]" | N
    N: /[0-9]+/
    IGNORED: /\\x{20}/
    %ignore IGNORED
    """
    need_type("grammar", grammar, Grammar, "a Grammar", GrammarError)
    expressions = _expressions(grammar, "llguidance's dialect", grammar.lexing == "contextual")
    grammar = reduce(grammar)
    names = _names(grammar, "main" if grammar.ignored else "start")
    lines = []
    if grammar.ignored:
        # llguidance ignores nothing behind a text to which nothing can be added.
        lines += ['%llguidance {"allow_initial_skip": true}', f"start: {names[grammar.start]} IGNORED?"]
    lines += _LLGUIDANCE.rules(grammar, expressions, names)
    if grammar.ignored:
        patterns = (_LLGUIDANCE.terminal(expressions[t]) for t in sorted(grammar.ignored))
        lines += [f"IGNORED: {' | '.join(patterns)}", "%ignore IGNORED"]
    return "\n".join(lines) + "\n"


def _expressions(grammar: Grammar, language: str, is_lexed_alike: bool) -> Sequence[Expr]:
    """The terminals' expressions, if the language can say the same as the grammar."""
    for is_there, what in (
        (grammar.layout is not None, "indentation"),
        (bool(grammar.verbatim), "verbatim terminals"),
        (grammar.conflicts == "shift", "that conflicts are decided by shifting"),
    ):
        if is_there:
            raise GrammarError(f"grammar {grammar.name}: {language} cannot say {what}")
    return separate(grammar, _with_ignored(grammar), language, is_lexed_alike)


def _with_ignored(grammar: Grammar) -> Grammar:
    """The grammar with what is ignored in its rules: at the beginning and behind each terminal."""
    if not grammar.ignored:
        return grammar
    between = grammar.n_terminals + grammar.n_nonterminals
    rules = [
        Rule(rule.lhs, tuple(new for s in rule.rhs for new in ((s, between) if s < grammar.n_terminals else (s,))))
        for rule in grammar.rules
    ]
    rules += [Rule(between, ()), *(Rule(between, (t, between)) for t in sorted(grammar.ignored))]
    rules.append(Rule(between + 1, (between, grammar.start)))
    names = list(grammar.nonterminals)
    for wanted in ("ignored", "whole"):
        names.append(wanted if wanted not in names else f"{wanted} ({len(names)})")
    return replace(grammar.with_rules(tuple(names), tuple(rules), between + 1), ignored=frozenset())


def _check_left_recursion(grammar: Grammar) -> None:
    """Raises GrammarError if a rule can begin with itself, which llama.cpp refuses."""
    nullable = nullable_symbols(grammar)
    begins: dict[int, set[int]] = {lhs: set() for lhs in grammar.rules_of}
    for rule in grammar.rules:
        for symbol in rule.rhs:
            if grammar.is_nonterminal(symbol):
                begins[rule.lhs].add(symbol)
            if symbol not in nullable:
                break
    for lhs in begins:
        if lhs in reachable(begins[lhs], begins.__getitem__):
            raise GrammarError(
                f"grammar {grammar.name}: rule {grammar.symbol_name(lhs)!r} can begin with itself through other rules, "
                "and llama.cpp refuses left recursion; write it with recursion on the right"
            )


def _names(grammar: Grammar, start: str) -> dict[int, str]:
    """A name for each symbol that all these languages take; of terminals in upper case."""
    found = {grammar.start: start}
    taken = {start, "start", "IGNORED"}
    for symbol in range(grammar.n_terminals + grammar.n_nonterminals):
        if symbol == grammar.start:
            continue
        is_terminal = symbol < grammar.n_terminals
        own = grammar.symbol_name(symbol)
        plain = re.sub(r"[^a-z0-9]+", "-", own.lower()).strip("-")
        if own.startswith("__") and is_terminal:
            plain = f"t{symbol}"
        if not plain[:1].isalpha():
            plain = f"{'t' if is_terminal else 'r'}{symbol}-{plain}".strip("-")
        name = unnumbered = plain.upper() if is_terminal else plain
        while name in taken:
            name = f"{unnumbered}-{symbol}" if name == unnumbered else f"{name}-"
            name = name if not name.endswith("-") else f"{name}{symbol}"
        taken.add(name)
        found[symbol] = name
    return found


class _Gbnf:
    """How GBNF writes rules, and expressions as elements in a row."""

    defines, between, empty, anything = " ::= ", " ", '""', "."

    def rules(self, grammar: Grammar, expressions: Sequence[Expr], names: Mapping[int, str]) -> Iterator[str]:
        """The lines of the rules, then of the terminals that they name; texts stand in rules."""
        named: dict[int, None] = {}
        for lhs, rules in grammar.rules_of.items():
            options = []
            for rule in rules:
                symbols = []
                for symbol in rule.rhs:
                    text = expressions[symbol].text if symbol < grammar.n_terminals else None
                    symbols.append(names[symbol] if text is None else self.literal(text))
                    if symbol < grammar.n_terminals and text is None:
                        named[symbol] = None
                options.append(" ".join(symbols) or '""')
            yield f"{names[lhs]}{self.defines}{' | '.join(options)}"
        for symbol in named:
            yield f"{names[symbol]}{self.defines}{self.terminal(expressions[symbol])}"

    def terminal(self, expr: Expr) -> str:
        """The body of a terminal's definition."""
        return self.written(expr)

    def literal(self, text: str) -> str:
        """A text in quotes."""
        return '"' + "".join(self.character(ord(c), '"\\') for c in text) + '"'

    def unit(self, expr: Expr) -> str | None:
        """An expression that can be repeated as it is; None if it needs parentheses."""
        if expr.text is not None:
            return self.literal(expr.text)
        return self.of_class(expr.ranges) if expr.kind == "class" else None

    def written(self, expr: Expr) -> str:
        """An expression, without parentheses around it."""
        if (unit := self.unit(expr)) is not None:
            return unit
        if expr.kind == "sequence":
            parts = (f"({self.written(part)})" if part.kind == "choice" else self.written(part) for part in expr.parts)
            return self.between.join(parts) or self.empty
        if expr.kind == "choice":
            return f"{self.between}|{self.between}".join(map(self.written, expr.parts))
        return (self.unit(expr.parts[0]) or f"({self.written(expr.parts[0])})") + self.count(expr.least, expr.most)

    def count(self, least: int, most: int | None) -> str:
        """What says how often something is repeated. Raises: GrammarError if that is too often."""
        if max(least, most or 0) > MOST_REPETITIONS:
            raise GrammarError(
                f"a repetition of up to {max(least, most or 0)} is more than the {MOST_REPETITIONS} of llama.cpp"
            )
        return _count(least, most)

    def of_class(self, ranges: Ranges) -> str:
        """A set of characters; negated if that is shorter."""
        others = complement(ranges)
        if not others:
            return self.anything
        sign, pairs = ("^", others) if len(others) < len(ranges) else ("", ranges)
        members = (self.character(a) + ("" if a == b else "-" + self.character(b)) for a, b in pairs)
        return f"[{sign}{''.join(members)}]"

    def character(self, code: int, escaped: str = "]\\[^-") -> str:
        """A character of a text or set, as itself or as an escape that all these engines know."""
        character = chr(code)
        if character in escaped or not (character.isprintable() and character.isascii()):
            return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
        return character


class _Llguidance(_Gbnf):
    """How llguidance's dialect writes rules, and expressions as regular expressions of Rust."""

    defines, between, empty, anything = ": ", "", "", "(?s:.)"

    def terminal(self, expr: Expr) -> str:
        return f"/{self.written(expr)}/"

    def literal(self, text: str) -> str:
        """A text in quotes, with the escapes of JSON."""
        return json.dumps(text).replace("\x7f", "\\u007f")

    def unit(self, expr: Expr) -> str | None:
        if expr.kind != "class":
            return None
        return self.character(ord(expr.text)) if expr.text is not None else self.of_class(expr.ranges)

    def count(self, least: int, most: int | None) -> str:
        return _count(least, most)

    def character(self, code: int, escaped: str = "") -> str:
        character = chr(code)
        return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"


def _count(least: int, most: int | None) -> str:
    sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if sign is not None:
        return sign
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


_GBNF, _LLGUIDANCE = _Gbnf(), _Llguidance()


# -- terminals that can be told apart


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
