"""Does each stack of an LR parser spell the beginning of a sentential form?

In: rules, a parser, its columns. Out: LR states on which no rule of the grammar may go on;
of a table with merged states, what may lead to a dead end.

A path of LR states from the start spells symbols, those of its edges. An item, a rule of which some
symbols have been read, is *valid* for a path if the grammar derives a sentential form, by rightmost
steps, in which the symbols of the path come first and end in those that the item has read. The rule
of the whole text is valid for the empty path. If an item is valid for a path, the same with one
symbol more is valid for the path with this symbol more, and where a nonterminal comes next, its
rules begin. For each state we find the most items that all paths to it make valid in this way: what
one edge does not pass on is taken out, until nothing changes. If each state that a path leads to
keeps an item, each path spells the beginning of a sentential form. If every nonterminal derives a
text (`without_text`), a text that the symbols of a stack derive begins a word.

States that are merged have no such items: a table's states are compared with those of the full LR
tables instead (`merged`), and these have them.

Source: proofs/viable.v, reads_exact; valid items and viable prefixes, Aho and Ullman, "The Theory
of Parsing, Translation, and Compiling I" (1972), section 5.2.3.
"""

from __future__ import annotations

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.verify.merged import unlike_full
from maskwright.maskstore.verify.tables import Certificate, Report, unsound_reductions
from maskwright.maskstore.verify.trusted import Actions, Columns, read_full_tables

MOST_SHOWN = 20
"""Most faults that are listed."""

Item = tuple[int, int]
"""A rule, -1 for that of the whole text, and how many of its symbols have been read."""


def dead_ends(
    certificate: Certificate, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """Why what a table's parser has read may begin no text of the grammar, in words.

    () if each text that it has read begins one. The certificate must have full tables.

    report : called now and then; what it raises ends the check.

    Raises: TooManyChoices as `unsound_reductions`.
    Cost: seconds for grammars of programming languages.
    """
    assert certificate.full is not None
    rules = certificate.grammar
    full = read_full_tables(rules, certificate.full)
    if isinstance(full, str):
        return (f"the full LR tables are none of the grammar: {full}",)
    identity = Certificate(rules, tuple(range(rules.n_nonterminals)))
    faults = without_text(rules) or unsound_reductions(identity, *full, report) or stuck_states(rules, *full, report)
    if faults:
        return tuple(f"of the full LR tables: {fault}" for fault in faults)
    return unlike_full(full, certificate, parser, lexer, report)


def without_text(rules: Grammar) -> tuple[str, ...]:
    """The nonterminals that derive no text, in words."""
    found: set[int] = set()
    more = {0}
    while more:
        texts = (rule for rule in rules.rules if all(one < rules.n_terminals or one in found for one in rule.rhs))
        more = {rule.lhs for rule in texts} - found
        found |= more
    every = range(rules.n_terminals, rules.n_terminals + rules.n_nonterminals)
    return tuple(f"{rules.symbol_name(symbol)} derives no text" for symbol in every if symbol not in found)[:MOST_SHOWN]


def stuck_states(
    rules: Grammar, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> tuple[str, ...]:
    """The states with no item that is valid for all paths to them, in words; () if there are none.

    report : as of `dead_ends`.

    The parser has a column for each terminal, and a goto for each nonterminal.

    Cost: O(items of all states), a second for grammars of programming languages.
    """
    stuck = [state for state, items in sorted(kernels(rules, parser, lexer, report).items()) if not items]
    return tuple(f"what leads to state {state} may begin no text of the grammar" for state in stuck[:MOST_SHOWN])


def kernels(
    rules: Grammar, parser: Actions, lexer: Columns, report: Report = lambda done, known: None
) -> dict[int, frozenset[Item]]:
    """For each state on top of some stack the most items that are valid for all stacks."""
    rules_of: dict[int, list[int]] = {}
    for number, rule in enumerate(rules.rules):
        rules_of.setdefault(rule.lhs, []).append(number)
    edges = [_edges(rules, parser, lexer, state) for state in range(parser.n_states)]
    found: dict[int, frozenset[Item]] = {0: frozenset({(-1, 0)})}
    agenda = [0]
    n_done = 0
    while agenda:
        report(n_done, n_done + len(agenda))
        n_done += 1
        state = agenda.pop()
        after = _read(rules, rules_of, found[state])
        for symbol, above in edges[state]:
            passed = frozenset(after.get(symbol, ()))
            known = found.get(above)
            left = passed if known is None else known & passed
            if left != known:
                found[above] = left
                agenda.append(above)
    return found


def _edges(rules: Grammar, parser: Actions, lexer: Columns, state: int) -> list[tuple[int, int]]:
    """What may be read in a state, and the states above it."""
    found = [(rules.n_terminals + number, after) for number, after in enumerate(parser.goto[state]) if after >= 0]
    for terminal, column in enumerate(lexer.column):
        found += [(terminal, after) for after in parser.shifts_to(state, column)]
    return found


def _read(rules: Grammar, rules_of: dict[int, list[int]], kernel: frozenset[Item]) -> dict[int, list[Item]]:
    """For each symbol that may come next the items with this symbol read."""
    after: dict[int, list[Item]] = {}
    agenda = list(kernel)
    begun: set[int] = set()
    while agenda:
        rule, n_read = agenda.pop()
        body = rules.rules[rule].rhs if rule >= 0 else (rules.start,)
        if n_read == len(body):
            continue
        symbol = body[n_read]
        after.setdefault(symbol, []).append((rule, n_read + 1))
        if symbol not in begun:
            begun.add(symbol)
            agenda += [(number, 0) for number in rules_of.get(symbol, ())]
    return after
