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
from maskwright.analysis.fronts.assembly import TERMINAL, HostGrammar, assemble, lower, part_terminals, without_unused
from maskwright.analysis.fronts.expressions import NEVER, Expr, choice, non_empty, patterns_in, repetition, sequence
from maskwright.analysis.fronts.lexicon import Lexicon, Overlap
from maskwright.analysis.fronts.llguidance_syntax import Atom
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
    offset of each rule's definition. tokens : how one is written -> where it stands first; it is
    the reference TERMINAL and how it is written.
    """

    rules: Mapping[str, Expr]
    root: str
    places: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, Atom] = field(default_factory=dict)


def compile_rules(found: RuleSet, reader: Reader) -> HostGrammar:
    """The grammar of the texts that the rules derive, character by character. Tokens are its parts.

    No byte of a mark is in a text, so a lexeme before a mark ends there, and (b) holds.

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
            lexicon = Lexicon({key: leaf for key, leaf in lowered.leaves.items() if leaf.is_regular}, reader.name)
            alternatives = lexicon.alternatives()
            terminals = _terminals(lexicon, names, rules)
            alternatives |= {TERMINAL + key: (len(terminals) + i,) for i, key in enumerate(found.tokens)}
            terminals += part_terminals(reader, found.tokens.values())
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
        return without_unused(grammar, found.tokens.values())


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


# -- rules whose texts are a regular language

MAX_SIZE = 3_000
"""The most positions of a body that is written into other rules."""
MAX_DEPTH = 60
"""The deepest nesting of such a body."""


def inlined(rules: Mapping[str, Expr], root: str) -> tuple[dict[str, Expr], dict[str, str]]:
    """The rules that are left, `root` first: each is recursive, or too large to be written out.

    A rule that does not lead back to itself is replaced by its body wherever it is used, as long as
    that stays small. A rule that leads back to itself only at the end of its alternatives, or only
    at their beginning, is a repetition: ``A : x A | y`` has the texts ``x* y`` (Arden's lemma), and
    ``A : A x | y`` those of ``y x*``. So rules such as ``chars ::= [a-z] chars | "."`` become
    regular too. The languages of all rules stay the same.

    Also returns the names of regular rules by their patterns, without the empty text.

    rules : all references in them are defined.

    Cost: O(size of the rules * MAX_SIZE) at worst.
    """
    bodies = {name: _without_linear(name, body) for name, body in rules.items()}
    order = _reachable_bottom_up(bodies, root)
    recursive = _recursive(bodies, order)
    found: dict[str, Expr] = {}
    kept: list[str] = []
    for name in order:
        found[name] = _substituted(bodies[name], found, recursive, {})
        small = found[name].size <= MAX_SIZE and found[name].depth <= MAX_DEPTH
        if name in recursive or name == root or not small:
            recursive.add(name)
            kept.append(name)
    names: dict[str, str] = {}
    for name in order:
        if found[name].is_regular:
            names.setdefault(str(non_empty(found[name]).pattern), name)
    return {name: found[name] for name in reversed(kept)}, names


def _without_linear(name: str, body: Expr) -> Expr:
    """The body of a rule, with recursion of itself at one end of its alternatives as repetition."""
    options = [_parts(option) for option in (body.parts if body.kind == "choice" else (body,))]
    is_use = [any(_mentions(part, name) for part in parts) for parts in options]
    uses = [parts for parts, uses_it in zip(options, is_use, strict=True) if uses_it]
    for inner, own in ((slice(1, None), 0), (slice(None, -1), -1)):
        if not uses or any(
            not (parts[own].kind == "reference" and parts[own].name == name)
            or any(_mentions(part, name) for part in parts[inner])
            for parts in uses
        ):
            continue
        others = choice(sequence(parts) for parts, uses_it in zip(options, is_use, strict=True) if not uses_it)
        repeated = repetition(choice(sequence(parts[inner]) for parts in uses if len(parts) > 1), 0, None)
        if others.is_never:
            return NEVER
        return sequence((others, repeated) if own == 0 else (repeated, others))
    return body


def _parts(option: Expr) -> tuple[Expr, ...]:
    return option.parts if option.kind == "sequence" else (option,)


def _mentions(expr: Expr, name: str) -> bool:
    if expr.is_regular:
        return False
    return expr.name == name if expr.kind == "reference" else any(_mentions(part, name) for part in expr.parts)


def references(expr: Expr) -> list[Expr]:
    """The references to rules in an expression, in order."""
    if expr.is_regular or expr.name.startswith(TERMINAL):
        return []
    if expr.kind == "reference":
        return [expr]
    return [found for part in expr.parts for found in references(part)]


def _reachable_bottom_up(bodies: Mapping[str, Expr], root: str) -> list[str]:
    """The rules that root leads to; each behind those that it uses, but for recursion."""
    order: list[str] = []
    seen = {root}
    path = [(root, iter(references(bodies[root])))]
    while path:
        name, uses = path[-1]
        use = next(uses, None)
        if use is None:
            path.pop()
            order.append(name)
        elif use.name not in seen:
            seen.add(use.name)
            path.append((use.name, iter(references(bodies[use.name]))))
    return order


def _recursive(bodies: Mapping[str, Expr], order: list[str]) -> set[str]:
    """The rules that an earlier rule of the order uses, or that use themselves.

    Every cycle of rules has such a rule, and the uses of all others come behind them.
    """
    at = {name: i for i, name in enumerate(order)}
    return {use.name for name in order for use in references(bodies[name]) if at[use.name] >= at[name]}


def _substituted(expr: Expr, found: Mapping[str, Expr], kept: set[str], done: dict[int, Expr]) -> Expr:
    """The expression with the bodies of rules that are not kept, as far as they are known."""
    if expr.is_regular:
        return expr
    if id(expr) in done:
        return done[id(expr)]
    if expr.kind == "reference":
        new = expr if expr.name in kept or expr.name not in found else found[expr.name]
    else:
        parts = [_substituted(part, found, kept, done) for part in expr.parts]
        if all(new is old for new, old in zip(parts, expr.parts, strict=True)):
            new = expr
        elif expr.kind == "sequence":
            new = sequence(parts)
        elif expr.kind == "choice":
            new = choice(parts)
        else:
            new = repetition(parts[0], expr.least, expr.most)
    done[id(expr)] = new
    return new
