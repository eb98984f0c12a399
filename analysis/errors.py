"""The errors that a user of maskwright can meet, one class per cause that a user can fix."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MaskwrightError(ValueError):
    """The base of every error that maskwright raises on purpose.

    The message says what is wrong, where, and what to do.
    """


class MaskwrightWarning(UserWarning):
    """Something that was taken as it is, and is probably not what was meant."""


class UnknownNameError(MaskwrightError):
    """A grammar, tokenizer or option was named that does not exist; the message suggests others."""


class GrammarError(MaskwrightError):
    """A grammar cannot be read, parsed or used.

    Examples: bad syntax, an undefined or unproductive symbol, a layout that does not fit.
    """


class EmptyLanguageError(GrammarError):
    """No finite text can be derived from a grammar's start symbol.

    grammar : the grammar as it was read, for `lint_grammar`.
    """

    def __init__(self, message: str, grammar: object = None) -> None:
        super().__init__(message)
        self.grammar = grammar


class UnusedPartError(GrammarError):
    """A part of a composition stands in no rule."""


class TerminalError(GrammarError):
    """A terminal's pattern cannot be compiled to a byte automaton, or matches the empty string."""


class LimitError(MaskwrightError):
    """A construction would grow past its stated limit; the message names the cause."""


class NestingError(LimitError):
    """Parts of a grammar, a pattern or a JSON value stand too deep inside one another."""


class BackupError(LimitError):
    """A lexer would have to back up over more lexemes or bytes than it can.

    terminals : numbers of the terminal that may have ended first and of those that go on, in this
        order.
    """

    def __init__(self, message: str, terminals: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.terminals = terminals


class SchemaError(MaskwrightError):
    """A JSON Schema is malformed, has no instance, or says what no mask can say exactly.

    pointer : the JSON pointer of the subschema or keyword, "" for the whole document.
    """

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message)
        self.pointer = pointer


class EmptySchemaError(SchemaError):
    """No value satisfies a JSON Schema, so no text could be written."""


class VocabularyError(MaskwrightError):
    """A tokenizer file cannot be read exactly, or its tokens are not usable."""


class StoreError(MaskwrightError):
    """A mask store file cannot be used.

    It is damaged, has another format version, or does not belong to the given grammar or tokenizer.
    """


class MissingExtraError(MaskwrightError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class IllegalTokenError(MaskwrightError):
    """A token was given that the grammar does not allow here. The state is as it was before."""


class DeadEndError(MaskwrightError):
    """No token of the vocabulary can come next, though the text is not complete."""


@contextmanager
def within(where: str, *, known: str = "") -> Iterator[None]:
    """Errors raised inside say where they are, but for those that begin with `known` or `where`."""
    try:
        yield
    except MaskwrightError as error:
        if not str(error).startswith(known or where):
            error.args = (f"{where}: {error}", *error.args[1:])
        raise
