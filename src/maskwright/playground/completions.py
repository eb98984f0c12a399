"""Completions by the bundled model: under the mask, and beside it without."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.kept import cached_property
from maskwright.completion import LanguageModel, load_model, start_completion
from maskwright.decoding.generation import Completion
from maskwright.decoding.generation.logits import reader_of
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.models import BUNDLED, model_folder

if TYPE_CHECKING:
    from maskwright.serving.requests import RequestStore


class Pair(NamedTuple):
    """Two completions of one text: under the mask, and free."""

    masked: Completion
    free: Completion


class Completions:
    """What the bundled model writes, if the vocabulary is its own.

    vocabulary : of the masks.

    The model is loaded when it is first asked for.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._model: LanguageModel | None = None

    @cached_property
    def why_not(self) -> str | None:
        """Why there are no completions; None if there are."""
        if self._vocabulary.tokens != load_vocabulary(model_folder(BUNDLED)).tokens:
            return f"the bundled model has other tokens than {self._vocabulary.name}: start with --tokenizer {BUNDLED}"
        if importlib.util.find_spec("tokenizers") is None:
            return "tokenizers is not installed: pip install 'maskwright[tokenizers]'"
        return None

    def model(self) -> LanguageModel:
        """The model. Raises: MaskwrightError if there is none for the vocabulary."""
        why = self.why_not
        if why is not None:
            raise MaskwrightError(f"no completions: {why}")
        if self._model is None:
            self._model = load_model(BUNDLED)
        return self._model

    def logits(self, text: bytes) -> npt.NDArray[Any]:
        """(N,) float32; the model's logits behind a text. Raises: as `model`."""
        model = self.model()
        found = reader_of(model.model, model.tokens_of(text.decode(errors="ignore"))).logits()
        return np.asarray(found, np.float32)

    def complete(
        self, store: RequestStore, data: bytes, max_tokens: int, temperature: float, seed: int, seconds: float
    ) -> Pair:
        """Two completions of a text.

        store : of the constraint. data : a beginning of a legal text.
        max_tokens, temperature, seed : as for `generate`.
        seconds : for each of the two.

        Raises: as `start_completion` and `model`.
        """
        model = self.model()
        options: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "seconds": seconds,
        }
        masked = start_completion(store, data, model, **options).run()
        return Pair(masked, start_completion(store, data, model, constrained=False, **options).run())


__all__ = ["Completions", "Pair"]
