"""Built stores in the user's cache folder, so that a grammar and a tokenizer are compiled once.

A cached store is a store file like any other, and is checked like any other when it is loaded. That
check finds damage, but not who wrote the file: a store with other masks passes. So the folder and
its files are used only if nobody else can have written them (`trust`). Otherwise the cache is not
used, with a warning, and stores are built each time. A run must not fail because of a folder that
merely saves time, and must not use what another user put there. Any of the files can be deleted at
any time. It is built again when it is needed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import time
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_args, overload

import platformdirs

from maskwright.analysis.arguments import as_boolean, need_choice, need_progress
from maskwright.analysis.errors import StoreError
from maskwright.analysis.files import refuse_output
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import Rules
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.analysis.nesting import on_own_stack
from maskwright.maskstore import damaged
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.file.fileheader import FORMAT_VERSION
from maskwright.maskstore.file.writing import TEMPORARY
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary
from maskwright.stores.build import build_and_keep
from maskwright.stores.first_call import say_what_is_compiled
from maskwright.stores.sources import as_constraint, refuse_options, store_of
from maskwright.stores.store import load_store
from maskwright.stores.trust import make_own_folder, why_not_trusted, why_not_trusted_file, why_others_cannot_read
from maskwright.version import version

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.entry_store import EntryStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.sources import SchemaSource
    from maskwright.stores.store import AnyStore, Store

FOLDER_VARIABLE = "MASKWRIGHT_CACHE"
"""The environment variable that names the cache folder."""

BUILD_VERSION = 11
"""Raise this when stores change in a way that older readers accept. Its history:

- 2: masks of contextual lexing had lacked tokens.
- 3: tables have shortcuts of parses.
- 4: comments that led nowhere had been allowed, and comments had been refused where they may begin
  the layout's newline.
- 5: a grammar that cannot finish any text has no store; ambiguous grammars are read on fewer
  stacks; tabs and blanks had been compared otherwise than CPython does.
- 6: an `else` after several open `if`s is read on one stack.
- 7: masks of decided conflicts lead into no dead end.
- 8: a part of the table that nobody read is gone.
- 9: legal texts had been refused behind ignored lexemes that can back up.
- 10: nodes that no stack comes to are gone.
- 11: nodes that differ in renamed symbols alone are gone.
"""

_OF_REQUESTS = re.compile(r"request-[0-9a-f]{64}\.safetensors")
_OURS = re.compile(rf"(?:store|request)-[0-9a-f]{{64}}\.safetensors|{TEMPORARY.pattern}")

_logger = logging.getLogger(__name__)
_warned: set[Path] = set()


def cache_folder() -> Path:
    """The folder in which stores are kept, whether or not it exists.

    The environment variable MASKWRIGHT_CACHE names it. Otherwise it is this user's cache folder on
    this platform.

    Raises: StoreError if it lies in the user's home directory and there is none.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    try:
        found = (
            Path(os.path.expanduser(named)) if named else platformdirs.user_cache_path("maskwright", appauthor=False)
        )
    except RuntimeError:  # platformdirs finds no home directory
        found = Path("~")
    if str(found).startswith("~"):
        raise StoreError(
            f"the cache folder {found} cannot be found: {_HOMELESS}; set {FOLDER_VARIABLE} to an absolute path"
        )
    return found


_HOMELESS = "this user has no home directory"


class CacheOptions(TypedDict, total=False):
    """The options of `cached_store`."""

    rules: Rules
    progress: Progress | None
    refresh: bool
    lazy: bool


@overload
def cached_store(
    grammar: GrammarSource, vocabulary: VocabularySource, **options: Unpack[CacheOptions]
) -> EntryStore | Store: ...


@overload
def cached_store(
    grammar: SchemaSource, vocabulary: VocabularySource, **options: Unpack[CacheOptions]
) -> SchemaStore: ...


@overload
def cached_store(
    grammar: Composition, vocabulary: VocabularySource, **options: Unpack[CacheOptions]
) -> ComposedStore: ...


