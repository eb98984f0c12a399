"""What the options of `generate` may be, and the masks that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from maskwright.analysis.arguments import as_integer, clip, need_number, need_type, refuse_argument
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.engine.arguments import integer_row, texts
from maskwright.decoding.generation.counts import TokenCounts
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maskwright.decoding.endings.ending import Ending
    from maskwright.decoding.generation.lookahead import Lookahead
    from maskwright.decoding.generation.names import NameSource
    from maskwright.maskstore.canonical import CanonicalTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `generate`, which describes them.

    Raises: MaskwrightError if one is out of range or of another kind, or two do not go together.
    """

    vocabulary: Vocabulary
    max_tokens: int
    seconds: float | None
    stop: Sequence[bytes]
    stop_when_complete: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    close: bool
    heal: bytes
    canonical: CanonicalTokens | None
    fast_forward: bool
    opportunistic: bool
    counts: TokenCounts | None
    names: NameSource | None
    lookahead: int | None

    def __post_init__(self) -> None:
        check_names(self.names, self.canonical, self.fast_forward, self.counts)
        check_options({one.name: getattr(self, one.name) for one in fields(self)})
        if self.lookahead is None:
            return
        if as_integer("lookahead", self.lookahead) < 0:
            raise MaskwrightError(f"lookahead is {self.lookahead}; expected 0 or more, or None for exact masks")
        if self.canonical is not None or self.fast_forward:
            raise MaskwrightError(
                "lookahead goes with neither canonical nor fast_forward, which look at bytes and not at lexemes; leave one of them out"
            )

    def lookahead_of(self, matcher: Matcher | None) -> Lookahead | None:
        """What narrows a matcher's masks, if a lookahead is given. Raises: as `Lookahead`."""
        if matcher is None or self.lookahead is None:
            return None
        from maskwright.decoding.generation.lookahead import Lookahead  # PERF: it makes the lexer anew

        return Lookahead(matcher, self.lookahead)

    @property
    def needs_masks(self) -> bool:
        """Whether each step needs its mask, whatever the model would choose."""
        is_plain = self.temperature == 0 or (self.top_k == 0 and self.top_p == 1)
        looks = self.fast_forward, self.stop_when_complete, self.canonical, self.counts, self.names, self.lookahead
        return not is_plain or any(one is not None and one is not False for one in looks)


def check_options(options: Mapping[str, Any]) -> None:
    """Check the options of `generate` that are numbers, and the stop strings.

    Raises: MaskwrightError if one is out of range or of another kind.
    """
    known = {**options, "seconds": 1 if options["seconds"] is None else options["seconds"]}
    for what in ("max_tokens", "top_k", "seed"):
        as_integer(what, known[what])
    for what in ("seconds", "temperature", "top_p"):
        need_number(what, known[what])
    for what, is_fine, expected in (
        ("max_tokens", known["max_tokens"] >= 1, "at least 1"),
        ("seconds", known["seconds"] > 0, "more than 0"),
        ("stop", all(known["stop"]), "strings that are not empty"),
        ("temperature", 0 <= known["temperature"] < float("inf"), "0 or more"),
        ("top_k", known["top_k"] >= 0, "0 (all) or more"),
        ("top_p", 0 < known["top_p"] <= 1, "more than 0 and at most 1"),
        ("seed", known["seed"] >= 0, "0 or more"),
    ):
        if not is_fine:
            raise MaskwrightError(f"{what} is {known[what]!r}; expected {expected}")


def check_sources(
    matcher: Matcher | None,
    vocabulary: Vocabulary | None,
    canonical: CanonicalTokens | None,
    counts: TokenCounts | None,
    *,
    close: bool,
) -> Vocabulary:
    """Check what `generate` takes tokens from, and return the vocabulary.

    Raises: MaskwrightError if one is of another kind, the matcher's text has ended, the matcher
        cannot take back a token though the text is to be closed, or there is neither a matcher nor
        a vocabulary; VocabularyError if canonical tokens or counts are of another vocabulary.
    """
    if matcher is not None:
        need_type("matcher", matcher, Matcher, "a Matcher, or None")
    if matcher is not None and matcher.is_finished():
        raise MaskwrightError(
            "the matcher's text has ended, so nothing can be generated; call its reset(), or make another"
        )
    if matcher is not None and close and not matcher.max_rollback:
        raise MaskwrightError(
            "the matcher can take back no token (max_rollback=0), so a budget cannot be kept; make it with store.matcher(), or let the "
            "text stay open (close=False)"
        )
    if vocabulary is None:
        if matcher is None:
            raise MaskwrightError("without a matcher, give the model's vocabulary (vocabulary=...)")
        vocabulary = matcher.store.vocabulary
    need_type("vocabulary", vocabulary, Vocabulary, "a Vocabulary, or None for the matcher's")
    if canonical is not None:
        from maskwright.maskstore.canonical import CanonicalTokens  # PERF: whoever has such tokens has it

        need_type("canonical", canonical, CanonicalTokens, "a CanonicalTokens (see load_canonical), or None")
        canonical.check_belongs(vocabulary)
    if counts is not None:
        need_type("counts", counts, TokenCounts, "a TokenCounts, or None")
        counts.check_belongs(vocabulary)
    return vocabulary


def as_stops(stop: object) -> list[bytes]:
    """Stop strings as bytes.

    Raises: MaskwrightError if they are no list of strings or bytes.
    """
    expected = "a list of strings or bytes"
    if isinstance(stop, str | bytes):
        refuse_argument("stop", stop, expected)
    return list(texts("stop", stop, expected))


def as_prompt(tokens: Sequence[int]) -> list[int]:
    """The prompt's tokens as a list.

    Raises: MaskwrightError if they are no integers, or there are none.
    """
    found: list[int] = integer_row("prompt_tokens", tokens).tolist()
    if not found:
        raise MaskwrightError("prompt_tokens is empty; expected at least one token (the model's begin-of-text)")
    return found


def check_budget(matcher: Matcher, ending: Ending, max_tokens: int) -> None:
    """Check that a budget of tokens can hold the ending of a text.

    ending : `matcher.short_ending()`.

    Raises: LimitError if it cannot. Where the search of a grammar's ending was cut off, so that
    there may be a shorter one, none is raised.
    """
    if len(ending.tokens) > max_tokens and (ending.is_shortest or not matcher.text.looks_further):
        raise LimitError(
            f"max_tokens is {max_tokens}, but the shortest ending of the text{'' if ending.is_shortest else ' that is known'} takes "
            f"{len(ending.tokens)} tokens ({clip(ending.data)}); give more tokens, or let the text stay open (close=False)"
        )


def check_names(names: object, *others: object) -> None:
    """Check what comes with a source of names. others : canonical tokens, fast-forward, counts.

    Raises: MaskwrightError if the source cannot be called, or one of the others is given too.
    """
    if names is None:
        return
    if not callable(names):
        refuse_argument("names", names, "a function from bytes to a terminal and its names, or None")
    if any(other is not None and other is not False for other in others):
        raise MaskwrightError(
            "names go with neither canonical, fast_forward nor counts, which look at the mask alone; leave one of them out"
        )
