"""Spreads units of work: in this process, over processes, or over a Dask cluster.

In: a check and units. Out: an outcome for each unit, in any order. The outcomes do not depend on
how the units are spread. A unit that kills its process is tried again alone. If it kills that
process too, its outcome is "crashed". No other unit is lost by it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from importlib import import_module
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.store import load_store
from maskwright.worker_pool import WorkerProcess

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

CRASHED = "crashed"
"""Class of a unit that killed its process twice."""


class Unit(NamedTuple):
    """A piece of work.

    number : its position in the report, from 0.
    key : the key of its outcome in a log; equal for equal work.
    payload : what the check's function takes.
    weight : bytes of its text, at least 1.
    """

    number: int
    key: str
    payload: Any
    weight: int


class Check(Protocol):
    """What is done to each unit. It is pickled, and sent to the processes that do it."""

    @property
    def name(self) -> str:
        """The name of the check, as `validate` takes it."""
        ...

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        """The function from a unit's payload to its outcome, which must be JSON-ready.

        tools : what the check works with.
        """
        ...


@dataclass(frozen=True)
class StoreFile:
    """A store in a file.

    path : the file.
    data : the bytes of the file, for machines that do not see this disk; else None.
    """

    path: str
    data: bytes | None = field(default=None, repr=False)

    def load(self) -> Any:
        """The store. Raises: as `load_store`."""
        if self.data is None:
            return load_store(self.path)
        # `load_store` maps a file, so the data must be written to one
        folder = tempfile.mkdtemp(prefix="maskwright-")
        path = Path(folder) / "store.safetensors"
        path.write_bytes(self.data)
        try:
            return load_store(path)
        finally:
            if os.name == "posix":  # a mapped file can be unlinked
                path.unlink()
                Path(folder).rmdir()


@dataclass(frozen=True)
class Tools:
    """What a check works with, in the process that does it.

    store : the store under test.
    original : the store that it is compared with; None if the check needs none.
    encoder : turns texts into tokens; None if the check needs none.
    """

    store: Any
    original: Any
    encoder: Encoder | None


@dataclass(frozen=True)
class Setup:
    """All that a process needs to do units of work.

    key : equal for equal setups.
    check : what to do.
    store, original, encoder : as in `Tools`; a store may be a `StoreFile`.
    """

    key: str
    check: Check
    store: Any
    original: Any = None
    encoder: Encoder | None = None

    def start(self) -> Callable[[Any], Outcome]:
        """The function from a unit's payload to its outcome; loads the stores first."""
        store, original = (one.load() if isinstance(one, StoreFile) else one for one in (self.store, self.original))
        return self.check.start(Tools(store, original, self.encoder))


Results = Iterator[tuple[int, Outcome]]
"""Pairs of a unit's number and its outcome."""


def run_here(setup: Setup, units: Iterable[Unit]) -> Results:
    """Do units one after the other in this process."""
    do = setup.start()
    for unit in units:
        yield unit.number, do(unit.payload)


def run_processes(setup: Setup, units: Iterable[Unit], jobs: int) -> Results:
    """Do units in other processes, each of which maps the store's file.

    setup : its stores are `StoreFile`s.
    units : read lazily, a few batches ahead of the work.
    jobs : number of processes.
    """
    pickled = pickle.dumps(setup)
    batches = _batches(units)
    is_over = False
    while not is_over:
        flying: dict[Future[list[Outcome]], list[Unit]] = {}
        batch: list[Unit] | None = None
        with _pool(pickled, jobs) as (pool, _):
            try:
                while True:
                    while len(flying) < 2 * jobs and (batch := next(batches, None)) is not None:
                        flying[pool.submit(_do_batch, [unit.payload for unit in batch])] = batch
                        batch = None
                    if not flying:
                        is_over = True
                        break
                    for future in _first_done(flying):
                        outcomes = future.result()
                        yield from _numbered(flying.pop(future), outcomes)
            except BrokenProcessPool:
                # if the pool broke during `submit`, the batch is not in `flying` yet
                suspects = [*flying.values(), *([] if batch is None else [batch])]
            else:
                suspects = []
        yield from _run_alone(pickled, [unit for found in suspects for unit in found])


def _run_alone(pickled: bytes, units: list[Unit]) -> Results:
    """Do units one at a time, since one of them may kill its process: this shows which.

    Raises: MaskwrightError if no process can start.
    """
    waiting = list(reversed(units))
    strikes, has_begun = 0, True
    while waiting:
        with _pool(pickled, 1) as (pool, begun):
            try:
                while waiting:
                    (future,) = _first_done([pool.submit(_do_batch, [waiting[-1].payload])])
                    outcomes = future.result()
                    strikes = 0
                    yield from _numbered([waiting.pop()], outcomes)
            except BrokenProcessPool:
                strikes += 1
                has_begun = begun()
        if strikes == 2 and not has_begun:
            raise MaskwrightError(
                "no worker process could start: a script that asks for several jobs keeps what it does behind "
                "`if __name__ == '__main__':`, since each worker imports it; else see the errors above, or ask for one job"
            )
        if strikes == 2:
            strikes = 0
            outcomes = [{"class": CRASHED, "why": "the process that worked on it was killed, twice"}]
            yield from _numbered([waiting.pop()], outcomes)


def _first_done(futures: Iterable[Future[list[Outcome]]]) -> set[Future[list[Outcome]]]:
    """Those that are done; waits for the first."""
    done: set[Future[list[Outcome]]] = set()
    while not done:
        done = wait(futures, timeout=WAKE_SECONDS, return_when=FIRST_COMPLETED).done
    return done


