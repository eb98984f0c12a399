"""Two engines read texts in step, and their masks are compared bit by bit.

A token is *over-constrained* if the exact mask has it and the other mask does not. It is
*under-constrained* if only the other mask has it. End-of-text tokens count as one token. Other
special tokens are not compared.

Where every legal text goes on with some bytes, an engine may *force* one token for them, as
llguidance forces those of the tokenizer's own spelling. Its mask lacks the other tokens that begin
this text, and no text: such a mask is counted apart, and its tokens are not over-constrained.

The engine has left a text where it refuses the true next token. The text leaves the grammar where
the exact engine refuses that token. The masks are compared there, and no further.

Differences with the same kind, terminal before and terminals spelled (`TokenSequences`) are counted
together.
"""

from __future__ import annotations

import contextlib
import random
import re
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import DeadEndError, LimitError
from maskwright.analysis.lexing.encoding import DEAD, START_STATE
from maskwright.audit.remote import EngineFailed, RemoteEngine
from maskwright.audit.report import EMPTY, FORCED, INCONSISTENT, OVER, TRUE_REFUSED, UNCONSTRAINED, UNDER
from maskwright.decoding.engine import constants
from maskwright.decoding.reference.machine import machine_of
from maskwright.stores.store import Store
from maskwright.validation.replay import replay

Int32 = npt.NDArray[np.int32]

END_OF_TEXT = -1
"""The number of the sequence of end-of-text tokens."""

_KEPT = 256
"""Lexer states whose sequences are kept."""


class TokenSequences:
    """Which terminals each of a store's tokens spells in a lexer state: its *sequence*, by number.

    That is what the lexer emits over the token's bytes, from the lexeme under way on, and what is
    begun at its end. With the terminal before it, it tells in which part of the grammar two engines
    differ, whatever names and numbers the text has.

    store : of a grammar.

    Raises: StoreError if the store's lexer is not the one that is built for its grammar now.
    """

    def __init__(self, store: Store) -> None:
        self.grammar, self._tokens = store.grammar, store.vocabulary.tokens
        self._names = [store.grammar.display_name(terminal) for terminal in range(store.grammar.n_terminals)]
        machine = self._machine = machine_of(store.grammar)
        machine.check_lexer(store.table)
        self._number: dict[str, int] = {}
        self._known: dict[int, Int32] = {}
        # merged state of the parser -> the terminals whose shift leads to it
        self._led_by: dict[int, set[int]] = {}
        for state, symbol in zip(machine.class_of, machine.automaton.accessing, strict=True):
            if 0 <= symbol < self.grammar.n_terminals:
                self._led_by.setdefault(state, set()).add(symbol)

    def numbers(self, matcher: Any) -> Int32:
        """(V,) int32: for each token the number of its sequence, where a matcher stands.

        If it has several stacks, that of the first.

        Cost: O(bytes of the vocabulary) for a new lexer state.
        """
        machine, state = self._machine, int(matcher.text.memory[constants.LEXER])
        if state == START_STATE:
            state = machine.mode_state[machine.modes.of_state[_top(matcher)]]
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _KEPT:
                del self._known[next(iter(self._known))]
            # PERF: takes no longer than all tokens in step, in arrays (10 to 200 ms of a CPU for
            # 32,768 to 131,072 tokens)
            number = self._number
            words = (" ".join(self._sequence(state, token)) or "ignored text" for token in self._tokens)
            numbers = [number.setdefault(each, len(number)) for each in words]
            found = self._known[state] = np.array(numbers, np.int32)
        return found

    def _sequence(self, state: int, token: bytes) -> tuple[str, ...]:
        """The sequence of a token in a lexer state, in words.

        A lexeme that could end where the token ends counts as what it is now. Otherwise it is only
        begun.
        """
        machine, outputs, has_modes = self._machine, self._machine.transducer.outputs, len(self._machine.mode_state) > 1
        found: list[str] = []
        for at, byte in enumerate(token, start=1):
            klass = machine.byte_class[byte]
            found += map(self._names.__getitem__, outputs[machine.output[state][klass]])
            after = machine.next_state[state][klass]
            if after == DEAD:
                return (*found, *self._ended(state), "then nothing that is a terminal")
            # Where the parser chooses what competes next, the bytes alone do not tell.
            if after < 0 or (has_modes and after == START_STATE and at < len(token)):
                return (*found, "...")
            state = after
        if not token or state == START_STATE:
            return tuple(found)
        if machine.transducer.end_output[state] >= 0:
            return (*found, *self._ended(state))
        live = [t for t in machine.transducer.live[state] if t not in self.grammar.ignored]
        return (*found, f"{self._one_of(live)} (begun)" if live else "(begun)")

    def _ended(self, state: int) -> list[str]:
        """What the end of the text emits in a state; nothing if it cannot end there."""
        output = int(self._machine.transducer.end_output[state])
        return [self._names[t] for t in self._machine.transducer.outputs[output]] if output >= 0 else []

    def describe(self, number: int) -> str:
        """A sequence in words."""
        return "end of text" if number == END_OF_TEXT else [*self._number][number]

    def before(self, matcher: Any) -> str:
        """The terminal before, in words: what leads to the state of the parser."""
        terminals = sorted(self._led_by.get(self._machine.origin[_top(matcher)], ()))
        return self._one_of(terminals) if terminals else "the start"

    def _one_of(self, terminals: Sequence[int]) -> str:
        """Names of up to three terminals."""
        return " or ".join(self._names[terminal] for terminal in terminals[:3]) + " or ..." * (len(terminals) > 3)


