"""Masks in other people's decoding loops. In: a store and their tensors. Out: logits with -inf where the grammar refuses a token.

Needs PyTorch (and Triton on CUDA), imported when it is used: the extra `hf`.
"""
