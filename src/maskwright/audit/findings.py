"""From counted differences to findings: the worst first, each with the shortest text found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from maskwright.analysis.errors import IllegalTokenError, LimitError, VocabularyError
from maskwright.audit.compare import Comparison, Seen, cause
from maskwright.audit.remote import CRASH, TIMEOUT, EngineFailed
from maskwright.audit.report import FORCED, INCONSISTENT, ORDER, OVER, TRUE_REFUSED, UNDER, Difference
from maskwright.audit.sequences import END_OF_TEXT
from maskwright.audit.shrink import shrink
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.validation.replay import place_of, replay

_CRASH_TESTS = 30
"""Texts that are tried to shorten one that kills the engine. Each costs a start."""


class Findings:
    """The differences of a comparison, put in order and with short texts.

    comparison : after it has read its texts.
    encoder : spells the texts that are tried.
    shown_token : a shortest token with the difference last found; -1 for none.
    """

    def __init__(self, comparison: Comparison, encoder: Encoder) -> None:
        self.comparison, self.encoder = comparison, encoder
        self.shown_token = -1

    def differences(self, examples: int, seconds: float) -> tuple[tuple[Difference, ...], dict[str, int]]:
        """The differences in order, at most `examples` of each kind, each with a shortest text.

        seconds : for shortening one text.

        Returns the differences, and kind -> how many more were only counted.
        """
        seen = sorted(self.comparison.seen.values(), key=lambda one: (-one.positions, one.cost))
        # One cause often shows in many parts of a grammar. So different terminals come first, then
        # the same ones after other terminals.
        alike: Counter[tuple[str, int | None]] = Counter()
        turn = {}
        for one in seen:
            turn[id(one)] = alike[_kind(one), one.number]
            alike[_kind(one), one.number] += 1
        seen.sort(key=lambda one: (ORDER.index(_kind(one)), turn[id(one)]))
        taken: Counter[str] = Counter()
        unlisted: Counter[str] = Counter()
        chosen = []
        for one in seen:
            kind = _kind(one)
            (taken if taken[kind] < examples else unlisted)[kind] += 1
            if taken[kind] + unlisted[kind] <= examples:
                chosen.append(one)
        found: list[Difference] = []
        for number, one in enumerate(chosen):
            found.append(self._difference(one, [difference.prefix for difference in found], seconds))
            if self.comparison.progress is not None:
                self.comparison.progress("examples shortened", number + 1, len(chosen))
        return tuple(found), dict(unlisted)

    def _difference(self, seen: Seen, others: Sequence[bytes], seconds: float) -> Difference:
        """The finding for one difference. others : texts to try first when shortening."""
        text, at = self.comparison.texts[seen.at[0]], seen.at[1]
        tokens = text.tokens[:at].tolist()
        prefix = b"".join(self.comparison.vocabulary.tokens[token] for token in tokens)
        line, column = place_of(text.text, len(prefix))
        token = seen.token
        is_shortest = False
        # One more time-out would cost as much as the first.
        if seen.kind != TIMEOUT and self._shows(seen, prefix):
            tests = {"tests": _CRASH_TESTS} if seen.kind == CRASH else {}
            prefix = shrink(prefix, lambda data: self._shows(seen, data), others=others, seconds=seconds, **tests)
            is_shortest = True
            if seen.number is not None and self._shows(seen, prefix):
                token = self.shown_token
        why = ""
        if token >= 0 and seen.kind == UNDER:
            tokens = self.encoder.longest_tokens(prefix) if is_shortest else tokens
            self.comparison.matcher.reset()
            if replay(self.comparison.matcher, tokens) == len(tokens):
                why = str(self.comparison.matcher.explain(token)).splitlines()[0]
        return Difference(
            kind=_kind(seen),
            before=seen.before,
            sequence="" if seen.number is None else self.comparison.sequences.describe(seen.number),
            positions=seen.positions,
            tokens=seen.tokens,
            true_refusals=seen.true_refusals,
            prefix=prefix,
            token=None if token < 0 else (token, self.comparison.vocabulary.tokens[token]),
            is_shortest=is_shortest,
            place=f"{text.name}:{line}:{column}",
            message=seen.message,
            why=why,
        )

    def _shows(self, seen: Seen, prefix: bytes) -> bool:
        """Whether the same difference shows after a text. Sets `shown_token`."""
        try:
            tokens = self.encoder.longest_tokens(prefix)
            if not self.comparison.stand_at(tokens):
                return False
            self.comparison.fill_ours()
            theirs, _ = self.comparison.remote.fill()
            if seen.kind == INCONSISTENT:
                is_allowed = self.comparison.has(theirs, seen.token) and self.comparison.has(
                    self.comparison.ours, seen.token
                )
                return is_allowed and self.comparison.remote.advance([seen.token]) == 0
        except (VocabularyError, LimitError, IllegalTokenError):
            return False
        except EngineFailed as error:
            return seen.kind == error.kind and seen.message == cause(error)
        kind = self.comparison.whole(theirs)
        if kind is not None or seen.number is None:
            return kind == seen.kind
        configuration = self.comparison.sequences.configuration(self.comparison.matcher)
        if self.comparison.sequences.before(configuration.parser_state) != seen.before:
            return False
        forced = self.comparison.forced_token(theirs)
        if (forced is not None) != (seen.kind == FORCED):
            return False
        if forced is not None:
            self.shown_token = forced
            return int(self.comparison.sequences.numbers(configuration)[forced]) == seen.number
        ids, ends = self.comparison.differing_tokens(theirs, seen.kind == OVER)
        if seen.number == END_OF_TEXT:
            self.shown_token = -1
            return bool(ends)
        fitting = ids[self.comparison.sequences.numbers(configuration)[ids] == seen.number]
        self.shown_token = int(fitting[0]) if len(fitting) else -1
        return len(fitting) > 0


def _kind(seen: Seen) -> str:
    """The kind that is reported: an over-constraint that ended a text has a kind of its own."""
    return TRUE_REFUSED if seen.kind == OVER and seen.true_refusals else seen.kind
