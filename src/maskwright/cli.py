"""The command line: `maskwright analyze | export | info`.

Exit codes: 0 fine, 2 usage or bad input (nothing is written), 130 interrupted.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from maskwright.analysis.errors import MaskwrightError

if TYPE_CHECKING:
    from maskwright.analysis.grammar import Grammar
    from maskwright.maskstore.automaton_store import AutomatonStore
    from maskwright.maskstore.store import MaskStore
    from maskwright.maskstore.vocabulary import Vocabulary

app = typer.Typer(
    name="maskwright",
    help="Grammar analysis and mask-store optimisation for grammar-constrained decoding.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

GrammarArgument = Annotated[
    str, typer.Argument(metavar="GRAMMAR", help="A .lark file, or lark:NAME for a grammar of Lark's own wheel.")
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        "-t",
        metavar="T",
        help="A built-in name (mistral-7b-v0.1, mistral-7b-v0.3, tekken), or a path to a tokenizer.json, *.model, tekken*.json, "
        "*.tiktoken file or a folder with one.",
    ),
]
StartOption = Annotated[str | None, typer.Option("--start", metavar="RULE", help="The start symbol.")]
LexingOption = Annotated[
    Literal["longest", "contextual", "nfa"],
    typer.Option("--lexing", help="The lexer semantics; see Grammar. nfa has entries and the reference decoder only."),
]
ConflictsOption = Annotated[
    Literal["all", "shift"],
    typer.Option("--conflicts", help="What the parser does with LALR conflicts: follow all, or shift as Lark does."),
]
RulesOption = Annotated[
    Literal["normalised", "lark"],
    typer.Option("--rules", help="Lexing nfa: what always-verdicts are judged on; the normalised rules prove more."),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the facts as JSON; - for standard output.")
]
RefreshOption = Annotated[bool, typer.Option("--refresh", help="Build anew even if the cache holds the store.")]


def main() -> None:
    """The console script."""
    app()


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn what users can cause into a message on standard error and exit code 2; Ctrl-C into 130."""
    try:
        yield
    except MaskwrightError as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", markup=False, highlight=False, style="red")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; nothing was written")
        raise typer.Exit(130) from None


@contextmanager
def progress_bars() -> Iterator[Any]:
    """A progress callback (what, done, total) that draws bars on standard error while it is a terminal."""
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}
        preparing = bars.add_task("preparing (a first run compiles kernels, for some seconds)", total=None)

        def report(what: str, done: int, total: int) -> None:
            bars.update(preparing, visible=False)
            if what not in tasks or bars.tasks[tasks[what]].finished:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    from maskwright.maskstore.fileformat import replace_file

    replace_file(path, text.encode("utf-8"))


def write_json(target: Path, facts: Any) -> None:
    """Facts as JSON to a file, or to standard output for `-`."""
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    if str(target) == "-":
        sys.stdout.write(text)
    else:
        write_text(target, text)


def _seconds_since(begin: float) -> float:
    return round(time.process_time() - begin, 3)


def _check_writable(*paths: Path | None) -> None:
    """Fail before the work is done, not after."""
    for path in paths:
        if path is not None and str(path) != "-" and not path.absolute().parent.is_dir():
            raise MaskwrightError(
                f"{path} cannot be written: there is no folder {path.absolute().parent}; make it first"
            )


def _load(
    grammar: str, tokenizer: str | None, start: str | None, lexing: Any, conflicts: Any
) -> tuple[Grammar, Vocabulary | None]:
    from maskwright.analysis.grammar import load_grammar
    from maskwright.maskstore.vocabulary import load_vocabulary

    loaded = load_grammar(grammar, start=start, lexing=lexing, conflicts=conflicts)
    return loaded, None if tokenizer is None else load_vocabulary(tokenizer)


