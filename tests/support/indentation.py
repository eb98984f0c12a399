"""Texts of lines and blocks, indented at random by blanks, tabs and form feeds, and what CPython says of them."""

from __future__ import annotations

import ast
import random
import warnings

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading.lark_loader import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary

BLOCKS = r"""
// maskwright: tabs = consistent
start: (line | _NEWLINE)*
line: NAME _NEWLINE | "if" NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /[ab]/
_NEWLINE: /(\r?\n[ \t\f]*|#[^\r\n]*)+/
COMMENT: /#[^\r\n]*/
%ignore COMMENT
%ignore /[ \t\f]+/
%declare _INDENT _DEDENT
"""

TOKENS = (
    b"\n\t", b"\n ", b" \t", b"\t ", b"\t\t", b"  ", b"    ", b"        ", b"         \t", b" \t \t", b"\t    ", b"\f\t", b" \f ", b"\n\f",
    b"\n        a", b"\n\ta", b"\n\ta\n", b"a\n", b"a\n\t", b":\n\t", b":\n    ", b":\n \t", b"if a:\n", b"if a:\n\t", b"if", b" a:",
    b"\n\tif a:\n\t\ta", b"\n\tif a:\n\t    a", b"\n    if a:\n\ta", b"\na\nif b:\n a", b" #\n\t", b"\t\n\t", b"\ta\n    a", b"\r\n\t",
)  # fmt: skip


def blocks() -> Grammar:
    return parse_grammar(BLOCKS, name="blocks")


def vocabulary() -> Vocabulary:
    """All that the grammar's texts need, and tokens that end lines and go on with others."""
    tokens = (*(bytes([byte]) for byte in b"abif:# \t\f\r\n"), *TOKENS)
    return Vocabulary("blocks", (*tokens, b""), {len(tokens): "</s>"}, (len(tokens),))


def is_python(text: str) -> bool:
    """What the running CPython says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError:
            return False
    return True


def random_text(rng: random.Random, n_lines: int, widest: int = 12) -> str:
    """Lines whose margins are most often those of an open block, spelt as it is or otherwise, or further in; the last may be open.

    widest : of a run of one character, but for rare ones of some thousands.
    """
    open_margins = [""]
    lines: list[str] = []
    opens = False
    for _ in range(n_lines):
        if lines and rng.random() < 0.12:  # no line for CPython
            lines.append(_run(rng, widest) + rng.choice(["", "#", "# a\t", "\f"]))
            continue
        margin = open_margins[-1] if lines else ""
        chance = rng.random()
        if opens and chance < 0.92:
            margin = _spelt_otherwise(rng, margin, 0.25) + (_run(rng, widest) or rng.choice(" \t"))
        elif not opens and chance < 0.5:
            margin = _spelt_otherwise(rng, rng.choice(open_margins), 0.3)
        elif chance < 0.58:
            margin = _run(rng, widest)
        if rng.random() < 0.08:
            margin = rng.choice(["\f", " \t\f", "\t\f"]) + margin
        if not lines:
            margin = ""
        if opens:
            open_margins.append(margin)
        elif margin in open_margins:
            del open_margins[open_margins.index(margin) + 1 :]
        opens = rng.random() < 0.45
        lines.append(margin + (f"if {rng.choice('ab')}:" if opens else rng.choice(["a", "b", "a #", "b\t"])))
    if opens:
        lines.append(open_margins[-1] + rng.choice([" ", "\t"]) + "a")
    return "".join(line + rng.choice(["\n", "\n", "\n", "\r\n"]) for line in lines) + rng.choice(["", "", " ", "\t\f "])


def _run(rng: random.Random, widest: int) -> str:
    size = rng.choice([0, 1, 2, 4, 8, rng.randint(0, widest)]) if rng.random() < 0.99 else rng.randint(900, 2100)
    kinds = rng.choices([" ", "\t", " \t", "\t ", "    \t"], [5, 4, 1, 1, 1])[0]
    return (kinds * (size // len(kinds) + 1))[:size]


def _spelt_otherwise(rng: random.Random, margin: str, chance: float) -> str:
    """Now and then another margin of the same width: a tab for eight blanks, or the other way round, or the same in another order."""
    if rng.random() >= chance:
        return margin
    kind = rng.randrange(4)
    if kind == 0:
        return margin.expandtabs(8)
    if kind == 1:
        return margin.replace(" " * 8, "\t")
    return "".join(sorted(margin, reverse=kind == 2))


def random_cuts(rng: random.Random, data: bytes, tokens: dict[bytes, int]) -> list[int]:
    """Tokens that spell the data, drawn at random among those that fit."""
    longest = max(map(len, tokens))
    found, at = [], 0
    while at < len(data):
        fitting = [
            data[at:end] for end in range(at + 1, at + 1 + longest) if data[at:end] in tokens and end <= len(data)
        ]
        token = rng.choice(fitting)
        found.append(tokens[token])
        at += len(token)
    return found
