"""Whatever a user names as a file is read, or there is an error at once: devices do not end, and nobody may write into a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskwright.analysis.errors import GrammarError, MaskwrightError, VocabularyError
from maskwright.analysis.files import open_file, read_file_bytes, read_stream
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.maskstore.vocabulary import load_vocabulary, tokenizer_files
from maskwright.maskstore.vocabulary.encoders import load_encoder
from maskwright.stores.store import load_store
from maskwright.validation import corpus
from maskwright.validation.log import ResultsLog

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")

READERS: dict[str, Callable[[Path], Any]] = {
    "grammar": load_grammar,
    "import": lambda path: parse_grammar(f"%import .{path.stem} (a)\nstart: a", folder=path.parent),
    "tokenizer": load_vocabulary,
    "encoder": load_encoder,
    "store": load_store,
    "log": ResultsLog,
}


def unreadable(path: Path) -> list[Any]:
    return list(corpus.find_corpus([path], ()))


def within(seconds: float, function: Callable[[], None]) -> None:
    """Run it in a thread, so that a call that blocks fails the test and does not stop it."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it blocks"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_reader_blocks_or_never_ends(reader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "it.lark"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    errors: list[BaseException] = []

    def read() -> None:
        try:
            READERS[reader](path)
        except BaseException as error:
            errors.append(error)

    within(30, read)
    assert len(errors) == 1 and isinstance(errors[0], MaskwrightError), errors
    assert "not a file" in str(errors[0]), errors


def test_files_beside_a_tokenizer(tmp_path: Path) -> None:
    alphabet = ", ".join(f'"{chr(97 + i)}": {i}' for i in range(26))
    (tmp_path / "tokenizer.json").write_text(
        f'{{"model": {{"type": "BPE", "vocab": {{{alphabet}}}, "merges": []}}, "decoder": {{"type": "Fuse"}}}}'
    )
    os.mkfifo(tmp_path / "tokenizer_config.json")
    with pytest.raises(
        VocabularyError,
        match=r"tokenizer_config.json cannot be read: it is a named pipe, not a file; expected a tokenizer file",
    ):
        load_vocabulary(tmp_path)


def test_texts_that_are_no_files(tmp_path: Path) -> None:
    for name in ("pipe.txt", "records.jsonl"):
        os.mkfifo(tmp_path / name)
        found: list[Any] = []
        within(30, lambda name=name, found=found: found.extend(unreadable(tmp_path / name)))  # type: ignore[misc]
        assert len(found) == 1 and "is a named pipe, not a file" in found[0].reason


def test_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * 100)
    assert read_file_bytes(path, 100, "a thing") == b"x" * 100
    with pytest.raises(GrammarError, match="long is longer than 99 bytes: it is not a thing"):
        read_file_bytes(path, 99, "a thing", GrammarError)
    with path.open("rb") as stream, pytest.raises(MaskwrightError, match="standard input is longer than 99 bytes"):
        read_stream(stream, "standard input", 99, "a prompt")
    monkeypatch.setattr(tokenizer_files, "MAX_BYTES", 99)
    with pytest.raises(VocabularyError, match="longer than 99 bytes: it is not a tokenizer file"):
        load_vocabulary(path)
    with pytest.raises(MaskwrightError, match="is a folder, not a file; expected a thing"):
        open_file(tmp_path, None, "a thing")
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none", None, "a thing")


def test_lines_of_records_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"text": "a"}\n{"text": "' + "b" * 200 + '"}\n{"text": "c"}\n')
    monkeypatch.setattr(corpus, "MAX_TEXT", 100)
    first, second = unreadable(path)
    assert first.text == "a" and second.reason == "a line of more than 100 bytes; the rest is left out"


def test_descriptors_that_the_caller_opened_are_read_bounded(tmp_path: Path) -> None:
    """`/dev/stdin`, as pipe and as device, and a shell's <(command)."""
    script = "import sys\nfrom maskwright.analysis.loading import load_grammar\nprint(load_grammar(sys.argv[1]).terminals[-1].name)"
    run = [sys.executable, "-c", script]
    done = subprocess.run([*run, "/dev/stdin"], input='start: "x"', capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    read, write = os.pipe()
    os.write(write, b'start: "x"')
    os.close(write)
    assert load_grammar(f"/dev/fd/{read}").n_terminals == 1
    os.close(read)
    with open("/dev/zero", "rb") as zero, pytest.raises(GrammarError, match="longer than 16,777,216 bytes"):
        load_grammar(f"/dev/fd/{zero.fileno()}")


def test_a_log_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = ResultsLog(path)
    log.add("a", {"x": 1})
    log.close()
    with path.open("ab") as file:
        file.write(b'{"version": 1, "key": "b"')
    log = ResultsLog(path)
    assert dict(log.known) == {"a": {"x": 1}} and path.read_bytes().endswith(b"}\n")
    log.close()
