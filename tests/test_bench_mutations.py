"""The changes of the mutation run: each is of code that is there, and each row of proofs/README.md has one."""

from __future__ import annotations

from bench_scripts import bench_script
from paths import ROOT


def test_each_row_has_a_change_of_code_that_is_there() -> None:
    with bench_script("proof_mutations") as script:
        changes, rows = script.CHANGES, list(script.rows())
    missing = [change.theorems for change in changes if change.old not in (ROOT / change.file).read_text()]
    assert missing == []
    assert len(rows) > 60 and {name for change in changes for name in change.theorems} == set(rows)
