"""Arguments as XML elements: the texts in which models write the members of an object.

A style says how an argument is written: ``<parameter=city>Rome</parameter>``. Which arguments there
are says the graph of the schema. Strings are raw, up to the closing tag; other values are JSON, or,
in styles that nest, elements again.

Source: xgrammar 0.2.8, its grammars for each style.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from maskwright.analysis.arguments import clip
from maskwright.analysis.composition.structural_tags_host import HostRules, characters
from maskwright.analysis.composition.structural_tags_schemas import (
    KINDS,
    Kind,
    array_list,
    but_for,
    kinds_of,
    list_expression,
    narrowed,
    object_list,
    united,
)
from maskwright.analysis.composition.tag_rules import Body
from maskwright.analysis.errors import LimitError, NestingError, SchemaError
from maskwright.analysis.kept import Kept
from maskwright.analysis.nesting import MOST_NESTED, on_own_stack
from maskwright.analysis.regex.dfa import Dfa, concatenate, intersect, union
from maskwright.analysis.regex.whole import regex_automaton, without
from maskwright.analysis.schema.load import JsonSchema, Narrowing
from maskwright.analysis.schema.shapes import (
    Arrays,
    Objects,
    Shape,
    StringLiterals,
    Strings,
)
from maskwright.analysis.schema.spacing import NOTHING, Spacing
from maskwright.analysis.schema.strings import counted
from maskwright.analysis.schema.text_patterns import Regex

MOST_CHARACTERS = 2_000
"""BOUND: the characters that `minLength` and `maxLength` of an argument may count."""

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_WRITTEN_NAME = r'(?:[^\x00"&<>]|&amp;|&lt;|&gt;|&quot;)+'
_PLAIN_NAME = r'[^\x00-\x20"&<>]+'
_NO_KINDS: Mapping[Kind, str] = MappingProxyType({})


class Style(NamedTuple):
    """How arguments are written.

    begin, behind_name : before and behind an argument's name.
    end : the closing tag; ``{}`` stands for the name.
    value : what stands before the value, with white space before it.
    kinds : for styles that tell a value's kind: what stands for it between `of_kind`.
    of_kind : the text around it.
    bars : characters that no name can have.
    escapes : how characters of names are written.
    nests : whether objects and arrays are elements too.
    item : what begins an item of an array, where they are.
    raw_until : what no raw string holds.
    is_spaced : whether white space may stand around strings that are not free, and JSON.
    """

    begin: str
    behind_name: str
    end: str
    value: str = ""
    kinds: Mapping[Kind, str] = _NO_KINDS
    of_kind: tuple[str, str] = ("", "")
    bars: str = ""
    escapes: tuple[tuple[str, str], ...] = ()
    nests: bool = False
    item: str = ""
    raw_until: str = ""
    is_spaced: bool = True


def _deepseek(blank: str) -> Style:
    kinds: dict[Kind, str] = {kind: "true" if kind == "string" else "false" for kind in KINDS}
    end = f"</｜DSML｜{blank}parameter>"
    begin = f'<｜DSML｜{blank}parameter name="'
    return Style(begin, '"', end, kinds=kinds, of_kind=(' string="', '">'), bars='"', raw_until=end, is_spaced=False)


_QWEN = Style("<parameter=", ">", "</parameter>", bars=">", raw_until="</parameter>")
STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "qwen_xml": _QWEN,
        "minimax_xml": Style('<parameter name="', '">', "</parameter>", bars='"', raw_until="</parameter>"),
        "glm_xml": Style("<arg_key>", "</arg_key>", "</arg_value>", "<arg_value>", bars="<", raw_until="</arg_value>"),
        "deepseek_xml": _deepseek(""),
        "deepseek_v4_1_xml": _deepseek(" "),
        "kimi_k3_xml": Style(
            '<|open|>argument key="',
            '"',
            "<|close|>argument<|sep|>",
            kinds={kind: kind for kind in KINDS},
            of_kind=(' type="', '"<|sep|>'),
            escapes=(("&", "&amp;"), ('"', "&quot;")),
            raw_until="<|close|>argument<|sep|>",
        ),
        "cohere_xml": Style(
            '<cofl:value name="',
            '"',
            "</cofl:value>",
            kinds={kind: {"string": "raw", "object": "dict", "array": "list"}.get(kind, "json") for kind in KINDS},
            of_kind=(' type="', '">'),
            escapes=(("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")),
            nests=True,
            item="<cofl:value",
            raw_until="</cofl:value>",
        ),
        "minimax_m3_xml": Style(
            "]<]minimax[>[<",
            ">",
            "]<]minimax[>[</{}>",
            bars="<>",
            nests=True,
            item="item",
            raw_until="]<]minimax[>[",
            is_spaced=False,
        ),
    }
)
"""The styles by the names that xgrammar gives them."""


def xml_arguments(rules: HostRules, schema: JsonSchema, style: str, excluded: tuple[str, ...]) -> Body:
    """The expression of the arguments of a schema's objects.

    style : a key of `STYLES`.
    excluded : what no string and no name says.

    Raises: SchemaError for a schema without objects, for names that the style cannot write, for
    what no raw text can say; LimitError for too many arguments in any order, and too long strings.
    """
    graph = schema.texts.graph
    objects = [shape for shape in graph.nodes[graph.root] if isinstance(shape, Objects)]
    found = _Arguments(rules, schema, style, excluded).members(objects) if objects else None
    if found is None:
        raise SchemaError(f"no object of the schema can be written in the style {style}")
    return found


class _Arguments:
    """The arguments of one schema."""

    def __init__(self, rules: HostRules, schema: JsonSchema, style: str, excluded: tuple[str, ...]) -> None:
        self._rules, self._schema, self._name = rules, schema, style
        self._style = STYLES[style]
        if excluded and self._style.nests:
            raise SchemaError(f"the style {style} has no excludes: leave them out")
        self._excluded = excluded
        self._graph = schema.texts.graph
        self._spacing = schema.texts.spacing
        self._space = rules.space(self._spacing, self._spacing.outer)
        self._rest: dict[tuple[int, str], Body | None] = {}
        self._parts: dict[tuple[int, str], Body] = {}
        self._depth = 0

    def members(self, objects: list[Objects]) -> Body | None:
        """The expression of the members of some objects; None if there are no such texts."""
        automata = [
            object_list(one, lambda k, one=one: self._named(one, k), lambda of, one=one: self._other(one, of))  # type: ignore[misc]
            for one in objects
        ]
        nothing = () if self._name == "minimax_m3_xml" else self._space
        return list_expression(self._rules, united(automata), self._space, nothing)

    def _items(self, arrays: list[Arrays]) -> Body | None:
        automaton = united([array_list(one, self._item) for one in arrays])
        if not self._style.is_spaced:
            return list_expression(self._rules, automaton, self._space, ())
        found = list_expression(self._rules, automaton, (), ())
        if found is None:
            return None
        return self._space + found + self._space if found else self._space

    def _named(self, objects: Objects, k: int) -> Body | None:
        """An argument with a name, as the style writes it."""
        key = objects.keys[k].decode()
        style = self._style
        if any(bar in key for bar in style.bars) or (not style.escapes and not key):
            raise SchemaError(f"the style {self._name} cannot write the name {clip(key)}: it would end early")
        if any(text in key for text in self._excluded):
            raise SchemaError(f"the name {clip(key)} holds one of the excludes {clip(list(self._excluded))}")
        rest = self._after_name(objects.values[k], style.end.format(key))
        if rest is None:
            return None
        return characters(style.begin + self._escaped(key)) + rest

    def _other(self, objects: Objects, of: int) -> Body | None:
        """Arguments with names of a class; None where the closing tag would repeat the name."""
        if "{}" in self._style.end:
            return None
        names = self._names(objects, of)
        rest = None if names.is_empty else self._after_name(objects.others[of], self._style.end)
        if rest is None:
            return None
        return characters(self._style.begin) + self._rules.part("name", Regex("a name", names)) + rest

    def _names(self, objects: Objects, of: int) -> Dfa:
        """The names of a class that the style can write, as it writes them."""
        keys = objects.key_automaton
        if keys is not None:
            names = intersect(Dfa.minimal(keys.next_state, keys.ends == of), regex_automaton(_PLAIN_NAME))
        else:
            every = _WRITTEN_NAME if self._name == "cohere_xml" else _IDENTIFIER
            names = but_for(regex_automaton(every), tuple(self._escaped(key.decode()).encode() for key in objects.keys))
        return intersect(names, without(self._excluded)) if self._excluded else names

    def _escaped(self, key: str) -> str:
        for character, written in self._style.escapes:
            key = key.replace(character, written)
        return key

    def _item(self, node: int) -> Body | None:
        style = self._style
        if style.end.format("") == style.end:  # an item has no name
            rest = self._value(node, style.end)
            return None if rest is None else characters(style.item) + rest
        rest = self._after_name(node, style.end.format(style.item))
        return None if rest is None else characters(style.begin + style.item) + rest

    # -- values

    def _after_name(self, node: int, end: str) -> Body | None:
        """What stands behind an argument's name: a value of a node, and the closing tag."""
        rest = self._value(node, end)
        if rest is None:
            return None
        style = self._style
        before = self._space + characters(style.value) if style.value else ()
        return characters(style.behind_name) + before + rest

    @on_own_stack
    def _value(self, node: int, end: str) -> Body | None:
        """The rule of a value of a node and the closing tag; None if there is none.

        Raises: NestingError.
        """
        key = node, end
        if key not in self._rest:
            self._depth += 1
            if self._depth > MOST_NESTED:
                raise NestingError(f"values stand more than {MOST_NESTED} deep inside one another; write it flatter")
            self._rest[key] = name = self._rules.name()
            closing = characters(end)
            options = [one + closing for one in self._values(node)]
            if options:
                self._rules.define(name, options)
            else:
                self._rest[key] = None
            self._depth -= 1
        return self._rest[key]

    def _values(self, node: int) -> Iterator[Body]:
        """The expressions of a node's values, each with what tells its kind."""
        style = self._style
        groups: dict[str, dict[Kind, list[Shape]]] = {}
        for shape in self._graph.nodes[node]:
            for kind, part in kinds_of(shape):
                groups.setdefault(style.kinds.get(kind, ""), {}).setdefault(kind, []).append(part)
        for told, of_kind in groups.items():
            before = characters(f"{style.of_kind[0]}{told}{style.of_kind[1]}") if style.kinds else ()
            for one in self._of_group(of_kind, (node, told)):
                yield before + one

    def _of_group(self, of_kind: dict[Kind, list[Shape]], key: tuple[int, str]) -> Iterator[Body]:
        """The expressions of the values of a node that are told by the same word."""
        style = self._style
        as_json: list[Kind] = []
        for kind, shapes in of_kind.items():
            if kind == "string":
                free = any(shape == Strings(None, 0, None) for shape in shapes)
                raw = self._rules.free((style.raw_until, *self._excluded), None) if free else self._raw(shapes)
                if raw is not None:
                    yield raw
                if free and not style.nests:
                    return  # any other value is such a text as well
            elif style.nests and kind == "object":
                members = self.members([one for one in shapes if isinstance(one, Objects)])
                if members is not None:
                    yield members
            elif style.nests and kind == "array":
                items = self._items([one for one in shapes if isinstance(one, Arrays)])
                if items is not None:
                    yield items
            else:
                as_json.append(kind)
        if as_json:
            if key not in self._parts:
                how = Narrowing(key[0], tuple(as_json), self._excluded, is_tight=self._name == "minimax_m3_xml")
                self._parts[key] = self._rules.part("value", narrowed(self._schema, how))
            yield self._parts[key]

    def _raw(self, shapes: list[Shape]) -> Body | None:
        """Strings that are not free, with white space where the style has it."""
        barred = tuple(sorted({self._style.raw_until, *self._excluded}))
        said = [text for shape in shapes if isinstance(shape, StringLiterals) for text in shape.texts]
        texts: list[Body] = [
            (text,) if text else () for text in said if not any(one.encode() in text for one in barred)
        ]
        space = self._space if self._style.is_spaced else ()
        options = [space + self._rules.either(texts) + space] if texts else []
        others = tuple(shape for shape in shapes if isinstance(shape, Strings))
        if others:
            dfa = _strings(others, barred, self._spacing if self._style.is_spaced else NOTHING)
            if not dfa.is_empty:
                options.append(self._rules.part("string", Regex("a string", dfa)))
        return self._rules.either(options) if options else None


@Kept
def _strings(shapes: tuple[Strings, ...], barred: tuple[str, ...], spacing: Spacing) -> Dfa:
    """The strings of some shapes that hold none of some texts, with white space around them."""
    dfa = intersect(reduce(union, map(_automaton, shapes)), without(barred))
    around = spacing.around()
    return concatenate(concatenate(around, dfa), around)


def _automaton(shape: Strings) -> Dfa:
    """The strings of a shape, as they are said."""
    most = shape.most
    if max(shape.least, most or 0) > MOST_CHARACTERS:
        raise LimitError(
            f"a string of {max(shape.least, most or 0):,} characters is too long to be counted; an argument may have minLength and "
            f"maxLength up to {MOST_CHARACTERS:,}"
        )
    return counted(shape.automaton, shape.least, most)
