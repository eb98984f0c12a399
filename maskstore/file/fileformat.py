"""Store files: one `.safetensors` file a store, whose content is checked before it is used.

Equal stores give equal bytes. This is format version 3. Words in capitals as in RFC 2119.

- A store file MUST be a safetensors file whose metadata has the key ``maskwright`` and no other.
  (safetensors keeps metadata in a hash map, whose order would change the bytes.)
- The key's value MUST be JSON in canonical form (keys sorted, ASCII, no blanks, no key twice) with
  the members of `fileheader.FACTS` for its `kind` and no others. The kind is "entries" for an
  `EntryTable` (lexing "nfa"), "automaton" for an `EngineTable` (all other lexings), "schema" for a
  JSON schema, "pattern" for an automaton of all texts (`schema_file`) and "composition" for texts
  of several languages (`composition_file`).
- `grammar` MUST be `Grammar.to_dict`, text included, and the tensors ``vocabulary.*`` MUST be
  `Vocabulary.to_arrays`, so that a store is complete in itself. Their digests MUST be
  `grammar_sha256` and `vocabulary.sha256`.
- `schema`, `documents` and `whitespace` MUST be JSON texts, of an object or a truth value, of an
  object, and of a string or an integer; with `key_order`, `escapes` and `lenient` they are the
  arguments of `load_schema`. A reader MUST NOT take any of them for a path. `narrowing` has at most
  one member, a `Narrowing` of what was read, with the `Texts.digest` that it MUST come to.
- `automaton.*` MUST be a minimal automaton of at most 60,000 states that accepts something.
- A composition's `languages` are hosts and parts, each behind all that it names, it itself last.
  Their tensors have their numbers before their names, as ``0.table``. ``host_ids`` MUST be, in
  ascending order, the tokens of the marked vocabulary (`marked_vocabulary`) for which a host's
  table is; it is empty for other hosts. A tag's `rules` are those of `tag_rules.bodies_of`, their
  literals in hexadecimal digits.
- `steps` MUST be the streamlining steps, ``original`` first, each with the number of entries left
  after it in all resting states together. They and `counts` are statistics: a decoder MUST NOT
  depend on them.
- A file MUST NOT hold times, paths or anything else about the machine that wrote it.
- The tensors MUST be those that `fileheader.tensors_of` has for the kind, with lengths that agree.
  Integers MAY be narrower on disk than in memory, in any dtype that widens without loss; a writer
  SHOULD take the narrowest. Truth values are U8, 0 or 1. `table` MUST be I32, because it is mapped
  into memory without conversion.
- `table_checksum` MUST be the sum of (2 i + 1) v_i modulo 2^64 in 16 hex digits, v_i being the
  table's value i as an unsigned 32-bit number.
- `sha256` MUST be the SHA-256, in hex, of the canonical JSON without that member, followed by each
  tensor but `table`, in the order of names. A tensor is written as a line feed, name, blank, dtype
  as numpy writes it (``<i2``, ``|u1``), blank, shape (``817,256``), line feed, and its values in
  little-endian order. The digest shows damage, not who wrote the file: a reader MUST NOT trust a
  file because of it.
- The values MUST obey all that `check_arrays` or `check_table` checks. A reader MUST check it all,
  and MUST refuse other versions.
- Tensors MAY stand in the file in any order and alignment that safetensors allows.
- A store of kind "automaton" that was loaded with `mapped` uses the file's own pages. Such a file
  MUST NOT be altered in place. (`save_store` never does that: it puts a new file in its place.)
- A change after which old readers would misread new files, or old files would not load, MUST raise
  `FORMAT_VERSION`, once for each version that is released.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from maskwright.analysis.arguments import as_integer, clip, need_path, printable, refuse_argument
from maskwright.analysis.errors import StoreError, VocabularyError
from maskwright.analysis.files import absolute
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import read_json
from maskwright.maskstore.damaged import EXPORT_AGAIN, reason, refuse
from maskwright.maskstore.file.fileheader import (
    AUTOMATON,
    COMPOSITION,
    ENTRIES,
    FORMAT,
    FORMAT_VERSION,
    METADATA_KEY,
    PATTERN,
    SCHEMA,
    TABLE,
    Content,
    Header,
    canonical,
    members,
    read_header,
    tensors_of,
    with_printable_names,
)
from maskwright.maskstore.file.writing import replace_file
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that a store was loaded from.

    path : its absolute path.
    sha256 : the digest that the file states of its content; it covers the table's checksum.
    stamp : the file's device, inode, size and time of change when it was loaded; () if it could not
        be looked at.
    mapped : the store reads the file's own pages.
    """

    path: str
    sha256: str
    stamp: tuple[int, ...]
    mapped: bool

    @classmethod
    def of(cls, path: str | os.PathLike[str], sha256: str, mapped: bool) -> Origin:
        """The origin of the file that is at `path` now.

        sha256 : the digest that the file states.
        mapped : the store reads the file's own pages.
        """
        return cls(absolute(path), sha256, _stamp(path), mapped)

    def is_there(self) -> bool:
        """True if the file is still there, not replaced or altered since."""
        return bool(self.stamp) and _stamp(self.path) == self.stamp


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


