"""Docstrings in the house's style as reStructuredText, which Sphinx reads.

The style: paragraphs of plain text with `code`; lists of parameters, `name : what it is`; doctests. A paragraph may
begin with "Raises:", "Cost:", "Source:" or "Example:".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

PARAMETERS = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*) : ")
HEAD = re.compile(r"(Raises|Cost|Source|Example|Note|Yields|Returns)(?: \([^)]*\))?: ?")
CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
MARKUP = re.compile(r"([\\*|`]|(?<=\w)_(?!\w))")


def take_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event autodoc-process-docstring. lines : changed."""
    lines[:] = restructured("\n".join(lines)).splitlines()


def restructured(docstring: str) -> str:
    """A docstring as reStructuredText.

    >>> print(restructured("The n of `f`.\\n\\nn : a number, 2 * k\\n    or more.\\n\\nRaises: E."))
    The n of ``f``.
    <BLANKLINE>
    :param n: a number, 2 \\* k or more.
    <BLANKLINE>
    **Raises:** E.
    <BLANKLINE>
    """
    text = re.sub(rf"\n(?={HEAD.pattern})", "\n\n", inspect.cleandoc(docstring))
    blocks = re.split(r"\n\s*\n", text)
    return "\n".join(line for block in blocks for line in [*_block(block), ""])


def _block(block: str) -> Iterator[str]:
    lines = block.splitlines()
    head = HEAD.match(lines[0])
    if PARAMETERS.match(lines[0]):
        for item in re.split(r"\n(?! )", block):
            names, colon, meaning = item.partition(" : ")
            if colon and PARAMETERS.match(item):
                yield f":param {names.replace('*', chr(92) + '*')}: {_text(meaning)}"
            else:  # a sentence behind the list, without a blank line
                yield from ("", _text(item))
    elif lines[0].lstrip().startswith(">>>"):
        yield inspect.cleandoc(block)
    elif head:
        yield f"**{_text(head[0].strip())}** {_text(block[head.end() :].split('>>>')[0])}".rstrip()
        if ">>>" in block:
            yield from ("", inspect.cleandoc(block[block.index(">>>") :].replace("\n    ", "\n")))
    elif re.match(r"[-*] ", lines[0]):
        for item in re.split(r"\n(?=[-*] )", block):
            yield f"- {_text(item[2:])}"
    else:
        yield _text(block)


def _text(text: str) -> str:
    """One paragraph on one line: code stays code, and nothing else is markup."""
    parts = CODE.split(" ".join(text.split()))
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part.strip('`')}``" + "\\ " * parts[i + 1][:1].isalnum()
        else:
            parts[i] = MARKUP.sub(r"\\\1", part)
    return "".join(parts)
