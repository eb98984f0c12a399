"""`maskwright complete`: a local model completes a prompt under a grammar."""

from __future__ import annotations

import codecs
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes, read_stream
from maskwright.cli.common import (
    GrammarOrStoreArgument,
    JsonOption,
    RefreshOption,
    TokenizerOption,
    app,
    check_writable,
    clean_errors,
    files_of_reference,
    load_file,
    progress_bars,
    standard_input,
    write_json,
)
from maskwright.cli.completion_report import facts_of, show_both, summary
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, check_is_store, is_constraint, load_any, takes_options

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.completion import LanguageModel
    from maskwright.decoding.generation import Completion, Generation
    from maskwright.decoding.generation.counts import TokenCounts
    from maskwright.maskstore.vocabulary import Vocabulary
    from maskwright.python_names import PythonNames
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.sources import Constraint
    from maskwright.stores.store import Store

_NFA = "lexing nfa has no masks at run time; load the grammar with lexing contextual or longest"


@app.command(epilog="Example: maskwright complete python 'def mean(numbers):' --compare")
@takes_options()
def complete(
    store: GrammarOrStoreArgument,
    prompt: Annotated[
        str | None, typer.Argument(metavar="PROMPT", help="The beginning of the text; - or none: standard input.")
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="M", help="A model's folder, its name on the hub, or the bundled one."),
    ] = "python-tiny",
    prompt_file: Annotated[
        Path | None, typer.Option("--prompt-file", metavar="FILE", help="Read the prompt from this file.")
    ] = None,
    max_tokens: Annotated[
        int,
        typer.Option("--max-tokens", metavar="N", help="New tokens, the ending included; healed ones do not count."),
    ] = 256,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="Close the text after this time.")
    ] = None,
    temperature: Annotated[
        float, typer.Option("--temperature", metavar="T", help="0 takes the likeliest token at each step.")
    ] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", metavar="K", help="Sample from the K likeliest; 0: from all.")] = 0,
    top_p: Annotated[
        float, typer.Option("--top-p", metavar="P", help="Sample from the likeliest whose probabilities sum up to P.")
    ] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Equal seeds sample equally.")] = 0,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", metavar="TEXT", help="End before this text; may be repeated.")
    ] = None,
    until_complete: Annotated[
        bool, typer.Option("--until-complete", help="End where the text is complete and a blank line was written.")
    ] = False,
    close: Annotated[
        bool, typer.Option("--close/--no-close", help="End with the shortest legal ending if the budget is used up.")
    ] = True,
    heal: Annotated[
        bool, typer.Option("--heal/--no-heal", help="Let the first tokens begin inside the prompt's last ones.")
    ] = True,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Take only tokens that the model's tokenizer makes of the text itself.")
    ] = False,
    opportunistic: Annotated[
        bool,
        typer.Option("--opportunistic", help="Make a mask only if the grammar refuses what the model would choose."),
    ] = False,
    fast_forward: Annotated[
        bool, typer.Option("--fast-forward", help="Do not ask the model for tokens that are the only ones possible.")
    ] = False,
    counts: Annotated[
        Path | None,
        typer.Option("--counts", metavar="FILE", help="Let the model read ahead what maskwright learn has counted."),
    ] = None,
    lookahead: Annotated[
        int | None,
        typer.Option(
            "--lookahead", metavar="K", help="Experiment: refuse tokens inside which more than K lexemes begin."
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also show what the model writes without masks, and where they intervene.")
    ] = False,
    instruction: Annotated[
        str, typer.Option("--instruction", metavar="TEXT", help="What the model reads before the prompt.")
    ] = "",
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="R",
            help="Who judges the texts: python, python:EXECUTABLE, json, none, or a command that reads one.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option("--names", metavar="FOLDER", help="Allow only Python names that exist in this project."),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="D", help="cpu, cuda, ...")] = None,
    tokenizer: TokenizerOption = None,
    of_grammar: GrammarOptions = DEFAULTS,
    refresh: RefreshOption = False,
    json_file: JsonOption = None,
) -> None:
    """Complete a prompt with a language model such that the whole is a text of the grammar.

    The prompt is read by the grammar too: one that no text begins with is an error. Standard output gets prompt and completion.
    """
    with clean_errors():
        begin = time.perf_counter()
        reads_input = prompt_file is None and prompt in (None, "-")
        check_writable(
            json_file,
            inputs=(store, tokenizer, counts, *_files_read(reads_input, prompt_file, reference)),
            model=model,
        )
        text = _prompt(prompt, prompt_file)
        options: dict[str, Any] = {
            "max_tokens": max_tokens,
            "seconds": seconds,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
            "stop": tuple(stop or ()),
            "instruction": instruction,
        }
        from maskwright.completion import check_model, check_model_name, load_model, start_completion, vocabulary_of
        from maskwright.decoding.generation.options import check_options

        check_options(options)
        if reference is not None:
            _check_reference(reference)
        # check all that does not need the model before the model is loaded, which takes long
        grammar: Constraint | Composition | None = None
        compiled: Store | SchemaStore | ComposedStore | None = None
        if is_constraint(store, of_grammar):
            grammar = _grammar(store, of_grammar)
            known = vocabulary_of(model)
            if tokenizer is not None:
                known = _checked(_vocabulary(tokenizer), known)
            if known is not None:
                check_model_name(model)
                compiled = _build(store, grammar, known, refresh)
        else:
            check_is_store(store, of_grammar)
            compiled = _load(store, tokenizer)
        if names is not None:
            options["names"] = _python_names(names, prompt_file, store, getattr(compiled, "grammar", grammar))
        if compiled is not None:
            _check_prompt(compiled, text, max_tokens, close)
            options["counts"] = _counts(counts, compiled)
        check_model_name(model)
        _silence_transformers()
        reads_ahead = counts is not None and model == "python-tiny"  # not with NumPy
        loaded = load_model(model, device or ("cpu" if reads_ahead else None))
        if grammar is not None and tokenizer is None and _is_other(compiled, loaded):
            compiled = _build(store, grammar, loaded.vocabulary, refresh)
            options["counts"] = _counts(counts, compiled)
        assert compiled is not None
        check_model(compiled, loaded)
        loading = time.perf_counter() - begin
        options |= {"heal": heal, "canonical": canonical, "fast_forward": fast_forward, "opportunistic": opportunistic}
        options["lookahead"] = lookahead
        is_quiet = json_file is not None and str(json_file) == "-"
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        _note_what_is_not_seen(instruction + text, loaded, console)
        generation = start_completion(compiled, text, loaded, close=close, stop_when_complete=until_complete, **options)
        found = generation.run() if compare or is_quiet else _stream(text, generation)
        facts = {
            "model": loaded.name,
            "grammar": compiled.name,
            "instruction": instruction,
            "prompt": text,
            "seconds_loading": round(loading, 3),
            **facts_of(text, found, reference, compiled),
        }
        if compare:
            free = start_completion(compiled, text, loaded, constrained=False, **options).run()
            facts["unconstrained"] = facts_of(text, free, reference, compiled)
            if not is_quiet:
                show_both(text, found, free, facts)
        if not is_quiet:
            console.print(summary(found, facts), markup=False, style="dim")
        write_json(json_file, facts)
        if compiled.is_closing:
            _close(compiled, console)


