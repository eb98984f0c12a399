"""The oracle on Python: hand-made prefixes, Lark's own lexer and layout, and real files."""

from __future__ import annotations

import itertools
import json
import lzma
import random
import re
from typing import Any

import lark
import pytest
from lark.indenter import PythonIndenter
from oracle import Oracle, State
from paths import SHARED
from shares import share
from written_cases import parameters

from maskwright.analysis.loading import load_grammar


@pytest.fixture(scope="module")
def python() -> Oracle:
    return Oracle(load_grammar("lark:python", lexing="longest"))


def records(name: str) -> list[dict[str, Any]]:
    path = SHARED / f"{name}.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no evaluation data at {path}")
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


PREFIXES = parameters("python_prefixes", "prefixes")


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


@pytest.mark.parametrize(("text", "legal"), parameters("python_prefixes", "texts"))
def test_python_texts(python: Oracle, text: str, legal: bool) -> None:
    assert python.is_legal_text(text.encode()) is legal


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


@pytest.mark.slow
@pytest.mark.parametrize("n", share([300, 3000], 1))
def test_legal_texts_are_those_that_lark_parses(python: Oracle, n: int) -> None:
    """Lark's basic lexer reads python.lark as longest match does, and its Indenter is the definition of layout."""
    parser = lark.Lark.open_from_package(
        "lark", "python.lark", ("grammars",), parser="lalr", lexer="basic", postlex=PythonIndenter(), start="file_input"
    )
    n_legal = 0
    for text in random_texts(n, seed=1):
        try:
            # blanks and a comment behind the last line feed have no column here; for the Indenter they do
            parser.parse(re.sub(r"(\A[ \t\f]*|(?<=\n)[ \t]*)(#[^\n]*)?\Z", "", text))
            parses = True
        except (lark.exceptions.LarkError, IndexError):  # IndexError: see `_Lexer.step`
            parses = False
        assert python.root.feed(text.encode()).is_legal_text is parses, text
        n_legal += parses
    assert n_legal > n // 15


@pytest.mark.parametrize("n", share([40, 400], 1))
def test_prefixes_of_legal_texts_are_legal_and_legal_prefixes_lead_on(python: Oracle, n: int) -> None:
    following = [bytes([byte]) for byte in b"\n )]}:\"'x(1=.,r"]
    for text in (text.encode() for text in random_texts(n, seed=2)):
        state, states = python.root, [python.root]
        for i in range(len(text)):
            state = state.feed(text[i : i + 1])
            states.append(state)
        legal = [state.is_legal for state in states]
        assert legal == sorted(legal, reverse=True), text  # nothing illegal becomes legal again
        assert legal[-1] or not states[-1].is_legal_text, text
        for state in (
            state for state, is_legal in zip(states, legal, strict=True) if is_legal and not state.incomplete
        ):
            assert state.is_legal_text or any(state.allows(byte) for byte in following) or _closes(state), state


def _closes(state: State) -> bool:
    """Is it inside a longer lexeme that one more character of the terminals' samples continues?"""
    patterns = state.oracle.lexer.patterns.values()
    return any(state.allows(suffix[:1].encode()) for pattern in patterns for suffix in pattern.suffixes)


@pytest.mark.parametrize("n", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_every_prefix_of_real_files_is_legal(python: Oracle, n: int) -> None:
    files = sorted(records("source/python"), key=lambda record: (record["bytes"], record["id"]))
    texts = (record["text"].encode() for record in files if record["bytes"] > 200)
    legal = [text for text in itertools.islice(texts, 2 * n) if python.root.feed(text).is_legal_text][:n]
    assert len(legal) == n
    for text in legal:
        state = python.root
        for i in range(len(text)):
            state = state.feed(text[i : i + 1])
            assert state.is_legal, text[: i + 1]


@pytest.mark.slow
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
