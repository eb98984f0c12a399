"""What a generation gives: its steps, where a mask forbade the model's choice, the completion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from maskwright.decoding.generation.logits import Logits, allows

Reason = Literal["end", "stop", "complete", "tokens", "seconds"]


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of the completion.

    data : bytes that the text goes on with.
    is_closing : whether they come from the ending that closes the text, so that the model did not
        choose them.
    """

    data: bytes
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class Intervention:
    """A step at which the mask forbade the model's own choice.

    index : how many new tokens stand before it; the one that came instead is `tokens[index]`,
        unless the text ended there.
    token : the model's own choice.
    probability : what the mask took away there, from 0 to 1: the sum of the model's probabilities,
        at temperature 1, of all tokens that it forbids; to about six places, as exact as float32.
    """

    index: int
    token: int
    probability: float


def intervention(index: int, logits: Logits, words: npt.NDArray[np.integer], own: int) -> Intervention | None:
    """The intervention of a mask at one step; None if it lets the model's own choice in.

    index : as of `Intervention`.
    logits : (N,) float32, before the mask.
    words : (n,) int32 or uint32, the mask; tokens beyond it are forbidden.
    own : the model's own choice.

    Cost: O(N).

    >>> intervention(3, np.zeros(4, np.float32), np.array([0b1110], np.int32), 0)
    Intervention(index=3, token=0, probability=0.25)
    """
    if allows(words, own):
        return None
    best = logits.max()
    if np.isnan(best):
        logits = np.where(np.isnan(logits), -np.inf, logits)
        best = logits.max()
    # PERF: a tenth of the time of exponentials in float64, and as exact as the model's float32
    shares = np.exp(logits - best) if np.isfinite(best) else (logits == best).astype(np.float32)
    allowed = np.unpackbits(words.view(np.uint8), bitorder="little", count=len(logits)).view(bool)
    return Intervention(
        index, own, 1.0 - min(1.0, float(shares.sum(where=allowed, dtype=np.float64) / shares.sum(dtype=np.float64)))
    )


@dataclass(frozen=True, slots=True)
class Completion:
    """A generated completion.

    data : the text after the prompt, as bytes.
    closing : the end of the text that the model did not choose.
    tokens : ids read, with healed ones and those of the closing, without end of text. They spell
        the healed end of the prompt and the text, unless a stop string cut the text or the
        generation ended while healing.
    reason : why it ended. "end": the model ended the text. "stop": a stop string came. "complete":
        the text was complete. "tokens", "seconds": the budget was used up.
    is_complete : whether the prompt and the text together are legal as they stand; None without a
        matcher.
    seconds : wall time in all.
    first_seconds : from the start to the first token.
    model_seconds : spent in the model.
    mask_seconds : spent filling and applying masks, choosing tokens and advancing; without what
        endings took.
    ending_seconds : spent on endings, to keep the budget and to close the text.
    model_calls : forward passes. They are fewer than the tokens if some were forced or predicted.
    forced : tokens that the model was not asked for, since no other could come.
    relaxed : tokens that are not canonical, where no canonical one could come (see `canonical`).
    masks : masks that were made of places in the text; those of drafts and of canonical
        alternatives are not among them. They are fewer than the tokens that the model chose where
        its own choice was asked about first.
    predicted : tokens that needed no forward pass of their own, since the model had read ahead.
    interventions : the steps at which the mask forbade the model's own choice: its likeliest token,
        or with `opportunistic` the one that it drew. Of forced tokens, for which the model is not
        asked, nothing is known; what the budget, names, canonical tokens and the bound on white
        space refuse beyond the mask is not counted.
    """

    data: bytes
    closing: bytes
    tokens: tuple[int, ...] = field(repr=False)
    reason: Reason
    is_complete: bool | None
    seconds: float
    first_seconds: float
    model_seconds: float
    mask_seconds: float
    ending_seconds: float
    model_calls: int = 0
    forced: int = 0
    relaxed: int = 0
    masks: int = 0
    predicted: int = 0
    interventions: tuple[Intervention, ...] = field(default=(), repr=False)

    @property
    def text(self) -> str:
        """`data` decoded as UTF-8; U+FFFD stands for what is none, such as half a character."""
        return self.data.decode(errors="replace")
