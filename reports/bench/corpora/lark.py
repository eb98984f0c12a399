"""Lark's grammar language: must accept every .lark file of Lark's wheel, of this repository, of the evaluation data, and of other packages
that are installed; must refuse what Lark's own parser refuses of mutants of these files (pieces of some lines, one or two of their tokens
dropped, doubled, swapped or replaced, with a fixed seed), somewhere. Mutants that Lark still takes must be accepted too.

Reference: lark.load_grammar, by tests/support/lark_syntax.py.
"""

from __future__ import annotations

import functools
import importlib.util
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from common import data_paths

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "tests" / "naive"))

FOLDERS = ("analysis", "tests", "reports")
PACKAGES = ("lark", "sympy")
N_MUTANTS = 4_000
TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"i?|/(?:\\.|[^/\\\n])+/[a-z]*|//.*|%?[A-Za-z_0-9]+|\n[ \t]*|->|\.\.|[ \t]+|.', re.DOTALL
)
INSERTED = [
    '"',
    "/",
    "\\",
    "|",
    "?",
    "?!",
    "*",
    "~",
    "->",
    "..",
    ".",
    ":",
    "{",
    "}",
    "(",
    "]",
    "a",
    "A",
    "_",
    "i",
    "%ignore ",
    "\n",
]

KNOWN = {
    "reports/bench/grammars/python.lark": "llguidance's dialect: & and ~ in terminals, which Lark does not take either",
}


def positive() -> Iterator[tuple[str, bytes]]:
    for name, text in files():
        yield name, text.encode()
    for name, text, is_legal in mutants():
        if is_legal:
            yield name, text.encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    for name, text, is_legal in mutants():
        if not is_legal:
            yield name, text.encode(), 0, len(text.encode())


@functools.cache
def files() -> tuple[tuple[str, str], ...]:
    found = [(folder, ROOT / folder) for folder in FOLDERS] + [("data", path) for path in data_paths()]
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found.append((package, Path(spec.origin).parent))
    return tuple(
        (f"{name}/{path.relative_to(folder).as_posix()}", path.read_text("utf-8"))
        for name, folder in found
        for path in sorted(folder.rglob("*.lark"))
    )


@functools.cache
def mutants() -> tuple[tuple[str, str, bool], ...]:
    """Name, text, and whether Lark takes it."""
    from lark_syntax import accepts

    chosen = random.Random(5)
    texts = [text for name, text in files() if name not in KNOWN]
    found = []
    for number in range(N_MUTANTS):
        lines = chosen.choice(texts).splitlines(keepends=True)
        first = chosen.randrange(len(lines))
        tokens = TOKEN.findall("".join(lines[first : first + chosen.randint(1, 6)]))
        for _ in range(chosen.randint(1, 2)):
            at = chosen.randrange(len(tokens)) if tokens else 0
            change = chosen.randrange(4)
            if change == 0:
                del tokens[at : at + 1]
            elif change == 1:
                tokens[at:at] = tokens[at : at + 1]
            elif change == 2:
                tokens[at : at + 2] = tokens[at : at + 2][::-1]
            else:
                tokens[at : at + chosen.randint(0, 1)] = [chosen.choice(INSERTED)]
        # Lark reads a text with a line feed behind it, which would make something else of these
        text = "".join(tokens).rstrip("\\\r")
        found.append((f"mutant {number}", text, accepts(text)))
    return tuple(found)
