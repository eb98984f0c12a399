"""Writes the website's pictures into docs/images: `python scripts/site_pictures.py`. (Those of the playground: playground_pictures.py.)

What `maskwright lint` and `maskwright explain` print, as pictures of a terminal; and ARCHITECTURE.md's diagram (architecture.mmd), for a
light page and a dark one. The diagram needs a Chromium and npm, which gets mermaid; with `--terminal` it is left out. tests/test_site.py
holds that all are of today's output and text.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from rich.console import CONSOLE_SVG_FORMAT, Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from headless_browser import browser  # noqa: E402

from maskwright.playground.questions import examples  # noqa: E402

FOLDER = ROOT / "docs" / "images"
MERMAID = "mermaid@11.17.2"
COMMANDS = {
    "lint": ("maskwright lint statements.lark", ""),
    "explain": ("printf 'x = (1, 2]\\n' | maskwright explain lark:python --text -", "x = (1, 2]\n"),
}
"""Picture -> the command that it shows, and what the command reads."""
THEMES = {"light": {"theme": "neutral"}, "dark": {"theme": "dark"}}
FLOWCHART = {"htmlLabels": False, "nodeSpacing": 14, "rankSpacing": 36, "padding": 6, "diagramPadding": 4}


def printed(name: str) -> str:
    """What a command prints, 100 characters a line."""
    command, text = COMMANDS[name]
    with tempfile.TemporaryDirectory() as folder:
        grammar = next(each for each in examples() if each.title == "with findings").constraint
        (Path(folder) / "statements.lark").write_text(grammar, encoding="utf-8")
        arguments = [sys.executable, "-m", *command.split("| ")[-1].split()]
        done = subprocess.run(arguments, cwd=folder, input=text, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout.rstrip()


def terminal(name: str) -> str:
    """A picture of a terminal, which loads no font from elsewhere."""
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text.assemble(("$ ", "green"), (COMMANDS[name][0], "bold")))
    console.print(Text(printed(name)))
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace("Fira Code, ", "")
    svg = console.export_svg(title=f"maskwright {name}", code_format=plain, unique_id=name)
    return re.sub(r"[ \t]+$|^\s*\n", "", svg, flags=re.MULTILINE) + "\n"


def diagram() -> str:
    """ARCHITECTURE.md's diagram, as text."""
    return (FOLDER / "architecture.mmd").read_text("utf-8")


def digest() -> str:
    """Of the diagram's text; its pictures have it in a comment."""
    return hashlib.sha256(diagram().encode()).hexdigest()[:16]


def write_diagrams() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        subprocess.run(["npm", "pack", "--silent", MERMAID], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(folder.glob("*.tgz"))) as archive:
            member = archive.extractfile("package/dist/mermaid.min.js")
            assert member
            script = member.read().decode()
        with browser(folder / "profile") as page:
            page.size(1280, 900)
            page.value(script + ";0")
            for scheme, theme in THEMES.items():
                options = json.dumps({"startOnLoad": False, "htmlLabels": False, "flowchart": FLOWCHART, **theme})
                page.value(f"mermaid.initialize({options}); 0")
                svg = page.value(f"mermaid.render('architecture', {json.dumps(diagram())}).then((made) => made.svg)")
                svg = re.sub(r" data-(points|id|look|et)=\"[^\"]*\"", "", svg)
                svg = re.sub(r"(\.\d)\d+", r"\1", svg)
                (FOLDER / f"architecture-{scheme}.svg").write_text(f"<!-- {digest()} -->\n{svg}\n", encoding="utf-8")


def main() -> None:
    for name in COMMANDS:
        (FOLDER / f"{name}.svg").write_text(terminal(name), encoding="utf-8")
    if "--terminal" not in sys.argv:
        write_diagrams()


if __name__ == "__main__":
    main()
