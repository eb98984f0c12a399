"""A text in the tokens that a model would have written it with: Domino's Algorithm 3.

In: a model, a prompt, a text. Out: tokens of the text. The tokenizer's own tokens are others where
the model likes another spelling better; those are called canonical here.

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988),
appendix B.
PAPER: ours never takes a token behind which the rest of the text cannot be spelled.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from maskwright.analysis.errors import VocabularyError
from maskwright.completion import LanguageModel, load_model
from maskwright.decoding.endings.ending_spelling import spelling_of
from maskwright.decoding.engine.arguments import text_bytes
from maskwright.decoding.generation.logits import Reader, likeliest, reader_of
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.prompts import as_text


def _fitting(vocabulary: Vocabulary, data: bytes) -> list[list[int]]:
    """At each offset: the tokens behind which the rest can be spelled, ascending.

    Raises: VocabularyError if no tokens spell the bytes.
    """
    spelling, texts = spelling_of(vocabulary), vocabulary.sorted_texts
    found: list[list[int]] = [[] for _ in data]
    for begin in range(len(data) - 1, -1, -1):
        for end in (begin + n for n in spelling.lengths_at(data, begin) if begin + n <= len(data)):
            if end == len(data) or found[end]:
                first, last = bisect_left(texts.texts, data[begin:end]), bisect_right(texts.texts, data[begin:end])
                found[begin] += texts.ids[first:last].tolist()
        found[begin].sort()
    if data and not found[0]:
        raise VocabularyError(
            f"no tokens of vocabulary {vocabulary.name} spell the text {data[:40]!r}; give one of bytes that it has"
        )
    return found


def retokenise(
    model: LanguageModel | str | os.PathLike[str], prompt: str | bytes, text: str | bytes
) -> tuple[int, ...]:
    """Spell a text as a model would have.

    At each step the token comes that is most probable behind the prompt and the tokens before, of
    those whose bytes begin what is left of the text. Of equal ones the lowest id comes.

    model : a loaded model, or what `load_model` takes.
    prompt : what stands before the text; bytes must be UTF-8.
    text : what is to be spelled.

    Returns the ids of tokens whose bytes, joined, are the text.

    Raises: VocabularyError if no tokens of the model spell the text; MaskwrightError if the prompt
        is not UTF-8; and as `load_model`.
    Cost: a forward pass a token.
    """
    before, data = as_text(prompt)[1], text_bytes("the text", text, "a str or bytes")
    loaded = model if isinstance(model, LanguageModel) else load_model(model)
    return tuple(spell(reader_of(loaded.model, loaded.tokens_of(before)), loaded.vocabulary, data))


def spell(reader: Reader, vocabulary: Vocabulary, data: bytes) -> list[int]:
    """As `retokenise`, behind what a reader has read, which reads the tokens too."""
    at, found, fitting = 0, list[int](), _fitting(vocabulary, data)
    while at < len(data):
        logits = reader.logits()
        found.append(fitting[at][likeliest(logits[fitting[at]])])
        reader.push(found[-1])
        at += len(vocabulary.tokens[found[-1]])
    return found
