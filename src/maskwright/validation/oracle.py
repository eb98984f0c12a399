"""Which bytes are legal under `longest` lexing with layout, straight from the definition and from no fast code.

A prefix is legal iff *some* continuation C makes it a legal text. So the lexer here never simulates anything: it takes
concrete continuations C, lexes prefix + C with Python's own `re`, and keeps the lexemes that begin in the prefix (a
*reading*). Only two things come from elsewhere: `regex` with ``partial=True`` says whether a terminal's match could
still change if the text went on, and Lark's own LALR analysis builds the item sets, which are driven over linked
stacks that are never changed.

What is sound and what is bounded: every reading is that of a real continuation. The continuations that are tried are
suffixes of sample strings of the terminals and one character of every class that the patterns distinguish, so a
terminal that needs more than that to be completed or to fail would be missed (`_completing`, `_can_fail`).

Assumed, as in the definition: after a terminal that the parser shifts some terminal can follow (checked only one
terminal deep), and some continuation separates two lexemes.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from maskwright.analysis.errors import GrammarError
from maskwright.analysis.grammar.grammar import Conflicts, Grammar
from maskwright.validation.oracle_lexing import Reading, lexer_of
from maskwright.validation.oracle_parsing import Parse, parser_of

_CHUNK = 256  # bytes between two states that `Oracle.feed` remembers


class Oracle:
    """Legality of texts, prefixes and tokens for one grammar; slow, and written to be believed.

    conflicts : what the parser does with conflicts, see `Grammar`; Lark's own way by default.

    Raises GrammarError for another lexing than "longest", MissingExtraError without the package regex.
    """

    def __init__(self, grammar: Grammar, conflicts: Conflicts = "shift") -> None:
        if grammar.lexing != "longest":
            raise GrammarError(
                f"grammar {grammar.name}: the oracle lexes by the longest match; lexing is {grammar.lexing!r}"
            )
        self.grammar = grammar
        self.conflicts = conflicts
        self.lexer = lexer_of(grammar)
        self.parser = parser_of(grammar, conflicts)
        self.root = State(self, self.parser.initial)
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
    """After a text: what is decided has gone into `parse` (None: illegal), the rest is `text` from `start` on.

    text : a few decided characters that look-behinds may see, then the undecided ones. rest : bytes of an incomplete
    last character.
    """

    oracle: Oracle = field(repr=False)
    parse: Parse | None
    text: str = ""
    start: int = 0
    rest: bytes = b""

    def feed(self, more: bytes) -> State:
        """The state after some more bytes."""
        if self.parse is None:
            return self
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            text = self.text + decoder.decode(self.rest + more)
        except UnicodeDecodeError:
            return State(self.oracle, None)
        lexer, parser = self.oracle.lexer, self.oracle.parser
        parse: Parse | None = self.parse
        start = self.start
        while parse is not None and start < len(text):
            terminal, end, open_ones = lexer.scan(text, start)
            if open_ones or end == len(text):
                break
            if terminal is None:
                return State(self.oracle, None)
            parse, start = parser.step(parse, lexer.step((terminal, start, end), text)), end
        cut = max(0, start - lexer.context)
        return State(self.oracle, parse, text[cut:], start - cut, decoder.getstate()[0])

    def allows(self, token: bytes) -> bool:
        return self.feed(token).is_legal

    @property
    def is_legal(self) -> bool:
        """Is the text so far a legal prefix?"""
        if self.parse is None:
            return False
        lexer = self.oracle.lexer
        texts = [self.text + c for c in lexer.completions(self.rest)] if self.rest else [self.text]
        return any(self._leads_on(reading) for text in texts for reading in lexer.readings(text, self.start))

    @property
    def is_legal_text(self) -> bool:
        parse, lexer, parser = self.parse, self.oracle.lexer, self.oracle.parser
        chain = None if self.rest else lexer.at_end_of_text(self.text, self.start)
        for lexeme in chain or ():
            parse = None if parse is None else parser.step(parse, lexer.step(lexeme, self.text))
        return chain is not None and parse is not None and parser.accepts_end(parse)

    def _leads_on(self, reading: Reading) -> bool:
        parse, parser = self.parse, self.oracle.parser
        for step in reading[:-1]:
            parse = None if parse is None else parser.step(parse, step)
        if parse is None:
            return False
        after = parser.last_step(parse, reading[-1]) if reading else iter([parse])
        return any(parser.leads_on(found) for found in after)
