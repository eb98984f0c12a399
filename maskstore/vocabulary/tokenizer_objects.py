"""Readers of tokenizer objects of other packages, none of which is imported.

The packages are transformers, tokenizers, sentencepiece, tiktoken and mistral-common.
"""

from __future__ import annotations

from typing import Any

from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_files import table_of_sentencepiece
from maskwright.maskstore.vocabulary.tokenizer_json import read_tokenizer_json
from maskwright.maskstore.vocabulary.tokenizer_ranks import table_of_ranks
from maskwright.maskstore.vocabulary.tokenizer_table import Reference, TokenTable
from maskwright.maskstore.vocabulary.tokenizer_values import encode_text, package_errors, packages_of, parse_json


def read_object(source: Any) -> TokenTable:
    """The table of a tokenizer object, recognised by the package of its class or of a base class.

    source : the object.

    Raises: VocabularyError if it is no such object, or the tokenizer cannot be read exactly;
    MissingExtraError as the readers of files.
    """
    where = f"{type(source).__name__} object"
    packages = packages_of(source)
    with package_errors(where, "cannot be read as a tokenizer"):
        for package, read in (
            ("mistral_common", _read_mistral),
            ("sentencepiece", table_of_sentencepiece),
            ("tiktoken", _read_tiktoken),
            ("transformers", _read_transformers),
            ("tokenizers", _read_tokenizers),
        ):
            if package in packages:
                return read(source, where)
    raise VocabularyError(
        f"no vocabulary can be read from an object of type {type(source).__module__}.{type(source).__qualname__}; "
        "expected a path, a built-in name, or a tokenizer of transformers, tokenizers, sentencepiece, tiktoken or "
        "mistral-common"
    )


def _read_mistral(source: Any, where: str) -> TokenTable:
    """The table of a MistralTokenizer, or of a tokenizer inside it.

    These are its instruct tokenizer, its Tekkenizer and its SentencePieceTokenizer.
    """
    for inner in ("instruct_tokenizer", "tokenizer"):
        source = getattr(source, inner, source)
    processor = getattr(source, "_model", None)
    if "sentencepiece" in packages_of(processor):
        return table_of_sentencepiece(processor, where)
    if not hasattr(source, "id_to_byte_piece"):
        raise VocabularyError(f"{where}: holds no Tekkenizer or SentencePieceTokenizer; give the MistralTokenizer")
    special = {token: source.id_to_piece(token) for token in sorted(source.special_ids)}
    texts = {token: source.id_to_byte_piece(token) for token in range(source.n_words) if token not in special}
    table = TokenTable.from_ids(where, texts, special, "the tokenizer is empty")
    table.make_eos(source.eos_id, special[source.eos_id])
    table.reference = Reference(encode=lambda text: source.encode(text, bos=False, eos=False))
    return table


def _read_tiktoken(source: Any, where: str) -> TokenTable:
    special = {name: source.encode_single_token(name) for name in sorted(source.special_tokens_set)}
    ranks = {}
    for token in range(source.n_vocab):
        try:
            text = source.decode_single_token_bytes(token)
        except KeyError:
            continue
        if token not in special.values():
            ranks[text] = token
    table = table_of_ranks(ranks, special, None, where)
    table.reference = Reference(encode=source.encode_ordinary)
    return table


def _read_tokenizers(source: Any, where: str) -> TokenTable:
    # parts written in Python, for example, cannot be written
    with package_errors(where, "cannot be written as tokenizer.json"):
        text = source.to_str()
    return read_tokenizer_json(parse_json(text.encode(), where), text, where)


def _read_transformers(source: Any, where: str) -> TokenTable:
    """The table of a transformers tokenizer.

    A fast tokenizer is read by its backend, one in Python by its SentencePiece, byte-level or
    tiktoken model.
    """
    inner = getattr(source, "tokenizer", None)
    packages = packages_of(inner)
    if "mistral_common" in packages:
        return _read_mistral(inner, where)
    if getattr(source, "backend_tokenizer", None) is not None:
        table = _read_tokenizers(source.backend_tokenizer, where)
    elif "tiktoken" in packages:
        table = _read_tiktoken(inner, where)
    elif hasattr(source, "sp_model") or hasattr(source, "byte_decoder"):
        table = _read_slow(source, where)
    else:
        raise VocabularyError(
            f"{where}: is written in Python and holds no SentencePiece, byte-level or tiktoken model, so the "
            "bytes of its tokens are unknown; load it as a fast tokenizer, or give its tokenizer.json"
        )
    table.name_special(dict(zip(source.all_special_ids, map(str, source.all_special_tokens), strict=True)))
    if source.eos_token_id is not None:
        table.set_eos([source.eos_token_id])
    return table


def _read_slow(source: Any, where: str) -> TokenTable:
    """A transformers tokenizer in Python, over a SentencePiece model or the byte-level alphabet."""
    model = getattr(source, "sp_model", None)
    special: dict[int, str] = {}
    texts: dict[int, bytes] = {}
    byte_pieces: set[int] = set()
    for piece, token in source.get_vocab().items():
        if model is None:
            texts[token] = bytes(source.byte_decoder[character] for character in piece)
            continue
        inner = model.piece_to_id(piece)
        if model.is_control(inner) or model.is_unknown(inner):
            special[token] = piece
        elif model.is_byte(inner):
            texts[token] = bytes((int(piece[3:5], 16),))
            byte_pieces.add(token)
        else:
            texts[token] = encode_text(piece.replace("▁", " "), where)
    for token, added in source.added_tokens_decoder.items():
        special.pop(token, None)
        if added.special:
            special[token] = added.content
        else:
            texts[token] = encode_text(added.content, where)
    table = TokenTable.from_ids(where, texts, special, "the tokenizer is empty")
    table.byte_pieces |= byte_pieces - special.keys()
    table.guess_eos()
    normalize = (lambda text: text) if model is None else model.normalize
    table.reference = Reference(
        expected=lambda text: str(normalize(text)).replace("▁", " "),
        encode=lambda text: list(source.encode(text, add_special_tokens=False)),
        decode=lambda ids: str(source.decode(ids, clean_up_tokenization_spaces=False)),
        unknown=frozenset(() if source.unk_token_id is None else (source.unk_token_id,)),
    )
    return table
