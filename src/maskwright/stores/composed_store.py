"""Stores of compositions: what makes the matchers of texts of several languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import printable
from maskwright.analysis.composition.compose import Composition, InJsonString, Part
from maskwright.analysis.composition.token_parts import AtMostTokens, SpecialToken, TokenSet
from maskwright.analysis.errors import GrammarError, VocabularyError
from maskwright.analysis.kept import cached_property
from maskwright.analysis.marks import MARK, mark
from maskwright.analysis.schema.load import JsonSchema
from maskwright.decoding.composition.cursors import cursor_of
from maskwright.decoding.composition.json_string_cursor import start_of
from maskwright.decoding.schema.workspace import shared_workspace
from maskwright.decoding.tags.text import descent_of
from maskwright.maskstore.composition.json_strings import json_string_tokens
from maskwright.maskstore.composition.splits import host_vocabulary, marked_vocabulary, splits_of
from maskwright.maskstore.composition.tables import (
    AnyPart,
    ComposedTables,
    InnerStore,
    JsonStringPart,
    TagTables,
    TextPart,
    TokenPart,
    TokenRunPart,
    Words,
    first_bytes,
    last_bytes,
)
from maskwright.maskstore.file.composition_file import ComposedContent
from maskwright.maskstore.schema.compiled import SchemaTables
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.table.write import used_tokens, with_tokens
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary
from maskwright.maskstore.vocabulary.masks import words_of
from maskwright.stores.base import BaseStore
from maskwright.stores.schema_store import build_schema_store

BuildStore: TypeAlias = Callable[[Any, Vocabulary], Any]
"""What makes the store of a host or a part, of any kind, and a vocabulary."""

Host: TypeAlias = tuple[InnerStore, npt.NDArray[np.int32]]
"""The store of a host that is a grammar, and its `ComposedTables.host_ids`."""

_OF_TOKEN = 12
"""The bytes of a host's token: its id, and its place among the tokens. Its bytes are shared."""

_OF_NODE = 150
"""The bytes of a node of a host of literals."""

FEW = 8
"""A host that takes less than one in so many tokens of a vocabulary keeps those alone."""


