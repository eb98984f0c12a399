"""Stores for the constraints that requests bring: checked, compiled once, kept."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from maskwright.analysis.arguments import clip, printable
from maskwright.analysis.errors import MaskwrightError, VocabularyError
from maskwright.analysis.locks import new_lock
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary, load_vocabulary
from maskwright.maskstore.vocabulary.masks import n_words
from maskwright.serving.metrics import metrics
from maskwright.serving.options import JSON_KINDS, RequestLimits, RequestOptions, as_kind
from maskwright.serving.reading import Language, Request, RequestReader, guarded
from maskwright.serving.work import Build, Check, Workshop
from maskwright.stores.composed_store import ComposedStore, check_tokens
from maskwright.stores.schema_store import SchemaStore
from maskwright.stores.store import Store, load_store

if TYPE_CHECKING:
    _Key = tuple[str, str, RequestOptions, str, str]

RequestStore: TypeAlias = Store | SchemaStore | ComposedStore
"""What a constraint is compiled to: it has `matcher()` and `batch()`."""

_CHECKED = 4096
"""How many constraints that were checked are remembered, as digests."""


class RequestCompiler:
    """Compiles the constraints of a server's requests, for one vocabulary.

        compiler = RequestCompiler(tokenizer, stores={"sql": "sql.safetensors"})
        compiler.check("json", '{"type": "object"}')  # in the process that takes requests
        matcher = compiler.compile("grammar", "sql").matcher()

    vocabulary : what `load_vocabulary` accepts.
    stores : name -> path of a store. Requests of kind `grammar` may name them. They are read at
        once, mapped, so that processes share their pages.
    cache_entries : how many compiled constraints are kept in this process.
    cache_bytes : how many bytes they take in all, about; the last one is kept in any case.
    disk_bytes : how many bytes stores of requests take in the cache on disk, about. When a new one
        comes there, those that were not asked for the longest are deleted (`trim_cache`).
    limits : see `RequestLimits`.
    options : what holds for requests of JSON that do not say otherwise.
    strict_keywords : see `RequestReader`.
    workers : how many worker processes there may be for what takes long, see `Workshop`; None for
        half as many as this process has cores, at most 4. They start when needed, or by `start`.
    on_disk : whether grammars whose texts requests bring go through the cache on disk
        (`cached_store`). Those that come along do in any case.
    n_tokens : how many logits the model gives, which may be more than the vocabulary has ids; None
        if it does not matter.

    Grammars that requests bring are compiled lazily.
    Errors are not kept.

    Threads may share a compiler. Equal constraints that come at the same time are compiled once.

    Raises: as `load_vocabulary` and `load_store`; VocabularyError if a store is for other tokens,
        or for more than the model has; MaskwrightError for an argument that is out of range,
        or for options that no request could have.
    """

    def __init__(
        self,
        vocabulary: VocabularySource,
        stores: Mapping[str, str | os.PathLike[str]] = MappingProxyType({}),
        *,
        cache_entries: int = 256,
        cache_bytes: int = 2 << 30,
        disk_bytes: int = 2 << 30,
        limits: RequestLimits = RequestLimits(),  # noqa: B008 - it cannot change
        options: RequestOptions = RequestOptions(),  # noqa: B008
        strict_keywords: bool = False,
        on_disk: bool = True,
        n_tokens: int | None = None,
        workers: int | None = None,
    ) -> None:
        self.vocabulary = as_vocabulary(vocabulary)
        self.reader = RequestReader(stores.keys(), limits, strict_keywords)
        self.options = options
        self._is_on_disk = on_disk
        self._most_entries = cache_entries
        self._most_bytes = cache_bytes
        self._most_on_disk = disk_bytes
        self._stores = {name: _load(name, path, self.vocabulary, n_tokens) for name, path in stores.items()}
        self._lock = new_lock()
        self._kept: OrderedDict[_Key, RequestStore] = OrderedDict()
        self._under_way: dict[_Key, Future[RequestStore]] = {}
        _COMPILERS.add(self)
        self._workshop = Workshop(self.vocabulary, workers, limits.most_megabytes)
        self._checker = RequestChecker(self.reader, self._workshop)
        try:  # what is wrong with them is said now, not of each request
            self.reader.read(self.reader.request("json_object", "", options))
        except MaskwrightError as error:
            raise MaskwrightError(f"the options for all requests: {error}") from error

    def check(self, kind: str, spec: str, options: RequestOptions | None = None) -> None:
        """Check a constraint, without what takes long because the vocabulary is large.

        kind : one of `json`, `json_object`, `regex`, `grammar`, `choice`, `structural_tag`.
        spec : the JSON text of a schema; ignored; a regular expression that whole texts match; the
            name of a store or of a library grammar, or a grammar in Lark (which may name parts in
            other languages, see `read_composition`), llguidance's Lark, EBNF or GBNF, or a JSON
            object with `grammars` (`read_llguidance`) or with `tools` and the other arguments of
            `read_tools`; a JSON list of strings; JSON text.
        options : what the request says of JSON; None: what holds for all of JSON.

        Raises: SchemaError, whose message and `pointer` name the keyword's JSON pointer; or another
            MaskwrightError, whatever the text is: OutOfTimeError after
            `RequestLimits.check_seconds`. What passes may yet be refused by `compile`.
        Cost: a fifth of compiling, and nothing for what passed before.
        """
        self._checker.check(self._request(kind, spec, options))

    def compile(
        self,
        kind: str,
        spec: str,
        options: RequestOptions | None = None,
        *,
        language: Language = "",
        root: str = "root",
    ) -> RequestStore:
        """The store of a constraint, from this process, from the cache on disk, or compiled now.

        kind, spec, options : see `check`. language, root : see `Request`.

        Raises: MaskwrightError: as `check`; as `build_store`; OutOfTimeError after
            `RequestLimits.compile_seconds`; BusyError if no worker was free for long; WorkerError
            if one died.
        """
        request = self._request(kind, spec, options, language, root)
        name = self.reader.store_of(request)
        if name is not None:
            return self._stores[name]
        key = request.key
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
                metrics().count("cache_hits")
                return kept
            waiting = self._under_way.get(key)
            if waiting is None:
                mine = self._under_way[key] = Future()
        if waiting is not None:
            return waiting.result()
        try:
            store = self._build(request)
            store.n_bytes  # noqa: B018 - what takes a while of it is kept; the lock need not be
            with self._lock:
                self._kept[key] = store
                held = sum(each.n_bytes for each in self._kept.values())
                # those that were not asked for the longest go; this one stays in any case
                while len(self._kept) > 1 and (len(self._kept) > self._most_entries or held > self._most_bytes):
                    held -= self._kept.popitem(last=False)[1].n_bytes
            mine.set_result(store)
        except BaseException as error:
            is_for_all = isinstance(error, MaskwrightError)
            mine.set_exception(
                error if is_for_all else MaskwrightError("the compilation of an equal request was interrupted")
            )
            raise
        finally:
            with self._lock:
                self._under_way.pop(key, None)
        return store

    def start(self) -> None:
        """Begin to start the workers, as a server does before its first request."""
        self._workshop.start()

    def _request(
        self, kind: str, spec: str, options: RequestOptions | None, language: Language = "", root: str = "root"
    ) -> Request:
        """As `RequestReader.request`; where the request says nothing, what holds for its kind."""
        options = options or (self.options if as_kind(kind) in JSON_KINDS else None)
        return self.reader.request(kind, spec, options, language, root)

    def _build(self, request: Request) -> RequestStore:
        """The store of a request, within the limits; it is not kept in this process."""
        self.reader.check_size(request)
        task = Build(self.reader, request, self._is_on_disk, self._most_on_disk)
        seconds, what = self.reader.limits.compile_seconds, f"the compilation of the {request.kind}"
        store: RequestStore = self._workshop.build(task, seconds, what)
        return store

    def clear(self) -> None:
        """Let go of all compiled constraints; configured stores stay."""
        with self._lock:
            self._kept.clear()

    @property
    def n_bytes(self) -> int:
        """About how many bytes the compiled constraints take that are kept."""
        with self._lock:
            kept = list(self._kept.values())
        return sum(each.n_bytes for each in kept)

    def __len__(self) -> int:
        """The number of compiled constraints that are kept, configured stores not among them."""
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<RequestCompiler for {printable(self.vocabulary.name)}: {len(self._stores)} stores, {len(self)} constraints kept>"


_COMPILERS: weakref.WeakSet[RequestCompiler] = weakref.WeakSet()


def _after_fork() -> None:
    """What other threads were compiling is never finished in a fork, where they are not."""
    for compiler in list(_COMPILERS):
        compiler._under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class RequestChecker:
    """`RequestCompiler.check` where there is no vocabulary, as in the process that takes requests.

    reader : what reads the constraints.

    What cannot be read is found, and what cannot be compiled for any vocabulary that has all bytes.
    """

    def __init__(self, reader: RequestReader, workshop: Workshop | None = None, workers: int | None = None) -> None:
        self.reader = reader
        self._workshop = workshop or Workshop(None, workers, reader.limits.most_megabytes)
        self._lock = new_lock()
        self._passed: OrderedDict[_Key, None] = OrderedDict()

    def start(self) -> None:
        """As `RequestCompiler.start`."""
        self._workshop.start()

    def check(self, request: Request, vocabulary: Callable[[], Vocabulary] | None = None) -> None:
        """Check what `RequestReader.request` returned.

        vocabulary : returns the server's; called for a constraint that names tokens.

        Raises: as `RequestReader.read`; OutOfTimeError and others, as `RequestCompiler.check`;
            VocabularyError for a token that `vocabulary` lacks.
        """
        if self.reader.store_of(request) is not None:
            return
        key = request.key
        with self._lock:
            if key in self._passed:
                self._passed.move_to_end(key)
                return
        self.reader.check_size(request)
        seconds, what = self.reader.limits.check_seconds, f"reading the {request.kind}"
        named = self._workshop.check(Check(self.reader, request), seconds, what)
        if named is not None and vocabulary is not None:
            known = vocabulary()
            guarded(request, lambda: check_tokens(named, known))
        elif named is not None:
            return  # its tokens have not been looked at
        with self._lock:
            self._passed[key] = None
            if len(self._passed) > _CHECKED:
                self._passed.popitem(last=False)


def server_vocabulary(
    tokenizer: VocabularySource,
    size: int | None = None,
    eos: Iterable[int] | int | None = None,
    *,
    is_padded: bool = True,
) -> Vocabulary:
    """The vocabulary of a model in a server.

    tokenizer : what `load_vocabulary` accepts.
    size : how many logits the model gives. Tokens past it are left out: they cannot come.
    eos : the ids that end a text, as the server knows them; None or none for the tokenizer's own.
    is_padded : whether it has `size` ids in any case. Those that the tokenizer lacks stand for no
        text. Without, it is the tokenizer's own where it can be, whose stores are kept on disk
        under the tokenizer's name.

    Raises: as `load_vocabulary`.
    """
    found = load_vocabulary(tokenizer)
    ends = [eos] if isinstance(eos, int) else sorted(eos or ())
    if size is not None:
        ends = [token for token in ends if token < size]
        found = _shorter(found, size) if size < found.size else found
    wanted = size if is_padded and size is not None else found.size
    if wanted == found.size and (not ends or tuple(ends) == found.eos):
        return found
    return load_vocabulary(found, size=max([wanted, *(token + 1 for token in ends)]), eos=ends or None)


def _shorter(vocabulary: Vocabulary, size: int) -> Vocabulary:
    special = {name: token for token, name in vocabulary.special.items() if token < size}
    kept = [token for token in vocabulary.eos if token < size]
    return Vocabulary.from_tokens(vocabulary.tokens[:size], eos=kept, special=special, name=vocabulary.name)


def _load(name: str, path: str | os.PathLike[str], vocabulary: Vocabulary, n_tokens: int | None) -> RequestStore:
    """A configured store. Raises: as `load_store`; VocabularyError if it is for other tokens."""
    store: Any = load_store(path, mapped=True)
    if not store.engine:
        raise MaskwrightError(
            f"the store {clip(name)} has lexing 'nfa' and no matchers; build it with lexing 'longest' or 'contextual'"
        )
    if store.vocabulary.tokens != vocabulary.tokens:
        from maskwright.decoding.adapters.huggingface import check_same_tokens

        try:
            check_same_tokens(store.vocabulary, vocabulary)
        except VocabularyError as error:
            raise VocabularyError(f"{clip(name)}: {error}") from error
    if n_tokens is not None and store.n_words > n_words(n_tokens):
        raise VocabularyError(
            f"the store {clip(name)} has {store.vocabulary.size:,} tokens and the model {n_tokens:,}; build it from the model's "
            "own tokenizer"
        )
    return store  # type: ignore[no-any-return]
