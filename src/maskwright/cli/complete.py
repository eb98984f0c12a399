"""`maskwright complete`: a local model completes a prompt under a grammar."""

from __future__ import annotations

import codecs
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes, read_stream
from maskwright.cli.command import command
from maskwright.cli.common import (
    build_or_find,
    check_reference,
    check_writable,
    files_of_reference,
    load_file,
    progress_bars,
    standard_input,
    write_json,
)
from maskwright.cli.constraints import DEFAULTS, GrammarOptions, check_is_store, is_constraint

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.completion import LanguageModel
    from maskwright.decoding.generation import Completion, Generation
    from maskwright.decoding.generation.counts import TokenCounts
    from maskwright.python_names import PythonNames
    from maskwright.serving.requests import RequestStore
    from maskwright.stores.sources import Constraint


@command(epilog="Example: maskwright complete python 'def mean(numbers):' --compare")
def complete(
    store: str,
    prompt: str | None = None,
    *,
    model: str = "python-tiny",
    prompt_file: Path | None = None,
    max_tokens: int = 256,
    seconds: float | None = None,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    stop: list[str] | None = None,
    until_complete: bool = False,
    close: bool = True,
    heal: bool = True,
    canonical: bool = False,
    opportunistic: bool = False,
    fast_forward: bool = False,
    counts: Path | None = None,
    lookahead: int | None = None,
    compare: bool = False,
    instruction: str = "",
    reference: str | None = None,
    names: Path | None = None,
    at: str | None = None,
    to: str | None = None,
    check: bool = False,
    device: str | None = None,
    tokenizer: str | None = None,
    of_grammar: GrammarOptions = DEFAULTS,
    refresh: bool = False,
    json_file: Path | None = None,
) -> None:
    """Complete a prompt with a language model such that the whole is a text of the grammar.

    The prompt is read by the grammar too: one that no text begins with is an error. Standard output gets prompt and completion.

    prompt PROMPT : The beginning of the text; - or none: standard input.
    model -m M : A model's folder, its name on the hub, or the bundled one.
    prompt_file FILE : Read the prompt from this file.
    max_tokens N : New tokens, the ending included; healed ones do not count.
    seconds S : Close the text after this time.
    temperature T : 0 takes the likeliest token at each step.
    top_k K : Sample from the K likeliest; 0: from all.
    top_p P : Sample from the likeliest whose probabilities sum up to P.
    seed N : Equal seeds sample equally.
    stop TEXT : End before this text; may be repeated.
    until_complete : End where the text is complete and a blank line was written.
    close : End with the shortest legal ending if the budget is used up.
    heal : Let the first tokens begin inside the prompt's last ones.
    canonical : Take only tokens that the model's tokenizer makes of the text itself.
    opportunistic : Make a mask only if the grammar refuses what the model would choose.
    fast_forward : Do not ask the model for tokens that are the only ones possible.
    counts FILE : Let the model read ahead what maskwright learn has counted.
    lookahead K : Experiment: refuse tokens inside which more than K lexemes begin.
    compare : Also show what the model writes without masks, and where they intervene.
    instruction TEXT : What the model reads before the prompt.
    reference R : Who judges the texts: python, python:EXECUTABLE, json, none, or a command that reads one.
    names FOLDER : Allow only Python names that exist in this project.
    at LINE:COLUMN : Write into a hole in the file of --prompt-file, or in that which stands instead of the prompt.
    to LINE:COLUMN : Where the hole ends; it is empty otherwise.
    check : With --at, ask no model: say whether some middle makes the file whole, the shortest, and what may come first.
    device D : cpu, cuda, ...
    """
    begin = time.perf_counter()
    if at is None and (check or to is not None):
        raise MaskwrightError("--check and --to are of a hole: say where it begins by --at LINE:COLUMN")
    prompt, prompt_file = (None, Path(prompt)) if at is not None and prompt is not None else (prompt, prompt_file)
    source = "/dev/stdin" if prompt_file is None and prompt in (None, "-") else prompt_file
    check_writable(json_file, inputs=(store, tokenizer, counts, source, *files_of_reference(reference)), model=model)
    text = _prompt(prompt, prompt_file)
    options: dict[str, Any] = {
        "max_tokens": max_tokens, "seconds": seconds, "temperature": temperature, "top_k": top_k, "top_p": top_p,
        "seed": seed, "stop": tuple(stop or ()), "instruction": instruction,
    }  # fmt: skip
    from maskwright.completion import check_model, check_model_name, load_model, start_completion, vocabulary_of
    from maskwright.decoding.adapters.huggingface import check_same_tokens
    from maskwright.decoding.generation.options import check_options
    from maskwright.decoding.infill.check import around, check_hole
    from maskwright.maskstore.vocabulary import load_vocabulary

    check_options(options)
    check_reference(reference)
    named = None if tokenizer is None else load_vocabulary(tokenizer)
    # check all that does not need the model before the model is loaded, which takes long
    grammar: Constraint | Composition | None = None
    compiled: Any = None
    if is_constraint(store, of_grammar):
        grammar = of_grammar.read(store)
        _refuse_nfa(store, getattr(grammar, "lexing", ""))
        known = vocabulary_of(model)
        if named is not None and known is not None:
            check_same_tokens(named, known)
        known = named or known
        if known is not None:
            check_model_name(model)
            compiled = build_or_find(grammar, known, refresh=refresh, lazy=True)
    else:
        check_is_store(store, of_grammar)
        compiled = load_file(store)
        _refuse_nfa(store, "" if compiled.engine else "nfa")
        if named is not None:
            check_same_tokens(compiled.vocabulary, named)
    if names is not None:
        options["names"] = _python_names(names, prompt_file, store, getattr(compiled, "grammar", grammar))
    if check and at is not None:
        _say_of_hole(check_hole(compiled or build_or_find(grammar, load_vocabulary(model)), text, at, to), json_file)
    hole = (text, "") if at is None else around(text, at, to)
    if at is not None:
        text, options["suffix"] = hole
    elif compiled is not None:
        _check_prompt(compiled, text, max_tokens, close)
    if compiled is not None:
        options["counts"] = _counts(counts, compiled)
    check_model_name(model)
    _silence_transformers()
    # NumPy does not read ahead
    loaded = load_model(model, device or ("cpu" if counts is not None and model == "python-tiny" else None))
    # there is no store yet, or the tokenizer differs from the model's files
    is_other = compiled is None or compiled.vocabulary.digest != loaded.vocabulary.digest
    if grammar is not None and named is None and is_other:
        compiled = build_or_find(grammar, loaded.vocabulary, refresh=refresh, lazy=True)
        options["counts"] = _counts(counts, compiled)
    check_model(compiled, loaded)
    loading = time.perf_counter() - begin
    options |= {"heal": heal, "canonical": canonical, "fast_forward": fast_forward, "opportunistic": opportunistic}
    options["lookahead"] = lookahead
    is_quiet = json_file is not None and str(json_file) == "-"
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    _note_what_is_not_seen(instruction + text, loaded, console)
    generation = start_completion(compiled, text, loaded, close=close, stop_when_complete=until_complete, **options)
    found = generation.run() if compare or is_quiet else _stream(hole, generation)
    facts = {
        "model": loaded.name, "grammar": compiled.name, "instruction": instruction, "prompt": text, "suffix": hole[1],
        "seconds_loading": round(loading, 3), **facts_of(found, hole, reference, compiled),
    }  # fmt: skip
    if compare:
        free = start_completion(compiled, text, loaded, constrained=False, **options).run()
        facts["unconstrained"] = facts_of(free, hole, reference, compiled)
        if not is_quiet:
            show_both(hole, found, free, facts)
    if not is_quiet:
        console.print(summary(found, facts), markup=False, style="dim")
    write_json(json_file, facts)
    if compiled.is_closing:
        _close(compiled, console)