@dataclass(frozen=True, repr=False, eq=False)
class ComposedStore(ComposedTables, BaseStore):
    """Exact masks for a composition and a vocabulary. `build_store` makes it.

    A pickle holds the composition's stores.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # what is kept with the store (`kept_with`) stays here
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    @cached_property
    def begins(self) -> frozenset[int]:
        """The bytes that its texts may begin with; if one may be empty, all."""
        host = cursor_of(self.host.matcher(2).text, ())
        if host.can_end():
            return frozenset(range(MARK))
        parts = host.parts_behind(b"", tuple(map(mark, range(len(self.parts)))))
        return frozenset(host.next_bytes()).union(*(self.first[part] for part in parts))

    @cached_property
    def n_bytes(self) -> int:
        """About how many bytes the store holds, beside its vocabulary."""
        parts = [each.store for each in self.parts if isinstance(each, TextPart | JsonStringPart)]
        inside: list[Any] = [self.host, *parts]
        own = 0 if self.host_ids is None else _OF_TOKEN * len(self.host_ids)
        return own + sum([int(store.n_bytes) for store in inside])

    def __repr__(self) -> str:
        return f"<ComposedStore {printable(self.name)} x {printable(self.vocabulary.name)}: {len(self.parts)} parts>"


@dataclass(frozen=True, repr=False, eq=False)
class TagStore(TagTables, BaseStore):
    """The host of a structural tag."""

    @property
    def n_bytes(self) -> int:
        """About how many bytes it holds."""
        return _OF_NODE * (len(self.rules.nodes) + sum(map(len, self.rules.rules)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.vocabulary, self.rules)


def build_composed_store(
    composition: Composition,
    vocabulary: VocabularySource,
    build: BuildStore,
    host_of: Callable[[Composition], Host | None] = lambda _: None,
) -> ComposedStore:
    """The store of a composition and a vocabulary. A language with several places is built once.

    composition : what `compose` or `read_composition` returns.
    vocabulary : what `load_vocabulary` accepts.
    build : makes the store of a grammar, a schema or a pattern, anew or from the cache.
    host_of : the store of a composition's host that is a grammar, where it is there already.

    Raises: as `build_store`, for the host and each part; VocabularyError for a special token that
    the vocabulary does not have.
    """
    known: dict[tuple[int, str], Any] = {}

    def store_of(inner: Any, tokens: Vocabulary) -> Any:
        key = id(inner), tokens.digest  # INVARIANT: the composition holds its languages
        if key not in known:
            is_composition = isinstance(inner, Composition)
            known[key] = _composed(inner, tokens, store_of, host_of(inner)) if is_composition else build(inner, tokens)
        return known[key]

    return store_of(composition, as_vocabulary(vocabulary))  # type: ignore[no-any-return]


def _composed(
    composition: Composition, vocabulary: Vocabulary, store_of: BuildStore, host_store: Host | None
) -> ComposedStore:
    """The store of a composition. store_of : makes those of its languages, or knows them."""
    parts = tuple(_part(part, vocabulary, store_of) for part in composition.parts)
    first = tuple(_first_bytes(part, vocabulary) for part in parts)
    ids = None
    if host_store is not None:
        host, ids = host_store
    elif composition.host.kind == "grammar":
        inner = _inner_store(composition.host, marked_vocabulary(vocabulary), store_of)
        host, ids = _host_store(inner, vocabulary.size)
    elif composition.host.kind == "tag":
        splits_of(vocabulary)  # so that no text waits for them
        host = TagStore(composition.name, vocabulary, composition.host)
        descent_of(host)
    else:
        host = store_of(composition.host, vocabulary)
    return ComposedStore(composition.name, vocabulary, composition, host, parts, first, ids)


def stored_composition(content: ComposedContent, store_of: Callable[[EngineTable], InnerStore]) -> ComposedStore:
    """The store of what a file holds. store_of : makes the store of a grammar's table.

    Raises: as `build_composed_store`.
    """

    def host_of(composition: Composition) -> Host | None:
        host = content.hosts.get(id(composition))
        return host and (store_of(host[0]), host[1])

    def build(inner: Any, tokens: Vocabulary) -> Any:
        if inner.kind == "grammar":
            return store_of(content.tables[inner.digest, tokens.digest])
        return build_schema_store(inner, tokens)

    return build_composed_store(content.composition, content.vocabulary, build, host_of)


def _first_bytes(part: AnyPart, vocabulary: Vocabulary) -> frozenset[int]:
    """The bytes that a part may begin with; of one that may be empty, all."""
    if isinstance(part, TextPart) and isinstance(store := part.store, SchemaTables):
        shared_workspace(vocabulary, store.escapes, store.era)  # so that no text waits for it
        return first_bytes(store.texts)
    if isinstance(part, TextPart) and isinstance(store, ComposedStore):
        return store.begins
    start = start_of(part, splits_of(vocabulary))
    if start is None:
        return frozenset()
    is_all = start.can_end()
    return frozenset(byte for byte in range(MARK) if is_all or start.reads(bytes((byte,))))


def check_tokens(composition: Composition, vocabulary: Vocabulary) -> None:
    """Check that a vocabulary has the special tokens and the sets of tokens of a composition.

    Raises: VocabularyError, as `build_composed_store`, for the first part that needs others.
    """
    for part in composition.parts:
        inner = part.inner.inner if isinstance(part.inner, AtMostTokens | InJsonString) else part.inner
        if isinstance(inner, Composition):
            check_tokens(inner, vocabulary)
        elif isinstance(inner, SpecialToken):
            _special_token(inner.token, printable(part.name), vocabulary)
        elif isinstance(inner, TokenSet):
            _token_set(inner, printable(part.name), vocabulary)


def _part(part: Part, vocabulary: Vocabulary, build: BuildStore) -> AnyPart:
    inner = part.inner
    if isinstance(inner, SpecialToken):
        return TokenPart(
            part.name, words_of([_special_token(inner.token, printable(part.name), vocabulary)], vocabulary.size)
        )
    if isinstance(inner, TokenSet):
        return TokenPart(part.name, _token_set(inner, printable(part.name), vocabulary))
    if isinstance(inner, AtMostTokens):
        if isinstance(inner.inner, TokenSet):
            return TokenRunPart(part.name, _token_set(inner.inner, printable(part.name), vocabulary), inner.most)
        return TextPart(part.name, build(inner.inner, vocabulary), most=inner.most)
    if isinstance(inner, InJsonString):
        tokens = json_string_tokens(vocabulary)
        return JsonStringPart(part.name, _inner_store(inner.inner, tokens.vocabulary, build), tokens)
    ends = last_bytes(inner.texts) if isinstance(inner, JsonSchema) else None
    return TextPart(part.name, _inner_store(inner, vocabulary, build), ends)


def _inner_store(inner: Any, vocabulary: Vocabulary, build: BuildStore) -> InnerStore:
    found = build(inner, vocabulary)
    if not found.engine:
        raise GrammarError(
            f"grammar {inner.name} has lexing 'nfa', which has no engine: a composition needs 'contextual' or 'longest'"
        )
    return found  # type: ignore[no-any-return]


def _host_store(store: Any, n_tokens: int) -> Host:
    """The store of a host without the tokens that it never takes; and the ids of those that it has.

    store : for the marked vocabulary, in which the first `n_tokens` are the vocabulary's.
    """
    ids = used_tokens(store.table)
    if FEW * np.searchsorted(ids, n_tokens) > n_tokens:
        # PERF: a mask of many tokens is copied faster than its tokens are numbered anew
        return store, np.arange(store.vocabulary.size, dtype=np.int32)
    vocabulary = host_vocabulary(store.vocabulary, ids)
    return replace(store, vocabulary=vocabulary, table=with_tokens(store.table, ids, vocabulary)), ids


def _special_token(token: int | str, name: str, vocabulary: Vocabulary) -> int:
    """The id of a special token that ends no text."""
    token = _token(token, name, vocabulary, {})
    if vocabulary.tokens[token]:
        raise VocabularyError(
            f"part {name}: token {token} stands for the text {vocabulary.tokens[token]!r}; a part that is a token needs one that stands "
            "for no text: write the text into the grammar instead"
        )
    if token in vocabulary.eos:
        raise VocabularyError(f"part {name}: token {token} ends the text, so nothing can stand behind it")
    return token


def _token_set(of: TokenSet, name: str, vocabulary: Vocabulary) -> Words:
    """The mask of a set of tokens, none of which ends the text."""
    ids = [_token(token, name, vocabulary, vocabulary.id_of_text) for token in of.tokens]
    if of.is_excluding:
        said = [*vocabulary.text_ids().tolist(), *vocabulary.special]
        found = set(said) - set(ids) - set(vocabulary.eos)
    else:
        found = set(ids)
        if ending := sorted(found & set(vocabulary.eos)):
            raise VocabularyError(f"part {name}: token {ending[0]} ends the text, so nothing can stand behind it")
    if not found:
        raise VocabularyError(f"part {name}: no token of vocabulary {vocabulary.name} is left: exclude fewer")
    return words_of(found, vocabulary.size)


def _token(token: int | str, name: str, vocabulary: Vocabulary, texts: Mapping[bytes, int]) -> int:
    """The id of a token, by id, by name or by text. texts : the tokens that have one."""
    if isinstance(token, str):
        ids = [number for number, said in vocabulary.special.items() if said == token]
        number = ids[0] if ids else texts.get(token.encode(errors="surrogatepass"), -1)
        if number < 0:
            known = ", ".join(list(vocabulary.special.values())[:8])
            missing = f"token {token!r}, neither special nor with this text" if texts else f"special token {token!r}"
            raise VocabularyError(
                f"part {name}: vocabulary {vocabulary.name} has no {missing} (known: {known or 'none'})"
            )
        return number
    if not 0 <= token < vocabulary.size:
        raise VocabularyError(
            f"part {name}: token {token} is out of range: the vocabulary has the ids 0 to {vocabulary.size - 1}"
        )
    return token
