"""Rules, terminals and lines of options that do nothing, or from which no text can come."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import (
    COMMENT_OR_LITERAL,
    line_and_column,
    offsets_of,
    position_of,
    rule_name,
)
from maskwright.analysis.grammar.normalise import productive_symbols
from maskwright.analysis.grammar.options import KEYS, read_options
from maskwright.analysis.graphs import reachable
from maskwright.analysis.lr.loops import endless_cycle
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, Place, listed

_TOKEN = re.compile(COMMENT_OR_LITERAL, re.VERBOSE)
_DECLARED = re.compile(r"^[ \t]*%declare\b([ \t\w]*)", re.MULTILINE)
_KEY = rf"(?:{'|'.join(KEYS)}|(?:length|restriction|convention|allowed)[ \t]+\w+)"
_OPTION = re.compile(
    rf"(?://|#)[/# \t]*maskwright(?:[ \t]*:[ \t:]*(?=\w)|[ \t]+(?={_KEY}[ \t]*=))(?P<stated>[^=\n]*=.*)", re.IGNORECASE
)
"""Without the colon only what begins with a known option is one: other words are prose."""


def unproductive(facts: Facts) -> Iterator[Finding]:
    """Nonterminals from which no finite text can be derived."""
    grammar = facts.grammar
    productive = productive_symbols(grammar)
    reported: set[str] = set()
    for symbol in range(grammar.n_terminals, grammar.n_terminals + grammar.n_nonterminals):
        name = rule_name(grammar.symbol_name(symbol))
        if symbol in productive or name in reported:
            continue
        reported.add(name)
        users = dict.fromkeys(rule_name(grammar.symbol_name(r.lhs)) for r in grammar.rules if symbol in r.rhs)
        used = [user for user in users if user != name]
        dropped = f"the alternatives with it in {listed(used)}" if used else "the alternatives with it"
        message = f"no finite text can be derived from rule {name!r}: each of its alternatives leads back to a rule that never ends"
        decoding = f"{dropped} are dropped; no token that only they would allow is ever allowed"
        remedy = f"give {name!r} an alternative that ends, of terminals or of rules that end"
        place = facts.at_rule(name)
        yield facts.finding(
            "unproductive-rule", "warning" if grammar.start in productive else "error", place, message, decoding, remedy
        )


def rules_in_text(grammar: Grammar) -> dict[str, tuple[Place, tuple[str, ...]]]:
    """The rules that the text defines, in its order.

    Returns name -> (place, names that stand in its definition).
    """
    named = offsets_of(grammar.text)
    definitions = sorted((at, name) for name, offsets in named.definitions.items() for at in offsets)
    uses = sorted((at, name) for name, offsets in named.uses.items() for at in offsets)
    ends = [*(at for at, _ in definitions[1:]), len(grammar.text)]
    found: dict[str, tuple[Place, tuple[str, ...]]] = {}
    for (at, name), end in zip(definitions, ends, strict=False):
        if name.strip("_")[:1].islower():
            inside = uses[bisect_left(uses, (at,)) : bisect_left(uses, (end,))]
            place, before = found.get(name, (line_and_column(grammar.text, at), ()))
            found[name] = place, tuple(dict.fromkeys((*before, *(used for _, used in inside))))
    return found


def unreachable(facts: Facts) -> Iterator[Finding]:
    """Rules that the text defines and the start symbol does not lead to.

    A finding also names the rules that only such a rule uses.
    """
    grammar = facts.grammar
    defined = rules_in_text(grammar)
    start = grammar.symbol_name(grammar.start)
    live = {rule_name(name) for name in grammar.nonterminals} | {
        name.rpartition("__")[2] for name in grammar.nonterminals
    }
    restrictions = read_options(grammar.text, lambda message, _: message).restrictions
    live |= {
        new for restriction in restrictions for new in restriction.replacements
    }  # they are compiled when they are asked for
    # A template leaves a nonterminal for each of its calls. It leaves none of its own if all calls
    # are inside other templates.
    live = set(reachable(live, lambda name: defined[name][1] if name in defined else ()))
    dead = [name for name in defined if name not in live]
    users = {name: [other for other in dead if other != name and name in defined[other][1]] for name in dead}
    done: set[str] = set()
    for root in [*(name for name in dead if not users[name]), *dead]:
        if root in done:
            continue
        group = reachable(
            [root], lambda name: [used for used in defined[name][1] if used in users and used not in done]
        )
        done.update(group)
        others = f", nor to {listed(group[1:])}, which only it uses" if len(group) > 1 else ""
        message = f"start symbol {start!r} does not lead to rule {root!r}{others}"
        decoding = "nothing that the rule says is ever allowed"
        remedy = f"use {root!r} in a rule, remove it, or name it as the start symbol (--start {root}); "
        remedy += "if it is another start symbol, say so: // lint: allow unreachable-rule"
        yield facts.finding("unreachable-rule", "warning", defined[root][0], message, decoding, remedy)


def unused_terminals(facts: Facts) -> Iterator[Finding]:
    """Terminals that nothing needs, and layout terminals that no rule takes."""
    for name in facts.grammar.unused_terminals:
        message = f"neither the rules, nor %ignore, nor another terminal needs terminal {name}"
        decoding = "none: it is not part of the lexer"
        remedy = "remove it, or use it"
        place = position_of(facts.grammar.text, name)
        yield facts.finding("unused-terminal", "warning", place, message, decoding, remedy)
    lines = _DECLARED.findall(facts.grammar.text)
    known = {*facts.grammar.terminal_number, *facts.grammar.unused_terminals}
    for name in dict.fromkeys(name for line in lines for name in line.split() if name not in known):
        message = f"terminal {name} is declared but has no pattern, and is not inserted by a layout"
        decoding = "no text has it: the alternatives that need it are left out"
        remedy = "define it, or load the grammar with layout=Indenter(...)"
        place = position_of(facts.grammar.text, name)
        yield facts.finding("unused-terminal", "warning", place, message, decoding, remedy)
    used = facts.used
    layout = facts.grammar.layout
    members = () if layout is None else (layout.newline, layout.indent, layout.dedent)
    options = read_options(facts.grammar.text, lambda message, _: message)
    # The author means that no rule takes these.
    refused = {*options.refused, *(new for one in options.restrictions for old, new in one.pairs if not old)}
    for number, terminal in enumerate(facts.grammar.terminals):
        if terminal.name in refused or terminal.beyond:
            continue
        if number not in used and number not in facts.grammar.ignored and number not in members:
            message = f"terminal {facts.name(number)} stands only in rules that no text can use"
            decoding = "it takes part in the longest match all the same, so texts that lex as it are refused"
            remedy = "repair or remove the rules that use it"
            yield facts.finding("unused-terminal", "warning", number, message, decoding, remedy)
        elif number in members and number not in used:
            message = f"no rule takes the layout's terminal {terminal.name}"
            decoding = "a text in which the layout would insert it is refused"
            remedy = "use it in the rules (NEWLINE INDENT body DEDENT), or load the grammar without a layout"
            yield facts.finding("layout-unbalanced", "warning", number, message, decoding, remedy)


def ignored_in_rules(facts: Facts) -> Iterator[Finding]:
    """Terminals that are ignored although rules wait for them."""
    grammar = facts.grammar
    for number in sorted(grammar.ignored & facts.used):
        where = dict.fromkeys(rule_name(grammar.symbol_name(rule.lhs)) for rule in grammar.rules if number in rule.rhs)
        message = f"terminal {facts.name(number)} is ignored, but rules wait for it ({listed(list(where))})"
        decoding = "the parser never sees it, so what needs it is refused, and a text that leads there is stuck"
        remedy = "ignore a terminal that does not match these texts, or take this one out of the rules"
        yield facts.finding("ignored-in-rule", "error", number, message, decoding, remedy)


def endless_derivations(facts: Facts) -> Iterator[Finding]:
    """A rule that derives itself."""
    found = endless_cycle(facts.reduced)
    if found is None:
        return
    cycle, is_hidden = found
    names = [rule_name(facts.reduced.symbol_name(symbol)) for symbol in cycle]
    chain = " -> ".join(names)
    what = "begins with itself after symbols that may be empty" if is_hidden else "derives itself"
    remedy = "take the cycle out of these rules, or make the symbols before it required"
    follows_all = facts.grammar.conflicts == "all"
    name = facts.reduced.symbol_name(cycle[0])
    if name.startswith("__") and name != names[0] and len(set(cycle)) == 1:
        what, chain = "repeats something that may be empty", f"{names[0]} -> {names[0]}"
        remedy = "make what is repeated non-empty: (part?)+ is part*"
    message = f"rule {names[0]!r} {what} ({chain}), so a text has readings without end"
    decoding = "the parser takes the first rule; if it would reduce for ever the grammar is refused"
    if follows_all:
        decoding = "the rules are replaced by others for the same texts, without that cycle: masks are exact"
    remedy = f"none for masks; for a parser that makes trees {remedy}" if follows_all else remedy
    place = facts.at_rule(names[0])
    yield facts.finding("endless-derivation", "info" if follows_all else "warning", place, message, decoding, remedy)


def unbalanced_layout(facts: Facts) -> Iterator[Finding]:
    """Rules in which indents and dedents do not pair."""
    layout = facts.grammar.layout
    if layout is None:
        return
    rules = facts.reduced
    # The balance of each nonterminal is found from its shortest yields outward. A second, different
    # balance is a fault.
    balance = dict.fromkeys(range(rules.n_terminals), 0) | {layout.indent: 1, layout.dedent: -1}
    reported: set[str] = set()
    n_known = 0
    while n_known < len(balance):
        n_known = len(balance)
        for rule in rules.rules:
            if all(symbol in balance for symbol in rule.rhs):
                total = sum(balance[symbol] for symbol in rule.rhs)
                if balance.setdefault(rule.lhs, total) != total:
                    reported.add(rule_name(rules.symbol_name(rule.lhs)))
    if not reported and balance.get(rules.start, 0):
        reported.add(rule_name(rules.symbol_name(rules.start)))
    for name in sorted(reported, key=lambda name: (facts.at_rule(name), name)):
        indent, dedent = facts.name(layout.indent), facts.name(layout.dedent)
        message = f"not all texts of rule {name!r} have as many {indent} as {dedent}"
        decoding = "the layout closes every indented block, at the end of the text at the latest: "
        decoding += "texts with unequal numbers are never complete"
        remedy = f"pair each {indent} with a {dedent} in the same rule"
        yield facts.finding("layout-unbalanced", "error", facts.at_rule(name), message, decoding, remedy)


def unread_options(facts: Facts) -> Iterator[Finding]:
    """Options in comments that do not begin a line with ``// maskwright:``."""
    text = facts.grammar.text
    for token in _TOKEN.finditer(text):
        option = _OPTION.match(token["comment"] or "")
        if option is None:
            continue
        before = text[text.rfind("\n", 0, token.start()) + 1 : token.start()]
        if not before.strip(" \t") and re.match(r"//[ \t]*maskwright:", token[0]):
            continue
        message = f"the comment {token[0].strip()[:60]!r} states an option, but is read as a comment"
        decoding = "masks are made as if it were not there"
        remedy = f"write it on a line of its own: // maskwright: {option['stated'].strip()[:60]}"
        yield facts.finding("unread-option", "warning", line_and_column(text, token.start()), message, decoding, remedy)
