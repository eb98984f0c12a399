"""Byte-level vocabularies written as ranks, tokens in base64: tekken json and tiktoken files."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import VocabularyError
from maskwright.maskstore.vocabulary.tokenizer_table import SAMPLES, Reference, TokenTable
from maskwright.maskstore.vocabulary.tokenizer_values import ID_LIMIT, as_list, check_id, package_errors

#: Special tokens, by id, of tekken files that do not list them (up to version 7).
#: Source: mistral-common, tekken.py.
TEKKEN_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)

_END = "<|endoftext|>"
_QWEN = (_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205)))

#: SHA-256 of a published rank file -> its special tokens (name -> id), which the file lacks.
#: Source: tiktoken_ext/openai_public.py of tiktoken 0.14 (hashes and ids);
#: tokenizers/qwen_tokenizer.py of dashscope.
KNOWN_RANK_FILES: Mapping[str, Mapping[str, int]] = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": {_END: 50256},  # r50k_base
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": {_END: 50256},  # p50k_base
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": {  # cl100k_base
        _END: 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": {  # o200k_base
        _END: 199999,
        "<|endofprompt|>": 200018,
    },
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": {  # qwen
        name: 151643 + i for i, name in enumerate(_QWEN)
    },
}

# A rank file does not say how it cuts words. Another cut gives other ids, but never other bytes, so
# any cut serves to check the bytes.
_ANY_CUT = r"\s+|\S+"


def read_tekken(content: Mapping[str, Any], where: str) -> TokenTable:
    """The table of a tekken json.

    content : the parsed JSON.
    where : the file, for messages.

    The special tokens have the first ids. The entries of `vocab` follow in order, up to
    `config.default_vocab_size` ids in all.

    Raises: VocabularyError if a field is missing or of another type, an entry is out of order,
    bytes are not base64, empty or given twice, or `vocab` has fewer entries than the config asks
    for; and as `table_of_ranks`.
    """
    config, vocab = content["config"], content["vocab"]
    n_special = _count(config, "default_num_special_tokens", where)
    n_texts = _count(config, "default_vocab_size", where) - n_special
    if not 0 < n_texts <= len(vocab):
        raise VocabularyError(
            f"{where}: config asks for {n_texts} tokens with text (default_vocab_size - default_num_special_tokens), "
            f"but vocab has {len(vocab)}; the file is cut off, or its config belongs to another file"
        )
    pattern = config.get("pattern")
    if not isinstance(pattern, str):
        raise VocabularyError(f"{where}: config.pattern is {clip(pattern)}, expected a regular expression")
    special = {f"<SPECIAL_{token}>": token for token in range(n_special)}
    listed = content.get("special_tokens")
    if listed is None:
        listed = [{"rank": token, "token_str": name} for token, name in enumerate(TEKKEN_SPECIAL[:n_special])]
    for i, entry in enumerate(as_list(listed, f"{where}: special_tokens")):
        token, name = (entry.get("rank"), entry.get("token_str")) if isinstance(entry, dict) else (None, None)
        if not isinstance(token, int) or not 0 <= token < n_special or not isinstance(name, str):
            raise VocabularyError(
                f"{where}: special_tokens[{i}] is {clip(entry)}; expected token_str and a rank from 0 to "
                f"{n_special - 1} (config.default_num_special_tokens)"
            )
        special.pop(f"<SPECIAL_{token}>", None)
        special[name] = token
    ranks: dict[bytes, int] = {}
    for i, entry in enumerate(vocab[:n_texts]):
        text = entry.get("token_bytes") if isinstance(entry, dict) and entry.get("rank") == i else None
        if not isinstance(text, str):
            raise VocabularyError(
                f"{where}: vocab[{i}] is {clip(entry)}; expected an object with rank {i} and token_bytes in base64"
            )
        _add_rank(ranks, text.encode("ascii", "replace"), n_special + i, f"{where}: vocab[{i}]")
    return table_of_ranks(ranks, special, pattern, where)


def read_tiktoken(data: bytes, where: str, special: Mapping[str, int]) -> TokenTable:
    """The table of a tiktoken rank file, whose lines are a token in base64, a space and its rank.

    data : the content.
    where : the file, for messages.
    special : name -> id of its special tokens.

    Raises: VocabularyError if a line has another form, or a rank or bytes are given twice; and as
    `table_of_ranks`.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        text, _, rank = line.strip().partition(b" ")
        if not rank.isdigit() or len(rank) > 18:
            raise VocabularyError(f"{where}:{number}: {line[:60]!r}; expected a token in base64, a space and its rank")
        _add_rank(ranks, text, int(rank), f"{where}:{number}")
    return table_of_ranks(ranks, special, None, where)


