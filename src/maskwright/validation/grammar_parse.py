"""Does a grammar accept a whole text? In: a grammar and a text. Out: where it refuses the text.

This is the second opinion on a refusal of the engine, with which it shares no code. It uses the
longest match by Python's own `re`, Lark's LALR(1) item sets and Lark's layout. As in the oracle,
the parser's state may choose which terminals compete where a lexeme begins.

A refusal names a lexeme. Some legal text begins with everything before that lexeme: an LR parser
never shifts what cannot be continued.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from maskwright.analysis.errors import GrammarError, MissingExtraError
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.validation.oracle import Oracle
from maskwright.validation.oracle_lexing import as_step, may_end, patterns_of
from maskwright.validation.oracle_modes import Mode
from maskwright.validation.oracle_parsing import Configuration, merged, parser_of


@dataclass(frozen=True, slots=True)
class Refused:
    """Where a text is refused.

    begin, end : offsets of the lexeme that cannot come, in characters. Both are the text's length
        if only the end of the text is wrong.
    why : the reason, in words.
    """

    begin: int
    end: int
    why: str


class GrammarParse:
    """Parses whole texts under a grammar of lexing "longest" or "contextual".

    Raises: GrammarError for lexing "nfa", which cuts a text into lexemes in many ways.
    Cost: 2 s for python.lark, then some 30 us for a lexeme.
    """

    def __init__(self, grammar: Grammar) -> None:
        if grammar.lexing == "nfa":
            raise GrammarError(
                f"grammar {grammar.name}: only lexing 'longest' and 'contextual' have an independent parse, not {grammar.lexing!r}"
            )
        self.grammar = grammar
        self._patterns = patterns_of(grammar)
        self._parser = parser_of(grammar, grammar.conflicts)
        self._oracle = cache(lambda: Oracle(grammar, grammar.conflicts))

    def refusal(self, text: str) -> Refused | None:
        """Where the grammar refuses a text; None if it accepts the text.

        Raises: LimitError for a text with too many readings.
        """
        grammar, parser = self.grammar, self._parser
        configurations: list[Configuration] = [(0, parser.initial)]
        refused = Refused(0, 0, "the text cannot end here")
        while configurations:
            # There are several where stacks compete on different terminals. `merged` sorts them by
            # offset, so the one that lags behind is read first.
            if len(configurations) > 1:
                configurations = merged(configurations)
            begin, parse = configurations.pop(0)
            if begin == len(text):
                if not parser.accepts_end(parse):
                    refused = Refused(begin, begin, "the text cannot end here")
                    continue
                cut = Refused(begin, begin, "the end of the text cuts a longer lexeme short")
                return None if self._ends_decided(text) else cut
            for mode in parser.modes(parse):
                terminal, end = self._longest(text, begin, mode)
                if terminal is None:
                    refused = Refused(begin, begin + 1, f"no terminal matches {text[begin : begin + 20]!r}")
                    continue
                step = as_step(grammar.layout, (terminal, begin, end, mode), text)
                if end == len(text) and step.column is not None:
                    # a newline that ends the text closes all indents, whatever its blanks
                    step = step._replace(column=Column())
                after = parser.step(parse, step)
                if after is None:
                    name = grammar.display_name(terminal)
                    refused = Refused(begin, end, f"{name} ({text[begin : min(end, begin + 40)]!r}) cannot come here")
                else:
                    configurations.append((end, after))
        return refused

    def _longest(self, text: str, begin: int, mode: Mode) -> tuple[int | None, int]:
        """The terminal of the longest match at an offset, None if there is none, and its end."""
        winner, longest = None, begin
        for number, pattern in self._patterns.items():
            if mode is None or number in mode:
                end = pattern.end(text, begin)
                if end > longest and may_end(self.grammar.layout, number, text[begin:end]):
                    winner, longest = number, end
        return winner, longest

    def _ends_decided(self, text: str) -> bool:
        """Whether the end of the text cuts no longer lexeme short.

        Only the oracle knows this. True without asking it if a pattern needs the package regex, and
        it is not installed.
        """
        try:
            return self._oracle().is_legal_text(text.encode())
        except MissingExtraError:
            return True
