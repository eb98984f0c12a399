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
from rich.table import Table
from rich.text import Text

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes, read_stream
from maskwright.cli.common import (
    ConflictsOption,
    GrammarOrStoreArgument,
    JsonOption,
    LexingOption,
    RefreshOption,
    ReservedOption,
    RestrictOption,
    SoftOption,
    StartOption,
    TokenizerOption,
    app,
    check_no_grammar_options,
    check_writable,
    clean_errors,
    files_of_reference,
    progress_bars,
    standard_input,
    write_json,
)
from maskwright.cli.constraints import (
    DocumentsOption,
    EscapesOption,
    FromOption,
    GrammarOptions,
    KeyOrderOption,
    LenientOption,
    StyleOption,
    WhitespaceOption,
    is_constraint,
    load_any,
)

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.completion import LanguageModel
    from maskwright.decoding.generation import Completion, Generation
    from maskwright.decoding.generation.counts import TokenCounts
    from maskwright.maskstore.vocabulary import Vocabulary
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.sources import Constraint
    from maskwright.stores.store import AnyStore, Store

_NFA = "lexing nfa has no masks at run time; load the grammar with lexing contextual or longest"

REASONS = {
    "end": "the model ended it",
    "stop": "a stop string came",
    "complete": "it was complete",
    "tokens": "the token budget was used up",
    "seconds": "the time was up",
}
"""Reason why a completion ended -> words for the summary."""


@app.command(epilog="Example: maskwright complete python 'def mean(numbers):' --compare")
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
        int, typer.Option("--max-tokens", metavar="N", help="New tokens, the ending included.")
    ] = 128,
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
    compare: Annotated[bool, typer.Option("--compare", help="Also show what the model writes without masks.")] = False,
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
        typer.Option("--names", metavar="FOLDER", help="Write no Python names that jedi knows this project to lack."),
    ] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="D", help="cpu, cuda, ...")] = None,
    tokenizer: TokenizerOption = None,
    start: StartOption = None,
    lexing: LexingOption = None,
    reserved: ReservedOption = None,
    conflicts: ConflictsOption = None,
    soft: SoftOption = None,
    restrict: RestrictOption = None,
    syntax: FromOption = None,
    style: StyleOption = None,
    whitespace: WhitespaceOption = None,
    key_order: KeyOrderOption = None,
    escapes: EscapesOption = None,
    lenient: LenientOption = False,
    documents: DocumentsOption = None,
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
        }
        from maskwright.completion import check_model, check_model_name, load_model, start_completion, vocabulary_of
        from maskwright.decoding.generation.options import check_options
        from maskwright.python_names import PythonNames

        check_options(**options)
        if reference is not None:
            _check_reference(reference)
        # check all that does not need the model before the model is loaded, which takes long
        of_grammar = GrammarOptions.of(locals())
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
            check_no_grammar_options(store, of_grammar)
            compiled = _load(store, tokenizer)
        options["names"] = None if names is None else PythonNames(names, prompt_file)
        if compiled is not None:
            _check_prompt(compiled, text, max_tokens, close)
            options["counts"] = _counts(counts, compiled)
        check_model_name(model)
        _silence_transformers()
        loaded = load_model(model, device)
        if grammar is not None and tokenizer is None and _is_other(compiled, loaded):
            compiled = _build(store, grammar, loaded.vocabulary, refresh)
            options["counts"] = _counts(counts, compiled)
        assert compiled is not None
        check_model(compiled, loaded)
        loading = time.perf_counter() - begin
        options |= {"heal": heal, "canonical": canonical, "fast_forward": fast_forward, "opportunistic": opportunistic}
        is_quiet = json_file is not None and str(json_file) == "-"
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        _note_what_is_not_seen(text, loaded, console)
        generation = start_completion(compiled, text, loaded, close=close, stop_when_complete=until_complete, **options)
        found = generation.run() if compare or is_quiet else _stream(text, generation)
        facts = {
            "model": loaded.name,
            "grammar": compiled.name,
            "prompt": text,
            "seconds_loading": round(loading, 3),
            **_facts(text, found, reference, compiled),
        }
        if compare:
            free = start_completion(compiled, text, loaded, constrained=False, **options).run()
            facts["unconstrained"] = _facts(text, free, reference, compiled)
            if not is_quiet:
                _show_both(text, found, free, facts)
        if not is_quiet:
            console.print(_summary(found, facts), markup=False, style="dim")
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
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MaskwrightError(f"the prompt is not UTF-8: {error.reason} at byte {error.start}") from None


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
    from maskwright.stores.store import load_store

    found = _decodes(source, load_store(source))
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
    from maskwright.completion import read_prompt
    from maskwright.decoding.generation.options import check_budget

    matcher = store.matcher()
    read_prompt(matcher, text.encode("utf-8", "surrogatepass"))
    if close:
        check_budget(matcher, matcher.short_ending(), max_tokens)


