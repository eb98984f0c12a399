"""Whether the numbers that a page takes from records still fit the words around them.

A generated number changes, and its sentence does not. Whatever the records say, four things are wrong in prose:

- a count of 0, as in "and 0 name a format": the sentence has lost its subject;
- a part that is greater than its whole: "17 of the 16";
- a number before a list of another length: "three formats (`date`, `time`)";
- a sentence that parts a number without a remainder ("16 do this, the others that") and of which `Page.parts` knows nothing.

`Page.parts` adds up what it is given. So a sentence is mended, or its parts are declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .prose import MEASURES, visible

Span = tuple[int, int]
_REMAINDER = re.compile(r"\bthe (?:rest|remaining|others)\b|\bthe other (?=\d)|\bone each\b", re.IGNORECASE)
_OF = re.compile(r"\s+of\s+(?:(?:the|these|its|all)\s+)?(?:other\s+)?")
_COUNTED = re.compile(rf"\s+(?!(?:{MEASURES})\b)[a-z]")
_NAME = r"`[^`\s/]+`"
_LIST = re.compile(
    rf"(?:\s+[a-z][\w'-]*){{1,4}}(?::\s+|\s+\()({_NAME}(?:,\s+(?:and\s+)?{_NAME}|\s+and\s+{_NAME})+)(?=[.;:)])"
)
"""What a number counts, in up to four words, and then the list of it: names in code."""
_SENTENCE = re.compile(r"(?:[^.\n]|\n(?!\n)|\.(?!\s))+")


def misfits(text: str, counts: Sequence[Span], parted: Sequence[Span]) -> Iterator[str]:
    """What does not fit.

    counts : where the page has a whole number of a record. parted : where `Page.parts` says that one is parted.
    """
    prose = re.sub(r"^\|.*", lambda row: " " * len(row[0]), visible(text), flags=re.MULTILINE)
    spans = sorted(span for span in counts if prose[slice(*span)].strip())
    values = {span: int(text[slice(*span)].replace(",", "")) for span in spans}
    for (begin, end), value in values.items():
        around = " ".join(text[max(0, begin - 40) : end + 60].split())
        if value == 0 and _COUNTED.match(prose, end):
            yield f"counts 0: {around}"
        names = _names(text, end)
        if names and len(names) != value:
            yield f"counts {value} and names {len(names)}: {around}"
    for part, whole in pairwise(spans):
        if _OF.fullmatch(prose, part[1], whole[0]) and values[part] > values[whole]:
            yield f"has a part that is greater than its whole: {text[part[0] : whole[1]]}"
    for sentence in _SENTENCE.finditer(prose):
        begin, end = sentence.span()
        is_declared = any(first < end and begin < last for first, last in parted)
        if _REMAINDER.search(sentence[0]) and any(begin <= span[0] < end for span in spans) and not is_declared:
            yield f"parts a number, of which Page.parts is to say how: {' '.join(text[begin:end].split())}"


def _names(text: str, end: int) -> list[str]:
    """The names in code of the list that a number before `end` counts; none if what stands there is no such list."""
    found = _LIST.match(text, end)
    return re.findall(r"`([^`]+)`", found[1]) if found else []
