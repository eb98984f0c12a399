"""Texts that are not in Lark's grammar language: which language they are in, and what Lark writes.

In: a text that Lark's loader refuses. Out: words for its message. Nothing here decides whether a
text is a grammar.
"""

from __future__ import annotations

import re

from maskwright.analysis.nesting import read_json

_LINES = 2_000
"""Lines of a text that are looked at."""

_DEFINES = re.compile(r"[ \t]*<?[A-Za-z_][\w-]*>?[ \t]*(::=|:=|=(?![=>])|<-|←)")
_ANTLR = re.compile(r"[ \t]*(?:(?:lexer|parser)[ \t]+)?grammar[ \t]+\w+[ \t]*;")
_COUNT = re.compile(r"\{[ \t]*(?:(\d+)[ \t]*)?(?:(,)[ \t]*(?:(\d+)[ \t]*)?)?\}")
_WORD = re.compile(r"[A-Za-z_]\w*")

_LARKS = "expected a grammar in Lark's language"
_RULES = "in it, a rule is `name: ...` in lower case, a terminal is `NAME: ...`, and [0-9] is the pattern /[0-9]/"
_SCHEMA_WORDS = {"$schema", "$defs", "$ref", "properties", "anyOf", "oneOf", "allOf", "enum", "items", "definitions"}


def language_of(text: str) -> str | None:
    """What a text is and what to do, if it is in a known language other than Lark's; else None.

    >>> language_of('root ::= "a"')[:40]
    "this is GBNF, llama.cpp's grammar langua"
    >>> language_of('start: "a"') is None
    True
    """
    body = text.lstrip()
    if body.startswith(("{", "[")):
        return _json(body)
    lines = body.split("\n", _LINES)[:_LINES]
    if any(map(_ANTLR.match, lines)):
        return f"this is an ANTLR grammar; {_LARKS}: {_RULES}"
    signs = [match[1] for line in lines if (match := _DEFINES.match(line))]
    if not signs:
        return f"this is a yacc grammar; {_LARKS}: {_RULES}" if any(line.strip() == "%%" for line in lines) else None
    sign = max(dict.fromkeys(signs), key=signs.count)
    if sign == "::=":
        if body.startswith("<") or any(line.lstrip().startswith("<") for line in lines):
            name = "BNF"
        elif any(line.lstrip().startswith(("root ", "root\t", "root::")) for line in lines):
            name = "GBNF, llama.cpp's grammar language"
        else:
            name = "EBNF as the W3C writes it, or GBNF"
    elif sign in ("<-", "←"):
        name = "a parsing expression grammar (PEG)"
    else:
        name = "EBNF (ISO 14977) or ABNF"
    return f"this is {name}; {_LARKS}: {_RULES}; this text has `name {sign} ...`"


def _json(body: str) -> str | None:
    """As `language_of`, for a text that begins like JSON."""
    try:
        found = read_json(body)
    except ValueError:
        found = None
        if '"$schema"' not in body[:2_000]:
            return None
    if isinstance(found, dict) and "model" in found and "added_tokens" in found:
        return f"this is a tokenizer.json; {_LARKS}; pass a tokenizer with --tokenizer, or as the vocabulary"
    if found is None or (
        isinstance(found, dict) and (_SCHEMA_WORDS & found.keys() or isinstance(found.get("type"), str))
    ):
        return f"this is a JSON Schema; {_LARKS}, such as json, which accepts any JSON text"
    return f"this is JSON; {_LARKS}"


def hint_at(line: str, column: int) -> tuple[int, str] | None:
    """What Lark writes instead of the construct at a column, or None.

    line : one line of a grammar's text.
    column : counted from 1.

    Returns the column at which the construct begins, counted from 1, and the hint.

    >>> hint_at("start: item{2,3}", 13)
    (12, 'a repetition is written ~2..3 in Lark, not {2,3}')
    >>> hint_at('Start: "a"', 2)
    (1, "a rule's name is all lower case and a terminal's all upper case: write start or START, not Start")
    """  # noqa: W505
    at = column - 1
    for match in _COUNT.finditer(line):
        if match.start() <= at <= match.end() and (match[1] or match[3]):
            least, comma, most = match[1] or "0", match[2], match[3]
            count = f"~{least}" if not comma else f"~{least}..{most}" if most else f"x~{least} x*"
            return match.start() + 1, f"a repetition is written {count} in Lark, not {match[0]}"
    if line[at : at + 1] == "'":
        return column, "literals have double quotes in Lark, not single ones"
    for match in _WORD.finditer(line):
        word = match[0]
        if match.start() <= at <= match.end() and word != word.lower() and word != word.upper():
            wanted = f"{word.lower()} or {word.upper()}"
            what = "a rule's name is all lower case and a terminal's all upper case"
            return match.start() + 1, f"{what}: write {wanted}, not {word}"
    return None
