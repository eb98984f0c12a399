"""What README shows is what the code prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_prints_what_is_shown(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    found = re.search(r"```python\n(.*?)```\s*```\n(.*?)```", README, re.DOTALL)
    assert found is not None
    code, shown = found.groups()
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    numbers = re.compile(r"[\d.]+")
    assert numbers.sub("#", run.stdout) == numbers.sub("#", shown)
    # what \w matches, and so NAME's automaton, is a matter of the running Python's Unicode version
    for found_number, shown_number in zip(numbers.findall(run.stdout), numbers.findall(shown), strict=True):
        assert float(found_number) == pytest.approx(float(shown_number), rel=0.03)
    assert (tmp_path / "python.safetensors").stat().st_size < 25_000_000


def test_first_screen_has_both_commands() -> None:
    first_screen = README.splitlines()[:25]
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in first_screen)


def test_links_lead_somewhere() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def test_figures_name_their_records() -> None:
    for record in re.findall(r"reports/record/[\w.-]+\.json", README):
        assert (ROOT / record).is_file(), f"README names {record}"
