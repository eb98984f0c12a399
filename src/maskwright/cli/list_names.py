"""`maskwright list`: which grammars and tokenizers have names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from maskwright.cli.command import command
from maskwright.cli.common import check_writable, write_json


@command("list", epilog="Example: maskwright list --json -")
def list_names(*, json_file: Path | None = None) -> None:
    """The grammars and tokenizers that have names: what GRAMMAR and --tokenizer take besides files."""
    check_writable(json_file)
    facts = {"grammars": _grammars(), "tokenizers": _tokenizers()}
    if write_json(json_file, facts):
        console = Console(highlight=False)
        for title, column, rows in (
            ("grammars", "language", [(each["name"], each["language"]) for each in facts["grammars"]]),
            ("tokenizers", "from", [(each["name"], _origin(each)) for each in facts["tokenizers"]]),
        ):
            table = Table(box=None, pad_edge=False)
            table.add_column(title, no_wrap=True)
            table.add_column(column, overflow="fold")
            for name, said in rows:
                table.add_row(Text(name), Text(said))
            console.print(table)
            console.print()


def _grammars() -> list[dict[str, Any]]:
    """Each grammar's name and language; the language is the first clause of the file's comment."""
    from maskwright.analysis.loading.names import grammar_text, known_grammars

    found = []
    for name in known_grammars():
        own = not name.startswith("lark:")
        language = (
            _first_clause(grammar_text(name)) if own else f"{name.removeprefix('lark:')}.lark of Lark's own wheel"
        )
        found.append({"name": name, "language": language})
    return found


def _first_clause(text: str) -> str:
    """The first clause of the comment that a grammar's file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    comment = " ".join(lines)
    end = re.search(r"[^.][.:;](?=\s|$)", comment)
    return comment[: end.end() - 1] if end else comment


def _tokenizers() -> list[dict[str, Any]]:
    import importlib.util

    from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN

    return [
        {"name": name, "package": package, "installed": importlib.util.find_spec(package) is not None}
        for name, (package, _) in BUILT_IN.items()
    ]


def _origin(tokenizer: dict[str, Any]) -> str:
    hint = "" if tokenizer["installed"] else ", which is not installed: pip install 'maskwright[tokenizers]'"
    return f"package {tokenizer['package']}{hint}"
