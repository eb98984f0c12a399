"""Grammars without a lexer, exactly, for an engine that has one.

In GBNF and in xgrammar's EBNF a text is a sequence of characters; there are no lexemes. Here the
longest match cuts a text into lexemes. The result is the same language if two conditions hold:

(a) each text is a lexeme of at most one terminal, once a literal has been taken out of the patterns
    that match it (which the lexer does: a literal wins). The rules then say "the pattern or the
    literal" where they said "the pattern".
(b) where a lexeme of a terminal t may end, no first byte of a terminal that may follow t leads the
    automaton of all terminals on.

*Proof.* Let t1 .. tn be terminals of a sentence, and w = l1 .. ln lexemes of them, so that w is a
text of the scannerless grammar. The lexer reads l1 in the automaton of all terminals. Behind l1 it
could end, and by (b) the next byte leads nowhere, so it does end, as t1 by (a). So for all others;
the last ends with the text. So the engine reads w as t1 .. tn and accepts. Conversely, what the
engine accepts are lexemes of a sentence, whose texts the scannerless grammar has. QED.

We begin with the largest regular parts of the rules as terminals, look at the automaton of all of
them, and split those that break a condition into their parts, until none does. The end is safe: a
terminal that is one character cannot go on, and classes of characters are cut into disjoint ones.
Conflicts are all followed (`conflicts="all"`), so the rules need not be LALR(1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from maskwright.analysis.errors import EmptyLanguageError
from maskwright.analysis.fronts.assembly import assemble, without_unused
from maskwright.analysis.fronts.expressions import Expr, patterns_in
from maskwright.analysis.fronts.inlining import inlined
from maskwright.analysis.fronts.lexicon import Lexicon, Overlap
from maskwright.analysis.fronts.lowering import lower
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.fronts.reading import Reader
from maskwright.analysis.grammar.grammar import Grammar, Terminal
from maskwright.analysis.grammar.normalise import productive_symbols, reduce, unproductive_cycle

MAX_ROUNDS = 12
"""How often leaves are split into their parts; from then on, into characters."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What a text in another engine's language says.

    rules : the rules by name, in the text's order. root : the rule of whole texts. places : the
    offset of each rule's definition.
    """

    rules: Mapping[str, Expr]
    root: str
    places: Mapping[str, int] = field(default_factory=dict)


def compile_rules(found: RuleSet, reader: Reader) -> Grammar:
    """The grammar of the texts that the rules derive, character by character.

    reader : the text, for the grammar and its messages.

    Raises: EmptyLanguageError if there is no finite text; LimitError if the rules unfold to too
        many.
    """
    rules, names = inlined(found.rules, found.root)
    split: set[str] = set()
    n_rounds = 0
    while True:
        lowered = lower(rules, split, reader.name)
        try:
            lexicon = Lexicon(lowered.leaves, reader.name)
            alternatives = lexicon.alternatives()
            terminals = _terminals(lexicon, names, rules)
            grammar = assemble(lowered, terminals, alternatives, "longest", reader.name, reader.text)
            if grammar.start not in productive_symbols(grammar):
                raise _endless(grammar, found, reader)
            grammar = reduce(grammar)
            lexicon.check_ends(neighbours(grammar))
        except Overlap as overlap:
            split |= overlap.patterns
            n_rounds += 1
            if n_rounds > MAX_ROUNDS:
                split |= {pattern for key in overlap.patterns for pattern in patterns_in(lowered.leaves[key])}
            continue
        return without_unused(grammar)[0]


def _endless(grammar: Grammar, found: RuleSet, reader: Reader) -> EmptyLanguageError:
    cycle = unproductive_cycle(grammar, productive_symbols(grammar))
    names = list(dict.fromkeys(grammar.symbol_name(symbol).partition(" (")[0] for symbol in cycle))
    name = next((name for name in names if name in found.places), found.root)
    chain = " -> ".join([*names, names[0]])
    message = (
        f"rule {found.root!r} has no finite text: {name!r} always leads back to itself ({chain}), or to a set of "
        "characters that is empty; give it an alternative that does not"
    )
    return EmptyLanguageError(str(reader.error(message, found.places.get(name, 0))), grammar)


def _terminals(lexicon: Lexicon, names: Mapping[str, str], kept: Mapping[str, Expr]) -> list[Terminal]:
    """The terminals of a lexicon, by the author's names where a rule has just their texts.

    names : pattern -> rule. kept : the rules that stay rules; their names are taken.
    """
    found: list[Terminal] = []
    taken = set(kept)
    for number, terminal in enumerate(lexicon.terminals):
        name = names.get(terminal.pattern, "")
        name = f"__{number}" if name in taken or not name else name
        taken.add(name)
        found.append(Terminal(name, terminal.pattern, literal=terminal.text))
    return found