if TYPE_CHECKING:
    from maskwright.analysis.loading.sources import GrammarSource
    from maskwright.maskstore.composition.tables import ComposedTables
    from maskwright.maskstore.entries.entry_table import EntryTable
    from maskwright.maskstore.file.composition_file import ComposedContent
    from maskwright.maskstore.schema.compiled import SchemaTables
    from maskwright.maskstore.table.compiled import EngineTable

    AnyTable: TypeAlias = EntryTable | EngineTable | SchemaTables

Array = npt.NDArray[Any]

MOST_FILE = 1 << 32  # BOUND: the bytes of a file; the largest stores have some hundred megabytes
ATTEMPTS = 20
"""How often a file that is being replaced is read before the reader gives up."""


# PERF: what reads one kind is not kept waiting for the others


def _automaton() -> ModuleType:
    from maskwright.maskstore.file import automaton_file

    return automaton_file


def _entries() -> ModuleType:
    from maskwright.maskstore.file import entries_file

    return entries_file


def _schema() -> ModuleType:
    from maskwright.maskstore.file import schema_file

    return schema_file


def _composition() -> ModuleType:
    from maskwright.maskstore.file import composition_file

    return composition_file


KINDS = {AUTOMATON: _automaton, ENTRIES: _entries, SCHEMA: _schema, PATTERN: _schema, COMPOSITION: _composition}
"""By the kind of a file, which what it holds has as its `file_kind`, what knows it: `written` makes
of a store facts and tensors, `read` makes the store of them again, and `info` describes a file."""

_NARROW = [np.dtype(code) for code in ("|u1", "|i1", "<u2", "<i2", "<i4", "<i8")]


def save_store(store: AnyTable | ComposedTables, path: str | os.PathLike[str], *, mode: int = 0o666) -> None:
    """Write the store's file. Equal stores give equal bytes (under one version of safetensors).

    store : what a store holds; a `Store` or `EntryStore` is one.
    path : the file to write or replace.
    mode : the permissions of the new file, less those that the umask takes away.

    The file is written beside `path` under another name, and then renamed to `path`. A reader of
    `path` therefore finds the old file or the new one, whole, also after an error or Ctrl-C.

    Raises: StoreError if the folder does not exist, `path` is not a file, or the system refuses;
    MaskwrightError if `store` is not a store, `path` has the wrong type,
    or `mode` is no permissions.
    Cost: O(size of the file).
    """
    kind = KINDS.get(getattr(store, "file_kind", ""))
    if kind is None:
        refuse_argument("the store", store, "a store: mw.build_store(grammar, vocabulary)")
    need_path("a store", path)
    mode = as_integer("mode", mode)
    if not 0 <= mode <= 0o7777:
        refuse_argument("mode", mode, "a file's permissions, as in 0o644")
    own, arrays = kind().written(store)
    arrays |= {f"vocabulary.{name}": array for name, array in store.vocabulary.to_arrays().items()}
    tensors = {name: array if name == TABLE else _narrowed(array) for name, array in arrays.items()}
    facts = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "vocabulary": {
            "name": store.vocabulary.name,
            "sha256": store.vocabulary.digest,
            "size": store.vocabulary.size,
        },
        **own,
    }
    facts["sha256"] = _content_digest(facts, tensors)
    replace_file(Path(os.fsdecode(path)), save(tensors, {METADATA_KEY: canonical(facts)}), mode)


