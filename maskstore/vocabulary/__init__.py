"""What are a tokenizer's tokens, as bytes, and how is a set of them kept?

In: a tokenizer's file, object or name. Out: a `Vocabulary`, that is the bytes of each token, the
special tokens, and the tokens that end a text. Knows nothing of grammars.
"""

from maskwright.maskstore.vocabulary.sorted_texts import SortedTexts, sorted_texts
from maskwright.maskstore.vocabulary.vocabulary import (
    BUILT_IN,
    LONGEST_TOKEN,
    Vocabulary,
    VocabularySource,
    as_vocabulary,
    load_vocabulary,
    post_tokens,
)

__all__ = [
    "BUILT_IN",
    "LONGEST_TOKEN",
    "SortedTexts",
    "Vocabulary",
    "VocabularySource",
    "as_vocabulary",
    "load_vocabulary",
    "post_tokens",
    "sorted_texts",
]
