"""Where logits come from, a model or a function, and how a token is drawn from them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.decoding.logits import apply_mask, need_torch

Logits = npt.NDArray[np.float32]

LEAST_TEMPERATURE = 1e-269
"""Below it a logit, divided by it, may overflow; then the likeliest token is taken."""


def likeliest(logits: Logits) -> int:
    """The first token of the greatest logit. NaN is less than all; 0 if all are NaN."""
    best = int(np.argmax(logits))  # PERF: a NaN is taken for the greatest, so one is seen here
    return best if not np.isnan(logits[best]) or np.isnan(logits).all() else int(np.nanargmax(logits))


def allows(words: npt.NDArray[np.integer], token: int) -> bool:
    """Whether a token is in a mask; none is beyond it. words : (n,) int32 or uint32."""
    return token >> 5 < len(words) and bool(words[token >> 5] >> (token & 31) & 1)


class Sampler:
    """Draws tokens from logits. Equal seeds draw equal tokens from equal logits.

    temperature : 0 takes the likeliest token.
    top_k : sample from the k likeliest tokens; 0 for all.
    top_p : sample from the likeliest tokens that sum up to p.
    seed : for NumPy's `default_rng`.
    """

    def __init__(self, temperature: float, top_k: int, top_p: float, seed: int | tuple[int, ...]) -> None:
        self._temperature, self._top_k, self._top_p = temperature, top_k, top_p
        self._random = np.random.default_rng(seed)

    def choose(self, logits: Logits, words: npt.NDArray[np.integer] | None = None, own: int = -1) -> int:
        """Choose a token. At temperature 0 ties go to the lowest id.

        logits : (N,) float32; -inf where a token is refused. Changed in place if there are words.
        words : the mask of the tokens that may come, if it is not in the logits already.
        own : the likeliest token of the logits, if it is known.

        Raises: MaskwrightError if the greatest logit is not finite.
        """
        best = likeliest(logits) if own < 0 else own
        if words is not None:
            # PERF: the likeliest token of all is the likeliest of those that may come, if it is one
            is_allowed = allows(words, best)
            if not is_allowed or self._temperature >= LEAST_TEMPERATURE:
                apply_mask(logits, words)
            if not is_allowed:
                best = likeliest(logits)
        if logits[best] == np.inf:
            raise MaskwrightError(f"the model gives the allowed token {best} the logit +inf: its numbers overflow")
        if not np.isfinite(logits[best]):
            raise MaskwrightError("no allowed token has a finite logit: the model gives NaN or -inf")
        if self._temperature < LEAST_TEMPERATURE:
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


class Reader:
    """A function from tokens to logits that reads a text token by token.

    tokens : ids of the text so far.
    seconds : time spent in the model.
    calls : forward passes.

    Raises: MaskwrightError if it cannot be called.
    """

    def __init__(self, function: Any, tokens: Sequence[int]) -> None:
        if not callable(function):
            raise MaskwrightError(
                f"the model is {a_type(function)}; expected a model of transformers, or a function from tokens to logits"
            )
        self._model = function
        self._tokens = list(tokens)
        self._rows: list[Logits] = []  # what is known: behind the text, and behind each drafted token
        self._launched: Any = None  # what a pass that may be under way will give
        self.seconds = 0.0
        self.calls = 0

    def push(self, token: int) -> None:
        """Add a token to the text."""
        self._launched = None
        del self._rows[:1]
        self._tokens.append(token)

    @property
    def is_ahead(self) -> bool:
        """Whether the next token's logits are known already, from a draft."""
        return bool(self._rows)

    def launch(self) -> None:
        """Begin the pass that `logits` waits for, unless its answer is known.

        A device works on while the caller does. On the CPU the pass is over when this returns.
        """
        if self._launched is None and not self._rows:
            self._begin(())

    def _begin(self, draft: Sequence[int]) -> None:
        """Begin a pass. INVARIANT: one with a draft is waited for before a token is pushed."""
        begin = time.perf_counter()
        self._launched = self._read(draft)
        self.seconds += time.perf_counter() - begin
        self.calls += 1

    def logits(self, draft: Sequence[int] = ()) -> Logits:
        """The (N,) float32 logits of the next token.

        draft : tokens that may come next. A model of transformers reads them in the same pass, so
            that the logits behind each of them are known once it has come. They are left out if the
            context or the model has no place for them.

        Asked again before a token is added, the answer is the same, without a pass.

        Raises: MaskwrightError if a function returns another shape.
        """
        if not self._rows:
            if self._launched is None:
                self._begin(draft)
            begin = time.perf_counter()
            self._rows, self._launched = self._wait(self._launched), None
            self.seconds += time.perf_counter() - begin
        return self._rows[0].copy()  # the caller may write into it

    def _read(self, draft: Sequence[int]) -> Any:
        """Begin to read what is new, and the draft, of which a function makes no use."""
        return self._model(list(self._tokens))

    def _wait(self, launched: Any) -> list[Logits]:
        """What `_read` has begun, on the host."""
        found = launched.detach().float().cpu().numpy() if hasattr(launched, "detach") else launched
        try:
            logits = np.array(found, np.float32)  # a function may write into its own again
        except (TypeError, ValueError):
            raise MaskwrightError(
                f"the model gave {clip(found)}, {a_type(found)}; expected (N,) numbers, the logits of the next token"
            ) from None
        if logits.ndim != 1:
            raise MaskwrightError(
                f"the model gave logits of shape {logits.shape}; expected (N,), those of the next token"
            )
        return [logits]


