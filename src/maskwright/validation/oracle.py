"""Which bytes are legal under `longest` and `contextual` lexing with layout, straight from the definition and from no fast code.

A prefix is legal iff *some* continuation C makes it a legal text. So the lexer here never simulates anything: it takes
concrete continuations C, lexes prefix + C with Python's own `re`, and keeps the lexemes that begin in the prefix (a
*reading*). Only two things come from elsewhere: `regex` with ``partial=True`` says whether a terminal's match could
still change if the text went on, and Lark's own LALR analysis builds the item sets, which are driven over linked
stacks that are never changed.

What is sound and what is bounded: every reading is that of a real continuation. The continuations that are tried are
suffixes of sample strings of the terminals and one character of every class that the patterns distinguish, so a
terminal that needs more than that to be completed or to fail would be missed (`_completing`, `_can_fail`).

Where the terminals that compete are up to the parser's state, the parser takes every lexeme before the next one is read, also within
prefix + C. Stacks on which different terminals compete read the text each in its own way, from *configurations* of their own.

Assumed, as in the definition: after a terminal that the parser shifts some terminal can follow (checked only one
terminal deep), and some continuation separates two lexemes of which the first is not ignored.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.columns import Column
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.validation.oracle_lexing import Reading, lexer_of
from maskwright.validation.oracle_parsing import Configuration, Parse, merged, parser_of

_CHUNK = 256  # bytes between two states that `Oracle.feed` remembers


class Oracle:
    """Legality of texts, prefixes and tokens for one grammar; slow, and written to be believed.

    conflicts : what the parser does with conflicts, see `Grammar`; by default what the grammar says.

    Raises GrammarError for the lexing "nfa", MissingExtraError without the package regex.
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
        """Does some continuation make it a legal text?"""
        return self.feed(text).is_legal

    def is_legal_text(self, text: bytes) -> bool:
        """Does it lex into terminals that the parser accepts?"""
        return self.feed(text).is_legal_text

    def is_allowed(self, prefix: bytes, token: bytes) -> bool:
        return self.feed(prefix).allows(token)

    def feed(self, prefix: bytes) -> State:
        """The state after `prefix`; resumes from the last prefix that was fed as far as the two agree."""
        while not prefix.startswith(self._trail[-1][0]):
            self._trail.pop()
        fed, state = self._trail[-1]
        for begin in range(len(fed), len(prefix), _CHUNK):
            state = state.feed(prefix[begin : begin + _CHUNK])
            self._trail.append((prefix[: begin + _CHUNK], state))
        return state


@dataclass(frozen=True)
class State:
    """After a text: what is decided has gone into the parses of `configurations` (none: illegal), the rest is `text` from there on.

    places : one where all stacks read alike. text : a few decided characters that look-behinds may see, then the undecided ones.
    rest : bytes of an incomplete last character.
    """

    oracle: Oracle = field(repr=False)
    configurations: tuple[Configuration, ...]
    text: str = ""
    rest: bytes = b""

    def feed(self, more: bytes) -> State:
        """The state after some more bytes."""
        if not self.configurations:
            return self
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = self.text + decoder.decode(self.rest + more)
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
        return self.feed(token).is_legal

    @property
    def is_legal(self) -> bool:
        """Is the text so far a legal prefix?"""
        lexer, parser = self.oracle.lexer, self.oracle.parser
        texts = (
            [self.text + c for c in lexer.completions(self.rest)] if self.rest and self.configurations else [self.text]
        )
        return self.is_legal_text or any(
            self._leads_on(parse, reading)
            for text in texts
            for start, parse in self.configurations
            for reading in lexer.readings(text, start, parser, parse)
        )

    @property
    def is_legal_text(self) -> bool:
        lexer, parser = self.oracle.lexer, self.oracle.parser
        for start, parse in () if self.rest else self.configurations:
            for chain in lexer.at_end_of_text(self.text, start, parser, parse):
                after: Parse | None = parse
                for lexeme in chain:
                    step = lexer.step(lexeme, self.text)
                    if lexeme[2] == len(self.text) and step.column is not None:
                        step = step._replace(
                            column=Column()
                        )  # what ends the text is behind its last line, whatever blanks it has
                    after = None if after is None else parser.step(after, step)
                if after is not None and parser.accepts_end(after):
                    return True
        return False

    def _leads_on(self, parse: Parse | None, reading: Reading) -> bool:
        parser = self.oracle.parser
        for step in reading[:-1]:
            parse = None if parse is None else parser.step(parse, step)
        if parse is None:
            return False
        after = parser.last_step(parse, reading[-1]) if reading else iter([parse])
        return any(parser.leads_on(found, reading[-1].behind if reading else None) for found in after)
