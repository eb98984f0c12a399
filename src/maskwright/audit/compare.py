"""Two engines read texts in step, and their masks are compared bit by bit.

A token is *over-constrained* if the exact mask has it and the other mask does not. It is
*under-constrained* if only the other mask has it. End-of-text tokens count as one token. Other
special tokens are not compared.

Where every legal text goes on with some bytes, an engine may *force* one token for them, as
llguidance forces those of the tokenizer's own spelling. Its mask lacks the other tokens that begin
this text, and no text: such a mask is counted apart, and its tokens are not over-constrained.

The engine has left a text where it refuses the true next token. The text leaves the grammar where
the exact engine refuses that token. The masks are compared there, and no further.

Differences with the same kind, terminal before and terminals spelled (`sequences`) are counted
together.
"""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.audit.remote import EngineFailed, RemoteEngine
from maskwright.audit.report import EMPTY, FORCED, INCONSISTENT, OVER, TRUE_REFUSED, UNCONSTRAINED, UNDER
from maskwright.audit.sequences import END_OF_TEXT, TokenSequences
from maskwright.maskstore.vocabulary.masks import tokens_of, words_of
from maskwright.stores.store import Store
from maskwright.validation.replay import replay

Progress = Callable[[str, int, int], None]
Words = npt.NDArray[np.uint32]
Tokens = list[int]

WHOLE = "texts read to their end by both"
REFUSED = "texts ended by the engine, which refuses them"
RESPELLED = "texts ended where the engine forces other tokens for them"
OUTSIDE = "texts that leave the grammar"
FAILED = "texts ended by a failure of the engine"
OVER_LIMIT = "texts over a limit of the exact engine"
NOT_DRAWN = "texts of which no position was drawn"


@dataclass(frozen=True)
class EncodedText:
    """A text of the corpus.

    name : in the corpus.
    text : what it says.
    tokens : (n,) int32; the tokenizer's ids, which spell it exactly.
    """

    name: str
    text: str
    tokens: npt.NDArray[np.int32]


class Found(NamedTuple):
    """A difference at one position.

    kind : one of `report.ORDER`.
    before : the terminal before, in words.
    number : of the tokens' sequence (`TokenSequences`); None where the mask as a whole is wrong or
        the engine failed.
    message : what the engine said.
    tokens : how many have it.
    token : the shortest of them; -1 for none.
    has_true : whether the true next token is one of them, or the mask as a whole is wrong.
    """

    kind: str
    before: str = ""
    number: int | None = None
    message: str = ""
    tokens: int = 0
    token: int = -1
    has_true: bool = True

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """Equal for what is counted together."""
        return self.kind, self.before, self.number, self.message


@dataclass
class Seen:
    """A difference while it is counted.

    example : the best one, at `at`.
    positions : masks with it.
    tokens : tokens with it, over all these masks.
    true_refusals : texts that it ended.
    at : text and position of the example.
    cost : of the example; lower is better. True refusals come first, then early positions.
    """

    example: Found
    positions: int = 0
    tokens: int = 0
    true_refusals: int = 0
    at: tuple[int, int] = (0, 0)
    cost: tuple[bool, int] = (True, 1 << 62)

    @property
    def kind(self) -> str:
        """The kind that is reported: an over-constraint that ended a text has one of its own."""
        return TRUE_REFUSED if self.example.kind == OVER and self.true_refusals else self.example.kind


_COUNTED = {
    OVER: ("masks_over", "tokens_over"),
    UNDER: ("masks_under", "tokens_under"),
    FORCED: ("forced", "tokens_forced"),
    UNCONSTRAINED: ("unconstrained", ""),
    EMPTY: ("empty", ""),
}
"""Kind -> the names of the counts of masks and of tokens with it."""


