"""Runs a check of a store on a corpus. In: a store and paths. Out: a `ValidationReport`.

`validate` puts together the corpus, the check, the workers, the log of results and the report.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from maskwright.analysis.arguments import need_path, need_type
from maskwright.analysis.errors import GrammarError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.vocabulary.encoders import encoder_of
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store, load_store
from maskwright.validation import equality, negative, pairs, replay, sampling
from maskwright.validation.composed_check import validate_composed
from maskwright.validation.corpus import Corpus, CorpusError, Text, Unreadable, find_corpus, suffixes_of
from maskwright.validation.log import ResultsLog
from maskwright.validation.options import Options
from maskwright.validation.references import Judgement, make_reference, reference_for
from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.schema_check import UNREADABLE, schema_store_in, validate_schema
from maskwright.validation.work import (
    CRASHED,
    Check,
    Outcome,
    Setup,
    StoreFile,
    Unit,
    run_cluster,
    run_here,
    run_processes,
)
from maskwright.version import version

if TYPE_CHECKING:
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.store import AnyStore

CLASSES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "replay": (
        (replay.REPLAYED, replay.OUTSIDE_TEXT, replay.OUTSIDE_GRAMMAR, replay.OUTSIDE),
        (replay.FALSE_REFUSAL, replay.NOT_SPELLED, replay.OVER_LIMIT),
    ),
    "sample": (
        (sampling.ACCEPTED,),
        (
            sampling.REFUSED_GRAMMAR,
            sampling.REFUSED_REFERENCE,
            sampling.NO_ENDING,
            sampling.UNDECIDED,
            replay.OVER_LIMIT,
        ),
    ),
    "streamlined": ((equality.SAME, replay.ENDED_EARLY), (equality.DIFFERENT, replay.NOT_SPELLED, replay.OVER_LIMIT)),
    "oracle": (
        (pairs.AGREED, replay.ENDED_EARLY),
        (pairs.FALSE_REFUSAL, pairs.FALSE_PERMISSION, replay.NOT_SPELLED, replay.OVER_LIMIT),
    ),
    "negative": (
        (negative.RIGHT, negative.EARLY_GRAMMAR),
        (negative.EARLY, negative.LATE, negative.LATE_GRAMMAR, replay.NOT_SPELLED, replay.OVER_LIMIT),
    ),
}
"""Check -> (classes of outcomes that are fine, classes that make the check fail)."""
GOOD = frozenset((replay.REPLAYED, sampling.ACCEPTED, equality.SAME, pairs.AGREED, negative.RIGHT))
"""Classes of outcomes that are no findings."""
_WHOLE: Mapping[str, str] = {"replay": replay.REPLAYED, "streamlined": equality.SAME, "oracle": pairs.AGREED}
"""Check -> the class of texts that the grammar accepts as a whole.

A run without such a text proves nothing, so it counts as failed.
"""
ALWAYS_FAILING = (UNREADABLE, CRASHED)
"""Classes that make every check fail."""

AMOUNTS: Mapping[str, tuple[str, int]] = {
    "sample": ("samples", 1000),
    "streamlined": ("positions", 300_000),
    "oracle": ("pairs", 10_000),
}
"""Check -> (what `amount` counts, the default amount)."""

OUTCOMES = "2"
"""Version of the outcomes; part of the keys in a log of results.

