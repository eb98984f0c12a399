"""What a store file holds before its arrays: facts in JSON; the tensors' names, dtypes and shapes.

In: a file that safetensors has opened. Out: a `Header`, checked as far as is possible without the
arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip, printable
from maskwright.analysis.errors import GrammarError, StoreError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.nesting import on_own_stack, read_json
from maskwright.maskstore.damaged import reason, refuse
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import n_words

FORMAT = "maskwright mask store"
FORMAT_VERSION = 3
METADATA_KEY = "maskwright"

ENTRIES, AUTOMATON = "entries", "automaton"
"""The kinds of stores of grammars: of an `EntryTable` and of an `EngineTable`."""
SCHEMA, PATTERN = "schema", "pattern"
"""The kinds of stores without a grammar (`schema_file`)."""
COMPOSITION = "composition"
"""The kind of a store of several languages (`composition_file`)."""
TAG = "tag"
"""The kind of the host of a structural tag, within a composition."""

_ALWAYS: Mapping[str, Any] = {
    "format": str,
    "version": int,
    "kind": str,
    "sha256": str,
    "vocabulary": {"name": str, "sha256": str, "size": int},
}
_COMMON: Mapping[str, Any] = {
    **_ALWAYS,
    "grammar": dict,  # its own shape is for `Grammar.from_dict` to check
    "grammar_sha256": str,
    "lexing": str,
}

#: Kind -> the members of the JSON, in the notation of `misfit`.
FACTS: Mapping[str, Mapping[str, Any]] = {
    ENTRIES: {
        **_COMMON,
        "rules": str,
        "codes": {"n_terminals": int, "n_moves": int},
        "steps": [[str, int]],
    },
    AUTOMATON: {**_COMMON, "counts": [[str, int]], "table_checksum": str},
    SCHEMA: {
        **_ALWAYS,
        "name": str,
        "schema": str,
        "documents": str,
        "whitespace": str,
        "key_order": str,
        "escapes": str,
        "lenient": bool,
        "narrowing": [{"node": int, "kinds": [str], "excluded": [str], "is_tight": bool, "sha256": str}],
    },
    PATTERN: {**_ALWAYS, "name": str},
    COMPOSITION: {**_ALWAYS, "languages": [dict]},
}

PARTS: Mapping[str, Mapping[str, Any]] = {
    "text": {"name": str, "kind": str, "language": int, "most": int},
    "json string": {"name": str, "kind": str, "language": int},
    "special token": {"name": str, "kind": str, "tokens": list},
    "token set": {"name": str, "kind": str, "tokens": list, "is_excluding": bool, "most": int},
}
"""Kind of a part -> the members of its JSON. A language is told by its number."""

#: Kind of a language of a composition -> the members of its JSON.
LANGUAGES: Mapping[str, Mapping[str, Any]] = {
    **{
        kind: {"kind": str} | {key: shape for key, shape in FACTS[kind].items() if key not in _ALWAYS}
        for kind in (AUTOMATON, SCHEMA, PATTERN)
    },
    COMPOSITION: {"kind": str, "name": str, "host": int, "parts": [dict]},
    TAG: {"kind": str, "name": str, "rules": [list]},
}

TensorShapes = Mapping[str, tuple[type[np.generic], tuple[str, ...]]]
"""Tensor -> its dtype in memory, and for each dimension a word for what it counts.

Dimensions with the same word have the same length. `x+1` is one more than `x`.
"""

_VOCABULARY: TensorShapes = {
    "vocabulary.byte_pieces": (np.int32, ("byte pieces",)),
    "vocabulary.eos": (np.int32, ("eos",)),
    "vocabulary.special_bytes": (np.uint8, ("special bytes",)),
    "vocabulary.special_ids": (np.int32, ("special",)),
    "vocabulary.special_offsets": (np.int64, ("special+1",)),
    "vocabulary.token_bytes": (np.uint8, ("token bytes",)),
    "vocabulary.token_offsets": (np.int64, ("tokens+1",)),
}

#: The tensors of a store of kind "entries".
TENSORS: TensorShapes = {
    "cell_of_last": (np.int32, ("dependent", "terminals+1")),
    "cell_of_state": (np.int32, ("states+1",)),
    "cell_start": (np.int64, ("cells+1",)),
    "counts": (np.int32, ("steps", "resting")),
    "dependent": (np.int32, ("dependent",)),
    "entry_mask": (np.int32, ("entries",)),
    "entry_sequence": (np.int32, ("entries",)),
    "masks.dense": (np.uint32, ("dense", "words")),
    "masks.sparse_ids": (np.int32, ("ids",)),
    "masks.sparse_start": (np.int64, ("sparse+1",)),
    "nfa.initial": (np.int32, ("terminals",)),
    "nfa.is_accepting": (np.bool_, ("states",)),
    "nfa.is_resting": (np.bool_, ("states",)),
    "nfa.next_state": (np.int32, ("states", "256")),
    "nfa.terminal": (np.int32, ("states",)),
    "sequence_start": (np.int32, ("sequences+1",)),
    "sequence_symbols": (np.int32, ("symbols",)),
    **_VOCABULARY,
}

TABLE = "table"
"""The tensor of an engine's table.

