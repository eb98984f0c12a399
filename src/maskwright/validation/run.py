"""Runs a check of a store on a corpus. In: a store and paths. Out: a `ValidationReport`.

`validate` puts together the corpus, the check, the workers, the log of results and the report. What
differs between stores of grammars, of schemas and of compositions is data (`kinds`), or said by
their judges (`judges`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from maskwright.analysis.arguments import (
    as_boolean,
    as_integer,
    as_strings,
    clip,
    need_number,
    need_path,
    need_progress,
    need_type,
    refuse_argument,
)
from maskwright.analysis.errors import GrammarError, MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.maskstore.vocabulary.encoders import encoder_of
from maskwright.stores.composed_store import ComposedStore
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.schema_store import SchemaStore
from maskwright.stores.store import Store, load_store
from maskwright.validation import checks, judges, sampling
from maskwright.validation.corpus import CorpusError, Text, Unreadable, find_corpus, suffixes_of
from maskwright.validation.kinds import ALWAYS_FAILING, CHECKS, GOOD, GRAMMAR, SCHEMA, UNREADABLE, kind_of
from maskwright.validation.log import ResultsLog
from maskwright.validation.references import cause_of
from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.work import CRASHED, Outcome, Setup, Unit, run_cluster, run_here, run_processes
from maskwright.version import version

if TYPE_CHECKING:
    from maskwright.stores.store import AnyStore

CheckName = Literal["replay", "sample", "streamlined", "oracle", "negative"]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """The options of `validate`, besides a store and paths; `validate` says what each means.

    Raises: UnknownNameError for an unknown check; MaskwrightError for a value of another type or
        out of range, for both `jobs` and `scheduler`, and for `next_token` together with `jobs`,
        `scheduler` or `resume`.
    """

    check: CheckName = "replay"
    tokenizer: Any = None
    reference: str | None = None
    reference_seconds: float = 10.0
    suffixes: Sequence[str] = ()
    field: str = "text"
    limit: int | None = None
    amount: int | None = None
    seed: int = 0
    budget: int = 100
    cuts: int = 4
    next_token: sampling.NextToken | None = None
    jobs: int = 1
    scheduler: str | None = None
    resume: str | os.PathLike[str] | None = None
    progress: Progress | None = None
    jsonl: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.check, str) or self.check not in get_args(CheckName):
            raise UnknownNameError(f"no check is named {clip(self.check)}: expected {', '.join(get_args(CheckName))}")
        for name, least in (("jobs", 1), ("limit", 1), ("amount", 1), ("budget", 1), ("cuts", 0), ("seed", None)):
            given = getattr(self, name)
            if given is None and name in ("limit", "amount"):
                continue
            value = as_integer(name, given)
            object.__setattr__(self, name, value)
            if least is not None and value < least:
                raise MaskwrightError(f"{name} is {clip(value)}; expected at least {least}")
        need_number("reference_seconds", self.reference_seconds)
        need_type("field", self.field, str, "a str")
        for name in ("reference", "scheduler"):
            need_type(name, getattr(self, name), (str, NoneType), "a str or None")
        object.__setattr__(self, "suffixes", as_strings("suffixes", self.suffixes, "a list of suffixes, as in ['.py']"))
        if self.resume is not None:
            need_path("a log of results", self.resume)
        if self.next_token is not None and not callable(self.next_token):
            refuse_argument("next_token", self.next_token, "a function of tokens and mask, or None")
        need_progress(self.progress)
        object.__setattr__(self, "jsonl", as_boolean("jsonl", self.jsonl))
        if self.jobs > 1 and self.scheduler is not None:
            raise MaskwrightError("jobs are processes of this machine, a scheduler is a cluster's: give one of the two")
        if self.next_token is not None and (self.jobs > 1 or self.scheduler is not None or self.resume is not None):
            raise MaskwrightError(
                "a model is asked in this process, and a log cannot tell its samples from another's: leave out jobs, scheduler and resume"
            )


OUTCOMES = "3"
"""Version of the outcomes; part of the keys in a log of results.

