"""Shared results of the checks: automata, tables, shortest texts. Each is computed on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, Literal, TypeVar

import numpy as np

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, TerminalError
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Terminal
from maskwright.analysis.grammar.lark_files import position_of, rule_name
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal, with_line_feed
from maskwright.analysis.lexing.transducer import build_transducer
from maskwright.analysis.lr.acyclic import without_endless
from maskwright.analysis.lr.agreement import Disagreement, disagreement
from maskwright.analysis.lr.automaton import Automaton, build_automaton
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import LrTables, can_follow
from maskwright.analysis.lr.lookaheads import has_conflicts, lookaheads
from maskwright.analysis.lr.splits import is_lexed_by_endless_rules
from maskwright.analysis.lr.tables import merge, tables_of
from maskwright.analysis.regex.dfa import MAX_STATES, Dfa, difference
from maskwright.lint.finding import Finding, Place, Severity, shown
from maskwright.lint.lexer import Lexer
from maskwright.lint.remedies import Remedy, Trials
from maskwright.lint.texts import Reader, Writer

T = TypeVar("T")

MAX_CELLS = 1 << 25
"""Cells of a parser table (states times symbols) that lint looks at.

These take 128 MiB a table, and there are several tables.
"""

LONGEST_NAME = 200
"""Characters of a terminal's name that a finding shows."""


class remembered(cached_property[T]):
    """A `cached_property` that remembers a `MaskwrightError`, too, and raises it again.

    INVARIANT: the remembered error is a copy that was never raised. A raised error holds the frames
    that it passed through, and their values.

    PERF: each check asks for the lexer. Without this, a lexer over a limit would be built up to the
    limit for each check.
    """

    def __init__(self, find: Callable[[Any], T]) -> None:
        @wraps(find)
        def found_or_failed(owner: Any) -> T:
            failures: dict[object, MaskwrightError] = vars(owner).setdefault("_failures", {})
            if find in failures:
                raise copy(failures[find])
            try:
                return find(owner)
            except MaskwrightError as error:
                failures[find] = copy(error)
                raise

        super().__init__(found_or_failed)