It is mapped, not read, so its values are as wide on disk as in memory.
"""

_TENSORS: Mapping[str, TensorShapes] = {
    ENTRIES: TENSORS,
    AUTOMATON: {TABLE: (np.int32, ("integers",)), **_VOCABULARY},
    SCHEMA: _VOCABULARY,
    PATTERN: {
        "automaton.is_accepting": (np.bool_, ("states",)),
        "automaton.next_state": (np.int32, ("states", "256")),
        **_VOCABULARY,
    },
    COMPOSITION: _VOCABULARY,
}

_OF_LANGUAGES: Mapping[str, TensorShapes] = {
    **{
        kind: {name: shape for name, shape in _TENSORS[kind].items() if name not in _VOCABULARY}
        for kind in (AUTOMATON, SCHEMA, PATTERN)
    },
    COMPOSITION: {"host_ids": (np.int32, ("host ids",))},
    TAG: {},
}

_DTYPES = {f"{kind.upper()}{8 * size}": np.dtype(f"<{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)}

TensorHeads = Mapping[str, tuple[str, tuple[int, ...]]]
"""Tensor -> the code of its dtype on disk, as safetensors spells it, and its shape."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a store file holds before its arrays.

    text : the JSON as it stands in the file.
    facts : the same, parsed.
    own_grammar : the grammar in it; None in a store without one.
    tensors : the dtype and shape of each tensor on disk.
    sizes : word of `TensorShapes` -> its length.
    """

    text: str
    facts: Mapping[str, Any]
    own_grammar: Grammar | None
    tensors: TensorHeads
    sizes: Mapping[str, int]

    @property
    def grammar(self) -> Grammar:
        """The grammar of a store that has one."""
        assert self.own_grammar is not None  # whoever asks has looked at the kind
        return self.own_grammar


class Content(NamedTuple):
    """What a store file holds, whole and undamaged, but not checked for its kind.

    where : the file, for messages.
    arrays : the tensors in the dtypes of memory, read-only, but for `table`.
    table : the engine's table; None where there is none.
    own_vocabulary : the vocabulary in the file, by which its values are checked.
    vocabulary, grammar : those that the store is to hold: what the caller gave, or the file's.
        None where there is no grammar.
    """

    where: str
    header: Header
    arrays: Mapping[str, npt.NDArray[Any]]
    table: npt.NDArray[np.int32] | None
    own_vocabulary: Vocabulary
    vocabulary: Vocabulary
    grammar: Grammar | None


def members(arrays: Mapping[str, npt.NDArray[Any]], group: str) -> dict[str, Any]:
    """The arrays of one group, by their names without the group."""
    return {name.removeprefix(f"{group}."): array for name, array in arrays.items() if name.startswith(f"{group}.")}


def grammar_facts(grammar: Grammar) -> dict[str, Any]:
    """The members of the JSON that say which grammar a store is of."""
    return {"grammar": grammar.to_dict(), "grammar_sha256": grammar.digest, "lexing": grammar.lexing}


def read_header(where: str, file: Any) -> Header:
    """The header of an open safetensors file.

    where : the file, for messages.
    file : what `safetensors.safe_open` gives.

    Raises: StoreError if it breaks the format of `fileformat`.
    Cost: O(size of the header).
    """
    metadata = file.metadata() or {}
    facts = read_facts(where, metadata)
    grammar = read_own_grammar(where, facts) if "grammar" in facts else None
    n_tokens = facts["vocabulary"]["size"]
    known = {"tokens": n_tokens, "words": n_words(n_tokens)}
    if grammar is not None:
        known["terminals"] = grammar.n_terminals
    if facts["kind"] == ENTRIES and grammar is not None:
        _check_entries_facts(where, facts, grammar)
        known["steps"] = len(facts["steps"])
    elif facts["kind"] == AUTOMATON:
        _check_counts(where, facts)
    elif facts["kind"] == COMPOSITION:
        _check_languages(where, facts["languages"])
    expected = tensors_of(facts)
    found = set(file.keys())
    if found != expected.keys():
        missing, unknown = sorted(expected.keys() - found), sorted(found - expected.keys())
        raise refuse(where, f"these tensors are missing: {clip(missing)}; and these were not expected: {clip(unknown)}")
    slices = {name: file.get_slice(name) for name in expected}
    tensors = {name: (str(view.get_dtype()), tuple(view.get_shape())) for name, view in slices.items()}
    sizes = _sizes(where, expected, tensors, known)
    if TABLE in tensors and tensors[TABLE][0] != "I32":
        raise refuse(where, f"tensor {TABLE} has dtype {tensors[TABLE][0]}, expected I32")
    return Header(metadata[METADATA_KEY], facts, grammar, tensors, sizes)


def tensors_of(facts: Mapping[str, Any]) -> TensorShapes:
    """The tensors of a store. facts : the members of its JSON.

    Those of a composition's languages have their number before their names.
    """
    found = dict(_TENSORS[facts["kind"]])
    for number, language in enumerate(facts.get("languages", ())):
        for name, (dtype, words) in _OF_LANGUAGES[language["kind"]].items():
            own = tuple(word if word.isdigit() else f"{number} {word}" for word in words)
            found[f"{number}.{name}"] = dtype, own
    return found


def _check_counts(where: str, facts: Mapping[str, Any]) -> None:
    counts = dict(facts["counts"])
    if len(counts) < len(facts["counts"]) or min(counts.values(), default=0) < 0:
        raise refuse(where, f"the counts are {clip(facts['counts'])}, expected no name twice and no count below 0")


def _check_languages(where: str, languages: list[Any]) -> None:
    for number, facts in enumerate(languages):
        at = f"languages[{number}]"
        _need_shape(where, facts, LANGUAGES, at)
        if facts["kind"] == AUTOMATON:
            _check_counts(where, facts)
        named = []
        if facts["kind"] == COMPOSITION:
            for k, part in enumerate(facts["parts"]):
                _need_shape(where, part, PARTS, f"{at}.parts[{k}]")
            named = [facts["host"], *(part["language"] for part in facts["parts"] if "language" in part)]
        for language in named:
            if not 0 <= language < number:  # so none is inside itself
                raise refuse(where, f"{at} names language {language}, expected one before it")
    if not languages or languages[-1]["kind"] != COMPOSITION:
        raise refuse(where, f"the last of its {len(languages)} languages is no composition")


def _need_shape(where: str, facts: Mapping[str, Any], shapes: Mapping[str, Any], at: str) -> None:
    """Check that facts have the shape of their kind."""
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in shapes:
        raise refuse(where, f"{at}.kind is {clip(kind)}, expected one of {', '.join(shapes)}")
    if wrong := misfit(facts, shapes[kind], at):
        raise refuse(where, wrong)


def _check_entries_facts(where: str, facts: Mapping[str, Any], grammar: Grammar) -> None:
    if facts["rules"] not in ("lark", "normalised"):
        raise refuse(where, f"rules is {clip(facts['rules'])}, expected 'lark' or 'normalised'")
    if facts["codes"]["n_terminals"] != grammar.n_terminals:
        found = clip(facts["codes"]["n_terminals"])
        raise refuse(
            where, f"codes.n_terminals is {found}, expected {grammar.n_terminals}, that of the grammar in the file"
        )
    steps = [step for step, _ in facts["steps"]]
    if steps[:1] != ["original"] or len(set(steps)) != len(steps):
        raise refuse(where, f"the steps are {clip(steps)}, expected 'original' first and no step twice")


def read_facts(where: str, metadata: Mapping[str, str]) -> Mapping[str, Any]:
    """The JSON in a safetensors file's metadata, whose members have the shape of `FACTS`.

    where : the file, for messages.
    metadata : of the safetensors file.

    Raises: StoreError if the metadata is not that of a mask store, is not canonical JSON, or has
    another format, version, kind or shape.
    """
    if list(metadata) != [METADATA_KEY]:
        raise StoreError(
            f"{where} is a safetensors file, but not a mask store: its metadata has the keys {clip(sorted(metadata))}, "
            f"expected {[METADATA_KEY]}; make a store with `maskwright export`"
        )
    text = metadata[METADATA_KEY]
    try:
        facts = read_json(text)
        is_canonical = on_own_stack(canonical)(facts) == text
    except ValueError as error:
        raise refuse(where, f"its metadata is not JSON that can be read ({reason(error)})") from None
    if not is_canonical:
        raise refuse(where, "its metadata is JSON, but not in the form that maskwright writes")
    form = facts.get("format") if isinstance(facts, dict) else None
    if form != FORMAT:
        raise StoreError(
            f"{where}: its metadata has the format {clip(form)}, expected {FORMAT!r}; "
            "make a store with `maskwright export`"
        )
    version = facts.get("version")
    if type(version) is int and version != FORMAT_VERSION:
        by = (
            "a newer maskwright wrote it: update maskwright, or"
            if version > FORMAT_VERSION
            else "an older maskwright wrote it:"
        )
        raise StoreError(
            f"{where}: expected version {FORMAT_VERSION} but found version {clip(version)}: {by} export the store again"
        )
    kind = facts.get("kind", ENTRIES)
    if not isinstance(kind, str) or kind not in FACTS:
        raise refuse(where, f"its kind is {clip(kind)}, expected one of {', '.join(FACTS)}")
    wrong = misfit(facts, FACTS[kind], "metadata")
    if wrong is not None:
        raise refuse(where, wrong)
    return dict(facts)


def misfit(value: object, shape: Any, at: str) -> str | None:
    """Where a JSON value first differs from a shape, and how; None if it fits.

    value : the JSON value.
    shape : a type (bool is not int), a list of one shape (any number of values of that shape), a
        longer list (exactly these), or a mapping (exactly these members).
    at : what to call the value.

    >>> misfit({"a": [1, 2.0]}, {"a": [int]}, "x")
    'x.a[1] is 2.0, expected int'
    """
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return f"{at} is {clip(value)}, expected an object"
        if value.keys() != shape.keys():
            lacking, extra = sorted(shape.keys() - value.keys()), sorted(value.keys() - shape.keys())
            return f"{at} lacks the members {lacking} and has {clip(extra)}, which were not expected"
        parts = [(value[key], shape[key], f"{at}.{key}") for key in shape]
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return f"{at} is {clip(value)}, expected a list"
        if len(shape) > 1 and len(value) != len(shape):
            return f"{at} is {clip(value)}, expected a list of {len(shape)}"
        shapes = shape if len(shape) > 1 else shape * len(value)
        parts = [(one, s, f"{at}[{i}]") for i, (one, s) in enumerate(zip(value, shapes, strict=True))]
    else:
        return None if type(value) is shape else f"{at} is {clip(value)}, expected {shape.__name__}"
    return next((wrong for part in parts if (wrong := misfit(*part)) is not None), None)


def canonical(value: object) -> str:
    """JSON in which each value has one spelling only: keys sorted, ASCII, no blanks.

    Raises: ValueError for NaN and infinities.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def with_printable_names(grammar: Grammar) -> Grammar:
    """The grammar, with escapes in its names for what no screen should get: messages show them."""
    terminals = tuple(replace(terminal, name=printable(terminal.name)) for terminal in grammar.terminals)
    named = replace(
        grammar,
        name=printable(grammar.name),
        terminals=terminals,
        nonterminals=tuple(map(printable, grammar.nonterminals)),
    )
    return grammar if named == grammar else named