Change it when a check finds other outcomes than before for equal texts. Otherwise a resumed run
would mix old and new outcomes.
"""

MINIMISED_CAUSES = 20
"""Number of causes of refusal, the most frequent ones, of which a sample is minimised."""

_PLACED = ("line", "column", "byte", "before", "token", "why", "said")
"""Members of outcomes for which `Finding` has fields. Other numbers are summed up."""


def validate(
    store: AnyStore | str | os.PathLike[str],
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> ValidationReport:
    """Check a store on texts.

    The modules of the checks say what each one means: `judges` ("replay"), `sampling` ("sample"),
    `checks` ("streamlined", "oracle" and "negative").
    The report does not depend on `jobs` or `scheduler`, nor on an interruption after which the run
    was resumed. Only its members `seconds` and `resumed` differ.
    store : a store, or its file.
    paths : files, folders, globs, `.jsonl` or `.jsonl.xz` files; only "sample" works without.
    check : "replay" (the default), "sample", "streamlined", "oracle" or "negative".
    tokenizer : the store's tokenizer, which encodes the texts, as for `load_encoder`; by default
        the built-in tokenizer with the name of the store's vocabulary.
    reference : the reference parser: "python", "python:EXECUTABLE", "json", "none" or a command; by
        default chosen by the grammar (`references.reference_for`). Of a schema "jsonschema" or
        "none". Only "replay" and "sample" ask it.
    reference_seconds : time that the reference has for one text, in seconds; 10 by default.
    suffixes : of the files taken from folders; by default chosen by the grammar's name, else all.
    field : the member of a JSON record that is its text; "text" by default.
    jsonl : of a schema, whether the lines of files are instances.
    limit : most texts that are read; None for all.
    amount : number of samples; or the number of positions or pairs after which no further text is
        taken. `kinds.CHECKS` has the defaults. The other checks take every text.
    seed : seed of all that is drawn; 0 by default.
    budget, cuts, next_token : for "sample", see `sampling.Sampler`.
    jobs : number of processes; 1 by default.
    scheduler : address of a Dask scheduler, to use its workers instead of processes here.
    resume : file of a log of results. A text with a result in the log is not checked again; new
        results are added.
    progress : called with (what, done, total): samples, positions, pairs or, for "replay" and
        "negative", bytes of the corpus.

    Raises: UnknownNameError for an unknown option or check; CorpusError if there are no texts, or
        if a text of "negative" does not say where it goes wrong; VocabularyError if the tokenizer
        is not the store's; GrammarError for a store of lexing "nfa", except for "streamlined";
        MaskwrightError for options that do not fit together; and as the check says.
    """
    known = {one.name for one in fields(Options)}
    if unknown := sorted(options.keys() - known):
        raise UnknownNameError(f"validate has no option {unknown[0]!r}{suggestion(unknown[0], sorted(known))}")
    if isinstance(paths, str | bytes | os.PathLike):
        paths = [os.fsdecode(paths)]
    need_type("paths", paths, Iterable, "a path, or a list of paths")
    for path in (given := list(paths)):
        need_path("texts", path)
    return _Run(store, [os.fsdecode(path) for path in given], Options(**options)).report()


class _Run:
    """One run of `validate`. Units are numbered from 0, in the order in which they are made."""

    def __init__(self, store: Any, paths: list[str], options: Options) -> None:
        self.options, self.paths = options, paths
        self.begin = time.perf_counter()
        found: Any = load_store(os.fsdecode(store)) if isinstance(store, str | bytes | os.PathLike) else store
        need_type("the store", found, (Store, EntryStore, SchemaStore, ComposedStore), "a store, or its file")
        self.store, self.kind = found, kind_of(found)
        self.name = found.grammar.name if self.kind is GRAMMAR else found.name
        self._check_options()
        self.corpus = None
        if paths or options.check != "sample":
            own = suffixes_of(self.name) if self.kind is GRAMMAR else ()
            if self.kind is SCHEMA:
                own = (".jsonl", ".ndjson") if options.jsonl else (".json",)
            field = None if options.jsonl else options.field
            self.corpus = find_corpus(paths, tuple(options.suffixes) or own, field)
        self.check, reference = CHECKS[options.check], judges.reference_of(found, options.reference, options.check)
        asked = replace(options, reference=reference)
        self.given = {name: getattr(asked, name) for name in self.check.options}
        is_judged = "reference" in self.given
        self.reference = judges.judge_of(found, reference, asked.reference_seconds).by if is_judged else "none"
        self.encoder = None if self.corpus is None else encoder_of(found.vocabulary, options.tokenizer)
        self.wanted = (options.amount or self.check.amount) if self.check.amount else None
        # name, key and weight of each unit, and its outcome
        self.units: list[tuple[str, str, int]] = []
        self.found: dict[int, Outcome] = {}
        self.done = self.resumed = 0
        # units[:settled] have outcomes; `amount` is the sum of what is counted in these
        self.settled = self.amount = 0

    def _check_options(self) -> None:
        options, kind, name = self.options, self.kind, self.name
        if options.check not in kind.checks:
            there = f"there {'is' if len(kind.checks) == 1 else 'are'} {' and '.join(kind.checks)}"
            raise MaskwrightError(f"--check {options.check} is for a grammar; for {name}, {kind.name}, {there}")
        if kind is GRAMMAR and self.store.grammar.lexing == "nfa" and options.check != "streamlined":
            raise GrammarError(
                f"a store of lexing 'nfa' has no matcher, so --check {options.check} cannot use it; it can be compared with its original "
                "(--check streamlined)"
            )
        if kind is GRAMMAR and options.jsonl:
            raise MaskwrightError(
                "the lines of files are instances of a schema only (--jsonl); the texts of a grammar are members of records (--field)"
            )
        for option in kind.unfit:
            if getattr(options, option) not in (getattr(Options, option), "none"):
                raise MaskwrightError(f"--{option} is not for {kind.name}, as {name} is one: leave it out")

    # --- units ---

    @property
    def _is_enough(self) -> bool:
        return self.wanted is not None and self.options.check != "sample" and self.amount >= self.wanted

    def _units(self, log: ResultsLog | None) -> Iterator[Unit]:
        """The units that are still to do; settles unreadable texts and results of the log."""
        run_key = "" if log is None else self._key()
        for number, (name, payload, weight, text) in enumerate(self._payloads()):
            if self._is_enough:
                return
            key = hashlib.sha256(f"{run_key}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
            self.units.append((name, key, weight))
            outcome = None if log is None else log.known.get(key)
            if isinstance(payload, Unreadable):
                self._settle(number, {"class": UNREADABLE, "why": payload.reason})
            elif outcome is not None:
                self.resumed += 1
                self._settle(number, dict(outcome))
            else:
                yield Unit(number, payload, max(1, weight))

    def _payloads(self) -> Iterator[tuple[str, Any, int, str]]:
        """For each unit (name, payload, weight, a string that identifies the unit's work)."""
        texts = iter(()) if self.corpus is None else islice(self.corpus, self.options.limit)
        if self.options.check == "sample":
            self.prompts = [text.text for text in texts if isinstance(text, Text)]
            if self.corpus is not None and not self.prompts:
                raise CorpusError("none of the texts can be read")
            for number in range(self.wanted or 0):
                draw = self._draw(number)
                yield f"sample {number}", draw, 1 << 14, f"{number}\n{draw[1] or ''}"
            return
        text: Text | Unreadable | None = None
        for text in texts:
            if isinstance(text, Unreadable):
                yield text.name, text, text.weight, ""
            elif self.options.check == "negative":
                case = checks.case_of(text)
                yield text.name, case, text.weight, f"{case[1]} {case[2]}\n{text.text}"
            else:
                yield text.name, text.text, text.weight, text.text
        if text is None:
            raise CorpusError(f"there is no text in {', '.join(self.paths)}")

    def _draw(self, number: int, cause: str | None = None) -> sampling.Draw:
        return number, self.prompts[number % len(self.prompts)] if self.prompts else None, cause

    def _settle(self, number: int, outcome: Outcome) -> None:
        self.found[number] = outcome
        self.done += self.units[number][2]
        while self.settled in self.found and not self._is_enough:
            self.amount += int(self.found[self.settled].get(self.check.counted, 0))
            self.settled += 1
        if self.options.check == "sample":
            done, total = len(self.found), self.wanted or 0
        elif self.wanted is not None:
            done, total = min(self.amount, self.wanted), self.wanted
        else:
            done, total = self.done, max(self.done, 0 if self.corpus is None else self.corpus.n_bytes)
        if self.options.progress is not None:
            self.options.progress(self.check.counted, done, total)

    def _key(self) -> str:
        """The run's key. Runs with equal keys have equal outcomes for equal texts."""
        store, encoder = self.store, "" if self.encoder is None else self.encoder.vocabulary.digest
        # The version stands for the engine: another engine may find another outcome with the same
        # store.
        parts = (
            version(),
            OUTCOMES,
            self.options.check,
            store.grammar.digest,
            store.vocabulary.digest,
            encoder,
            repr(self.given),
        )
        state = hashlib.sha256(" ".join(parts).encode())
        arrays = [store.table] if store.engine else [
            store.cell_start, store.entry_sequence, store.entry_mask, store.sequence_symbols
        ]  # fmt: skip
        for array in arrays:
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

    # --- the run ---

    def report(self) -> ValidationReport:
        """Do all units, and report on them."""
        options = self.options
        with ExitStack() as stack:
            original: Any = None
            if options.check == "streamlined":
                original = checks.original_store(self.store, options.progress)
            setup = Setup(self.check.start, self.given, self.store, original, self.encoder)
            log = None if options.resume is None else stack.enter_context(closing(ResultsLog(Path(options.resume))))
            units = self._units(log)
            if options.scheduler is not None:
                results = run_cluster(setup, units, options.scheduler)
            elif options.jobs > 1:
                results = run_processes(setup, units, options.jobs)
            else:
                results = run_here(setup, units)
            stack.callback(results.close)  # type: ignore[attr-defined]
            for number, outcome in results:
                if log is not None and outcome["class"] != CRASHED:
                    log.add(self.units[number][1], outcome)
                self._settle(number, outcome)
            # Workers may have done more units than count. These are dropped, so that the report
            # does not depend on how the work was spread.
            n_counted = self.settled if self._is_enough else len(self.found)
            outcomes = [self.found[number] for number in range(n_counted)]
            causes = self._causes(outcomes) if options.check == "sample" else {}
        return self._summed(outcomes, causes)

    def _causes(self, outcomes: list[Outcome]) -> dict[str, int]:
        """Cause -> number of refused samples, the most frequent first.

        Sets `cause` of their outcomes, and minimises the first of each of the most frequent causes:
        sets its `minimal`.
        """
        refused = [number for number, outcome in enumerate(outcomes) if outcome["class"] not in GOOD]
        for number in refused:
            outcomes[number]["cause"] = cause_of(outcomes[number].get("why", ""))
        counted = Counter(outcomes[number]["cause"] for number in refused)
        causes = dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
        first: dict[str, int] = {}
        for number in refused:
            if outcomes[number]["class"] in sampling.SEVERITY:
                first.setdefault(outcomes[number]["cause"], number)
        chosen = [(cause, number) for cause, number in first.items() if cause in [*causes][:MINIMISED_CAUSES]]
        do = Setup(self.check.start, self.given, self.store, None, self.encoder).start() if chosen else None
        for n, (cause, number) in enumerate(chosen, 1):
            if self.options.progress is not None:
                self.options.progress("refused samples shortened", n, len(chosen))
            assert do is not None
            again = do(self._draw(number, cause))
            if "minimal" in again:
                outcomes[number]["minimal"] = again["minimal"]
        return causes

    def _summed(self, outcomes: list[Outcome], causes: dict[str, int]) -> ValidationReport:
        options, store, vocabulary = self.options, self.store, self.store.vocabulary
        fine, failing = self.kind.checks[options.check]
        failures = frozenset((*failing, *ALWAYS_FAILING))
        counted = Counter(outcome["class"] for outcome in outcomes)
        order = (*fine, *failing, *ALWAYS_FAILING)
        sums: Counter[str] = Counter()
        for outcome in outcomes:
            sums.update({k: v for k, v in outcome.items() if isinstance(v, int | float) and k not in _PLACED})
        settings = {
            "paths": self.paths,
            "reference": self.reference,
            "tokenizer": None if self.encoder is None else self.encoder.vocabulary.name,
            "limit": options.limit,
            "seed": options.seed,
        }
        if self.wanted is not None:
            settings[self.check.counted] = self.wanted
        if options.check == "sample":
            settings |= {"budget": options.budget, "cuts": options.cuts, "model": options.next_token is not None}
        facts = {"grammar": self.name}
        if self.kind is GRAMMAR:
            facts |= {"grammar_sha256": store.grammar.digest, "lexing": store.grammar.lexing}
        return ValidationReport(
            check=options.check,
            store=facts | {"vocabulary": vocabulary.name, "vocabulary_sha256": vocabulary.digest},
            settings=settings,
            classes={kind: counted[kind] for kind in order if counted[kind] or kind in (order[0], failing[0])},
            failures=failures,
            whole=self.check.whole,
            figures={name: round(count, 3) for name, count in sums.items()},
            causes=causes,
            findings=tuple(
                _finding(self.units[number][0], outcome, failures)
                for number, outcome in enumerate(outcomes)
                if outcome["class"] not in GOOD
            ),
            resumed=self.resumed,
            seconds=time.perf_counter() - self.begin,
        )


def _finding(name: str, outcome: Outcome, failures: frozenset[str]) -> Finding:
    placed = {key: outcome[key] for key in _PLACED if key in outcome}
    placed |= {key: tuple(value) for key, value in placed.items() if isinstance(value, list)}
    more = {key: outcome[key] for key in sorted(outcome) if key not in (*_PLACED, "class")}
    return Finding(name, outcome["class"], outcome["class"] in failures, more=more, **placed)
