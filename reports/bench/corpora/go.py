"""Go: must accept the files of the evaluation data and, where Go 1.22 or later is installed, its standard library; must refuse what gofmt
refuses of mutants of the data's files.

Reference: `gofmt -e`, which is go/parser. A refusal cannot come before the first byte in which a mutant differs from its file, nor past the
token that gofmt found where it expected another: go/parser reads on by one token and never back. Its other complaints name a place before
the token that made it complain, so they say only that the text is refused somewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from common import shared_records
from gofmt import Complaint, complaints, missing, standard_library
from mutations import mutants

PER_FILE = 10
SEED = 20261122

LEXEME = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`|'(?:\\.|[^'\\\n])*')
      | (?P<word>[^\W\d]\w*)
      | \.?\d[\w.]*
      | <<=|>>=|&\^=|&\^|&&|\|\||<-|\+\+|--|:=|\.\.\.|[-+*/%&|^<>=!]=|<<|>>
      | \S""",
    re.VERBOSE | re.DOTALL,
)

_FOUND = re.compile(r"expected .*, found (?!assignment|simple statement)")

KNOWN: dict[str, str] = {}


def positive() -> Iterator[tuple[str, bytes]]:
    for record in shared_records("source/go"):
        yield f"{record['source']}/{record['path']}", record["text"].encode()
    why = missing()
    if why is not None:
        print(f"without the standard library: {why}", file=sys.stderr)
        return
    for path in standard_library():
        yield "/".join(path.parts[path.parts.index("src") :]), path.read_bytes()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    why = missing()
    if why is not None:
        print(f"without mutants: {why}", file=sys.stderr)
        return
    texts = ((f"{record['source']}/{record['path']}", record["text"]) for record in shared_records("source/go"))
    found = list(mutants(texts, LEXEME, PER_FILE, SEED))
    data = [mutant.text.encode() for _, mutant in found]
    for (name, mutant), text, complaint in zip(found, data, complaints(data), strict=True):
        if complaint is not None:
            yield name, text, mutant.lower, _upper(text, complaint)


def _upper(text: bytes, complaint: Complaint) -> int:
    if not _FOUND.match(complaint.message):
        return len(text)
    token = LEXEME.match(text[complaint.offset :].decode(errors="replace"))
    return complaint.offset + len(token[0].encode()) if token else complaint.offset
