"""From counted differences to findings: the worst first, each with the shortest text found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from maskwright.analysis.errors import IllegalTokenError, LimitError, VocabularyError
from maskwright.audit.compare import Comparison, Seen, cause
from maskwright.audit.remote import CRASH, TIMEOUT, EngineFailed
from maskwright.audit.report import INCONSISTENT, ORDER, UNDER, Difference
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
        # One cause often shows in many parts of a grammar. So different terminals come first, then
        # the same ones after other terminals.
        alike: Counter[tuple[str, str]] = Counter()
        by_kind: dict[str, list[tuple[int, Seen]]] = defaultdict(list)
        for one in sorted(self.comparison.seen.values(), key=lambda one: (-one.positions, one.place)):
            by_kind[one.kind].append((alike[one.kind, one.example.sequence], one))
            alike[one.kind, one.example.sequence] += 1
        chosen: list[Seen] = []
        unlisted: dict[str, int] = {}
        for kind in sorted(by_kind, key=ORDER.index):
            ordered = [one for _, one in sorted(by_kind[kind], key=lambda turn: turn[0])]
            chosen += ordered[:examples]
            if len(ordered) > examples:
                unlisted[kind] = len(ordered) - examples
        found: list[Difference] = []
        for number, one in enumerate(chosen):
            found.append(self._difference(one, [difference.prefix for difference in found], seconds))
            if self.comparison.progress is not None:
                self.comparison.progress("examples shortened", number + 1, len(chosen))
        return tuple(found), unlisted

    def _difference(self, seen: Seen, others: Sequence[bytes], seconds: float) -> Difference:
        """The finding for one difference. others : texts to try first when shortening."""
        run, example = self.comparison, seen.example
        _, at, number = seen.place
        text = run.texts[number]
        tokens = text.tokens[:at]
        prefix = b"".join(run.vocabulary.tokens[token] for token in tokens)
        line, column = place_of(text.text, len(prefix))
        token = example.token
        # One more time-out would cost as much as the first.
        is_shortest = example.kind != TIMEOUT and self._shows(seen, prefix)
        if is_shortest:
            tests = {"tests": _CRASH_TESTS} if example.kind == CRASH else {}
            prefix = shrink(prefix, lambda data: self._shows(seen, data), others=others, seconds=seconds, **tests)
            if example.sequence and self._shows(seen, prefix):
                token = self.shown_token
            tokens = self.encoder.longest_tokens(prefix)
        why = ""
        if token >= 0 and example.kind == UNDER:
            run.matcher.reset()
            if replay(run.matcher, tokens) == len(tokens):
                why = str(run.matcher.explain(token)).splitlines()[0]
        return Difference(
            kind=seen.kind,
            before=example.before,
            sequence=example.sequence,
            positions=seen.positions,
            tokens=seen.tokens,
            true_refusals=seen.true_refusals,
            prefix=prefix,
            token=None if token < 0 else (token, run.vocabulary.tokens[token]),
            is_shortest=is_shortest,
            place=f"{text.name}:{line}:{column}",
            message=example.message,
            why=why,
        )

    def _shows(self, seen: Seen, prefix: bytes) -> bool:
        """Whether the same difference shows after a text. Sets `shown_token`."""
        run, example = self.comparison, seen.example
        try:
            tokens = self.encoder.longest_tokens(prefix)
            if not run.stand_at(tokens):
                return False
            run.fill_ours()
            theirs, _ = run.fill_theirs()
            if example.kind == INCONSISTENT:
                is_allowed = theirs[example.token] and run.ours[example.token]
                return bool(is_allowed) and run.remote.advance([example.token]) == 0
        except (VocabularyError, LimitError, IllegalTokenError):
            return False
        except EngineFailed as error:
            return example.kind == error.kind and example.message == cause(error)
        for found in run.differences(theirs):
            if found.key == example.key:
                self.shown_token = found.token
                return True
        return False
