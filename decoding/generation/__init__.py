"""How is a text made?

In: a function from tokens to logits, a store, a prompt. Out: a completion that is whole.
"""

from maskwright.decoding.generation.generation import Completion, Generation, Sampler, Step, generate

__all__ = ["Completion", "Generation", "Sampler", "Step", "generate"]