def _say_of_hole(facts: dict[str, Any], target: Path | None) -> NoReturn:
    """Say what can stand in a hole. The exit code is 1 if no middle was found."""
    if write_json(target, facts):
        print(facts["words"])
    raise typer.Exit(not facts["has_middle"])


def _note_what_is_not_seen(text: str, model: LanguageModel, console: Console) -> None:
    """Say so if the prompt is longer than the model's context."""
    n_prompt = len(model.tokens_of(text))
    if model.context and n_prompt > model.context:
        console.print(
            f"note: the prompt has {n_prompt:,} tokens; model {model.name} sees {model.context:,} at most, so not its beginning "
            "(the grammar sees all)",
            markup=False,
        )


def _close(store: RequestStore, console: Console) -> None:
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


def _refuse_nfa(source: str, lexing: str) -> None:
    if lexing == "nfa":
        raise MaskwrightError(
            f"{source}: lexing nfa has no masks at run time; load the grammar with lexing contextual or longest"
        )


def _counts(path: Path | None, store: RequestStore) -> TokenCounts | None:
    """The counts in a file, if one is named."""
    from maskwright.decoding.generation.counts import TokenCounts

    try:
        return None if path is None else TokenCounts.load(path, store.vocabulary)
    except OSError as error:
        raise MaskwrightError(f"the counts {path} cannot be read: {error.strerror}") from None


def _check_prompt(store: RequestStore, text: str, max_tokens: int, close: bool) -> None:
    """Check that a legal text begins with the prompt, and that its ending fits into the budget."""
    from maskwright.decoding.generation.options import check_budget
    from maskwright.prompts import read_prompt

    matcher = store.matcher()
    read_prompt(matcher, text.encode("utf-8", "surrogatepass"))
    if close:
        check_budget(matcher, matcher.short_ending(), max_tokens)


