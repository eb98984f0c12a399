"""The oracle against hand-made cases, brute force over short texts, Lark's own lexer and layout, and real files."""

from __future__ import annotations

import itertools
import json
import lzma
import random
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import lark
import pytest
from lark.indenter import PythonIndenter
from oracle import Oracle, State, _Pattern

from maskwright.analysis.grammar.grammar import Conflicts, Grammar, Lexing, Terminal
from maskwright.analysis.loading import Indenter, load_grammar, parse_grammar
from maskwright.validation.grammar_parse import GrammarParse

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="module")
def python() -> Oracle:
    return Oracle(load_grammar("lark:python", lexing="longest"))


@lru_cache(maxsize=64)
def toy(text: str) -> Oracle:
    return Oracle(parsed(text))


def parsed(text: str, conflicts: Conflicts | None = None) -> Grammar:
    """By the longest match, unless the text says otherwise."""
    lexing: Lexing | None = None if "maskwright: lexing" in text else "longest"
    return parse_grammar(text, lexing=lexing, conflicts=conflicts)


def records(name: str) -> list[dict[str, Any]]:
    path = DATA / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no evaluation data at {path}")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


BACK = "start: (A | B | C)*\nA: /aaa/\nB: /a+b+z/\nC: /b+x/\n"
DOTS = 'start: (DOT | ELLIPSIS)*\nDOT: "."\nELLIPSIS: "..."\n'
ONE_ELLIPSIS = 'start: ELLIPSIS | DOT DOT "x"\nDOT: "."\nELLIPSIS: "..."\n'
COMMENT = 'start: N ("/" "*"? N)*\nN: /[a-z]/\n%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore " "\n'
KEYWORD = 'start: (IF NAME ";")*\nIF: "if"\nNAME: /[a-z]+/\n%ignore " "\n'
SHADOWED = "start: N (C N)*\nN: /[a-z]/\nC: /#[a-z]*/\nD: /#[a-z]*;?/\n%ignore D\n"

STRINGS = """start: (N | s)*
s: FS (TEXT | "{" start "}")* FE
FS: "f'"
FE: "'"
TEXT: /[^{}']+/
N: /[a-z]+/
%ignore " "
// maskwright: verbatim = TEXT FE
"""
LINES = """start: (v _NL | "if" v ":" _NL _INDENT v _NL _DEDENT)*
v: N | "<" TEXT? (">" | "{" v "}" TEXT? ">")
N: /[a-z]+/
TEXT: /[^{}>]+/
_NL: /(\\n[ ]*)+/
%ignore " "
%declare _INDENT _DEDENT
// maskwright: verbatim = TEXT
"""
REFUSED = """start: "'" TEXT* FE
TEXT: /[^'\\n\\\\]+/
FE: "'"
BROKEN: /\\n|\\\\/
// maskwright: verbatim = TEXT FE
// maskwright: refused = BROKEN
"""
DIVIDE = """start: e (";" e)*
e: t ("/" t)*
t: N | /\\/[^\\/;]+\\//
N: /[a-z]/
// maskwright: lexing = contextual
// maskwright: reserved = all
"""
RESERVED = """start: "is" N "be" N
N: /[a-z]+/
%ignore " "
// maskwright: lexing = contextual
// maskwright: reserved = all
"""
SOFT = RESERVED.replace('N "be"', 'n "be"').replace("start", 'n: N | "be"\nstart')
TWO_WAYS = """start: (x | y)*
x: a N "."
a: N
y: b N TEXT ";"
b: N
N: "n"
TEXT: /[^;]+/
%ignore " "
// maskwright: verbatim = TEXT
"""


