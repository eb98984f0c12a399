"""Masks in Outlines: the backend `maskwright`, for models of transformers, llama.cpp and mlx-lm."""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.serving.llama_cpp import load_vocabulary_from_gguf
from maskwright.serving.options import RequestOptions
from maskwright.serving.prefix_masks import PrefixMasks
from maskwright.serving.requests import RequestCompiler, server_vocabulary

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import Vocabulary
    from maskwright.serving.requests import RequestStore

NAME = "maskwright"
"""The backend's name: `outlines.Generator(model, type, backend="maskwright")`."""


def register() -> None:
    """Make the backend known to Outlines under `NAME`. A second call changes nothing.

    Outlines has no registry, so the function that chooses a backend is wrapped.

    Raises: MissingExtraError if Outlines is not installed, or a version without that function.
    """
    try:
        from outlines import backends
    except ImportError as error:
        raise MissingExtraError("Outlines is not installed: pip install 'outlines>=1.3'") from error
    original = getattr(backends, "_get_backend", None)
    if original is None:
        raise MissingExtraError("this Outlines has no backends that can be extended: pip install 'outlines>=1.3,<1.4'")
    if getattr(original, "is_maskwrights", False):
        return

    def get_backend(backend_name: str, model: Any) -> Any:
        return make_backend(model) if backend_name == NAME else original(backend_name, model)

    get_backend.is_maskwrights = True  # type: ignore[attr-defined]
    backends._get_backend = get_backend


def make_backend(model: Any) -> Any:
    """The backend for a model of Outlines.

    Raises: MaskwrightError for a model of a kind whose tokens cannot be read; as `load_vocabulary`.
    """
    kind = type(model).__name__
    if kind in ("Transformers", "TransformersMultiModal"):
        vocabulary = server_vocabulary(model.hf_tokenizer)
    elif kind == "LlamaCpp":
        vocabulary = load_vocabulary_from_gguf(model.model)
    elif kind == "MLXLM":
        vocabulary = server_vocabulary(model.mlx_tokenizer._tokenizer)
    else:
        raise MaskwrightError(
            f"the tokens of a model of kind {kind} are not known here; use Transformers, LlamaCpp or MLXLM, or a server with maskwright"
        )
    return _classes()[0](vocabulary, model.tensor_library_name)


class BackendMasks:
    """The part of a `BaseBackend` of Outlines that compiles.

    vocabulary : the model's.
    library : "torch", "numpy" or "mlx"; of what the model's logits are.

    Its methods raise MaskwrightError for a constraint that cannot be kept exactly.
    """

    def __init__(self, vocabulary: Vocabulary, library: str) -> None:
        super().__init__()
        self._compiler, self._library = RequestCompiler(vocabulary), library

    def get_json_schema_logits_processor(self, json_schema: str, whitespace_pattern: str | None = None) -> Any:
        """The processor of a JSON schema. whitespace_pattern : None for the natural style's."""
        options = RequestOptions() if whitespace_pattern is None else RequestOptions(whitespace=whitespace_pattern)
        return self._processor(self._compiler.compile("json", json_schema, options))

    def get_regex_logits_processor(self, regex: str) -> Any:
        """The processor of an expression that whole texts match."""
        pattern = regex[1:-1] if _is_in_brackets(regex) else regex  # what the user wrote
        return self._processor(self._compiler.compile("regex", pattern))

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """The processor of a grammar, in Lark, GBNF or EBNF."""
        return self._processor(self._compiler.compile("grammar", grammar))

    def _processor(self, store: RequestStore) -> Any:
        return _classes()[1](store, self._library)


def _is_in_brackets(regex: str) -> bool:
    """Whether one pair of brackets holds a whole expression, as that which Outlines adds."""
    if not (regex.startswith("(") and regex.endswith(")")) or regex.startswith("(?"):
        return False
    # PERF: a class without an end is read once, to the end of the text, and stays
    of_class = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]?", re.DOTALL)
    plain = of_class.sub(lambda found: found[0] if found[0].endswith(")") and found[0][0] == "[" else "", regex)
    depths = accumulate({"(": 1, ")": -1}.get(character, 0) for character in plain)
    return plain.endswith(")") and all(depth > 0 for depth in list(depths)[:-1])


class ProcessorMasks:
    """The part of an `OutlinesLogitsProcessor` that masks.

    store : of the constraint.
    library : see `BackendMasks`.
    """

    def __init__(self, store: RequestStore, library: str) -> None:
        super().__init__(library)  # type: ignore[call-arg]
        self._masks, self._library = PrefixMasks(store), library

    def reset(self) -> None:
        """Forget the texts. Outlines calls it before each generation."""
        self._masks.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """The logits, with -inf for what is refused.

        input_ids : (B, L).
        logits : (B, N).

        Raises: as `PrefixMasks.words`.
        """
        return self._masks.masked(self._library, input_ids, logits)


@cache
def _classes() -> tuple[Any, Any]:
    """The backend and the processor as Outlines knows them, made when Outlines is there."""
    from outlines.backends.base import BaseBackend
    from outlines.processors.base_logits_processor import OutlinesLogitsProcessor

    backend = type("MaskwrightBackend", (BackendMasks, BaseBackend), {})
    processor = type("MaskwrightOutlinesProcessor", (ProcessorMasks, OutlinesLogitsProcessor), {})
    return backend, processor
