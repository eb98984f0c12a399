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
PICTURE = re.compile(r"^<picture>.*architecture-light.*</picture>$", re.MULTILINE)

DIAGRAM = "\n".join(
    f"```{{image}} docs/images/architecture-{scheme}.svg\n:class: only-{scheme} wide\n:target: _images/architecture-{scheme}.svg\n"
    ":alt: The folders and what goes from one to the other\n```"
    for scheme in ("light", "dark")
)
"""What stands there for ARCHITECTURE.md's picture, by scripts/site_pictures.py."""

PICTURES = {
    "The playground": {
        "playground-light.png": "A grammar with findings, and a text that stops being legal",
        "playground-dark.png": "A completion under the mask and beside it without, in the dark",
        "playground-narrow.png": "The page at 400 pixels",
    },
    "`maskwright lint`": {"lint.svg": "What is wrong with a grammar"},
    "`maskwright explain`": {"explain.svg": "Why a text is refused"},
}

INDEX = "docs/README.md"
"""The page whose headings are the captions of the navigation, and whose links are the pages below them."""
UNDER = {
    "docs/api": "api/*",
    "docs/grammars/README": "docs/grammars/*",
    "docs/measurements": "reports/README",
    "reports/README": "reports/*",
    "docs/commands": "docs/pictures",
    "notebooks/README": "notebooks/*",
}
"""Page -> a pattern of the pages below it."""


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
        path.write_text(PICTURE.sub(DIAGRAM, text), encoding="utf-8")


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


def groups() -> dict[str, list[str]]:
    """Caption -> pages without suffix, in the order of docs/README.md."""
    found = {}
    for part in (ROOT / INDEX).read_text(encoding="utf-8").split("\n## ")[1:]:
        links = [os.path.normpath(Path(INDEX).parent / link) for link in LINK.findall(part)]
        found[part.partition("\n")[0]] = [link.removesuffix(".md") for link in links]
    return found


def write_navigation(staged: Path) -> None:
    """Append the tables of contents, which the pages do not show, to the pages that they stand on."""
    found = groups()
    first = next(iter(found))
    found[first].insert(0, INDEX.removesuffix(".md"))
    with (staged / "index.md").open("a", encoding="utf-8") as out:
        for caption, names in found.items():
            out.write(_toctree(names, f":caption: {caption}\n"))
    for page, pattern in UNDER.items():
        files = sorted(path for ext in ("md", "rst", "ipynb") for path in staged.glob(f"{pattern}.{ext}"))
        names = [path.relative_to(staged).with_suffix("").as_posix() for path in files]
        with (staged / f"{page}.md").open("a", encoding="utf-8") as out:
            out.write(_toctree([name for name in names if name != page], ""))


def _toctree(names: list[str], options: str) -> str:
    lines = "\n".join(f"/{name}" for name in names)
    return f"\n```{{toctree}}\n:hidden:\n{options}\n{lines}\n```\n"
