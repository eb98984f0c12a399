"""What code each benchmark measures, and content hashes of it.

A record keeps the hashes of the day (`write_record`), and docs/internals/records.md says what has changed since.
Folders count with all below them.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_READ = ("analysis/grammar", "analysis/loading", "analysis/regex")
_PARSE = (*_READ, "analysis/lexing", "analysis/lr")
_TOKENS = ("maskstore/vocabulary", "maskstore/tokens")
_STORE = (*_PARSE, *_TOKENS, "maskstore/automaton", "maskstore/table", "src/maskwright/stores")
_ENGINE = ("decoding/engine", "decoding/matcher.py", "decoding/batch.py", "decoding/dead.py")
_ENTRIES = (*_PARSE, *_TOKENS, "analysis/legality", "maskstore/automaton", "maskstore/entries", "decoding/reference")
_SCHEMA = (
    "analysis/regex",
    "analysis/schema",
    "maskstore/schema",
    "maskstore/vocabulary",
    "decoding/schema",
    "decoding/reference",
    "src/maskwright/stores",
)
_GPU = (*_ENGINE, "maskstore/table", "decoding/gpu", "decoding/logits")

MEASURED: dict[str, tuple[str, ...]] = {
    "ahead": ("analysis/ahead.py", "analysis/jit.py", "analysis/kernel_sources.py", *_ENGINE, "decoding/names"),
    "canonical": ("maskstore/canonical", "maskstore/vocabulary", "decoding/generation"),
    "check_serving": (
        "src/maskwright/serving",
        "decoding/generation",
        *_ENGINE,
        *_SCHEMA,
        "decoding/composition",
        "decoding/tags",
        "decoding/endings",
    ),
    "check_wheels": ("src/maskwright/__init__.py", "analysis/ahead.py", "analysis/kernel_sources.py", *_ENGINE),
    "compiling": (*_STORE, "decoding/engine"),
    "compositions": (
        "analysis/composition",
        "maskstore/composition",
        "decoding/composition",
        "decoding/tags",
        *_ENGINE,
        *_SCHEMA,
    ),
    "domino": ("decoding/generation", "maskstore/canonical", *_STORE, *_ENGINE, *_SCHEMA),
    "engine_replay": (*_STORE, *_ENGINE),
    "exact_deciders": (*_PARSE, "analysis/legality"),
    "first_requests": ("src/maskwright/serving", *_SCHEMA),
    "forecast": (*_STORE, "src/maskwright/lint"),
    "forced": ("decoding/generation", "maskstore/canonical", *_ENGINE, *_SCHEMA),
    "generation_replay": ("decoding/generation", "maskstore/canonical", *_ENGINE, *_SCHEMA),
    "generation": ("decoding/generation", *_ENGINE, *_SCHEMA, "decoding/endings", "maskstore/canonical"),
    "gpu": _GPU,
    "lookahead": (*_READ, "analysis/lexing", "decoding/names", *_ENGINE),
    "mask_equality": _ENTRIES,
    "masks": (*_STORE, *_ENGINE),
    "names": (
        "decoding/names",
        "src/maskwright/python_bindings.py",
        "src/maskwright/python_names.py",
        "decoding/generation",
        *_ENGINE,
    ),
    "oracle_agreement": (*_STORE, *_ENGINE),
    "perplexity": ("decoding/generation", "maskstore/canonical", *_ENGINE, *_SCHEMA),
    "post_counts": (*_ENTRIES, "src/maskwright/report"),
    "proof_mutations": ("analysis", "maskstore", "decoding"),
    "public_grammars": (
        "analysis/fronts",
        "analysis/dialects",
        "analysis/composition",
        "maskstore/composition",
        "decoding/composition",
        "decoding/endings",
        *_STORE,
        *_ENGINE,
        *_SCHEMA,
    ),
    "public_schemas": (*_SCHEMA, "src/maskwright/validation"),
    "pyformlang_agreement": (*_READ, "analysis/legality"),
    "reach": (*_STORE, *_ENGINE, "tests/support/byte_parser.py"),
    "regexes": ("analysis/regex", "maskstore/index", *_SCHEMA),
    "restrictions": ("analysis/restrict", *_STORE, *_ENGINE),
    "schema_coverage": _SCHEMA,
    "schema_orders": _SCHEMA,
    "schemas": _SCHEMA,
    "selective": ("decoding/logits", "decoding/adapters", *_ENGINE, *_SCHEMA),
    "serving_fill": ("src/maskwright/serving", *_ENGINE, *_SCHEMA),
    "streamlining": (*_ENTRIES, "src/maskwright/report"),
    "validation": (
        *_STORE,
        *_ENGINE,
        "decoding/endings",
        "decoding/generation",
        "src/maskwright/validation",
        "decoding/reference",
    ),
    "scaling": (*_STORE, *_ENGINE),
    "verify": ("maskstore/verify", "src/maskwright/verification.py", *_STORE),
    "verify_flips": ("maskstore/verify", "src/maskwright/verification.py", "decoding/endings", *_STORE, *_ENGINE),
}
"""By the script's name. Paths are in the repository."""

_LIBRARY = "analysis/loading/library/"


def script_of(command: str) -> str:
    """The name of the script that a record's command runs."""
    found = re.search(r"(\w+)\.py", command)
    assert found, command
    return found[1]


def measured(command: str) -> tuple[str, ...]:
    """What a command measures. Of the library's grammars only that which `reach` is asked about."""
    paths = sorted(dict.fromkeys(MEASURED[script_of(command)]))
    reached = re.search(r"reach\.py ([\w.]+)", command)
    if not reached:
        return tuple(paths)
    beside = re.findall(r"--beside (?!lark:)([\w.]+)", command)
    grammars = [f"{_LIBRARY}{name.replace('.', '/')}.lark" for name in (reached[1], *beside)]
    loading = [f"analysis/loading/{name}.py" for name in ("lark_loader", "indenter", "soft", "sources")]
    return tuple(sorted([*(path for path in paths if path != "analysis/loading"), *loading, *grammars]))


def hashes(command: str, root: Path = ROOT) -> dict[str, str]:
    """The content hash of each folder or file that a command measures; "" for what is not there."""
    return {path: content_hash(root / path) for path in measured(command)}


@cache
def content_hash(path: Path) -> str:
    """A hash of what the code below a path does: comments, docstrings, form and the words of errors make no difference."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    files = [
        file for file in files if file.suffix in (".py", ".lark", ".json") and not file.name.startswith("_compiled_")
    ]
    for file in files:
        digest.update(file.relative_to(path.parent).as_posix().encode() + b"\0" + _of_file(file))
    return digest.hexdigest()[:16] if files else ""


@cache
def _of_file(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".py":
        content = "\0".join(_said(ast.parse(content))).encode(errors="surrogatepass")
    return hashlib.sha256(content).digest()


def _said(node: ast.AST) -> Iterator[str]:
    """The tree in a line, the same under every Python: without places, what is empty, strings that are statements, and what is said in
    an error that is raised."""
    yield type(node).__name__
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        node = node.exc.func
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if isinstance(value, list) else [] if value is None else [value]:
            if (
                isinstance(child, ast.Expr)
                and isinstance(child.value, ast.Constant)
                and isinstance(child.value.value, str)
            ):
                continue
            yield name
            if isinstance(child, ast.AST):
                yield from _said(child)
            else:
                yield repr(child)
    yield ")"
