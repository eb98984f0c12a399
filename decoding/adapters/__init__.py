"""How do other people's decoding loops use masks?

In: a store and their tensors. Out: logits with -inf where the grammar refuses a token. Needs
PyTorch (and Triton on CUDA), which are imported when they are used: the extra `hf`.
"""

from __future__ import annotations

from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.decoding.logits import apply_mask

__all__ = ["MaskwrightLogitsProcessor", "apply_mask"]
