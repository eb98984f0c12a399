"""The work that requests cause: done here if it is small, else in worker processes.

A worker sends back the constraint as it read it, and the tables of its grammars. From them the
store is put together here, so that what a vocabulary alone decides is there once.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maskwright.analysis.composition import Composition
from maskwright.analysis.composition.compose import InJsonString
from maskwright.analysis.deadline import OutOfTimeError, look_at, time_limit
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.locks import new_lock
from maskwright.maskstore.automaton.stack_automaton import prepare_automaton
from maskwright.maskstore.schema.write import tables_of
from maskwright.maskstore.table.build import build_engine_table, byte_vocabulary
from maskwright.maskstore.table.compiled import EngineTable, Progress
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving.reading import Request, RequestReader, guarded, library
from maskwright.serving.warming import warm_engines
from maskwright.stores.build import build_and_keep
from maskwright.stores.cache import FOLDER_VARIABLE, cached_grammar, trim_cache
from maskwright.stores.sources import store_of
from maskwright.stores.store import Store
from maskwright.worker import Setup
from maskwright.worker_pool import BusyError, NoProcessError, Pool, WorkerError

Result = TypeVar("Result")

SOON = 0.05
"""CPU seconds that work may take in this process before a worker begins it anew."""
SMALL = 1 << 14
"""Characters of a text up to which it is tried here."""
GENEROUS = 6
"""How many times the limits hold for grammars that come along, and for closing an automaton.

The closing has a budget of its own, of edges and bytes, past which the automaton stays open.
"""

_logger = logging.getLogger(__name__)


def default_workers() -> int:
    """How many workers there are where nobody says: one for two cores of ours, at most 4."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(4, cores // 2))


class Check(NamedTuple):
    """Read a request, and compile it for the bytes alone, but for what only a mask needs."""

    reader: RequestReader
    request: Request

    def do(self, vocabulary: Vocabulary | None) -> Composition | None:
        """The composition if it names tokens, of which only a vocabulary can tell.

        Raises: as `RequestReader.read`.
        """
        constraint = self.reader.read(self.request)
        _prepare(constraint)
        return constraint if isinstance(constraint, Composition) and constraint.has_tokens else None


class Build(NamedTuple):
    """Read a request, and build its store.

    is_on_disk, disk_bytes : as of `RequestCompiler`.
    is_open : whether the automaton of a grammar is left open, in a worker.
    """

    reader: RequestReader
    request: Request
    is_on_disk: bool
    disk_bytes: int
    is_open: bool = True

    def do(self, vocabulary: Vocabulary) -> tuple[Any, list[tuple[Any, dict[str, int]]]]:
        """The constraint, and the tables of its grammars in the order in which they are built."""
        constraint, _, built = self.build(vocabulary, is_left_open=True)
        return constraint, [(np.asarray(each.table), dict(each.counts)) for each in built]

    def build(self, vocabulary: Vocabulary, is_left_open: bool) -> tuple[Any, Any, list[Any]]:
        """The constraint, its store, and the stores of its grammars, made in this process.

        is_left_open : whether the caller sees to the closing of a grammar's. Else a thread does.

        Raises: as `RequestReader.read` and `build_store`.
        """
        constraint = self.reader.read(self.request)
        is_lazy = constraint.kind == "grammar" and self.is_open
        built: list[Any] = []

        def build(grammar: Grammar, tokens: Vocabulary) -> Any:
            built.append(self._built(grammar, tokens, is_lazy, is_left_open))
            return built[-1]

        store = store_of(constraint, vocabulary, build)
        if self.is_on_disk and constraint.kind in ("grammar", "composition"):
            trim_cache(self.disk_bytes)
        return constraint, store, built

    def _built(self, grammar: Grammar, tokens: Vocabulary, is_lazy: bool, is_left_open: bool) -> Any:
        comes_along = self.request.spec.strip() in library()
        how: Any = {"progress": look_at, "lazy": is_lazy, "is_left_open": is_left_open}
        if self.is_on_disk or comes_along:
            return cached_grammar(grammar, tokens, may_be_trimmed=not comes_along, **how)
        return build_and_keep(grammar, tokens, None, **how)


def answering(vocabulary: Vocabulary | None) -> Callable[[Check | Build], Any]:
    """What answers in a worker. vocabulary : None if all it does is to check."""
    warm_engines(vocabulary or byte_vocabulary())

    def answer(asked: Any) -> Any:
        return guarded(asked.request, lambda: asked.do(vocabulary))

    return answer


