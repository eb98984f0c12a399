"""What all commands use: the application, common options, error messages, progress, output."""

from __future__ import annotations

import codecs
import difflib
import glob
import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from typer.core import TyperArgument, TyperGroup

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import absolute, declare_outputs, keeping_inputs
from maskwright.cli.constraints import GrammarOptions, check_is_store, is_composition, is_constraint, is_pipe, load_any
from maskwright.version import version

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary
    from maskwright.stores.sources import Constraint
    from maskwright.stores.store import AnyStore


_PANELS = {
    "Constraint": (*GrammarOptions._fields, "rules"),
    "Model and tokenizer": ("model", "device", "tokenizer", "tokenizers"),
    "Output": ("output", "html", "drawing", "draw", "certificates", "json_file"),
}
"""Heading in a command's help -> the parameters whose options stand under it. Others come before them."""


class _Commands(TyperGroup):
    """The commands. What they do is shown whole, arguments by their names alone, and options in panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, " ".join((command.help or "").split("\n\n")[0].split())) for name, command in found if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, or None. Newer typer would write GRAMMAR as ``{GRAMMAR}`` and ``GRAMMAR <str>``."""
        found = super().get_command(ctx, cmd_name)
        for each in () if found is None else found.params:
            if isinstance(each, TyperArgument):
                name = each.metavar if each.required else f"[{each.metavar}]"
                vars(each).update(get_usage_pieces=lambda _, name=name: [name], display_type_rich=lambda **_: None)
        if found is not None:
            vars(found).update(format_options=partial(_write_options, found))
        return found


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a command's arguments, then its options under their headings."""
    panels: dict[str, list[Any]] = {"Arguments": [], "Options": [], **{name: [] for name in _PANELS}}
    for each in command.get_params(ctx):
        if (row := each.get_help_record(ctx)) is not None:
            of_option = next((name for name, names in _PANELS.items() if each.name in names), "Options")
            panels["Arguments" if isinstance(each, TyperArgument) else of_option].append(row)
    for name, rows in panels.items():
        if rows:
            with formatter.section(name):
                formatter.write_dl(rows)


app = typer.Typer(
    name="maskwright",
    cls=_Commands,
    help="Masks for language models that must write code or JSON, from grammars, schemas and patterns.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(is_asked: bool) -> None:
    if is_asked:
        sys.stdout.write(f"maskwright {version()}\n")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What may come before a command."""


def _names_of_grammars(incomplete: str) -> list[str]:
    """Shell completion for GRAMMAR: names of the library's grammars, folders, and files by suffix."""
    from maskwright.analysis.loading.names import known_grammars

    suffixes = (".lark", ".json", ".gbnf", ".ebnf")
    return [name for name in known_grammars() if name.startswith(incomplete)] + _files(incomplete, suffixes)


def _names_of_tokenizers(incomplete: str) -> list[str]:
    """Shell completion for --tokenizer: built-in names, folders and files."""
    from maskwright.maskstore.vocabulary.vocabulary import BUILT_IN

    return [name for name in BUILT_IN if name.startswith(incomplete)] + _files(incomplete)


def _files(incomplete: str, suffix: str | tuple[str, ...] = "") -> list[str]:
    """The folders, and the files with one of some suffixes, whose paths begin with `incomplete`."""
    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))
    return [
        path + "/" if os.path.isdir(path) else path for path in found if os.path.isdir(path) or path.endswith(suffix)
    ]


def _tokenizer(value: str | None) -> str | None:
    if value is not None and value.startswith("-"):
        raise typer.BadParameter(f"its value is missing: the next word is {value}; name a tokenizer behind it")
    return value


GrammarArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAMMAR",
        autocompletion=_names_of_grammars,
        help="A built-in grammar (python, json, c, ...), a .lark file, or lark:NAME for a grammar of Lark's own wheel. "
        "A command with the option --from also takes a JSON schema (a .json file), a .gbnf or .ebnf file, or the text itself.",
    ),
]
GrammarOrStoreArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAMMAR",
        autocompletion=_names_of_grammars,
        help="A grammar (python, json, ..., a .lark file), a JSON schema (.json), or what --from says, with --tokenizer; or the file of "
        "a store that was built of one.",
    ),
]


def _of_tokenizer(needed: str = "") -> Any:
    known = "mistral-7b-v0.1, mistral-7b-v0.3, tekken, python-tiny"
    files = "a tokenizer.json, *.model, tekken*.json or *.tiktoken file or a folder with one"
    said = f"A built-in name ({known}), or a path to {files}. {needed}".strip()
    names = {"metavar": "T", "callback": _tokenizer, "autocompletion": _names_of_tokenizers}
    return typer.Option("--tokenizer", "-t", help=said, **names)  # type: ignore[arg-type]


TokenizerOption = Annotated[str | None, _of_tokenizer()]
NeededTokenizerOption = Annotated[str | None, _of_tokenizer("Required for a grammar or a schema; a store has its own.")]
SuffixOption = Annotated[
    list[str] | None,
    typer.Option(
        "--suffix",
        metavar=".EXT",
        help="Suffix of the files in folders; may be repeated. By default what the grammar or schema suggests, else all files.",
    ),
]
FieldOption = Annotated[
    str, typer.Option("--field", metavar="NAME", help="The member of a JSON record that is its text.")
]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most this many texts.")]
RulesOption = Annotated[
    Literal["normalised", "lark"],
    typer.Option(
        "--rules",
        help="Lexing nfa: the form of the rules by which always legal entries are found; normalised finds more.",
    ),
]
JsonOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the facts as JSON; - for standard output.")
]
RefreshOption = Annotated[bool, typer.Option("--refresh", help="Build anew even if the cache holds the store.")]


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn the errors that users can cause into a message and exit code 2, and Ctrl-C into 130.

    The message goes to standard error. Inside this context `check_writable` declares the outputs;
    a declared output cannot be read as an input.

    Raises: typer.Exit with code 2 for a MaskwrightError or a MemoryError, with 130 for a
        KeyboardInterrupt.
    """
    try:
        with keeping_inputs():
            yield
    except MaskwrightError as error:
        said = str(error).replace("open (close=False)", "open (--no-close)").replace("by lenient=True", "by --lenient")
        Console(stderr=True, soft_wrap=True).print(f"error: {said}", markup=False, highlight=False, style="red")
        raise typer.Exit(2) from None
    except MemoryError as error:
        said = f": {error}" if str(error) else ""
        Console(stderr=True, soft_wrap=True).print(
            f"error: there is not enough memory{said}; nothing was written", markup=False, highlight=False, style="red"
        )
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; nothing was written")
        raise typer.Exit(130) from None


@contextmanager
def progress_bars() -> Iterator[Any]:
    """A progress callback (what, done, total) that draws bars on standard error.

    It draws nothing if standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}
        preparing = bars.add_task("preparing", total=None)

        def report(what: str, done: int, total: int) -> None:
            bars.update(preparing, visible=False)
            if what not in tasks or bars.tasks[tasks[what]].finished:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total)

        yield report


def write_text(path: Path, text: str) -> None:
    """Write a text to a file in UTF-8, the whole of it or nothing.

    Unpaired surrogates, which stand for bytes of file names that are not UTF-8, become backslash
    escapes.
    """
    from maskwright.maskstore.file.writing import replace_file

    replace_file(path, text.encode("utf-8", "backslashreplace"))


def write_json(target: Path | None, facts: Any) -> bool:
    """Write facts as JSON, if a target is named.

    target : a file, or `-` for standard output. Standard output gets ASCII only if its encoding is
        not a Unicode one.
    facts : anything that `json.dumps` takes.

    Returns whether standard output is left for people to read.
    """
    if target is None:
        return True
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    if str(target) == "-":
        if not is_unicode(sys.stdout):
            text = json.dumps(facts, indent=2) + "\n"
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))
        return False
    write_text(target, text)
    return True