@pytest.mark.parametrize(
    ("grammar", "prefix", "legal_prefix", "legal_text"),
    [
        (BACK, "aaa", True, True),
        (BACK, "aaabb", True, False),  # may become B, or A C
        (BACK, "aaabbx", True, True),  # A C: backed up by two characters
        (BACK, "aaabbz", True, True),
        (BACK, "aabbx", False, False),  # aa is no lexeme
        (BACK, "aaaaabbx", False, False),
        (DOTS, "..", True, True),
        (DOTS, "....", True, True),
        (ONE_ELLIPSIS, "..", True, False),
        (ONE_ELLIPSIS, "..x", True, True),
        (ONE_ELLIPSIS, "...x", False, False),  # three dots are never DOT DOT DOT
        (ONE_ELLIPSIS, "....", False, False),
        (KEYWORD, "if", True, False),
        (KEYWORD, "if x;", True, True),
        (KEYWORD, "ifx", False, False),  # a NAME
        (KEYWORD, "if if", True, False),  # may become a longer NAME
        (KEYWORD, "if if;", False, False),  # a keyword is never a NAME
        (KEYWORD, "if if ", False, False),
        (SHADOWED, "x", True, True),
        (SHADOWED, "x#", True, True),  # a D, which is ignored
        (SHADOWED, "x#a;x", False, False),  # never a C: D comes first
        (COMMENT, "x/", True, False),
        (COMMENT, "x/*", True, False),
        (COMMENT, "x/*x", True, False),  # only the text's end could make this N "/" "*" N
        (COMMENT, "x/*x*/", True, True),
        (COMMENT, "x/ *x", True, True),
        ("start: A C\nA: /ab(?=c)/\nC: /c/\n", "ab", True, False),
        ("start: A C\nA: /ab(?=c)/\nC: /c/\n", "abc", True, True),
        ("start: A B C | D\nA: /a(?=bbc)/\nB: /bb/\nC: /c/\nD: /abx/\n", "abb", True, False),  # ends inside the prefix
        ("start: A B\nA: /if\\b/\nB: /[ ]/\n", "if", True, False),
        ("start: A B\nA: /if\\b/\nB: /x/\n", "ifx", False, False),
        ("start: A+\nA: /[é-ü]x/i\n", "Éx", True, True),
        ("start: A+\nA: /a/\n", "", True, False),
    ],
)
def test_toy_grammars(grammar: str, prefix: str, legal_prefix: bool, legal_text: bool) -> None:
    oracle = toy(grammar)
    assert oracle.is_legal_prefix(prefix.encode()) is legal_prefix
    assert oracle.is_legal_text(prefix.encode()) is legal_text


@pytest.mark.parametrize(
    ("grammar", "alphabet", "longest", "more"),
    [
        (BACK, "abxz", 4, 3),
        (DOTS, ".", 6, 3),
        (ONE_ELLIPSIS, ".x", 5, 3),
        (KEYWORD, "if ;", 3, 4),
        (SHADOWED, "x#;", 5, 3),
        (COMMENT, "/*x", 3, 6),
        ("start: D E | D F\nD: /[.]/\nE: /[.]{3}/\nF: /[.][0-9]/\n", ".1", 4, 4),
        ("start: F N | F E\nF: /[0-9]+[.]([0-9]+)?(e[0-9]+)?/\nN: /el/\nE: /e[0-9]/\n", "1.el", 3, 4),
        ("start: (A | B | C)*\nA: /a(?!b)/\nB: /ab+c/\nC: /x/\n", "abcx", 4, 3),
        ("start: A B C | D\nA: /a(?=bbc)/\nB: /bb/\nC: /c/\nD: /abx/\n", "abcx", 4, 3),
        ("start: (A | B)*\nA.2: /ab*/\nB: /abbc/\n", "abc", 4, 3),
        ("start: (A B | B A | N)*\nA: /if\\b/\nB: / /\nN: /n+/\n", "ifn ", 3, 4),
        ('start: S+\nS: /"(?!"")[ab]*?(?<!b)"/\n', '"ab', 4, 4),
        ("start: A (C | B)\nA: /a|ab/\nB: /b/\nC: /c/\n", "abc", 4, 3),  # /a|ab/ is a to `re`
        ("start: A B | C\nA: /a/\nB: /b/\nC: /a(.|b)*z/\n", "abz", 4, 3),
        ("start: A B* \nA: /a$/\nB: /b/\n", "ab", 3, 3),
        (STRINGS, "f'{}", 3, 3),
        (DIVIDE, "a/;", 4, 3),
        ("start: A (C | B)*\nA: /a|ab/\nB: /b+/\nC: /cb?/\n// maskwright: verbatim = C\n", "abc", 4, 3),
        ("start: (A t E)*\nt: T?\nA: /a|aba/\nE: /b/\nT: /[^b]+b?/\n// maskwright: verbatim = T\n", "ab", 4, 4),
    ],
)
def test_a_prefix_is_legal_iff_a_legal_text_begins_with_it(
    grammar: str, alphabet: str, longest: int, more: int
) -> None:
    oracle = toy(grammar)
    lengths = range(longest + more + 1)
    texts = ["".join(text) for n in lengths for text in itertools.product(alphabet, repeat=n)]
    legal = [text for text in texts if oracle.root.feed(text.encode()).is_legal_text]
    begins = {text[:i] for text in legal for i in range(len(text) + 1)}
    assert legal
    for text in texts:
        if len(text) <= longest:
            assert oracle.root.feed(text.encode()).is_legal == (text in begins), text


