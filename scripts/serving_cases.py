"""The constraints of `check_serving.py`, each with a judge that is not maskwright; and constraints that are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
NUMBERS = {
    "type": "array",
    "items": {"type": "number", "minimum": -1, "exclusiveMaximum": 10, "multipleOf": 0.5},
    "minItems": 2,
    "maxItems": 4,
}
UNION = {
    "oneOf": [
        {"const": None},
        {"enum": ["a", 1]},
        {"type": "object", "required": ["k"], "properties": {"k": {"type": "boolean"}}, "maxProperties": 1},
    ]
}
TREE = {
    "$ref": "#/$defs/t",
    "$defs": {"t": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "boolean"}]}}},
}
UNIQUE = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True, "minItems": 2}
PATTERN = {
    "type": "object",
    "patternProperties": {"^x-[a-z]{2,8}$": {"type": "string", "pattern": "^[0-9]{1,3}$"}},
    "additionalProperties": False,
    "minProperties": 1,
}

ARITHMETIC = """start: sum
sum: product | sum "+" product | sum "-" product
product: atom | product "*" atom
atom: NUMBER | "(" sum ")"
NUMBER: /[0-9]{1,3}/
%ignore " "
"""
GBNF = 'root ::= "[" item ("," item){0,3} "]"\nitem ::= [a-f0-9]{2}'
EBNF = 'root ::= pair (";" pair)*\npair ::= [a-z]{1,3} "=" ("yes" | "no")'
DIALECT = '%llguidance {}\nstart: WORD{1,4} "."\nWORD: /[A-Z][a-z]{1,5} /'
COMPOSED = f'start: "call " YEAR " " PERSON\n%regex YEAR /[0-9]{{4}}/\n%schema PERSON {json.dumps(PERSON)}\n'
TAG = {
    "type": "triggered_tags",
    "triggers": ["<call"],
    "tags": [
        {"type": "tag", "begin": "<call>", "content": {"type": "json_schema", "json_schema": PERSON}, "end": "</call>"}
    ],
    "at_least_one": True,
    "stop_after_first": True,
}
SUM = r"[0-9]{1,2}(\+[0-9]{1,2}){0,2}"
TOOLS = [
    {"type": "function", "function": {"name": "person", "parameters": PERSON}},
    {
        "type": "custom",
        "name": "add",
        "format": {
            "type": "grammar",
            "syntax": "lark",
            "definition": 'start: N ("+" N){0,2}\nN: /[0-9]{1,2}/',
        },
    },
]
BEGIN, END = '<tool_call>\n{"name": "{name}", "arguments": ', "}\n</tool_call>"
INSIDE = f'start: "x=" %json {json.dumps(PERSON)} ";" | "y=" %lark {{\nstart: /[a-z]/{{2,4}} "!"\n%ignore " "\n}}'
NAMED = {
    "grammars": [
        {"lark_grammar": 'start: @word "=" @numbers'},
        {"name": "word", "lark_grammar": "start: /[a-z]/{2,4}"},
        {"name": "numbers", "json_schema": NUMBERS},
    ]
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
MAIL = r"[a-z][a-z0-9._]{0,9}@[a-z]{1,8}\.(org|net)"
WORDS = tuple(
    f"{first}{second}" for first in ("north", "south", "up", "down") for second in ("-1", "-12", "ward", "wards", "")
)


class Case(NamedTuple):
    """A constraint, and who judges its texts."""

    name: str
    params: dict[str, Any]
    judge: Callable[[str], bool]

    @property
    def request(self) -> tuple[str, str]:
        """Kind and text, as a compiler takes them."""
        ((kind, spec),) = self.params.items()
        return kind, json.dumps(spec) if kind == "choice" else "" if kind == "json_object" else spec


def of_schema(name: str, schema: dict[str, Any]) -> Case:
    def judge(text: str) -> bool:
        import jsonschema

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            if len(found) < len(pairs):
                raise ValueError("a key comes twice")
            return found

        value = json.loads(text, object_pairs_hook=once)
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))

    return Case(name, {"json": json.dumps(schema)}, judge)


def of_regex(name: str, params: dict[str, Any], pattern: str) -> Case:
    return Case(name, params, lambda text: re.fullmatch(pattern, text) is not None)


def of_lark(name: str, spec: str, **options: Any) -> Case:
    def judge(text: str) -> bool:
        import lark
        from lark.indenter import PythonIndenter

        if name == "python":
            parser = lark.Lark.open_from_package(
                "lark", "python.lark", ["grammars"], parser="lalr", postlex=PythonIndenter(), start="file_input"
            )
        else:
            parser = lark.Lark(spec, parser="lalr")
        parser.parse(text)
        return True

    return Case(name, {"grammar": spec}, judge)


def calls(choice: str) -> str:
    """The grammar of calls of `TOOLS`, as a request brings it. choice : see `mw.read_tools`."""
    return json.dumps({"tools": TOOLS, "begin": BEGIN, "end": END, "choice": choice})


def are_calls(text: str) -> bool:
    """Whether a text is one or more calls of `TOOLS`, one a line."""
    found = re.findall(r"<tool_call>\n(.*?)\n</tool_call>", text, re.DOTALL)
    if "\n".join(f"<tool_call>\n{each}\n</tool_call>" for each in found) != text:
        return False
    for said in map(json.loads, found):
        name, arguments = said["name"], said["arguments"]
        if name == "add" and not (list(arguments) == ["input"] and re.fullmatch(SUM, arguments["input"])):
            return False
        if name == "person" and not of_schema("", PERSON).judge(json.dumps(arguments)):
            return False
    return bool(found)


def is_call(text: str) -> bool:
    """Whether a text is one of `COMPOSED`."""
    head, arguments = text[:10], text[10:]
    return re.fullmatch(r"call [0-9]{4} ", head) is not None and of_schema("", PERSON).judge(arguments)


def is_inside(text: str) -> bool:
    """Whether a text is one of `INSIDE`."""
    if text.startswith("x="):
        return text.endswith(";") and of_schema("", PERSON).judge(text[2:-1])
    return re.fullmatch(r"y=([a-z] *){2,4}! *", text) is not None


def is_tag(text: str) -> bool:
    """Whether a text is one of `TAG`."""
    inside = re.fullmatch(r"<call>(.*)</call>", text, re.DOTALL)
    return inside is not None and of_schema("", PERSON).judge(inside[1])


CASES = (
    of_schema("person", PERSON),
    of_schema("numbers", NUMBERS),
    of_schema("union", UNION),
    of_schema("tree", TREE),
    of_schema("unique", UNIQUE),
    of_schema("pattern", PATTERN),
    Case("json_object", {"json_object": True}, lambda text: isinstance(json.loads(text, strict=True), dict)),
    of_regex("date", {"regex": DATE}, DATE),
    of_regex("mail", {"regex": MAIL}, MAIL),
    Case("choice", {"choice": ["yes", "no", "not sure"]}, lambda text: text in ("yes", "no", "not sure")),
    Case("words", {"choice": list(WORDS)}, lambda text: text in WORDS),
    of_lark("python", "lark:python"),
    of_lark("arithmetic", ARITHMETIC),
    of_regex("gbnf", {"grammar": GBNF}, r"\[[a-f0-9]{2}(,[a-f0-9]{2}){0,3}\]"),
    of_regex("ebnf", {"grammar": EBNF}, r"[a-z]{1,3}=(yes|no)(;[a-z]{1,3}=(yes|no))*"),
    of_regex("llguidance", {"grammar": DIALECT}, r"([A-Z][a-z]{1,5} ){1,4}\."),
    Case("composed", {"grammar": COMPOSED}, is_call),
    Case("inside", {"grammar": INSIDE}, is_inside),
    Case("named", {"grammar": json.dumps(NAMED)}, lambda text: of_schema("", NUMBERS).judge(text.partition("=")[2])),
    of_regex("special", {"grammar": 'start: "yes" <|call|> "no"{1,3}'}, "yes(no){1,3}"),
    Case("tools", {"grammar": calls("required")}, are_calls),
    Case("tag", {"structural_tag": json.dumps({"type": "structural_tag", "format": TAG})}, is_tag),
)

SUMS = next(case for case in CASES if case.name == "arithmetic")

_PARTS = [{"type": "token", "token": "<|call|>"}, {"type": "regex", "pattern": "(?i)yes|no"}]
TOKEN_TAG = {
    "structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "sequence", "elements": _PARTS}})
}
"""What vLLM's API server would refuse by xgrammar: a token by its name, and a pattern that is not its own."""

BACK = {"properties": {"a": {"pattern": "(.)\\1"}}}
REFUSED = (
    ({"json": '{"properties": {"a": {"pattern": "(.)\\\\1"}}}'}, "/properties/a/pattern"),
    ({"grammar": 'start: A\nA: /(a)\\1/'}, "terminal A"),
    ({"grammar": 'root ::= "a'}, "no closing quote"),
    ({"grammar": "nothing of this name"}, "no store or grammar has this name"),
    ({"regex": "(a"}, "unterminated"),
    ({"choice": []}, "no texts"),
    ({"grammar": 'start: "a" <|nothing|>'}, "no special token '<|nothing|>'"),
    ({"grammar": 'start: %json "schema.json"'}, "expected a schema"),
    ({"grammar": 'start: A\n%schema A schema.json\n'}, "may not be read here"),
    ({"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "json_schema", "json_schema": BACK}})}, "back-reference"),
    ({"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "what"}})}, "/format"),
    ({"grammar": "start: " + "(" * 100_000 + '"a"' + ")" * 100_000}, "deep inside one another"),
    ({"regex": "a", "whitespace_pattern": " "}, "whitespace_pattern"),
)  # fmt: skip