def load_or_build_store(
    source: str, tokenizer: str | None, start: str | None, lexing: Any, conflicts: Any, rules: Any, refresh: bool
) -> MaskStore | AutomatonStore:
    """The store of a store file, or of a grammar and a tokenizer (from the cache if it is there)."""
    if tokenizer is None:
        from maskwright.maskstore.fileformat import load_store

        if source.startswith("lark:") or source.endswith(".lark"):
            raise MaskwrightError(f"{source} is a grammar, not a store: say for which tokenizer (--tokenizer)")
        return load_store(source)
    from maskwright.cache import cached_store

    grammar, vocabulary = _load(source, tokenizer, start, lexing, conflicts)
    assert vocabulary is not None
    with progress_bars() as progress:
        return cached_store(grammar, vocabulary, rules=rules, progress=progress, refresh=refresh)


@app.command(epilog="Example: maskwright analyze lark:python --tokenizer mistral-7b-v0.1 --html report.html")
def analyze(
    grammar: GrammarArgument,
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = "longest",
    conflicts: ConflictsOption = "all",
    json_file: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page.")] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Count what a second terminal of context would save.")
    ] = True,
    exact: Annotated[
        bool, typer.Option("--exact", help="Also build the store of lexing longest, and report its sizes.")
    ] = False,
) -> None:
    """Analyse a grammar; with a tokenizer, how far its mask store shrinks and why."""
    with clean_errors():
        from maskwright.report.analysis import analyze as run

        _check_writable(json_file, html)
        loaded, vocabulary = _load(grammar, tokenizer, start, lexing, conflicts)
        with progress_bars() as progress:
            report = run(loaded, vocabulary, pairs=pairs, exact=exact, progress=progress)
        if html is not None:
            write_text(html, report.to_html())
        if json_file is not None:
            write_json(json_file, report.to_dict())
        if json_file is None or str(json_file) != "-":
            console = Console()
            console.print(report)
            for path in (html, json_file):
                if path is not None:
                    console.print(f"wrote {path}", highlight=False)


@app.command(epilog="Example: maskwright export lark:python --tokenizer mistral-7b-v0.1 -o python.safetensors")
def export(
    grammar: GrammarArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="STORE", help="The store file to write.")],
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = "longest",
    conflicts: ConflictsOption = "all",
    rules: RulesOption = "normalised",
    original: Annotated[
        bool, typer.Option("--original", help="Lexing nfa: keep every entry, no streamlining, for comparison.")
    ] = False,
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """Build a store and write it to a file."""
    with clean_errors():
        begin = time.process_time()
        from maskwright.maskstore.fileformat import save_store, store_info
        from maskwright.maskstore.store import build_store

        _check_writable(output, json_file)
        if tokenizer is None:
            raise MaskwrightError("a mask store is for one tokenizer: name it (--tokenizer)")
        if original:
            loaded, vocabulary = _load(grammar, tokenizer, start, lexing, conflicts)
            assert vocabulary is not None
            with progress_bars() as progress:
                store = build_store(loaded, vocabulary, streamlined=False, progress=progress)
        else:
            store = load_or_build_store(grammar, tokenizer, start, lexing, conflicts, rules, refresh)
        save_store(store, output)
        facts = {**store_info(output), "cpu_seconds": _seconds_since(begin)}
        if json_file is not None:
            write_json(json_file, facts)
        if json_file is None or str(json_file) != "-":
            Console().print(
                f"wrote {output}: {store!r}, in {facts['cpu_seconds']:.1f} s of processor time",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


@app.command(epilog="Example: maskwright info python.safetensors")
def info(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A store file; or a grammar, with --tokenizer.")],
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = "longest",
    conflicts: ConflictsOption = "all",
    rules: RulesOption = "normalised",
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """What a store file holds, checked as on loading."""
    with clean_errors():
        from maskwright.maskstore.fileformat import save_store, store_info
        from maskwright.report.store_facts import render_store_facts

        begin = time.process_time()
        loaded = load_or_build_store(store, tokenizer, start, lexing, conflicts, rules, refresh)
        seconds = _seconds_since(begin)
        if tokenizer is None:
            facts = store_info(store)
        else:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "store.safetensors"
                save_store(loaded, path)
                facts = store_info(path)
        facts["cpu_seconds"] = seconds
        if json_file is not None:
            write_json(json_file, facts)
        if json_file is None or str(json_file) != "-":
            Console().print(render_store_facts(facts))