def _stream(hole: tuple[str, str], generation: Generation) -> Completion:
    """Print what stands before a text, each step of its generation as it comes, what stands behind.

    A UTF-8 sequence that is split between tokens is held back until it is whole.
    """
    console = Console(highlight=False, soft_wrap=True)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    _write(console, hole[0], "dim")
    last = hole[0][-1:]
    try:
        for step in generation:
            shown = decoder.decode(step.data)
            _write(console, shown, "yellow" if step.is_closing else "")
            last = shown[-1:] or last
    except BaseException:  # also Ctrl-C: its message must begin on a line of its own
        if last not in ("", "\n"):
            _write(console, "\n", "")
        raise
    _write(console, decoder.decode(b"", True), "")
    _write(console, hole[1], "dim")
    last = hole[1][-1:] or last
    if console.is_terminal:
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


REASONS = {
    "end": "the model ended it",
    "stop": "a stop string came",
    "complete": "it was complete",
    "tokens": "the token budget was used up",
    "seconds": "the time was up",
}
"""Reason why a completion ended -> words for the summary."""


def facts_of(found: Completion, hole: tuple[str, str], reference: str | None, store: RequestStore) -> dict[str, Any]:
    """What is said of a completion, JSON-ready. hole : what stands before and behind it."""
    written = found.data.decode(errors="replace")
    whole = written.join(hole)
    return {
        "completion": written,
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
        "interventions": [
            {"index": one.index, "token": one.token, "probability": round(one.probability, 6)}
            for one in found.interventions
        ],
        "verdict": _judged_by_schema(whole, store)
        if reference is None and store.engine == "schema"
        else judged(whole, reference, store.name),
    }


def _judged_by_schema(text: str, store: Any) -> dict[str, str] | None:
    from maskwright.validation.instances import InstanceJudge

    if store.constraint.kind != "schema":
        return None  # nobody else judges texts of a pattern
    said = InstanceJudge(store.constraint).judge(text)
    return {"by": said.by, "answer": said.answer, "message": said.message}


def judged(text: str, reference: str | None, grammar: str) -> dict[str, str] | None:
    """What a reference parser says of a text; None if nobody judges it. reference : by default the grammar's."""
    from maskwright.validation.references import make_reference, reference_for

    judge = make_reference(reference if reference is not None else reference_for(grammar))
    if judge is None:
        return None
    try:
        found = judge.judge(text)
    finally:
        judge.close()
    return {"by": judge.name, "answer": found.answer, "message": found.message}


def show_both(hole: tuple[str, str], found: Completion, free: Completion, facts: dict[str, Any]) -> None:
    """Print what was written under masks beside what the model writes without."""
    table = Table(expand=True)
    both = (("under the grammar", found, facts), ("without masks", free, facts["unconstrained"]))
    for heading, _, _ in both:
        table.add_column(heading, ratio=1, overflow="fold")
    cells = []
    for _, each, said in both:
        kept = each.data[: len(each.data) - len(each.closing)].decode(errors="replace")
        cells.append(Text.assemble((hole[0], "dim"), kept, (said["closing"], "yellow"), (hole[1], "dim")))
    table.add_row(*cells)
    if facts["verdict"] is not None:
        table.add_section()
        table.add_row(*(_verdict(said) for _, _, said in both))
    table.add_section()
    table.add_row(_intervened(found), "")
    Console(highlight=False).print(table)


def _intervened(found: Completion) -> str:
    """How often the masks forbade the model's own choice, and how much on average, in words."""
    if not (n := len(found.interventions)):
        return "no intervention: no mask forbade the model's own choice"
    share = sum(one.probability for one in found.interventions) / n
    what = f"{n} intervention{'s' if n > 1 else ''}: where masks forbade the model's own choice"
    return f"{what}, they took away {100 * share:.0f} % of the model's probability, at those tokens"


def _verdict(facts: dict[str, Any]) -> str:
    verdict = facts["verdict"]
    return f"{verdict['by']}: {verdict['answer']}" + (f" ({verdict['message']})" if verdict["message"] else "")


def summary(found: Completion, facts: dict[str, Any]) -> str:
    """A completion in one line."""
    share = found.mask_seconds / found.seconds if found.seconds else 0.0
    closed = f", closed with {len(found.closing)} byte{'s' * (len(found.closing) != 1)}" if found.closing else ""
    parts = [
        f"{len(found.tokens)} tokens in {found.seconds:.2f} s, the first after {found.first_seconds:.2f} s, {100 * share:.1f} % in masks",
        f"{REASONS[found.reason]}{closed}",
    ]
    if facts["verdict"] is not None:
        parts.append(_verdict(facts))
    return "; ".join(parts)
