"""The checks "replay" and "sample" for the store of a JSON schema or a pattern.

In: instances, or nothing. Out: a `ValidationReport`. A text that is replayed, or drawn under the
masks, is judged by the library `jsonschema` (`instances`). Of a refusal we ask whether the value is
refused or only its spelling: a text of a schema has no key twice, numbers without exponents where
their value matters, and the white space, order of keys and escapes that the user asked for. A
format is stricter here than in jsonschema, so a refusal that is gone without `format` is no false
one.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.analysis.errors import DeadEndError, LimitError, MaskwrightError, SchemaError, VocabularyError
from maskwright.analysis.files import MAX_TEXT, read_file_bytes
from maskwright.analysis.schema.load import read_schema
from maskwright.analysis.schema.style import STYLES
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.maskstore.file.fileformat import store_info
from maskwright.maskstore.vocabulary.encoders import encoder_of
from maskwright.stores.schema_store import SchemaStore, build_schema_store
from maskwright.validation.corpus import CorpusError, Text, Unreadable, find_corpus
from maskwright.validation.instances import InstanceJudge, InstanceVerdict, respelled
from maskwright.validation.options import Options
from maskwright.validation.replay import (
    FALSE_REFUSAL,
    NOT_SPELLED,
    OVER_LIMIT,
    REPLAYED,
    find_stop,
)
from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.sampling import ACCEPTED, NO_ENDING, sum_interventions

NO_INSTANCE = "outside: no instance"
SPELLED_OTHERWISE = "outside: an instance that is spelled otherwise"
BY_A_FORMAT = "outside: by a format, which is stricter here"
NOT_JUDGED = "outside: nobody else judged"
LEFT_OUT = "allowed, since the reading is lenient"
FORMATS_DIFFER = "a format that jsonschema reads otherwise"
DRAWN = "drawn: nobody else judged"
FALSE_PERMISSION = "false permission"
UNREADABLE = "unreadable"
"""Class of texts that cannot be read."""

_FINE = {
    "replay": (REPLAYED, NO_INSTANCE, SPELLED_OTHERWISE, BY_A_FORMAT, NOT_JUDGED, LEFT_OUT, FORMATS_DIFFER),
    "sample": (ACCEPTED, DRAWN, LEFT_OUT, FORMATS_DIFFER),
}
_FAILING = {
    "replay": (FALSE_REFUSAL, FALSE_PERMISSION, NOT_SPELLED, OVER_LIMIT, UNREADABLE),
    "sample": (FALSE_PERMISSION, NO_ENDING, OVER_LIMIT),
}

SAMPLES = 1000
"""Samples that are drawn unless the caller says otherwise."""


def schema_store_in(source: Any) -> SchemaStore | None:
    """The store of a schema or a pattern that an argument is, or that its file holds; else None.

    Raises: as `load_store`.
    """
    if not isinstance(source, str | bytes | os.PathLike):
        return source if getattr(source, "engine", "") == "schema" else None
    path = os.fsdecode(source)
    if "grammar" in store_info(path):
        return None
    from maskwright.stores.store import load_store

    return load_store(path)  # type: ignore[return-value]  # a file without a grammar is of one


def validate_schema(store: SchemaStore, paths: list[str], options: Options) -> ValidationReport:
    """Check the store of a schema or a pattern.

    paths : files of one instance each, folders, globs; with `options.jsonl` files of one instance a
        line. For "sample" there are none.
    options : of `validate`; only some apply.

    Raises: MaskwrightError for options that do not apply; CorpusError if there are no texts;
        VocabularyError if the tokenizer is not the store's.
    """
    return _SchemaRun(store, paths, options).report()


class _SchemaRun:
    def __init__(self, store: SchemaStore, paths: list[str], options: Options) -> None:
        self.begin = time.perf_counter()
        self.store, self.paths, self.options = store, paths, options
        self._check_options()
        self.judge = (
            InstanceJudge(store.constraint)
            if store.constraint.kind == "schema" and options.reference != "none"
            else None
        )
        self._made: list[tuple[str, SchemaStore]] | None = None  # see `_looser`
        self.encoder = None if options.check == "sample" else encoder_of(self.store.vocabulary, self.options.tokenizer)
        self.figures: Counter[str] = Counter()

    def _check_options(self) -> None:
        options, default = self.options, Options()
        if options.check not in _FINE:
            raise MaskwrightError(
                f"--check {options.check} is for a grammar; for {self.store.name}, a schema or a pattern, there are replay and sample"
            )
        for name in ("jobs", "scheduler", "resume"):
            if getattr(options, name) != getattr(default, name):
                raise MaskwrightError(
                    f"--{name} is for a grammar: {self.store.name} is checked in this process; leave it out"
                )
        if options.reference not in (None, "none", "jsonschema"):
            raise MaskwrightError("instances are judged by jsonschema: --reference jsonschema, the default, or none")
        if options.check == "sample" and self.paths:
            raise MaskwrightError("instances are drawn from their beginnings (--check sample): leave the texts out")

    def report(self) -> ValidationReport:
        """Do the check."""
        check = self.options.check
        units = self._samples() if check == "sample" else self._replays()
        findings = list(units)
        fine, failing = _FINE[check], _FAILING[check]
        counted = Counter(one.kind for one in findings)
        shown = (fine[0], failing[0])
        classes = {kind: counted[kind] for kind in (*fine, *failing) if counted[kind] or kind in shown}
        good = {REPLAYED, ACCEPTED, DRAWN}
        store, vocabulary = self.store, self.store.vocabulary
        by = "nobody" if self.judge is None else "jsonschema" if self.judge.is_installed else "nobody (no jsonschema)"
        settings = {
            "paths": self.paths,
            "reference": by,
            "tokenizer": None if self.encoder is None else self.encoder.vocabulary.name,
            "limit": self.options.limit,
            "seed": self.options.seed,
        }
        if check == "sample":
            settings |= {"samples": len(findings), "budget": self.options.budget, "cuts": self.options.cuts}
        return ValidationReport(
            check=check,
            store={"grammar": store.name, "vocabulary": vocabulary.name, "vocabulary_sha256": vocabulary.digest},
            settings=settings,
            classes=classes,
            failures=frozenset(failing),
            figures={name: round(count, 3) for name, count in self.figures.items()},
            causes={},
            findings=tuple(replace(one, is_failure=one.kind in failing) for one in findings if one.kind not in good),
            seconds=time.perf_counter() - self.begin,
            whole=REPLAYED if check == "replay" else None,
        )

    # --- replay ---

    def _texts(self) -> Iterator[Text | Unreadable]:
        jsonl = self.options.jsonl
        suffixes = tuple(self.options.suffixes) or ((".jsonl", ".ndjson") if jsonl else (".json",))
        corpus = find_corpus(self.paths, suffixes, self.options.field)
        found = _lines(corpus.files) if jsonl else iter(corpus)
        return islice(found, self.options.limit)

    def _replays(self) -> Iterator[Finding]:
        matcher = self.store.matcher(0)
        n = 0
        for n, text in enumerate(self._texts(), 1):
            if isinstance(text, Unreadable):
                yield Finding(text.name, UNREADABLE, True, why=text.reason)
                continue
            yield self._replay(matcher, text)
            if self.options.progress is not None:
                self.options.progress("texts", n, n)
        if not n:
            raise CorpusError(f"there is no text in {', '.join(self.paths)}")

    def _replay(self, matcher: Any, text: Text) -> Finding:
        assert self.encoder is not None
        # a file's last line feed is not part of a pattern's text; JSON has white space anyway
        data = text.text if self.judge is not None else text.text.removesuffix("\n")
        try:
            spelling = self.encoder.exact_tokens(data)
        except VocabularyError as error:
            return Finding(text.name, NOT_SPELLED, True, why=str(error))
        self.figures["tokens"] += len(spelling.tokens)
        verdict = None if self.judge is None else self.judge.judge(data)
        try:
            stop = find_stop(matcher, spelling.tokens)
        except LimitError as error:
            return Finding(text.name, OVER_LIMIT, True, why=str(error))
        if stop is None:
            return self._allowed(text.name, data, verdict, REPLAYED)
        tokens = self.encoder.vocabulary.tokens
        before = b"".join(tokens[token] for token in spelling.tokens[: stop.n_tokens])
        token = None if stop.token is None else (stop.token, tokens[stop.token].decode(errors="replace"))
        kind = self._kind_of_refusal(data, verdict)
        begin = before.rfind(b"\n") + 1
        said = () if verdict is None or not verdict.why else (f"{verdict.by}: {verdict.why}",)
        return Finding(
            text.name, kind, False, before.count(b"\n") + 1, len(before[begin:].decode(errors="replace")) + 1,
            len(before), before.decode(errors="replace")[-60:], token, stop.why, said,
        )  # fmt: skip

    def _kind_of_refusal(self, data: str, verdict: InstanceVerdict | None) -> str:
        if verdict is None:
            return NOT_JUDGED
        if verdict.answer == "refused":
            return NO_INSTANCE
        if self._is_legal(data):
            return FALSE_REFUSAL if verdict.answer == "accepted" else NOT_JUDGED
        if _reads(self.store, respelled(data)):
            return SPELLED_OTHERWISE
        for kind, looser in self._looser():
            if _reads(looser, data) or _reads(looser, respelled(data)):
                return kind
        return FALSE_REFUSAL if verdict.answer == "accepted" else NOT_JUDGED

    def _is_legal(self, data: str) -> bool:
        """Whether a text is one of the schema's in its style, as the plain interpreter reads it."""
        constraint = self.store.constraint
        if constraint.kind != "schema":
            return False
        plain = JsonInterpreter(constraint.texts)
        try:
            return plain.is_complete(plain.read_bytes(plain.start(), data.encode()))
        except (LimitError, UnicodeEncodeError):
            return False

    def _looser(self) -> list[tuple[str, SchemaStore]]:
        """Stores that refuse less, each with the class of what only they allow. Made once.

        The schema for any white space, order of keys and escapes, if it asked for some; and
        without formats, if it has some.
        """
        constraint = self.store.constraint
        if self._made is None and constraint.kind == "schema":
            self._made = []
            options = constraint.options
            plain = _without_formats(constraint.schema)
            is_any = options.style == STYLES["any"]
            for kind, schema, is_looser in (
                (SPELLED_OTHERWISE, constraint.schema, not is_any),
                (BY_A_FORMAT, plain, plain != constraint.schema),
            ):
                if is_looser:
                    try:
                        loaded = read_schema(
                            schema, style=STYLES["any"], documents=options.documents, lenient=options.lenient, name=kind
                        )
                    except SchemaError:
                        continue
                    self._made.append((kind, build_schema_store(loaded, self.store.vocabulary)))
        return self._made or []

    def _allowed(self, name: str, data: str, verdict: InstanceVerdict | None, good: str) -> Finding:
        """What becomes of a text that the masks allow."""
        if verdict is None or verdict.answer != "refused":
            judged = verdict is not None and verdict.answer == "accepted"
            return Finding(name, good if judged or good == REPLAYED else DRAWN, False)
        kind = FALSE_PERMISSION
        if getattr(self.store.constraint, "left_out", ()):
            kind = LEFT_OUT
        elif verdict.keyword == "format":
            kind = FORMATS_DIFFER
        return Finding(name, kind, False, before=data[-60:], why=f"{verdict.by}: {verdict.why}", more={"text": data})

    # --- sample ---

    def _samples(self) -> Iterator[Finding]:
        wanted = self.options.amount or SAMPLES
        matcher = self.store.matcher(0)
        for number in range(wanted):
            yield self._sample(matcher, number)
            if self.options.progress is not None:
                self.options.progress("samples", number + 1, wanted)

    def _sample(self, matcher: Any, number: int) -> Finding:
        name = f"sample {number}"
        rng = random.Random(f"{self.options.seed}:{number}")
        begin_text: Callable[[int], None] | None = getattr(self.options.next_token, "begin_text", None)
        if begin_text is not None:
            begin_text(number)
        found = Finding(name, ACCEPTED, False)
        try:
            tokens = self._draw(matcher, rng)
            cuts = rng.sample(range(len(tokens)), min(self.options.cuts, len(tokens)))
            for cut in [len(tokens), *sorted(cuts)]:
                matcher.reset()
                for token in tokens[:cut]:
                    matcher.advance(token)
                text = (matcher.said() + matcher.short_ending().data).decode()
                self.figures["characters"] += len(text)
                self.figures["closed"] += 1
                one = self._allowed(name, text, self._verdict(text), ACCEPTED)
                if one.kind == FALSE_PERMISSION:
                    return one
                if found.kind == ACCEPTED:
                    found = one
        except LimitError as error:
            return Finding(name, OVER_LIMIT, False, why=str(error))
        except DeadEndError as error:
            return Finding(name, NO_ENDING, False, why=str(error))
        self.figures["tokens"] += len(tokens)
        self.figures.update(sum_interventions(self.options.next_token))
        return found

    def _verdict(self, text: str) -> InstanceVerdict | None:
        if self.judge is not None:
            return self.judge.judge(text)
        if self.store.constraint.kind == "schema":
            return None
        matches = self.store.constraint.automaton.matches(text.encode())
        return InstanceVerdict("the automaton", "accepted" if matches else "refused")

    def _draw(self, matcher: Any, rng: random.Random) -> list[int]:
        """Tokens drawn from those allowed, uniformly or by a model, without an end of text."""
        words = np.zeros(self.store.n_words, np.uint32)
        ends, tokens = set(self.store.vocabulary.eos), list[int]()
        matcher.reset()
        while len(tokens) < self.options.budget:
            if not ends and matcher.is_accepting():
                break
            matcher.fill(words)
            if self.options.next_token is not None:
                token = self.options.next_token(tokens, words)
            else:
                bits = np.unpackbits(words.view(np.uint8), bitorder="little")
                token = rng.choice(np.flatnonzero(bits).tolist())
            if token in ends:
                break
            matcher.advance(token)
            tokens.append(token)
        return tokens


