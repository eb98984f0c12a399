"""`make check-all`: what is run, and what is left out because it has passed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from paths import ROOT


@pytest.fixture(scope="module")
def checks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_all", ROOT / "scripts" / "check_all.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_all"] = module
    spec.loader.exec_module(module)
    return module


def test_every_test_is_in_one_stage(checks: ModuleType) -> None:
    folders = [folder for folder in checks.SLOW if folder]
    assert checks.SLOW[-1] == "" and all((ROOT / folder).is_dir() for folder in folders)
    slow = [stage for stage in checks.stages() if stage.name.startswith("slow: ")]
    assert [stage.command[-1] for stage in slow[:-1]] == [f"TESTS={folder}" for folder in folders]
    assert slow[-1].command[-1] == "TESTS=" + " ".join(f"--ignore={folder}" for folder in folders)


def test_what_has_passed_is_left_out(checks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    line = f"open({str(ran)!r}, 'a').write('x')"
    stages = [
        checks.Stage("good", (sys.executable, "-c", line)),
        checks.Stage("bad", (sys.executable, "-c", line + "; raise SystemExit(3)")),
        checks.Stage("absent", ("never",), needs="no-such-program"),
    ]
    monkeypatch.setattr(checks, "stages", lambda: stages)
    monkeypatch.setattr(checks, "commit", lambda: "one")
    file = tmp_path / "out" / "checks.json"
    monkeypatch.setitem(checks.Passed.__init__.__kwdefaults__, "file", file)
    assert checks.main(()) == 1 and len(ran.read_text()) == 2
    assert checks.main((), resumes=True) == 1 and len(ran.read_text()) == 3  # the bad one again
    assert checks.main(("goo",), resumes=True) == 0 and len(ran.read_text()) == 3
    assert checks.main(("goo",)) == 0 and len(ran.read_text()) == 4
    assert checks.main(("goo", "godo")) == 2 and len(ran.read_text()) == 4
    stages[0] = checks.Stage("good", (sys.executable, "-c", line + "; raise SystemExit(3)"))
    assert checks.main(("goo",)) == 1 and len(ran.read_text()) == 5
    stages[0] = checks.Stage("good", (sys.executable, "-c", line))
    assert checks.main(("goo",), resumes=True) == 0 and len(ran.read_text()) == 6  # it has failed since
    for torn in ("{", "[]", '{"commit": "one"}'):
        file.write_text(torn)
        assert checks.main(("goo",), resumes=True) == 0
    assert len(ran.read_text()) == 9
    ran.write_text("xxxx")
    monkeypatch.setattr(checks, "commit", lambda: "another")
    assert checks.main(("goo",), resumes=True) == 0 and len(ran.read_text()) == 5
    monkeypatch.setattr(checks, "commit", lambda: None)
    assert checks.main(("goo",), resumes=True) == 0 and len(ran.read_text()) == 6
