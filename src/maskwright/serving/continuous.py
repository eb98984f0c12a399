"""Masks for the continuous batching of transformers, where requests come and go.

In: requests with a store each. Out: logits with -inf where the request's store refuses a token.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import (
    DeadEndError,
    IllegalTokenError,
    MaskwrightError,
    MissingExtraError,
    VocabularyError,
)
from maskwright.decoding.engines import check_tables
from maskwright.decoding.logits import apply_rows, need_torch
from maskwright.maskstore.vocabulary.vocabulary import as_vocabulary
from maskwright.serving.server_matcher import ServerMatcher

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary.vocabulary import Vocabulary, VocabularySource
    from maskwright.serving.requests import RequestStore

ARGUMENT = "store"
"""The argument of `manager.add_request` that carries a request's store."""

_UNCONSTRAINED = -1

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Text:
    """The text of a request.

    state : a weak reference to transformers' state of the request. A request that was put back to
        the queue has another state later, and its text is read again.
    n_read : how many of its tokens `matcher` has read.
    """

    state: weakref.ref[Any]
    matcher: ServerMatcher
    n_read: int = 0
    has_failed: bool = False


class ContinuousMasks:
    """A `ContinuousBatchingLogitsProcessor` of transformers: each request is masked by its store.

        manager = model.init_continuous_batching(generation_config=config)
        masks = ContinuousMasks(tokenizer)
        masks.attach(manager)
        manager.start()
        manager.add_request(prompt_ids, store=store)

    vocabulary : of the model: its tokenizer, or what else `load_vocabulary` accepts. All stores are
        for it.

    A request without a store, or with `store=None`, is not constrained. The text of a store begins
    behind the prompt. After its end only end-of-text tokens are left. A store for another
    vocabulary, or something that is no store, fails that request when it is added. If a text cannot
    go on (nothing can come next, or a later processor wrote an illegal token), that request ends at
    once. Its output has the message as `error`. Other requests are not touched.

    It serves one manager.
    """

    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, vocabulary: VocabularySource) -> None:
        self.vocabulary: Vocabulary = as_vocabulary(vocabulary)
        self.supported_kwargs: dict[str, type] = {ARGUMENT: _accepted_stores(self)}
        self._texts: dict[str, _Text] = {}
        self._rows: npt.NDArray[np.int32] = np.zeros((0, 0), np.int32)
        self._host: Any = None
        self._words: Any = None

    def attach(self, manager: Any) -> None:
        """Mask what a manager of transformers generates. To be called before `manager.start()`.

        manager : what `model.init_continuous_batching` returned.

        The masks come before temperature, top-k and top-p, which so choose among legal tokens.

        Raises: MissingExtraError without transformers; MaskwrightError if this version of
        transformers has another interface, the manager was started or warmed up, it works ahead of
        its own tokens (`use_async_batching`) or is compiled, or these masks serve another manager;
        VocabularyError if the model has fewer logits than the vocabulary has tokens.
        """
        base, processors, config = _parts_of(manager)
        if self._words is not None:
            raise MaskwrightError("these masks serve a manager already; make others for this one")
        if manager.batch_processor is not None or manager.is_running():
            raise MaskwrightError("the manager was started or warmed up before; attach masks as soon as it is made")
        if config.use_async_batching:
            raise MaskwrightError(
                "the manager prepares a step before the tokens of the last one are known, so no mask can be made for it; pass "
                "continuous_batching_config=ContinuousBatchingConfig(use_async_batching=False)"
            )
        if config.varlen_compile_config is not None or config.decode_compile_config is not None:
            raise MaskwrightError(
                "the manager compiles its steps, and masks are not part of what can be compiled; leave varlen_compile_config and "
                "decode_compile_config out"
            )
        columns = int(manager.model.config.get_text_config().vocab_size)
        highest = max([*self.vocabulary.text_ids().tolist(), *self.vocabulary.eos], default=-1)
        if highest >= columns:
            raise VocabularyError(
                f"the model gives {columns} logits, but vocabulary {self.vocabulary.name} has tokens up to id {highest}: it is another "
                "tokenizer's; pass the model's own"
            )
        self._make_rows(int(config.max_requests_per_batch), manager.model.device)
        base.register(type(self))
        processors.logits_processor.insert(0, self)
        processors.tensors_required += 1
        processors.supported_keys.update(self.supported_kwargs)
        processors.do_processing = True

    def _make_rows(self, n_rows: int, device: Any) -> None:
        """Make a row of words for each request of a batch, on the host and on the device."""
        torch = need_torch()
        self._rows = np.zeros((n_rows, -(-self.vocabulary.size // 32)), np.int32)
        with torch.inference_mode(False):  # tensors made inside could not be written to outside
            self._host = torch.from_numpy(self._rows)
            is_here = device.type == "cpu"
            self._words = self._host if is_here else torch.zeros_like(self._host, device=device)

    def check(self, store: object) -> None:
        """Check that a request can be masked by a store; None is no constraint.

        Raises: MaskwrightError if it is no store, or one without matchers; VocabularyError if it is
        for another vocabulary.
        """
        if store is None:
            return
        check_tables([store])
        theirs: Vocabulary = store.vocabulary  # type: ignore[attr-defined]
        if theirs.digest != self.vocabulary.digest:
            raise VocabularyError(
                f"the store is for vocabulary {theirs.name}, but the masks were made for {self.vocabulary.name}, which has other tokens; "
                "build the store with the model's tokenizer"
            )

    def fill_defaults(self, int32_tensor: Any) -> None:
        """Write the argument of rows without a request: they are not constrained.

        int32_tensor : (n,) int32.
        """
        int32_tensor.fill_(_UNCONSTRAINED)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Any:
        """Read the tokens that have come, and fill the masks of the next ones.

        requests_with_new_token : n of transformers' `FutureRequestState`.

        Returns (n,) int32 on the CPU: the row of `words` of each request; -1 for no constraint.

        Raises: MaskwrightError if there are more requests than the manager said there would be.
        """
        n = len(requests_with_new_token)
        if n > len(self._rows):
            raise MaskwrightError(f"{n} requests are in one batch, but the manager said at most {len(self._rows)}")
        numbers = np.full(n, _UNCONSTRAINED, np.int32)
        for row, request in enumerate(requests_with_new_token):
            store = request.state.logit_processor_kwargs.get(ARGUMENT)
            if store is not None and self._fill(row, request.state, store):
                numbers[row] = row
        torch = need_torch()
        if self._words is not self._host and n:
            self._words[:n].copy_(self._host[:n])
            torch.cuda.current_stream(self._words.device).synchronize()  # the steps run on a stream of their own
        if len(self._texts) > 2 * n + 64:
            self._texts = {name: text for name, text in self._texts.items() if text.state() is not None}
        return torch.from_numpy(numbers)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Write -inf over what the rows' stores refuse, in place.

        scores : (n, N) floating point.
        tensor_arg : (n,) int32 or longer, what `prepare_tensor_args` returned.
        """
        apply_rows(scores, tensor_arg[: scores.shape[0]].contiguous(), self._words)
        return scores

    def _fill(self, row: int, state: Any, store: RequestStore) -> bool:
        """Read a request's new tokens and fill its mask. False if the request has failed."""
        text = self._texts.get(state.request_id)
        if text is None or text.state() is not state:
            text = _Text(weakref.ref(state), ServerMatcher(store, None, self.vocabulary.size, 0))
            self._texts[state.request_id] = text
        if text.has_failed:
            return False
        try:
            self._read(text, state)
            failed = text.matcher.fill_row(self._rows[row].view(np.uint32))
            if failed is not None:
                raise DeadEndError(failed)
        except MaskwrightError as error:
            text.has_failed = True
            _end(state, error)
            return False
        return True

    def _read(self, text: _Text, state: Any) -> None:
        """Read the tokens that have come since the last step."""
        begin = state._true_initial_tokens  # behind it are tokens of before the request was put back
        n_before = len(state.initial_tokens) - begin if begin else 0
        tokens = state.generated_tokens[max(text.n_read - n_before, 0) :]
        if text.n_read < n_before:
            tokens = state.initial_tokens[begin + text.n_read :] + tokens
        for token in tokens:
            if not text.matcher.is_finished():
                text.matcher.advance(token)
            elif token not in self.vocabulary.eos:
                raise IllegalTokenError(f"token {token} comes after the end of the text")
            text.n_read += 1


def _end(state: Any, error: MaskwrightError) -> None:
    """Let a request end with the step that is being prepared, whose token is dropped.

    It cannot fail here: an exception would end all requests.
    """
    _logger.warning("request %s ends: %s", state.request_id, error)
    state.error = str(error)
    state._new_tokens_limit = state.generated_len()
    state._eos_token_ids = set()


def _parts_of(manager: Any) -> tuple[Any, Any, Any]:
    """The base class of processors, the manager's list of them, and its configuration."""
    try:
        from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor
    except ImportError as error:
        raise MissingExtraError(
            "no transformers with per-request processors in continuous batching is installed: pip install 'maskwright[hf]' "
            "'transformers>=5.23'"
        ) from error
    processors = getattr(manager, "logit_processor", None)
    config = getattr(manager, "continuous_batching_config", None)
    wanted = (
        (manager, ("batch_processor", "is_running", "model")),
        (processors, ("logits_processor", "tensors_required", "supported_keys", "do_processing")),
        (config, ("use_async_batching", "varlen_compile_config", "decode_compile_config", "max_requests_per_batch")),
    )
    for part, names in wanted:
        missing = [name for name in names if not hasattr(part, name)]
        if missing:
            import transformers

            raise MaskwrightError(
                f"{type(manager).__name__} of transformers {transformers.__version__} has no {missing[0]}; expected what "
                "model.init_continuous_batching returns, of transformers 5.23 or 5.24"
            )
    return ContinuousBatchingLogitsProcessor, processors, config


def _accepted_stores(masks: ContinuousMasks) -> type:
    """A type whose instances are the stores that masks accept.

    transformers asks isinstance for each argument of a request when it is added. An exception then
    fails that request, and becomes its error.
    """

    class _Check(type):
        def __instancecheck__(cls, value: object) -> bool:
            masks.check(value)
            return True

    return _Check("Store", (), {})
