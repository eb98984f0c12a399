"""Errors of packages that read a stranger's files. Some are of Rust, and panic on odd ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from maskwright.analysis.errors import MaskwrightError


class PackageError(Exception):
    """A package's own code failed.

    error : what it raised; of a panic, a RuntimeError with its message.
    """

    def __init__(self, raised: BaseException) -> None:
        super().__init__(str(raised))
        self.error = raised if isinstance(raised, Exception) else RuntimeError(str(raised))


@contextmanager
def package_errors() -> Iterator[None]:
    """A context in which every error and every panic of a package becomes a PackageError.

    A panic of Rust is no Exception. Our own errors pass unchanged, and so does what is no error,
    such as KeyboardInterrupt.
    """
    try:
        yield
    except MaskwrightError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise PackageError(error) from error
