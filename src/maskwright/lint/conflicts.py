"""LALR(1) conflicts as texts: how the parser gets there, and a text with two readings if any.

We follow the two actions of a conflict side by side, over symbols that both can read, until their
stacks are equal. What completes one then completes the other, and the text has two derivations. The
search goes by the length of the text. It reads terminals and nonterminals alike in one step,
without lookahead, so every derivation found is one of the grammar's.

Source: Isradisaikul and Myers, Finding counterexamples from parsing conflicts (2015), the search
    for unifying counterexamples.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.grammar.lark_files import rule_name
from maskwright.analysis.lr.conflicts import Conflict, conflicts
from maskwright.analysis.lr.encoding import ACCEPT
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.decoding.reference.parser import Parser
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding, Place, Severity, listed, plural
from maskwright.lint.remedies import one_action, one_lexing
from maskwright.lint.texts import Tree, TreeStack, reduced, states_of

MAX_GROUPS = 12
"""Groups of conflicts for which texts are searched. Further groups are reported without texts."""
MAX_STEPS = 60_000
"""Pairs of stacks made for all conflicts together."""
MAX_DEPTH = 60
"""Symbols on a stack that is followed."""
MAX_STACKS = 100
"""Stacks of one text that are followed."""
MAX_BRANCHES = 8
"""Stacks that are followed after each of the two actions compared."""


SHIFTS = "the parser shifts rather than reduces, and reduces by the first rule"
FREE = "it costs nothing: whatever can follow one reading can also follow the other, so only one is followed, and no mask is smaller"


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Two derivations of one sentence."""

    first: Tree
    second: Tree


def conflict_findings(facts: Facts) -> Iterator[Finding]:
    """A finding for each group of conflicts between the same rules.

    It shows a text that leads there and, if one was found, a text with two readings.
    """
    found = conflicts(facts.grammar)
    groups: dict[tuple[str, tuple[tuple[str, ...], ...]], list[Conflict]] = {}
    for conflict in found:
        items = tuple(a.items for a in conflict.actions if a.kind == "reduce")
        groups.setdefault((conflict.kind, items), []).append(conflict)
    search = _Search(facts)
    n_searched = MAX_GROUPS if _has_lexer(facts) else 0
    for number, members in enumerate(groups.values()):
        yield _finding(facts, search if number < n_searched else None, members)


def mode_findings(facts: Facts) -> Iterator[Finding]:
    """A conflict with parses for which different terminals compete.

    One lexer cannot follow both (`analysis.lr.splits`).
    """
    grammar = facts.grammar
    found = facts.split
    if found is None:
        return
    conflict = next((c for c in conflicts(grammar) if (c.state, c.terminal) == (found.state, found.column)), None)
    example = None if conflict is None else conflict.example
    read = " ".join(map(facts.name, [*example, *found.columns[1:]] if example else found.columns))
    do = "stand" if found.states else "may stand"
    is_refused = grammar.conflicts == "all"
    message = f"after {read}, parses of one text {do} where different terminals compete"
    decoding = "one lexer cannot serve both, so conflicts are decided as Lark decides them: the parser shifts rather than reduces"
    if is_refused:
        decoding = "one lexer cannot serve both: the grammar has no store"
    remedy = "left-factor the rules so that one parse is left there"
    remedy = facts.remedy(remedy, one_lexing(grammar), one_action(grammar))
    place = (0, 0) if conflict is None else _place_of(facts, conflict)
    text = None if conflict is None else _leading_text(facts, conflict)
    yield facts.finding("mode-conflict", "error" if is_refused else "info", place, message, decoding, remedy, text)


def _place_of(facts: Facts, conflict: Conflict) -> Place:
    """The place of the rule that the first reduction of a conflict is by."""
    reducing = next(action for action in conflict.actions if action.kind == "reduce")
    return facts.at_rule(reducing.items[0].partition(" :")[0])


