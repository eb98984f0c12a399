"""Spreads units of work: in this process, over processes, or over a Dask cluster.

In: a check and units. Out: an outcome for each unit, in any order. The outcomes do not depend on
how the units are spread. A unit that kills its process is tried again alone. If it kills that
process too, its outcome is "crashed". No other unit is lost by it.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from maskwright import worker
from maskwright.analysis.errors import LimitError, MaskwrightError, MissingExtraError, VocabularyError
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.worker_pool import NoProcessError, Pool, WorkerError

Outcome = dict[str, Any]
"""What a check found out about a unit, JSON-ready. Its member `class` is a str."""

BATCH_WEIGHT = 1 << 18
"""Weight of a batch (bytes of text) at which it is full: a fifth of a second's work."""
BATCH_UNITS = 64
"""Most units of a batch."""
CONNECT_SECONDS = 20
"""Time that the Dask scheduler has to answer."""
WAKE_SECONDS = 0.2
"""Time after which a wait for workers begins anew, and sees a Ctrl-C that came just before it."""
WORKER_SECONDS = 60
"""Time that a Dask cluster without workers has to get one."""
_ANY_SECONDS, _ANY_MEMORY = 1e6, 1 << 50
"""What a worker here may take for a batch: as much as it wants."""

NOT_SPELLED = "not spelled by the vocabulary"
OVER_LIMIT = "over a limit of the engine"
CRASHED = "crashed"
"""Class of a unit that killed its process twice."""


class Unit(NamedTuple):
    """A piece of work.

    number : its position in the report, from 0.
    payload : what the check's function takes.
    weight : bytes of its text, at least 1.
    """

    number: int
    payload: Any
    weight: int


Start: TypeAlias = Callable[..., Callable[[Any], Outcome]]
"""A check: from a setup, and options, to the function from a unit's payload to its outcome.

It is pickled, and sent to the processes that do it. What it returns may raise VocabularyError, for
a text that no tokens spell, and LimitError.
"""


@dataclass(frozen=True)
class Setup:
    """All that a process needs to do units of work.

    check, options : what to do.
    store : the store under test.
    original : the store that it is compared with; None if the check needs none.
    encoder : turns texts into tokens; None if the check needs none.
    """

    check: Start
    options: Mapping[str, Any]
    store: Any
    original: Any = None
    encoder: Encoder | None = None

    def start(self) -> Callable[[Any], Outcome]:
        """The function from a unit's payload to its outcome."""
        do = self.check(self, **self.options)

        def run(payload: Any) -> Outcome:
            try:
                return do(payload)
            except VocabularyError as error:
                return {"class": NOT_SPELLED, "why": str(error)}
            except LimitError as error:
                return {"class": OVER_LIMIT, "why": str(error)}

        return run

    def tokens(self, text: str) -> list[int]:
        """The tokens that spell a text. Raises: VocabularyError if none do."""
        assert self.encoder is not None
        return self.encoder.exact_tokens(text).tokens


Results = Iterator[tuple[int, Outcome]]
"""Pairs of a unit's number and its outcome."""


def run_here(setup: Setup, units: Iterable[Unit]) -> Results:
    """Do units one after the other in this process."""
    do = setup.start()
    for unit in units:
        yield unit.number, do(unit.payload)


def run_processes(setup: Setup, units: Iterable[Unit], jobs: int) -> Results:
    """Do units in other processes.

    units : read lazily, a few batches ahead of the work.
    jobs : number of processes.

    Raises: NoProcessError if no process can start.
    """
    pool = Pool(worker.Setup(f"{__name__}:answering", (pickle.dumps(setup),), _ANY_MEMORY), jobs)
    threads = ThreadPoolExecutor(jobs)
    try:
        submit = lambda payloads: threads.submit(_ask, pool, payloads)  # noqa: E731
        yield from _spread(units, submit, lambda: 2 * jobs, WorkerError)
    finally:  # the threads end when their workers do
        pool.close()
        threads.shutdown(cancel_futures=True)


def _ask(pool: Pool, payloads: list[Any]) -> list[Outcome]:
    """The outcomes of a batch, by a worker process."""
    ask = partial(pool.ask, payloads, _ANY_SECONDS, "a batch of texts")
    try:
        found = ask()
    except NoProcessError:  # perhaps only this one was killed as it started
        found = ask()
    if isinstance(found, Exception):
        raise found
    return found  # type: ignore[no-any-return]


