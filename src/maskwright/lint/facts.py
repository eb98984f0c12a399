"""Shared results of the checks: automata, tables, shortest texts. Each is computed on first use."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, TerminalError
from maskwright.analysis.fronts.neighbours import neighbours
from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Terminal
from maskwright.analysis.grammar.lark_files import position_of, rule_name
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.kept import cached_property
from maskwright.analysis.lexing.encoding import Transducer
from maskwright.analysis.lexing.lexemes import Lexemes
from maskwright.analysis.lexing.modes import Modes, lexing_modes
from maskwright.analysis.lexing.terminal_nfa import UNION_STATE_LIMIT
from maskwright.analysis.lexing.terminals import compile_pattern, compile_terminal, with_line_feed
from maskwright.analysis.lexing.transducer import build_transducer
from maskwright.analysis.lr.acyclic import without_endless
from maskwright.analysis.lr.agreement import Disagreement, disagreement
from maskwright.analysis.lr.automaton import Automaton, build_automaton
from maskwright.analysis.lr.domination import prune
from maskwright.analysis.lr.encoding import LrTables, can_follow
from maskwright.analysis.lr.lookaheads import Lookaheads, has_conflicts, lookaheads
from maskwright.analysis.lr.merging import merge
from maskwright.analysis.lr.splits import is_lexed_by_endless_rules
from maskwright.analysis.lr.tables import tables_of
from maskwright.analysis.regex.dfa import Dfa, difference
from maskwright.lint.finding import Finding, Place, Severity
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
                if dfa.n_states > UNION_STATE_LIMIT and grammar.lexing != "nfa":
                    raise LimitError(
                        f"{grammar.name}: its automaton has {dfa.n_states} states; all terminals of a lexer together may have "
                        f"{UNION_STATE_LIMIT}"
                    )
                self.automata[number] = dfa
            except MaskwrightError as error:
                code = "too-large" if isinstance(error, LimitError) else _fault(terminal)
                self.faulty[number] = code, str(error)

    @remembered
    def reduced(self) -> Grammar:
        """The grammar without rules and symbols that no text uses."""
        return reduce(self.grammar)

    @remembered
    def parsed(self) -> Grammar:
        """The rules that the parser has.

        These are the reduced rules. With conflicts "all" they are rewritten without endless
        derivations.
        """
        return without_endless(self.reduced) if self.grammar.conflicts == "all" else self.reduced

    @remembered
    def automaton(self) -> Automaton:
        """The LR(0) automaton of the parsed rules."""
        return build_automaton(self.parsed)

    @remembered
    def lookaheads(self) -> Lookaheads:
        """The LALR(1) lookaheads of the automaton."""
        return lookaheads(self.automaton)

    @remembered
    def tables(self) -> LrTables:
        """The LALR(1) tables that decoding uses. States have the numbers of `automaton`."""
        return self._tables_of(self.automaton, self.grammar.conflicts)

    @remembered
    def all_tables(self) -> LrTables:
        """The tables with all actions of every cell."""
        return self._tables_of(self.automaton, "all")

    @remembered
    def larks_tables(self) -> LrTables:
        """The tables of the author's rules in Lark's parser, which shifts rather than reduces."""
        return self._tables_of(
            self.automaton if self.parsed is self.reduced else build_automaton(self.reduced), "shift"
        )

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

    @remembered
    def _followed(self) -> LrTables:
        """The tables of all actions that a decoder follows, without superfluous ones."""
        return prune(self.automaton, self.all_tables)

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

    @remembered
    def can_follow_all(self) -> bool:
        """Whether lexing allows a store that follows all actions of conflicts."""
        return self.split is None and not is_lexed_by_endless_rules(self.grammar)

    @remembered
    def acceptable(self) -> npt.NDArray[np.bool_]:
        """(n_states, n_terminals + 1) bool: for each parser state the columns with an action.

        The last column is the end of the text.
        """
        return np.asarray(self.tables.action != 0)

    @remembered
    def can_follow(self) -> Callable[[int, int], bool]:
        """Whether one terminal may follow another; over-approximated (`encoding.can_follow`)."""
        return can_follow(self.tables)

    @remembered
    def transducer(self) -> Transducer:
        """The transducer that decoding uses.

        Raises: LimitError and GrammarError as `build_transducer`.
        """
        return build_transducer(self.grammar, self.can_follow, self.modes)

    @property
    def reading_lexing(self) -> Literal["longest", "contextual"]:
        """The lexing in which lint reads texts: the grammar's own; "longest" for "nfa"."""
        return "contextual" if self.grammar.lexing == "contextual" else "longest"

    @remembered
    def modes(self) -> Modes:
        """The terminals that compete in each mode, under `reading_lexing`."""
        return self.modes_of(self.reading_lexing)

    def modes_of(self, lexing: Literal["longest", "contextual"]) -> Modes:
        """The modes under a given lexing."""
        tables = self.tables
        grammar = replace(self.grammar, lexing=lexing)
        return lexing_modes(grammar, self.acceptable, tables.terminal_column, tables.accessing)

    @remembered
    def lexemes(self) -> list[Dfa | None]:
        """For each terminal the automaton of its lexemes.

        This is the terminal's automaton. For the layout's newline it keeps only texts with a line
        feed (`with_line_feed`).
        """
        return [with_line_feed(dfa) if t == self.grammar.newline else dfa for t, dfa in enumerate(self.automata)]

    @remembered
    def no_newline(self) -> bytes | None:
        """A shortest text that the layout's newline matches although it has no line feed.

        Such a text is no newline. None if there is no such text.
        """
        newline = self.grammar.newline
        matched = self.automata[newline] if newline >= 0 else None
        if matched is None:
            return None
        lexemes = self.lexemes[newline]
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

    @property
    def has_lexer(self) -> bool:
        """Whether there is a lexer, so that texts can be written and read."""
        try:
            _ = self.lexer
        except MaskwrightError:
            return False
        return True

    def known_lexemes(self, modes: Modes) -> Lexemes:
        """What is known of lexemes in some modes.

        Raises: LimitError if the terminals together have too many states.
        """
        return Lexemes(self.grammar, self.can_follow, modes, UNION_STATE_LIMIT, self.lexemes)

    @remembered
    def reader(self) -> Reader:
        """Reads texts as decoding does."""
        return Reader(self.lexer, self.modes, self.tables)

    @remembered
    def writer(self) -> Writer:
        """Writes texts of terminal sequences."""
        return Writer(self.automaton, self.lexer)

    @remembered
    def used(self) -> frozenset[int]:
        """The terminals in rules that a text can use."""
        n = self.grammar.n_terminals
        return frozenset(symbol for rule in self.reduced.rules for symbol in rule.rhs if symbol < n)

    @remembered
    def follows(self) -> list[int]:
        """For each terminal, as bits, the terminals that stand directly after it in some sentence.

        This is exact because the rules are reduced.
        """
        return neighbours(self.reduced)

    def text(self, terminals: Sequence[int]) -> bytes | None:
        """The beginning of a text with these terminals.

        Returns None if it cannot be written, or if what was written is not read in full.
        """
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
        place: Place,
        message: str,
        decoding: str,
        remedy: str,
        example: str = "",
    ) -> Finding:
        """A `Finding` in this grammar's file."""
        return Finding(code, severity, self.file, *place, message, decoding, remedy, example)

    def remedy(self, otherwise: str, *remedies: Remedy) -> str:
        """The remedies that help when tried, then `otherwise`, which the author may do instead."""
        helpful = [] if self.trials is None else [remedy.text for remedy in remedies if self.trials.helps(remedy)]
        return "; or ".join([*helpful, otherwise])

    def at_terminal(self, number: int) -> Place:
        """Where the text defines, imports or first uses a terminal; else (0, 0)."""
        return self.grammar.terminals[number].line, self.grammar.terminals[number].column

    def at_rule(self, name: str) -> Place:
        """Where the text defines, imports or first uses a rule; else (0, 0).

        name : the rule's, or a nonterminal's that was made of it.
        """
        rule = rule_name(name)
        found = position_of(self.grammar.text, rule)
        # An imported rule is called module__name.
        return found if found != (0, 0) else position_of(self.grammar.text, rule.rpartition("__")[2])


def _fault(terminal: Terminal) -> str:
    """The code of a finding on a terminal that could not be compiled."""
    try:
        dfa = compile_pattern(terminal.pattern or "", terminal.flags)
    except (TerminalError, LimitError):
        return "unsupported-pattern"
    return "matches-nothing" if dfa.is_empty else "matches-empty"