def _finding(facts: Facts, search: _Search | None, members: list[Conflict]) -> Finding:
    """The finding for one group of conflicts. search : None if no texts are searched."""
    grammar = facts.grammar
    first = min(members, key=lambda c: (c.example is None, len(c.example or ())))
    place = _place_of(facts, first)
    cells = f" ({plural(len(members), 'cell')} of the tables)" if len(members) > 1 else ""
    what = f"{first.kind} conflict before {listed(list(dict.fromkeys(c.terminal_name for c in members)))}{cells}"
    what += "".join(f"\n{action.kind}: {listed(list(action.items), 3)}" for action in first.actions)
    what += f"\nafter: {first.example_text}" if first.example_text else ""
    nothing = grammar.lexing == "nfa"
    follows_all = grammar.conflicts == "all" or nothing
    is_free = follows_all and not nothing and not any(facts.is_followed(c.state, c.terminal) for c in members)
    stacks = [] if search is None else search.stacks_before(first)
    lead = _leading_text(facts, first)
    ambiguity = None if search is None else search.ambiguity(first, stacks)
    if search is not None and ambiguity is not None:
        is_taken = follows_all or search.is_taken(ambiguity.first.terminals())
        return _ambiguity(facts, ambiguity, place, what, is_taken, is_free)
    decoding, remedy = f"{SHIFTS}: texts that need another action are refused", "left-factor the rules"
    severity: Severity = "info"
    if is_free:
        decoding, remedy = FREE, "none for masks"
    elif follows_all:
        decoding = (
            "all actions are followed, on several stacks, until one is left: nothing is refused, masks there cost more"
        )
        remedy = "left-factor the rules, or give the parser more to tell them apart by before it has to decide"
    else:
        severity, remedy = "warning", remedy + _or_all(facts)
        refused = None if search is None else search.refused(first, stacks)
        if refused is not None:
            lead, decoding = refused, f"{SHIFTS}: the text below is refused though the rules allow it"
    return facts.finding("conflict", severity, place, what, decoding, remedy, lead)


def _ambiguity(facts: Facts, ambiguity: Ambiguity, place: Place, what: str, is_taken: bool, is_free: bool) -> Finding:
    """The finding for a conflict by which a text has two readings.

    is_taken : whether the parser takes the text, perhaps in one of the two ways only.
    is_free : whether following all actions costs nothing.
    """
    terminals = tuple(ambiguity.first.terminals())
    text = facts.writer.text(terminals)
    example = text if text is not None and facts.reader.read(text).accepted else None
    if example is None:
        what += f"\nsentence: {' '.join(map(facts.name, terminals))}"
    one, two = (bracketed(facts, tree) for tree in _apart(ambiguity))
    severity: Severity = "warning"
    decoding = f"{SHIFTS}: one reading is left, and the text is allowed"
    remedy = "write the rules so that one reading is left"
    meant = " (a rule for each level of precedence), or say that this is meant: // lint: allow ambiguity"
    if not is_taken:
        decoding, meant = f"{SHIFTS}: that leaves neither, and the text is refused", _or_all(facts)
    elif is_free:
        severity, decoding, meant = "info", FREE, ""
        remedy = "none for masks; for a parser that makes trees give each level of precedence a rule"
    elif facts.grammar.conflicts == "all":
        decoding = (
            "both readings are followed on stacks of their own; each such place in a text adds stacks, and past the limit on readings "
            "a text is refused with a LimitError"
        )
    elif facts.grammar.lexing != "nfa":
        severity = "info"
    what += f"\nreading 1: {one}\nreading 2: {two}"
    return facts.finding("ambiguity", severity, place, what, decoding, remedy + meant, example)


def _or_all(facts: Facts) -> str:
    """Advice to follow all actions, if the grammar allows it."""
    return ", or load the grammar with conflicts='all' (--conflicts all)" if facts.can_follow_all else ""