Change it when a check finds other outcomes than before for equal texts. Otherwise a resumed run
would mix old and new outcomes.
"""

MINIMISED_CAUSES = 20
"""Number of causes of refusal, the most frequent ones, of which a sample is minimised."""

_FIGURES = (
    "tokens",
    "respelled_bytes",
    "closed",
    "characters",
    "limits",
    "not_judged",
    "interventions",
    "masked_away",
    "positions",
    "different",
    "pairs",
    "disagreements",
)
"""Members of outcomes that the report sums up."""
_PLACED = ("class", "line", "column", "byte", "before", "token", "why", "said")
"""Members of outcomes for which `Finding` has fields."""


def validate(
    store: AnyStore | str | os.PathLike[str],
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> ValidationReport:
    """Check a store on texts. Of a schema or a pattern `schema_check` says how.

    The modules of the checks say what each one means: `replay`, `sampling` ("sample"), `equality`
    ("streamlined"), `pairs` ("oracle") and `negative`.
    The report does not depend on `jobs` or `scheduler`, nor on an interruption after which the run
    was resumed. Only its members `seconds` and `resumed` differ.
    store : a store, or its file.
    paths : files, folders, globs, `.jsonl` or `.jsonl.xz` files; only "sample" works without.
    check : "replay" (the default), "sample", "streamlined", "oracle" or "negative".
    tokenizer : the store's tokenizer, which encodes the texts, as for `load_encoder`; by default
        the built-in tokenizer with the name of the store's vocabulary.
    reference : the reference parser: "python", "python:EXECUTABLE", "json", "none" or a command; by
        default chosen by the grammar (`references.reference_for`). Only "replay" and "sample" ask
        it.
    reference_seconds : time that the reference has for one text, in seconds; 10 by default.
    suffixes : of the files taken from folders; by default chosen by the grammar's name, else all.
    field : the member of a JSON record that is its text; "text" by default.
    jsonl : of a schema, whether the lines of files are instances.
    limit : most texts that are read; None for all.
    amount : number of samples; or the number of positions or pairs after which no further text is
        taken. `AMOUNTS` has the defaults. The other checks take every text.
    seed : seed of all that is drawn; 0 by default.
    budget, cuts, next_token : for "sample", see `sampling.Sampling`.
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
    names, checked = [os.fsdecode(path) for path in given], Options(**options)
    of_schema = schema_store_in(store)
    if of_schema is not None:
        return validate_schema(of_schema, names, checked)
    if getattr(store, "engine", "") == "composition":
        return validate_composed(cast("ComposedStore", store), names, checked)
    checked.refuse_jsonl()
    return _Run(store, names, checked).report()


