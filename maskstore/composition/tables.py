"""The stores of a host and of its parts, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from maskwright.analysis.composition.compose import Composition
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, Spellings, Texts
from maskwright.maskstore.composition.json_strings import JsonStringTokens
from maskwright.maskstore.composition.splits import Split
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words


class InnerStore(Protocol):
    """A store of any kind, of a host or a part: what makes matchers of it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""

    def matcher(self, max_rollback: int = ...) -> Any:
        """The state of one text, at its start."""


@dataclass(frozen=True, eq=False)
class TextPart:
    """A part that stands in the host's text as it is.

    store : for the host's vocabulary.
    ends : bytes of which a whole text has one last, but for white space; None if nothing is known.
    """

    name: str
    store: InnerStore
    ends: frozenset[int] | None = None


@dataclass(frozen=True, eq=False)
class JsonStringPart:
    """A part inside a JSON string. store : for the vocabulary of `tokens`."""

    name: str
    store: InnerStore
    tokens: JsonStringTokens


@dataclass(frozen=True, eq=False)
class TokenPart:
    """A part that is one special token. token : its id."""

    name: str
    token: int


def last_bytes(texts: Texts) -> frozenset[int]:
    """The bytes of which a whole JSON text has one last, but for white space.

    Example: of a schema of objects this is the byte of ``}``.
    """
    found: set[int] = set()
    for shape in texts.graph.nodes[texts.graph.root]:
        match shape:
            case Objects():
                found.update(b"}")
            case Arrays():
                found.update(b"]")
            case Numbers():
                found.update(b"0123456789")
            case Spellings(spelled):
                found.update(text[-1] for text in spelled)
            case _:
                found.update(b'"')
    return frozenset(found)


AnyPart: TypeAlias = TextPart | JsonStringPart | TokenPart


@dataclass(frozen=True, eq=False)
class ComposedTables:
    """Exact masks for a host with parts, and a vocabulary.

    name : what errors call it.
    vocabulary : of the texts.
    composition : what was composed.
    host : the host's store. A grammar's is for the vocabulary's tokens, without those that hold a
        byte of a mark, and behind them, for each member of `beginnings`, its first bytes with the
        first byte of a mark: what it allows of these tells where a part may begin inside a token.
        The last ones are the marks, so that tokens can spell the host's texts.
    parts : by number.
    first : for each part the bytes that it may begin with; of a part that may be empty, all.
    beginnings : the tokens' cuts before such a byte, by what stands before it; () if the host is a
        schema.
    """

    name: str
    vocabulary: Vocabulary
    composition: Composition
    host: InnerStore
    parts: tuple[AnyPart, ...]
    first: tuple[frozenset[int], ...]
    beginnings: tuple[Split, ...]

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)