def is_unicode(stream: Any) -> bool:
    """Whether a stream's encoding is a Unicode one, so that it can write any character."""
    try:
        return codecs.lookup(stream.encoding or "utf-8").name.startswith("utf")
    except (AttributeError, LookupError, TypeError):
        return True


def seconds_since(begin: float) -> float:
    """Processor seconds since `begin`, a result of `time.process_time`, rounded to 1 ms."""
    return round(time.process_time() - begin, 3)


def check_writable(*paths: Path | None, inputs: Iterable[object] = (), model: str | None = None) -> None:
    """Check before the work begins that each output can be written, and is no other file in use.

    paths : the outputs; None and `-` are skipped.
    inputs : what the command reads: paths, or names that are no paths; None is skipped. The files
        that an input names in turn (imports, the files of a tokenizer's folder) are checked when
        they are read, see `declare_outputs`. For the texts of a corpus see `check_not_texts`.
    model : the name of a language model. No output may be in its folder, because transformers
        chooses which of the files there it reads.

    Raises: MaskwrightError if an output cannot be written, is an input, is in the model's folder,
        or is named twice.
    """
    from maskwright.maskstore.file.writing import why_not_writable

    outputs = [path for path in paths if path is not None and str(path) != "-"]
    for number, path in enumerate(outputs):
        try:
            why = why_not_writable(path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
        if why is not None:
            raise MaskwrightError(f"{path} cannot be written: {why}")
        for source in inputs:
            if source is not None and _are_one_file(path, str(source)):
                raise MaskwrightError(f"{path} is read by this command, so it is not written; name another file")
        if model is not None and _is_of_model(path, model):
            raise MaskwrightError(
                f"{path} is in the folder of model {model}, which is read by this command, so it is not written; name a file elsewhere"
            )
        real = os.path.realpath(path)
        if any(real == os.path.realpath(other) or _are_one_file(path, str(other)) for other in outputs[:number]):
            raise MaskwrightError(f"{path} is named for two outputs; name two files")
    declare_outputs(outputs)


def check_not_texts(outputs: Iterable[Path | None], paths: Iterable[str], suffixes: Iterable[str]) -> None:
    """Check that no output is a text of the corpus, now or once it is written.

    outputs : the outputs; None and `-` are skipped.
    paths, suffixes : of the corpus, as for `find_corpus`.

    Raises: MaskwrightError for the first such output.
    """
    from maskwright.validation.corpus import is_in_corpus

    for path in outputs:
        if path is not None and str(path) != "-" and is_in_corpus(path, tuple(paths), tuple(suffixes)):
            raise MaskwrightError(
                f"{path} is among the texts that are read by this command, so it is not written; name a file elsewhere"
            )


def _is_of_model(path: Path, model: str) -> bool:
    """Whether a file is in a model's folder, or is the target of a link there."""
    from maskwright.models import BUNDLED, model_folder

    folder = model_folder() if model == BUNDLED else Path(os.path.expanduser(model))
    if not os.path.isdir(folder):
        return False
    if os.path.realpath(Path(absolute(path)).parent) == os.path.realpath(folder):
        return True
    found = (*folder.glob("*"), *folder.glob("additional_chat_templates/*"))
    return any(_are_one_file(path, str(file)) for file in found)


def _are_one_file(path: Path, other: str) -> bool:
    """Whether both are the same regular file."""
    try:
        return path.is_file() and os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def files_of_reference(reference: str | None) -> list[str]:
    """The parts of a reference parser's name that may be files: executable, words of a command.

    reference : as for `make_reference`; None gives [].
    """
    if reference is None:
        return []
    try:
        words = shlex.split(reference)
    except ValueError:  # `make_reference` reports it
        words = []
    return [reference.partition(":")[2], *words]


def standard_input() -> Any:
    """Standard input as a binary stream.

    Raises: MaskwrightError if the caller of the command has closed it.
    """
    if sys.stdin is None:
        raise MaskwrightError("standard input is closed")
    return sys.stdin.buffer


def load_inputs(grammar: str, tokenizer: str | None, options: GrammarOptions) -> tuple[Constraint, Vocabulary | None]:
    """The grammar, schema or pattern, and the vocabulary of the tokenizer if one is given.

    Raises: as `GrammarOptions.load_constraint` and `load_vocabulary`.
    """
    from maskwright.maskstore.vocabulary import load_vocabulary

    return options.load_constraint(grammar), None if tokenizer is None else load_vocabulary(tokenizer)


def load_file(source: str) -> AnyStore:
    """The store in a file. Raises: as `load_store`; MaskwrightError if there is no file, naming a similar one or a grammar."""
    from maskwright.analysis.loading.names import known_grammars
    from maskwright.stores.store import load_store

    if not os.path.exists(source):
        folder, name = os.path.split(source)
        names = [*glob.glob("*", root_dir=folder or None), *(known_grammars() if source.isidentifier() else ())]
        near = difflib.get_close_matches(name, names, n=1)
        raise MaskwrightError(
            f"there is no file {source!r}{''.join(f'; did you mean {os.path.join(folder, each)}?' for each in near)}; expected a store's "
            "file (maskwright export), a grammar (maskwright list), a .lark, .gbnf or .ebnf file, a JSON schema (.json), or a pattern "
            "(--from regex)"
        )
    return load_store(source)


def load_or_build_store(
    source: str,
    tokenizer: str | None,
    options: GrammarOptions,
    rules: Any = "normalised",
    refresh: bool = False,
) -> AnyStore:
    """The store in a file, or that of a grammar, a schema or a pattern and a tokenizer, from the cache if it is there.

    source : a store file if `tokenizer` is None, else a grammar.
    tokenizer : None, or a tokenizer as for `load_vocabulary`.
    options : how the grammar is read.
    rules : as for `cached_store`.
    refresh : build the store even if the cache has it.

    Raises: MaskwrightError if `source` is a grammar or a pipe and no tokenizer is given, or if it is
        a store file and options for a grammar are given; and as `load_store`, `load_grammar`,
        `load_vocabulary` and `cached_store`.
    """
    if tokenizer is None:
        if is_pipe(source):
            raise MaskwrightError(
                f"{source} is a pipe, and a store is read from a regular file: write it to one; if the pipe brings a grammar, "
                "name the tokenizer (--tokenizer)"
            )
        if is_constraint(source, options):
            raise MaskwrightError(f"{source} is a grammar, not a store: name the tokenizer (--tokenizer)")
        check_is_store(source, options)
        return load_file(source)
    from maskwright.stores.cache import cached_store

    grammar, vocabulary = load_inputs(source, tokenizer, options)
    assert vocabulary is not None
    with progress_bars() as progress:
        given: Any = grammar
        found: AnyStore = cached_store(given, vocabulary, rules=rules, progress=progress, refresh=refresh)
        return found


def load_any_store(source: str, tokenizer: str | None, options: GrammarOptions, refresh: bool = False) -> Any:
    """The store as of `load_or_build_store`, whose tokenizer a store file does not need; or that of a composition.

    Raises: MaskwrightError if no tokenizer is given; as `load_or_build_store`, `load_any`, `cached_store`.
    """
    if not is_composition(source, options):
        named = tokenizer if is_constraint(source, options) else None
        return load_or_build_store(source, named, options, refresh=refresh)
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.stores.cache import cached_store

    if tokenizer is None:
        raise MaskwrightError(
            f"{source} names parts of other languages, of which tokens make texts: name the tokenizer (--tokenizer)"
        )
    found: Any = load_any(source, GrammarOptions())
    with progress_bars() as progress:
        return cached_store(found, load_vocabulary(tokenizer), progress=progress, refresh=refresh)