@on_own_stack
def cached_store(
    grammar: GrammarSource | SchemaSource | Composition,
    vocabulary: VocabularySource,
    *,
    rules: Rules = "normalised",
    progress: Progress | None = None,
    refresh: bool = False,
    lazy: bool = False,
) -> AnyStore | ComposedStore:
    """`build_store(grammar, vocabulary, rules=rules)`, or the equal store from the cache.

    The store of a schema or a pattern is built each time, which takes a millisecond.

    grammar, vocabulary, rules, progress : see `build_store`.
    refresh : build it anew even if it is in the cache; for developers of maskwright.
    lazy : see `build_store`. The store comes into the cache when it is closed; a program that ends
        before leaves nothing. `Store.close` waits for both. Under lexing "nfa" it makes no
        difference.

    A store is found again by the same version of maskwright and of Unicode, for an equal grammar,
    an equal vocabulary and equal rules. A file in the cache that is damaged, or that others may
    have written, is built anew, with a warning in the log. If the folder cannot be written, or
    others may write there, stores are built each time, with one warning in the log. Processes may
    share the folder: each writes its own file and renames it.

    Raises: as `build_store`.
    Cost: as `load_store` if it is in the cache, else as `build_store`.
    """
    refresh, lazy = as_boolean("refresh", refresh), as_boolean("lazy", lazy)
    need_choice("rules", rules, get_args(Rules))
    need_progress(progress)
    found, vocabulary = as_constraint(grammar), as_vocabulary(vocabulary)
    say_what_is_compiled(found.kind)
    refuse_options(found, True, rules, 1)

    def build(each: Grammar, tokens: Vocabulary) -> Store | EntryStore:
        own: Any = {"rules": rules, "lazy": lazy} if each is found else {}  # else of a composition
        return cached_grammar(each, tokens, progress=progress, refresh=refresh, **own)

    return store_of(found, vocabulary, build)  # type: ignore[no-any-return]


def cached_grammar(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    rules: Rules = "normalised",
    progress: Progress | None = None,
    refresh: bool = False,
    lazy: bool = False,
    is_left_open: bool = False,
    may_be_trimmed: bool = False,
) -> Store | EntryStore:
    """As `cached_store`, of a grammar.

    is_left_open : see `build_and_keep`.
    may_be_trimmed : whether `trim_cache` may delete what is put there, since anyone may have sent
        the grammar to a server. What `cached_store` and `warm_cache` have put there is found too.

    Raises: as `cached_store`.
    """
    folder = _usable_folder()
    path = None
    if folder is not None:
        name = f"{_key(grammar, vocabulary, rules)}.safetensors"
        path = folder / f"store-{name}"
        if may_be_trimmed and not os.path.lexists(path):
            path = folder / f"request-{name}"
    if path is not None and not refresh and os.path.lexists(path):
        try:
            reason = why_not_trusted_file(path)
            if reason is None:
                status = os.stat(path)
                refuse_output(status)
                loaded: Any = load_store(path, vocabulary=vocabulary, grammar=grammar, mapped=True)
                with contextlib.suppress(OSError):
                    # For `trim_cache`. A pickled store knows its file by the time of change.
                    os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
                return loaded  # type: ignore[no-any-return]
            _logger.warning("the cached store is built anew: %s cannot be trusted: %s", path, reason)
        except (OSError, StoreError) as error:
            _logger.warning("the cached store is built anew: %s", error)
    lazy = lazy and grammar.lexing != "nfa"
    return build_and_keep(
        grammar,
        vocabulary,
        partial(_keep, path),
        rules=rules,
        progress=progress,
        lazy=lazy,
        is_left_open=is_left_open,
    )


def _keep(path: Path | None, store: Any) -> None:
    """Write a store to the cache, if there is one. Where that fails, it is built each time."""
    if path is not None:
        try:
            save_store(store, path, mode=0o600)
        except (OSError, StoreError) as error:
            _warn(path.parent, "cannot be written", str(error))


def warm_cache(
    grammar: GrammarSource,
    vocabulary: VocabularySource,
    *,
    rules: Rules = "normalised",
    progress: Progress | None = None,
    readable: bool = False,
) -> Path:
    """Make sure that the cache has a store, as for an image that is built once and run many times.

    grammar, vocabulary, rules, progress : see `build_store`.
    readable : all users may read the cache folder and the store, though not write there; for
        programs that run as another user than the one who builds the image. The same holds for the
        folders above it that are made now.

    Returns the store's file.

    Raises: StoreError if the cache cannot be used, or another user cannot come to a readable one,
    saying why; else as `build_store`.
    Cost: as `cached_store`.
    """
    readable = as_boolean("readable", readable)
    grammar, vocabulary = as_grammar(grammar), as_vocabulary(vocabulary)
    missing = missing_folders()
    folder, what, reason = _find_folder()
    if reason:
        raise StoreError(f"the cache folder {folder} {what}: {reason}; set {FOLDER_VARIABLE} to another")
    path = folder / f"store-{_key(grammar, vocabulary, rules)}.safetensors"
    store = cached_store(grammar, vocabulary, rules=rules, progress=progress)
    if not path.is_file():
        save_store(store, path, mode=0o600)  # says why it cannot be written
    if readable:
        let_all_read([path], missing)
    return path


