"""The grammar lark: cases by hand, held against Lark's own parser as well, every grammar file that is at hand, and mutants of the cases."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from lark_syntax import accepts
from library_cases import byte_parser, library_grammar, mutants, sampled, texts_of
from paths import ROOT, SHARED

from maskwright.analysis.loading import load_grammar

NOT_LARK = "reports/bench/grammars/python.lark"
"""In the dialect of llguidance, with & and ~ in terminals."""

PIECES = (
    '"', "/", "\\", "\n", "\r\n", " ", ":", ".", "..", ",", "[", "]", "(", ")", "{", "}", "|", "?", "!", "?!", "*", "~", "->", "-", "1",
    "a", "b", "_", "A", "_A", "x", "i", "%ignore ", "%import ", "%declare ", "%extend ", "//", "#", "\n|", "\n//c\n", '"a"', "/b/", '"\\x',
    "é", "?_", "\\\n",
)  # fmt: skip


def grammar_files() -> list[Path]:
    spec = importlib.util.find_spec("lark")
    assert spec is not None and spec.origin is not None
    folders = [ROOT / "analysis", ROOT / "tests", ROOT / "reports", Path(spec.origin).parent, SHARED]
    return [path for folder in folders for path in sorted(folder.rglob("*.lark"))]


def test_lark_takes_the_same() -> None:
    assert [text for text in texts_of("lark", "accept") if not accepts(text.decode())] == []
    assert [text for text in texts_of("lark", "refuse") if accepts(text.decode())] == []


@pytest.mark.parametrize("path", grammar_files(), ids=lambda path: "/".join(path.parts[-3:]))
def test_files(path: Path) -> None:
    text = path.read_text("utf-8")
    assert byte_parser("lark").accepts(text.encode()) == accepts(text) == (path != ROOT / NOT_LARK)


def test_sampled_texts() -> None:
    for text in sampled("lark", 150):
        assert accepts(text), text


def test_it_reads_itself_and_loads() -> None:
    text = (ROOT / "analysis" / "loading" / "library" / "lark.lark").read_bytes()
    assert byte_parser("lark").accepts(text)
    assert load_grammar("lark").digest == library_grammar("lark").digest


def test_mutants() -> None:
    parser = byte_parser("lark")
    verdicts = {True: 0, False: 0}
    for text in mutants("lark", PIECES, 1500, 7):
        # Lark reads a text with a line feed behind it, which would make something else of these
        text = text.rstrip("\\\r")
        is_accepted = parser.accepts(text.encode())
        verdicts[is_accepted] += 1
        assert is_accepted == accepts(text), text
    assert min(verdicts.values()) > 150
