"""Whether the figures of README, proofs/README.md and docs are those of the records, and which records are of today's code.

python scripts/records.py             what is wrong, exit code 1 if anything is
python scripts/records.py --update    puts the records' figures into the pages, and writes docs/internals/records.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
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
without comments, docstrings and form. What has another hash today is named here: a figure of that
record is of older code, and may be another one today. To have it of today's code, run the command
again. In a command PYTHON is another Python, with the peers.

Records are named by date and kind, and a kind's last one counts.
"""


def changed(record: dict[str, object]) -> tuple[list[str], bool]:
    """What of a record's code is another one today, and whether that is all of it."""
    then, now = record["code"], hashes(str(record["command"]))
    assert isinstance(then, dict)
    found = sorted(path for path in {*then, *now} if then.get(path) != now.get(path))
    return found, len(found) == len({*then, *now})


def record_page() -> str:
    """docs/internals/records.md"""
    of_today, older = [], []
    last = newest()
    for path in sorted(last.values(), key=lambda path: (path.name[11:], path.name)):
        record = json.loads(path.read_text(encoding="utf-8"))
        found, is_all = changed(record)
        row = f"| [{path.stem[11:]}](../../reports/record/{path.name}) | {record['date']} | `{' '.join(record['command'].split())}` |"
        if found:
            older.append(
                f"{row} {'all of it' if is_all else ', '.join(f'`{one}`' if (ROOT / one).exists() else f'{one} (gone)' for one in found)} |"
            )
        else:
            of_today.append(row)
    lines = [INTRODUCTION, "## Of today's code", "", "| kind | date | command |", "|---|---|---|", *of_today, ""]
    lines += ["## Of older code", "", "| kind | date | command | what has changed |", "|---|---|---|---|", *older]
    before = sorted(
        {path.name for path in next(iter(last.values())).parent.glob("*.json")} - {path.name for path in last.values()}
    )
    lines += [
        "",
        "## Before them",
        "",
        ", ".join(f"[{name[:-5]}](../../reports/record/{name})" for name in before) + ".",
    ]
    return "\n".join(lines) + "\n"


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
    parser.add_argument("--update", action="store_true")
    if parser.parse_args().update:
        update()
    found, counts = [], Counter[str]()
    for page in all_pages().values():
        of_page, kinds = check(page)
        found += of_page
        counts += kinds
    if record_page() != TARGET.read_text(encoding="utf-8"):
        found.append("docs/internals/records.md does not say what has changed: run scripts/records.py --update")
    print(*found, ", ".join(f"{counts[kind]} {kind}" for kind in ("record", "code", "given", "open")), sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
