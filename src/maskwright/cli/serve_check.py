"""`maskwright serve-check`: will a model be served under a grammar as it should?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from maskwright.cli.command import command
from maskwright.cli.common import check_writable, show
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, option_of, path_or_text, syntax_of, text_of

if TYPE_CHECKING:
    from maskwright.servecheck.runtimes import Asked

_EPILOG = """Example: maskwright serve-check models/qwen --grammar answer.json

Exit codes: 0 fit to serve; 1 something is wrong; 2 usage or bad input; 130 interrupted."""


@command("serve-check", epilog=_EPILOG)
def serve_check(
    model: str,
    *,
    grammar: str,
    options: GrammarOptions = DEFAULTS,
    tokens: Annotated[int, {"min": 0, "max": 1000}] = 8,
    json_file: Path | None = None,
) -> None:
    """Check a model's folder before it is served: tokens, ends, padding, the store, and what each installed runtime would do.

    model MODEL_FOLDER : A model's folder, as save_pretrained writes it; or a .gguf file.
    grammar -g G : A grammar, a JSON schema, a pattern (--from regex) or a composition.
    tokens N : How many tokens the model writes, if there is one; 0 for none.
    """
    from maskwright.servecheck import check_serving

    check_writable(json_file, inputs=(grammar,), model=model)
    constraint: Any = options.read(grammar)
    asked, text = _request(grammar, options)
    console = Console(stderr=True)
    with console.status("reading") as status:
        report = check_serving(model, constraint, asked, text, tokens, lambda what: status.update(what))
    show(report, json_file, report.passed)


def _request(source: str, options: GrammarOptions) -> tuple[Asked, str]:
    """How a server's request brings a constraint, and its text there."""
    from maskwright.analysis.loading.names import known_grammars
    from maskwright.servecheck.runtimes import Asked

    syntax = syntax_of(source, options)
    kind = {"schema": "json", "regex": "regex", "choice": "choice"}.get(syntax, "grammar")
    given = [name for name in options._fields if name not in ("syntax", "whitespace") and getattr(options, name)]
    refusal = f"it has no {option_of(given[0])}: write the option into the grammar, or serve a store" if given else ""
    if source in known_grammars():
        return Asked(kind, source, refusal, is_name=True), source
    text = text_of(source)
    if kind == "choice":
        text = json.dumps(text.splitlines())
    elif kind == "regex":
        text = text.removesuffix("\n").removesuffix("\r")
    shown = source if path_or_text(source) is not source else "the constraint"
    return Asked(kind, shown, refusal), text