def run_cluster(setup: Setup, units: Iterable[Unit], address: str) -> Results:
    """Do units on the workers of a Dask cluster.

    The workers need maskwright, but none of the files. If a worker is lost, Dask runs its batch
    again.

    units : read lazily, a few batches ahead of the work.
    address : of the Dask scheduler.

    Raises: MissingExtraError if the package distributed is not installed; MaskwrightError if no
        scheduler answers at the address, or if the cluster has no worker and gets none in time.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtraError(
            "working on a cluster needs the package distributed: pip install 'maskwright[cluster]'"
        ) from None
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise MaskwrightError(f"no Dask scheduler answers at {address}: {error}") from None

    def need_workers() -> None:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise MaskwrightError(
                f"the Dask cluster has had no worker for {WORKER_SECONDS} s: start workers, or work without it"
            ) from None

    shipped = replace(setup, store=_without_file(setup.store), original=_without_file(setup.original))
    with client:
        executor = client.get_executor(pure=False)
        # This is a task and not scattered data: if the worker that holds it is lost, Dask runs the
        # task again.
        pickled = client.submit(_keep, pickle.dumps(shipped), pure=False)
        submit = partial(executor.submit, _do, uuid4().hex, pickled)
        room = lambda: max(4, 2 * sum(client.nthreads().values()))  # noqa: E731
        try:
            yield from _spread(units, submit, room, distributed.KilledWorker, need_workers)
        finally:
            executor.shutdown(wait=False)


def _without_file(store: Any) -> Any:
    """A store that is pickled by its content, for machines that do not see its file."""
    return replace(store) if getattr(store, "origin", None) is not None else store


def _spread(
    units: Iterable[Unit],
    submit: Callable[[list[Any]], Future[list[Outcome]]],
    room: Callable[[], int],
    killed: type[Exception],
    look: Callable[[], None] = lambda: None,
) -> Results:
    """The outcomes of units that are done in batches, in the order in which they are done.

    submit : begins to work on a batch's payloads.
    room : how many batches may be under way now.
    killed : what a future raises if what worked on it was killed.
    look : called where nothing is done for long; it may raise.
    """
    suspects: list[Unit] = []
    flying: dict[Future[list[Outcome]], list[Unit]] = {}
    batches = _batches(units)
    while True:
        free = room() - len(flying)
        while free > 0 and (batch := next(batches, None)) is not None:
            flying[submit([unit.payload for unit in batch])] = batch
            free -= 1
        if not flying:
            break
        for future in _first_done(flying, look):
            batch = flying.pop(future)
            try:
                outcomes = future.result()
            except NoProcessError:
                raise
            except killed:
                suspects += batch
            else:
                yield from zip((unit.number for unit in batch), outcomes, strict=True)
    # Dask also blames a task that only waited for the worker that another one killed. Each suspect
    # is done with nothing beside it: this shows which one kills.
    for unit in suspects:
        (future,) = _first_done([submit([unit.payload])], look)
        try:
            (outcome,) = future.result()
        except NoProcessError:
            raise
        except killed:
            outcome = {"class": CRASHED, "why": "the process that worked on it was killed, twice"}
        yield unit.number, outcome


def _first_done(futures: Iterable[Future[list[Outcome]]], look: Callable[[], None]) -> set[Future[list[Outcome]]]:
    """Those that are done; waits for the first."""
    end = time.monotonic() + WORKER_SECONDS
    while not (done := wait(futures, WAKE_SECONDS, FIRST_COMPLETED).done):
        if time.monotonic() > end:
            look()
            end = time.monotonic() + WORKER_SECONDS
    return done


def _batches(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    for unit in units:
        batch.append(unit)
        if len(batch) == BATCH_UNITS or sum(unit.weight for unit in batch) >= BATCH_WEIGHT:
            yield batch
            batch = []
    if batch:
        yield batch


# in the worker processes

_local = threading.local()


def answering(pickled: bytes) -> Callable[[list[Any]], list[Outcome] | Exception]:
    """The function from a batch's payloads to its outcomes, or to an error that is no user's."""
    # threads would only compete with the other processes
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

    def answer(payloads: list[Any]) -> list[Outcome] | Exception:
        try:
            return _do("", pickled, payloads)
        except MaskwrightError:
            raise
        except Exception as error:  # a bug: it is raised where somebody sees it
            error.add_note(traceback.format_exc())
            return error

    return answer


def _keep(pickled: bytes) -> bytes:
    return pickled


def _do(key: str, pickled: bytes, payloads: list[Any]) -> list[Outcome]:
    """Outcomes of a batch.

    A worker may have several threads. Each keeps the function of the last run, with a matcher
    of its own.

    key : of the run.
    """
    if getattr(_local, "key", None) != key:
        _local.key, _local.do = key, pickle.loads(pickled).start()
    return [_local.do(payload) for payload in payloads]