class _Run:
    """One run of `validate`. Units are numbered from 0, in the order in which they are made."""

    def __init__(self, store: Any, paths: list[str], options: Options) -> None:
        self.options = options
        self.begin = time.perf_counter()
        self.path = os.fsdecode(store) if isinstance(store, str | bytes | os.PathLike) else None
        found: Any = load_store(self.path) if self.path is not None else store
        need_type("the store", found, (Store, EntryStore), "a store, or its file")
        self.store, grammar = found, found.grammar
        self._check_lexing()
        self.corpus = self._corpus(paths)
        self.paths = paths
        self.reference = options.reference or reference_for(grammar if options.check == "sample" else grammar.name)
        if options.check in ("replay", "sample"):
            made = make_reference(self.reference, options.reference_seconds)
            if made is not None:
                made.close()
        else:
            self.reference = "none"
        self.encoder = None if self.corpus is None else encoder_of(self.store.vocabulary, self.options.tokenizer)
        self.check = self._check()
        self.names: list[str] = []
        self.keys: list[str] = []
        self.found: dict[int, Outcome] = {}
        self.weights: list[int] = []
        self.done = 0
        self.resumed = 0
        # units[:settled] have outcomes; `amount` is the sum of what `AMOUNTS` counts in these
        self.settled = 0
        self.amount = 0

    def _check_lexing(self) -> None:
        check, lexing = self.options.check, self.store.grammar.lexing
        if lexing == "nfa" and check != "streamlined":
            raise GrammarError(
                f"a store of lexing 'nfa' has no matcher, so --check {check} cannot use it; it can be compared with its original "
                "(--check streamlined)"
            )

    def _corpus(self, paths: list[str]) -> Corpus | None:
        if self.options.check == "sample" and not paths:
            return None
        suffixes = tuple(self.options.suffixes) or suffixes_of(self.store.grammar.name)
        return find_corpus(paths, suffixes, self.options.field)

    def _check(self) -> Check:
        o = self.options
        match o.check:
            case "replay":
                return replay.Replay(self.reference, o.reference_seconds)
            case "sample":
                return sampling.Sampling(self.reference, o.reference_seconds, o.seed, o.budget, o.cuts, o.next_token)
            case "streamlined":
                return equality.Equality()
            case "oracle":
                return pairs.OraclePairs(o.seed)
            case _:
                return negative.Negative()

    # --- units ---

    def _texts(self) -> Iterator[Text | Unreadable]:
        if self.corpus is None:
            return iter(())
        return islice(self.corpus, self.options.limit)

    @property
    def _wanted(self) -> int | None:
        _, default = AMOUNTS.get(self.options.check, ("", 0))
        return (self.options.amount or default) if default else None

    def _is_enough(self) -> bool:
        return self._wanted is not None and self.options.check != "sample" and self.amount >= self._wanted

    def _units(self, log: ResultsLog | None) -> Iterator[Unit]:
        """The units that are still to do; settles unreadable texts and results of the log."""
        for number, (name, payload, weight, text) in enumerate(self._payloads()):
            if self._is_enough():
                return
            self.names.append(name)
            self.weights.append(weight)
            if isinstance(payload, Unreadable):
                self.keys.append("")
                self._settle(number, {"class": UNREADABLE, "why": payload.reason})
                continue
            key = hashlib.sha256(f"{self._setup_key}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()
            self.keys.append(key)
            outcome = None if log is None else log.known.get(key)
            if outcome is not None:
                self.resumed += 1
                self._settle(number, dict(outcome))
                continue
            yield Unit(number, key, payload, max(1, weight))

    def _payloads(self) -> Iterator[tuple[str, Any, int, str]]:
        """For each unit (name, payload, weight, a string that identifies the unit's work)."""
        if self.options.check == "sample":
            texts = [text for text in self._texts() if isinstance(text, Text)]
            if self.corpus is not None and not texts:
                raise CorpusError("none of the texts can be read")
            for number in range(self._wanted or 0):
                prompt = texts[number % len(texts)].text if texts else None
                yield f"sample {number}", (number, prompt, None), 1 << 14, f"{number}\n{prompt or ''}"
            return
        seen = False
        for text in self._texts():
            seen = True
            if isinstance(text, Unreadable):
                yield text.name, text, text.weight, ""
            elif self.options.check == "negative":
                case = negative.case_of(text)
                yield text.name, case, text.weight, f"{case[1]} {case[2]}\n{text.text}"
            else:
                yield text.name, text.text, text.weight, text.text
        if not seen:
            raise CorpusError(f"there is no text in {', '.join(self.paths)}")

    # --- outcomes ---

    def _settle(self, number: int, outcome: Outcome) -> None:
        self.found[number] = outcome
        self.done += self.weights[number]
        while self.settled in self.found and not self._is_enough():
            counted, _ = AMOUNTS.get(self.options.check, ("", 0))
            self.amount += int(self.found[self.settled].get(counted, 0))
            self.settled += 1
        self._tell()

    def _tell(self) -> None:
        if self.options.progress is None:
            return
        wanted = self._wanted
        if self.options.check == "sample":
            self.options.progress("samples", len(self.found), wanted or 0)
        elif wanted is not None:
            counted = AMOUNTS[self.options.check][0]
            self.options.progress(counted, min(self.amount, wanted), wanted)
        else:
            total = max(self.done, 0 if self.corpus is None else self.corpus.n_bytes)
            self.options.progress("bytes", self.done, total)

    # --- the run ---

    def report(self) -> ValidationReport:
        """Do all units, and report on them."""
        options = self.options
        with ExitStack() as stack:
            original: Any = None
            if options.check == "streamlined":
                original = equality.original_store(self.store, options.progress)
            self._setup_key = self._key()
            store: Any = self.store
            if options.jobs > 1 or options.scheduler is not None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maskwright-")))
                store, original = (
                    _as_file(one, folder / f"{i}.safetensors") for i, one in enumerate((store, original))
                )
            setup = Setup(self._setup_key, self.check, store, original, self.encoder)
            log: ResultsLog | None = None
            if options.resume is not None:
                log = ResultsLog(Path(options.resume))
                stack.callback(log.close)
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
                    log.add(self.keys[number], outcome)
                self._settle(number, outcome)
            outcomes = [self.found[number] for number in range(self._n_counted())]
            causes = self._causes(outcomes)
            if options.check == "sample":
                self._minimise(outcomes, list(causes)[:MINIMISED_CAUSES])
        return self._summed(outcomes, causes)

    def _n_counted(self) -> int:
        """Number of units that count: all, or just enough to reach the amount wanted.

        Workers may have done more units. These are dropped, so that the report does not depend on
        how the work was spread.
        """
        return self.settled if self._is_enough() else len(self.found)

    def _key(self) -> str:
        """The run's key. Runs with equal keys have equal outcomes for equal texts."""
        encoder = "" if self.encoder is None else self.encoder.vocabulary.digest
        # The version stands for the engine: another engine may find another outcome with the same
        # store.
        parts = (
            version(),
            OUTCOMES,
            self.store.grammar.digest,
            self.store.vocabulary.digest,
            encoder,
            repr(self.check),
        )
        state = hashlib.sha256(" ".join(parts).encode())
        arrays = [self.store.table] if hasattr(self.store, "table") else [
            self.store.cell_start, self.store.entry_sequence, self.store.entry_mask, self.store.sequence_symbols
        ]  # fmt: skip
        for array in arrays:
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()

    def _causes(self, outcomes: list[Outcome]) -> dict[str, int]:
        """Cause -> number of refused samples, the most frequent first; sets `cause` of outcomes."""
        found: Counter[str] = Counter()
        for outcome in outcomes:
            if outcome["class"] not in GOOD and self.options.check == "sample":
                outcome["cause"] = Judgement("refused", outcome.get("why", "")).cause
                found[outcome["cause"]] += 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def _minimise(self, outcomes: list[Outcome], causes: Sequence[str]) -> None:
        """Minimise the first refused sample of each cause; sets `minimal` of its outcome."""
        chosen: dict[str, int] = {}
        for number, outcome in enumerate(outcomes):
            if outcome.get("cause") in causes and outcome["class"] in sampling.CLOSED:
                chosen.setdefault(outcome["cause"], number)
        numbers = sorted(chosen.values())
        if not numbers:
            return
        do = Setup("", self.check, self.store, None, self.encoder).start()
        wanted = set(numbers)
        for number, (_, payload, _, _) in enumerate(self._payloads()):
            if number in wanted:
                if self.options.progress is not None:
                    self.options.progress("refused samples shortened", numbers.index(number) + 1, len(numbers))
                again = do((payload[0], payload[1], outcomes[number]["cause"]))
                if "minimal" in again:
                    outcomes[number]["minimal"] = again["minimal"]

    def _summed(self, outcomes: list[Outcome], causes: dict[str, int]) -> ValidationReport:
        options, store = self.options, self.store
        fine, failing = CLASSES[options.check]
        failures = frozenset((*failing, *ALWAYS_FAILING))
        counted = Counter(outcome["class"] for outcome in outcomes)
        order = (*fine, *failing, *ALWAYS_FAILING)
        classes = {kind: counted[kind] for kind in order if counted[kind] or kind == order[0] or kind == failing[0]}
        sums: Counter[str] = Counter()
        for outcome in outcomes:
            sums.update({name: outcome[name] for name in outcome if name in _FIGURES or name.startswith("pairs: ")})
        names = [*(name for name in _FIGURES if name in sums), *sorted(n for n in sums if n not in _FIGURES)]
        findings = tuple(
            _finding(self.names[number], outcome, failures)
            for number, outcome in enumerate(outcomes)
            if outcome["class"] not in GOOD
        )
        settings = {
            "paths": self.paths,
            "reference": self.reference,
            "tokenizer": None if self.encoder is None else self.encoder.vocabulary.name,
            "limit": options.limit,
            "seed": options.seed,
        }
        if self._wanted is not None:
            settings[AMOUNTS[options.check][0]] = self._wanted
        if options.check == "sample":
            settings |= {"budget": options.budget, "cuts": options.cuts, "model": options.next_token is not None}
        return ValidationReport(
            check=options.check,
            store={
                "grammar": store.grammar.name, "grammar_sha256": store.grammar.digest, "lexing": store.grammar.lexing,
                "vocabulary": store.vocabulary.name, "vocabulary_sha256": store.vocabulary.digest,
            },
            settings=settings,
            classes=classes,
            failures=failures,
            whole=_WHOLE.get(options.check),
            figures={name: round(sums[name], 3) for name in names},
            causes=causes,
            findings=findings,
            resumed=self.resumed,
            seconds=time.perf_counter() - self.begin,
        )  # fmt: skip


def _finding(name: str, outcome: Outcome, failures: frozenset[str]) -> Finding:
    token = outcome.get("token")
    return Finding(
        name=name,
        kind=outcome["class"],
        is_failure=outcome["class"] in failures,
        line=outcome.get("line", 0),
        column=outcome.get("column", 0),
        byte=outcome.get("byte", 0),
        before=outcome.get("before", ""),
        token=None if token is None else (token[0], token[1]),
        why=outcome.get("why", ""),
        said=tuple(outcome.get("said", ())),
        more={key: outcome[key] for key in sorted(outcome) if key not in _PLACED},
    )


def _as_file(store: Any, path: Path) -> StoreFile | None:
    """Save a store to a file that other processes can map; None for None."""
    if store is None:
        return None
    save_store(store, path)
    return StoreFile(str(path))
