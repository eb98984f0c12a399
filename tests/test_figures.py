"""Each figure of README and docs comes from a record, from the code, or is given with a reason; records say which code they are of."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from paths import ROOT

_path = sys.path[:]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "reports"), str(ROOT / "reports" / "bench")]

import measured  # noqa: E402
import records  # noqa: E402
from figures.facts import newest, record  # noqa: E402
from figures.page import About, Page, rounded  # noqa: E402
from figures.pages import pages  # noqa: E402
from figures.prose import figures  # noqa: E402

sys.path[:] = _path  # scripts of benchmarks have common names


@pytest.mark.parametrize("name", records.all_pages())
def test_figures_are_those_of_records(name: str) -> None:
    """Remedy: `python scripts/records.py --update` where a record is another one; a line in reports/figures/pages for a new figure."""
    found, _ = records.check(records.all_pages()[name])
    assert not found, "\n".join(found)


def test_pages_of_which_something_is_said_are_there() -> None:
    assert set(records.all_pages()) >= set(pages())


def test_the_page_of_records_is_the_list_of_them() -> None:
    """Remedy: `python scripts/records.py --update`."""
    assert records.TARGET.read_text(encoding="utf-8") == records.record_page()


def test_each_benchmark_says_what_it_measures() -> None:
    """And what it says is there."""
    writers = {
        path.stem
        for folder in ("reports/bench", "scripts")
        for path in (ROOT / folder).glob("*.py")
        if re.search(r"^ +(?:print\()?write_record\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert writers == set(measured.MEASURED)
    assert all((ROOT / path).exists() for paths in measured.MEASURED.values() for path in paths)


def test_a_hash_is_of_what_code_does(tmp_path: Path) -> None:
    """Not of comments, docstrings and form."""
    codes = [
        'def f(x):\n    """Twice x."""\n    return 2 * x\n',
        "# the double\ndef f(\n    x,\n):\n    return (2 * x)  # not x + x\n",
        "def f(x):\n    return 3 * x\n",
        "def f(x):\n    return '2 * x'\n",
    ]
    found = []
    for number, code in enumerate(codes):
        folder = tmp_path / str(number) / "code"
        folder.mkdir(parents=True)
        (folder / "double.py").write_text(code, encoding="utf-8")
        found.append(measured.content_hash(folder))
    assert found[0] == found[1] and len(set(found)) == 3
    assert measured.content_hash(tmp_path / "nothing") == ""


def test_what_has_changed_since_a_record_is_said() -> None:
    _, record = next(records.newest_records())
    now = measured.hashes(str(record["command"]))
    first, *others = sorted(now)
    assert others and records.changed({**record, "code": now}) == ""
    assert records.changed({**record, "code": {**now, first: "of before"}}) == first
    assert records.changed({**record, "code": {**now, "folder/that/was": ""}}) == "folder/that/was (gone)"
    assert records.changed({**record, "code": dict.fromkeys(now, "of before")}) == "all of it"


def test_what_a_figure_is() -> None:
    text = (
        "In 2026 Python 3.13 took 1.5 ms, `7 MB`, and 3 or 4 files (section 3.2.1) of 1,000;\n2 % more than xgrammar 0.2.8 did, 5 to 6x.\n"
        "\n| the 3 cases | 12 / 13 |\n\n```\n9 ms\n```\n"
    )
    found = [text[begin:end] for begin, end in figures(text)]
    assert found == ["1.5", "3", "4", "1,000", "2", "5", "6", "3", "12", "13"]
    text = "It takes half a\nminute or a tenth of a second, some hundred bytes, three times the two files, and `two seconds`."
    assert [text[begin:end] for begin, end in figures(text)] == [
        "half a\nminute",
        "a tenth of a second",
        "some hundred bytes",
    ]


def test_a_value_is_rounded_as_it_is_shown() -> None:
    assert [rounded(1234.56, shown) for shown in ("7", "7.0", "1,000")] == ["1,235", "1,234.6", "1,235"]
    assert [rounded(About(1234.56), shown) for shown in ("7", "1,000", "1,200")] == ["1,235", "1,000", "1,200"]
    assert [rounded(0.125, "0.11"), rounded(0.125, "0.12"), rounded(2.5, "2"), rounded(2.6, "2")] == [
        "0.13",
        "0.12",
        "2",
        "3",
    ]


def test_a_wrong_figure_is_found_and_mended() -> None:
    page = Page("docs/none.md")
    page.figure("takes # ms and # MB", 1.28, 3)
    page.given("at most 5 files", "an example")
    text = "It takes 1.2 ms and\n3 MB; at most 5 files, 6 rows."
    assert page.wrong(text) == ["docs/none.md says takes 1.2 ms and 3 MB, but takes # ms and # MB is 1.3, 3"]
    assert page.updated(text) == text.replace("1.2", "1.3")
    assert list(page.counted(text).values()) == ["record", "record", "an example", ""]
    assert page.wrong("takes 1.3 ms and 3 MB; at most 5 files (2026-11-21-masks.json)") == [
        f"docs/none.md names 2026-11-21-masks.json, but the last one is {newest()['masks'].name}"
    ]
    page.figure("takes # GB", 1)
    assert page.wrong(text)[1:] == ["docs/none.md does not say: takes # GB"]


def test_numbers_that_do_not_fit_their_sentence_are_found() -> None:
    page = Page("docs/none.md")
    page.figure("# name the format", 0)
    page.figure("# formats", 3)
    page.figure("# of the # texts", 17, 16)
    page.parts("Of # rows # are full", 7, 4, rest=2)
    page.figure("# are good", 5)
    text = (
        "And 0 name the format. There are 3 formats (`date`, `time`).\n\n17 of the 16 texts. Of 7 rows 4 are full, the rest, "
        "one each: a, b. 5 are good, and the rest is bad.\n"
    )
    assert [line.removeprefix("docs/none.md").lstrip(": ").split(":")[0] for line in page.wrong(text)] == [
        "the parts are not all of it",
        "counts 0",
        "counts 3 and names 2",
        "has a part that is greater than its whole",
        "parts a number, of which Page.parts is to say how",
    ]


def test_numbers_that_fit_are_let_be() -> None:
    """A measure of 0, a list of that length or of other things, a part of another whole, parts that add up, and all in tables."""
    page = Page("docs/none.md")
    page.figure("takes # ms", 0)
    page.figure("# formats", 2)
    page.figure("# files", 2)
    page.figure("# of # texts", 16, 17)
    page.parts("Of # rows # are full", 7, 4, rest=3)
    page.figure("| # | # of the rest |", 0, 1)
    text = (
        "It takes 0 ms for 2 formats: `date` and `time`. 2 files (`a/b.json`, `c/d.json`, `e/f.json`) and 16 of 17 texts.\n"
        "Of 7 rows 4 are full, and the rest is not.\n\n| 0 | 1 of the rest |\n"
    )
    assert page.wrong(text) == []


def test_a_version_is_put_into_a_page() -> None:
    page = Page("docs/none.md")
    page.figure("| peer # | # |", "0.2.10", 7)
    text = "| peer 0.2.9 | 8 |\n"
    assert page.updated(text) == "| peer 0.2.10 | 7 |\n" and page.wrong(page.updated(text)) == []
    assert page.wrong(text) == ["docs/none.md says | peer 0.2.9 | 8 |, but | peer # | # | is 0.2.10, 7"]


def test_facts_are_found_by_paths() -> None:
    masks = record("masks")
    assert masks("cells/work=json,vocabulary=32000/engines/ours/status") == "measured"
    assert masks.at("cells/0/engines/ours")("status") == "measured"