def table_of_ranks(
    ranks: Mapping[bytes, int], special: Mapping[str, int], pattern: str | None, where: str
) -> TokenTable:
    """The table of byte strings with ids in order of merging, and of special tokens.

    ranks : bytes -> id.
    special : name -> id.
    pattern : the regular expression that cuts words; None if it is not known.
    where : the file or object, for messages.

    Raises: VocabularyError if one of the 256 single bytes is missing (byte-level tokenizers have
    them all), two tokens have one id, or the pattern is no regular expression; and as
    `TokenTable.from_ids`.
    """
    texts = {token: text for text, token in ranks.items()}
    if len(texts) != len(ranks):
        first = next(text for text, token in ranks.items() if texts[token] != text)
        raise VocabularyError(
            f"{where}: id {ranks[first]} is given to two tokens, {first!r} and {texts[ranks[first]]!r}"
        )
    bare = [byte for byte in range(256) if bytes((byte,)) not in ranks]
    if bare:
        raise VocabularyError(
            f"{where}: {len(bare)} of the 256 single bytes have no token (0x{bare[0]:02X} is the first); "
            "a byte-level vocabulary holds them all, so the file is incomplete"
        )
    for name, token in special.items():
        if token in texts:
            raise VocabularyError(
                f"{where}: id {token} of the special token {name!r} is taken by the text {texts[token]!r}"
            )
    table = TokenTable.from_ids(where, texts, {token: name for name, token in special.items()})
    table.guess_eos()
    table.reference = _reference(ranks, pattern, where)
    return table


def _reference(ranks: Mapping[bytes, int], pattern: str | None, where: str) -> Reference | None:
    """tiktoken's encoder with only the tokens that can occur in the samples; None without tiktoken.

    Each merge makes a token that is a substring of the text. Other tokens therefore cannot change
    how a sample is cut.

    PERF: load_vocabulary("tekken"), 131,072 tokens: 16 to 37 ms in this function over six runs on a
    machine shared with other work; the encoder over all tokens 150 ms (AMD EPYC, one thread,
    tiktoken 0.14).
    """
    try:
        import tiktoken
    except ImportError:
        return None
    text = "\0".join(SAMPLES).encode()
    heads = {text[i : i + n] for n in (1, 2, 3) for i in range(len(text))}
    chosen = {token: rank for token, rank in ranks.items() if len(token) == 1 or (token[:3] in heads and token in text)}
    with package_errors(where, "the pattern that cuts words is not a regular expression"):
        encoding = tiktoken.Encoding("samples", pat_str=pattern or _ANY_CUT, mergeable_ranks=chosen, special_tokens={})
    return Reference(encode=encoding.encode_ordinary)


def _add_rank(ranks: dict[bytes, int], text: bytes, token: int, where: str) -> None:
    """Decode a token, check it, and add it to `ranks` with its id."""
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise VocabularyError(f"{where}: {text[:60]!r} is not base64 ({error})") from None
    if not decoded:
        raise VocabularyError(f"{where}: an empty token; a token stands for at least one byte")
    if decoded in ranks:
        raise VocabularyError(f"{where}: token {decoded!r} has id {ranks[decoded]} already; expected every token once")
    check_id(token, where)
    ranks[decoded] = token


def _count(config: Mapping[str, Any], key: str, where: str) -> int:
    """A number of tokens in the config."""
    value = config.get(key)
    if not isinstance(value, int) or not 0 <= value < ID_LIMIT:
        raise VocabularyError(f"{where}: config.{key} is {clip(value)}, expected a number of tokens")
    return value