def _leading_text(facts: Facts, conflict: Conflict) -> bytes | None:
    """A text that leads to a conflict, if there is one."""
    # Without a lexer only the terminals' names can be shown.
    return facts.text(conflict.example) if conflict.example is not None and _has_lexer(facts) else None


def _has_lexer(facts: Facts) -> bool:
    """Whether texts can be written and read."""
    try:
        return facts.lexer is not None
    except MaskwrightError:
        return False


def _apart(ambiguity: Ambiguity) -> tuple[Tree, Tree]:
    """The smallest subtrees in which the two derivations differ."""
    one, two = ambiguity.first, ambiguity.second
    while one.symbol == two.symbol and one.children is not None and two.children is not None:
        if [c.symbol for c in one.children] != [c.symbol for c in two.children]:
            break
        differing = [pair for pair in zip(one.children, two.children, strict=True) if pair[0] != pair[1]]
        if len(differing) != 1 or differing[0][0].symbol != differing[0][1].symbol:
            break
        one, two = differing[0]
    return one, two


def bracketed(facts: Facts, tree: Tree) -> str:
    """A derivation on one line, such as ``expr[expr[1 + 1] + 1]``.

    A chain of rules with one part each is written as ``a>..>z[...]``. Empty parts are left out.
    """
    lexemes = facts.writer.lexemes

    def write(at: Tree, depth: int = 0) -> str:
        if depth == MOST_NESTED:
            return ".."
        names = []
        while at.children is not None:
            names.append(rule_name(facts.parsed.symbol_name(at.symbol)))
            inner = [child for child in at.children if child.children != ()]
            if len(inner) != 1:
                shown = " ".join(filter(None, (write(each, depth + 1) for each in inner)))
                break
            at = inner[0]
        else:
            text = lexemes.get(at.symbol, b"").decode("utf-8", "backslashreplace")
            shown = text if text.isprintable() and text.strip() else facts.name(at.symbol)
        chain = ">".join(names if len(names) <= 3 else [names[0], "..", names[-1]])
        return f"{chain}[{shown}]" if names else shown

    text = on_own_stack(write)(tree)
    return text if len(text) <= 400 else text[:200] + " ... " + text[-190:]


