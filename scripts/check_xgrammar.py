"""Run xgrammar's own Python tests against `maskwright.serving.xgrammar`, and say which pass, which cannot and why.

    python scripts/check_xgrammar.py CHECKOUT [pytest arguments]

CHECKOUT is a work tree of xgrammar (https://github.com/mlc-ai/xgrammar). Nothing of it is installed, compiled or changed: its modules that
are Python alone (structural_tag, builtin_structural_tag, testing) are read where they lie, on top of ours, and what they ask of its C++ is
refused. Prints a table of files, then the reasons by their number. The exit code is 0 unless nothing ran.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

CHECKOUT = "XGRAMMAR_CHECKOUT"
PURE = ("structural_tag", "openai_tool_call_schema", "builtin_structural_tag", "testing")
"""xgrammar's modules that are read from the checkout."""
_NUMBERS = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")


class _Core(types.ModuleType):
    """xgrammar's C++, which is not here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Core(f"{self.__name__}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError(f"{self.__name__} is xgrammar's C++")


def masked_tokens(bitmask: Any, vocab_size: int, index: int = 0) -> list[int]:
    """The tokens that a row refuses."""
    row = bitmask.reshape(-1, bitmask.shape[-1])[index].tolist()
    return [token for token in range(vocab_size) if not row[token // 32] >> (token % 32) & 1]


def single_token(bitmask: Any, vocab_size: int, index: int = 0) -> tuple[bool, int]:
    """Whether a row allows one token alone, and which."""
    left = set(range(vocab_size)).difference(masked_tokens(bitmask, vocab_size, index))
    return (True, left.pop()) if len(left) == 1 else (False, -1)


def stand_in(checkout: Path) -> None:
    """Put our module in xgrammar's place, with its own pure modules on top."""
    from maskwright.serving import xgrammar

    module = xgrammar.install(replace=True)
    module.__path__ = []  # type: ignore[attr-defined]
    base = types.ModuleType("xgrammar.base")
    base._core, base.XGRObject = _Core("_core"), object  # type: ignore[attr-defined]
    sys.modules["xgrammar.base"] = base
    for name in ("config", "exception"):
        sys.modules[f"xgrammar.{name}"] = module
    module._convert_schema_to_str = str  # type: ignore[attr-defined]
    for name in PURE:
        spec = importlib.util.spec_from_file_location(f"xgrammar.{name}", checkout / f"python/xgrammar/{name}.py")
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = made
        spec.loader.exec_module(made)
        module.__dict__.setdefault(name, made)
    testing: Any = sys.modules["xgrammar.testing"]
    testing._get_masked_tokens_from_bitmask, testing._is_single_token_bitmask = masked_tokens, single_token
    for name in ("StructuralTag", "get_model_structural_tag"):
        found = getattr(sys.modules["xgrammar.structural_tag"], name, None)
        found = found or getattr(sys.modules["xgrammar.builtin_structural_tag"], name, None)
        module.__dict__.setdefault(name, found)


class Collector:
    """Collects what became of each test, and says it in the end."""

    def __init__(self) -> None:
        self.by_file: dict[str, Counter[str]] = {}
        self.reasons: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            found = self.by_file.setdefault(Path(report.nodeid.split("::")[0]).name, Counter())
            found[report.outcome] += 1
            if report.outcome == "failed":
                self.reasons[_reason(str(report.longrepr))] += 1

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.by_file.setdefault(Path(report.nodeid).name, Counter())["not read"] += 1
            self.reasons[_reason(str(report.longrepr))] += 1

    def pytest_terminal_summary(self) -> None:
        console = Console(width=160)
        table = Table("file", "passed", "failed", "skipped", "not read", title="xgrammar's tests on maskwright")
        total: Counter[str] = Counter()
        for name, found in sorted(self.by_file.items()):
            table.add_row(name, *(str(found[each]) for each in ("passed", "failed", "skipped", "not read")))
            total += found
        table.add_row("in all", *(str(total[each]) for each in ("passed", "failed", "skipped", "not read")))
        console.print(table)
        reasons = Table("tests", "reason")
        for reason, n in self.reasons.most_common(60):
            reasons.add_row(str(n), reason)
        console.print(reasons)


def _reason(shown: str) -> str:
    """The last error of a traceback, without what differs from test to test."""
    errors = [line[4:] for line in shown.splitlines() if line.startswith("E   ")]
    first = next((line for line in errors if line.strip()), shown.splitlines()[-1] if shown else "?")
    return _NUMBERS.sub("…", first.strip())[:140]


def pytest_configure(config: Any) -> None:
    """As a plug-in of pytest, in the process of the tests."""
    stand_in(Path(os.environ[CHECKOUT]))
    config.pluginmanager.register(Collector())


def main() -> int:
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "tests" / "python").is_dir():
        print(__doc__)
        return 2
    checkout = Path(sys.argv[1]).resolve()
    paths = os.pathsep.join(
        [str(Path(__file__).parent), str(checkout / "tests" / "python"), os.environ.get("PYTHONPATH", "")]
    )
    environment = {**os.environ, CHECKOUT: str(checkout), "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "check_xgrammar", "-q", "--tb=short", "-rN", "--no-header"]
    command += [
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(checkout),
        "--continue-on-collection-errors",
    ]
    command += sys.argv[2:] or [str(checkout / "tests" / "python")]
    return (
        subprocess.run(command, env=environment, cwd=checkout, check=False).returncode
        == pytest.ExitCode.NO_TESTS_COLLECTED
    )


if __name__ == "__main__":
    sys.exit(main())
