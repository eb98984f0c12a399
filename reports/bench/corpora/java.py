"""Java: must accept every Java file of the evaluation data, and those of their mutants (mutations.py, seeded) that javac accepts; must
refuse the other mutants.

Reference: the parser of the javac that is installed (JavaSyntax.java beside this file), which has to be of JDK 17. A mutant's first bad
byte is not past the end of the token that javac complains of, where javac says the same of the text cut off behind that token, whatever is
put there (and that token is not before the byte that the mutation changed); else it is just somewhere. Left out are mutants of which
javac's parser says what no context-free grammar can: a method without a type whose name is not the class's, `permits` of a class that is
not sealed, floats out of range; and those with a control character, which javac drops from identifiers.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from common import shared_records
from mutations import Mutant, mutants, pieces

SEED = 17
MUTANTS_OF_A_FILE = 8
MAX_BYTES = 20_000
"""Longer files are not mutated."""

LEXEME = re.compile(
    r"""(?P<skip>//[^\r\n]*|/\*.*?\*/)|(?P<string>\"\"\"[ \t\f]*\r?\n(?:[^\\]|\\.)*?\"\"\"|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')"""
    r"|(?P<word>[^\W\d][\w$]*)|(?:\d|\.\d)(?:[eEpP][+-]|[\w.])*|>>>=|<<=|>>=|\.\.\.|->|::|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|\S",
    re.DOTALL,
)

NOT_SYNTAX = (
    "compiler.err.invalid.meth.decl.ret.type.req",
    "compiler.err.invalid.permits.clause",
    "compiler.err.fp.number.too.large",
    "compiler.err.fp.number.too.small",
)

CONTINUATIONS = ("", " x;", " .x();", "(x")

WHOLE_LINE = ("compiler.err.unclosed", "compiler.err.illegal", "compiler.err.malformed", "compiler.err.empty.char.lit")
"""Of what is wrong inside a token javac tells the token's beginning."""


def positive() -> Iterator[tuple[str, bytes]]:
    for name, text in files():
        yield name, text.encode()
    for name, mutant, verdict in judged():
        if verdict is None:
            yield name, mutant.text.encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for name, mutant, verdict in judged():
        if verdict is not None:
            yield name, mutant.text.encode(), mutant.lower, verdict


def files() -> Iterator[tuple[str, str]]:
    for record in shared_records("source/java"):
        yield record["id"], record["text"]


@functools.cache
def judged() -> tuple[tuple[str, Mutant, int | None], ...]:
    """Mutants, each with the greatest byte that may be its first bad one; None: javac accepts it."""
    texts = [(name, text) for name, text in files() if len(text) <= MAX_BYTES]
    found = [pair for pair in mutants(texts, LEXEME, MUTANTS_OF_A_FILE, SEED) if "\x01" not in pair[1].text]
    said = javac([mutant.text for _, mutant in found])
    ends = [
        0 if said_of is None else end_of_complaint(one.text, *said_of)
        for (_, one), said_of in zip(found, said, strict=True)
    ]
    again = [
        javac([one.text[:end] + more for (_, one), end in zip(found, ends, strict=True)]) for more in CONTINUATIONS
    ]
    result: list[tuple[str, Mutant, int | None]] = []
    left_out: Counter[str] = Counter()
    for (name, mutant), said_of, end, *said_again in zip(found, said, ends, *again, strict=True):
        if said_of is None:
            result.append((name, mutant, None))
        elif said_of[1] in NOT_SYNTAX:
            left_out[said_of[1]] += 1
        else:
            known = all(one == said_of for one in said_again)
            upper = len((mutant.text[:end] if known else mutant.text).encode())
            result.append((name, mutant, upper if upper >= mutant.lower else len(mutant.text.encode())))
    print(f"  left out, since not context-free: {dict(sorted(left_out.items()))}", file=sys.stderr)
    return tuple(result)


def end_of_complaint(text: str, position: int, code: str) -> int:
    """Where the token ends that javac complains of; behind a token that was expected to be followed by something, the one that follows."""
    if code.startswith(WHOLE_LINE):
        end = text.find("\n", position)
        return len(text) if end < 0 else end
    for piece in pieces(text[position:], LEXEME):
        return position + piece.end
    return len(text)


def javac(texts: Sequence[str]) -> list[tuple[int, str] | None]:
    """For each text None, or the place and code of javac's first error."""
    command = ["java", str(Path(__file__).resolve().parents[1] / "JavaSyntax.java")]
    data = b"".join(b"%d\n%s" % (len(encoded), encoded) for encoded in (text.encode() for text in texts))
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=True)
    except FileNotFoundError:
        sys.exit("java is not installed: nothing was measured; install a JDK 17")
    lines = done.stdout.decode().splitlines()
    return [None if line == "ok" else _place(text, *line.split()) for text, line in zip(texts, lines, strict=True)]


def _place(text: str, position: str, code: str) -> tuple[int, str]:
    units = text.encode("utf-16-le")[: 2 * int(position)]
    return len(units.decode("utf-16-le", errors="ignore")), code
