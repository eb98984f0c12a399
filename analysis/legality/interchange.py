"""Interchangeable terminals: each can replace the other, one occurrence at a time, in every word.

X and Y are interchangeable if they occur in the same rules: ``A -> a X b`` is a rule if and only if
``A -> a Y b`` is. Then u X v is a word if and only if u Y v is. To see this, take the derivation
tree of u X v and replace the rule above this X by the same rule with Y (proofs/interchange.v).

It is not enough that swapping *all* X and Y maps the rules onto themselves. With
``A -> X X | Y Y`` it does, but X Y is no word.
"""

from __future__ import annotations

from maskwright.analysis.arguments import as_boolean
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import inline_unit_only, normalise, reduce
from maskwright.analysis.graphs import components
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.nesting import on_own_stack

Classes = tuple[tuple[int, ...], ...]


@on_own_stack
def interchange_classes(grammar: GrammarSource, *, rewrite: bool = False) -> Classes:
    """The classes of interchangeable terminals with two or more members.

    Terminals of one class are proved interchangeable; of terminals of different classes nothing is
    known. Declared and ignored terminals, and a layout's own terminals (newline, indent, dedent and
    brackets), are in no class: their meaning does not depend on the rules alone.

    grammar : a grammar, or what `load_grammar` takes.
    rewrite : True looks at other rules of the same language too, in which wrappers such as
        ``break_stmt : BREAK`` are gone and equal nonterminals are one. This proves more.

    Returns tuples of terminal numbers, each ascending, in the order of their least members.

    Raises: GrammarError if the language is empty; MaskwrightError if `rewrite` is no truth value;
    whatever `load_grammar` raises.

    Source: partition refinement as in Tran-Thien's streamlining post (2025), which has the form
    without `rewrite`.
    """
    rewrite = as_boolean("rewrite", rewrite)
    grammar = as_grammar(grammar)
    alike: list[list[int]] = [[] for _ in range(grammar.n_terminals)]
    forms = [reduce(grammar)]
    if rewrite:
        forms += [inline_unit_only(grammar), inline_unit_only(normalise(grammar))]
    for form in forms:
        for members in _same_occurrences(form).values():
            for other in members[1:]:
                alike[members[0]].append(other)
                alike[other].append(members[0])
    # interchange is an equivalence, so proofs on different rules add up
    return tuple(sorted(tuple(sorted(members)) for members in components(alike) if len(members) > 1))


def _same_occurrences(grammar: Grammar) -> dict[frozenset[tuple[int, tuple[int, ...], tuple[int, ...]]], list[int]]:
    """Terminals by their set of occurrences.

    An occurrence in a rule is (left-hand side, symbols before, symbols after).
    """
    excluded = set(grammar.ignored)
    if grammar.layout is not None:
        layout = grammar.layout
        excluded |= {layout.newline, layout.indent, layout.dedent, *sum(layout.brackets, ())}
    occurrences: dict[int, set[tuple[int, tuple[int, ...], tuple[int, ...]]]] = {}
    for rule in grammar.rules:
        for i, symbol in enumerate(rule.rhs):
            if (
                not grammar.is_nonterminal(symbol)
                and symbol not in excluded
                and not grammar.terminals[symbol].is_declared
            ):
                occurrences.setdefault(symbol, set()).add((rule.lhs, rule.rhs[:i], rule.rhs[i + 1 :]))
    by_occurrences: dict[frozenset[tuple[int, tuple[int, ...], tuple[int, ...]]], list[int]] = {}
    for symbol in sorted(occurrences):
        by_occurrences.setdefault(frozenset(occurrences[symbol]), []).append(symbol)
    return by_occurrences


def representatives(n_terminals: int, classes: Classes) -> list[int]:
    """For each of n_terminals terminals the least terminal of its class, or itself.

    classes : as `interchange_classes` returns them.
    """
    least = list(range(n_terminals))
    for members in classes:
        for member in members:
            least[member] = members[0]
    return least