class Workshop:
    """Does the work of requests within limits.

    vocabulary : of the stores; None if it only checks.
    n_workers : how many worker processes there may be; None for `default_workers`; 0 to do all work
        in this process, where what does not look at the clock cannot be ended, and memory has no
        limit. The processes are shared with other workshops of an equal vocabulary.
    most_megabytes : see `RequestLimits`.
    """

    def __init__(self, vocabulary: Vocabulary | None, n_workers: int | None, most_megabytes: int) -> None:
        self.vocabulary = vocabulary
        size = default_workers() if n_workers is None else n_workers
        self.pool = _pool_of(vocabulary, size, most_megabytes << 20) if size else None

    def start(self) -> None:
        """Begin to start the workers, so that no request waits for them."""
        if self.pool is not None:
            try:
                self.pool.start()
            except (BusyError, NoProcessError) as error:
                _warn(error)

    def check(self, task: Check, seconds: float, what: str) -> Composition | None:
        """As `Check.do`. Raises: as there; OutOfTimeError; as `Pool.ask`."""
        found: Composition | None = self._run(task, seconds, what, lambda: task.do(None), lambda found: found)
        return found

    def build(self, task: Build, seconds: float, what: str) -> Any:
        """The store. Raises: as `Build.build`; OutOfTimeError; as `Pool.ask`."""
        vocabulary = self.vocabulary
        assert vocabulary is not None
        return self._run(
            task,
            seconds,
            what,
            lambda: self._closing(task.build(vocabulary, self.pool is not None)[1], task, seconds),
            lambda found: self._closing(self._opened(found), task, seconds),
        )

    def _run(
        self,
        task: Check | Build,
        seconds: float,
        what: str,
        here: Callable[[], Result],
        opened: Callable[[Any], Result],
    ) -> Result:
        pool, request = self.pool, task.request
        n_shares = GENEROUS if request.spec.strip() in library() else 1
        seconds *= n_shares
        if pool is None or len(request.spec) <= SMALL:
            try:
                with time_limit(seconds if pool is None else min(SOON, seconds), what):
                    return guarded(request, here)  # type: ignore[no-any-return]
            except OutOfTimeError:
                if pool is None or seconds <= SOON:
                    raise
        assert pool is not None
        try:
            found = pool.ask(task, seconds, what, n_shares=n_shares)
            _warned.clear()
        except NoProcessError as error:
            _warn(error)
            with time_limit(seconds, what):
                return guarded(request, here)  # type: ignore[no-any-return]
        with time_limit(max(SOON, seconds / 4), what):
            return guarded(request, lambda: opened(found))  # type: ignore[no-any-return]

    def _opened(self, made: tuple[Any, list[tuple[Any, dict[str, int]]]]) -> Any:
        """The store of what a worker has made."""
        constraint, tables = made
        rest = iter(tables)

        def build(grammar: Grammar, tokens: Vocabulary) -> Store:
            return Store.of(_table(grammar, tokens, *next(rest)))

        return store_of(constraint, self.vocabulary or byte_vocabulary(), build)

    def _closing(self, store: Any, task: Build, seconds: float) -> Any:
        """The store, which workers close if it is a grammar's and open."""
        pool = self.pool
        if pool is None or store.is_closed or store.is_closing:
            return store
        constraint, vocabulary = store.grammar, store.vocabulary

        def close(progress: Progress) -> EngineTable:
            def is_cancelled() -> bool:
                progress("closure", 0, 1)
                return False

            try:
                _, (made,) = pool.ask(
                    task._replace(is_open=False),
                    GENEROUS * seconds,
                    f"the closing of the {task.request.kind}",
                    is_cancelled=is_cancelled,
                    is_patient=True,
                    n_shares=GENEROUS,
                )
            except NoProcessError as error:
                _warn(error)
                return build_engine_table(constraint, vocabulary, progress)
            except (BusyError, WorkerError) as error:
                _logger.warning("masks of a grammar stay slow: %s", error)
                raise
            return _table(constraint, vocabulary, *made)

        return store.close_in_background(close)


def _table(grammar: Grammar, vocabulary: Vocabulary, table: Any, counts: dict[str, int]) -> EngineTable:
    """The table that a worker has made, read-only as any other."""
    table.setflags(write=False)
    return EngineTable(grammar, vocabulary, table, MappingProxyType(counts))


_POOLS: weakref.WeakValueDictionary[tuple[str, int, int, str | None], Pool] = weakref.WeakValueDictionary()
_lock = new_lock()


def _pool_of(vocabulary: Vocabulary | None, size: int, most_memory: int) -> Pool:
    """The workers of a vocabulary, in this process."""
    # a worker has the environment of its start
    key = "" if vocabulary is None else vocabulary.digest, size, most_memory, os.environ.get(FOLDER_VARIABLE)
    with _lock:
        found = _POOLS.get(key)
        if found is None:
            setup = Setup("maskwright.serving.work:answering", (vocabulary,), most_memory)
            found = _POOLS[key] = Pool(setup, size)
        return found


_warned: list[str] = []


def _warn(error: BusyError | NoProcessError) -> None:
    """Say that there are no workers, once until there is one again."""
    if not _warned:
        _warned.append(str(error))
        _logger.warning("%s: until then requests are compiled in this process, whose memory they share", error)


def _prepare(language: Any) -> None:
    """Compile the languages of a constraint for the bytes alone, but those that come along."""
    if isinstance(language, Composition):
        _prepare(language.host)
        for part in language.parts:
            _prepare(part.inner.inner if isinstance(part.inner, InJsonString) else part.inner)
    elif (kind := getattr(language, "kind", "")) in ("schema", "pattern"):
        tables_of(language, byte_vocabulary())
    elif kind == "grammar" and language.name not in library():
        prepare_automaton(language, byte_vocabulary(), look_at)
