"""The checks on single texts besides `replay`: "streamlined", "negative" and "oracle"."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.decoding.reference.decoder import Hypothesis, ReferenceDecoder
from maskwright.maskstore.automaton.stack_automaton import Budget, build_automaton
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.table.write import engine_table
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import flags_of, tokens_of
from maskwright.stores.build import compile_entry_store
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store
from maskwright.validation.corpus import CorpusError, Text
from maskwright.validation.oracle import Oracle
from maskwright.validation.replay import (
    ENDED_EARLY,
    NOT_COMPLETE,
    Stop,
    facts_of_place,
    facts_of_stop,
    find_stop,
    stop_at,
)
from maskwright.validation.work import Outcome, Setup

SAME = "same masks"
DIFFERENT = "different masks"

Words = npt.NDArray[np.uint32]
"""(2, ceil(V / 32)) uint32; two masks, where bit i of word w is token 32 w + i."""


def original_store(store: Store | EntryStore, progress: Progress | None = None) -> Store | EntryStore:
    """The store of the same grammar and vocabulary before streamlining.

    store : a store; progress : called with (what, done, total) while the original is built.

    Raises: MaskwrightError for a store of entries that is not streamlined itself. Cost: as building
        the store.
    """
    if not store.engine:
        if set(store.counts) == {"original"}:
            raise MaskwrightError(
                "the store is not streamlined: there is nothing to compare it with; export it without --original"
            )
        return compile_entry_store(store.grammar, store.vocabulary, streamlined=False, progress=progress)
    automaton = build_automaton(store.grammar, store.vocabulary, progress, Budget(edges=0, bytes=0))
    table = engine_table(store.grammar, store.vocabulary, automaton)
    return Store(store.grammar, store.vocabulary, table, automaton.counts)


def streamlined(setup: Setup) -> Callable[[str], Outcome]:
    """The check "streamlined": do the masks equal those of the store before streamlining?

    A store is compared with its *original*:

    - For an automaton store, that is the *open* store of the same grammar and vocabulary. It has
      the same lexer and LALR tables, but no closed automaton. At each position it asks the parser
      about every entry of the lexer state, one by one. Nothing in it is judged, merged, folded or
      closed. So the check covers all that streamlining and the closed automaton say, with 300 to
      1,000 parser questions for a position.
    - For a store of entries (lexing "nfa"), it is `build_store(streamlined=False)`. The reference
      decoder reads both. Its states come from the definition and not from a store. A position whose
      whole state, stacks included, was met before is counted but not compared again.

    A unit of work is a text.

    A text is followed as far as its tokens are legal. The outcome of a text that is not legal as a
    whole is "ended early", unless masks differ before.
    """
    pair: Any = (_Engines if setup.store.engine else _Decoders)(setup.store, setup.original)
    vocabulary = setup.store.vocabulary

    def run(text: str) -> Outcome:
        tokens = setup.tokens(text)
        pair.reset()
        different: list[Outcome] = []
        positions = offset = n_different = 0
        stop: Stop | None = None
        try:
            for token in [*tokens, None]:
                masks = pair.differing_masks()
                positions += 1
                n_different += masks is not None
                if masks is not None and len(different) < 3:
                    different.append(_difference(text, offset, token, vocabulary, masks))
                if token is not None:
                    stop = pair.advance(token)
                    offset += len(vocabulary.tokens[token])
                elif not pair.is_accepting():
                    stop = Stop(len(tokens), None, NOT_COMPLETE)
                if stop is not None:
                    break
        except LimitError:
            if not different:
                raise
        found: Outcome = {"class": SAME, "positions": positions, "different": n_different}
        if different:
            found |= {"class": DIFFERENT, **different[0], "more": different[1:]}
        elif stop is not None:
            stop = stop._replace(n_tokens=positions - 1)
            found |= {"class": ENDED_EARLY, **facts_of_stop(text, tokens, stop, vocabulary)}
        return found

    return run


class _Engines:
    """Two automaton stores, each with a matcher of its own."""

    def __init__(self, store: Store, original: Store) -> None:
        self._matchers = store.matcher(0), original.matcher(0)
        self._words = np.zeros((2, store.n_words), np.uint32)
        self.is_accepting = self._matchers[0].is_accepting

    def reset(self) -> None:
        """Go back to the start of a text."""
        for matcher in self._matchers:
            matcher.reset()

    def differing_masks(self) -> Words | None:
        """The masks of the store and of the original; None if they are equal."""
        for matcher, words in zip(self._matchers, self._words, strict=True):
            try:
                matcher.fill(words)
            except DeadEndError:
                words[:] = 0
        return None if np.array_equal(*self._words) else self._words

    def advance(self, token: int) -> Stop | None:
        """Read a token in both stores; returns where that is refused."""
        try:
            for matcher in self._matchers:
                matcher.advance(token)
        except IllegalTokenError:
            return stop_at(self._matchers[0], 0, token)
        return None


class _Decoders:
    """Two stores of entries with one state: the states do not depend on the store.

    The methods mean the same as those of `_Engines`.
    """

    def __init__(self, store: EntryStore, original: EntryStore) -> None:
        self._decoder, self._other = ReferenceDecoder(store), ReferenceDecoder(original)
        # stacks belong to the parser that made them, so both decoders must have the same parser
        self._other.parser = self._decoder.parser
        self._known: set[tuple[Hypothesis, ...]] = set()
        self.reset, self.is_accepting = self._decoder.reset, self._decoder.is_accepting

    def differing_masks(self) -> Words | None:
        state = self._decoder.hypotheses
        if state in self._known:
            return None
        self._other.hypotheses, self._other._finished = state, self._decoder.is_finished()
        masks = np.array([self._decoder.mask(), self._other.mask()])
        if not np.array_equal(*masks):
            return masks
        self._known.add(state)
        return None

    def advance(self, token: int) -> Stop | None:
        try:
            self._decoder.advance(token)
        except IllegalTokenError as error:
            return Stop(0, token, str(error))
        return None


def _difference(text: str, offset: int, token: int | None, vocabulary: Vocabulary, masks: Words) -> Outcome:
    """The facts of a position where masks differ: its place, and the tokens missing and added."""
    own, original = map(tokens_of, masks)
    lacking, added = np.setdiff1d(original, own), np.setdiff1d(own, original)
    why = f"the store lacks {len(lacking)} tokens {lacking[:8].tolist()} and adds {len(added)} {added[:8].tolist()}"
    return facts_of_place(text, offset, offset, token, vocabulary) | {"why": why}


RIGHT = "refused where it goes wrong"
EARLY = "refused too early"
EARLY_GRAMMAR = "refused too early: the grammar lacks it"
LATE = "refused too late"
LATE_GRAMMAR = "refused too late: the grammar takes it"

Case = tuple[str, int, int]
"""A text, and the least and the greatest byte offset at which it may go wrong."""


def case_of(text: Text) -> Case:
    """The case that a record describes.

    text : a text with a record that has `first_bad_byte`, or `first_bad_lower` and
        `first_bad_upper`: offsets in the text's UTF-8, at most its length.

    Raises: CorpusError if the record does not say where the text goes wrong.
    """
    record: Mapping[str, Any] = text.record or {}
    exact = record.get("first_bad_byte")
    lower, upper = record.get("first_bad_lower", exact), record.get("first_bad_upper", exact)
    n = len(text.text.encode("utf-8", "surrogatepass"))
    if not (isinstance(lower, int) and isinstance(upper, int) and 0 <= lower <= upper <= n):
        raise CorpusError(
            f"{text.name}: does not say where its text goes wrong (found lower {lower!r}, upper {upper!r} of {n} bytes); expected JSON "
            "Lines records with text and first_bad_byte, or first_bad_lower and first_bad_upper"
        )
    return text.text, lower, upper


def refused_in_place(setup: Setup) -> Callable[[Case], Outcome]:
    """The check "negative": is a text that goes wrong at a known byte refused at that byte?

    A unit of work is a case. It gives an interval for its first bad byte k: some legal text begins
    with `text[:k]`, none begins with `text[:k + 1]`. If only the end of the text is wrong, k is its
    length. If a refusal lies outside the interval, the independent oracle decides whether the
    engine or the grammar is at fault.
    """
    grammar, vocabulary = setup.store.grammar, setup.store.vocabulary
    matcher = setup.store.matcher(0)
    oracle = cache(lambda: Oracle(grammar, grammar.conflicts))

    def is_legal(text: bytes, is_whole: bool) -> bool | None:
        """What the oracle says of a prefix, or of a whole text; None if it gives no answer."""
        try:
            return oracle().is_legal_text(text) if is_whole else oracle().is_legal_prefix(text)
        except MaskwrightError:
            return None

    def run(case: Case) -> Outcome:
        text, lower, upper = case
        tokens = setup.tokens(text)
        stop, data = find_stop(matcher, tokens), text.encode()
        offset = len(data) + 1 if stop is None else facts_of_stop(text, tokens, stop, vocabulary)["byte"]
        if lower <= offset <= upper:
            return {"class": RIGHT}
        if offset < lower:
            kind = EARLY_GRAMMAR if is_legal(data[: offset + 1], False) is False else EARLY
        else:
            kind = LATE_GRAMMAR if is_legal(data[:offset], stop is None) else LATE
        said = "accepted as a whole" if stop is None else f"refused at {offset}: {stop.why}"
        shown = min(offset, len(data))
        return {
            "class": kind,
            **facts_of_place(text, shown, shown, None, vocabulary),
            "byte": offset,
            "expected": [lower, upper],
            "why": f"expected between bytes {lower} and {upper}; {said}",
        }

    return run


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
    """The check "oracle": does an independent oracle agree with the masks on sampled tokens?

    A unit of work is a text. The prefixes end at random token boundaries of it. At each prefix,
    half of the tokens are drawn from those that the mask allows, and half from those that it
    refuses. Half of the allowed tokens have at least four bytes. Half of the refused tokens begin
    with a byte that may come, so that the first byte alone does not show that they are illegal. At
    each prefix the check also compares whether the text may end.

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
