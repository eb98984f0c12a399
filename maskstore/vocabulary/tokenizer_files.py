"""Readers of tokenizer files and folders, recognised by their content, not by their names."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MissingExtraError, UnknownNameError, VocabularyError
from maskwright.analysis.files import is_tensors, read_file_bytes
from maskwright.maskstore.vocabulary.tokenizer_json import read_tokenizer_json
from maskwright.maskstore.vocabulary.tokenizer_ranks import KNOWN_RANK_FILES, read_tekken, read_tiktoken
from maskwright.maskstore.vocabulary.tokenizer_table import Reference, TokenTable
from maskwright.maskstore.vocabulary.tokenizer_values import (
    BUILT_IN,
    as_object,
    check_id,
    encode_text,
    package_errors,
    parse_json,
)

#: What a folder is searched for, in this order. It is an error if a pattern fits several files.
IN_FOLDER = ("tokenizer.json", "tekken*.json", "tokenizer.model", "*.model", "*.model.v*", "*.tiktoken")

MAX_BYTES = 128 << 20
"""The most bytes of a file that is read as a tokenizer's. The largest in use have some 35 MB."""

Kind = Literal["tokenizer.json", "tekken", "ranks", "sentencepiece"]

_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?(\n|$)")


def read_path(path: Path, special: Mapping[str, int]) -> TokenTable:
    """The table of a tokenizer file, or of the folder that holds one.

    path : the file or folder.
    special : name -> id of special tokens that the file does not hold.

    For a folder, and for a file called `tokenizer.json` or `tokenizer.model`, the files beside it
    are read too: `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`, and
    `generation_config.json` (or else `config.json`). They say which tokens were added,
    which are special, and which end a text.

    Raises: VocabularyError if the file cannot be read exactly, or a folder holds no tokenizer file
    or several of one kind; MissingExtraError for a SentencePiece model if the package sentencepiece
    is not installed.
    """
    folder: Path | None = None
    if path.is_dir():
        folder, path = path, _file_in(path)
    elif path.name in ("tokenizer.json", "tokenizer.model"):
        folder = path.parent
    table = read_bytes(file_bytes(path), str(path), special)
    if folder is not None:
        _add_tokens(table, folder)
        _name_special(table, folder)
        _set_eos(table, folder)
    return table


def file_bytes(path: Path) -> bytes:
    """All bytes of the tokenizer file at a path.

    Raises: VocabularyError if it cannot be read, is not a file, or has more than `MAX_BYTES` bytes.
    """
    if is_tensors(path):
        raise VocabularyError(
            f"{path}: a safetensors file, as stores and models' weights are, not a tokenizer; name the tokenizer.json "
            "or the other file that its tokens are in"
        )
    try:
        return read_file_bytes(path, MAX_BYTES, "a tokenizer file", VocabularyError)
    except OSError as error:
        raise VocabularyError(f"{path}: cannot be read: {error.strerror}") from None


def locate(source: str | os.PathLike[str]) -> tuple[Path, str]:
    """The path of a built-in name, file or folder, and what to call its vocabulary."""
    if not os.fspath(source):
        raise UnknownNameError(
            f"the vocabulary's name is empty; give a file, a folder, or a built-in name ({', '.join(BUILT_IN)})"
        )
    if source in BUILT_IN:
        package, inside = BUILT_IN[str(source)]
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError(
                f"the built-in vocabulary {source} is a file of the package {package}, which is not installed: "
                "pip install 'maskwright[tokenizers]'"
            )
        path = Path(spec.submodule_search_locations[0], inside)
        if not path.exists():
            raise VocabularyError(
                f"the installed package {package} has no {inside}, the file of the built-in vocabulary {source}; "
                "install a version that has it (mistral-common 1.13 does), or give the file's path"
            )
        return path, str(source)
    path = Path(source)
    if not os.path.exists(path):  # unlike `Path.exists` no error for a name that no file can have
        if _is_hidden(path):
            raise VocabularyError(f"{clip(str(source))} cannot be read: Permission denied")
        near = difflib.get_close_matches(str(source), BUILT_IN, n=2, cutoff=0.4)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UnknownNameError(
            f"no vocabulary {clip(str(source))}: neither a built-in name nor a file or folder{meant} "
            f"(built in: {', '.join(BUILT_IN)})"
        )
    return path, os.fsencode(path.resolve().name).decode(errors="replace")


