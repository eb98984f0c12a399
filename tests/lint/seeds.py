"""What the tests of lint share: a grammar for each kind of finding (`data/cases/lint.toml`), grammars and vocabularies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from written_cases import written

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary


@dataclass(frozen=True)
class Seed:
    """What the members are stands in the file."""

    code: str
    severity: str
    at: tuple[int, int]
    words: tuple[str, ...]
    defect: str
    clean: str
    example: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    clean_missing: str = ""

    def __str__(self) -> str:
        return f"{self.code}-{self.severity}-{self.at[0]}"


SEEDS = tuple(
    Seed(**{name: tuple(value) if isinstance(value, list) else value for name, value in seed.items()})
    for seed in written("lint")["seed"]
)


def vocabulary(missing: bytes = b"", special: dict[int, str] | None = None, eos: tuple[int, ...] = (0,)) -> Vocabulary:
    """One token a byte, but for the missing ones; a few longer ones."""
    tokens = [b"", *(bytes([b]) for b in range(256) if b not in missing)]
    tokens += [t for t in (b"true", b'":', b"  ") if not set(t) & set(missing)]
    names = {0: "<eos>"} | (special or {})
    return Vocabulary("bytes", tuple(b"" if i in names else t for i, t in enumerate(tokens)), names, eos)


def grammar_of(text: str, **options: Any) -> Grammar:
    """By the longest match, unless the text or the options say otherwise."""
    if "maskwright: lexing" not in text:
        options = {"lexing": "longest"} | options
    return parse_grammar(text, name="seed.lark", **options)
