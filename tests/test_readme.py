"""What README shows is what the code prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from maskwright.analysis.loading import load_grammar

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


def test_the_table_is_the_records() -> None:
    """README's entries are those that `analyze` wrote into the record that README names."""
    name = re.search(r"reports/record/[\d-]+-streamlining\.json", README)
    assert name is not None
    record = json.loads((ROOT / name[0]).read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (the post's|sound) reading, (Lark's|normalised) rules \|(.*)\|$", README, re.MULTILINE)
    assert len(rows) == 4
    for reading, rules, cells in rows:
        wanted = ("post" if "post" in reading else "sound", "lark" if "Lark" in rules else "normalised")
        entry = next(
            e for e in record["runs"]["mistral-7b-v0.1 warm"]["entries"] if (e["reading"], e["rules"]) == wanted
        )
        shown = [cell.strip() for cell in cells.split("|")]
        counts = [f"{entry[step]:,}" for step in ("original", "follow", "never", "always", "joint")]
        assert [shown[i] for i in (0, 1, 2, 3, 5)] == counts
        assert shown[4] == f"{entry['original'] / entry['always']:.1f}x"
        assert shown[6] == f"{entry['original'] / entry['joint']:.1f}x"
    steps = record["exact_step"]["mistral-7b-v0.1"]["entries"]
    assert f"from {steps['joint']:,} on to {steps['exact']:,}" in README
    main = record["runs"]["mistral-7b-v0.1 warm"]["entries"][-1]
    assert (main["joint"], main["exact"]) == (steps["joint"], steps["exact"])
    assert f"{main['original']:,} -> {main['exact']:,} " in README


def test_records_of_the_oracle_follow_the_grammars_conflicts() -> None:
    for kind in ("oracle_agreement", "engine_replay-refusals"):
        named = re.search(rf"reports/record/[\d-]+-{kind}\.json", README)
        assert named is not None
        record = json.loads((ROOT / named[0]).read_text(encoding="utf-8"))
        for facts in record.get("comparisons", [record]):
            assert facts["conflicts"] == load_grammar("lark:python").conflicts
            assert not facts.get("disagreements") and not facts.get("false_refusals")
