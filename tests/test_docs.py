"""What the pages under docs/, README and ARCHITECTURE show is what the code prints, and what they name is there. Figures: test_figures."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import one_token
import pytest
from paths import ROOT
from shares import share

import maskwright as mw
from maskwright.analysis.loading import load_grammar
from maskwright.models import model_folder

PAGES = [
    "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]  # fmt: skip
MODULES = {
    "setup.py",
    *(
        path.name
        for top in ("analysis", "maskstore", "decoding", "src", "tests", "scripts", "website")
        for path in (ROOT / top).rglob("*.py")
    ),
}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
"""A Python block, and what it prints if a block without a language follows at once."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[tuple[str, str | None]]:
    """The Python blocks of a page, each with what it prints, or None where the page does not show it."""
    return [(found[1], found[2]) for found in BLOCK.finditer(page(name))]


def printed(code: str, names: dict[str, Any]) -> str:
    """What a block prints. names : what the blocks before it have defined; changed."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "<block>", "exec", dont_inherit=True), names)
    return out.getvalue()


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Files are there, and headings of pages too."""
    folder = (ROOT / name).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", page(name)):
        path, _, heading = target.partition("#")
        if ":" in path:
            continue
        assert (folder / path).exists(), f"{name} links to {target}"
        if heading:
            assert heading in anchors((folder / path if path else ROOT / name).read_text()), f"{name} links to {target}"


@pytest.mark.parametrize("name", PAGES)
def test_files_that_are_named_are_there(name: str) -> None:
    """Records, files and folders of the repository; on contributors' pages also modules by their names alone."""
    text = page(name)
    for record in re.findall(r"reports/record/[\w.-]+\.json", text):
        assert (ROOT / record).is_file(), f"{name} names {record}"
    tops = "analysis|maskstore|decoding|src|tests|reports|scripts|website|proofs|notebooks|docs"
    for path in re.findall(rf"`((?:{tops})/[\w./-]*)`", text):
        assert (ROOT / path).exists(), f"{name} names {path}"
    if name == "ARCHITECTURE.md" or name.startswith("docs/internals/"):
        for file in re.findall(r"`(\w+\.py)`", text):
            assert file in MODULES, f"{name} names {file}"


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_are_python(name: str) -> None:
    for code, _ in blocks(name):
        ast.parse(code)


@pytest.mark.parametrize("name", PAGES)
def test_public_names_are_there(name: str) -> None:
    """`mw.load_schema` is one of the package, and a matcher and a store can do what is said of them."""
    text = page(name)
    if name == "docs/front-ends.md":
        text = re.sub(r"^\|[^|]*\|", "", text, flags=re.MULTILINE)  # the names of others
    things = {"mw": mw, "matcher": mw.Matcher, "store": mw.Store}
    for thing, attribute in re.findall(r"`(mw|matcher|store)\.(?!py`)(\w+)", text):
        assert hasattr(things[thing], attribute), f"{name} names {thing}.{attribute}"