@pytest.mark.parametrize(
    ("grammar", "prefix", "legal_prefix", "legal_text"),
    [
        (STRINGS, "f'a b'", True, True),
        (STRINGS, "f'a f'", True, True),  # no string within a string but in its holes
        (STRINGS, "f'a {f'b'} '", True, True),
        (STRINGS, "f'{f'}", False, False),
        (STRINGS, "'", False, False),  # FE competes only where the parser takes it
        (STRINGS, "f' ' x", True, True),
        (STRINGS, "f'\xe9", True, False),
        (LINES, "<a\n b>\n", True, True),
        (LINES, "if <\n>:\n x\n", True, True),
        (LINES, "if <\n>:\nx", False, False),
        (LINES, "<{\nx}>\n", True, True),  # in the brackets of a hole newlines are dropped
        (REFUSED, "'ab'", True, True),
        (REFUSED, "'a\n", False, False),
        (DIVIDE, "a/b/c", True, True),
        (DIVIDE, "/a/", True, True),
        (DIVIDE, "a//b/", True, True),
        (DIVIDE, "a/b/;", False, False),
        (DIVIDE, "//", False, False),
        (RESERVED, "is a be b", True, True),
        (RESERVED, "isa", False, False),  # a name, also where only "is" can come
        (RESERVED, "is be ", False, False),  # a keyword, also where only a name can come
        (RESERVED, "is be", True, False),
        (SOFT, "is be be b", True, True),
        (SOFT, "isa", False, False),
        (TWO_WAYS, "nn .", True, True),
        (TWO_WAYS, "nn .;", True, True),  # of two stacks one reads a dot, the other a text
        (TWO_WAYS, "nn . nn;", True, True),
        (TWO_WAYS, "nn.nn.", True, True),
        (TWO_WAYS, "nn ;", True, True),
        (TWO_WAYS, "nn;", False, False),
    ],
)
def test_what_competes_is_up_to_the_parser(grammar: str, prefix: str, legal_prefix: bool, legal_text: bool) -> None:
    oracle = Oracle(parsed(grammar, "all"), "all")
    assert oracle.is_legal_prefix(prefix.encode()) is legal_prefix
    assert oracle.is_legal_text(prefix.encode()) is legal_text
    state = oracle.root
    for byte in prefix.encode():
        state = state.feed(bytes([byte]))
    assert state == oracle.root.feed(prefix.encode())
    assert (GrammarParse(oracle.grammar).refusal(prefix) is None) is legal_text


