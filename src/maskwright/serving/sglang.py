"""Masks in SGLang: a grammar backend, chosen by `--grammar-backend maskwright`.

In: the constraints of requests, as SGLang's scheduler passes them. Out: rows of its token masks.
SGLang finds `register` by the entry point `sglang.srt.plugins`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from functools import cache, partialmethod
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import IllegalTokenError, MaskwrightError, MissingExtraError
from maskwright.decoding.logits import apply_rows, apply_words, need_torch
from maskwright.maskstore.vocabulary.masks import n_words, words_of
from maskwright.serving.options import RequestOptions
from maskwright.serving.requests import server_vocabulary
from maskwright.serving.server_matcher import ServerMatcher
from maskwright.serving.settings import ServerSettings, make_compiler, read_settings

if TYPE_CHECKING:
    from maskwright.maskstore.vocabulary import VocabularySource
    from maskwright.serving.requests import RequestStore

NAME = "maskwright"
"""What `--grammar-backend` calls the backend."""

ANY_JSON = "$$ANY$$"
"""What SGLang sends instead of a schema for any JSON value."""
MOST_KEPT = 1024
"""The most constraints that SGLang's cache keeps; without a limit it would grow for ever."""
PREFIX = "MASKWRIGHT_SGLANG_"
"""How the environment variables begin: ``MASKWRIGHT_SGLANG_STORES`` is the setting `stores`."""
MAX_ROLLBACK = 256
"""How many tokens speculation can take back."""

_logger = logging.getLogger(__name__)


def register() -> None:
    """Make the backend known to SGLang, in its registry and among the choices of its option.

    SGLang calls it in each of its processes. A second call changes nothing.

    Raises: MissingExtraError if SGLang is not installed, or a version without a registry.
    """
    try:
        from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES, add_grammar_backend_choices
        from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    except ImportError as error:
        raise MissingExtraError(
            f"SGLang cannot be extended here ({error}); install the version that docs/serving-runtimes.md names: pip install sglang"
        ) from error
    register_grammar_backend(NAME, make_backend)
    if NAME not in GRAMMAR_BACKEND_CHOICES:
        add_grammar_backend_choices([NAME])


def make_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None = None
) -> Any:
    """The backend for a model, as SGLang's registry makes it.

    server_args : not used; SGLang's settings are read where it publishes them.
    tokenizer : the model's.
    vocab_size : how many logits the model gives.
    eos_token_ids : the ids that end a text; None for the tokenizer's own.

    With a reasoning parser the backend is wrapped in SGLang's own `ReasonerGrammarBackend`, as
    SGLang does for its own backends: what the model thinks is not constrained.

    Raises: as `server_vocabulary`, `read_settings` and `make_compiler`; MaskwrightError if the
        settings about white space cannot be met.
    """
    from sglang.srt.runtime_context import get_serving

    serving = get_serving()
    settings = _settings()
    backend = _classes().backend(tokenizer, vocab_size, eos_token_ids, _options(serving, settings), settings)
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    strict = serving.enable_strict_thinking
    return ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=strict)


def _settings() -> ServerSettings:
    """The settings in the environment.

    Raises: as `read_settings`; MaskwrightError for those of vLLM alone.
    """
    found = read_settings(prefix=PREFIX)
    if found.hybrid:
        raise MaskwrightError(f"{PREFIX}HYBRID is set, but SGLang has one backend for all requests; leave it out")
    if found.close_early:
        raise MaskwrightError(
            f"{PREFIX}CLOSE_EARLY is set, but SGLang does not tell a backend how many tokens a request may write; leave it out"
        )
    return found


def _options(serving: Any, settings: ServerSettings = ServerSettings()) -> RequestOptions:  # noqa: B008
    """What SGLang's settings say about white space in JSON; of the rest, ours."""
    pattern = serving.constrained_json_whitespace_pattern
    most = serving.constrained_json_max_whitespace_cnt
    if serving.constrained_json_disable_any_whitespace:
        return settings.options._replace(whitespace="compact")
    if pattern is not None:
        return settings.options._replace(whitespace=pattern)
    return settings.options if most is None else settings.options._replace(whitespace=most)


