"""What maskwright does, in half a minute: `make demo` runs it in an environment without PyTorch.

python scripts/demo.py [FOLDER]

The report is written to the folder, by default out. Python's own parsers judge the texts, so that any Python that the package has will do.
"""

from __future__ import annotations

import ast
import json
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwright as mw
from maskwright.report.figures import sentences

SCHEMA = {
    "title": "Ticket",
    "type": "object",
    "properties": {
        "subject": {"type": "string"},
        "kind": {"enum": ["bug", "question", "feature"]},
        "priority": {"enum": ["low", "medium", "high"]},
        "resolved": {"type": "boolean"},
    },
    "required": ["subject", "kind", "priority", "resolved"],
    "additionalProperties": False,
}
OBJECT = '{"subject": "The login page crashes", "kind": "'
FUNCTION = '''class Stack:
    """A last-in, first-out list."""

    def push(self, item):
'''
FILES = ("json/*.py", "heapq.py", "bisect.py", "queue.py", "textwrap.py")
"""Files of the standard library that are replayed."""


def title(number: int, text: str) -> None:
    print(f"\n{number}. {text}\n{'-' * (len(text) + 3)}")


def verdict(judge: Callable[[str], Any], text: str) -> str:
    """What a parser says of a text, in a word and why."""
    try:
        judge(text)
    except (SyntaxError, ValueError) as error:
        return f"WRONG, says {judge.__module__}.{judge.__name__}: {error}"
    return f"right, says {judge.__module__}.{judge.__name__}"


def complete(what: str, store: Any, prompt: str, model: Any, judge: Callable[[str], Any], max_tokens: int) -> None:
    """Print what a model makes of a prompt, without masks and with."""
    print(f"{what}. The prompt:\n\n{shown(prompt)}\n")
    for heading, constrained in (("without masks", False), ("with masks", True)):
        found = mw.complete(store, prompt, model, max_tokens=max_tokens, constrained=constrained, close=constrained)
        text = prompt + found.data.decode(errors="replace")
        print(f"{heading}: {verdict(judge, text)}\n\n{shown(found.data.decode(errors='replace'))}\n")


def shown(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join(f"    | {line}" for line in [*lines[:5], *["..."] * (len(lines) > 5)])


def explain(store: Any) -> None:
    """Print the mask behind a beginning, and why a token is not in it."""
    matcher, begin = store.matcher(), OBJECT + 'bug", "priority": "'
    matcher.advance_bytes(begin.encode())
    allowed = matcher.allowed_tokens(as_bytes=True)
    some = ", ".join(repr(token.decode()) for token in sorted(allowed, key=len)[:12])
    print(f"Behind {begin} {len(allowed)} of {store.vocabulary.size:,} tokens may come: {some}\n")
    print(matcher.explain(store.vocabulary.tokens.index(b"f")))


def validate(store: Any) -> None:
    """Print whether the masks allow each next token of files that are Python for sure."""
    library = sysconfig.get_path("stdlib")
    report = mw.validate(store, [f"{library}/{name}" for name in FILES], tokenizer="python-tiny")
    said = "all allowed" if report.passed else f"{report.n_failures} of them refused"
    print(f"{sum(report.classes.values())} files of the standard library, {report.figures['tokens']:,} tokens: {said}")


def analyze(folder: Path) -> None:
    """Write the report on a grammar, and print its three most telling lines."""
    report = mw.analyze("lark:python", "python-tiny", pairs=False)
    path = folder / "report.html"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(report.to_html(), encoding="utf-8")
    print("Lark's python.lark:", *sentences(report.facts), sep="\n")
    print(f"the report: {path.resolve().as_uri()}")


def main() -> None:
    begin = time.perf_counter()
    model = mw.load_model()
    style = mw.load_schema(SCHEMA, style="json.dumps", key_order="schema")
    of_schema = mw.build_store(style, model.vocabulary)
    title(1, "A small language model writes, without masks and with")
    complete("A support ticket, as of README", of_schema, OBJECT, model, json.loads, 40)
    python = mw.cached_store("python", model.vocabulary)
    complete("A Python class", python, FUNCTION, model, ast.parse, 40)
    title(2, "A mask, and why a token is not in it")
    explain(of_schema)
    title(3, "Are the masks right? Each next token of real files must be allowed")
    validate(python)
    title(4, "What is known of a grammar before any text")
    analyze(Path(sys.argv[1] if len(sys.argv) > 1 else "out"))
    print(f"\n{time.perf_counter() - begin:.0f} s. More: .venv/bin/maskwright --help, README.md")


if __name__ == "__main__":
    main()
