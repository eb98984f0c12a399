"""The log of results: kept at once, read back, a half-written end cut off, anything else refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwright.analysis.errors import MaskwrightError
from maskwright.validation.log import ResultsLog


def test_results_are_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    first = ResultsLog(path)
    first.add("a", {"class": "replayed", "before": "é\u2028"})
    second = ResultsLog(path)  # while the first is still open
    assert second.known == {"a": {"class": "replayed", "before": "é\u2028"}}
    first.close()
    second.add("b", {"class": "x"})
    second.close()
    assert list(ResultsLog(path).known) == ["a", "b"]


def test_every_cut_of_the_last_line_is_tolerated(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = ResultsLog(path)
    log.add("a", {"class": "x"})
    size = path.stat().st_size
    log.add("b", {"class": "y"})
    log.close()
    data = path.read_bytes()
    for end in range(size, len(data)):
        path.write_bytes(data[:end])
        log = ResultsLog(path)
        assert list(log.known) == ["a"]
        log.add("c", {"class": "z"})
        log.close()
        assert list(ResultsLog(path).known) == ["a", "c"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a result of maskwright validate"),
        ("[1]", "not a result"),
        ('{"version":1,"key":"a","outcome":{}}', "expected version 2 but found 1"),
        ('{"version":2,"key":3,"outcome":{}}', "of another type"),
        ('{"version":2,"outcome":{}}', "not a result"),
        ('{"version":2,"key":"a","outcome":{}}', "not a result"),
        ('{"version":2,"key":"a","outcome":{"class":"x"},"crc32":5}', "it was changed: its checksum is another"),
        ("[" * 100_000, "not a result"),
    ],
)
def test_another_file_is_refused_and_left_alone(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = ResultsLog(path)
    log.add("a", {"class": "x"})
    log.close()
    path.write_text(path.read_text() + line + "\n")
    before = path.read_bytes()
    with pytest.raises(MaskwrightError, match=rf"log\.jsonl:2: .*{message}"):
        ResultsLog(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "outcome", ['{"class":"replayed","tokens":"x"}', "{}", '{"class":"zzz"}', '{"class":"replayed","tokens":-5}']
)
def test_an_edited_line_is_refused(outcome: str, tmp_path: Path) -> None:
    """What nobody has seen was counted, or ended in a traceback."""
    path = tmp_path / "log.jsonl"
    log = ResultsLog(path)
    log.add("a", {"class": "replayed", "tokens": 5})
    log.close()
    path.write_text(path.read_text().replace('{"class":"replayed","tokens":5}', outcome))
    with pytest.raises(MaskwrightError, match="it was changed"):
        ResultsLog(path)


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(MaskwrightError, match="cannot be read or written: Is a directory"):
        ResultsLog(tmp_path)


@pytest.mark.parametrize("text", ["a note", '{"eos_token_id": 2}', '{"version": 1}'])
def test_a_line_that_no_log_begins_with_is_kept(text: str, tmp_path: Path) -> None:
    """A file of one line without a line feed was taken for a log whose last line was cut off, and emptied."""
    path = tmp_path / "note"
    path.write_text(text)
    with pytest.raises(MaskwrightError, match=r"note:1: not a result of maskwright validate"):
        ResultsLog(path)
    assert path.read_text() == text
