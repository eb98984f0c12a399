"""The API reference by task: which public names do a thing, each with the first sentence of its docstring.

Out: docs/api.md (`python website/api.py`), which a test compares, and for the website a page for each task with the whole
docstrings, in reStructuredText.
"""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from pathlib import Path

import maskwright as mw

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api.md"
TASKS = {
    "Say what a text may be": "load_schema load_regex load_choice load_grammar parse_grammar read_constraint read_llguidance "
    "read_tools read_structural_tag compose read_composition in_json_string special_token JsonSchema "
    "Regex Grammar Terminal Layout Indenter normalise Composition",
    "Read a tokenizer": "load_vocabulary Vocabulary load_canonical CanonicalTokens",
    "Compile it, keep it, load it": "build_store cached_store save_store load_store store_info build_index Store SchemaStore "
    "ComposedStore EntryStore TokenIndex",
    "Mask logits": "MaskwrightLogitsProcessor Matcher Batch apply_mask ResidentRows GpuBatch ReferenceDecoder",
    "Write a text with a model": "load_model complete generate Completion Intervention "
    "forced_tokens tokenize_partial retokenise TokenCounts",
    "Find out what is wrong": "lint_grammar lint_schema Explanation validate ValidationReport verify VerificationReport",
    "Study a grammar": "analyze AnalysisReport interchange_classes subterminal_tree build_follow_graph Deciders Judge Verdict Explainer",
    "Catch an error": "MaskwrightError GrammarError TerminalError EmptyLanguageError SchemaError EmptySchemaError NestingError LimitError "
    "BackupError UnusedPartError VocabularyError UnknownNameError StoreError CertificateError CorpusError "
    "MissingExtraError IllegalTokenError DeadEndError OutOfTimeError BusyError CancelledError "
    "NoProcessError WorkerError MaskwrightWarning",
}
"""Task -> the public names for it, the most useful first. Each name stands once."""

INTRODUCTION = """\
# API reference by task

This page is for those who write programs with maskwright: each public name, made from the docstrings by
`python website/api.py`. All are in the package:
`import maskwright as mw`, then `mw.load_schema`. `help(mw.load_schema)` shows the parameters, the
errors and the cost.
"""
METHODS = {
    "Store": "### What a store does\n\nThe stores of grammars, schemas, patterns and compositions have most of these.",
    "Matcher": "### What a matcher does\n\nThose of grammars, schemas, patterns and compositions have these methods and properties.",
    "Batch": "### What a batch does\n\nA slot is the number of a text, from 0.",
}
INTERNAL = {
    "become",
    "check_bitmask",
    "hold_as",
    "holds_names",
    "is_final",
    "loaded_from",
    "n_bytes",
    "of",
    "said",
    "texts",
    "try_fill",
}
"""What servers and other parts of the package ask for."""


def summary(thing: object) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join(re.split(r"\n(?=\n|[\w, ]+ : )", inspect.cleandoc(thing.__doc__ or ""))[0].split())
    found = re.match(r".*?[^.]\.(?= [A-Z`]|$)", first)
    return (found[0] if found else first).replace("|", r"\|")


def table(things: dict[str, object]) -> list[str]:
    """A Markdown table of names, each with what its docstring says first."""
    return ["", "| name | |", "|---|---|", *(f"| `{name}` | {summary(thing)} |" for name, thing in things.items())]


def methods(name: str) -> dict[str, object]:
    """The methods and properties of a class: `matcher.fill`, ... name : of the class."""
    kind = getattr(mw, name)
    found = {each: getattr(kind, each) for each in dir(kind) if each[0] != "_" and each not in INTERNAL}
    return {
        f"{name.lower()}.{each}": thing
        for each, thing in found.items()
        if callable(thing) or isinstance(thing, property | cached_property)
    }


def reference() -> str:
    """docs/api.md"""
    lines = [INTRODUCTION.rstrip()]
    for task, names in TASKS.items():
        lines += ["", f"## {task}", *table({name: getattr(mw, name) for name in names.split()})]
        for name in names.split():
            if name in METHODS:
                lines += ["", METHODS[name], *table(methods(name))]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """The website's pages, one for each task. folder : made here."""
    folder.mkdir()
    for number, (task, names) in enumerate(TASKS.items(), 1):
        kinds = [(name, _kind(getattr(mw, name))) for name in names.split()]
        (folder / f"{number}-{task.lower().replace(',', '').replace(' ', '-')}.rst").write_text(
            page(task, kinds), encoding="utf-8"
        )


def _kind(thing: object) -> str:
    if not isinstance(thing, type):
        return "function"
    return "exception" if issubclass(thing, Exception) else "class"


def page(title: str, kinds: list[tuple[str, str]]) -> str:
    """kinds : names, each with "class", "exception" or "function"."""
    lines = [title, "=" * len(title), "", ".. currentmodule:: maskwright", ""]
    lines += [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name, _ in kinds), ""]
    for name, kind in kinds:
        lines += [name, "-" * len(name), "", f".. auto{kind}:: {name}"]
        lines += ["" if kind == "function" else "   :inherited-members: Exception, BaseException", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
