"""What a server needs of a vocabulary and of constraints, made before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words, tokens_of
from maskwright.stores.build import build_store
from maskwright.stores.cache import cache_folder, cached_store, let_all_read, missing_folders, warm_cache

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.maskstore.table.compiled import Progress
    from maskwright.stores.sources import Constraint


class Warmed(NamedTuple):
    """What was made of a constraint.

    paths : the files in the cache; none for a schema or a pattern, whose stores are built each
        time, in milliseconds.
    cpu_seconds : what it took.
    """

    paths: tuple[Path, ...]
    cpu_seconds: float


def warm_constraint(
    constraint: Constraint | Composition,
    vocabulary: Vocabulary,
    *,
    progress: Progress | None = None,
    readable: bool = False,
) -> Warmed:
    """Make sure that the cache has what a constraint needs, and that it can be served.

    constraint : a grammar; a composition, each of whose grammars has a store; a schema or a
        pattern, which is built once, so that what is wrong with it is said now.
    progress, readable : see `warm_cache`.

    Raises: as `warm_cache`.
    """
    begin = time.process_time()
    if constraint.kind == "grammar":
        paths: tuple[Path, ...] = (warm_cache(constraint, vocabulary, progress=progress, readable=readable),)
        return Warmed(paths, time.process_time() - begin)
    before, missing = _stores(), missing_folders()
    given: Any = constraint
    cached_store(given, vocabulary, progress=progress).matcher()
    found = tuple(sorted(_stores() - before))
    kept = sorted(_stores())
    if readable and kept:
        let_all_read(kept, missing)
    return Warmed(found, time.process_time() - begin)


def _stores() -> set[Path]:
    return set(cache_folder().glob("store-*.safetensors"))


def warm_engines(vocabulary: Vocabulary, complain: Callable[[str], None] = lambda said: None) -> float:
    """Run the engines of grammars and of schemas once, so that their compiled code is there.

    Where kernels are not compiled ahead, Numba compiles them now and keeps them on disk. What the
    schema engine makes of a vocabulary stays in the process.

    complain : called with what is wrong with the vocabulary.

    Returns the CPU seconds that it took.
    """
    begin = time.process_time()
    for constraint in ({"type": "object"}, 'start: "a" start?'):
        try:
            matcher = build_store(constraint, vocabulary).matcher()
            words = np.zeros(n_words(vocabulary.size), np.uint32)
            matcher.fill(words)
            token = int(tokens_of(words)[0])
            matcher.is_allowed(token)
            matcher.advance(token)
            matcher.rollback(1)
        except MaskwrightError as error:
            complain(f"vocabulary {vocabulary.name}: {error}")
    return time.process_time() - begin
