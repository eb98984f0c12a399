"""Which texts and prefixes are legal, directly from the definition. In: a grammar. Out: verdicts.

The oracle shares no code with the engine. It covers lexing "longest" and "contextual", with layout.

A prefix is legal iff *some* string C makes prefix + C a legal text. So the lexer does not simulate
anything. It takes concrete strings C, lexes prefix + C with Python's own `re`, and keeps the
lexemes that begin in the prefix (a *reading*). Two parts come from other packages: `regex` with
``partial=True`` says whether a terminal's match could still change if the text went on, and Lark's
LALR analysis builds the item sets. The parser runs these over linked stacks that never change.

What is sound: every reading is that of a real text. What is bounded: the strings C that are tried
are suffixes of sample strings of the terminals, and one character of every class that the patterns
distinguish. A terminal that needs another string to be completed, or to fail, is missed
(`_completing`, `_can_fail`).

If the parser's state chooses the terminals that compete, the parser takes each lexeme before the
next one is read, within prefix + C too. Stacks on which different terminals compete may read the
text in different ways, so each way has its own *configuration*.

Assumed, as in the definition: some terminal can follow each terminal that the parser shifts (this
is checked only one terminal deep), and some string separates two lexemes of which the first is not
ignored.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from functools import cache

from maskwright.analysis.errors import GrammarError, MissingExtraError
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.validation.oracle_lexing import LexemeReading, as_step, lexer_of, may_end, patterns_of
from maskwright.validation.oracle_parsing import Configuration, Mode, Parse, merged, parser_of

_CHUNK = 256
"""Bytes between two states that `Oracle.feed` remembers."""


class Oracle:
    """Decides whether texts, prefixes and tokens are legal under one grammar.

    Written for correctness, not for speed.

    grammar : a grammar of lexing "longest" or "contextual".
    conflicts : what the parser does with conflicts, see `Grammar`; by default what the grammar
        says.

    Raises: GrammarError for lexing "nfa"; MissingExtraError if a pattern needs the
        package regex, and it is not installed.
        The methods raise LimitError for a text with more than `MAX_STACKS` readings.
    """

    def __init__(self, grammar: Grammar, conflicts: Conflicts | None = None) -> None:
        if grammar.lexing == "nfa":
            raise GrammarError(
                f"grammar {grammar.name}: the oracle lexes by the longest match; lexing is {grammar.lexing!r}"
            )
        self.grammar = grammar
        self.conflicts = conflicts or grammar.conflicts
        self.lexer = lexer_of(grammar)
        self.parser = parser_of(grammar, self.conflicts)
        self.root = State(self, ((0, self.parser.initial),))
        self._trail: list[tuple[bytes, State]] = [(b"", self.root)]

    def is_legal_prefix(self, text: bytes) -> bool:
        """Whether some string of bytes makes the text, followed by it, a legal text."""
        return self.feed(text).is_legal

    def is_legal_text(self, text: bytes) -> bool:
        """Whether the text lexes into terminals that the parser accepts as a whole."""
        return self.feed(text).is_legal_text

    def is_allowed(self, prefix: bytes, token: bytes) -> bool:
        """Whether prefix + token is a legal prefix."""
        return self.feed(prefix).allows(token)

    def feed(self, prefix: bytes) -> State:
        """The state after a prefix.

        Resumes from a state that the last call left, as far as the two prefixes agree.
        """
        while not prefix.startswith(self._trail[-1][0]):
            self._trail.pop()
        fed, state = self._trail[-1]
        for begin in range(len(fed), len(prefix), _CHUNK):
            state = state.feed(prefix[begin : begin + _CHUNK])
            self._trail.append((prefix[: begin + _CHUNK], state))
        return state


@dataclass(frozen=True)
class State:
    """All that the oracle knows of a text. The lexemes that are decided are part of the parses.

    oracle : the oracle that made the state.
    configurations : pairs of an offset in `text` (characters) where the next lexeme begins, and the
        parse before it. There is only one where all stacks read the text alike. () if the text is
        illegal.
    text : the undecided characters, after a few decided ones that look-behinds may see.
    incomplete : the bytes of an incomplete last character.
    """

    oracle: Oracle = field(repr=False)
    configurations: tuple[Configuration, ...]
    text: str = ""
    incomplete: bytes = b""

    def feed(self, more: bytes) -> State:
        """The state after more bytes. Bytes that are not UTF-8 make the text illegal."""
        if not self.configurations:
            return self
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = self.text + decoder.decode(self.incomplete + more)
        except UnicodeDecodeError:
            return State(self.oracle, ())
        lexer, parser = self.oracle.lexer, self.oracle.parser
        agenda, found = list(self.configurations), []
        while agenda:
            if len(agenda) > 1:
                agenda = merged(agenda)
            start, parse = agenda.pop(0)
            for mode in parser.modes(parse):
                terminal, end, open_ones = lexer.scan(text, start, mode)
                if start == len(text) or open_ones or end == len(text):
                    found.append((start, parser.only(parse, mode)))
                elif terminal is not None:
                    after = parser.step(parse, lexer.step((terminal, start, end, mode), text))
                    agenda += [(end, after)] if after is not None else []
        if not found:
            return State(self.oracle, ())
        configurations = merged(found) if len(found) > 1 else found
        cut = max(0, min(start for start, _ in configurations) - lexer.context)
        moved = tuple((start - cut, parse) for start, parse in configurations)
        return State(self.oracle, moved, text[cut:], decoder.getstate()[0])

    def allows(self, token: bytes) -> bool:
        """Whether the text followed by a token is a legal prefix."""
        return self.feed(token).is_legal

    @property
    def is_legal(self) -> bool:
        """Whether the text so far is a legal prefix."""
        lexer, parser = self.oracle.lexer, self.oracle.parser
        texts = (
            [self.text + c for c in lexer.completions(self.incomplete)]
            if self.incomplete and self.configurations
            else [self.text]
        )
        return self.is_legal_text or any(
            self._leads_on(parse, reading)
            for text in texts
            for start, parse in self.configurations
            for reading in lexer.readings(text, start, parser, parse)
        )

    @property
    def is_legal_text(self) -> bool:
        """Whether the text so far is a legal text."""
        lexer, parser = self.oracle.lexer, self.oracle.parser
        for start, parse in () if self.incomplete else self.configurations:
            for chain in lexer.at_end_of_text(self.text, start, parser, parse):
                after: Parse | None = parse
                for lexeme in chain:
                    step = lexer.step(lexeme, self.text)
                    if lexeme[2] == len(self.text) and step.column is not None:
                        # a newline that ends the text closes all indents, whatever its blanks
                        step = step._replace(column=Column())
                    after = None if after is None else parser.step(after, step)
                if after is not None and parser.accepts_end(after):
                    return True
        return False

    def _leads_on(self, parse: Parse | None, reading: LexemeReading) -> bool:
        """Whether the parser accepts a reading, and the text may end or go on after it."""
        parser = self.oracle.parser
        for step in reading[:-1]:
            parse = None if parse is None else parser.step(parse, step)
        if parse is None:
            return False
        after = parser.last_step(parse, reading[-1]) if reading else iter([parse])
        return any(parser.leads_on(found, reading[-1].behind if reading else None) for found in after)


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

    This is the second opinion on a refusal of the engine, with which it shares no code. It uses the
    longest match by Python's own `re`, Lark's LALR(1) item sets and Lark's layout. As in the
    oracle, the parser's state may choose which terminals compete where a lexeme begins.

    A refusal names a lexeme. Some legal text begins with everything before that lexeme: an LR
    parser never shifts what cannot be continued.

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
