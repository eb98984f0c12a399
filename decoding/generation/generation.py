"""One text from a language model, token by token under masks, which ends as a legal text within its budget.

At each step the mask is filled, a token chosen and read; near the end of the budget, or when time is up, the text is closed with its
shortest ending (or one near it, where the shortest takes long to find). Without a matcher the same loop runs free, for comparison.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import boolean, clip, integer, need_number, need_type, refuse_argument
from maskwright.analysis.errors import LimitError, MaskwrightError
from maskwright.decoding.endings.ending import Ending, short_ending
from maskwright.decoding.engine.arguments import integers, plain_bytes, texts
from maskwright.decoding.generation.healing import Healing
from maskwright.decoding.logits import apply_mask, need_torch
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary

Logits = npt.NDArray[np.float32]
Reason = Literal["end", "stop", "complete", "tokens", "seconds"]

GROWTH = 8
"""Tokens that a token is taken to add to the shortest ending; decides how often the ending is looked at, and near the end it always is."""

EARLY = 16
"""Budgets up to this are held against the shortest ending before the first token, larger ones after it, so that it comes at once."""


@dataclass(frozen=True, slots=True)
class Step:
    """data : bytes that the text goes on with. is_closing : they are from the shortest ending, the model did not choose them."""

    data: bytes
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """What was generated behind the prompt.

    data : the text. closing : the part of it at its end that the model did not choose. tokens : what was read, healed ones and the
    closing included, end of text not; they spell the text unless a stop string cut it.
    reason : the model ended the text ("end"), a stop string came ("stop"), the text was complete ("complete"), or the budget was used up
    ("tokens", "seconds"). is_complete : the text with its prompt is legal as it stands; None if there was no matcher.
    first_seconds : from the start to the first token. model_seconds, mask_seconds, ending_seconds : in the model; filling, applying,
    advancing and choosing; looking for shortest endings.
    """

    data: bytes
    closing: bytes
    tokens: tuple[int, ...]
    reason: Reason
    is_complete: bool | None
    seconds: float
    first_seconds: float
    model_seconds: float
    mask_seconds: float
    ending_seconds: float


class Generation:
    """An iterator over the steps of one completion; `completion` is there once it is exhausted, and `run` exhausts it."""

    def __init__(
        self,
        model: Any,
        matcher: Matcher | None,
        prompt_tokens: Sequence[int],
        *,
        vocabulary: Vocabulary,
        max_tokens: int,
        seconds: float | None,
        stop: Sequence[bytes],
        stop_when_complete: bool,
        temperature: float,
        top_k: int,
        top_p: float,
        seed: int,
        close: bool,
        heal: bytes,
    ) -> None:
        self._reader = (
            ModelReader(model, prompt_tokens) if hasattr(model, "config") else CallReader(model, prompt_tokens)
        )
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._max_tokens, self._max_seconds = max_tokens, seconds
        self._stop = tuple(stop)
        self._stop_when_complete = stop_when_complete
        self._sampler = Sampler(temperature, top_k, top_p, seed)
        self._close = close and matcher is not None
        self._healing = Healing(vocabulary, heal)
        self._words = np.zeros((vocabulary.size + 31) // 32, np.int32)
        self._blank = _blank_words(vocabulary) if stop_when_complete else self._words
        self._tokens: list[int] = []
        self._text = b""  # behind the prompt
        self._n_shown = 0
        self._n_spent = 0
        self._next_check = max_tokens if max_tokens <= EARLY else max_tokens - 2
        ends = () if matcher is None else vocabulary.eos
        self._n_columns = 1 + max([*(token for token, data in enumerate(vocabulary.tokens) if data), *ends], default=0)
        self._begin = self._first = 0.0
        self._mask_seconds = self._ending_seconds = 0.0
        self._completion: Completion | None = None
        self._steps = self._run()

    def __iter__(self) -> Iterator[Step]:
        return self._steps

    def run(self) -> Completion:
        """Generate what is left."""
        for _ in self._steps:
            pass
        return self.completion

    @property
    def completion(self) -> Completion:
        """The whole. Raises MaskwrightError before the last step."""
        if self._completion is None:
            raise MaskwrightError(
                "the generation is under way: exhaust it, or call run(), before you ask for its completion"
            )
        return self._completion

    def _run(self) -> Iterator[Step]:
        self._begin = time.perf_counter()
        if self._max_tokens <= EARLY:
            self._check_budget()
        reason: Reason | None = None
        while reason is None:
            reason = self._one()
            if not self._first:
                self._first = time.perf_counter() - self._begin
            yield from self._show(self._n_certain() if reason is None else len(self._text))
        closing = b""
        if self._matcher is not None:
            # a budget so small that the prompt's end was not spelled yet
            self._matcher.advance_bytes(self._healing.rest)
        if self._close and self._matcher is not None and not self._matcher.is_accepting():
            ending = self._ending(self._matcher)
            for token in ending.tokens:
                self._matcher.advance(token)
                self._tokens.append(token)
            closing = ending.data
            self._text += closing
            yield Step(closing, is_closing=True)
        self._completion = Completion(
            data=self._text,
            closing=closing,
            tokens=tuple(self._tokens),
            reason=reason,
            is_complete=None if self._matcher is None else self._matcher.is_accepting(),
            seconds=time.perf_counter() - self._begin,
            first_seconds=self._first,
            model_seconds=self._reader.seconds,
            mask_seconds=self._mask_seconds,
            ending_seconds=self._ending_seconds,
        )

    def _one(self) -> Reason | None:
        """One token more, or why there is none."""
        left = self._max_tokens - self._n_spent
        if left <= 0 or (self._close and left <= self._next_check and self._need(left) >= left):
            return "tokens"
        if self._max_seconds is not None and time.perf_counter() - self._begin >= self._max_seconds:
            return "seconds"
        begin = time.perf_counter()
        if self._matcher is not None:
            self._matcher.fill(self._words)
            if self._stop_when_complete and self._is_complete():
                return "complete"
        self._mask_seconds += time.perf_counter() - begin
        logits = self._reader.logits()
        begin = time.perf_counter()
        if len(logits) < self._n_columns:
            raise MaskwrightError(
                f"the model gives {len(logits)} logits, but vocabulary {self._vocabulary.name} has tokens up to id "
                f"{self._n_columns - 1}: it is not this model's"
            )
        if self._matcher is not None:
            apply_mask(logits, self._words)
        if self._healing.rest:
            apply_mask(logits, self._healing.words())
        token = self._sampler.choose(logits)
        if self._matcher is not None:
            self._matcher.advance(token)
        self._mask_seconds += time.perf_counter() - begin
        if token in self._vocabulary.eos:
            return "end"
        if self._close and left - 1 <= self._next_check and self._need(left - 1) > left - 1:
            # what the token opens could not be closed any more
            assert self._matcher is not None
            self._matcher.rollback(1)
            return "tokens"
        self._tokens.append(token)
        self._reader.push(token)
        was_healing = bool(self._healing.rest)
        new = self._healing.take(self._vocabulary.tokens[token] if token < self._vocabulary.size else b"")
        self._n_spent += bool(new) or not was_healing
        self._text += new
        return "stop" if self._cut() else None

    def _check_budget(self) -> None:
        """Raises LimitError if the budget does not even suffice to end the text as it stands."""
        if self._matcher is None or not self._close:
            return
        there = self._matcher
        if self._healing.rest:
            there = there.fork()
            there.advance_bytes(self._healing.rest)
        check_budget(self._ending(there), self._max_tokens)

    def _need(self, left: int) -> int:
        """Tokens of a short ending; decides when to look next."""
        assert self._matcher is not None
        if self._healing.rest:
            return 0
        try:
            need = len(self._ending(self._matcher).tokens)
        except LimitError:
            # more readings than can be followed: close the text before it gets there
            return left + 1
        self._next_check = left - max(1, (left - need) // (1 + GROWTH))
        return need

    def _ending(self, matcher: Matcher) -> Ending:
        begin = time.perf_counter()
        ending = short_ending(matcher)
        self._ending_seconds += time.perf_counter() - begin
        return ending

    def _is_complete(self) -> bool:
        """The text is legal, and a blank line or nothing but space can follow."""
        assert self._matcher is not None
        if not self._text.strip() or not self._matcher.is_accepting():
            return False
        return self._text.endswith((b"\n\n", b"\n\r\n")) or not (self._words & ~self._blank).any()

    def _cut(self) -> bool:
        """Whether a stop string is in the text; then text and matcher stand before it."""
        found = [at for stop in self._stop if (at := self._text.find(stop, self._n_shown)) >= 0]
        if not found:
            return False
        at = min(found)
        if self._matcher is not None:
            kept, back = len(self._text), 0
            while kept > at:
                back += 1
                kept -= len(self._vocabulary.tokens[self._tokens[-back]])
            self._matcher.rollback(back)
            # healed tokens begin before the text
            self._matcher.advance_bytes(self._healed_bytes(kept, at))
        self._text = self._text[:at]
        return True

    def _healed_bytes(self, kept: int, at: int) -> bytes:
        """Bytes kept .. at of the text; negative ones are the healed end of the prompt."""
        return (self._healing.tail + self._text)[len(self._healing.tail) + kept : len(self._healing.tail) + at]

    def _n_certain(self) -> int:
        """How much of the text no stop string can take back."""
        open_ends = (
            n
            for stop in self._stop
            for n in range(min(len(stop) - 1, len(self._text)), 0, -1)
            if self._text.endswith(stop[:n])
        )
        return len(self._text) - max(open_ends, default=0)

    def _show(self, end: int) -> Iterator[Step]:
        if end > self._n_shown:
            yield Step(self._text[self._n_shown : end])
            self._n_shown = end


def generate(
    model: Any,
    matcher: Matcher | None,
    prompt_tokens: Sequence[int],
    *,
    vocabulary: Vocabulary | None = None,
    max_tokens: int = 256,
    seconds: float | None = None,
    stop: Sequence[str | bytes] = (),
    stop_when_complete: bool = False,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    seed: int = 0,
    close: bool = True,
    heal: bytes = b"",
) -> Generation:
    """A completion of a prompt, as an iterator over its steps.

    model : a causal language model of transformers, or a function from all tokens so far to the logits of the next, (N,), torch or NumPy.
    matcher : stands behind the prompt's text (less `heal`), and is advanced; None leaves the model free.
    prompt_tokens : what the model sees before the first new token, at least one. A prompt longer than the model's context loses its
        beginning, as does the text when it outgrows the context; the matcher has seen all.
    vocabulary : the matcher's by default.
    max_tokens, seconds : the budget; tokens that only spell `heal` again are not counted. With a matcher and `close` the text is closed in
        time: the tokens of the shortest ending are counted, and when time is up it is appended without the model.
    stop : strings before which the text ends (it is closed then like any other).
    stop_when_complete : end where the text is legal and a blank line was written, or nothing but space could follow.
    temperature : 0 takes the likeliest token. top_k, top_p : sample from the k likeliest, from the likeliest that sum up to p.
    heal : the end of the prompt's text whose tokens are not among `prompt_tokens`; the first new tokens must spell it, and may go on.

    Raises MaskwrightError for parameters out of range, LimitError if `max_tokens` cannot hold even the shortest ending, DeadEndError if no
    token can come next. A token budget that suffices at the start is kept unless single tokens open more than `GROWTH` tokens of ending.
    """
    need_type("matcher", matcher, (Matcher, NoneType), "a Matcher, or None")
    if vocabulary is None:
        if matcher is None:
            raise MaskwrightError("without a matcher, say which vocabulary the model has (vocabulary=...)")
        vocabulary = matcher.store.vocabulary
    need_type("vocabulary", vocabulary, Vocabulary, "a Vocabulary, or None for the matcher's")
    close, stop_when_complete = boolean("close", close), boolean("stop_when_complete", stop_when_complete)
    expected = "a list of strings or bytes"
    if isinstance(stop, str | bytes):
        refuse_argument("stop", stop, expected)
    stops = texts("stop", stop, expected)
    heal = plain_bytes("heal", heal)
    prompt_tokens = integers("prompt_tokens", prompt_tokens, "a list of tokens").tolist()
    if not isinstance(prompt_tokens, list) or not prompt_tokens or isinstance(prompt_tokens[0], list):
        raise MaskwrightError(
            f"prompt_tokens is {clip(prompt_tokens)}; expected at least one token (the model's begin-of-text)"
        )
    check_options(
        max_tokens=max_tokens, seconds=seconds, stop=stops, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed
    )
    return Generation(
        model,
        matcher,
        prompt_tokens,
        vocabulary=vocabulary,
        max_tokens=max_tokens,
        seconds=seconds,
        stop=stops,
        stop_when_complete=stop_when_complete,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        close=close,
        heal=heal,
    )


def check_options(
    *,
    max_tokens: int,
    seconds: float | None,
    stop: Sequence[str | bytes],
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
) -> None:
    """Raises MaskwrightError for an option of `generate` that is out of range, or of another kind."""
    for what, whole in (("max_tokens", max_tokens), ("top_k", top_k), ("seed", seed)):
        integer(what, whole)
    for what, real in (("seconds", 1 if seconds is None else seconds), ("temperature", temperature), ("top_p", top_p)):
        need_number(what, real)
    for what, value, is_fine, expected in (
        ("max_tokens", max_tokens, max_tokens >= 1, "at least 1"),
        ("seconds", seconds, seconds is None or seconds > 0, "more than 0"),
        ("stop", list(stop), all(stop), "strings that are not empty"),
        ("temperature", temperature, 0 <= temperature < float("inf"), "0 or more"),
        ("top_k", top_k, top_k >= 0, "0 (all) or more"),
        ("top_p", top_p, 0 < top_p <= 1, "more than 0 and at most 1"),
        ("seed", seed, seed >= 0, "0 or more"),
    ):
        if not is_fine:
            raise MaskwrightError(f"{what} is {value!r}; expected {expected}")


def check_budget(ending: Ending, max_tokens: int) -> None:
    """Raises LimitError if the budget does not even suffice for the shortest ending of a text."""
    if len(ending.tokens) > max_tokens and ending.is_shortest:
        raise LimitError(
            f"max_tokens is {max_tokens}, but the shortest ending of the text takes {len(ending.tokens)} tokens "
            f"({ending.data[:60]!r}); give more tokens, or let the text stay open (close=False)"
        )


class Sampler:
    """Tokens drawn from logits; equal seeds draw equally from equal logits."""

    def __init__(self, temperature: float, top_k: int, top_p: float, seed: int | tuple[int, ...]) -> None:
        self._temperature, self._top_k, self._top_p = temperature, top_k, top_p
        self._random = np.random.default_rng(seed)

    def choose(self, logits: Logits) -> int:
        """A token. Raises MaskwrightError if no logit is finite. Ties go to the lowest id when temperature is 0."""
        best = int(np.nanargmax(logits)) if not np.isnan(logits).all() else 0
        if not np.isfinite(logits[best]):
            raise MaskwrightError("no allowed token has a finite logit: the model gives NaN or -inf")
        if self._temperature == 0:
            return best
        ids = np.flatnonzero(logits > -np.inf)
        values = logits[ids].astype(np.float64) / self._temperature
        order = np.argsort(-values, kind="stable")
        if self._top_k:
            order = order[: self._top_k]
        shares = np.exp(values[order] - values[order[0]])
        shares /= shares.sum()
        total = np.cumsum(shares)
        n = 1 + int(np.searchsorted(total, self._top_p)) if self._top_p < 1 else len(order)
        drawn = self._random.random() * total[min(n, len(order)) - 1]
        return int(ids[order[min(int(np.searchsorted(total, drawn, side="right")), len(order) - 1)]])


class ModelReader:
    """A transformers model reading a text with its cache. seconds : spent in the model."""

    def __init__(self, model: Any, tokens: Sequence[int]) -> None:
        self._torch = need_torch()
        self._model = model
        self._tokens = list(tokens)
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self._context = int(getattr(config, "max_position_embeddings", 0) or 0)
        parameters = inspect.signature(model.forward).parameters
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._cache: Any = None
        self._n_cached = 0
        self.seconds = 0.0

    def push(self, token: int) -> None:
        self._tokens.append(token)

    def logits(self) -> Logits:
        """(N,) logits of the next token. At the context's end three quarters of it are read again."""
        begin = time.perf_counter()
        if self._context and (self._cache is None or self._n_cached == self._context):
            self._cache = None
            longest = self._context if len(self._tokens) < self._context else max(1, 3 * self._context // 4)
            self._tokens = self._tokens[-longest:]
        torch = self._torch
        new = self._tokens[self._n_cached :] if self._cache is not None else self._tokens
        with torch.inference_mode():
            ids = torch.tensor([new], device=self._model.device)
            found = self._model(ids, past_key_values=self._cache, use_cache=True, **self._options)
        self._cache = getattr(found, "past_key_values", None)  # where there is none, all is read each time
        self._n_cached = len(self._tokens) if self._cache is not None else 0
        logits: Logits = found.logits[0, -1].float().cpu().numpy()  # the caller may write into it
        self.seconds += time.perf_counter() - begin
        return logits


class CallReader:
    """A function from tokens to logits, as a reader."""

    def __init__(self, function: Any, tokens: Sequence[int]) -> None:
        if not callable(function):
            raise MaskwrightError(
                f"the model is a {type(function).__name__}; expected a model of transformers, or a function from tokens to logits"
            )
        self._function = function
        self._tokens = list(tokens)
        self.seconds = 0.0

    def push(self, token: int) -> None:
        self._tokens.append(token)

    def logits(self) -> Logits:
        begin = time.perf_counter()
        found = self._function(list(self._tokens))
        if hasattr(found, "detach"):
            found = found.detach().float().cpu().numpy()
        logits = np.array(found, np.float32)
        if logits.ndim != 1:
            raise MaskwrightError(
                f"the model gave logits of shape {logits.shape}; expected (N,), those of the next token"
            )
        self.seconds += time.perf_counter() - begin
        return logits


def _blank_words(vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """The mask of tokens that are nothing but white space, and of those that end a text."""
    bits = np.zeros(-vocabulary.size % 32 + vocabulary.size, bool)
    bits[[token for token, data in enumerate(vocabulary.tokens) if data and not data.strip()]] = True
    bits[list(vocabulary.eos)] = True
    return np.packbits(bits, bitorder="little").view(np.int32)


__all__ = ["Completion", "Generation", "Sampler", "Step", "generate"]
