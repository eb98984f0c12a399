"""The stores of a host and of its parts, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.composition.compose import Composition
from maskwright.analysis.composition.tag_rules import TagRules
from maskwright.analysis.kept import cached_property
from maskwright.analysis.marks import MARK
from maskwright.analysis.regex.dfa import Dfa
from maskwright.analysis.schema.shapes import Arrays, Numbers, Objects, Spellings, Texts
from maskwright.analysis.schema.spacing import SPACES
from maskwright.maskstore.composition.json_strings import JsonStringTokens
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words, words_of

Words: TypeAlias = npt.NDArray[np.uint32]


class InnerStore(Protocol):
    """A store of any kind, of a host or a part: what makes matchers of it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens."""

    @property
    def engine(self) -> str:
        """What reads texts under its masks."""

    @property
    def whole(self) -> Words | None:
        """The tokens that a part takes whole: (n_words,) uint32; None if there are no parts."""

    def matcher(self, max_rollback: int = ...) -> Any:
        """The state of one text, at its start."""


@dataclass(frozen=True, eq=False)
class TagTables:
    """A host of rules over literals, and the vocabulary of its composition. Nothing is compiled."""

    file_kind = engine = "tag"
    """What reads texts under these masks (`decoding.engines`)."""

    name: str
    vocabulary: Vocabulary
    rules: TagRules

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)


@dataclass(frozen=True, eq=False)
class TextPart:
    """A part that stands in the host's text as it is.

    store : for the host's vocabulary.
    ends : bytes of which a whole text has one last, but for white space; None if nothing is known.
    most : how many tokens it may take something of; -1 for any number. A token counts if the part
        has begun when the token begins; one within which the part begins does not.
    """

    name: str
    store: InnerStore
    ends: frozenset[int] | None = None
    most: int = -1


@dataclass(frozen=True, eq=False)
class JsonStringPart:
    """A part inside a JSON string. store : for the vocabulary of `tokens`."""

    name: str
    store: InnerStore
    tokens: JsonStringTokens


@dataclass(frozen=True, eq=False)
class TokenPart:
    """A part that is one token, taken whole. words : (n_words,) uint32, those that it may be."""

    name: str
    words: Words


@dataclass(frozen=True, eq=False)
class TokenRunPart:
    """A part that is 1 to `most` tokens. words : as of `TokenPart`."""

    name: str
    words: Words
    most: int


def first_bytes(texts: Texts | Dfa) -> frozenset[int]:
    """The bytes that a text may begin with; of a pattern that takes the empty text, all."""
    if isinstance(texts, Dfa):
        found = range(MARK) if texts.is_accepting[0] else np.flatnonzero(texts.next_state[0] >= 0).tolist()
        return frozenset(found)
    spacing = texts.spacing
    found = {byte for byte in SPACES if spacing.after(spacing.outer, byte, 0) >= 0}
    for shape in texts.graph.nodes[texts.graph.root]:
        match shape:
            case Objects():
                found.update(b"{")
            case Arrays():
                found.update(b"[")
            case Numbers(automaton):
                found |= first_bytes(automaton)
            case Spellings(spelled):
                found.update(text[0] for text in spelled)
            case _:
                found.update(b'"')
    return frozenset(found)


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


AnyPart: TypeAlias = TextPart | JsonStringPart | TokenPart | TokenRunPart


def may_end(part: AnyPart, data: bytes) -> bool:
    """Whether a part's text may be whole behind some bytes, as far as its last byte tells."""
    if isinstance(part, JsonStringPart):
        return data[-1:] == b'"'
    if not isinstance(part, TextPart) or part.ends is None:
        return True
    said = data.rstrip(b" \t\n\r")
    return not said or said[-1] in part.ends


@dataclass(frozen=True, eq=False)
class ComposedTables:
    """Exact masks for a host with parts, and a vocabulary.

    name : what errors call it.
    vocabulary : of the texts.
    composition : what was composed.
    host : the host's store. A grammar's is for the tokens of the marked vocabulary
        (`splits.marked_vocabulary`) that it can take, any other for `vocabulary`.
    parts : by number.
    first : for each part the bytes that it may begin with; of a part that may be empty, all.
    host_ids : (n,) int32, ascending; for each token of a grammar's store its id in the marked
        vocabulary. None if the host is no grammar.
    """

    file_kind = "composition"
    """What its file says that it is of (`maskstore.file`)."""
    engine = "composition"
    """What reads texts under these masks (`decoding.engines`)."""

    name: str
    vocabulary: Vocabulary
    composition: Composition
    host: InnerStore
    parts: tuple[AnyPart, ...]
    first: tuple[frozenset[int], ...]
    host_ids: npt.NDArray[np.int32] | None

    @property
    def n_words(self) -> int:
        """The number of 32-bit words of a mask: ceil(V / 32)."""
        return n_words(self.vocabulary.size)

    @cached_property
    def whole(self) -> Words:
        """The tokens that a part, or a part of a part, takes whole: (n_words,) uint32."""
        words = np.zeros(self.n_words, np.uint32)
        for part in self.parts:
            if isinstance(part, TokenPart | TokenRunPart):
                words |= part.words
            elif isinstance(part, TextPart) and part.store.whole is not None:
                words |= part.store.whole
        return words

    @cached_property
    def whole_with_text(self) -> Words:
        """Those of `whole` that have a text: (n_words,) uint32."""
        return self.whole & words_of(self.vocabulary.text_ids(), self.vocabulary.size)