def test_each_page_is_in_the_index_once() -> None:
    """docs/README.md, from which the website's navigation is made. Pages of grammars are below theirs."""
    links = re.findall(r"^- \[.*\]\(([^)\s]+)\)", page("docs/README.md"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert len(links) == len(set(links))
    assert {link for link in links if not link.startswith("..")} == {
        name for name in pages if not name.startswith("grammars/") or name == "grammars/README.md"
    }


def test_each_page_says_first_whom_it_is_for() -> None:
    """But for the index, and the pages of single grammars."""
    for name in PAGES:
        if name.startswith("docs/") and name != "docs/README.md" and not re.match(r"docs/grammars/(?!README)", name):
            assert page(name).split("\n\n", 1)[1].startswith("This page is for "), name


@pytest.mark.parametrize(
    "name",
    [
        *("docs/semantics.md", "docs/grammar-howto.md", "docs/json-schema.md", "docs/front-ends.md"),
        *("docs/troubleshooting.md", "docs/verify.md"),
    ],
)
def test_pages_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block in turn, in one namespace. Those of an audit need another engine."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown_blocks = [block for block in blocks(name) if "audit" not in block[0] and "class Session" not in block[0]]
    assert shown_blocks
    for code, shown in shown_blocks:
        assert printed(code, names) == (shown or ""), code


@pytest.mark.parametrize(
    "name",
    share(
        [f"docs/{name}.md" for name in ("quickstart", "composition", "generation", "restrictions", "internals/engine")],
        2,
    ),
)
def test_pages_with_a_model_print_what_they_show(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page shows no output, its block runs."""
    pytest.importorskip("transformers")
    pytest.importorskip("pydantic")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code, shown in blocks(name):
        found = printed(code, names)
        assert shown is None or found == shown, code


class _Stop(Exception):
    """Ends a loop of a page that has no end."""


@pytest.mark.slow
def test_loops_of_serving_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """transformers, and a loop of one's own: with the bundled model, and with a sampler that ends soon."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    of_transformers, of_a_loop = (
        code for code, _ in blocks("docs/serving.md") if "model.generate" in code or "while True" in code
    )
    names: dict[str, Any] = {"FOLDER": model_folder()}
    exec(of_transformers.replace("lark:python", "json").replace("=200", "=8"), names)
    assert len(names["endings"]) == 2

    store = mw.build_store("json.compact", "python-tiny")
    texts = [b"", b""]

    def sample(logits: Any) -> Any:
        """The number 1, then the end."""
        tokens = [next(token for token in wanted if row[token] == 0) for row in logits.tolist()]
        for slot, token in enumerate(tokens):
            texts[slot] += store.vocabulary.tokens[token]
        logits.zero_()
        return torch.tensor(tokens)

    def hand_over(slot: int) -> None:
        assert json.loads(texts[slot]) == 1
        raise _Stop

    wanted = [*store.vocabulary.eos, store.vocabulary.tokens.index(b"1")]
    logits = torch.zeros(2, store.vocabulary.size)
    with pytest.raises(_Stop):
        exec(of_a_loop, {"store": store, "n_slots": 2, "logits": logits, "sample": sample, "hand_over": hand_over})


def test_one_token_goes_the_way_that_is_shown() -> None:
    """The way of a token that docs/internals/mask.md shows is what tests/support/one_token.py prints."""
    text = page("docs/internals/mask.md")
    for way in one_token.both_ways().split("\n\n"):
        assert f"```\n{way}\n```\n" in text


def test_the_picture_is_true() -> None:
    """README's picture: the row of bits over the tokens is that of the first way; nothing is fetched from elsewhere."""
    text = (ROOT / "docs" / "mask-step.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert not re.search(r"href|url\((?!#)|@import|<script", text)
    space = "{http://www.w3.org/2000/svg}"
    drawn = [
        [(label.text or "").replace("␣", " ") for label in group.iter(f"{space}text")]
        for group in root.iter(f"{space}g")
        if group.get("class") == "token"
    ]
    (row,) = re.findall(r"^row +([01 ]+)$", one_token.both_ways().split("\n\n")[0], re.MULTILINE)
    assert [token for token, _ in drawn] == [*(token.decode() for token in one_token.TOKENS), "</s>"]
    assert [bit for _, bit in drawn] == row.split()


def test_the_reading_order_has_twelve_files() -> None:
    order = page("ARCHITECTURE.md").split("## Reading order")[1].split("\n## ")[0]
    files = re.findall(r"^\d+\. `([^`]+)`", order, re.MULTILINE)
    assert len(files) == 12 and all((ROOT / file).is_file() for file in files)


def test_every_folder_has_its_paragraph() -> None:
    text = page("ARCHITECTURE.md")
    for top in ("analysis", "maskstore", "decoding"):
        for folder in (path.parent for path in (ROOT / top).glob("*/__init__.py")):
            assert f"**`{top}/{folder.name}/`**" in text


def test_the_options_are_those_of_the_code() -> None:
    """docs/grammar-howto.md has a line for each option."""
    from maskwright.analysis.grammar.options import KEYS

    shown = re.findall(r"^\| `// maskwright: (\w+) ", page("docs/grammar-howto.md"), re.MULTILINE)
    assert shown == [*KEYS, "length", "restriction"]


def test_records_of_the_oracle_follow_the_grammars_conflicts() -> None:
    for kind in ("oracle_agreement", "engine_replay-mistral-7b-v0.1", "engine_replay-tekken"):
        named = re.search(rf"reports/record/[\d-]+-{re.escape(kind)}\.json", page("docs/measurements.md"))
        assert named is not None
        record = json.loads((ROOT / named[0]).read_text(encoding="utf-8"))
        for facts in record.get("comparisons", [record]):
            assert facts["conflicts"] == load_grammar("lark:python").conflicts
            assert not facts.get("disagreements") and not facts.get("false_refusals")


def test_the_tables_page_is_the_schema() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_table_page.py"))
    assert page("docs/internals/table.md") == script["page"](), "run scripts/make_table_page.py"
