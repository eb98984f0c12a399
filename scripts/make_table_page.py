"""Write docs/internals/table.md: the layout of stores as a page, the engine's table and entries. A test compares the two."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from maskwright.analysis.lexing.terminal_nfa import TerminalNfa
from maskwright.maskstore.entries.entry_table import EntryTable
from maskwright.maskstore.file.fileheader import TENSORS
from maskwright.maskstore.table import schema
from maskwright.maskstore.vocabulary.masks import MaskPool
from maskwright.maskstore.vocabulary.vocabulary import Vocabulary

TARGET = Path(__file__).parents[1] / "docs" / "internals" / "table.md"

INTRODUCTION = f"""\
# The engine's table

This page is for contributors who touch the engine, and made from `maskstore/table/schema.py` by
`scripts/make_table_page.py`. Change the
schema, not the page.

A store is one flat array of 32-bit integers. It begins with a header of {schema.HEADER} integers. The parts
follow one another without a gap, in the order of this page. The header has three kinds of entries:

- a **number** says how many of something there are,
- a **setting** is a value of its own,
- a **part** is shown with its shape; the header says at which integer of the table it begins.

Example: `table[table[RULE_LHS] + r]` is the left side of rule r.

`maskstore/table/check.py` holds every table that comes from a file against the types below before
any engine reads it. `maskstore/table/write.py` writes tables.

## Types of values

A type counts by words. "States" are as many as the header's number of that name says. A word that
no number has counts the rows of the part whose shape begins with it. Symbols are columns, and
behind them modes. Inner nodes are the nodes behind the roots.

| shown as | values |
|---|---|
"""

TYPES = {
    "one of the states": "0 to their number less one; -1, -2, ... where the table says what they mean",
    "one of the continuations, or one of the sets below 0": "n >= 0 is a continuation; -1 is set 0, -2 is set 1, ...",
    "0 to the number of ids": "a count, or where a run begins or ends",
    "starts of runs of lookups": "ascending from 0 to their number: run i goes from value i to value i + 1",
    "0 to 3": "a number that is no index",
    "bits of columns": "32 members of a set in each integer, the least in the lowest bit",
    "*words in italics*": "several things in one integer",
}


def shown(values: schema.Values) -> str:
    """A type in words."""
    match values:
        case schema.Index(of, codes):
            return "; ".join([f"one of the {of}", *(f"-{i}: {code}" for i, code in enumerate(codes, 1))])
        case schema.Either(first, second):
            return f"one of the {first}, or one of the {second} below 0"
        case schema.Bound(of):
            return f"0 to the number of {of}"
        case schema.Starts(of, least, most, is_first_empty):
            runs = f"of {least} to {most} each" if most is not None else f"of {least} or more each" if least else ""
            return f"starts of runs of {of} {runs}".rstrip() + ("; the first is empty" if is_first_empty else "")
        case schema.Number(least, most):
            return f"{least} to {most}"
        case schema.Bits(of):
            return f"bits of {of}"
        case schema.Coded(says):
            return f"*{says}*"


def row(offset: int) -> str:
    """A line of the page."""
    if offset in schema.PARTS:
        part = schema.PARTS[offset]
        values = "<br>".join(map(shown, part.columns))
        return f"| {offset} | `{part.name}` | {' x '.join(part.shape)} | {values} | {part.says} |"
    entry = schema.NUMBERS.get(offset) or schema.SETTINGS[offset]
    kind = f"number, {entry.least} or more" if offset in schema.NUMBERS else "setting"
    return f"| {offset} | {entry.name} | {kind} | | {entry.says} |"


ENTRIES = """
## The table of entries

A store of lexing `nfa` holds, instead of one table, the arrays below
(`maskstore/entries/entry_table.py`), each a tensor of its file. They are those of
`maskstore/file/fileheader.py`; what they mean is said where they are defined. A length `x+1` is one
more than `x`. `maskstore/file/entries_file.py` holds every file against this, and
`maskstore/file/fileformat.py` says how a file is made.

Example: in lexer state q the entries are those of cell c = `cell_of_state[q]`, which are
`cell_start[c]` to `cell_start[c + 1]`. Entry e allows the tokens of mask `entry_mask[e]` if the
parser accepts sequence s = `entry_sequence[e]`, the symbols `sequence_start[s]` to
`sequence_start[s + 1]` of `sequence_symbols`.

| tensor | type | shape | meaning |
|---|---|---|---|"""

DEFINED = {"": EntryTable, "nfa.": TerminalNfa, "masks.": MaskPool, "vocabulary.": Vocabulary.to_arrays}
"""Prefix of tensors -> what defines them, whose docstring says what they mean."""


def meanings(of: object) -> dict[str, str]:
    """Array -> what the docstring of its class, or of what makes it, says of it, without its shape and type."""
    found: dict[str, str] = {}
    for names, says in re.findall(r"^([\w., ]+) : (.*(?:\n {4,}.*)*)", inspect.getdoc(of) or "", re.MULTILINE):
        words = re.sub(r"^\([^()]*(?:\([^()]*\)[^()]*)*\) ?\w*[,;.]? ?", "", " ".join(says.split()))
        found |= {name.strip(): words[:1].upper() + words[1:] for name in names.split(",")}
    return found


def entries() -> Iterator[str]:
    """The lines about the table of entries."""
    yield ENTRIES
    for name, (dtype, shape) in TENSORS.items():
        prefix = next(each for each in sorted(DEFINED, reverse=True) if name.startswith(each))
        says = meanings(DEFINED[prefix])[name.removeprefix(prefix)]
        yield f"| `{name}` | {dtype.__name__} | {' x '.join(shape)} | {says} |"


def page() -> str:
    """The page."""
    lines = [INTRODUCTION.rstrip("\n"), *(f"| {name} | {says} |" for name, says in TYPES.items())]
    for title, offsets in schema.SECTIONS.items():
        lines += ["", f"## {title}", "", "| offset | name | shape | values | meaning |", "|---:|---|---|---|---|"]
        lines += [row(offset) for offset in offsets]
    return "\n".join([*lines, *entries()]) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(page(), encoding="utf-8")