def read_store(
    path: str | os.PathLike[str],
    vocabulary: VocabularySource | None = None,
    grammar: GrammarSource | None = None,
    mapped: bool = False,
) -> tuple[AnyTable | ComposedContent, Origin]:
    """What `save_store` wrote, and the file that it is from.

    path : the file.
    vocabulary, grammar : if given, the store must have been made for equal ones, and then holds
        these very objects. Names, paths and the like are accepted too.
    mapped : an engine's table is the file's own pages instead of a copy.

    Raises: as `maskwright.load_store`; and as `load_grammar` and `load_vocabulary` for names and
    paths.
    Cost: O(size of the file).
    """
    need_path("a store", path)
    path = where = os.fsdecode(path)
    if grammar is not None:
        # a decoder that names no grammar is not kept waiting for what loads grammars
        from maskwright.analysis.loading.sources import as_grammar

        grammar = as_grammar(grammar)
    vocabulary = None if vocabulary is None else as_vocabulary(vocabulary)
    for _ in range(ATTEMPTS):
        before = Origin.of(path, "", mapped)
        with _opened(path) as file:
            header = read_header(where, file)
            names = [name for name in header.tensors if name != TABLE]
            tensors: dict[str, Array] = {name: file.get_tensor(name) for name in names}
            table = read_tensor(path, TABLE, header, mapped) if TABLE in header.tensors else None
        if table is not None or TABLE not in header.tensors:
            break
    else:
        raise StoreError(
            f"{where} was replaced during every attempt to read it; load it when its writers have finished"
        )
    # the stamp is from before reading: a file that was replaced since then has another one
    origin = replace(before, sha256=header.facts["sha256"])
    named = header.facts["vocabulary"]
    if grammar is not None:
        if header.own_grammar is None:
            raise StoreError(
                f"{where} is the store of a {header.facts['kind']}, not of the grammar {clip(grammar.name)}; "
                "export a store for that grammar"
            )
        _check_made_for(where, "grammar", (header.grammar.name, header.grammar.digest), grammar)
    if vocabulary is not None:
        _check_made_for(where, "vocabulary", (named["name"], named["sha256"]), vocabulary)
    found = _content_digest({key: value for key, value in header.facts.items() if key != "sha256"}, tensors)
    if found != header.facts["sha256"]:
        raise refuse(where, f"its content has sha256 {found[:8]}, expected {clip(header.facts['sha256'][:8])}")
    shapes = tensors_of(header.facts)
    arrays = {name: _widened(where, name, shapes[name][0], array) for name, array in tensors.items()}
    own = _vocabulary(where, named, arrays)
    if grammar is None and header.own_grammar is not None:
        grammar = with_printable_names(header.own_grammar)
    content = Content(where, header, arrays, table, own, own if vocabulary is None else vocabulary, grammar)
    return KINDS[header.facts["kind"]]().read(content), origin