def missing_folders() -> list[Path]:
    """The cache folder and the folders above it that are not there yet.

    Raises: as `cache_folder`; StoreError for a relative one where the working directory is gone.
    """
    named = cache_folder()
    try:
        folder = Path(os.path.realpath(named))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the cache folder {named} cannot be found: {damaged.reason(error)}; set {FOLDER_VARIABLE} to an absolute path"
        ) from error
    return [path for path in (folder, *folder.parents) if not os.path.lexists(path)]


def let_all_read(paths: Sequence[Path], made: Sequence[Path]) -> None:
    """Let all users read stores in the cache.

    paths : their files, at least one.
    made : what `missing_folders` said before they were written; these folders become readable too.

    Raises: StoreError if the system refuses, or a folder above the cache, which is not ours to
    change, lets nobody else in.
    """
    folder = Path(os.path.realpath(paths[0].parent))
    try:
        for path in paths:
            path.chmod(0o644)
        for path in {folder, *made}:
            path.chmod(0o755)
        closed = why_others_cannot_read(folder)
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder} cannot be made readable for others: {error.strerror}; set {FOLDER_VARIABLE} to a "
            "folder of your own"
        ) from error
    if closed is not None:
        raise StoreError(f"others cannot read the cache folder {folder}: {closed}; or set {FOLDER_VARIABLE} to another")


def _usable_folder() -> Path | None:
    """The cache folder, made if necessary, as a path without links.

    None, with a warning, if it cannot be used.
    """
    folder, what, reason = _find_folder()
    if not reason:
        return folder
    _warn(folder, what, reason, "a folder of your own" if what == _NOT_TRUSTED else "a writable folder")
    return None


_NOT_TRUSTED = "is not used, because others could put stores there"


def _find_folder() -> tuple[Path, str, str]:
    """The cache folder; and what is wrong with it and why, or "" and ""."""
    try:
        folder = cache_folder()
    except StoreError:
        return Path("~"), "cannot be found", _HOMELESS
    try:
        folder = Path(os.path.realpath(folder))
        make_own_folder(folder)
        if not folder.is_dir():
            return folder, "cannot be written", "it is not a folder"
        reason = why_not_trusted(folder)
    except (OSError, ValueError) as error:
        return folder, "cannot be written", str(error)
    return (folder, "", "") if reason is None else (folder, _NOT_TRUSTED, reason)


def clear_cache() -> int:
    """Delete all stores in the cache folder; returns the number of files deleted.

    What interrupted writers left there is deleted too. Other files stay.

    Raises: StoreError if a file cannot be deleted; and as `cache_folder`.
    """
    folder = cache_folder()
    if not os.path.isdir(folder):
        return 0
    try:
        found = [path for path in folder.iterdir() if _OURS.fullmatch(path.name) and path.is_file()]
        for path in found:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"the cache folder {folder} cannot be emptied: {error.strerror}; check its permissions"
        ) from error
    return len(found)


def trim_cache(most_bytes: int) -> int:
    """Delete the stores of requests that were not asked for the longest, but so many bytes.

    They are those that `cached_grammar` wrote as such. Other files stay, and so does what is being
    written. Processes that have a deleted store mapped keep it.

    Returns the number of files deleted. Nothing is raised: what cannot be deleted stays.
    """
    found: list[tuple[float, int, str]] = []
    with contextlib.suppress(OSError), os.scandir(cache_folder()) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process has deleted it
                if _OF_REQUESTS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append((max(status.st_atime, status.st_mtime), status.st_size, entry.path))
    total, n_deleted = sum(size for _, size, _ in found), 0
    for _, size, path in sorted(found):
        if total <= most_bytes:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total, n_deleted = total - size, n_deleted + 1
    return n_deleted


def _key(grammar: Grammar, vocabulary: Vocabulary, rules: str) -> str:
    """The part of a cached store's file name that identifies what it was built from and by."""
    # The grammar's digest covers lexing and conflicts. The versions stand for the algorithms: a
    # corrected one must not serve what the wrong one built. What \w matches depends on the Unicode
    # version of the running Python.
    versions = (str(FORMAT_VERSION), version(), str(BUILD_VERSION))
    facts = (grammar.digest, vocabulary.digest, *versions, rules, unicodedata.unidata_version)
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()


def _warn(folder: Path, what: str, reason: str, wanted: str = "a writable folder") -> None:
    """Warn once about a folder."""
    if folder in _warned:
        return
    _warned.add(folder)
    _logger.warning(
        "the cache folder %s %s, so stores are built each time: %s; set %s to %s",
        folder,
        what,
        reason,
        FOLDER_VARIABLE,
        wanted,
    )