class Facts:
    """A grammar and what is known of it.

    grammar : as loaded.
    file : what findings call the grammar's file.
    automata : for each terminal its automaton; None if it has none.
    faulty : terminal -> (code, why), for terminals without an automaton that a lexer can use.

    Most members raise what they depend on: LimitError past a limit, and GrammarError or another
    MaskwrightError where something cannot be built. The same error is then raised again on each
    use.
    """

    def __init__(self, grammar: Grammar, file: str) -> None:
        self.grammar = grammar
        self.file = file
        self.trials: Trials | None = None
        """Where remedies are tried; None while one is being tried."""
        self.notes: list[str] = []
        """Parts of checks that were left out because they would have been too much."""
        self.automata: list[Dfa | None] = [None] * grammar.n_terminals
        self.faulty: dict[int, tuple[str, str]] = {}
        for number, terminal in enumerate(grammar.terminals):
            if terminal.is_declared:
                continue
            try:
                dfa = compile_terminal(terminal, where=grammar.name)
                if dfa.n_states > MAX_STATES and grammar.lexing != "nfa":
                    raise LimitError(
                        f"{grammar.name}: its automaton has {dfa.n_states} states; all terminals of a lexer together may have "
                        f"{MAX_STATES}"
                    )
                self.automata[number] = dfa
            except MaskwrightError as error:
                code = "too-large" if isinstance(error, LimitError) else _fault(terminal)
                self.faulty[number] = code, str(error)

    reduced = remembered(lambda facts: reduce(facts.grammar))
    """The grammar without rules and symbols that no text uses."""

    parsed = remembered(
        lambda facts: without_endless(facts.reduced) if facts.grammar.conflicts == "all" else facts.reduced
    )
    """The rules that the parser has: with conflicts "all", those without endless derivations."""

    automaton = remembered(lambda facts: build_automaton(facts.parsed))
    """The LR(0) automaton of the parsed rules."""

    tables = remembered(lambda facts: facts._tables_of(facts.automaton, facts.grammar.conflicts))
    """The LALR(1) tables that decoding uses. States have the numbers of `automaton`."""

    all_tables = remembered(lambda facts: facts._tables_of(facts.automaton, "all"))
    """The tables with all actions of every cell."""

    larks_tables = remembered(
        lambda facts: facts._tables_of(
            facts.automaton if facts.parsed is facts.reduced else build_automaton(facts.reduced), "shift"
        )
    )
    """The tables of the author's rules in Lark's parser, which shifts rather than reduces."""

    lookaheads = remembered(lambda facts: lookaheads(facts.automaton))
    """The LALR(1) lookaheads of the automaton."""

    def _tables_of(self, automaton: Automaton, conflicts: Conflicts) -> LrTables:
        """The LALR(1) tables of an automaton.

        Raises: LimitError if a store's tables would be too large; else GrammarError past MAX_CELLS.
        """
        sets = self.lookaheads if automaton is self.automaton else lookaheads(automaton)
        n_cells = automaton.n_states * (automaton.n_symbols + 1)
        if n_cells > MAX_CELLS:
            if conflicts == self.grammar.conflicts and not (conflicts == "all" and has_conflicts(automaton, sets)):
                merge(automaton, sets, conflicts)
            raise GrammarError(
                f"what needs the parser's full tables: they have {automaton.n_states} states over {automaton.n_symbols + 1} symbols, "
                f"{n_cells} cells, past lint's limit of {MAX_CELLS}"
            )
        return tables_of(automaton, sets, conflicts)

    _followed = remembered(lambda facts: prune(facts.automaton, facts.all_tables))
    """The tables of all actions that a decoder follows, without superfluous ones."""

    def is_followed(self, state: int, terminal: int) -> bool:
        """Whether a decoder follows several actions in a cell. If not, one action does for all.

        state : of `automaton`.
        terminal : column of the tables.
        """
        tables = self._followed
        at = int(np.searchsorted(tables.origin, state))
        if at == tables.n_states or tables.origin[at] != state:
            return False
        return len(tables.actions(at, terminal)) > 1

    @remembered
    def split(self) -> Disagreement | None:
        """A conflict with parses for which different terminals compete; None if there is none.

        Its state is one of `automaton`.
        """
        if self.grammar.lexing == "nfa" or len(self.modes) < 2:
            return None
        tables = self._followed
        found = disagreement(tables, self.modes.of_state[tables.origin]) if tables.n_conflicts else None
        return None if found is None else replace(found, state=int(tables.origin[found.state]))

    can_follow_all = remembered(lambda facts: facts.split is None and not is_lexed_by_endless_rules(facts.grammar))
    """Whether lexing allows a store that follows all actions of conflicts."""

    acceptable = remembered(lambda facts: np.asarray(facts.tables.action != 0))
    """(n_states, n_terminals + 1) bool: for each parser state the columns with an action.

    The last column is the end of the text.
    """

    can_follow = remembered(lambda facts: can_follow(facts.tables))
    """Whether one terminal may follow another; over-approximated (`encoding.can_follow`)."""

    transducer = remembered(lambda facts: build_transducer(facts.grammar, facts.can_follow, facts.modes))
    """The transducer that decoding uses.

    Raises: LimitError and GrammarError as `build_transducer`.
    """

    @property
    def reading_lexing(self) -> Literal["longest", "contextual"]:
        """The lexing in which lint reads texts: the grammar's own; "longest" for "nfa"."""
        return "contextual" if self.grammar.lexing == "contextual" else "longest"

    modes = remembered(lambda facts: facts.modes_of(facts.reading_lexing))
    """The terminals that compete in each mode, under `reading_lexing`."""

    def modes_of(self, lexing: Literal["longest", "contextual"]) -> Modes:
        """The modes under a given lexing."""
        tables = self.tables
        grammar = replace(self.grammar, lexing=lexing)
        return lexing_modes(grammar, self.acceptable, tables.terminal_column, tables.accessing)

    lexemes = remembered(
        lambda facts: [
            with_line_feed(dfa) if t == facts.grammar.newline else dfa for t, dfa in enumerate(facts.automata)
        ]
    )
    """For each terminal the automaton of its lexemes; the layout's newline has a line feed."""

    @remembered
    def no_newline(self) -> bytes | None:
        """A shortest text that the layout's newline matches without a line feed, if any."""
        matched = self.automata[self.grammar.newline] if self.grammar.newline >= 0 else None
        if matched is None:
            return None
        lexemes = self.lexemes[self.grammar.newline]
        others = matched if lexemes is None else difference(matched, lexemes)
        return None if others.is_empty else others.shortest()

    @remembered
    def lexer(self) -> Lexer:
        """The union automaton of the terminals.

        Raises: GrammarError if a terminal is faulty; LimitError if the terminals together have too
            many states.
        """
        if self.faulty:
            names = ", ".join(self.grammar.terminals[t].name for t in self.faulty)
            raise GrammarError(f"there is no lexer while some terminals cannot be compiled ({names})")
        return Lexer(self.lexemes, self.known_lexemes(self.modes))

    def known_lexemes(self, modes: Modes) -> Lexemes:
        """What is known of lexemes in some modes.

        Raises: LimitError if the terminals together have too many states.
        """
        return Lexemes(self.grammar, self.can_follow, modes, MAX_STATES, self.lexemes)

    reader = remembered(lambda facts: Reader(facts.lexer, facts.modes, facts.tables))
    """Reads texts as decoding does."""

    writer = remembered(lambda facts: Writer(facts.automaton, facts.lexer))
    """Writes texts of terminal sequences."""

    used = remembered(
        lambda facts: frozenset(s for rule in facts.reduced.rules for s in rule.rhs if s < facts.reduced.n_terminals)
    )
    """The terminals in rules that a text can use."""

    follows = remembered(lambda facts: neighbours(facts.reduced))
    """For each terminal, as bits, the terminals that stand directly after it in some sentence."""

    def text(self, terminals: Sequence[int]) -> bytes | None:
        """The beginning of a text with these terminals; None if it is not read as such."""
        text = self.writer.text(terminals)
        return text if text is not None and self.reader.read(text).reached == len(text) else None

    def name(self, terminal: int) -> str:
        """A terminal's display name, or its literal if the text has no name for it, shortened.

        Number n_terminals is the end of the text.
        """
        if terminal == self.grammar.n_terminals:
            return "the end of the text"
        name, literal = self.grammar.display_name(terminal), self.grammar.terminals[terminal].literal
        if literal is not None and name.isidentifier() and position_of(self.grammar.text, name) == (0, 0):
            name = json.dumps(literal, ensure_ascii=False) + self.grammar.terminals[terminal].flags
        return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."

    def without_name(self, error: MaskwrightError) -> str:
        """An error's message without the grammar's name, since all findings are of one grammar."""
        return str(error).removeprefix(f"grammar {self.grammar.name}: ")

    def finding(
        self,
        code: str,
        severity: Severity,
        at: Place | int,
        message: str,
        decoding: str,
        remedy: str,
        example: bytes | None = None,
    ) -> Finding:
        """A `Finding` in this grammar's file. at : its place, or a terminal; -1 for none."""
        line, column = self.at_terminal(at) if isinstance(at, int) else at
        text = "" if example is None else shown(example)
        return Finding(code, severity, self.file, line, column, message, decoding, remedy, text)

    def remedy(self, otherwise: str, *remedies: Remedy) -> str:
        """The remedies that help when tried, then `otherwise`, which the author may do instead."""
        helpful = [] if self.trials is None else [remedy.text for remedy in remedies if self.trials.helps(remedy)]
        return "; or ".join([*helpful, otherwise])

    def at_terminal(self, number: int) -> Place:
        """Where the text defines, imports or first uses a terminal; else (0, 0), also for -1."""
        return (self.grammar.terminals[number].line, self.grammar.terminals[number].column) if number >= 0 else (0, 0)

    def at_rule(self, name: str) -> Place:
        """Where the text defines, imports or first uses a rule; else (0, 0).

        name : the rule's, or a nonterminal's that was made of it; module__name if it is imported.
        """
        rule, text = rule_name(name), self.grammar.text
        found = position_of(text, rule)
        return found if found != (0, 0) else position_of(text, rule.rpartition("__")[2])


def _fault(terminal: Terminal) -> str:
    """The code of a finding on a terminal that could not be compiled."""
    try:
        dfa = compile_pattern(terminal.pattern or "", terminal.flags)
    except (TerminalError, LimitError):
        return "unsupported-pattern"
    return "matches-nothing" if dfa.is_empty else "matches-empty"
