"""Terminals of a host that stand for parts of other languages (`mw.compose`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import UnusedPartError
from maskwright.analysis.grammar.grammar import Terminal
from maskwright.analysis.grammar.lark_files import COMMENT_OR_LITERAL, GrammarFiles, offsets_of, with_line_feeds
from maskwright.analysis.marks import PART_FLAGS, mark

_NAME = re.compile(r"_?[A-Z][_A-Z0-9]*")
_DECLARED = re.compile(
    COMMENT_OR_LITERAL + r"| ^(?P<indent>[ \t]*+) %declare\b (?P<names>(?:[ \t\w]|\\[ ]*\n)*+)",
    re.VERBOSE | re.MULTILINE,
)


def defined(text: str, parts: Sequence[str], files: GrammarFiles) -> str:
    """The text with a definition of each part instead of its `%declare`.

    What stays, stays in its line and column. Lark gives a literal such as "sql" the name SQL unless
    a terminal of this name is defined.

    files : for messages; the text is not among them yet.

    Raises: GrammarError for a part that is no name of a terminal, or that the text defines itself.
    """
    text = with_line_feeds(text)
    kept = _without_declared(text, frozenset(parts))
    offsets = offsets_of(kept)
    for part in parts:
        if _NAME.fullmatch(part) is None:
            files.add(files.main, text)
            what = f"{clip(part)} is to stand for a part, but is no name of a terminal; write it in upper case, as in %declare ANSWER"
            raise files.error(what, part)
        if part in offsets.definitions or part in offsets.imports_and_declarations:
            files.add(files.main, text)
            what = f"{part} stands for a part, and the grammar defines it as well; write %declare {part} instead"
            raise files.error(what, part)
    return kept + "".join(f'\n{part}: "\\ue000 part {number} \\ue000"' for number, part in enumerate(parts)) + "\n"


def _without_declared(text: str, names: frozenset[str]) -> str:
    """The text with blanks for these names where they are declared."""
    kept, done = [], 0
    for token in _DECLARED.finditer(text):
        if token["open"]:
            break  # an error, which is found later
        if token["names"]:
            left = re.sub(r"\w+", lambda name: " " * len(name[0]) if name[0] in names else name[0], token["names"])
            head = "%declare" if re.search(r"\w", left) else " " * len("%declare")
            kept += [text[done : token.start()], token["indent"], head, left]
            done = token.end()
    return "".join([*kept, text[done:]])


def with_parts(
    terminals: tuple[Terminal, ...], parts: Sequence[str], files: GrammarFiles, text: str
) -> tuple[Terminal, ...]:
    """The terminals, of which some stand for parts of other languages, see `defined`.

    text : without what `defined` added; errors show it from here on.
    """
    files.replace_main(text)
    named = {terminal.name: terminal for terminal in terminals}
    for part in [one for one in parts if one not in named]:
        raise files.error(f"no rule uses {part}, which stands for a part: use it in a rule", part, kind=UnusedPartError)
    made = {
        part: replace(
            named[part], pattern=str(number), flags=PART_FLAGS, literal=mark(number).decode("utf-8", "surrogateescape")
        )
        for number, part in enumerate(parts)
    }
    return tuple(made.get(terminal.name, terminal) for terminal in terminals)
