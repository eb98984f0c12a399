"""Domino's task c, a small part of C: must accept programs of it drawn at random with a fixed seed; must refuse their mutants (a token
dropped, doubled, inserted, replaced and so on) in which gcc finds an error of syntax, after what they share with the program.

Reference: the description in tests/support/domino_c.py, and gcc's syntax.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mutations import mutants

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tests" / "support"))

import domino_c

N_TEXTS = 1_000
N_DAMAGED = 300
LEXEME = re.compile(r"(?P<skip>//[^\n]*\n|/\*.*?\*/)|(?P<word>[A-Za-z_]\w*)|[0-9]+|[<>=!]=|\S", re.DOTALL)


def positive() -> Iterator[tuple[str, bytes]]:
    for number, text in enumerate(domino_c.texts(N_TEXTS)):
        yield f"program {number}", text.encode()


def negative() -> Iterator[tuple[str, bytes, int, int]]:
    if domino_c.GCC is None:
        sys.exit("gcc is not installed; which mutants are to be refused is its verdict")
    programs = ((f"program {number}", text) for number, text in enumerate(domino_c.texts(N_DAMAGED)))
    for name, mutant in mutants(programs, LEXEME, 5, seed=1):
        if domino_c.is_refused(mutant.text):
            data = mutant.text.encode()
            yield name, data, mutant.lower, len(data)
