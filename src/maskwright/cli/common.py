"""What all commands use: messages, progress, output, and the stores that they are given."""

from __future__ import annotations

import codecs
import difflib
import glob
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import progress as bars
from rich.console import Console

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import absolute, declare_outputs
from maskwright.cli.constraints import GrammarOptions, check_is_store, is_composition, is_constraint, is_pipe

if TYPE_CHECKING:
    from maskwright.stores.store import AnyStore


def say(text: object, *, is_error: bool = False, style: str | None = None) -> None:
    """Print a text as it is. is_error : to standard error."""
    console = Console(stderr=is_error, soft_wrap=True, emoji=False)
    console.print(str(text), markup=False, highlight=False, style=style)


def show(report: Any, json_file: Path | None, passed: bool = True) -> None:
    """Print a report, or write it as JSON. One that has not passed ends the command with exit code 1."""
    if write_json(json_file, report.to_dict()):
        if hasattr(report, "__rich_console__"):
            Console().print(report)
        else:
            say(report)
    if not passed:
        raise typer.Exit(1)


@contextmanager
def progress_bars() -> Iterator[Any]:
    """A progress callback (what, done, total) that draws bars on standard error.

    It draws nothing if standard error is no terminal.
    """
    console = Console(stderr=True)
    columns = (bars.SpinnerColumn(), bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
    with bars.Progress(*columns, *times, console=console, transient=True, disable=not console.is_terminal) as shown:
        tasks: dict[str, bars.TaskID] = {}
        preparing = shown.add_task("preparing", total=None)

        def report(what: str, done: int, total: int) -> None:
            shown.update(preparing, visible=False)
            if what not in tasks or shown.tasks[tasks[what]].finished:
                tasks[what] = shown.add_task(what)
            shown.update(tasks[what], completed=done, total=total)

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
    is_shown = str(target) == "-"
    text = json.dumps(facts, indent=2, ensure_ascii=is_shown and not is_unicode(sys.stdout)) + "\n"
    if is_shown:
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


def check_reference(reference: str | None, seconds: float = 10.0) -> None:
    """Check that a reference parser can be started; None: there is none. Raises: as `make_reference`."""
    from maskwright.validation.references import make_reference

    judge = None if reference is None else make_reference(reference, seconds)
    if judge is not None:
        judge.close()


def standard_input() -> Any:
    """Standard input as a binary stream.

    Raises: MaskwrightError if the caller of the command has closed it.
    """
    if sys.stdin is None:
        raise MaskwrightError("standard input is closed")
    return sys.stdin.buffer


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
    found: AnyStore = build_or_find(options.load_constraint(source), tokenizer, rules, refresh)
    return found


def build_or_find(
    constraint: Any, tokenizer: Any, rules: Any = "normalised", refresh: bool = False, lazy: bool = False
) -> Any:
    """The store of a constraint or a composition.

    tokenizer : what `load_vocabulary` takes. rules, refresh, lazy : as for `cached_store`.

    Raises: as `load_vocabulary` and `cached_store`.
    """
    from maskwright.maskstore.vocabulary import load_vocabulary
    from maskwright.stores.cache import cached_store

    vocabulary = load_vocabulary(tokenizer)
    with progress_bars() as progress:
        return cached_store(constraint, vocabulary, rules=rules, progress=progress, refresh=refresh, lazy=lazy)


def load_any_store(source: str, tokenizer: str | None, options: GrammarOptions, refresh: bool = False) -> Any:
    """The store as of `load_or_build_store`, whose tokenizer a store file does not need; or that of a composition.

    Raises: MaskwrightError if no tokenizer is given; as `load_or_build_store` and `GrammarOptions.read`.
    """
    if not is_composition(source, options):
        named = tokenizer if is_constraint(source, options) else None
        return load_or_build_store(source, named, options, refresh=refresh)
    if tokenizer is None:
        raise MaskwrightError(
            f"{source} names parts of other languages, of which tokens make texts: name the tokenizer (--tokenizer)"
        )
    return build_or_find(options.read(source), tokenizer, refresh=refresh)
