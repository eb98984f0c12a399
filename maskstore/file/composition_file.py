"""Store files of kind "composition": what was composed, and the tables of its grammars.

A language stands in the file once, whatever number of places it has. Schemas and patterns are built
again when the file is read (`schema_file`), as is all that follows from languages and vocabulary.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.analysis.arguments import clip, printable
from maskwright.analysis.composition.compose import DEEPEST, Composition, InJsonString, Part, composed, in_json_string
from maskwright.analysis.composition.tag_rules import TagRules, bodies_of, checked_tag_rules
from maskwright.analysis.composition.token_parts import (
    MOST_TOKENS,
    AtMostTokens,
    SpecialToken,
    TokenSet,
    special_token,
    token_set,
)
from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.marks import MARK, MOST_PARTS, mark
from maskwright.analysis.schema.text_patterns import Regex
from maskwright.maskstore.composition.json_strings import json_string_tokens
from maskwright.maskstore.composition.splits import host_vocabulary, marked_vocabulary
from maskwright.maskstore.composition.tables import ComposedTables, JsonStringPart, TextPart
from maskwright.maskstore.damaged import reason, refuse
from maskwright.maskstore.file import automaton_file, schema_file
from maskwright.maskstore.file.fileheader import (
    AUTOMATON,
    COMPOSITION,
    SCHEMA,
    TABLE,
    TAG,
    Content,
    Header,
    read_own_grammar,
    with_printable_names,
)
from maskwright.maskstore.table.compiled import EngineTable
from maskwright.maskstore.table.write import used_tokens
from maskwright.maskstore.vocabulary import Vocabulary

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class ComposedContent:
    """What a file of a composition holds.

    tables : for each grammar of a part, by its digest and that of its vocabulary.
    hosts : for each composition whose host is a grammar, by its `id`: the host's table, and of each
        of its tokens the id in the marked vocabulary.
    """

    file_kind = COMPOSITION
    """What the file says that it is of (`maskstore.file`)."""

    composition: Composition
    vocabulary: Vocabulary
    tables: Mapping[tuple[str, str], EngineTable]
    hosts: Mapping[int, tuple[EngineTable, npt.NDArray[np.int32]]]


# -- writing


def written(store: ComposedTables) -> tuple[dict[str, Any], dict[str, Array]]:
    """The store's own members of the JSON, and its tensors.

    Raises: StoreError for a schema of values that JSON does not have.
    """
    languages: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    numbers: dict[int, int] = {}

    def number_of(one: Any) -> int:
        """The number of the language of a store, which stands in the file from now on."""
        if id(one) not in numbers:
            if one.file_kind == COMPOSITION:
                facts, own = _of_composition(one, number_of)
            elif one.file_kind == TAG:
                # an item is a rule's number, or the bytes of a literal
                bodies = [
                    [[each if isinstance(each, int) else each.hex() for each in body] for body in some]
                    for some in bodies_of(one.rules)
                ]
                facts, own = {"kind": TAG, "name": one.name, "rules": bodies}, {}
            else:
                facts, own = automaton_file.written(one) if one.file_kind == AUTOMATON else schema_file.written(one)
            numbers[id(one)] = len(languages)
            arrays.update({f"{len(languages)}.{name}": array for name, array in own.items()})
            languages.append(facts)
        return numbers[id(one)]

    number_of(store)
    return {"kind": COMPOSITION, "languages": languages}, arrays


def _of_composition(store: ComposedTables, number_of: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """number_of : from the store of a language its number."""
    parts: list[dict[str, Any]] = []
    for part, built in zip(store.composition.parts, store.parts, strict=True):
        facts: dict[str, Any] = {"name": part.name}
        match part.inner:
            case SpecialToken(token):
                facts |= {"kind": "special token", "tokens": [token]}
            case TokenSet(tokens, is_excluding):
                facts |= {"kind": "token set", "tokens": list(tokens), "is_excluding": is_excluding, "most": -1}
            case AtMostTokens(TokenSet(tokens, is_excluding), most):
                facts |= {"kind": "token set", "tokens": list(tokens), "is_excluding": is_excluding, "most": most}
            case InJsonString():
                assert isinstance(built, JsonStringPart)
                facts |= {"kind": "json string", "language": number_of(built.store)}
            case _:
                assert isinstance(built, TextPart)
                facts |= {"kind": "text", "language": number_of(built.store), "most": built.most}
        parts.append(facts)
    facts = {"kind": COMPOSITION, "name": store.composition.name, "host": number_of(store.host), "parts": parts}
    return facts, {"host_ids": np.zeros(0, np.int32) if store.host_ids is None else store.host_ids}


# -- reading


def read(file: Content) -> ComposedContent:
    """What is in a file. Raises: StoreError if it is not what maskwright writes, or no safe one."""
    reader = _Reader(file)
    last = len(file.header.facts["languages"]) - 1
    try:
        found = reader.composition(last, file.vocabulary, 1)
    except StoreError:
        raise
    except MaskwrightError as error:
        raise refuse(file.where, f"its composition is not read: {reason(error)}") from error
    return ComposedContent(found, file.vocabulary, reader.tables, reader.hosts)


class _Reader:
    """Reads the languages of a file. tables, hosts : as of `ComposedContent`."""

    def __init__(self, file: Content) -> None:
        self._file = file
        self._languages: list[dict[str, Any]] = file.header.facts["languages"]
        self.tables: dict[tuple[str, str], EngineTable] = {}
        self.hosts: dict[int, tuple[EngineTable, npt.NDArray[np.int32]]] = {}
        self._arrays: defaultdict[str, dict[str, Array]] = defaultdict(dict)
        for name, array in file.arrays.items():
            number, _, own = name.partition(".")
            self._arrays[number][own] = array
        self._known: dict[tuple[int, str], Any] = {}

    def composition(self, number: int, vocabulary: Vocabulary, depth: int) -> Composition:
        """The composition of a number. depth : how many are around it, and it."""
        facts = self._languages[number]
        if depth > DEEPEST or len(facts["parts"]) > MOST_PARTS:
            raise refuse(self._file.where, f"languages[{number}] has too many parts, or stands too deep")
        host, kind = facts["host"], self._languages[facts["host"]]["kind"]
        named = str if kind == SCHEMA else printable  # in a schema by its place, whatever characters that has
        parts = tuple(Part(named(part["name"]), self._part(part, vocabulary, depth)) for part in facts["parts"])
        name, ids = printable(facts["name"]), self._file.arrays[f"{number}.host_ids"]
        if kind == AUTOMATON:
            table = self._host(host, ids, vocabulary, len(parts))
            found = composed(name, table.grammar, parts)
            self.hosts[id(found)] = table, ids
            return found
        if kind not in (SCHEMA, TAG) or len(ids):
            raise refuse(self._file.where, f"languages[{number}] has a {kind} with {len(ids)} host_ids as its host")
        if kind == TAG:
            return composed(name, self._tag(self._languages[host], len(parts)), parts)
        return composed(name, self._language(host, vocabulary, depth), parts)

    def _host(self, number: int, ids: npt.NDArray[np.int32], vocabulary: Vocabulary, n_parts: int) -> EngineTable:
        """The table of a composition's host. ids : its `host_ids`."""
        marked = marked_vocabulary(vocabulary)
        is_ascending = len(ids) and ids[0] >= 0 and ids[-1] < marked.size and bool((ids[1:] > ids[:-1]).all())
        if not is_ascending or not np.isin(marked.eos, ids).all():
            raise refuse(self._file.where, f"the host_ids are {clip(ids.tolist())}, expected ids of marked tokens")
        found = self._table(number, host_vocabulary(marked, ids))
        if (ids[used_tokens(found.table)] >= marked.size - MOST_PARTS + n_parts).any():
            raise refuse(self._file.where, f"languages[{number}] has marks of more than its {n_parts} parts")
        return found

    def _tag(self, facts: Mapping[str, Any], n_parts: int) -> TagRules:
        def item(one: object) -> bytes | int:
            if type(one) is int:
                return one
            data = bytes.fromhex(one) if isinstance(one, str) else b""
            places = [at for at, byte in enumerate(data) if byte >= MARK]
            if not data or any(data[at : at + 3] not in marks for at in places):
                raise refuse(self._file.where, f"a body of its rules has {clip(one)}, which is no literal")
            return data

        marks = set(map(mark, range(n_parts)))
        try:
            bodies = [[[item(one) for one in body] for body in some] for some in facts["rules"]]
        except (TypeError, ValueError) as error:
            raise refuse(self._file.where, f"its rules are not read: {reason(error)}") from error
        return checked_tag_rules(printable(facts["name"]), bodies)

    def _table(self, number: int, vocabulary: Vocabulary) -> EngineTable:
        facts, where = self._languages[number], self._file.where
        own, table = read_own_grammar(where, facts), self._file.arrays[f"{number}.{TABLE}"]
        header = Header("", facts, own, {}, {})
        content = Content(where, header, {}, table, vocabulary, vocabulary, with_printable_names(own))
        return automaton_file.read(content)

    def _language(self, number: int, vocabulary: Vocabulary, depth: int) -> Any:
        """The language of a part, or a host's schema. vocabulary : that of its store."""
        key = number, vocabulary.digest
        if key not in self._known:
            facts = self._languages[number]
            if facts["kind"] == COMPOSITION:
                self._known[key] = self.composition(number, vocabulary, depth + 1)
            elif facts["kind"] == TAG:
                raise refuse(self._file.where, f"languages[{number}] is a tag's host, not a part")
            elif facts["kind"] == AUTOMATON:
                table = self._table(number, vocabulary)
                self.tables[table.grammar.digest, vocabulary.digest] = table
                self._known[key] = table.grammar
            else:
                self._known[key] = schema_file.constraint_of(self._file.where, facts, self._arrays[str(number)])
        return self._known[key]

    def _part(self, facts: Mapping[str, Any], vocabulary: Vocabulary, depth: int) -> Any:
        inner: Any
        match facts["kind"]:
            case "special token":
                inner = special_token(facts["tokens"][0] if len(facts["tokens"]) == 1 else "")
            case "token set":
                inner = token_set(facts["tokens"], is_excluding=facts["is_excluding"])
            case "json string":
                tokens = json_string_tokens(vocabulary).vocabulary
                inner = in_json_string(self._language(facts["language"], tokens, depth))
            case _:
                inner = self._language(facts["language"], vocabulary, depth)
        most = facts.get("most", -1)
        if most != -1 and not (isinstance(inner, Regex | TokenSet) and 0 < most <= MOST_TOKENS):
            raise refuse(self._file.where, f"part {clip(facts['name'])} takes at most {most} tokens, which cannot be")
        return inner if most < 0 else AtMostTokens(inner, most)


def info(where: str, header: Header, table: Array | None) -> dict[str, Any]:
    """What a file says about its languages, ready for JSON."""
    languages, parts = header.facts["languages"], []
    for part in (last := languages[-1])["parts"]:
        of = languages[part["language"]] if part["kind"] == "text" else part
        parts.append({"name": printable(part["name"]), "kind": of["kind"]})
    kinds = sorted(Counter(one["kind"] for one in languages).items())
    return {"composition": {"name": printable(last["name"]), "parts": parts, "languages": dict(kinds)}}