PREFIXES = [
    # numbers and dots
    ("x = 1.e", True),
    ("x = 1.else", False),
    ("x = 1 if y else 1.e", True),
    ("x = 2 if 1.else", True),
    ("x = 2 if 1.e", True),
    ("x = 1.if 2 else 3\n", True),
    ("x = 0o", True),
    ("x = 0or 1\n", True),
    ("x = 0ox", False),
    ("x = 01", True),  # 01.5
    ("x = 01 ", False),
    ("x = ..", True),
    ("x = ...", True),
    ("x = .. ", False),
    ("x..", False),
    ("from ..", True),
    ("from ...", False),  # an ELLIPSIS, which python.lark does not allow here
    # keywords and names
    ("de", True),
    ("def", True),
    ("def def", True),
    ("def def(", False),
    ("define(", True),
    ("x i", True),
    ("x is", True),
    ("x isz", False),
    ("x no", True),
    ("x nor", False),
    ("x = _", True),
    ("x = _ ", True),  # UNDERSCORE is a string literal of python.lark, but a soft one
    # strings
    ('x = "abc', True),
    ('x = "abc\n', False),
    ('x = "abc\\', True),
    ('x = "abc\\"', True),
    ('x = "abc\\\\"', True),
    ('x = "abc\\\n', False),
    ('x = ""', True),
    ('x = "" ', True),
    ('x = """', True),
    ('x = """a\n"', True),
    ('x = """a\n""" .', True),
    ('x = """a"""b', True),  # b"" may follow
    ('x = """a"""c', False),
    ('x = f"', True),
    ('x = f"""\n', True),
    ('x = f"a\n', False),
    ('x = g"', False),
    ('x "', False),
    # layout
    ("if x:\n", True),
    ("if x:\n  ", True),
    ("if x:\ny", False),
    ("if x:\n  y\n ", True),
    ("if x:\n  y\n z", False),  # dedent to no open column
    ("if x:\n  y\nz", True),
    ("if x:\n  y\n   z", False),  # indent after a simple statement
    ("if x:\n\ty\n        z", True),  # a tab counts eight columns
    ("if x:\n\ty\n       z", False),
    ("if x:\n \ty\n         z", True),  # also after a space
    ("if x:\n\n   # a\n\n  y", True),
    ("if x:\n  y # a\n  z", True),
    ("if x: # a\n  y", True),
    ("if x:\n  y\n  # a\n z", False),
    ("\n\n\n", True),
    ("  x = 1\n", True),  # as in Lark, spaces at the very beginning are ignored
    ("x\n\fy", True),
    ("x\n\f  y", True),  # as in Lark, a form feed ends the newline, so this is column 0
    ("x\n  \fy", False),
    ("def f():\n\f", False),  # column 0 is final here and nothing may follow
    ("def # a", False),  # a comment is a newline
    ("(def", True),
    ("(def ", False),
    ("(# a\n  x", True),
    ("f(\n    a,\n  b\n)\n", True),
    ("f(\n    a\n)\n  b", False),
    ("x = [\n\n", True),
    ("x = (]", False),
    ("x)", False),
    ("x = 1 \\\n", True),
    ("x = \\\n  1\n", True),
    ("x = \\ 1", False),
    ("x\r", True),
    ("x\ry", False),
    ("x\r\ny", True),
    ("else", True),  # a name so far
    ("else:", False),
    ("x = é変", True),
    ("x = €", False),
]


@pytest.mark.parametrize(("prefix", "legal"), PREFIXES)
def test_python_prefixes(python: Oracle, prefix: str, legal: bool) -> None:
    assert python.is_legal_prefix(prefix.encode()) is legal


@pytest.mark.parametrize(
    ("prefix", "legal"),
    [
        (b"x = \xc3", True),  # a letter with accent, say
        (b"x = 1\xc3", False),
        (b"x = \xe2", True),  # U+2C00, say
        (b"x = \xe2\x82", True),  # U+2090, a subscript letter
        (b"x = \xe2\x80", False),  # U+2000 .. U+203F: only punctuation
        (b"x\xe2\x80", False),  # to `re`, U+203F is no word character (to `regex` it is)
        (b"x = '\xe2\x80", True),
        (b"# \xf0\x9f", True),
        (b"x = \xf0\x9f", True),  # to `re`, U+1F100 is a word character and no digit
        (b"x = \xf0\x9f\x98", False),  # U+1F600 ..: only emoji
        (b"x = '\x80", False),
        (b"x = '\xc0", False),
        (b"x = '\xed\xa0", False),  # a surrogate
        (b"x = '\xf4\x90", False),
        (b"x = '\xe2\x82'", False),
    ],
)
def test_incomplete_and_invalid_utf8(python: Oracle, prefix: bytes, legal: bool) -> None:
    assert python.is_legal_prefix(prefix) is legal
    assert not python.is_legal_text(prefix)


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("", True),
        ("x", False),
        ("x\n", True),
        ("if x:\n  y\n", True),
        ("if x:\n  y\n\t", True),  # blanks that end a text have no column
        ("if x:\n  if y:\n    z\n", True),
        ("if x:\n", False),
        ("x\n  ", True),
        ("x\n#", True),
        ("x\n#a b", True),
        ("x #", False),  # and fails on a newline lexeme without a line feed
        ('x = """a\n', False),
        ('x = f"""a\n', False),
        ("(x\n", False),
        ("x \\\n", False),
        ("x = ...\n", True),
        ("x = 1.\n", True),
    ],
)
def test_python_texts(python: Oracle, text: str, legal: bool) -> None:
    assert python.is_legal_text(text.encode()) is legal


