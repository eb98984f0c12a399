"""The errors that a user of maskwright can meet, one class per cause that a user can fix."""

from __future__ import annotations


class MaskwrightError(ValueError):
    """The base of every error that maskwright raises on purpose. The message says what, where and what to do."""


class UnknownNameError(MaskwrightError):
    """A grammar, tokenizer or option was named that does not exist; the message suggests the nearest."""


class GrammarError(MaskwrightError):
    """A grammar file cannot be read, parsed or used (syntax, undefined or unproductive symbols, layout)."""


class EmptyLanguageError(GrammarError):
    """No finite text can be derived from a grammar's start symbol. grammar : what was read all the same, for `lint_grammar`."""

    def __init__(self, message: str, grammar: object = None) -> None:
        super().__init__(message)
        self.grammar = grammar


class TerminalError(GrammarError):
    """A terminal's pattern cannot be compiled to a byte automaton, or matches the empty string."""


class LimitError(MaskwrightError):
    """A construction would grow past its stated limit; the message names what is responsible."""


class BackupError(LimitError):
    """A lexer would have to back up over any number of lexemes or bytes. terminals : by number, the one that may have ended first, then
    those that go on."""

    def __init__(self, message: str, terminals: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.terminals = terminals


class VocabularyError(MaskwrightError):
    """A tokenizer file cannot be read exactly, or its tokens are not usable."""


class StoreError(MaskwrightError):
    """A mask store file is damaged, of another format version, or does not belong to the given grammar or tokenizer."""


class MissingExtraError(MaskwrightError, ImportError):
    """An optional dependency is not installed; the message names the extra to install."""


class IllegalTokenError(MaskwrightError):
    """A token was fed that the grammar does not allow here. The state is as it was before."""


class DeadEndError(MaskwrightError):
    """No token of the vocabulary can come next though the text is not complete."""