def _note_what_is_not_seen(text: str, model: LanguageModel, console: Console) -> None:
    """Say so if the prompt is longer than the model's context."""
    n_prompt = len(model.tokens_of(text))
    if model.context and n_prompt > model.context:
        console.print(
            f"note: the prompt has {n_prompt:,} tokens; model {model.name} sees {model.context:,} at most, so not its beginning "
            "(the grammar sees all)",
            markup=False,
        )


def _close(store: Store | SchemaStore | ComposedStore, console: Console) -> None:
    """Close a store whose text is written already, so that the next call finds it in the cache."""
    try:
        with progress_bars() as progress:
            store.close(progress)
    except KeyboardInterrupt:
        console.print("interrupted; the text is whole, but the store may not have been kept for the next call")
        raise typer.Exit(130) from None


def _prompt(prompt: str | None, path: Path | None) -> str:
    if path is not None:
        if prompt is not None:
            raise MaskwrightError("the prompt is given twice, as an argument and by --prompt-file; give one of them")
        try:
            data = read_file_bytes(path, MAX_TEXT, "a prompt")
        except OSError as error:
            raise MaskwrightError(f"the prompt file {path} cannot be read: {error.strerror}") from None
    elif prompt is None or prompt == "-":
        if standard_input().isatty():
            raise MaskwrightError("no prompt: give it as an argument, by --prompt-file, or on standard input")
        data = read_stream(standard_input(), "standard input", MAX_TEXT, "a prompt")
    else:
        return prompt
    from maskwright.prompts import as_text

    return as_text(data)[1]


def _python_names(folder: Path, prompt_file: Path | None, source: str, read: Any) -> PythonNames:
    from maskwright.python_names import TERMINAL, PythonNames
    from maskwright.validation.corpus import SUFFIXES, suffixes_of

    if TERMINAL not in getattr(read, "terminal_number", ()) or suffixes_of(read.name) not in ((), SUFFIXES["python"]):
        raise MaskwrightError(f"--names is for grammars of Python, such as python, and {source} is none: leave it out")
    return PythonNames(folder, prompt_file)


