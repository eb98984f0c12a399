"""The part of xgrammar's interface that reads tokenizers and compiles grammars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from inspect import signature
from operator import index
from typing import Any, Self

import numpy as np

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.nesting import read_json
from maskwright.analysis.schema.spacing import WIDEST_INDENT
from maskwright.analysis.schema.style import KeyOrder
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.tokenizer_json import byte_level, byte_of_piece
from maskwright.serving.options import RequestOptions
from maskwright.serving.requests import RequestCompiler, RequestStore, server_vocabulary
from maskwright.serving.xgrammar_base import Partial, RefusedError

_STOPS = ("</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<end_of_turn>")
"""Names of tokens that end a text, where nobody says which do."""


class VocabType(Enum):
    """How the texts of tokens are written."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo(Partial):
    """A tokenizer's tokens: xgrammar's `TokenizerInfo`.

    encoded_vocab : the text of each id, as the tokenizer writes it; "" for none.
    vocab_type : how they are written.
    vocab_size : how many logits the model gives; None for as many as texts.
    stop_token_ids : the ids that end a text; None to look for usual names, as `</s>`.
    add_prefix_space : kept, and not used.

    Raises: RefusedError if a text cannot be read, or an id that ends a text is out of range.
    """

    def __init__(
        self,
        encoded_vocab: Sequence[str] | Sequence[bytes],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: int | Sequence[int] | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        size = len(encoded_vocab) if vocab_size is None else vocab_size
        decoded = [_decoded(text, vocab_type) for text in encoded_vocab[:size]]
        if stop_token_ids is None:
            names_of_ends = {name.encode() for name in _STOPS}
            stops = [token for token, text in enumerate(decoded) if text in names_of_ends]
        else:
            stops = as_tokens("stop_token_ids", stop_token_ids)
        # a tokenizer without texts is one of bytes, none of which has an id: strings can be read
        tokens = [*decoded, *[b""] * (size - len(decoded))] if any(decoded) else [bytes([byte]) for byte in range(256)]
        for token in stops:
            if not 0 <= token < size:
                raise RefusedError(f"stop token {token} is out of range: there are {size} ids")
            tokens[token] = b""
        names = {token: (decoded[token] if token < len(decoded) else b"").decode(errors="replace") for token in stops}
        try:
            vocabulary = Vocabulary("xgrammar's tokenizer", tuple(tokens), names, tuple(stops))
        except MaskwrightError as error:
            raise RefusedError(str(error)) from error
        self._take(vocabulary, vocab_type, add_prefix_space, decoded)
        self.vocab_size = size

    def _take(self, vocabulary: Vocabulary, kind: VocabType, add_prefix_space: bool, decoded: list[bytes]) -> None:
        self.vocabulary, self.vocab_type, self.add_prefix_space = vocabulary, kind, add_prefix_space
        self.vocab_size, self.decoded_vocab = vocabulary.size, decoded
        self.stop_token_ids = list(vocabulary.eos)

    @classmethod
    def from_huggingface(
        cls, tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: int | Sequence[int] | None = None
    ) -> Self:
        """The tokens of a tokenizer of transformers, as `load_vocabulary` reads them.

        Special tokens stand for no text, where xgrammar would let their names be text.

        Raises: RefusedError as `load_vocabulary`.
        """
        try:
            vocabulary = server_vocabulary(tokenizer, vocab_size, stop_token_ids)
        except MaskwrightError as error:
            raise RefusedError(str(error)) from error
        made = cls.__new__(cls)
        named = [vocabulary.special.get(t, "").encode() or text for t, text in enumerate(vocabulary.tokens)]
        made._take(vocabulary, VocabType.RAW, False, named)
        return made

    @property
    def special_token_ids(self) -> list[int]:
        """The ids that neither stand for text nor end one."""
        return [t for t, text in enumerate(self.vocabulary.tokens) if not text and t not in self.stop_token_ids]

    @staticmethod
    def _detect_metadata_from_hf(backend_str: str) -> dict[str, Any]:
        """How a `tokenizer.json` writes its texts. TensorRT-LLM asks for it."""
        try:
            content = read_json(backend_str)
        except ValueError as error:
            raise RefusedError(f"the tokenizer is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise RefusedError(f"the tokenizer is {clip(content)}; expected an object, as in tokenizer.json")
        steps = (
            _steps(content.get("decoder")) | _steps(content.get("normalizer")) | _steps(content.get("pre_tokenizer"))
        )
        kind = VocabType.RAW
        if "ByteFallback" in steps:
            kind = VocabType.BYTE_FALLBACK
        elif "ByteLevel" in _steps(content.get("decoder")):
            kind = VocabType.BYTE_LEVEL
        return {"vocab_type": kind, "add_prefix_space": "Prepend" in steps}


def _steps(part: Any) -> set[str]:
    """The types of a part of a `tokenizer.json`, and of the parts inside."""
    if not isinstance(part, dict):
        return set()
    inside = [each for key in ("decoders", "normalizers", "pretokenizers") for each in part.get(key) or ()]
    return {str(part.get("type"))}.union(*map(_steps, inside))


def as_tokens(what: str, tokens: Any) -> list[int]:
    """The ids among them: one, or several. Raises: RefusedError for anything else."""
    try:
        return [
            index(token) for token in ([tokens] if hasattr(tokens, "__index__") and not np.ndim(tokens) else tokens)
        ]
    except TypeError as error:
        raise RefusedError(f"{what} is {clip(tokens)}; expected an id, or several") from error


def _decoded(text: str | bytes, kind: VocabType) -> bytes:
    """The bytes that a token's text is written for."""
    if kind is VocabType.RAW and isinstance(text, bytes):
        return text
    try:
        written = text.decode() if isinstance(text, bytes) else text
        written.encode()
    except UnicodeError as error:
        raise RefusedError(
            f"the token {text!r} is no UTF-8, but {kind.name} writes texts in it; pass VocabType.RAW, and tokens as bytes"
        ) from error
    if kind is VocabType.RAW:
        return written.encode()
    if kind is VocabType.BYTE_FALLBACK:
        return byte_of_piece(written) or written.replace("\u2581", " ").encode()
    found = byte_level(written)
    return found.encode() if isinstance(found, str) else found  # an added token is a str


@dataclass(frozen=True)
class Grammar(Partial):
    """A grammar that is not compiled yet: xgrammar's `Grammar`, made by its methods alone.

    method : the name of the compiler's method.
    arguments : what it gets.
    """

    method: str
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def from_ebnf(cls, ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """A grammar in xgrammar's EBNF."""
        return cls("compile_grammar", (("grammar", ebnf_string), ("root_rule_name", root_rule_name)))

    @classmethod
    def from_lark(cls, lark_string: str, *, tokenizer_info: Any = None, named_grammars: Any = None) -> Grammar:
        """A grammar in llguidance's Lark.

        tokenizer_info : not used: special tokens are those of the compiler's tokenizer.
        named_grammars : see `GrammarCompiler.compile_lark`.
        """
        return cls("compile_lark", (("lark_string", lark_string), ("named_grammars", named_grammars)))

    @classmethod
    def from_regex(cls, regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """The texts that an expression matches as a whole. There is no EBNF of it to print."""
        return cls("compile_regex", (("regex", regex_string),))

    @classmethod
    def from_json_schema(cls, schema: Any, *, print_converted_ebnf: bool = False, **options: Any) -> Grammar:
        """The instances of a JSON schema. There is no EBNF of it to print.

        options : those of `GrammarCompiler.compile_json_schema`.
        """
        for name in options.keys() - signature(GrammarCompiler.compile_json_schema).parameters.keys():
            raise TypeError(f"Grammar.from_json_schema() got an unexpected keyword argument {name!r}")
        return cls("compile_json_schema", (("schema", schema), *options.items()))

    @classmethod
    def from_structural_tag(cls, structural_tag: Any = None, triggers: Any = None, *, tags: Any = None) -> Grammar:
        """The texts of a structural tag. See `GrammarCompiler.compile_structural_tag`."""
        given = (("structural_tag", structural_tag), ("triggers", triggers), ("tags", tags))
        return cls("compile_structural_tag", given)

    @classmethod
    def builtin_json_grammar(cls) -> Grammar:
        """Any JSON value."""
        return cls("compile_builtin_json_grammar", ())


def _whitespace(is_any: bool, indent: int | None, separators: Sequence[str] | None, most: int | None) -> str | int:
    """The white space that xgrammar's arguments ask for. Raises: RefusedError for others."""
    pair = None if separators is None else tuple(separators)
    if is_any:
        if pair in (None, (",", ":")):
            return "any" if most is None else most
        expected = '(",", ":"), or any_whitespace=False'
    elif indent is None:
        if pair in (None, (", ", ": "), (",", ":")):
            return "compact" if pair == (",", ":") else "json.dumps"
        expected = '(", ", ": ") or (",", ":")'
    else:
        if not isinstance(indent, int) or not 0 <= indent <= WIDEST_INDENT:
            raise RefusedError(f"indent is {clip(indent)}; expected 0 to {WIDEST_INDENT} blanks")
        if pair in (None, (",", ": ")):
            return f"indent{int(indent)}"
        expected = '(",", ": ") beside an indent'
    raise RefusedError(f"separators are {clip(separators)}, which cannot be enforced; expected none, {expected}")


class CompiledGrammar(Partial):
    """A store, as xgrammar's `CompiledGrammar`.

    store, tokenizer_info : the store, and what it was compiled for.
    """

    def __init__(self, store: RequestStore, tokenizer_info: TokenizerInfo) -> None:
        self.store, self.tokenizer_info = store, tokenizer_info

    @property
    def memory_size_bytes(self) -> int:
        """About how many bytes the store holds."""
        return self.store.n_bytes


class GrammarCompiler(Partial):
    """Compiles constraints for one tokenizer: xgrammar's `GrammarCompiler`.

    tokenizer_info : the tokenizer's.
    max_threads : no meaning here.
    cache_enabled : whether what was compiled is kept.
    cache_limit_bytes : about how many bytes are kept, but the last one in any case; -1 for 2 GB.

    Each method raises RefusedError for a constraint that cannot be kept exactly.
    """

    def __init__(
        self,
        tokenizer_info: TokenizerInfo,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        if not isinstance(tokenizer_info, TokenizerInfo):
            raise RefusedError("GrammarCompiler needs a TokenizerInfo; make one of the tokenizer")
        self._info, self._limit = tokenizer_info, cache_limit_bytes
        self._is_cached = cache_enabled
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget what was compiled."""
        self._compiler = RequestCompiler(
            self._info.vocabulary,
            cache_entries=256 if self._is_cached else 1,
            cache_bytes=self._limit if self._limit > 0 else 2 << 30,
        )

    def get_cache_size_bytes(self) -> int:
        """About how many bytes of what was compiled are kept."""
        return self._compiler.n_bytes if self._is_cached else 0

    @property
    def cache_limit_bytes(self) -> int:
        """How many bytes are kept; -1 where nobody said."""
        return self._limit

    def compile_json_schema(
        self,
        schema: Any,
        *,
        any_whitespace: bool = True,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        strict_mode: bool = True,
        max_whitespace_cnt: int | None = None,
        any_order: bool = False,
    ) -> CompiledGrammar:
        """The instances of a JSON schema.

        schema : JSON text, a dict, or a pydantic model.
        any_whitespace : False for JSON as Python's `json.dumps` writes it with `indent` and
            `separators`. With True an indent says nothing, as in xgrammar.
        separators : (",", ":"), or those that `json.dumps` has by default; others are refused.
        strict_mode : objects with `properties` have no others, unless the schema says so.
        max_whitespace_cnt : how much white space may come in a row where any may.
        any_order : whether members come in any order, not in the schema's. Required ones must come.
        """
        whitespace = _whitespace(any_whitespace, indent, separators, max_whitespace_cnt)
        if hasattr(schema, "model_json_schema"):
            schema = schema.model_json_schema()
        text = _as_json("schema", schema)
        order: KeyOrder = "any" if any_order else "schema"
        return self._request("json", text, RequestOptions(whitespace, not strict_mode, order))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Any JSON value."""
        return self._request("json", "true")

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """The texts that an expression matches as a whole."""
        return self._request("regex", regex)

    def compile_structural_tag(
        self, structural_tag: Any = None, triggers: Sequence[str] | None = None, *, tags: Any = None
    ) -> CompiledGrammar:
        """The texts of a structural tag: JSON text, a dict, or an object of xgrammar.

        triggers : with these the first argument, or `tags`, is a list of `StructuralTagItem`.
        """
        return self._request("structural_tag", _tag_text(structural_tag, triggers, tags))

    def compile_lark(self, lark_string: str, *, named_grammars: Any = None) -> CompiledGrammar:
        """A grammar in llguidance's Lark. `named_grammars` are refused."""
        if named_grammars:
            raise RefusedError("named grammars cannot be used; write their rules into the grammar")
        return self._request("grammar", lark_string, language="llguidance")

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """A grammar in xgrammar's EBNF, or a `Grammar`."""
        if isinstance(grammar, Grammar):
            return getattr(self, grammar.method)(**dict(grammar.arguments))  # type: ignore[no-any-return]
        if not isinstance(grammar, str):
            raise RefusedError(f"the grammar is of type {type(grammar).__name__}; expected a str or a Grammar")
        return self._request("grammar", grammar, language="ebnf", root=root_rule_name)

    def _request(self, kind: str, text: str, options: RequestOptions | None = None, **read: Any) -> CompiledGrammar:
        try:
            store = self._compiler.compile(kind, text, options, **read)
        except MaskwrightError as error:
            raise RefusedError(str(error)) from error
        return CompiledGrammar(store, self._info)


class StructuralTagItem:
    """A tag of xgrammar's older form: xgrammar's `StructuralTagItem`.

    begin, end : the texts around.
    schema : of the JSON between them: JSON text, a dict, or a pydantic model. It is kept as
        `schema_`.

    Raises: RefusedError for a begin or an end that is no str.
    """

    def __init__(self, *, begin: str, schema: Any, end: str) -> None:
        for name, value in (("begin", begin), ("end", end)):
            if not isinstance(value, str):
                raise RefusedError(f"the {name} of a tag is {a_type(value)}; expected a str")
        self.begin, self.schema_, self.end = begin, schema, end

    def __repr__(self) -> str:
        return f"StructuralTagItem(begin={self.begin!r}, schema={self.schema_!r}, end={self.end!r})"


def _tag_text(structural_tag: Any, triggers: Any, tags: Any) -> str:
    """The JSON text of a structural tag.

    structural_tag : JSON text, a dict, or an object of xgrammar; or, with triggers, a list of
        `StructuralTagItem`, which may also be `tags`.

    Raises: RefusedError for other arguments.
    """
    if (structural_tag is None) == (tags is None):
        raise RefusedError("expected a structural tag, or tags and triggers")
    items = structural_tag if tags is None else tags
    if tags is not None or triggers is not None or isinstance(items, list | tuple):
        return _as_json("structural tag", _of_items(items, triggers))
    if hasattr(items, "model_dump_json"):
        items = items.model_dump_json()
    return _as_json("structural tag", items)


def _of_items(items: Any, triggers: Any) -> dict[str, Any]:
    """The newer form of tags with triggers."""
    for name, value, expected in (("tags", items, "StructuralTagItem"), ("triggers", triggers, "str")):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise RefusedError(f"the {name} of a structural tag are {a_type(value)}; expected a list of {expected}")
    found = []
    for item in items:
        if not all(hasattr(item, name) for name in ("begin", "schema_", "end")):
            raise RefusedError(f"a tag is {a_type(item)}; expected StructuralTagItem(begin=..., schema=..., end=...)")
        content = {"type": "json_schema", "json_schema": _schema_values(item.schema_)}
        found.append({"type": "tag", "begin": item.begin, "content": content, "end": item.end})
    form = {"type": "triggered_tags", "triggers": list(triggers), "tags": found}
    return {"type": "structural_tag", "format": form}


def _schema_values(schema: Any) -> Any:
    """A schema as values of JSON, of its text, of a pydantic model, or of values."""
    if hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    if not isinstance(schema, str):
        return schema
    try:
        return read_json(schema)
    except ValueError as error:
        raise RefusedError(f"the schema of a tag is not JSON: {error}") from error


def _as_json(what: str, value: Any) -> str:
    """JSON text, of text or of Python values. Raises: RefusedError for what is neither."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except (TypeError, ValueError) as error:
        raise RefusedError(f"the {what} cannot be written as JSON: {error}") from error
