"""Gathers the repository's own pages for Sphinx, in their folders, so that their links go on working.

A link to a file that is no page, such as a grammar, leads to a page that shows the file. The notebooks come as they are, and run when
Sphinx reads them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOP = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "proofs/README.md")
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```\n", re.DOTALL | re.MULTILINE)

DIAGRAM = "\n".join(
    f"```{{image}} docs/images/architecture-{scheme}.svg\n:class: only-{scheme} wide\n:target: _images/architecture-{scheme}.svg\n"
    ":alt: The folders and what goes from one to the other\n```"
    for scheme in ("light", "dark")
)
"""What stands for ARCHITECTURE.md's diagram: pictures by scripts/site_pictures.py."""

PICTURES = {
    "The playground": {
        "playground-light.png": "A grammar with findings, and a text that stops being legal",
        "playground-dark.png": "A completion under the mask and beside it without, in the dark",
        "playground-narrow.png": "The page at 400 pixels",
    },
    "`maskwright lint`": {"lint.svg": "What is wrong with a grammar"},
    "`maskwright explain`": {"explain.svg": "Why a text is refused"},
}

NAVIGATION = {
    "Use": ["docs/commands", "docs/grammar-howto", "docs/json-schema", "docs/front-ends", "docs/composition"],
    "Serve": ["docs/serving", "docs/serving-*", "docs/generation", "docs/canonical", "docs/gpu", "docs/selective"],
    "Check": ["docs/playground", "docs/pictures", "docs/linting", "docs/explain", "docs/verify", "docs/audit"],
    "Know": [
        "docs/semantics",
        "docs/measurements",
        "docs/sources",
        "reports/README",
        "docs/glossary",
        "docs/*",
        "docs/grammars/README",
    ],
    "Notebooks": ["notebooks/*"],
    "Reference": ["api/stores", "api/analysis", "api/maskstore", "api/decoding", "api/*"],
    "Project": ["ARCHITECTURE", "docs/internals/*", "proofs/README", "CONTRIBUTING", "CHANGELOG", "SECURITY"],
}
"""Captions of the navigation, each with pages and patterns. A pattern takes what no one has taken before."""
UNDER = {"docs/grammars/README": ["docs/grammars/*"], "reports/README": ["reports/*"]}
"""Page -> the pages below it."""


def gather(staged: Path) -> None:
    """Copy pages, pictures, notebooks and records. staged : an empty folder."""
    for top in TOP:
        (staged / top).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / top, staged / top)
    (staged / "README.md").rename(staged / "index.md")
    for folder in ("docs", "notebooks"):
        shutil.copytree(ROOT / folder, staged / folder, ignore=shutil.ignore_patterns(".*"))
    (staged / "reports").mkdir()
    for picture in (ROOT / "reports").glob("*.svg"):
        shutil.copy(picture, staged / "reports")
    shutil.copytree(ROOT / "reports" / "record", staged / "reports" / "record")
    write_pictures(staged / "docs" / "pictures.md")
    for path in sorted(staged.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        here = path.parent.relative_to(staged)
        text = LINK.sub(lambda found, here=here: _target(staged, here, found[1]), text)  # type: ignore[misc]
        path.write_text(MERMAID.sub(DIAGRAM, text), encoding="utf-8")


def _target(staged: Path, here: Path, target: str) -> str:
    """A link's target; where it is a file of the repository that is not staged, a page is made that shows it."""
    path = Path(os.path.normpath(here / target))
    if path == Path("README.md"):
        return target.replace("README", "index")
    if (staged / path).exists() or not (ROOT / path).exists():
        return target
    page = staged / f"{path}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    files = sorted((ROOT / path).rglob("*.*")) if (ROOT / path).is_dir() else [ROOT / path]
    shown = [f"---\norphan: true\n---\n# {path}\n"]
    for file in files:
        name = "" if len(files) == 1 else f"## {file.relative_to(ROOT)}\n\n"
        language = {".py": "python", ".json": "json", ".lark": "ebnf"}.get(file.suffix, "none")
        shown.append(f"{name}`````{{code-block}} {language}\n:force:\n\n{file.read_text(encoding='utf-8')}\n`````\n")
    page.write_text("\n".join(shown), encoding="utf-8")
    return f"{target}.md"


def write_pictures(page: Path) -> None:
    """A page with the pictures of docs/images that show the commands and the playground."""
    parts = ["# Pictures\n", "What it looks like. Each is made by a script from the running program.\n"]
    for title, pictures in PICTURES.items():
        parts.append(f"## {title}\n")
        parts += [f"[![{about}](images/{name})](images/{name})\n\n*{about}.*\n" for name, about in pictures.items()]
    page.write_text("\n".join(parts), encoding="utf-8")


def write_navigation(staged: Path) -> None:
    """Append the tables of contents, which the pages do not show, to the pages that they stand on."""
    taken = {"index", *(page for pages in NAVIGATION.values() for page in pages if "*" not in page)}
    with (staged / "index.md").open("a", encoding="utf-8") as out:
        for caption, patterns in NAVIGATION.items():
            out.write(_toctree(staged, Path(), patterns, taken, f":caption: {caption}\n"))
    for page, patterns in UNDER.items():
        with (staged / f"{page}.md").open("a", encoding="utf-8") as out:
            out.write(_toctree(staged, Path(page).parent, patterns, taken, ""))


def _toctree(staged: Path, here: Path, patterns: list[str], taken: set[str], options: str) -> str:
    found = []
    for pattern in patterns:
        if "*" not in pattern:
            found.append(pattern)
            continue
        files = sorted(path for ext in ("md", "rst", "ipynb") for path in staged.glob(f"{pattern}.{ext}"))
        names = [path.relative_to(staged).with_suffix("").as_posix() for path in files]
        found += [name for name in names if name not in taken]
        taken.update(names)
    lines = "\n".join(f"/{name}" for name in found)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{lines}\n```\n"
