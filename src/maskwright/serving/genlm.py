"""A store as a potential of genlm-control: for sequential Monte Carlo and other particle methods.

Source: Loula et al., "Syntactic and Semantic Control of Large Language Models via Sequential Monte
Carlo" (2025). The weights are those of a Boolean potential: log weight 0 or -inf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.errors import IllegalTokenError, MissingExtraError, VocabularyError
from maskwright.decoding.engines import check_tables
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary.masks import flags_of, n_words

if TYPE_CHECKING:
    from maskwright.decoding.engines import AnyTable

MOST_KEPT = 1024
"""Prefixes whose matchers are kept, the last ones used: particles, each with its last steps."""
_REFUSED = -float("inf")


class PrefixWeights:
    """Which prefixes a store takes, whatever order they are asked about in.

    store : a store of any kind with matchers.

    The matchers of the last prefixes are kept; a longer one goes on from a copy of its beginning's.

    Raises: MaskwrightError for a store without matchers.
    """

    def __init__(self, store: AnyTable) -> None:
        check_tables([store])
        self.store = store
        self._words = np.zeros(n_words(store.vocabulary.size), np.uint32)
        self._kept: OrderedDict[tuple[int, ...], Matcher] = OrderedDict()

    def matcher(self, ids: tuple[int, ...]) -> Matcher | None:
        """The matcher behind a prefix, not to be advanced; None if no text begins so.

        Cost: one `fork` and one token, if the prefix without its last token is kept.
        """
        if (found := self._kept.get(ids)) is None:
            begun = self._kept.get(ids[:-1])
            found = Matcher(self.store, 0) if begun is None else begun.fork()
            try:
                for token in ids if begun is None else ids[-1:]:
                    found.advance(token)
            except IllegalTokenError:
                return None
            self._kept[ids] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(ids)
        return found

    def allowed(self, ids: tuple[int, ...]) -> npt.NDArray[np.bool_] | None:
        """Which tokens may come behind a prefix, by id; None as `matcher`."""
        matcher = self.matcher(ids)
        if matcher is None:
            return None
        matcher.try_fill(self._words)
        return flags_of(self._words)


def potential(store: AnyTable, tokens: Sequence[Any] | None = None) -> Any:
    """A `genlm.control.Potential`: `SMC(sampler)` and products with a `PromptedLLM` take it.

        llm = PromptedLLM.from_name("MODEL")
        sampler = AWRS(llm, potential(store, llm.vocab))

    store : of any kind with matchers, built with the model's tokenizer.
    tokens : the vocabulary of the potential that it is combined with, such as `llm.vocab`: objects
        with a `token_id`. By default all tokens of the store that have bytes.

    Its `prefix` is 0 where some text begins so, `complete` where the text is one, and -inf
    elsewhere; `logw_next` has the mask, and whether the text may end.

    Raises: MissingExtraError without genlm-control; VocabularyError for tokens that are not of
    the store's vocabulary; MaskwrightError for a store without matchers.
    """
    try:
        from genlm.backend.tokenization import Token
        from genlm.control import Potential
    except ImportError as error:
        raise MissingExtraError(f"genlm-control cannot be imported ({error}): pip install genlm-control") from error
    vocabulary = store.vocabulary
    if tokens is None:
        tokens = [Token(number, vocabulary.tokens[number]) for number in vocabulary.text_ids().tolist()]
    for token in tokens:
        number = token.token_id
        if not 0 <= number < vocabulary.size or vocabulary.tokens[number] not in (b"", bytes(token)):
            raise VocabularyError(
                f"token {number} is {bytes(token)!r}, which is not a token of vocabulary {vocabulary.name}: build the store with the "
                "model's own tokenizer"
            )
    weights = PrefixWeights(store)
    ids = np.array([token.token_id for token in tokens], np.int64)

    def key(context: Sequence[Any]) -> tuple[int, ...]:
        return tuple(token.token_id for token in context)

    class StorePotential(Potential):  # type: ignore[misc, unused-ignore]
        """See `potential`."""

        async def prefix(self, context: Sequence[Any]) -> float:
            return _REFUSED if weights.matcher(key(context)) is None else 0.0

        async def complete(self, context: Sequence[Any]) -> float:
            matcher = weights.matcher(key(context))
            return 0.0 if matcher is not None and matcher.is_accepting() else _REFUSED

        async def logw_next(self, context: Sequence[Any]) -> Any:
            allowed = weights.allowed(key(context))
            if allowed is None:
                raise ValueError(f"context {list(context)!r} has weight zero under `prefix`")
            logws = self.alloc_logws()
            logws[:-1][allowed[ids]] = 0.0
            logws[-1] = await self.complete(context)
            return self.make_lazy_weights(logws)

        def spawn(self) -> Any:
            return potential(store, tokens)

    return StorePotential(list(tokens))