def test_a_match_that_only_the_end_of_the_text_stops_is_not_backed_up() -> None:
    oracle = toy("start: F N\nF: /[0-9]+[.](e[0-9]+)?/\nN: /[a-z]+/\n")
    assert oracle.is_legal_text(b"1.e")  # another continuation than e5 stops F too
    assert not toy(COMMENT).is_legal_text(b"x/*x")  # nothing stops the comment


def test_newline_that_cannot_grow() -> None:
    block = "start: X NL _INDENT X NL _DEDENT\nX: /x/\nNL: /;[\\n][\\t]*/\n%declare _INDENT _DEDENT\n"
    with pytest.raises(ValueError, match="layout"):
        parse_grammar(block, layout="auto")
    oracle = Oracle(parse_grammar(block, lexing="longest", layout=Indenter("NL", "_INDENT", "_DEDENT", tab_length=4)))
    assert oracle.is_legal_prefix(b"x;\n")  # tabs may follow
    assert oracle.is_legal_text(b"x;\n\tx;\n")
    assert oracle.is_legal_text(b"x;\n\tx;\n\t")  # the end of the text closes the block
    assert oracle.is_legal_text(b"x;\n\tx;\n\t\t")  # whatever its column
    assert not oracle.is_legal_prefix(b"x;\n\tx;\n\tx")
    fixed = Indenter("NL", "_INDENT", "_DEDENT")
    oracle = Oracle(parse_grammar(block.replace("[\\t]*", ""), lexing="longest", layout=fixed))
    assert oracle.is_legal_prefix(b"x")
    assert not oracle.is_legal_prefix(b"x;")  # a newline at column 0 always: the block can never be indented


@pytest.mark.parametrize(
    "edit", ["def f(:\n", "x = = 1\n", "x = 1 2\n", "class :\n", "import\n", "if x\n", "x = (1,]\n"]
)
def test_edits_that_python_refuses_are_refused(python: Oracle, edit: str) -> None:
    with pytest.raises(SyntaxError):
        compile(edit, "edit", "exec")
    assert not python.is_legal_prefix(edit.encode())


def test_feeding_in_pieces_and_resuming_change_nothing(python: Oracle) -> None:
    text = 'def f(a):\n    """é\n    """\n    return a.b(1.e5, """x""")  # y\n'.encode() * 8
    rng = random.Random(0)
    for _ in range(30):
        state, at = python.root, 0
        while at < len(text):
            step = rng.randrange(1, 60)
            state, at = state.feed(text[at : at + step]), at + step
            assert python.feed(text[:at]) == state
        edited = text[: rng.randrange(len(text))] + rng.choice([b")", b"x", b"\n", b'"""', b"\xff"])
        assert python.feed(edited).is_legal is python.root.feed(edited).is_legal
        assert python.is_allowed(edited[:-1], edited[-1:]) is python.is_legal_prefix(edited)


PIECES = """x|\\n|\\n|\\n|\\n  |\\n\\t|\\n    |if x:|if x:|(|)|# c d|#c|\\f|\"""|"a"|\\\\\\n| |  |pass|\\r\\n|1.|1|else:|..|...|0
or|x|=|f"|é|\\r|'|def f():|,|.|not|e""".replace("\n", "|")


def random_texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    pieces = [piece.encode().decode("unicode_escape").encode("latin-1").decode() for piece in PIECES.split("|")]
    return ["".join(rng.choices(pieces, k=rng.randrange(1, 9))) + rng.choice(["", "\n"]) for _ in range(n)]


