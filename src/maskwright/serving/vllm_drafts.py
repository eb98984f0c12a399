"""vLLM's speculative decoding with drafts that come from the constraint, and no draft model.

vLLM makes the proposer in the process of the model, which knows no constraints. It proposes
placeholders. The scheduler then asks the request's grammar which of the drafts may come, and takes
what that returns for the drafts: `MaskwrightGrammar.validate_tokens` returns its own in their
place. A request without a constraint has placeholders for drafts, which the model refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PLACEHOLDER = 0
"""The token that is proposed; as a draft it is as good as any other."""


class Proposer:
    """What `speculative_config` names: ``{"method": "custom_class", "model": PROPOSER, ...}``.

    vllm_config : vLLM's configuration.
    """

    def __init__(self, vllm_config: Any) -> None:
        self._most = int(vllm_config.speculative_config.num_speculative_tokens)

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: Any,
        token_ids_cpu: Any,
        slot_mappings: Any = None,
    ) -> list[list[int]]:
        """Placeholders for each row that has got a token."""
        return [[PLACEHOLDER] * self._most if len(tokens) else [] for tokens in sampled_token_ids]

    def load_model(self, *args: Any, **options: Any) -> None:
        """Nothing: there is no draft model."""


PROPOSER = f"{__name__}.Proposer"
"""How `speculative_config` names the proposer."""


def number_of_drafts(vllm_config: Any) -> int:
    """How many drafts of our own vLLM is configured for; 0 for none."""
    config: Any = getattr(vllm_config, "speculative_config", None)
    if getattr(config, "method", None) != "custom_class" or getattr(config, "model", None) != PROPOSER:
        return 0
    return int(config.num_speculative_tokens)
