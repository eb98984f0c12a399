"""Comments that look like option lines, and are not read as such."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maskwright.analysis.grammar.lark_files import COMMENT_OR_LITERAL, line_and_column
from maskwright.analysis.grammar.options import KEYS
from maskwright.lint.facts import Facts
from maskwright.lint.finding import Finding

_TOKEN = re.compile(COMMENT_OR_LITERAL, re.VERBOSE)
_KEY = rf"(?:{'|'.join(KEYS)}|(?:length|restriction|convention|allowed)[ \t]+\w+)"
_OPTION = re.compile(
    rf"(?://|#)[/# \t]*maskwright(?:[ \t]*:[ \t:]*(?=\w)|[ \t]+(?={_KEY}[ \t]*=))(?P<stated>[^=\n]*=.*)", re.IGNORECASE
)
"""Without the colon only what begins with a known option is one: other words are prose."""


def unread_options(facts: Facts) -> Iterator[Finding]:
    """Options in comments that do not begin a line with ``// maskwright:``."""
    text = facts.grammar.text
    for token in _TOKEN.finditer(text):
        option = _OPTION.match(token["comment"] or "")
        if option is None:
            continue
        before = text[text.rfind("\n", 0, token.start()) + 1 : token.start()]
        if not before.strip(" \t") and re.match(r"//[ \t]*maskwright:", token[0]):
            continue
        yield facts.finding(
            "unread-option",
            "warning",
            line_and_column(text, token.start()),
            f"the comment {token[0].strip()[:60]!r} states an option, but is read as a comment",
            "masks are made as if it were not there",
            f"write it on a line of its own: // maskwright: {option['stated'].strip()[:60]}",
        )