def run_cluster(setup: Setup, units: Iterable[Unit], address: str) -> Results:
    """Do units on the workers of a Dask cluster.

    The workers need maskwright, but none of the files. If a worker is lost, Dask runs its batch
    again.

    setup : its stores are `StoreFile`s.
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
    shipped = replace(setup, **{name: _with_data(getattr(setup, name)) for name in ("store", "original")})
    batches = _batches(units)
    with client:
        # This is a task and not scattered data: if the worker that holds it is lost, Dask runs the
        # task again.
        tools = client.submit(_keep, pickle.dumps(shipped), pure=False)
        flying: dict[Any, list[Unit]] = {}
        suspects: list[Unit] = []
        is_over = False
        while not is_over or flying:
            room = max(4, 2 * sum(client.nthreads().values()))
            while not is_over and len(flying) < room:
                batch = next(batches, None)
                is_over = batch is None
                if batch is not None:
                    future = client.submit(_do_remote, setup.key, tools, [unit.payload for unit in batch], pure=False)
                    flying[future] = batch
            if not flying:
                break
            for future in _completed(distributed, client, list(flying)):
                batch = flying.pop(future)
                try:
                    outcomes = future.result()
                except distributed.KilledWorker:
                    suspects += batch
                else:
                    yield from _numbered(batch, outcomes)
        # Dask also blames a task that only waited for the worker that another one killed. Each
        # suspect is done with nothing beside it: this shows which one kills.
        for unit in suspects:
            future = client.submit(_do_remote, setup.key, tools, [unit.payload], pure=False)
            _completed(distributed, client, [future])
            try:
                outcomes = future.result()
            except distributed.KilledWorker:
                outcomes = [{"class": CRASHED, "why": "the workers that worked on it were killed"}]
            yield from _numbered([unit], outcomes)


def _completed(distributed: Any, client: Any, futures: list[Any]) -> list[Any]:
    """Those that are done; waits for the first.

    Raises: MaskwrightError if the cluster has no worker, and none comes in time.
    """
    while True:
        try:
            with client.as_current():
                return list(distributed.wait(futures, timeout=WORKER_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            pass
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise MaskwrightError(
                f"the Dask cluster has had no worker for {WORKER_SECONDS} s: start workers, or work without it"
            ) from None


def _numbered(batch: list[Unit], outcomes: list[Outcome]) -> Results:
    for unit, outcome in zip(batch, outcomes, strict=True):
        yield unit.number, outcome


def _batches(units: Iterable[Unit]) -> Iterator[list[Unit]]:
    batch: list[Unit] = []
    for unit in units:
        batch.append(unit)
        if len(batch) == BATCH_UNITS or sum(unit.weight for unit in batch) >= BATCH_WEIGHT:
            yield batch
            batch = []
    if batch:
        yield batch


class _Spawning(SpawnContext):
    """Starts processes anew, and keeps them: Ctrl-C can come before the pool has noted one."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnProcess] = []

    def Process(self, *args: Any, **keywords: Any) -> SpawnProcess:  # type: ignore[override]
        self.processes.append(WorkerProcess(*args, **keywords))
        return self.processes[-1]


@contextlib.contextmanager
def _pool(pickled: bytes, jobs: int) -> Iterator[tuple[ProcessPoolExecutor, Callable[[], bool]]]:
    """Worker processes, and whether one of them has begun to work.

    They end with the block; where it raises, whatever they are doing.
    """
    context = _Spawning()
    with tempfile.TemporaryDirectory(prefix="maskwright-", ignore_cleanup_errors=True) as folder:
        # What a process is started with goes through a pipe, which it must empty. If it dies
        # before, what does not fit into the pipe is never taken: so a path is all that goes.
        path = Path(folder) / "setup"
        path.write_bytes(pickled)
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(str(path),))
        try:
            yield pool, Path(folder, BEGUN).exists
        except BaseException:
            for process in context.processes:
                if process.pid is not None:
                    process.kill()  # it may have been stopped, and would be waited for
            with contextlib.suppress(RuntimeError):  # Ctrl-C came before its thread had begun
                pool.shutdown(wait=True, cancel_futures=True)
            raise
        pool.shutdown(wait=True, cancel_futures=True)


BEGUN = "begun"
"""The name of a file beside the setup, which is there once a worker has begun."""


# in the worker processes

_setup: bytes = b""
_local = threading.local()


def _begin(path: str) -> None:
    global _setup
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    _setup = Path(path).read_bytes()
    Path(path).with_name(BEGUN).touch()
    # the main process handles Ctrl-C, and stops the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # threads would only compete with the other processes
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _end_with_the_parent() -> None:
    """End this process when the one that started it has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do_batch(payloads: list[Any]) -> list[Outcome]:
    if not hasattr(_local, "do"):
        _local.do = pickle.loads(_setup).start()
    return [_local.do(payload) for payload in payloads]


def _keep(pickled: bytes) -> bytes:
    return pickled


def _do_remote(key: str, pickled: bytes, payloads: list[Any]) -> list[Outcome]:
    """Outcomes of a batch, on a Dask worker.

    A worker may have several threads. Each keeps the function of the last setup, with a matcher of
    its own.
    """
    kept: dict[str, Callable[[Any], Outcome]] = _local.__dict__.setdefault("kept", {})
    if key not in kept:
        kept.clear()
        kept[key] = pickle.loads(pickled).start()
    return [kept[key](payload) for payload in payloads]


def _with_data(store: Any) -> Any:
    return StoreFile(store.path, Path(store.path).read_bytes()) if isinstance(store, StoreFile) else store


__all__ = [
    "CRASHED",
    "Check",
    "Outcome",
    "Setup",
    "StoreFile",
    "Tools",
    "Unit",
    "run_cluster",
    "run_here",
    "run_processes",
]