def _check_reference(name: str) -> None:
    from maskwright.validation.references import make_reference

    judge = make_reference(name)
    if judge is not None:
        judge.close()


def _grammar(source: str, options: GrammarOptions) -> Constraint | Composition:
    found = load_any(source, options)
    if getattr(found, "lexing", "") == "nfa":
        raise MaskwrightError(f"{source}: {_NFA}")
    return found


def _vocabulary(tokenizer: str) -> Vocabulary:
    from maskwright.maskstore.vocabulary import load_vocabulary

    return load_vocabulary(tokenizer)


def _checked(named: Vocabulary, of_model: Vocabulary | None) -> Vocabulary:
    from maskwright.decoding.adapters.huggingface import check_same_tokens

    if of_model is not None:
        check_same_tokens(named, of_model)
    return named


def _build(
    source: str, grammar: Constraint | Composition, vocabulary: Vocabulary, refresh: bool
) -> Store | SchemaStore | ComposedStore:
    from maskwright.stores.cache import cached_store

    found: Any = grammar
    with progress_bars() as progress:
        return _decodes(source, cached_store(found, vocabulary, progress=progress, refresh=refresh, lazy=True))


def _load(source: str, tokenizer: str | None) -> Store | SchemaStore | ComposedStore:
    from maskwright.decoding.adapters.huggingface import check_same_tokens

    found = _decodes(source, load_file(source))
    if tokenizer is not None:
        check_same_tokens(found.vocabulary, _vocabulary(tokenizer))
    return found


def _files_read(reads_input: bool, prompt_file: Path | None, reference: str | None) -> tuple[Any, ...]:
    """The files that prompt and reference are read from."""
    return ("/dev/stdin" if reads_input else prompt_file, *files_of_reference(reference))


def _counts(path: Path | None, store: Store | SchemaStore | ComposedStore) -> TokenCounts | None:
    """The counts in a file, if one is named."""
    from maskwright.decoding.generation.counts import TokenCounts

    try:
        return None if path is None else TokenCounts.load(path, store.vocabulary)
    except OSError as error:
        raise MaskwrightError(f"the counts {path} cannot be read: {error.strerror}") from None


def _check_prompt(store: Store | SchemaStore | ComposedStore, text: str, max_tokens: int, close: bool) -> None:
    """Check that a legal text begins with the prompt, and that its ending fits into the budget."""
    from maskwright.decoding.generation.options import check_budget
    from maskwright.prompts import read_prompt

    matcher = store.matcher()
    read_prompt(matcher, text.encode("utf-8", "surrogatepass"))
    if close:
        check_budget(matcher, matcher.short_ending(), max_tokens)


def _is_other(store: Store | SchemaStore | ComposedStore | None, model: LanguageModel) -> bool:
    """Whether the store must be built for the loaded model's vocabulary.

    True if there is no store yet, or if the loaded tokenizer differs from the model's files.
    """
    return store is None or store.vocabulary.digest != model.vocabulary.digest


def _decodes(source: str, store: Any) -> Store | SchemaStore | ComposedStore:
    if not store.engine:
        raise MaskwrightError(f"{source}: {_NFA}")
    return store  # type: ignore[no-any-return]


def _stream(prompt: str, generation: Generation) -> Completion:
    """Print the prompt, then each step of the generation as it comes.

    A UTF-8 sequence that is split between tokens is held back until it is whole.
    """
    console = Console(highlight=False, soft_wrap=True)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    is_terminal = console.is_terminal
    _write(console, prompt, "dim" if is_terminal else "")
    last = prompt[-1:]
    try:
        for step in generation:
            shown = decoder.decode(step.data)
            _write(console, shown, "yellow" if is_terminal and step.is_closing else "")
            last = shown[-1:] or last
    except BaseException:  # also Ctrl-C: its message must begin on a line of its own
        if last not in ("", "\n"):
            _write(console, "\n", "")
        raise
    _write(console, decoder.decode(b"", True), "")
    if is_terminal:
        console.print()
    elif last not in ("", "\n"):  # what is said of the text is a line of its own
        print(file=sys.stderr)
    return generation.completion


def _write(console: Console, text: str, style: str) -> None:
    if console.is_terminal:
        console.print(Text(text, style=style), end="")
    else:  # files and pipes get exactly the text
        sys.stdout.write(text)
        sys.stdout.flush()


def _silence_transformers() -> None:
    """Switch off the progress bars and warnings of transformers, which would interrupt the text."""
    with suppress(ImportError):
        log: Any = import_module("transformers.utils.logging")
        log.set_verbosity_error()
        log.disable_progress_bar()