class GrammarMasks:
    """The part of a `BaseGrammarObject` of SGLang that makes masks: the text of one request.

    store : the constraint's.
    key : the constraint's kind and text, for messages.
    n_tokens : how many logits the model gives.
    stats : SGLang's `GrammarStats`.
    ends : the ids that end a text for the server, whatever ends one for the store; none for the
        store's own.

    A mask that cannot be made must not end the server, so `fill_vocab_mask` does not raise. It
    allows the ends alone, and `accept_token` raises then, which aborts this request.
    """

    current_token: int | None

    def __init__(
        self, store: RequestStore, key: tuple[str, str], n_tokens: int, stats: Any, ends: tuple[int, ...] = ()
    ) -> None:
        super().__init__()
        self.store, self.key, self.n_tokens, self.grammar_stats, self.ends = store, key, n_tokens, stats, ends
        self.matcher = ServerMatcher(store, ends, n_tokens, MAX_ROLLBACK)
        self._failed: str | None = None

    def accept_token(self, token: int) -> None:
        """Add a token to the text; nothing once the text has ended.

        Raises: IllegalTokenError, which is a ValueError, if the constraint refuses it; what
            `fill_vocab_mask` could not raise.
        """
        if self.matcher.is_finished():
            return
        self.current_token = token
        if self._failed is not None:
            raise IllegalTokenError(f"token {token} was chosen without a mask: {self._failed}")
        self.matcher.advance(token)

    def rollback(self, k: int) -> None:
        """Take back the last k tokens. Raises: as `Matcher.rollback`."""
        self.matcher.rollback(k)
        self._failed = None

    def is_terminated(self) -> bool:
        """Whether the text has ended with an end-of-text token."""
        return self.matcher.is_finished()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """A mask that allows all: (batch_size, W) int32, on the host."""
        return new_mask(max(vocab_size, self.n_tokens), batch_size)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        """Write the mask of the tokens allowed next.

        vocab_mask : (B, W) int32, on the host.
        idx : the row.
        """
        self.fill_row(vocab_mask.numpy()[idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: Any) -> None:
        """Write the masks of several requests; other rows stay as they are.

        entries : SGLang's `GrammarRow`: a row, and whose mask comes there. Requests that reason
            are wrapped in SGLang's own objects.
        vocab_mask : (B, W) int32, on the host.
        """
        # PERF: the tensor becomes an array once for the batch, since that takes as long as a mask
        words = vocab_mask.numpy()
        for row, grammar in entries:
            if isinstance(grammar, GrammarMasks):
                grammar.fill_row(words[row])
            else:
                grammar.fill_vocab_mask(vocab_mask, row)

    def fill_row(self, row: npt.NDArray[np.int32]) -> None:
        """Write the mask of the tokens allowed next. row : (W,) int32."""
        self._failed = self.matcher.fill_row(row.view(np.uint32))
        if self._failed is not None:
            _logger.warning("no mask can be made for a request with %s: %s", self.key[0], self._failed)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        """Let a mask allow all."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """The mask on a device; the copy does not wait where the host's memory is pinned."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """Write -inf over what is refused, and over padding past the mask.

        logits : (B, N).
        vocab_mask : (B, W) int32, on the same device.
        """
        if logits.device.type == "cpu":
            # rows without a constraint have all bits, also those past the columns
            apply_rows(logits, np.arange(len(logits), dtype=np.int32), vocab_mask.numpy())
        else:
            apply_words(logits, vocab_mask)

    def copy(self) -> Self:
        """A text at its start, under the same constraint."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        return type(self)(self.store, self.key, self.n_tokens, stats, self.ends)

    def __repr__(self) -> str:
        kind, text = self.key
        return f"<maskwright {kind} {text[:60]!r}: {self.matcher!r}>"


class BackendMasks:
    """The part of a `BaseGrammarBackend` of SGLang that compiles constraints.

    tokenizer, vocab_size, eos_token_ids : see `make_backend`.
    options : what holds of JSON.
    settings : see `ServerSettings`.

    Raises: as `server_vocabulary` and `make_compiler`.
    """

    cache: dict[tuple[str, str], Any]

    def __init__(
        self,
        tokenizer: VocabularySource,
        vocab_size: int,
        eos_token_ids: Iterable[int] | int | None = None,
        options: RequestOptions = RequestOptions(),  # noqa: B008 - it cannot change
        settings: ServerSettings = ServerSettings(),  # noqa: B008
    ) -> None:
        super().__init__()
        vocabulary = server_vocabulary(tokenizer, vocab_size, eos_token_ids, is_padded=False)
        self.compiler = make_compiler(vocabulary, settings, options, vocab_size)
        self._n_tokens = vocab_size

    def dispatch_json(self, key_string: str) -> Any:
        """The grammar object of a JSON schema, or of any JSON; for errors one that says why."""
        return self._compile("json", "true" if key_string == ANY_JSON else key_string)

    def _compile(self, kind: str, spec: str) -> Any:
        """The grammar object of a constraint; for errors one that says why."""
        known = _classes()
        try:
            store = self.compiler.compile(kind, spec)
            stats, ends = known.stats(dispatch_type=kind), self.compiler.vocabulary.eos
            return known.grammar(store, (kind, spec), self._n_tokens, stats, ends)
        except MaskwrightError as error:
            _logger.info("a request with %s is refused: %s", kind, error)
            return known.invalid(str(error))

    dispatch_regex = partialmethod(_compile, "regex")
    dispatch_ebnf = partialmethod(_compile, "grammar")
    dispatch_structural_tag = partialmethod(_compile, "structural_tag")

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Keep the grammar object of a constraint, and drop the oldest past `MOST_KEPT`."""
        self.cache[key] = value
        while len(self.cache) > MOST_KEPT:
            self.cache.pop(next(iter(self.cache)), None)

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> Any:
        """See `GrammarMasks.allocate_vocab_mask`; for requests that only reason."""
        return new_mask(vocab_size, batch_size)

    move_vocab_mask = staticmethod(GrammarMasks.move_vocab_mask)
    apply_vocab_mask = staticmethod(GrammarMasks.apply_vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Whether `set_token_filter` works; SGLang's strict thinking needs it."""
        return True

    def set_token_filter(
        self,
        vocab_mask: Any,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or refuse some tokens in a row of a mask.

        vocab_mask : (B, W) int32, on the host.
        token_ids, batch_idx : the tokens, and the row.
        is_allowed : whether the tokens are allowed.
        reset_vocab_mask : whether all others are set to the opposite before.
        """
        row = vocab_mask.numpy()[batch_idx].view(np.uint32)
        if reset_vocab_mask:
            row[:] = 0 if is_allowed else 0xFFFFFFFF
        words = words_of(token_ids, 32 * len(row))
        row[:] = row | words if is_allowed else row & ~words


@cache
def _classes() -> Any:
    """Our `grammar` and `backend` as SGLang knows them, and its own `invalid` and `stats`.

    They are made when SGLang is there: our methods come before those of its base classes.
    """
    import sglang.srt.constrained.base_grammar_backend as theirs

    grammar = type("MaskwrightGrammar", (GrammarMasks, theirs.BaseGrammarObject), {})
    backend = type("MaskwrightGrammarBackend", (BackendMasks, theirs.BaseGrammarBackend), {})
    invalid, stats = theirs.InvalidGrammarObject, theirs.GrammarStats
    return SimpleNamespace(grammar=grammar, backend=backend, invalid=invalid, stats=stats)


@cache
def _pins() -> bool:
    """Whether the host's memory can be pinned, so that copies to the device need not wait."""
    from sglang.srt.utils.common import is_pin_memory_available

    return bool(is_pin_memory_available())


def new_mask(vocab_size: int, rows: int) -> Any:
    """A mask that allows all: (rows, ceil(vocab_size / 32)) int32, a tensor on the host."""
    torch = need_torch()
    return torch.full((rows, n_words(vocab_size)), -1, dtype=torch.int32, pin_memory=_pins())
