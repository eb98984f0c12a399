"""How is a text made?

In: a function from tokens to logits, a store, a prompt. Out: a whole completion.
"""

from maskwright.decoding.generation.completion import Completion, Intervention, Step
from maskwright.decoding.generation.counts import TokenCounts
from maskwright.decoding.generation.forced import forced_tokens, tokenize_partial
from maskwright.decoding.generation.generation import Generation, generate
from maskwright.decoding.generation.logits import Sampler

__all__ = [
    "Completion",
    "Generation",
    "Intervention",
    "Sampler",
    "Step",
    "TokenCounts",
    "forced_tokens",
    "generate",
    "tokenize_partial",
]