def _is_hidden(path: Path) -> bool:
    """Whether a path may be there, in a folder that may not be searched."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        pass
    return False


def found_file(source: str | os.PathLike[str]) -> Path:
    """The tokenizer file of a built-in name, a file or a folder.

    Raises: as `load_vocabulary` for a source that is not there; VocabularyError for a folder with
    no tokenizer file, or several of one kind.
    """
    path, _ = locate(source)
    return _file_in(path) if os.path.isdir(path) else path


def content_of(data: bytes, where: str) -> tuple[Kind, Any]:
    """What a tokenizer file is, told by its content; and JSON's values, or the bytes.

    Raises: VocabularyError for JSON that is no tokenizer's.
    """
    if data.lstrip()[:1] != b"{":
        return ("ranks" if _RANK_LINE.match(data.lstrip()) else "sentencepiece"), data
    content = parse_json(data, where)
    if isinstance(content.get("model"), dict):
        return "tokenizer.json", content
    if isinstance(content.get("config"), dict) and isinstance(content.get("vocab"), list):
        return "tekken", content
    raise VocabularyError(
        f"{where}: a JSON file with the keys {clip(list(content)[:5])}, which is not a tokenizer; expected a "
        "tokenizer.json (key model) or a tekken file (keys config, vocab). A vocab.json alone does not say how "
        "its pieces are read: save the tokenizer as tokenizer.json"
    )


def read_bytes(data: bytes, where: str, special: Mapping[str, int]) -> TokenTable:
    """The table of a tokenizer file's content, which also tells the kind of the file.

    data : the content.
    where : the file, for messages.
    special : name -> id of special tokens that the file does not hold.

    Raises: as `read_path`.
    """
    match content_of(data, where):
        case "tokenizer.json", content:
            table = read_tokenizer_json(content, data.decode(), where)
        case "tekken", content:
            table = read_tekken(content, where)
        case "ranks", _:
            known = KNOWN_RANK_FILES.get(hashlib.sha256(data).hexdigest(), {})
            return read_tiktoken(data, where, {**known, **special})
        case _:
            table = read_sentencepiece(data, where)
    table.name_special({token: name for name, token in special.items()})
    return table


def read_sentencepiece(data: bytes, where: str) -> TokenTable:
    """The table of a serialised SentencePiece model.

    data : the model's bytes.
    where : the file, for messages.

    Raises: MissingExtraError if the package sentencepiece is not installed; VocabularyError if it
    refuses the bytes.
    """
    try:
        import sentencepiece
    except ImportError:
        raise MissingExtraError(
            f"{where}: neither JSON nor tiktoken ranks; a SentencePiece model needs the package sentencepiece: "
            "pip install 'maskwright[tokenizers]'"
        ) from None
    refused = (
        "not a tokenizer file: it is not JSON, does not begin with a tiktoken rank ('<base64> <rank>'), and sentencepiece cannot read its "
        f"{len(data)} bytes as a model"
    )
    with package_errors(where, refused, "; it is damaged, cut off or of another kind"):
        if not data:
            raise ValueError("the file is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    with package_errors(where, "the SentencePiece model cannot be read"):
        return table_of_sentencepiece(processor, where)


def table_of_sentencepiece(processor: Any, where: str) -> TokenTable:
    """The table of a SentencePieceProcessor.

    processor : the loaded model.
    where : the file or object, for messages.

    `▁` is a space, and `<0x0A>` is a byte. Control and unknown pieces are special. Unused pieces,
    which the encoder never gives, stand for no text. User-defined pieces are ordinary text. The
    package has checked at loading that pieces are distinct and not empty.

    Raises: as `TokenTable.from_ids`; VocabularyError if a piece holds half a surrogate pair.
    """
    ids = list(range(processor.vocab_size()))
    pieces: list[str] = processor.id_to_piece(ids)
    controls, unknowns = processor.is_control(ids), processor.is_unknown(ids)
    is_byte, is_unused = processor.is_byte(ids), processor.is_unused(ids)
    special = {token: pieces[token] for token in ids if controls[token] or unknowns[token]}
    byte_pieces = {token for token in ids if is_byte[token]}
    texts: dict[int, bytes] = {}
    for token, piece in enumerate(pieces):
        if token in byte_pieces:
            texts[token] = bytes((int(piece[3:5], 16),))
        elif token not in special:
            texts[token] = b"" if is_unused[token] else encode_text(piece.replace("▁", " "), where)
    table = TokenTable.from_ids(where, texts, special)
    table.byte_pieces = byte_pieces
    table.names = {piece: token for token, piece in enumerate(pieces)}
    if processor.eos_id() >= 0:
        table.make_eos(processor.eos_id(), pieces[processor.eos_id()])
    table.guess_eos()
    table.reference = Reference(
        encode=processor.encode,
        expected=lambda text: str(processor.normalize(text)).replace("▁", " "),
        decode=processor.decode,
        unknown=frozenset(token for token in ids if unknowns[token]),
    )
    return table


def _file_in(folder: Path) -> Path:
    """The tokenizer file of a folder: the one file that fits the first fitting pattern."""
    for pattern in IN_FOLDER:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise VocabularyError(f"{folder}: several tokenizer files ({names}); give the path of one")
        if found:
            return found[0]
    raise VocabularyError(f"{folder}: no tokenizer file in this folder; looked for {', '.join(IN_FOLDER)}")


def _add_tokens(table: TokenTable, folder: Path) -> None:
    """Add the tokens that the files beside the tokenizer have beyond it, and mark special tokens.

    They are `added_tokens_decoder` of `tokenizer_config.json`, and `added_tokens.json`. For an id
    that the tokenizer file has, that file decides the text.
    """
    added: dict[int, tuple[str, bool]] = {}
    for name, token in _config(folder, "added_tokens.json").items():
        check_id(token, f"{folder / 'added_tokens.json'}: {name!r}")
        added[token] = (name, False)
    where = str(folder / "tokenizer_config.json")
    decoder = _config(folder, "tokenizer_config.json").get("added_tokens_decoder") or {}
    for key, entry in as_object(decoder, f"{where}: added_tokens_decoder").items():
        is_id = key.isascii() and key.isdigit() and len(key) <= 18
        if not is_id or not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
            raise VocabularyError(
                f"{where}: added_tokens_decoder[{clip(key)}] is {clip(entry)}; expected an id and an object with content"
            )
        added[int(key)] = (entry["content"], entry.get("special") is True)
    names = {token: text for token, (text, special) in added.items() if special}
    texts = {token: encode_text(text, where) for token, (text, _) in added.items() if token not in names}
    table.add({token: text for token, text in texts.items() if token >= len(table.tokens)}, names)
    table.name_special(names)


def _name_special(table: TokenTable, folder: Path) -> None:
    """Mark the tokens that the files beside the tokenizer name as special.

    They do so under `*_token`, `additional_special_tokens` and `extra_special_tokens`. As in the
    package transformers, `special_tokens_map.json` counts only where `tokenizer_config.json` has no
    `added_tokens_decoder`. That package adds a name that is no token beyond the tokenizer's ids,
    where the model has no row for it; here it is ignored.
    """
    config = _config(folder, "tokenizer_config.json")
    for part in (config, {} if "added_tokens_decoder" in config else _config(folder, "special_tokens_map.json")):
        named = [value for key, value in part.items() if key.endswith("_token")]
        for key in ("additional_special_tokens", "extra_special_tokens"):
            group = part.get(key)
            named += group.values() if isinstance(group, dict) else group if isinstance(group, list) else []
        for name in map(_text_of, named):
            token = table.find(name)
            if token >= 0:
                table.name_special({token: name})


def _text_of(token: object) -> str:
    """The text of a token as configurations have it, a str or an object with `content`; else ""."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def _set_eos(table: TokenTable, folder: Path) -> None:
    """Replace eos by all tokens that the files beside the tokenizer name, if they name any."""
    ends: list[str | int] = []
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        end = _text_of(_config(folder, name).get("eos_token"))
        if end:
            ends.append(end)
    generation = "generation_config.json" if (folder / "generation_config.json").exists() else "config.json"
    ids = _config(folder, generation).get("eos_token_id")
    ends += [token for token in (ids if isinstance(ids, list) else [ids]) if isinstance(token, int)]
    if ends:
        table.set_eos(ends)


def _config(folder: Path, name: str) -> Mapping[str, Any]:
    """The JSON object of a file in the folder; empty if there is no such file."""
    path = folder / name
    if not path.exists():
        return {}
    return as_object(parse_json(file_bytes(path), str(path)), str(path))
