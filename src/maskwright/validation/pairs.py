"""The check "oracle": does an independent oracle agree with the masks on sampled tokens?

In: texts. Out: pairs of a prefix and a token on which the two differ. The prefixes end at random
token boundaries of real texts. At each prefix, half of the tokens are drawn from those that the
mask allows, and half from those that it refuses. Half of the allowed tokens have at least four
bytes. Half of the refused tokens begin with a byte that may come, so that the first byte alone does
not show that they are illegal. At each prefix the check also compares whether the text may end.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from maskwright.analysis.errors import DeadEndError, IllegalTokenError
from maskwright.maskstore.vocabulary.masks import flags_of
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import ENDED_EARLY, facts_of_place, facts_of_stop, find_stop
from maskwright.validation.work import Outcome, Setup

AGREED = "agreed"
FALSE_REFUSAL = "refused, but the oracle allows it"
FALSE_PERMISSION = "allowed, but the oracle refuses it"

LONGEST_PREFIX = 40_000
"""Most bytes of a prefix. The oracle is slow: it reads a text character by character."""
POSITIONS = 40
"""Most prefixes of one text."""
TOKENS = 16
"""Most tokens at one prefix."""


def oracle_pairs(setup: Setup, seed: int) -> Callable[[str], Outcome]:
    """The check "oracle". A unit of work is a text.

    seed : with the text, it decides which pairs are drawn.

    Raises: MissingExtraError if a pattern needs the package regex, and it is not installed.
    """
    vocabulary, grammar = setup.store.vocabulary, setup.store.grammar
    draw = _Draw(setup.store)
    # PERF: all texts share one oracle. A new one would take 2 s for each text under
    # python.lark, and what an oracle remembers does not change its answers.
    oracle = Oracle(grammar, grammar.conflicts)

    def run(text: str) -> Outcome:
        rng = random.Random(f"{seed}:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}")
        tokens = setup.tokens(text)
        counts: Counter[str] = Counter()
        wrong: list[Outcome] = []
        for offset, token, is_allowed, kind in draw.pairs(tokens, rng):
            prefix, known = text.encode()[:offset], vocabulary.tokens
            says = oracle.is_legal_text(prefix) if token is None else oracle.is_allowed(prefix, known[token])
            counts[kind] += 1
            if says != is_allowed:
                found = facts_of_place(text, offset, offset, token, vocabulary) | {"why": f"drawn as: {kind}"}
                wrong.append({"class": FALSE_REFUSAL if says else FALSE_PERMISSION, **found})
        facts: Outcome = {"class": AGREED, "pairs": counts.total()}
        facts |= {f"pairs: {kind}": n for kind, n in sorted(counts.items())}
        if wrong:
            wrong.sort(key=lambda one: one["class"] != FALSE_REFUSAL)
            return facts | wrong[0] | {"disagreements": len(wrong), "more": wrong[1:4]}
        stop = find_stop(draw.matcher, tokens)
        if stop is not None:
            facts |= {"class": ENDED_EARLY, **facts_of_stop(text, tokens, stop, vocabulary)}
        return facts

    return run


class _Draw:
    """Draws pairs of a prefix and a token from the masks of a store."""

    def __init__(self, store: Any) -> None:
        tokens, size = store.vocabulary.tokens, store.n_words * 32
        self.is_text = np.zeros(size, np.bool_)
        self.is_text[store.vocabulary.text_ids()] = True
        padded = [*tokens, *([b""] * (size - len(tokens)))]
        self.first_byte = np.array([token[0] if token else 0 for token in padded])
        self.length = np.array([*map(len, padded)])
        self.words = np.zeros(store.n_words, np.uint32)
        self.matcher = store.matcher(0)
        self.vocabulary = store.vocabulary

    def pairs(self, tokens: Sequence[int], rng: random.Random) -> Iterator[tuple[int, int | None, bool, str]]:
        """Pairs of one text, as (length of the prefix, token, is allowed, how it was drawn).

        The length is in bytes. The token is None for the end of the text.
        """
        ends = list(accumulate((len(self.vocabulary.tokens[token]) for token in tokens), initial=0))
        positions = [position for position, end in enumerate(ends) if end <= LONGEST_PREFIX]
        matcher, fed = self.matcher, 0
        matcher.reset()
        for position in sorted(rng.sample(positions, min(POSITIONS, len(positions)))):
            try:
                for token in tokens[fed:position]:
                    matcher.advance(token)
                matcher.fill(self.words)
            except (IllegalTokenError, DeadEndError):
                return  # the text leaves the grammar here; the prefixes before are valid
            fed = position
            bits = flags_of(self.words)
            if self.vocabulary.eos:
                yield ends[position], None, bool(bits[list(self.vocabulary.eos)].all()), "end of text"
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
                    yield ends[position], token, bool(allowed[token]), kind