def store_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a store file says about itself, ready for JSON.

    path : the file.

    Of the arrays only the table's sizes are read, so the values are not checked.

    Raises: StoreError as `load_store`, for whatever shows without the arrays.
    Cost: O(size of the header).
    """
    need_path("a store", path)
    path = os.fsdecode(path)
    with _opened(path) as file:
        header = read_header(path, file)
        n_bytes = os.stat(path).st_size
        table = read_tensor(path, TABLE, header, mapped=True) if TABLE in header.tensors else None
    facts, grammar = header.facts, header.own_grammar
    own: dict[str, Any] = {}
    if grammar is not None:
        own["grammar"] = {
            "name": printable(grammar.name),
            "sha256": grammar.digest,
            "terminals": grammar.n_terminals,
            "nonterminals": grammar.n_nonterminals,
            "rules": len(grammar.rules),
        }
        own["lexing"] = facts["lexing"]
    own |= KINDS[facts["kind"]]().info(path, header, table)
    return {
        "format_version": facts["version"],
        "kind": facts["kind"],
        "vocabulary": {**facts["vocabulary"], "name": printable(facts["vocabulary"]["name"])},
        **own,
        "tensors": {name: {"dtype": code, "shape": list(shape)} for name, (code, shape) in header.tensors.items()},
        "sha256": facts["sha256"],
        "bytes": n_bytes,
    }


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    """The opened safetensors file, as a context; its errors become StoreErrors."""
    where = os.fspath(path)
    try:
        if not stat.S_ISREG((status := os.stat(path)).st_mode):  # a pipe would block, a folder cannot be mapped
            raise StoreError(f"{where} is not a file; expected one that `maskwright export` wrote")
        if status.st_size > MOST_FILE:
            raise StoreError(f"{where} has {status.st_size:,} bytes, and a store at most {MOST_FILE:,}")
        with open(path, "rb"):  # safetensors says of a file that may not be read that it is not there
            pass
        with safe_open(path, framework="numpy") as file:
            yield file
    except StoreError:
        raise
    except FileNotFoundError:
        # PERF: a store need not wait for what reads grammars
        from maskwright.analysis.loading.names import known_grammars, meant

        name, known = str(where), known_grammars()
        near = difflib.get_close_matches(name, known, n=1) if name.isidentifier() and name not in known else []
        raise StoreError(
            f"there is no store {where or repr(where)}; check the path, or make one with `maskwright export`"
            + (f"; did you mean the grammar {near[0]!r}?" if near else meant(path, "load_store"))
        ) from None
    except (OSError, ValueError, MemoryError) as error:
        raise StoreError(f"{where} cannot be read: {reason(error)}") from error
    except SafetensorError as error:
        raise StoreError(
            f"{where} is not a whole safetensors file ({reason(error)}): cut off, damaged or no store (a grammar is for mw.build_store); "
            f"{EXPORT_AGAIN}"
        ) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # safetensors had no memory for a tensor
            raise
        raise StoreError(f"{where} cannot be read: there is no memory for its tensors") from error


def _check_made_for(where: str, what: str, own: tuple[str, str], given: Grammar | Vocabulary) -> None:
    """Raise StoreError unless the digest in the file is that of the given object."""
    name, digest = own
    if digest != given.digest:
        raise StoreError(
            f"{where} was made for the {what} {clip(name)} ({digest[:8]}), not for {clip(given.name)} "
            f"({given.digest[:8]}); export a store for that {what}"
        )


def _vocabulary(where: str, named: Mapping[str, Any], arrays: Mapping[str, Array]) -> Vocabulary:
    try:
        vocabulary = Vocabulary.from_arrays(members(arrays, "vocabulary"), name=printable(named["name"]))
    except VocabularyError as error:
        raise refuse(where, f"its vocabulary is wrong: {reason(error)}") from error
    if vocabulary.digest != named["sha256"]:
        raise refuse(where, f"its vocabulary has sha256 {vocabulary.digest[:8]}, expected {clip(named['sha256'][:8])}")
    return vocabulary


def _content_digest(facts: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """The `sha256` of the format. facts : without the member `sha256`."""
    state = hashlib.sha256(canonical(facts).encode("ascii"))
    for name, array in sorted(tensors.items()):
        if name == TABLE:
            continue  # it has a checksum of its own, which is as fast as memory
        ordered = array.astype(array.dtype.newbyteorder("<"), copy=False)
        state.update(f"\n{name} {ordered.dtype.str} {','.join(map(str, ordered.shape))}\n".encode("ascii"))
        state.update(ordered.tobytes())
    return state.hexdigest()


def _narrowed(array: Array) -> Array:
    """The same values, C-contiguous, in the smallest integer dtype that holds them.

    Unsigned arrays (bits and bytes) keep their dtype, and truth values become uint8.
    """
    if array.dtype.kind == "u":
        return np.ascontiguousarray(array)
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array, np.uint8)
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    smallest = next(dtype for dtype in _NARROW if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max)
    return np.ascontiguousarray(array, smallest)


def _widened(where: str, name: str, dtype: type[np.generic], array: Array) -> Array:
    """The tensor in its dtype of memory, read-only. Raises StoreError for a truth value above 1."""
    if dtype is np.bool_ and array.max(initial=0) > 1:
        raise refuse(where, f"tensor {name} holds {array.max()}, expected 0 or 1")
    wide: Array = array.astype(dtype)
    wide.setflags(write=False)
    return wide


def read_tensor(path: str | os.PathLike[str], name: str, header: Header, mapped: bool) -> npt.NDArray[np.int32] | None:
    """A tensor of dtype I32, read-only; None if the file is not the one of this header any more.

    path : the file.
    name : the tensor.
    header : what was read of the file before.
    mapped : the file's own pages instead of a copy. What is written into the file later is then
        read, and reading what was cut off ends the process (SIGBUS).

    safetensors has checked the file's header, but does not tell where a tensor lies. So we read the
    header once more. A tensor that does not begin at a multiple of four bytes is always
    copied.

    Raises: OSError or ValueError as opening, reading and mapping do.
    """
    _, shape = header.tensors[name]
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > os.fstat(file.fileno()).st_size:
            return None
        try:
            heads: Any = read_json(file.read(length))
            is_same = heads["__metadata__"][METADATA_KEY] == header.text and tuple(heads[name]["shape"]) == shape
            begin = 8 + length + int(heads[name]["data_offsets"][0])
        except (ValueError, KeyError, TypeError):
            return None
        if not is_same:
            return None
        if 0 in shape:
            found: npt.NDArray[np.int32] = np.zeros(shape, np.int32)
        elif mapped:
            found = np.memmap(file, "<i4", "r", begin, shape).view(np.ndarray)
        else:
            found = np.fromfile(file, "<i4", math.prod(shape), offset=begin - file.tell())
            if found.size != math.prod(shape):
                return None
            found = found.reshape(shape)
    # PERF: compiled code is made for native, aligned arrays; this copies only arrays that are not
    array = np.require(found, np.int32, ["C", "A"])
    array.setflags(write=False)
    return array
