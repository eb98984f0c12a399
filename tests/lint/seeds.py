"""A grammar for each kind of finding that has the defect, and the same grammar mended, on which the check is silent.

Here those of rules and terminals; `seeds_of_texts` has the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maskwright.analysis.grammar import Grammar
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary import Vocabulary

LAYOUT = """
start: (line | block)*
line: NAME _NEWLINE
block: NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /[a-z]+/
%declare _INDENT _DEDENT
%ignore " "
"""


@dataclass(frozen=True)
class Seed:
    """line, column : where the finding stands. example : its text, as shown. missing : bytes that the vocabulary does not hold."""

    code: str
    severity: str
    defect: str
    clean: str
    line: int
    column: int
    words: tuple[str, ...]
    example: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    missing: bytes = b""
    clean_missing: bytes = b""


def vocabulary(missing: bytes = b"", special: dict[int, str] | None = None, eos: tuple[int, ...] = (0,)) -> Vocabulary:
    """One token a byte, but for the missing ones; a few longer ones."""
    tokens = [b"", *(bytes([b]) for b in range(256) if b not in missing)]
    tokens += [t for t in (b"true", b'":', b"  ") if not set(t) & set(missing)]
    names = {0: "<eos>"} | (special or {})
    return Vocabulary("bytes", tuple(b"" if i in names else t for i, t in enumerate(tokens)), names, eos)


def grammar_of(text: str, **options: Any) -> Grammar:
    """By the longest match, unless the text or the options say otherwise."""
    if "maskwright: lexing" not in text:
        options = {"lexing": "longest"} | options
    return parse_grammar(text, name="seed.lark", **options)


OF_RULES = (
    Seed(
        "unproductive-rule",
        "warning",
        'start: "a" | other\nother: "b" other',
        'start: "a" | other\nother: "b" other | "c"',
        2,
        1,
        ("'other'", "start"),
    ),
    Seed(
        "unreachable-rule",
        "warning",
        'start: "a"\n// a comment with dead: in it\ndead: "b" inner\ninner: "c"',
        'start: "a" dead\ndead: "b" inner\ninner: "c"',
        3,
        1,
        ("'dead'", "inner"),
    ),
    Seed(
        "unread-option",
        "warning",
        'start: "a" /"#/ "//"\n# maskwright: lexing = longest',
        'start: "a" /"#/ "//" // see maskwright: a = b\n// maskwright: lexing = longest',
        2,
        1,
        ("'# maskwright: lexing = longest' states an option",),
    ),
    Seed(
        "unread-option",
        "warning",
        'start: "a" WS // maskwright: length WS = ..8\nWS: /[ ]{1,9}/',
        'start: "a" WS\n  //  maskwright: length WS = ..8\nWS: /[ ]{1,9}/',
        1,
        15,
        ("// maskwright: length WS = ..8",),
    ),
    Seed(
        "unread-option",
        "warning",
        'start: "a"\n// Maskwright restriction no_b = a:',
        'start: "a"\n// maskwright is used with lexing = contextual\n// maskwright and a = b',
        2,
        1,
        ("// Maskwright restriction no_b = a:",),
    ),
    Seed("unused-terminal", "warning", 'start: "a"\n\nIDLE: "b"', 'start: "a" IDLE\n\nIDLE: "b"', 3, 1, ("IDLE",)),
    Seed(
        "unused-terminal",
        "warning",
        'start: "a" | other\nother: WAITS other\nWAITS: "b"',
        'start: "a" | other\nother: WAITS other | "."\nWAITS: "b"',
        3,
        1,
        ("WAITS", "no text can use"),
    ),
    Seed(
        "ignored-in-rule",
        "error",
        "start: NAME WS NAME\nNAME: /[a-z]+/\nWS: /[ ]+/\n%ignore WS",
        "start: NAME WS NAME\nNAME: /[a-z]+/\nWS: /[ ]+/\n%ignore /#.*\\n/",
        3,
        1,
        ("WS", "start"),
    ),
    Seed("matches-empty", "error", "start: A\nA: /b*/", "start: A\nA: /b+/", 2, 1, ("A", "empty")),
    Seed("matches-nothing", "error", "start: A\nA: /b(?<!b)/", "start: A\nA: /b(?<!c)/", 2, 1, ("A", "no text")),
    Seed("unsupported-pattern", "error", "start: A\nA: /(a|b)\\1/", "start: A\nA: /(a|b)b/", 2, 1, ("A", "back")),
    Seed("too-large", "error", "start: A\nA: /(a|b)*a(a|b){30}/", "start: A\nA: /(a|b)*a(a|b){3}/", 2, 1, ("A",)),
    Seed(
        "equal-terminals",
        "info",
        'start: "x" WORD | "y" ID\nWORD: /[a-w]+/\nID: /[a-w][a-w]*/',
        'start: "x" WORD | "y" ID\nWORD: /[a-w]+/\nID: /[a-w]_[a-w]*/',
        2,
        1,
        ("WORD", "ID", "same texts"),
    ),
    Seed(  # a verbatim terminal meets only what the parser can take beside it
        "equal-terminals",
        "error",
        '// maskwright: verbatim = TEXT\nstart: QUOTE (TEXT | RAW) QUOTE WORD\nQUOTE: "`"\nTEXT: /[a-w]+/\nRAW: /[a-w][a-w]*/\n'
        "WORD: /[a-z]+/",
        '// maskwright: verbatim = TEXT\nstart: QUOTE TEXT QUOTE RAW\nQUOTE: "`"\nTEXT: /[a-w]+/\nRAW: /[a-w][a-w]*/',
        4,
        1,
        ("TEXT", "RAW", "same texts"),
    ),
    Seed(  # a NAME can follow a NUMBER, but not there
        "refused-dead-end",
        "warning",
        '// maskwright: refused = GLUED\nstart: "x" NUMBER "from" NUMBER | "y" NUMBER NAME\nNUMBER: /[0-9]+/\nNAME: /[a-z]+/\n'
        'GLUED: /[0-9]+from/\n%ignore " "',
        '// maskwright: refused = GLUED\nstart: "x" NUMBER "from" NUMBER | "y" NUMBER NAME\nNUMBER: /[0-9]+/\nNAME: /[a-z]+/\n'
        'GLUED: /[0-9]+[a-z]+/\n%ignore " "',
        5,
        1,
        ("GLUED", "NUMBER"),
        "'x0f'",
    ),
    Seed(  # where a NAME may come too, the text goes on as one
        "refused-dead-end",
        "warning",
        '// maskwright: refused = GLUED\nstart: "x" NUMBER "from" NUMBER | "y" NUMBER NAME\nNUMBER: /[0-9]+/\nNAME: /[a-z]+/\n'
        'GLUED: /[0-9]+from/\n%ignore " "',
        '// maskwright: refused = GLUED\nstart: "x" NUMBER ("from" | NAME) NUMBER | "y" NUMBER NAME\nNUMBER: /[0-9]+/\nNAME: /[a-z]+/\n'
        'GLUED: /[0-9]+from/\n%ignore " "',
        5,
        1,
        ("GLUED", "NUMBER"),
    ),
    Seed(
        "verbatim-bracket",
        "warning",
        "// maskwright: verbatim = END TEXT\n"
        + LAYOUT.replace("line: NAME", 'line: NAME ("{" TEXT END | "{" "}")?')
        + "_NEWLINE: /(\\n[ ]*)+/\nTEXT: /[^{}\\n]+/\nEND: /[}]/",
        "// maskwright: verbatim = TEXT\n"
        + LAYOUT.replace("line: NAME", 'line: NAME ("{" TEXT "}" | "{" "}")?')
        + "_NEWLINE: /(\\n[ ]*)+/\nTEXT: /[^{}\\n]+/",
        11,
        1,
        ("END", "newlines are still dropped"),
    ),
    Seed(
        "never-lexed",
        "error",
        'start: KEY | NAME "="\nKEY: "if" | "else"\nNAME.2: /[a-z]+/',
        'start: KEY | NAME "="\nKEY.3: "if" | "else"\nNAME.2: /[a-z]+/',
        2,
        1,
        ("KEY", "NAME", "higher priority"),
        "'if'",
    ),
    Seed(
        "never-lexed",
        "warning",
        "start: TEXT\nTEXT.1: /[a-z#]+/\nNOTE: /#[a-z]*/\n%ignore NOTE",
        "start: TEXT\nTEXT: /[a-z]+/\nNOTE: /#[a-z]*/\n%ignore NOTE",
        3,
        1,
        ("NOTE", "TEXT"),
        "'#'",
    ),
    Seed(
        "reserved-words",
        "info",
        'start: "let" NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "',
        'start: "LET" NAME "=" NAME\nNAME: /[a-z]+/\n%ignore " "',
        2,
        1,
        ("NAME", '"let"', "a string literal"),
        "'let let'",
    ),
    Seed(
        "idle-priority",
        "info",
        "start: NAME | NUMBER\nNAME: /[a-z]+/\nNUMBER.3: /[0-9]+/",
        "start: NAME | NUMBER\nNAME: /[0-9a-z]+/\nNUMBER.3: /[0-9]+/",
        3,
        1,
        ("NUMBER", "priority 3"),
    ),
    Seed(
        "open-lookahead",
        "warning",
        "start: (ZERO | DIGITS)+\nZERO: /0(?![1-9])/\nDIGITS: /[1-9]+/",
        "start: (ZERO | DIGITS)+\nZERO: /0(?!1)0/\nDIGITS: /[1-9]+/",
        2,
        1,
        ("ZERO", "(?![1-9])"),
        "'01'",
    ),
    Seed(
        "open-lookahead",
        "info",
        'start: ZERO ";"\nZERO: /0(?![1-9])/',
        'start: ZERO ";"\nZERO: /0/',
        2,
        1,
        ("ZERO", "(?![1-9])"),
    ),
    Seed(
        "open-lookbehind",
        "warning",
        'start: "ab" WORD\nWORD: /\\bc|^d/',
        'start: "ab" WORD\nWORD: /c\\b|d/',
        2,
        1,
        ("WORD", "^"),
    ),
    Seed(
        "never-adjacent",
        "warning",
        'start: NAME NUMBER? "."\nNAME: /[a-z0-9]+/\nNUMBER: /[0-9]+!/',
        'start: NAME NUMBER? "."\nNAME: /[a-z0-9]+/\nNUMBER: /[0-9]+!/\n%ignore " "',
        2,
        1,
        ("NUMBER follows NAME", "never allowed"),
        "'a0!'",
    ),
    Seed(
        "never-adjacent",
        "info",
        'start: NAME+ "."\nNAME: /[a-z]+/',
        'start: NAME+ "."\nNAME: /[a-z]+/\n%ignore " "',
        2,
        1,
        ("NAME follows NAME", "one will do"),
        "'aa'",
    ),
    Seed(
        "no-text",
        "error",
        "start: A B\nA: /a+/\nB: /a+/",
        "start: A B?\nA: /a+/\nB: /a+/",
        1,
        1,
        ("no text of the grammar can be finished",),
    ),
)