class Comparison:
    """Reads texts with both engines and counts the differences.

    store : of the exact engine.
    remote : the engine under audit.
    texts : with their tokens.
    progress : called with (what, done, total).

    seen : the differences.
    texts_by_outcome : how many texts ended in which way.
    counts : masks and tokens, and those with each kind of difference.
    nanoseconds : time of each mask, "theirs" and "ours".
    """

    def __init__(
        self,
        store: Store,
        remote: RemoteEngine,
        texts: Sequence[EncodedText],
        progress: Progress | None = None,
    ) -> None:
        self.remote, self.texts, self.progress = remote, texts, progress
        self.vocabulary = store.vocabulary
        self.matcher = store.matcher(0)
        self.sequences = TokenSequences(store)
        self.lengths = np.array([len(token) for token in self.vocabulary.tokens], np.int64)
        self.text_bits: Words = words_of(np.flatnonzero(self.lengths), len(self.lengths))
        self.eos = list(self.vocabulary.eos)
        self.ours = np.zeros(store.n_words, np.uint32)
        self.seen: dict[tuple[str, str, int | None, str], Seen] = {}
        self.texts_by_outcome: Counter[str] = Counter()
        counted = [name for names in _COUNTED.values() for name in names if name]
        others = ("true_refused", "failed", "dead_ends", "over_limit", "respelled")
        self.counts = dict.fromkeys(("masks", *counted, *others), 0)
        self.nanoseconds: dict[str, list[int]] = {"theirs": [], "ours": []}
        self.text = 0

    # --- reading ---

    def warm_up(self) -> None:
        """Make one mask with both engines that is not timed.

        This loads compiled code and begins automata.
        """
        with contextlib.suppress(EngineFailed):
            self.stand_at([])
            self.fill_ours()
            self.remote.fill()

    def read(self, max_positions: int, seed: int) -> None:
        """Compare the masks at all positions of the texts, or at `max_positions` drawn ones.

        seed : of the draw.
        """
        ends = np.cumsum([len(text.tokens) + 1 for text in self.texts])
        total = int(ends[-1]) if len(ends) else 0
        chosen = np.arange(total)
        if total > max_positions:
            chosen = np.array(sorted(random.Random(seed).sample(range(total), max_positions)), np.int64)
        cuts = np.searchsorted(chosen, ends)
        for number, text in enumerate(self.texts):
            self.text = number
            begin, end = (0 if number == 0 else int(cuts[number - 1])), int(cuts[number])
            wanted = (chosen[begin:end] - (ends[number] - len(text.tokens) - 1)).tolist()
            if not wanted or self.remote.gave_up:
                self.texts_by_outcome[NOT_DRAWN] += 1
                continue
            self.done, self.total = begin, len(chosen)
            try:
                outcome = self._read_text(text.tokens.tolist(), wanted)
            except LimitError:
                outcome = OVER_LIMIT
                self.counts["over_limit"] += 1
            except EngineFailed as error:
                self.counts["failed"] += 1
                self._count(Found(error.kind, message=cause(error)))
                outcome = FAILED
            self.texts_by_outcome[outcome] += 1
            self._tell(end)

    def _tell(self, done: int) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress("masks", done, self.total)

    def _read_text(self, tokens: Tokens, wanted: Sequence[int]) -> str:
        """Compare the masks at some positions of one text. Returns the outcome."""
        self.at = 0
        self.remote.reset()
        self.matcher.reset()
        at = 0
        for number, stop in enumerate([*wanted, len(tokens)]):
            segment = tokens[at:stop]
            taken = replay(self.matcher, segment)
            self.at = at + taken
            theirs = self.remote.advance(segment[:taken])
            if theirs < taken:
                at += theirs
                self.stand_at(tokens[:at])
                self._compare(at, tokens[at], is_refused=True)
                return REFUSED
            at += taken
            if at < stop:
                self._compare(at, tokens[at])
                return OUTSIDE
            if number == len(wanted):
                break
            if kind := self._compare(at, tokens[at] if at < len(tokens) else None):
                return RESPELLED if kind == FORCED else REFUSED
            if number % 64 == 0:
                self._tell(self.done + number)
        return WHOLE if self.matcher.is_accepting() else OUTSIDE

    def stand_at(self, tokens: Tokens) -> bool:
        """Make both engines read some tokens from the start; False if one of them refuses."""
        self.matcher.reset()
        if replay(self.matcher, tokens) < len(tokens):
            return False
        self.remote.reset()
        return self.remote.advance(tokens) == len(tokens)

    def fill_ours(self) -> int:
        """Fill our mask, and return the nanoseconds that it took.

        At a dead end the mask is empty and -1 is returned.
        """
        begin = time.perf_counter_ns()
        try:
            self.matcher.fill(self.ours)
        except DeadEndError:
            self.ours[:] = 0
            return -1
        return time.perf_counter_ns() - begin

    def _compare(self, at: int, true: int | None, is_refused: bool = False) -> str:
        """Compare the masks after the tokens that both engines have read.

        at : position in the text, in tokens.
        true : the next token; None for the end of the text.
        is_refused : whether the engine's `advance` has refused it.

        Returns "" if the engine goes on with the true token, or if that is illegal; else FORCED if
        it forces another token for the same text, or OVER.
        """
        self.at = at
        ours_took = self.fill_ours()
        theirs, theirs_took = self.remote.fill()
        self.counts["masks"] += 1
        self.nanoseconds["theirs"].append(theirs_took)
        if ours_took >= 0:
            self.nanoseconds["ours"].append(ours_took)
        else:
            self.counts["dead_ends"] += 1
        is_legal = self.has(self.ours, true)
        is_wrong = is_legal and (is_refused or not self.has(theirs, true))
        differences = self.differences(theirs, true, may_force=not is_refused)
        kinds = {one.kind for one in differences}
        for kind in kinds:
            self.counts[_COUNTED[kind][0]] += 1
        if is_wrong and self.has(theirs, true) and not kinds & {FORCED, UNCONSTRAINED, EMPTY}:
            self.counts["failed"] += 1
            self._count(Found(INCONSISTENT, token=-1 if true is None else true), True)
        for one in differences:
            if one.tokens:
                self.counts[_COUNTED[one.kind][1]] += one.tokens
            if one.kind == OVER and is_wrong and one.has_true and true is not None:
                one = one._replace(token=true)
            self._count(one, is_wrong and one.has_true)
        self.counts["respelled" if FORCED in kinds else "true_refused"] += is_wrong
        return "" if not is_wrong else FORCED if FORCED in kinds else OVER

    def differences(self, theirs: Words, true: int | None = None, may_force: bool = True) -> list[Found]:
        """How a mask differs from the exact one, which is `ours`.

        theirs : (ceil(V / 32),) uint32.
        true : the next token; None for the end of the text.
        may_force : whether the mask may be that of an engine which forces tokens.
        """
        forced = self._forced_token(theirs) if may_force else None
        whole = None if forced is not None else self._whole(theirs)
        if whole is not None:
            return [Found(whole)]
        over, under = (self._tokens_of(theirs, is_over) for is_over in (True, False))
        if not any(len(ids) or ends for ids, ends in (over, under)):
            return []
        configuration = self.sequences.configuration(self.matcher)
        before = self.sequences.before(configuration.parser_state)
        numbers = self.sequences.numbers(configuration)
        if forced is not None:
            return [Found(FORCED, before, int(numbers[forced]), "", len(over[0]), forced)]
        found = []
        for kind, (ids, ends) in ((OVER, over), (UNDER, under)):
            for row in zip(*np.unique(numbers[ids], return_index=True, return_counts=True), strict=True):
                number, first, n_tokens = (int(each) for each in row)
                has_true = true is not None and true in ids and int(numbers[true]) == number
                found.append(Found(kind, before, number, "", n_tokens, int(ids[first]), has_true))
            if ends:
                found.append(Found(kind, before, END_OF_TEXT, "", 1, has_true=true is None))
        return found

    def has(self, words: Words, token: int | None) -> bool:
        """Whether a mask has a token; None stands for any end-of-text token.

        words : (ceil(V / 32),) uint32.
        """
        return any(int(words[one >> 5]) >> (one & 31) & 1 for one in (self.eos if token is None else [token]))

    def _forced_token(self, theirs: Words) -> int | None:
        """The one token of a mask, if every legal text goes on with its bytes; None otherwise.

        None too where the exact mask has this token alone.

        theirs : (ceil(V / 32),) uint32; compared with `ours`.
        """
        text = theirs & self.text_bits
        at = np.flatnonzero(text)
        if len(at) != 1 or self.has(theirs, None) or not (self.ours & ~text & self.text_bits).any():
            return None
        word = int(text[at[0]])
        token = 32 * int(at[0]) + word.bit_length() - 1
        if word & (word - 1) or not self.has(self.ours, token):
            return None
        data = self.vocabulary.tokens[token]
        return token if self.matcher.forced_bytes(len(data)) == data else None

    def _whole(self, theirs: Words) -> str | None:
        """The fault of a mask as a whole: EMPTY, UNCONSTRAINED or None.

        theirs : (ceil(V / 32),) uint32; compared with `ours`.
        """
        if not ((theirs & self.text_bits).any() or self.has(theirs, None)):
            return EMPTY if (self.ours & self.text_bits).any() or self.has(self.ours, None) else None
        if not (~theirs & self.text_bits).any():
            return UNCONSTRAINED if (~self.ours & self.text_bits).any() else None
        return None

    def _tokens_of(self, theirs: Words, is_over: bool) -> tuple[npt.NDArray[np.int64], int]:
        """The tokens in which the masks differ, the shortest first.

        theirs : (ceil(V / 32),) uint32; compared with `ours`.
        is_over : tokens that only ours has; else tokens that only theirs has.

        Returns (n,) int64 ids, and 1 if the end of the text differs too, else 0.
        """
        more, less = (self.ours, theirs) if is_over else (theirs, self.ours)
        ends = int(self.has(more, None) and not self.has(less, None))
        ids = tokens_of(more & ~less & self.text_bits)
        return ids[np.argsort(self.lengths[ids], kind="stable")], ends

    # --- counting ---

    def _count(self, found: Found, is_true: bool = False) -> None:
        """Count a difference at the current position. is_true : whether it ended the text."""
        seen = self.seen.setdefault(found.key, Seen(found))
        seen.positions += 1
        seen.tokens += found.tokens
        seen.true_refusals += is_true
        cost = (not is_true, self.at)
        if cost < seen.cost:
            seen.cost, seen.at, seen.example = cost, (self.text, self.at), found


def cause(error: EngineFailed) -> str:
    """The first line of what an engine says, with all numbers replaced.

    So equal failures on different texts have equal messages.
    """
    lines = str(error).splitlines()
    return re.sub(r"\d+", "N", lines[0] if lines else "")[:200]