def test_legal_texts_are_those_that_lark_parses(python: Oracle) -> None:
    """Lark's basic lexer reads python.lark as longest match does, and its Indenter is the definition of layout."""
    parser = lark.Lark.open_from_package(
        "lark", "python.lark", ("grammars",), parser="lalr", lexer="basic", postlex=PythonIndenter(), start="file_input"
    )
    n_legal = 0
    for text in random_texts(3000, seed=1):
        try:
            # blanks and a comment behind the last line feed have no column here; for the Indenter they do
            parser.parse(re.sub(r"(\A[ \t\f]*|(?<=\n)[ \t]*)(#[^\n]*)?\Z", "", text))
            parses = True
        except (lark.exceptions.LarkError, IndexError):  # IndexError: see `_Lexer.step`
            parses = False
        assert python.root.feed(text.encode()).is_legal_text is parses, text
        n_legal += parses
    assert n_legal > 200


def test_prefixes_of_legal_texts_are_legal_and_legal_prefixes_lead_on(python: Oracle) -> None:
    following = [bytes([byte]) for byte in b"\n )]}:\"'x(1=.,r"]
    for text in (text.encode() for text in random_texts(400, seed=2)):
        state, states = python.root, [python.root]
        for i in range(len(text)):
            state = state.feed(text[i : i + 1])
            states.append(state)
        legal = [state.is_legal for state in states]
        assert legal == sorted(legal, reverse=True), text  # nothing illegal becomes legal again
        assert legal[-1] or not states[-1].is_legal_text, text
        for state in (state for state, is_legal in zip(states, legal, strict=True) if is_legal and not state.rest):
            assert state.is_legal_text or any(state.allows(byte) for byte in following) or _closes(state), state


def _closes(state: State) -> bool:
    """Is it inside a longer lexeme that one more character of the terminals' samples continues?"""
    patterns = state.oracle.lexer.patterns.values()
    return any(state.allows(suffix[:1].encode()) for pattern in patterns for suffix in pattern.suffixes)


def test_unfinished_is_whether_what_follows_can_matter() -> None:
    """If `unfinished` does not match, `re` finds the same whatever follows."""
    texts = ["".join(text) for n in range(5) for text in itertools.product("abc", repeat=n)]
    followers = [text for text in texts if 0 < len(text) <= 3]
    rng, n_decided = random.Random(5), 0
    for _ in range(250):
        source = _random_pattern(rng, 4)
        pattern = _Pattern(Terminal("T", source))
        for text in rng.sample(texts, 12):
            if pattern.unfinished.match(text, partial=True) is None:
                ends = {match and match.end() for match in (re.match(source, text + more) for more in ["", *followers])}
                assert len(ends) == 1, (source, text)
                n_decided += 1
    assert n_decided > 500


def _random_pattern(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", "c", "[ab]", "[^a]", "."])
    one = _random_pattern(rng, depth - 1)
    if kind < 0.55:
        return one + _random_pattern(rng, depth - 1)
    if kind < 0.65:
        return f"({one}|{_random_pattern(rng, depth - 1)})"
    if kind < 0.87:
        return f"({one})" + rng.choice(["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}"])
    return rng.choice([f"(?!{one})", f"(?={one})", "(?<!a)", "(?<=b)", "(?<!ab)"])


def test_every_prefix_of_real_files_is_legal(python: Oracle) -> None:
    files = sorted(records("source/python"), key=lambda record: (record["bytes"], record["id"]))
    texts = (record["text"].encode() for record in files if record["bytes"] > 200)
    legal = [text for text in itertools.islice(texts, 40) if python.root.feed(text).is_legal_text][:20]
    assert len(legal) == 20
    for text in legal:
        state = python.root
        for i in range(len(text)):
            state = state.feed(text[i : i + 1])
            assert state.is_legal, text[: i + 1]


def test_broken_python_is_refused(python: Oracle) -> None:
    """Where Lark refuses the whole text, so does the oracle; a prefix that has a legal witness is legal."""
    n_refused = n_witnessed = 0
    for record in records("negative/python"):
        text = record["text"].encode()
        if not record["lark_python_lark_1_3_1_accepts"]:
            assert not python.is_legal_text(text), record["id"]
            n_refused += 1
        good = text[: record["first_bad_lower"]]
        if record["witness"] is not None and python.is_legal_text(good + record["witness"].encode()):
            assert python.is_legal_prefix(good), record["id"]
            n_witnessed += 1
    assert n_refused > 300
    assert n_witnessed > 300
