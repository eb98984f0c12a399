"""A server's vocabulary: the tokenizer's tokens, the model's size, the server's ends."""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, load_vocabulary


def server_vocabulary(
    tokenizer: VocabularySource,
    size: int | None = None,
    eos: Iterable[int] | int | None = None,
    *,
    is_padded: bool = True,
) -> Vocabulary:
    """The vocabulary of a model in a server.

    tokenizer : what `load_vocabulary` accepts.
    size : how many logits the model gives. Tokens past it are left out: they cannot come.
    eos : the ids that end a text, as the server knows them; None or none for the tokenizer's own.
    is_padded : whether it has `size` ids in any case. Those that the tokenizer lacks stand for no
        text. Without, it is the tokenizer's own where it can be, whose stores are kept on disk
        under the tokenizer's name.

    Raises: as `load_vocabulary`.
    """
    found = load_vocabulary(tokenizer)
    ends = [eos] if isinstance(eos, int) else sorted(eos or ())
    if size is not None:
        ends = [token for token in ends if token < size]
        found = _shorter(found, size) if size < found.size else found
    wanted = size if is_padded and size is not None else found.size
    if wanted == found.size and (not ends or tuple(ends) == found.eos):
        return found
    return load_vocabulary(found, size=max([wanted, *(token + 1 for token in ends)]), eos=ends or None)


def _shorter(vocabulary: Vocabulary, size: int) -> Vocabulary:
    special = {name: token for token, name in vocabulary.special.items() if token < size}
    kept = [token for token in vocabulary.eos if token < size]
    return Vocabulary.from_tokens(vocabulary.tokens[:size], eos=kept, special=special, name=vocabulary.name)
