"""`maskwright audit` of a JSON schema: one report for each engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.cli.common import progress_bars, write_json
from maskwright.cli.constraints import GrammarOptions, path_or_text, syntax_of


def is_schema(source: str) -> bool:
    """Whether what stands in the place of an engine is a JSON schema: a file, or its text."""
    is_text = source.lstrip().startswith("{")
    is_file = source.lower().endswith(".json") or os.path.isfile(source)
    return (is_text or is_file) and syntax_of(source, GrammarOptions()) == "schema"


def audit_of_schema(
    source: str,
    engines: Sequence[str],
    paths: Sequence[str],
    suffixes: Sequence[str],
    settings: dict[str, Any],
    json_file: Path | None,
) -> bool:
    """Audit engines on a schema, and print or write the reports.

    source : the schema's file or text.
    engines : names; of several, those that are not installed or refuse the schema are left out with
        a message.
    paths, suffixes : instances to begin with, one a file, or records.
    settings : for `audit_schema`.
    json_file : where the reports go as JSON, a list if there are several engines.

    Returns whether all engines that could be audited agree.
    Raises: as `audit_schema`, for one engine; MaskwrightError if none of several could be audited.
    """
    from maskwright.analysis.schema.load import load_schema
    from maskwright.audit.schema_run import audit_schema

    schema = load_schema(path_or_text(source), lenient=True)
    texts = _texts(paths, suffixes)
    reports, skipped = [], []
    console = Console()
    is_shown = json_file is None or str(json_file) != "-"
    for engine in engines:
        try:
            with progress_bars() as progress:
                report = audit_schema(schema, engine, texts=texts, progress=progress, **settings)
        except MaskwrightError as error:
            # without jsonschema none of them can be audited
            is_theirs = isinstance(error, MissingExtraError) or str(error).startswith("engine ")
            if len(engines) == 1 or not is_theirs or "jsonschema is not" in str(error):
                raise
            skipped.append((engine, " ".join(str(error).split())))
            continue
        reports.append(report)
        if is_shown:
            console.print(report)
            console.print()
    if not reports:
        said = "; ".join(why for _, why in skipped)
        raise MaskwrightError(f"no engine could be audited: {said}")
    for engine, why in skipped:
        Console(stderr=True, soft_wrap=True).print(f"{engine}: skipped: {why}", markup=False, highlight=False)
    if json_file is not None:
        found = [report.to_dict() for report in reports]
        skips = [{"engine": engine, "skipped": why} for engine, why in skipped]
        write_json(json_file, found[0] if len(engines) == 1 else {"reports": found, "skipped": skips})
    return all(report.agrees for report in reports)


def _texts(paths: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """The texts of some files, each an instance. Raises: CorpusError for one that cannot be read."""
    from maskwright.validation.corpus import CorpusError, Text, find_corpus

    if not paths:
        return []
    found = []
    for text in find_corpus(paths, tuple(suffixes) or (".json",)):
        if not isinstance(text, Text):
            raise CorpusError(f"{text.name}: {text.reason}")
        found.append(text.text)
    return found


__all__ = ["audit_of_schema", "is_schema"]