def _top(matcher: Any) -> int:
    """The parser's state after the last terminal; of several stacks, that of the first."""
    return int(matcher.text.stacks()[0][-1])


Progress = Callable[[str, int, int], None]
Flags = npt.NDArray[np.bool_]
"""(V + 1,) bool; which tokens for text a mask has, and at -1 whether the text may end."""

OUTCOMES = WHOLE, REFUSED, RESPELLED, OUTSIDE, FAILED, OVER_LIMIT, NOT_DRAWN = (
    "texts read to their end by both",
    "texts ended by the engine, which refuses them",
    "texts ended where the engine forces other tokens for them",
    "texts that leave the grammar",
    "texts ended by a failure of the engine",
    "texts over a limit of the exact engine",
    "texts of which no position was drawn",
)
"""The outcomes of a text, in the order of the report."""


class EncodedText(NamedTuple):
    """A text of the corpus.

    name : in the corpus.
    text : what it says.
    tokens : the tokenizer's ids, which spell it exactly.
    """

    name: str
    text: str
    tokens: list[int]


class Found(NamedTuple):
    """A difference at one position.

    kind : one of `report.ORDER`.
    before : the terminal before, in words.
    sequence : of the tokens, in words (`TokenSequences`); "" where the mask as a whole is wrong or
        the engine failed.
    message : what the engine said.
    tokens : how many have it.
    token : the shortest of them; -1 for none, and for the end of the text.
    has_true : whether the true next token is one of them, or the mask as a whole is wrong.
    """

    kind: str
    before: str = ""
    sequence: str = ""
    message: str = ""
    tokens: int = 0
    token: int = -1
    has_true: bool = True

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Equal for what is counted together."""
        return self.kind, self.before, self.sequence, self.message


@dataclass
class Seen:
    """A difference while it is counted.

    example : the best one. True refusals come first, then early positions.
    place : of the example: whether it is no true refusal, position in the text, number of the text.
    positions : masks with it.
    tokens : tokens with it, over all these masks.
    true_refusals : texts that it ended.
    """

    example: Found
    place: tuple[bool, int, int]
    positions: int = 0
    tokens: int = 0
    true_refusals: int = 0

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
        self.lengths = np.array([*map(len, self.vocabulary.tokens), 0])
        self.is_text = self.lengths > 0
        self.eos = list(self.vocabulary.eos)
        self._words = np.zeros(store.n_words, np.uint32)
        self.ours = self._flags(self._words)
        self.seen: dict[tuple[str, str, str, str], Seen] = {}
        self.texts_by_outcome: Counter[str] = Counter()
        counted = [name for names in _COUNTED.values() for name in names if name]
        others = ("true_refused", "failed", "dead_ends", "over_limit", "respelled")
        self.counts = dict.fromkeys(("masks", *counted, *others), 0)
        self.nanoseconds: dict[str, list[int]] = {"theirs": [], "ours": []}
        self.text = self.at = 0

    # --- reading ---

    def warm_up(self) -> None:
        """Make one mask with both engines that is not timed.

        This loads compiled code and begins automata.
        """
        with contextlib.suppress(EngineFailed):
            self.stand_at([])
            self.fill_ours()
            self.fill_theirs()

    def read(self, max_positions: int, seed: int) -> None:
        """Compare the masks at all positions of the texts, or at `max_positions` drawn ones.

        seed : of the draw.
        """
        *begins, total = accumulate((len(text.tokens) + 1 for text in self.texts), initial=0)
        chosen: Sequence[int] = range(total)
        if total > max_positions:
            chosen = sorted(random.Random(seed).sample(chosen, max_positions))
        for number, (text, begin) in enumerate(zip(self.texts, begins, strict=True)):
            self.text = number
            first, end = bisect_left(chosen, begin), bisect_left(chosen, begin + len(text.tokens) + 1)
            outcome, self._progress = NOT_DRAWN, (first, len(chosen))
            if first < end and not self.remote.gave_up:
                try:
                    outcome = self._read_text(text.tokens, [at - begin for at in chosen[first:end]])
                except LimitError:
                    outcome = OVER_LIMIT
                    self.counts["over_limit"] += 1
                except EngineFailed as error:
                    outcome = FAILED
                    self.counts["failed"] += 1
                    self._count(Found(error.kind, message=cause(error)))
                self._tell(end - first)
            self.texts_by_outcome[outcome] += 1

    def _tell(self, n: int) -> None:
        """Report progress: n of the positions of a text are done."""
        done, total = self._progress
        if self.progress is not None:
            self.progress("masks", done + n, total)

    def _read_text(self, tokens: list[int], wanted: list[int]) -> str:
        """Compare the masks at some positions of one text. Returns the outcome."""
        self.at = at = 0
        self.remote.reset()
        self.matcher.reset()
        for number, stop in enumerate([*wanted, None]):
            segment = tokens[at:stop]
            taken = replay(self.matcher, segment)
            self.at = at + taken
            theirs = self.remote.advance(segment[:taken])
            at += theirs
            if theirs < taken:
                self.stand_at(tokens[:at])
                self._compare(at, tokens[at], is_refused=True)
                return REFUSED
            if taken < len(segment):
                self._compare(at, tokens[at])
                return OUTSIDE
            if stop is not None and (kind := self._compare(at, tokens[at] if at < len(tokens) else END_OF_TEXT)):
                return RESPELLED if kind == FORCED else REFUSED
            if number % 64 == 0:
                self._tell(number)
        return WHOLE if self.matcher.is_accepting() else OUTSIDE

    def stand_at(self, tokens: list[int]) -> bool:
        """Make both engines read some tokens from the start; False if one of them refuses."""
        self.matcher.reset()
        if replay(self.matcher, tokens) < len(tokens):
            return False
        self.remote.reset()
        return self.remote.advance(tokens) == len(tokens)

    def fill_ours(self) -> int:
        """Make our mask, `ours`, and return the nanoseconds that it took.

        At a dead end the mask is empty and -1 is returned.
        """
        begin = time.perf_counter_ns()
        try:
            self.matcher.fill(self._words)
            took = time.perf_counter_ns() - begin
        except DeadEndError:
            self._words[:] = 0
            took = -1
        self.ours = self._flags(self._words)
        return took

    def fill_theirs(self) -> tuple[Flags, int]:
        """The mask of the engine under audit, and the nanoseconds that it took."""
        words, took = self.remote.fill()
        return self._flags(words), took

    def _flags(self, words: npt.NDArray[np.uint32]) -> Flags:
        bits = np.unpackbits(words.view(np.uint8), count=len(self.is_text), bitorder="little").astype(np.bool_)
        ends = bits[self.eos].any()
        bits &= self.is_text
        bits[END_OF_TEXT] = ends
        return bits

    def _compare(self, at: int, true: int, is_refused: bool = False) -> str:
        """Compare the masks after the tokens that both engines have read.

        at : position in the text, in tokens.
        true : the next token; -1 for the end of the text.
        is_refused : whether the engine's `advance` has refused it.

        Returns "" if the engine goes on with the true token, or if that is illegal; else FORCED if
        it forces another token for the same text, or OVER.
        """
        self.at = at
        ours_took = self.fill_ours()
        theirs, theirs_took = self.fill_theirs()
        self.counts["masks"] += 1
        self.nanoseconds["theirs"].append(theirs_took)
        if ours_took >= 0:
            self.nanoseconds["ours"].append(ours_took)
        else:
            self.counts["dead_ends"] += 1
        is_wrong = bool(self.ours[true]) and (is_refused or not theirs[true])
        differences = self.differences(theirs, true, may_force=not is_refused)
        kinds = {one.kind for one in differences}
        for kind in kinds:
            self.counts[_COUNTED[kind][0]] += 1
        if is_wrong and theirs[true] and not kinds & {FORCED, UNCONSTRAINED, EMPTY}:
            self.counts["failed"] += 1
            self._count(Found(INCONSISTENT, token=true), True)
        for one in differences:
            if one.tokens:
                self.counts[_COUNTED[one.kind][1]] += one.tokens
            if one.kind == OVER and is_wrong and one.has_true:
                one = one._replace(token=true)
            self._count(one, is_wrong and one.has_true)
        self.counts["respelled" if FORCED in kinds else "true_refused"] += is_wrong
        return "" if not is_wrong else FORCED if FORCED in kinds else OVER

    def differences(self, theirs: Flags, true: int = END_OF_TEXT, may_force: bool = True) -> list[Found]:
        """How a mask differs from the exact one, which is `ours`.

        true : the next token; -1 for the end of the text.
        may_force : whether the mask may be that of an engine which forces tokens.
        """
        over, under = self.ours & ~theirs, theirs & ~self.ours
        if not (over.any() or under.any()):
            return []
        forced = self._forced_token(theirs, over) if may_force else None
        if forced is None and not theirs.any():
            return [Found(EMPTY)]
        if forced is None and theirs[self.is_text].all() and under[:END_OF_TEXT].any():
            return [Found(UNCONSTRAINED)]
        before, describe = self.sequences.before(self.matcher), self.sequences.describe
        numbers = np.append(self.sequences.numbers(self.matcher), END_OF_TEXT)
        if forced is not None:
            return [Found(FORCED, before, describe(int(numbers[forced])), "", int(over.sum()), forced)]
        found = []
        for kind, flags in ((OVER, over), (UNDER, under)):
            ids = np.flatnonzero(flags)
            ids = ids[np.argsort(self.lengths[ids], kind="stable")]
            for row in zip(*np.unique(numbers[ids], return_index=True, return_counts=True), strict=True):
                number, first, n_tokens = (int(each) for each in row)
                has_true = bool(flags[true]) and int(numbers[true]) == number
                token = END_OF_TEXT if number == END_OF_TEXT else int(ids[first])
                found.append(Found(kind, before, describe(number), "", n_tokens, token, has_true))
        return found

    def _forced_token(self, theirs: Flags, over: Flags) -> int | None:
        """The one token of a mask, if every legal text goes on with its bytes; None otherwise.

        None too where the exact mask has this token alone.

        over : what the mask lacks.
        """
        ids = np.flatnonzero(theirs).tolist()
        if len(ids) != 1 or not self.lengths[ids[0]] or not self.ours[ids[0]] or not over[:END_OF_TEXT].any():
            return None
        data = self.vocabulary.tokens[ids[0]]
        return ids[0] if self.matcher.forced_bytes(len(data)) == data else None

    # --- counting ---

    def _count(self, found: Found, is_true: bool = False) -> None:
        """Count a difference at the current position. is_true : whether it ended the text."""
        place = (not is_true, self.at, self.text)
        seen = self.seen.setdefault(found.key, Seen(found, place))
        seen.positions += 1
        seen.tokens += found.tokens
        seen.true_refusals += is_true
        if place < seen.place:
            seen.place, seen.example = place, found


def cause(error: EngineFailed) -> str:
    """The first line of what an engine says, with all numbers replaced.

    So equal failures on different texts have equal messages.
    """
    lines = str(error).splitlines()
    return re.sub(r"\d+", "N", lines[0] if lines else "")[:200]