class ModelReader(Reader):
    """A transformers model that reads a text with its cache.

    model : a causal language model of transformers.

    When the context is full, the last three quarters of it are read again.
    """

    def __init__(self, model: Any, tokens: Sequence[int]) -> None:
        super().__init__(model, tokens)
        self._torch = need_torch()
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self._context = int(getattr(config, "max_position_embeddings", 0) or 0)
        parameters = inspect.signature(model.forward).parameters
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self._cache: Any = None
        # transformers 5.24 gave it another name
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._n_cached = 0
        self._drafted: list[int] = []  # tokens that were read ahead

    def push(self, token: int) -> None:
        """Add a token to the text."""
        if self._drafted[:1] == [token]:
            del self._drafted[0]
        else:
            if self._drafted:
                self._cache.crop(-len(self._drafted))  # takes away as many
                self._n_cached = len(self._tokens)
            self._drafted = []
            del self._rows[1:]
        super().push(token)

    def _read(self, draft: Sequence[int]) -> Any:
        is_full = self._n_cached >= self._context or len(self._tokens) > self._context
        if self._context and (self._cache is None or is_full):
            self._cache = None
            longest = self._context if len(self._tokens) <= self._context else max(1, 3 * self._context // 4)
            self._tokens = self._tokens[-longest:]
        torch = self._torch
        new = self._tokens[self._n_cached :] if self._cache is not None else self._tokens
        has_room = _can_be_cut(self._cache) and len(self._tokens) + len(draft) < (self._context or 1 << 30)
        self._drafted = list(draft) if has_room else []
        options = {name: 1 + len(self._drafted) for name in self._options}
        with torch.inference_mode():
            ids = torch.tensor([new + self._drafted], device=self._model.device)
            found = self._model(ids, use_cache=True, **{self._cache_name: self._cache}, **options)
        # Without a cache all tokens are read each time.
        self._cache = getattr(found, self._cache_name, None)
        self._n_cached = len(self._tokens) + len(self._drafted) if self._cache is not None else 0
        return found.logits[0, -1 - len(self._drafted) :].float()

    def _wait(self, launched: Any) -> list[Logits]:
        return list(launched.cpu().numpy())


def _can_be_cut(cache: Any) -> bool:
    """Whether the last tokens can be taken out of a cache again, whatever is in it.

    A layer with a window has lost what stood before, and one without keys has only a sum.
    """
    layers: Any = getattr(cache, "layers", None) or ()
    return bool(layers) and all(
        type(layer).__name__ == "DynamicLayer" and not getattr(layer, "is_sliding", False) for layer in layers
    )


def reader_of(model: Any, tokens: Sequence[int]) -> Reader:
    """What reads a text by a model of transformers or `load_model`, or a function to logits."""
    model = model.model if hasattr(model, "tokens_of") else model
    return (ModelReader if hasattr(model, "config") else Reader)(model, tokens)
