"""Files that users name, opened safely and read whole.

A file is refused if it has more bytes than such a file may have, if reading it could block or never
end, or if the same command will replace it.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import BinaryIO

from maskwright.analysis.errors import MaskwrightError

MAX_TEXT = 256 << 20
"""Bytes that a prompt, a text or a record of a corpus may have."""

_GIVEN = re.compile(r"/dev/stdin|(?:/dev|/proc/self|/proc/[0-9]+)/fd/[0-9]+")
"""Descriptors that the caller has opened: standard input, a shell's <(command).

Somebody writes there, so it is right to wait.
"""

_outputs: ContextVar[list[str]] = ContextVar("outputs")

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextmanager
def keeping_inputs() -> Iterator[None]:
    """A context in which the files that `declare_outputs` names cannot be read.

    They would be replaced when the work is done.
    """
    token = _outputs.set([])
    try:
        yield
    finally:
        _outputs.reset(token)


def declare_outputs(paths: Sequence[str | os.PathLike[str]]) -> None:
    """State which files will be written, before anything is read.

    Does nothing outside of `keeping_inputs`.

    paths : the files. They need not exist.
    """
    declared = _outputs.get(None)
    if declared is not None:
        declared.extend(map(os.fsdecode, paths))


def refuse_output(facts: os.stat_result, error: type[MaskwrightError] = MaskwrightError) -> None:
    """Check that a file that is about to be read will not be written.

    facts : what `os.stat` says of the file.
    error : the class of the error.

    Raises: `error` if it is a regular file that `declare_outputs` has named.
    """
    for path in _outputs.get(()):
        try:
            is_same = os.path.samestat(os.stat(path), facts)
        except (OSError, ValueError):
            continue
        if is_same and stat.S_ISREG(facts.st_mode):
            raise error(f"{path} is read by this command, so it is not written; name another file")


def absolute(path: str | os.PathLike[str]) -> str:
    """An absolute path of the same file.

    It is the path as it stands where the working directory is gone: a relative one leads nowhere.
    """
    try:
        return os.path.abspath(os.fsdecode(path))
    except OSError:
        return os.fsdecode(path)


def open_file(
    path: str | os.PathLike[str],
    limit: int | None,
    what: str,
    error: type[MaskwrightError] = MaskwrightError,
    is_output: bool = False,
) -> BinaryIO:
    """The file at a path, opened for reading. Opening does not block.

    Standard input by name (/dev/stdin, /dev/fd/0) and other descriptors that the caller has opened
    may be pipes or devices. Their size is not checked.

    path : the file.
    limit : the most bytes that the file may have; None for any number.
    what : what is expected there, for messages, such as "a tokenizer".
    error : the class of the errors.
    is_output : whether the file may be read although it is also written, as a log is.

    Raises: `error` if it is not a regular file, has more than `limit` bytes, or is an output
    (`declare_outputs`); OSError and ValueError as `open`.
    """
    where = os.fsdecode(path)
    if _GIVEN.fullmatch(where):
        refuse_output(os.stat(where), error)
        return open(where, "rb")
    handle = os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            kind = next((name for is_it, name in _KINDS if is_it(facts.st_mode)), "of an unknown kind")
            raise error(f"{where} cannot be read: it is {kind}, not a file; expected {what}")
        if not is_output:
            refuse_output(facts, error)
        _check_size(where, facts.st_size, limit, what, error)
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_file_bytes(
    path: str | os.PathLike[str], limit: int, what: str, error: type[MaskwrightError] = MaskwrightError
) -> bytes:
    """All bytes of a file.

    path, limit, what, error : as for `open_file`.

    Raises: as `open_file`; `error` also if a pipe has more than `limit` bytes.
    """
    with open_file(path, limit, what, error) as file:
        return read_stream(file, os.fsdecode(path), limit, what, error)


def read_stream(
    stream: BinaryIO | io.BufferedIOBase,
    where: str,
    limit: int,
    what: str,
    error: type[MaskwrightError] = MaskwrightError,
) -> bytes:
    """All bytes of an open stream, such as standard input.

    where : the stream's name, for messages.
    limit, what, error : as for `open_file`.

    Raises: `error` if there are more than `limit` bytes.
    """
    data = stream.read(limit + 1)
    _check_size(where, len(data), limit, what, error)
    return data


def is_tensors(path: str | os.PathLike[str]) -> bool:
    """Whether a file is in the format safetensors, as stores are. False if it cannot be read.

    It begins with the length of a header in JSON, eight bytes.
    """
    try:
        if not os.path.isfile(path):  # from a pipe nothing may be taken here
            return False
        with open_file(path, None, "a file") as file:
            head = file.read(9)
            return head[8:] == b"{" and int.from_bytes(head[:8], "little") + 8 <= os.fstat(file.fileno()).st_size
    except (OSError, ValueError):
        return False


def _check_size(where: str, size: int, limit: int | None, what: str, error: type[MaskwrightError]) -> None:
    """Raises `error` for a size past the limit."""
    if limit is not None and size > limit:
        raise error(f"{where} is longer than {limit:,} bytes: it is not {what}")
