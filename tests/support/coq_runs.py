"""Programs of the proofs run in Coq: what a test of the product's code is compared with."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from paths import ROOT

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="no coqc: install Coq (Debian: coq)")


def printed(folder: Path, modules: Iterable[str], text: str) -> str:
    """What the commands of a text print. modules : of the proofs, which are compiled in the folder first, in this order."""
    for module in modules:
        shutil.copy(ROOT / "proofs" / f"{module}.v", folder)
    (folder / "cases.v").write_text(text)
    output = ""
    for name in (*modules, "cases"):
        ended = subprocess.run(
            ["coqc", "-q", "-Q", ".", "Maskwright", f"{name}.v"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ended.returncode == 0, (ended.stderr or ended.stdout)[-2000:]
        output = ended.stdout
    return output


def verdicts(folder: Path, modules: Iterable[str], text: str) -> list[bool]:
    """The results of `Eval`s of bools, as `printed`."""
    return [one == "true" for one in re.findall(r"^ *= (true|false)$", printed(folder, modules, text), re.MULTILINE)]
