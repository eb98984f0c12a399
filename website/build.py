"""Builds the website in out/site: `python website/build.py`. `make site` calls it, and looks at the links. Options go to Sphinx: with
`-D nb_execution_mode=off` the notebooks come as they are committed.

In: the repository. Out: its pages gathered in out/pages, with those that are made of docstrings and of records; and the HTML that Sphinx
makes of them. Nothing is loaded from elsewhere, neither by the build nor by the pages.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import api
import pages

import reports

ROOT = Path(__file__).resolve().parents[1]


def main(more: list[str]) -> int:
    begin = time.monotonic()
    staged, out = ROOT / "out" / "pages", ROOT / "out" / "site"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    pages.gather(staged)
    api.write(staged / "api")
    reports.write(staged / "reports")
    pages.write_navigation(staged)
    shutil.rmtree(out, ignore_errors=True)  # only now: a site is worth more than none
    options = ("--fail-on-warning", "--keep-going", "--quiet", "--fresh-env", "--jobs", "auto")
    command = [sys.executable, "-m", "sphinx", *options, "-c", str(Path(__file__).parent), *more, str(staged), str(out)]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    shutil.rmtree(out / ".doctrees", ignore_errors=True)
    for rest in (".buildinfo", "objects.inv"):
        (out / rest).unlink(missing_ok=True)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{out}: {size / 1e6:.0f} MB in {time.monotonic() - begin:.0f} s" + (", with warnings" if code else ""))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
