"""vLLM's structured output backend, and the grammar of one request, in terms of stores.

The methods are those of `StructuredOutputBackend` and `StructuredOutputGrammar` in
`vllm/v1/structured_output/backend_types.py`. `vllm_plugin.register` makes these classes virtual
subclasses of them, so that this module needs no vLLM.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import time
from collections.abc import Collection, Iterable
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError
from maskwright.analysis.locks import new_lock
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.serving.drafts import Drafts
from maskwright.serving.metrics import metrics
from maskwright.serving.options import JSON_KINDS, RequestOptions
from maskwright.serving.requests import server_vocabulary
from maskwright.serving.server_matcher import ROLLBACK, ServerMatcher, TokenBudget
from maskwright.serving.settings import ServerSettings, make_compiler, read_settings
from maskwright.serving.vllm_drafts import PLACEHOLDER, number_of_drafts
from maskwright.serving.warming import warm_engines

if TYPE_CHECKING:
    import torch

NAME = "maskwright"
"""What vLLM calls this backend."""

_logger = logging.getLogger(__name__)


class MaskwrightBackend:
    """The backend of one engine.

    vllm_config : vLLM's configuration.
    tokenizer : the server's tokenizer.
    vocab_size : the number of logits of a row, padding included.

    Raises: MaskwrightError for settings that do not fit (`ServerSettings`), a tokenizer that cannot
        be read exactly, or a store that is for another one.
    Cost: some 0.1 s for a vocabulary of 32,000 tokens, where kernels are compiled ahead.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config, self.tokenizer, self.vocab_size = vllm_config, tokenizer, vocab_size
        self.settings: ServerSettings = read_settings(getattr(vllm_config, "additional_config", None))
        vocabulary = vocabulary_of(tokenizer, getattr(vllm_config, "model_config", None), vocab_size)
        self.options = options_of("json", None, vllm_config.structured_outputs_config, self.settings)
        self.compiler = make_compiler(vocabulary, self.settings, self.options, vocab_size)
        self._rollback = max(ROLLBACK, 2 * (int(getattr(vllm_config, "num_speculative_tokens", 0) or 0) + 1))
        n_drafts = number_of_drafts(vllm_config)
        self._drafts = Drafts(vocabulary, n_drafts) if n_drafts else None
        self._xgrammar: Any = None
        self._lock = new_lock()
        if vocabulary.eos:
            warm_engines(vocabulary, _logger.warning)
        said = {name: each for name, each in self.settings._asdict().items() if name != "stores"}
        _logger.info("maskwright %s makes the masks, for %r, with %s", version("maskwright"), vocabulary, said)

    def compile_grammar(
        self,
        request_type: Any,
        grammar_spec: str,
        stop_token_ids: Collection[int] | None = None,
        params: Any = None,
    ) -> Any:
        """The grammar of a request.

        request_type : a `StructuredOutputOptions`.
        grammar_spec : see `RequestCompiler.check`.
        stop_token_ids : the tokens at which the server stops: masked until the text may end.
        params : all that the request says, its `StructuredOutputsParams`; None for one that says
            nothing but its constraint.

        Returns a `MaskwrightGrammar`, or, in a hybrid server, what xgrammar compiled.

        Raises: MaskwrightError, for this request alone.
        """
        kind, begin = str(request_type.name).lower(), time.perf_counter()
        try:
            options = options_of(kind, params, self.vllm_config.structured_outputs_config, self.settings)
            store = self.compiler.compile(kind, grammar_spec, options)
            # a configured store may have been built with other ends than the server's
            ends = stop_token_ids or self.compiler.vocabulary.eos
            matcher = ServerMatcher(store, ends, self.vocab_size, self._rollback)
        except MaskwrightError as error:
            metrics().count("refusals", cause=type(error).__name__)
            if not self.settings.hybrid or params is None:
                raise
            _logger.warning(
                "a request of kind %s goes to xgrammar, unchecked by maskwright, which says: %s", kind, error
            )
            return self._of_xgrammar(params, stop_token_ids)
        finally:
            metrics().count("requests", kind=kind)
            metrics().count("compile_seconds", time.perf_counter() - begin, kind=kind)
            metrics().count("cache_bytes", self.compiler.n_bytes)
        return MaskwrightGrammar(matcher, self._drafts)

    def _of_xgrammar(self, params: Any, stop_token_ids: Collection[int] | None) -> Any:
        """What xgrammar makes of a request."""
        from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend
        from vllm.v1.structured_output.request import get_structured_output_key

        params = valid_for_xgrammar(params)
        with self._lock:
            if self._xgrammar is None:
                self._xgrammar = XgrammarBackend(self.vllm_config, tokenizer=self.tokenizer, vocab_size=self.vocab_size)
        kind, spec = get_structured_output_key(params)
        return self._xgrammar.compile_grammar(kind, spec, stop_token_ids=stop_token_ids)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """(max_num_seqs, ceil(vocab_size / 32)) int32 on the CPU, all ones.

        vLLM sends its content to the workers, so the memory need not be pinned.
        """
        import torch

        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Let go of what was compiled."""
        xgrammar, self._xgrammar = self._xgrammar, None
        if xgrammar is not None:
            xgrammar.destroy()
        self.compiler.clear()
        rows_of.cache_clear()

    def __repr__(self) -> str:
        return f"<MaskwrightBackend: {self.compiler!r}>"


class MaskwrightGrammar:
    """The constraint of one request, and the text so far.

    matcher : the text.
    drafts : what drafts are made of, in place of the `PLACEHOLDER` that vLLM proposes; or None.
    """

    def __init__(self, matcher: ServerMatcher, drafts: Drafts | None = None) -> None:
        self._matcher, self._drafts = matcher, drafts
        self._before, self._new = -1, list[int]()  # tokens that were read, the last ones not counted yet
        self._budget: TokenBudget | None = None
        self._counts = metrics()

    def keep_budget(self, request: Any, longest: int, reserve: int) -> None:
        """Close the text before the tokens of its request are used up.

        request, longest, reserve : see `TokenBudget`.

        Cost: of the first search for an ending under a store, half a second for Python.
        """
        with contextlib.suppress(MaskwrightError):  # `TokenBudget` says it when it matters
            self._matcher.short_ending()  # here, where the engine does not wait
        self._budget = TokenBudget(self._matcher, reserve, request, longest)

    def accept_tokens(self, request_id: str, tokens: Iterable[int]) -> bool:
        """Add tokens to the text. Those behind its end are ignored.

        False if one is not allowed: vLLM ends the request then, with an error.
        """
        read: list[int] = []
        for token in tokens:
            if self._matcher.is_finished():
                break
            if not self._accept(request_id, token):
                return False
            read.append(token)
        if self._drafts is not None:
            self._new += read
        if self._budget is not None:
            self._budget.read(read)
        return True

    def _accept(self, request_id: str, token: int) -> bool:
        """Add a token to the text. False, and the reason in the log, if it cannot be."""
        try:
            self._matcher.advance(token)
        except IllegalTokenError:
            _logger.error(
                "request %s: token %d is not allowed by %r; other options of the request, such as allowed_token_ids or bad_words, "
                "may have left no token that is",
                request_id,
                token,
                self._matcher,
            )
            return False
        except MaskwrightError as error:
            _logger.error("request %s ends with an error: its text cannot go on: %s", request_id, error)
            return False
        except Exception:  # a server must go on, whatever one request does
            _logger.exception("request %s ends with an error: token %d cannot be read", request_id, token)
            return False
        return True

    def validate_tokens(self, tokens: Iterable[int]) -> list[int]:
        """The longest prefix of some tokens that may come next. The text does not change.

        In place of placeholders: other tokens, no more than those, that may come and are likely.
        """
        wanted = list(tokens)
        if self._drafts is not None and wanted and all(token == PLACEHOLDER for token in wanted):
            return self._own_drafts(self._drafts, len(wanted))
        return self._matcher.longest_prefix(wanted)

    def _own_drafts(self, drafts: Drafts, most: int) -> list[int]:
        """Drafts for the text as it stands, whose last tokens are counted before."""
        new, matcher = self._new, self._matcher
        if matcher.is_finished():
            return []
        if len(new) <= matcher.max_rollback:
            drafts.learn(matcher, new, self._before)
        if new:
            self._before, self._new = new[-1], []
        return drafts.next(matcher, self._before, most)

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens."""
        self._matcher.rollback(num_tokens)
        if num_tokens:
            del self._new[-num_tokens:]
        if self._budget is not None:
            self._budget.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token.

        bitmask : what `allocate_token_bitmask` returned. batch_index : the row.

        Where no exact mask can be made, the mask allows the stop tokens alone. `accept_tokens`
        refuses them unless the text is whole, so the request ends with an error, or with a whole
        text, and the engine goes on. The log says why.
        """
        begin = time.perf_counter()
        row = rows_of(bitmask)[batch_index]
        failed = self._matcher.fill_row(row)
        self._counts.count_mask(begin)
        if failed is not None:
            self._counts.count("failed_masks")
            _logger.error(
                "no mask can be made, so the request will end, with an error unless its text is whole: %s", failed
            )
        elif self._budget is not None:
            self._budget.restrict(row)

    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""
        return self._matcher.is_finished()

    def reset(self) -> None:
        """Put the text back to its start."""
        self._matcher.reset()
        self._before, self._new = -1, []
        if self._budget is not None:
            self._budget.reset()


@functools.lru_cache(maxsize=2)
def rows_of(bitmask: torch.Tensor) -> npt.NDArray[np.uint32]:
    """vLLM's bitmask as an array, (rows, words) uint32, of the same memory as the tensor.

    PERF: .numpy() takes some microseconds, and there is a call for each row.
    """
    return bitmask.numpy().view(np.uint32)


def vocabulary_of(tokenizer: Any, model_config: Any, vocab_size: int) -> Vocabulary:
    """The vocabulary of a server's tokenizer, with all tokens at which the server stops by itself.

    model_config : vLLM's, for `generation_config.json`; or None.
    vocab_size : the model's. Tokens past it are left out: the model has no logits for them.

    Raises: as `load_vocabulary`.
    """
    # vLLM wraps the tokenizers of mistral-common in a class of its own
    inner = getattr(tokenizer, "mistral", tokenizer)
    found = load_vocabulary(inner)
    try:
        ends = model_config.try_get_generation_config().get("eos_token_id")
    except Exception:  # a configuration without it, or files that vLLM itself warns about
        ends = None
    named = {token for token in (ends if isinstance(ends, list) else [ends]) if isinstance(token, int)}
    eos = {*found.eos, *(token for token in named if 0 <= token < found.size)}
    return server_vocabulary(found, vocab_size, eos, is_padded=False)


def valid_for_xgrammar(params: Any) -> Any:
    """A request's parameters as xgrammar has them: the validation turns a choice into a grammar.

    Raises: ValueError or VLLMValidationError if xgrammar refuses them.
    """
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    params = copy.copy(params)
    validate_xgrammar_grammar(SimpleNamespace(structured_outputs=params))
    return params


def options_of(kind: str, params: Any, config: Any, settings: ServerSettings) -> RequestOptions:
    """What a request, the engine's configuration and the settings say of a kind of constraint.

    params : a `StructuredOutputsParams`, or None. config : a `StructuredOutputsConfig`. What the
        request says counts more than the rest.

    Raises: MaskwrightError for two that contradict each other, or if the request itself has an
        option that says nothing of its kind.
    """
    own = {name: getattr(params, name, None) for name in _OPTIONS}
    if kind not in JSON_KINDS:
        for name, value in own.items():
            if value not in (None, False):
                raise MaskwrightError(f"{name} is about JSON, but the request has a {kind}: leave it out")
        return RequestOptions()
    options, pattern = settings.options, own["whitespace_pattern"]
    is_compact = own["disable_any_whitespace"]
    if is_compact and pattern is not None:
        raise MaskwrightError(
            "disable_any_whitespace and whitespace_pattern contradict each other; leave one of them out"
        )
    if pattern is not None:
        options = options._replace(whitespace=pattern)
    elif is_compact or getattr(config, "disable_any_whitespace", False):
        options = options._replace(whitespace="compact")
    is_closed = any(getattr(each, "disable_additional_properties", False) for each in (params, config))
    return options._replace(additional_properties=False) if is_closed else options


_OPTIONS = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")
"""What a request of vLLM may say of JSON."""
