r"""llguidance's Lark dialect: a text to a `Grammar`.

Rules have lower-case names and are context-free; terminals have upper-case names, and texts and
patterns in rules are terminals too. A terminal is matched as a whole, by Rust's regular expressions
(`rust_regex`), with ``&`` for and, ``~`` for not, and ``%regex {"substring_...": ...}``. Patterns
cannot be lazy.

llguidance lexes by context: of the terminals that its parser can take, and of what is ignored, the
longest match counts. Our contextual lexing does the same; these points are made alike:

- where a text is a lexeme of several terminals, all of them are followed. We lex it as one
  terminal, which stands in the rules for each of them; for two terminals of which neither has all
  texts of the other, a terminal of their common texts is made.
- what is ignored wins over a terminal with the same text. It cannot begin a text, unless
  ``%llguidance {"allow_initial_skip": true}`` says so; nor does it stand behind a text to which
  nothing can be added. So it is a terminal of the rules here.

A rule that is `lazy`, or has `stop` or `suffix`, is one terminal, whose shortest text counts
(`llguidance_rules`). The text of `stop` is part of the text here, as it is of what the model
writes; llguidance hides it afterwards.

Three differences remain:

- Where a lexeme fails behind a place where it could have ended, llguidance refuses the text, and we
  back up, as Lark does: with ``"." | ".."`` and ``"..."`` the text ``..x`` has two lexemes here.
- What llguidance's parser can take is known to it exactly. We know it as an LALR parser does, which
  may let more terminals compete.
- That nothing can be added to a text must be provable from the rules (`neighbours`). Else what is
  ignored may stand at the end of a text here.

Source: llguidance, docs/syntax.md, parser/src/lark and parser/src/earley/lexer.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import EmptyLanguageError, GrammarError, LimitError
from maskwright.analysis.fronts.assembly import (
    TERMINAL,
    HostGrammar,
    assemble,
    lower,
    part_terminals,
    without_unused,
)
from maskwright.analysis.fronts.expressions import Expr, automaton_of, choice, in_both, non_empty
from maskwright.analysis.fronts.llguidance_rules import Rules, Terminals, cut_by_lazy
from maskwright.analysis.fronts.llguidance_syntax import Document, read_document
from maskwright.analysis.fronts.neighbours import is_prefix_free, last_symbols
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Lexing, Rule, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce
from maskwright.analysis.lexing.terminal_nfa import build_terminal_nfa, build_union_dfa
from maskwright.analysis.lr.splits import default_conflicts
from maskwright.analysis.nesting import on_own_stack


@on_own_stack
def parse_llguidance(text: str, name: str = "<llguidance>", lexing: Lexing = "contextual") -> Grammar:
    r"""The grammar of a text in llguidance's Lark dialect.

    name : the grammar's name, which error messages show.
    lexing : "contextual", as in llguidance; or "longest", by which all terminals compete
        everywhere. Then ``intx`` is one name even where only ``int`` could come.

    Raises: GrammarError, with the place, for bad syntax, an undefined name, a name defined twice,
    and for what cannot be said here: parametric rules, look-arounds, `max_tokens`, and other
    languages inside, which `read_llguidance` of `analysis.dialects` reads; GrammarError if several
    parses of one text would need different lexers; EmptyLanguageError if `start` has no finite
    text; LimitError if repetitions unfold to too many rules, or terminals to too many states.

    >>> print(parse_llguidance('start: "a" start | /[0-9]+/'))
    <Grammar <llguidance>: 2 terminals, 1 nonterminals, 2 rules, start 'start'>
    """
    reader = Reader(text, name)
    return host_grammar(reader, read_document(reader), lexing).alone()


def host_grammar(reader: Reader, document: Document, lexing: Lexing) -> HostGrammar:
    """The grammar of a document, in which other languages are marks.

    reader : of the text, for messages.

    Raises: as `parse_llguidance`.
    """
    if lexing not in ("contextual", "longest"):
        raise GrammarError(f"lexing is {clip(lexing)}; expected 'contextual' or 'longest'")
    if "start" not in document.rules:
        raise reader.error("there is no rule 'start', where the texts begin", document.at)
    terminals = Terminals(reader, document)
    rules = Rules(reader, document, terminals)
    used = rules.reachable("start")
    ignored = choice(non_empty(terminals.alternatives(one.body)) for one in document.ignored)
    lowered = lower(used, frozenset(), reader.name)
    expressions = cut_by_lazy(reader, rules, lowered, ignored)
    names = list(rules.terminals)
    if not ignored.is_never:
        expressions.append(ignored)
        names.append("%ignore")
    skip = None if ignored.is_never else len(expressions) - 1
    found = disjoint(expressions, skip, names, reader.name)
    lexical = [
        Terminal(
            _terminal_name(number, names, expr), str(expr.pattern), literal=expr.text, priority=found.priorities[number]
        )
        for number, expr in enumerate(found.terminals)
    ]
    alternatives = {TERMINAL + key: found.alternatives[i] for i, key in enumerate(rules.terminals)}
    alternatives |= {TERMINAL + key: (len(lexical) + i,) for i, key in enumerate(rules.parts)}
    lexical += part_terminals(reader, rules.parts.values())
    grammar = assemble(lowered, lexical, alternatives, lexing, reader.name, reader.text)
    if grammar.start not in productive_symbols(grammar):
        raise EmptyLanguageError(
            str(
                reader.error(
                    "rule 'start' has no finite text: its rules lead back to themselves", document.rules["start"].at
                )
            ),
            grammar,
        )
    grammar = reduce(grammar)
    if skip is not None:
        grammar = _with_skip(grammar, skip, document)
    host = without_unused(grammar, rules.parts.values())
    if default_conflicts(host.grammar) != "all":
        raise GrammarError(
            f"grammar {reader.name}: where it is ambiguous, parses of one text stand where different terminals compete; "
            "llguidance follows them all, and one lexer here cannot; left-factor the rules, or read it with "
            "mw.read_llguidance(..., lexing='longest'), by which a keyword ends where a name would"
        )
    return host


def _terminal_name(number: int, names: list[str], expr: Expr) -> str:
    name = names[number] if number < len(names) else ""
    return name if name and name[0] != '"' and not name.startswith("/") else f"__{number}"


def _with_skip(grammar: Grammar, skip: int, document: Document) -> Grammar:
    """The grammar with a terminal that is ignored in its rules, behind each other terminal.

    grammar : reduced. document : says whether it may begin a text, and stand once only.

    Where no sentence is the beginning of another one, it cannot end a text. Then the symbols that
    can stand last have a second nonterminal, whose last terminal has nothing behind it.
    """
    n_terminals = grammar.n_terminals
    names = [*grammar.nonterminals, "%ignore"]
    between = n_terminals + len(names) - 1
    rules: list[Rule] = []
    copies: dict[int, int] = {}

    def padded(symbols: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new for s in symbols for new in ((s, between) if s < n_terminals else (s,)))

    rules += [Rule(rule.lhs, padded(rule.rhs)) for rule in grammar.rules]
    rules += [Rule(between, ()), Rule(between, (skip,) if document.skips_once else (between, skip))]
    start = grammar.start
    if is_prefix_free(grammar):
        for lhs in last_symbols(grammar):
            copies[lhs] = n_terminals + len(names)
            names.append(f"{grammar.symbol_name(lhs)} (last)")
        for lhs, copy in copies.items():
            for rule in grammar.rules_of[lhs]:
                last = rule.rhs[-1]
                rules.append(Rule(copy, (*padded(rule.rhs[:-1]), copies.get(last, last))))
        start = copies[start]
    if document.initial_skip:
        names.append("whole")
        rules.append(Rule(n_terminals + len(names) - 1, (between, start)))
        start = n_terminals + len(names) - 1
    return reduce(grammar.with_rules(tuple(names), tuple(rules), start))


# -- terminals with common texts

MAX_ADDED = 50
"""The most terminals that are added."""
MAX_STATES = 20_000
"""The most states of the automaton of all terminals."""


class Disjoint(NamedTuple):
    """Terminals of which the lexer takes the one with the highest priority.

    terminals : those given, then those added. alternatives : for each terminal given, the numbers
    of the terminals that its texts may be. priorities : of each terminal.
    """

    terminals: tuple[Expr, ...]
    alternatives: tuple[tuple[int, ...], ...]
    priorities: tuple[int, ...]


def disjoint(terminals: Sequence[Expr], skip: int | None, names: Sequence[str], where: str) -> Disjoint:
    """The terminals, with those that must be added, and what stands for each.

    A parser that follows all terminals which a text is a lexeme of may as well get one of them, if
    the rules have that one wherever they have another one of them. This holds if each text has a
    *least* terminal: one whose texts all others of its terminals have too. Where there is none, a
    terminal of the common texts is added, which then is the least.

    terminals : regular expressions that do not match the empty text.
    skip : the number of the terminal that wins wherever it may be taken; None if there is none.
    names, where : of the terminals and the grammar, for messages.

    Raises: LimitError if more than MAX_ADDED terminals must be added, or their automaton has more
    than MAX_STATES states.
    """
    found = list(terminals)
    while True:
        sets = _common(found, skip, names, where)
        over: list[frozenset[int]] = [frozenset()] * len(found)
        for texts in sets:
            for t in texts:
                over[t] = over[t] & texts if over[t] else texts
        missing = next((texts for texts in sets if _least(texts, over) is None), None)
        if missing is None:
            break
        if len(found) - len(terminals) >= MAX_ADDED:
            shown = " and ".join(names[t] for t in sorted(missing) if t < len(names))
            raise LimitError(
                f"grammar {where}: terminals have too many texts in common, such as {shown[:200]}; make them differ"
            )
        first, *others = sorted(missing)
        common = found[first]
        for other in others:
            common = in_both(common, found[other])
        found.append(common)
    alternatives: list[set[int]] = [{t} for t in range(len(found))]
    for texts in sets:
        least = _least(texts, over)
        for t in texts:
            if least is not None:
                alternatives[t].add(least)
    priorities = [len(over[t]) for t in range(len(found))]
    if skip is not None:
        priorities[skip] = len(found) + 1
    return Disjoint(
        tuple(found),
        tuple(tuple(sorted(alternatives[t], key=lambda other: (other != t, other))) for t in range(len(terminals))),
        tuple(priorities),
    )


def _common(terminals: Sequence[Expr], skip: int | None, names: Sequence[str], where: str) -> list[frozenset[int]]:
    """The sets of terminals that have a text in common, in order; also those of one terminal.

    The terminal `skip` is left out.
    """
    nfa = build_terminal_nfa([automaton_of(expr, MAX_STATES) for expr in terminals])
    labels = [names[t] if t < len(names) else f"__{t}" for t in range(len(terminals))]
    try:
        union = build_union_dfa(nfa, labels, MAX_STATES)
    except LimitError as error:
        raise LimitError(f"grammar {where}: {error}") from error
    sets = (frozenset(accepting) - {skip} for accepting in union.accepting)
    return list(dict.fromkeys(texts for texts in sets if texts))


def _least(texts: frozenset[int], over: Sequence[frozenset[int]]) -> int | None:
    """The terminal whose texts all others of a set have; None if there is none.

    over : for each terminal those that have all of its texts, itself included.
    """
    return min((t for t in texts if texts <= over[t]), default=None)
