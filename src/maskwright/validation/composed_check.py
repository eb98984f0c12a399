"""The check "replay" for the store of a composition.

In: texts. Out: a `ValidationReport`. No other parser judges such texts, so each text that is
refused makes the check fail, and the finding says in which part.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from maskwright.analysis.errors import LimitError, MaskwrightError, VocabularyError
from maskwright.maskstore.vocabulary.encoders import encoder_of
from maskwright.stores.composed_store import ComposedStore
from maskwright.validation.corpus import CorpusError, Unreadable, find_corpus
from maskwright.validation.options import Options
from maskwright.validation.replay import (
    NOT_SPELLED,
    OVER_LIMIT,
    REPLAYED,
    facts_of_stop,
    find_stop,
    good_bytes,
    of_last_line_feed,
)
from maskwright.validation.report import Finding, ValidationReport
from maskwright.validation.schema_check import UNREADABLE

REFUSED = "refused"
"""The class of texts that the masks refuse."""
_FAILING = (REFUSED, NOT_SPELLED, OVER_LIMIT, UNREADABLE)


def validate_composed(store: ComposedStore, paths: list[str], options: Options) -> ValidationReport:
    """Replay texts of a composition.

    paths : files, folders, globs. Of a folder the files with `options.suffixes`, by default all.
    options : of `validate`; only some apply.

    Raises: MaskwrightError for a check other than "replay", and for options that do not apply;
        CorpusError if there are no texts; VocabularyError if the tokenizer is not the store's.
    """
    begin, default = time.perf_counter(), Options()
    if options.check != "replay":
        raise MaskwrightError(
            f"--check {options.check} is for one language; for {store.name}, a composition, there is replay"
        )
    for name in ("jobs", "scheduler", "resume", "reference", "jsonl"):
        if getattr(options, name) != getattr(default, name) and getattr(options, name) != "none":
            raise MaskwrightError(f"--{name} is not for compositions, and {store.name} is one: leave it out")
    encoder = encoder_of(store.vocabulary, options.tokenizer)
    figures = {"tokens": 0}
    findings = list(_replays(store, encoder, paths, options, figures))
    kinds = [one.kind for one in findings]
    return ValidationReport(
        check="replay",
        store={
            "grammar": store.name,
            "vocabulary": store.vocabulary.name,
            "vocabulary_sha256": store.vocabulary.digest,
        },
        settings={"paths": paths, "reference": "nobody", "tokenizer": encoder.vocabulary.name, "limit": options.limit},
        classes={kind: kinds.count(kind) for kind in (REPLAYED, *_FAILING) if kind in (*kinds, REPLAYED, REFUSED)},
        failures=frozenset(_FAILING),
        figures=figures,
        causes={},
        findings=tuple(one for one in findings if one.kind != REPLAYED),
        seconds=time.perf_counter() - begin,
        whole=REPLAYED,
    )


def _replays(
    store: ComposedStore, encoder: Any, paths: list[str], options: Options, figures: dict[str, int]
) -> Iterator[Finding]:
    """A finding for each text. figures : their sums are added here."""
    matcher, n = store.matcher(0), 0
    corpus = find_corpus(paths, tuple(options.suffixes), options.field)
    for n, text in enumerate(islice(iter(corpus), options.limit), 1):
        if isinstance(text, Unreadable):
            yield Finding(text.name, UNREADABLE, True, why=text.reason)
            continue
        try:
            tokens = encoder.exact_tokens(text.text).tokens
            stop = find_stop(matcher, tokens)
            figures["tokens"] += len(tokens) if stop is None else stop.n_tokens
            if stop is None:
                yield Finding(text.name, REPLAYED, False)
            else:
                part = matcher.text.where()
                token = b"" if stop.token is None else store.vocabulary.tokens[stop.token]
                facts = facts_of_stop(text.text, tokens, stop, store.vocabulary, good_bytes(matcher, token))
                shown = facts.pop("token")
                of_token = None if shown is None else (shown[0], shown[1])
                said = tuple(of_last_line_feed(matcher, text.text))
                yield Finding(text.name, REFUSED, True, token=of_token, said=said, more={"part": part}, **facts)
        except VocabularyError as error:
            yield Finding(text.name, NOT_SPELLED, True, why=str(error))
        except LimitError as error:
            yield Finding(text.name, OVER_LIMIT, True, why=str(error))
        if options.progress is not None:
            options.progress("texts", n, n)
    if not n:
        raise CorpusError(f"there is no text in {', '.join(paths)}")


__all__ = ["validate_composed"]
