"""In which form models read a hole: text before and behind it, each with a mark.

Source: the model cards of StarCoder, Qwen2.5-Coder, CodeGemma, DeepSeek-Coder, CodeLlama and
Codestral.
"""

from __future__ import annotations

from typing import Any

FORMS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    ("▁<PRE>", "▁<SUF>", "▁<MID>"),
    ("[SUFFIX]", "[PREFIX]"),
)
"""Special tokens before the first text, before the second, and before the middle.

The first text is the prefix, but for Codestral, which reads the suffix first, and no third mark.
"""


def hole_tokens(model: Any, prefix: str, suffix: str) -> list[int] | None:
    """What a model reads for a hole, if it was trained for holes; None if it has no such marks.

    model : its vocabulary, its tokenizer (of transformers), and what begins each prompt.
    """
    ids = {name: token for token, name in model.vocabulary.special.items()}
    for form in FORMS:
        if all(mark in ids for mark in form) and callable(model.tokenizer):
            first, second = (prefix, suffix) if len(form) == 3 else (suffix, prefix)
            # a mark in somebody's text is text
            how = {"add_special_tokens": False, "split_special_tokens": True}
            texts = [model.tokenizer(text, **how)["input_ids"] for text in (first, second)]
            begin, (before, between, *behind) = model.tokenizer("")["input_ids"], [ids[mark] for mark in form]
            return [*model.begin, *begin, before, *texts[0], between, *texts[1], *behind]
    return None
