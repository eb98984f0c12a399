"""What the benchmark asks of an engine. Known to every adapter, and to nothing else of the product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

GRAMMARS = Path(__file__).resolve().parent.parent / "grammars"


class UnsupportedError(Exception):
    """The engine cannot do this work; the message says why."""


@dataclass(frozen=True)
class Work:
    """What is measured: documents as tokens, and the vocabulary.

    tokens : id -> bytes, b"" for special ones.  documents : (name, token ids); the bytes of the ids are the document's, exactly.
    folder : a place for the engine's own caches.
    """

    name: str
    tokenizer: str
    tokens: list[bytes]
    special: dict[int, str]
    eos: list[int]
    documents: list[tuple[str, list[int]]]
    folder: Path

    @property
    def n_words(self) -> int:
        return (len(self.tokens) + 31) // 32

    @property
    def byte_ids(self) -> list[int]:
        """The token of each byte."""
        ids = {token: number for number, token in enumerate(self.tokens)}
        return [ids[bytes([byte])] for byte in range(256)]


class Matcher(Protocol):
    """One text under way. `fill` and `advance` are what is timed: as few Python calls as the engine's documentation allows."""

    words: Words
    """(n_words,): what `fill` writes."""
    fill: Callable[[], Any]
    advance: Callable[[int], Any]

    def failure(self) -> str:
        """Why the engine has given up, or an empty string."""
        ...


class Batch(Protocol):
    """Several texts in step. Slots are taken out when their text is refused."""

    words: Words
    """(n, n_words)"""

    def prepare(self, active: Sequence[int]) -> None:
        """Before the timed calls: the slots that are still in."""
        ...

    def fill(self) -> Any: ...

    def take(self, tokens: list[int]) -> None:
        """Before the timed call: the tokens to advance by, one for each active slot, in the order of `prepare`."""
        ...

    def advance(self) -> Any: ...


class Engine(Protocol):
    package: str
    """The distribution whose version is recorded."""
    grammar: str
    """Which grammar it runs, in words."""

    def load_vocabulary(self, work: Work) -> None:
        """What depends on the tokenizer alone."""
        ...

    def compile(self, work: Work) -> None:
        """Raises UnsupportedError."""
        ...

    def compile_schema(self, schema: str, lenient: bool = False) -> None:
        """For a JSON Schema in place of a grammar; without what it cannot keep to, if lenient. Raises UnsupportedError."""
        ...

    def reads(self, data: bytes) -> bool:
        """Whether a whole text is taken, byte by byte: it may be one even where a mask lacks its tokens."""
        ...

    def matcher(self) -> Matcher: ...

    def batch(self, n: int) -> Batch:
        """Raises UnsupportedError."""
        ...
