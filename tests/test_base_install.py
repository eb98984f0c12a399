"""What works where only the base is installed: everything but the commands, and what other extras are for."""

from __future__ import annotations

import subprocess
import sys

HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("rich", "typer", "click", "pygments", "pydantic", "networkx", "torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""

LIBRARY = """
import tempfile
from pathlib import Path
import maskwright as mw

needs_more = []
for name in mw.__all__:
    try:
        getattr(mw, name)
    except ModuleNotFoundError as error:
        needs_more.append((name, error.name))
with tempfile.TemporaryDirectory() as folder:
    text = Path(folder) / "a.json"
    text.write_text("[1, 2]")
    store = mw.build_store("json", "python-tiny")
    report = mw.validate(store, [text])
    assert report.passed, report
    schema = mw.load_schema({"type": "array", "items": {"type": "integer"}})
    assert mw.validate(mw.build_store(schema, "python-tiny"), [text]).passed
mw.lint_grammar("json"), mw.lint_schema({"type": "string"})
assert mw.analyze("json").to_html()
print(store.matcher().explain(5))
print(needs_more)
"""

COMMANDS = """
from maskwright.cli import main
main()
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", HIDDEN + code, *arguments], capture_output=True, text=True, timeout=300
    )


def test_the_library_needs_neither_rich_nor_typer() -> None:
    ended = run(LIBRARY)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[]"


def test_commands_name_the_extra_that_they_need() -> None:
    ended = run(COMMANDS, "list")
    assert ended.returncode == 2
    assert "pip install 'maskwright[cli]'" in ended.stderr
    assert "Traceback" not in ended.stderr
