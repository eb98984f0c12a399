"""Whether the figures of README, proofs/README.md and docs are those of the records, and which records are of today's code.

python scripts/records.py             what is wrong, exit code 1 if anything is
python scripts/records.py --changed   which records are of older code, and what of it has changed
python scripts/records.py --update    puts the records' figures into the pages, and writes docs/internals/records.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "reports"), str(ROOT / "reports" / "bench")]

from figures.facts import newest  # noqa: E402
from figures.page import Page  # noqa: E402
from figures.pages import pages  # noqa: E402
from measured import hashes  # noqa: E402

TARGET = ROOT / "docs" / "internals" / "records.md"
MADE = {"docs/api.md", "docs/internals/table.md", "docs/internals/records.md"}
"""Pages that are made from code and records; tests compare them as a whole."""

INTRODUCTION = """\
# Records

This page is for contributors, and made by `python scripts/records.py --update`. A benchmark measures some of the code
(`reports/bench/measured.py` says what), and its record keeps a hash of each folder and file of that,
without comments, docstrings and form. `python scripts/records.py --changed` says what has another
hash today: a figure of that record is of older code, and may be another one today. To have it of
today's code, run the command again. In a command PYTHON is another Python, with the peers.

Records are named by date and kind, and a kind's last one counts.

| kind | date | command |
|---|---|---|
"""


def newest_records() -> Iterator[tuple[Path, dict[str, object]]]:
    """The last record of each kind, in the order of kinds."""
    for path in sorted(newest().values(), key=lambda path: (path.name[11:], path.name)):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def changed(record: dict[str, object]) -> str:
    """What of a record's code is another one today; empty if nothing is."""
    then, now = record["code"], hashes(str(record["command"]))
    assert isinstance(then, dict)
    found = sorted(path for path in {*then, *now} if then.get(path) != now.get(path))
    if found and len(found) == len({*then, *now}):
        return "all of it"
    return ", ".join(path if (ROOT / path).exists() else f"{path} (gone)" for path in found)


def record_page() -> str:
    """docs/internals/records.md"""
    lines, last = INTRODUCTION, set()
    for path, record in newest_records():
        last.add(path)
        command = " ".join(str(record["command"]).split())
        lines += f"| [{path.stem[11:]}](../../reports/record/{path.name}) | {record['date']} | `{command}` |\n"
    before = sorted(path.name for path in {*next(iter(last)).parent.glob("*.json")} - last)
    links = ", ".join(f"[{name[:-5]}](../../reports/record/{name})" for name in before)
    return f"{lines}\n## Before them\n\n{links}.\n"


def all_pages() -> dict[str, Page]:
    """README, proofs/README.md, and the pages under docs, by name."""
    names = [
        "README.md",
        "proofs/README.md",
        *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
    ]
    known = pages()
    return {name: known.get(name, Page(name)) for name in names if name not in MADE}


def check(page: Page) -> tuple[list[str], Counter[str]]:
    """What is wrong with a page, and how many of its figures are from records, from code, given, and open."""
    text = page.path.read_text(encoding="utf-8")
    whys = page.counted(text)
    kinds = Counter({"record": "record", "code": "code", "": "open"}.get(why, "given") for why in whys.values())
    return [*page.wrong(text), *(f"{where} is of no record" for where, why in whys.items() if not why)], kinds


def update() -> None:
    for page in all_pages().values():
        text = page.path.read_text(encoding="utf-8")
        if (new := page.updated(text)) != text:
            page.path.write_text(new, encoding="utf-8")
            print("changed", page.name)
    TARGET.write_text(record_page(), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if arguments.changed:
        for path, record in newest_records():
            print(f"{path.stem}: {changed(record) or 'of today'}")
        return 0
    if arguments.update:
        update()
    found, counts = [], Counter[str]()
    for page in all_pages().values():
        of_page, kinds = check(page)
        found += of_page
        counts += kinds
    if record_page() != TARGET.read_text(encoding="utf-8"):
        found.append("docs/internals/records.md is not the list of the records: run scripts/records.py --update")
    print(*found, ", ".join(f"{counts[kind]} {kind}" for kind in ("record", "code", "given", "open")), sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