def _lines(files: tuple[Path, ...]) -> Iterator[Text | Unreadable]:
    """Each line of some files that is not blank, as a text."""
    for path in files:
        try:
            data = read_file_bytes(path, MAX_TEXT, "a file of texts", CorpusError)
        except (OSError, CorpusError) as error:
            yield Unreadable(str(path), str(error), 0)
            continue
        for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
            if line.strip():
                try:
                    yield Text(f"{path}:{number}", line.decode().removesuffix("\r"), len(line))
                except UnicodeDecodeError as error:
                    yield Unreadable(f"{path}:{number}", f"not UTF-8 at byte {error.start}", len(line))


def _reads(store: SchemaStore, text: str) -> bool:
    """Whether a text is legal as a whole under a store, whatever its tokens."""
    matcher = store.matcher(0)
    try:
        matcher.advance_bytes(text.encode())
        return matcher.is_accepting()
    except (MaskwrightError, UnicodeEncodeError):
        return False


def _without_formats(schema: Any) -> Any:
    """The schema without keywords `format`. Members of that name with other values stay."""
    if isinstance(schema, dict):
        kept = {k: v for k, v in schema.items() if k != "format" or not isinstance(v, str)}
        return {key: value if key in ("enum", "const") else _without_formats(value) for key, value in kept.items()}
    return [_without_formats(each) for each in schema] if isinstance(schema, list) else schema


__all__ = ["schema_store_in", "validate_schema"]