def read_own_grammar(where: str, facts: Mapping[str, Any]) -> Grammar:
    """The grammar that facts have. Raises: StoreError if it is not what maskwright writes."""
    try:
        grammar = Grammar.from_dict(facts["grammar"])
    except GrammarError as error:
        raise refuse(where, reason(error)) from error
    if grammar.to_dict() != facts["grammar"]:
        raise refuse(where, "its grammar is not in the form that maskwright writes")
    if (grammar.lexing == "nfa") != (facts["kind"] == ENTRIES):
        expected = "'nfa'" if facts["kind"] == ENTRIES else "'longest' or 'contextual'"
        raise refuse(where, f"the grammar's lexing is {clip(grammar.lexing)}, expected {expected}")
    for name, found, own in (
        ("grammar_sha256", facts["grammar_sha256"], grammar.digest),
        ("lexing", facts["lexing"], grammar.lexing),
    ):
        if found != own:
            raise refuse(where, f"{name} is {clip(found)}, expected {clip(own)}, that of the grammar in the file")
    return grammar


def _sizes(where: str, shapes: TensorShapes, tensors: TensorHeads, known: Mapping[str, int]) -> dict[str, int]:
    """The length of each word in `shapes`. Raises StoreError for a wrong dtype, rank or length."""
    sizes = dict(known)
    for name, (dtype, words) in shapes.items():
        code, shape = tensors[name]
        wide = np.dtype(np.uint8 if dtype is np.bool_ else dtype)
        if code not in _DTYPES or not np.can_cast(_DTYPES[code], wide, "safe"):
            raise refuse(where, f"tensor {name} has dtype {code}, expected one that widens to {wide}")
        expected = []
        for word, length in zip(words, (*shape, *[0] * len(words)), strict=False):
            counted, _, more = word.partition("+")
            extra = int(more or 0)
            size = int(counted) if counted.isdigit() else sizes.setdefault(counted, max(length - extra, 0))
            expected.append(size + extra)
        if list(shape) != expected:
            meant = " x ".join(words)
            raise refuse(where, f"tensor {name} has shape {clip(list(shape))}, expected {expected} ({meant})")
    return sizes
