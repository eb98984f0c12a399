"""Parts that speak of tokens: a special token, one of a set, at most so many tokens.

A special token and a token of a set are taken whole: none of their bytes are text of the host or of
another part. A part of at most so many tokens is a run of tokens that are taken whole, or a text
that counts the tokens it takes something of. Which ids there are says the vocabulary of a store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import GrammarError
from maskwright.analysis.fronts.llguidance_syntax import Atom
from maskwright.analysis.schema.text_patterns import Regex

MOST_TOKENS = 2**31 - 1
"""BOUND: the tokens that a budget may count, as in xgrammar."""


@dataclass(frozen=True)
class SpecialToken:
    """A part that is one special token, such as `<|tool_call|>`.

    token : the token's id, or its name in the vocabulary.
    """

    token: int | str


@dataclass(frozen=True)
class TokenSet:
    """A part that is one token of a set, with text or without.

    tokens : ids, or names of special tokens, or texts.
    is_excluding : whether the set is of all other tokens: all that have a text or a name, but for
        those that end a text.
    """

    tokens: tuple[int | str, ...]
    is_excluding: bool = False


@dataclass(frozen=True, eq=False)
class AtMostTokens:
    """A part that ends as soon as it can behind so many tokens.

    inner : a pattern, which may end inside the last of the tokens. A token counts if the part has
        begun when the token begins; one within which the part begins does not. Or a set of tokens,
        of which the part has at least one.
    most : how many, at least 1.
    """

    inner: Regex | TokenSet
    most: int


TokenParts = SpecialToken | TokenSet | AtMostTokens


def special_token(token: int | str) -> SpecialToken:
    """A part that is one special token of the vocabulary, by id or by name.

    Raises: GrammarError for anything but an id or a name.
    """
    check_token(token, "the special token")
    return SpecialToken(token)


def token_set(tokens: Iterable[int | str], *, is_excluding: bool = False) -> TokenSet:
    """A part that is one token of a set.

    tokens, is_excluding : as of `TokenSet`.

    Raises: GrammarError for anything but ids and names.
    """
    found = list(tokens)
    for token in found:
        check_token(token, "a token")
    return TokenSet(tuple(sorted(set(found), key=lambda token: (isinstance(token, str), token))), is_excluding)


def token_part(atom: Atom) -> SpecialToken | TokenSet:
    """What a token that stands in a grammar's text means: `<name>`, or one of a set."""
    if isinstance(atom.value, tuple):
        return token_set(atom.value[0], is_excluding=atom.value[1])
    return special_token(atom.value)


def check_token(token: object, what: str) -> None:
    """Refuse what is no id and no name. what : what errors call it.

    Raises: GrammarError.
    """
    is_id = isinstance(token, int) and not isinstance(token, bool) and token >= 0
    if not is_id and not (isinstance(token, str) and token):
        raise GrammarError(f"{what} is {clip(token)}; expected an id, a name or a text")
