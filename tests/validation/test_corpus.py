"""Corpora: what is found, in which order, and what cannot be read."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

from maskwright.validation.corpus import CorpusError, Text, Unreadable, find_corpus, suffixes_of


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def names(folder: Path, *paths: str, suffixes: tuple[str, ...] = (".py",)) -> list[str]:
    found = find_corpus([folder / path for path in paths], suffixes)
    return [Path(text.name).relative_to(folder).as_posix() for text in found]


def test_folders_files_and_globs_in_order_and_once(tmp_path: Path) -> None:
    make(tmp_path, "b/z.py", "b/a.py", "b/c.txt", "b/.git/x.py", "b/.hidden.py", "b/d/e.py", "one.txt", "two.txt")
    assert names(tmp_path, "b") == ["b/a.py", "b/d/e.py", "b/z.py"]
    assert names(tmp_path, "two.txt", "b", "b/a.py") == ["two.txt", "b/a.py", "b/d/e.py", "b/z.py"]
    assert names(tmp_path, "*.txt") == ["one.txt", "two.txt"]
    assert names(tmp_path, "b/**/*.py") == ["b/a.py", "b/d/e.py", "b/z.py"]
    assert names(tmp_path, "b", suffixes=()) == ["b/a.py", "b/c.txt", "b/d/e.py", "b/z.py"]
    assert names(tmp_path, "b", suffixes=(".txt", ".py")) == ["b/a.py", "b/c.txt", "b/d/e.py", "b/z.py"]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    make(tmp_path, "b/z.py", "b/empty/.hidden")
    for paths, suffixes, message in [
        ([], (".py",), "no texts to validate on"),
        ([tmp_path / "nothing"], (".py",), "nothing: there is no such file or folder"),
        ([tmp_path / "*.js"], (".py",), "as a pattern it matches no file"),
        ([tmp_path / "b"], (".js",), r"has no files with the suffix \.js"),
        ([tmp_path / "b" / "empty"], (), r"empty has no files$"),
    ]:
        with pytest.raises(CorpusError, match=message):
            find_corpus(paths, suffixes)


def test_a_file_that_is_not_utf8_is_one_finding_among_the_texts(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "c.py")
    (tmp_path / "b.py").write_bytes(b"x = '\xff'\n")
    found = list(find_corpus([tmp_path], [".py"]))
    assert [type(text) for text in found] == [Text, Unreadable, Text]
    assert isinstance(found[1], Unreadable) and found[1].reason == "not UTF-8 at byte 5"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    (tmp_path / "a.py").chmod(0)
    (found,) = find_corpus([tmp_path], [".py"])
    assert isinstance(found, Unreadable) and "Permission denied" in found.reason


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    corpus = find_corpus([tmp_path], [".py"])
    (tmp_path / "a.py").unlink()
    (found,) = corpus
    assert isinstance(found, Unreadable) and "No such file" in found.reason


def test_line_ends_and_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx\r\ny\n")
    (found,) = find_corpus([tmp_path], [".py"])
    assert isinstance(found, Text) and found.text == "x\r\ny\n" and found.weight == 8


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.xz"])
def test_records(suffix: str, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"é{i}" * 50, "id": i}).encode() for i in range(300)]
    lines[3:3] = [b"", b"not json", b'{"other": 1}', b'["text"]', b'{"text": 3}', b'{"text": "\xff"}']
    data = b"\n".join(lines)
    path = tmp_path / f"c{suffix}"
    path.write_bytes(lzma.compress(data) if suffix.endswith("xz") else data)
    corpus = find_corpus([path], ())
    found = list(corpus)
    texts = [text for text in found if isinstance(text, Text)]
    assert [text.record for text in texts] == [{"id": i} for i in range(300)] and texts[7].text == "é7" * 50
    reasons = {text.name: text.reason for text in found if isinstance(text, Unreadable)}
    assert list(reasons) == [f"{path}:{i}" for i in (5, 6, 7, 8, 9)]
    assert [reason.split(":")[0].split(" (")[0] for reason in reasons.values()] == [
        "not JSON",
        "no text in member 'text'",
        "no text in member 'text'",
        "no text in member 'text'",
        "not UTF-8 at byte 10 of the line",
    ]
    assert "found: other" in reasons[f"{path}:6"]
    assert sum(text.weight for text in found) == corpus.n_bytes == path.stat().st_size


def test_another_field(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"code": "x", "text": "y"}\n')
    (found,) = find_corpus([path], (), field="code")
    assert isinstance(found, Text) and found.text == "x" and found.record == {"text": "y"} and found.name == f"{path}:1"


def test_a_damaged_xz_file_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.xz"
    data = lzma.compress(b"".join(json.dumps({"text": os.urandom(40).hex()}).encode() + b"\n" for _ in range(500)))
    path.write_bytes(data[:-200])
    found = list(find_corpus([path], ()))
    assert isinstance(found[0], Text) and isinstance(found[-1], Unreadable)
    path.write_bytes(b"not xz")
    (only,) = find_corpus([path], ())
    assert isinstance(only, Unreadable) and "cannot be read" in only.reason


def test_suffixes_by_name() -> None:
    assert suffixes_of("python.lark") == suffixes_of("python") == suffixes_of("python3.lark") == (".py", ".pyi")
    assert suffixes_of("json") == (".json",) and suffixes_of("c11.lark") == (".c", ".h")
    assert suffixes_of("javascript.lark") == (".js", ".mjs") and suffixes_of("cobol.lark") == ()
