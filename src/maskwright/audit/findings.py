"""From counted differences to findings: the worst first, each with the shortest text found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from maskwright.analysis.errors import IllegalTokenError, LimitError, VocabularyError
from maskwright.audit.compare import Comparison, Found, Seen, cause
from maskwright.audit.remote import CRASH, TIMEOUT, EngineFailed
from maskwright.audit.report import INCONSISTENT, ORDER, UNDER, Difference
from maskwright.audit.shrink import shrink
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.validation.replay import place_of, replay

_CRASH_TESTS = 30
"""Texts that are tried to shorten one that kills the engine. Each costs a start."""


def differences_of(
    run: Comparison, encoder: Encoder, examples: int, seconds: float
) -> tuple[tuple[Difference, ...], dict[str, int]]:
    """The differences in order, at most `examples` of each kind, each with a shortest text.

    run : after it has read its texts.
    encoder : spells the texts that are tried.
    seconds : for shortening one text.

    Returns the differences, and kind -> how many more were only counted.
    """
    # One cause often shows in many parts of a grammar. So different terminals come first, then
    # the same ones after other terminals.
    alike: Counter[tuple[str, str]] = Counter()
    by_kind: dict[str, list[tuple[int, Seen]]] = defaultdict(list)
    for one in sorted(run.seen.values(), key=lambda one: (-one.positions, one.place)):
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
        found.append(_difference(run, encoder, one, [difference.prefix for difference in found], seconds))
        if run.progress is not None:
            run.progress("examples shortened", number + 1, len(chosen))
    return tuple(found), unlisted


def _difference(run: Comparison, encoder: Encoder, seen: Seen, others: Sequence[bytes], seconds: float) -> Difference:
    """The finding for one difference. others : texts to try first when shortening."""
    example, (_, at, number) = seen.example, seen.place
    text = run.texts[number]
    tokens, token = text.tokens[:at], example.token
    prefix = b"".join(run.vocabulary.tokens[each] for each in tokens)
    line, column = place_of(text.text, len(prefix))

    def shows(data: bytes) -> bool:
        return _shown_token(run, encoder, example, data) is not None

    # One more time-out would cost as much as the first.
    is_shortest = example.kind != TIMEOUT and shows(prefix)
    if is_shortest:
        tests = {"tests": _CRASH_TESTS} if example.kind == CRASH else {}
        prefix = shrink(prefix, shows, others=others, seconds=seconds, **tests)
        shown = _shown_token(run, encoder, example, prefix) if example.sequence else None
        token = token if shown is None else shown
        tokens = encoder.longest_tokens(prefix)
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


def _shown_token(run: Comparison, encoder: Encoder, example: Found, prefix: bytes) -> int | None:
    """A shortest token with the same difference after a text, -1 for none.

    Returns None if the difference does not show there.
    """
    try:
        tokens = encoder.longest_tokens(prefix)
        if not run.stand_at(tokens):
            return None
        run.fill_ours()
        theirs, _ = run.fill_theirs()
        if example.kind == INCONSISTENT:
            is_allowed = theirs[example.token] and run.ours[example.token]
            return -1 if is_allowed and run.remote.advance([example.token]) == 0 else None
    except (VocabularyError, LimitError, IllegalTokenError):
        return None
    except EngineFailed as error:
        return -1 if example.kind == error.kind and example.message == cause(error) else None
    return next((found.token for found in run.differences(theirs) if found.key == example.key), None)