def _is_other(store: Store | SchemaStore | ComposedStore | None, model: LanguageModel) -> bool:
    """Whether the store must be built for the loaded model's vocabulary.

    True if there is no store yet, or if the loaded tokenizer differs from the model's files.
    """
    return store is None or store.vocabulary.digest != model.vocabulary.digest


def _decodes(source: str, store: AnyStore | ComposedStore) -> Store | SchemaStore | ComposedStore:
    from maskwright.stores.store import EntryStore

    if isinstance(store, EntryStore):
        raise MaskwrightError(f"{source}: {_NFA}")
    return store


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


def _facts(
    prompt: str, found: Completion, reference: str | None, store: Store | SchemaStore | ComposedStore
) -> dict[str, Any]:
    from maskwright.stores.schema_store import SchemaStore

    whole = prompt + found.data.decode(errors="replace")
    return {
        "completion": found.data.decode(errors="replace"),
        "closing": found.closing.decode(errors="replace"),
        "reason": found.reason,
        "is_complete": found.is_complete,
        "tokens": len(found.tokens),
        "seconds": round(found.seconds, 4),
        "seconds_first_token": round(found.first_seconds, 4),
        "seconds_model": round(found.model_seconds, 4),
        "seconds_masks": round(found.mask_seconds, 4),
        "seconds_endings": round(found.ending_seconds, 4),
        "model_calls": found.model_calls,
        "forced": found.forced,
        "relaxed": found.relaxed,
        "masks": found.masks,
        "predicted": found.predicted,
        "verdict": _judged_by_schema(whole, store)
        if reference is None and isinstance(store, SchemaStore)
        else _judged(whole, reference, store.name),
    }


def _judged_by_schema(text: str, store: SchemaStore) -> dict[str, str] | None:
    from maskwright.validation.instances import judge_text

    said = judge_text(store.constraint, text)
    return None if said is None else {"by": said.by, "answer": said.answer, "message": said.why}


def _judged(text: str, reference: str | None, grammar: str) -> dict[str, str] | None:
    from maskwright.validation.references import is_too_old, make_reference, reference_for, version_note

    name = reference if reference is not None else reference_for(grammar)
    judge = make_reference(name)
    if judge is None:
        return None
    try:
        found = judge.judge(text)
    finally:
        judge.close()
    if found.answer == "refused" and reference is None and is_too_old(name, grammar):
        return {"by": name, "answer": "not judged", "message": f"{version_note(grammar)}; it says {found.message}"}
    return {"by": name, "answer": found.answer, "message": found.message}


def _show_both(prompt: str, found: Completion, free: Completion, facts: dict[str, Any]) -> None:
    table = Table(expand=True)
    both = (("under the grammar", found, facts), ("without masks", free, facts["unconstrained"]))
    for heading, _, _ in both:
        table.add_column(heading, ratio=1, overflow="fold")
    cells = []
    for _, each, said in both:
        kept = each.data[: len(each.data) - len(each.closing)].decode(errors="replace")
        cells.append(Text.assemble((prompt, "dim"), kept, (said["closing"], "yellow")))
    table.add_row(*cells)
    if facts["verdict"] is not None:
        table.add_section()
        table.add_row(*(_verdict(said) for _, _, said in both))
    Console(highlight=False).print(table)


def _verdict(facts: dict[str, Any]) -> str:
    verdict = facts["verdict"]
    return f"{verdict['by']}: {verdict['answer']}" + (f" ({verdict['message']})" if verdict["message"] else "")


def _summary(found: Completion, facts: dict[str, Any]) -> str:
    share = found.mask_seconds / found.seconds if found.seconds else 0.0
    closed = f", closed with {len(found.closing)} bytes" if found.closing else ""
    parts = [
        f"{len(found.tokens)} tokens in {found.seconds:.2f} s, the first after {found.first_seconds:.2f} s, {100 * share:.1f} % in masks",
        f"{REASONS[found.reason]}{closed}",
    ]
    if facts["verdict"] is not None:
        parts.append(_verdict(facts))
    return "; ".join(parts)


def _silence_transformers() -> None:
    """Switch off the progress bars and warnings of transformers, which would interrupt the text."""
    with suppress(ImportError):
        log: Any = import_module("transformers.utils.logging")
        log.set_verbosity_error()
        log.disable_progress_bar()
