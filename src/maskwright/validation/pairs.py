"""Oracle: sampled (prefix, token) pairs, half of the tokens allowed by the mask and half refused, put before an independent oracle.

The prefixes end at random token boundaries of real texts. Half of the refused tokens begin with a byte that may come, so that it takes more
than a look at the first byte to refuse them. At each prefix it is also asked whether the text may end there.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, VocabularyError
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import (
    BEFORE,
    ENDED_EARLY,
    NOT_SPELLED,
    OVER_LIMIT,
    facts_of_stop,
    find_stop,
    good_bytes,
    place_of,
)
from maskwright.validation.work import Outcome, Tools

AGREED = "agreed"
FALSE_REFUSAL = "refused, but the oracle allows it"
FALSE_PERMISSION = "allowed, but the oracle refuses it"

LONGEST_PREFIX = 40_000
"""Bytes: the oracle reads a text character by character."""
POSITIONS = 40
"""Of one text."""
TOKENS = 16
"""At one position."""


@dataclass(frozen=True)
class OraclePairs:
    """The check. Units are texts. Needs the package regex."""

    seed: int = 0
    name: str = "oracle"

    def start(self, tools: Tools) -> Callable[[Any], Outcome]:
        store, encoder = tools.store, tools.encoder
        assert encoder is not None
        draw = _Draw(store)
        grammar = store.grammar

        def run(text: str) -> Outcome:
            # a fresh oracle would be 2 s a text for python.lark; what it remembers of a text does not change what it says
            rng = random.Random(f"{self.seed}:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}")
            counts: dict[str, int] = {}
            wrong: list[dict[str, Any]] = []
            facts: Outcome = {"class": AGREED, "pairs": 0}
            try:
                tokens = encoder.exact_tokens(text).tokens
                for offset, token, is_allowed, kind in draw.pairs(tokens, rng):
                    prefix = text.encode()[:offset]
                    says = (
                        oracle.feed(prefix).is_legal_text
                        if token is None
                        else oracle.is_allowed(prefix, store.vocabulary.tokens[token])
                    )
                    counts[kind] = counts.get(kind, 0) + 1
                    facts["pairs"] += 1
                    if says != is_allowed:
                        line, column = place_of(text, offset)
                        shown = b"" if token is None else store.vocabulary.tokens[token]
                        wrong.append(
                            {
                                "class": FALSE_REFUSAL if says else FALSE_PERMISSION,
                                "line": line,
                                "column": column,
                                "byte": offset,
                                "before": prefix.decode("utf-8", "replace")[-BEFORE:],
                                "token": None if token is None else [token, shown.decode("utf-8", "backslashreplace")],
                                "why": f"drawn as: {kind}",
                            }
                        )
                ended = {} if wrong else draw.early_end(text, tokens)
            except VocabularyError as error:
                return {"class": NOT_SPELLED, "why": str(error), "pairs": 0}
            except LimitError as error:
                return {**facts, "class": OVER_LIMIT, "why": str(error)}
            facts |= {f"pairs: {kind}": n for kind, n in sorted(counts.items())}
            if wrong:
                wrong.sort(key=lambda one: one["class"] != FALSE_REFUSAL)
                facts |= wrong[0] | {"disagreements": len(wrong), "more": wrong[1:4]}
            return {**facts, **ended}

        oracle = Oracle(grammar, grammar.conflicts)
        return run


class _Draw:
    """Pairs from the masks of a store."""

    def __init__(self, store: Any) -> None:
        tokens = store.vocabulary.tokens
        size = store.n_words * 32
        self.is_text = np.zeros(size, np.bool_)
        self.is_text[store.vocabulary.text_ids()] = True
        padding = [0] * (size - len(tokens))
        self.first_byte = np.array([token[0] if token else 0 for token in tokens] + padding)
        self.length = np.array([len(token) for token in tokens] + padding)
        self.words = np.zeros(store.n_words, np.uint32)
        self.matcher = store.matcher(0)
        self.vocabulary = store.vocabulary

    def early_end(self, text: str, tokens: Sequence[int]) -> Outcome:
        """Where the grammar refuses a text, as an outcome; empty if it takes the whole."""
        stop = find_stop(self.matcher, list(tokens))
        if stop is None:
            return {}
        good = 0 if stop.token is None else good_bytes(self.matcher, self.vocabulary.tokens[stop.token])
        return {"class": ENDED_EARLY, **facts_of_stop(text, tokens, stop, self.vocabulary, good)}

    def pairs(self, tokens: Sequence[int], rng: random.Random) -> Iterator[tuple[int, int | None, bool, str]]:
        """(bytes of the prefix, token or None for the end, whether the mask allows it, how it was drawn)."""
        ends = list(accumulate((len(self.vocabulary.tokens[token]) for token in tokens), initial=0))
        places = [place for place, end in enumerate(ends) if end <= LONGEST_PREFIX]
        matcher, fed = self.matcher, 0
        matcher.reset()
        for place in sorted(rng.sample(places, min(POSITIONS, len(places)))):
            try:
                for token in tokens[fed:place]:
                    matcher.advance(token)
                matcher.fill(self.words)
            except (IllegalTokenError, DeadEndError):
                return  # the text leaves the grammar; the positions before are good
            fed = place
            bits = np.unpackbits(self.words.view(np.uint8), bitorder="little").astype(np.bool_)
            if self.vocabulary.eos:
                yield ends[place], None, bool(bits[list(self.vocabulary.eos)].all()), "end of text"
            allowed = bits & self.is_text
            refused = self.is_text & ~allowed
            may_begin = np.zeros(256, np.bool_)
            may_begin[self.first_byte[allowed]] = True
            for kind, group in (
                ("allowed", allowed),
                ("allowed, long", allowed & (self.length >= 4)),
                ("refused", refused),
                ("refused, begins well", refused & may_begin[self.first_byte]),
            ):
                ids = np.flatnonzero(group).tolist()
                for token in rng.sample(ids, min(TOKENS // 4, len(ids))):
                    yield ends[place], token, bool(allowed[token]), kind
