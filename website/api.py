"""The API reference: a page for each of the package's folders, with the public names that it defines. Out: reStructuredText."""

from __future__ import annotations

from pathlib import Path

import maskwright as mw

TITLES = {
    "errors": "Errors",
    "analysis": "Grammars and schemas",
    "maskstore": "Vocabularies and files",
    "decoding": "Masks and texts",
    "": "Stores, reports and completion",
}
"""Folder -> title of its page; "" is the package itself."""


def folder_of(name: str) -> str:
    parts = mw._HOME[name].split(".")[1:]
    if parts[-1] == "errors":
        return "errors"
    return parts[0] if parts[0] in TITLES else ""


def write(folder: Path) -> None:
    """folder : made here."""
    folder.mkdir()
    pages: dict[str, list[str]] = {each: [] for each in ("", "analysis", "maskstore", "decoding", "errors")}
    for name in sorted(mw.__all__, key=str.lower):
        pages[folder_of(name)].append(name)
    for each, names in pages.items():
        kinds = [(name, "class" if isinstance(getattr(mw, name), type) else "function") for name in names]
        (folder / f"{each or 'stores'}.rst").write_text(page(TITLES[each], kinds), encoding="utf-8")


def page(title: str, kinds: list[tuple[str, str]]) -> str:
    """kinds : names, each with "class" or "function"."""
    lines = [title, "=" * len(title), "", ".. currentmodule:: maskwright", ""]
    lines += [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name, _ in kinds), ""]
    for name, kind in kinds:
        lines += [name, "-" * len(name), "", f".. auto{'exception' if title == 'Errors' else kind}:: {name}"]
        lines += ["   :inherited-members: Exception, BaseException", ""] if kind == "class" else [""]
    return "\n".join(lines)