class _Search:
    """Searches texts of conflicts, in order, with one budget of steps for all of them."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.tables, self.rules = facts, facts.all_tables, facts.parsed
        self.n_steps = MAX_STEPS

    def reduce(self, stack: TreeStack, rule: int) -> TreeStack | None:
        """The stack after a reduction; None if the automaton has no such stack."""
        found = self.rules.rules[rule]
        return reduced(self.facts.automaton, stack, len(found.rhs), found.lhs)

    def closed(self, stacks: list[TreeStack], terminal: int) -> list[TreeStack]:
        """The stacks, and all stacks that reductions before a terminal make of them."""
        found: dict[tuple[int, ...], TreeStack] = {}
        agenda = list(stacks)
        for stack in agenda:  # grows while it is read
            states = states_of(stack)
            if states in found or len(states) > MAX_DEPTH or len(found) > MAX_STACKS:
                continue
            found[states] = stack
            for action in self.tables.actions(stack[0], terminal):
                if action < 0 and (after := self.reduce(stack, -action - 1)) is not None:
                    agenda.append(after)
        return list(found.values())

    def shifted(self, stacks: list[TreeStack], terminal: int) -> list[TreeStack]:
        """The stacks after a terminal."""
        return [
            (action - 1, Tree(terminal), stack)
            for stack in self.closed(stacks, terminal)
            for action in self.tables.actions(stack[0], terminal)
            if 0 < action < ACCEPT
        ]

    def stacks_before(self, conflict: Conflict) -> list[TreeStack]:
        """The stacks with the conflict's state on top, after its example, before its terminal."""
        if conflict.example is None or len(conflict.example) > MAX_DEPTH:
            return []
        is_end = conflict.terminal == self.rules.n_terminals
        stacks: list[TreeStack] = [(0, None, None)]
        for terminal in conflict.example if is_end else conflict.example[:-1]:
            stacks = self.shifted(stacks, terminal)
        return [stack for stack in self.closed(stacks, conflict.terminal) if stack[0] == conflict.state]

    def branches(self, conflict: Conflict, stack: TreeStack) -> list[list[TreeStack]]:
        """For each action of the conflict the stacks after it and after the conflict's terminal.

        At the end of the text these are the stacks after the action alone.
        """
        found: list[list[TreeStack]] = []
        for action in self.tables.actions(conflict.state, conflict.terminal):
            after = self.reduce(stack, -action - 1) if action < 0 else None
            if action == ACCEPT:
                found.append([stack])
            elif action > 0:
                found.append([(action - 1, Tree(conflict.terminal), stack)])
            elif after is not None and conflict.terminal == self.rules.n_terminals:
                accepting = self.facts.automaton.accepting
                found.append([s for s in self.closed([after], conflict.terminal) if s[0] == accepting])
            elif after is not None:
                found.append(self.shifted([after], conflict.terminal))
        return [stacks for stacks in found if stacks]

    def ambiguity(self, conflict: Conflict, stacks: list[TreeStack]) -> Ambiguity | None:
        """A sentence with a derivation through each of two actions of the conflict.

        Returns None if none was found within the budget.
        """
        for stack in stacks[:3]:
            for left, right in itertools.combinations(self.branches(conflict, stack), 2):
                found = self._meet(itertools.product(left[:MAX_BRANCHES], right[:MAX_BRANCHES]))
                if found is not None:
                    return found
        return None

    def _meet(self, pairs: Iterable[tuple[TreeStack, TreeStack]]) -> Ambiguity | None:
        """Read on with both stacks of a pair until they are equal, then complete them."""
        writer, completed = self.facts.writer, self.facts.automaton.completed
        agenda = [(0, number, *pair) for number, pair in enumerate(pairs)]
        number = itertools.count(len(agenda))
        known: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        budget = self.n_steps // 3
        while agenda and budget > 0:
            cost, _, one, two = heapq.heappop(agenda)
            states = states_of(one), states_of(two)
            if states in known:
                continue
            known.add(states)
            if states[0] == states[1]:
                whole, other = writer.completion(one), writer.completion(two)
                if whole is not None and other is not None and whole != other:
                    return Ambiguity(whole, other)
                continue
            following = [(cost, after, two) for rule in completed[one[0]] if (after := self.reduce(one, rule))]
            following += [(cost, one, after) for rule in completed[two[0]] if (after := self.reduce(two, rule))]
            targets = dict(writer.moves[two[0]])
            for symbol, target in writer.moves[one[0]]:
                if symbol in targets:
                    tree = writer.tree_of(symbol)
                    following.append((cost + writer.cost[symbol], (target, tree, one), (targets[symbol], tree, two)))
            budget -= 1 + len(following)
            self.n_steps -= 1 + len(following)
            if max(map(len, states)) < MAX_DEPTH:
                for price, left, right in following:
                    heapq.heappush(agenda, (price, next(number), left, right))
        return None

    def is_taken(self, terminals: Iterable[int]) -> bool:
        """Whether decoding's parser, with one action a cell, accepts a sentence."""
        parser = Parser(self.facts.tables, self.facts.grammar.name, is_cut=True)
        return bool(parser.shift_all((parser.start,), (*terminals, parser.end_column)))

    def refused(self, conflict: Conflict, stacks: list[TreeStack]) -> bytes | None:
        """A text that the parser refuses, though an action that it does not take derives it."""
        found: list[bytes] = []
        for stack in stacks[:3]:
            for after in itertools.chain.from_iterable(self.branches(conflict, stack)[1:]):
                tree = self.facts.writer.completion(after)
                text = None if tree is None else self.facts.writer.text(tuple(tree.terminals()))
                if text is not None and not self.facts.reader.read(text).accepted:
                    found.append(text)
        return min(found, key=lambda text: (len(text), text), default=None)
