"""Constraints to begin with, each with a beginning of a text."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from maskwright.analysis.loading.names import grammar_text, known_grammars


class Example(NamedTuple):
    """A constraint to choose.

    title : what the page calls it.
    group : the heading that it stands under.
    constraint : its text, or the name of a grammar that comes along.
    text : a beginning of a text.
    """

    title: str
    group: str
    constraint: str
    text: str


_SCHEMA = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "email": {"type": "string", "format": "email"},
    "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": true}
  },
  "required": ["name", "age"],
  "additionalProperties": false
}
"""
_TOOL = """start: "Answer: " TEXT "\\n" [call]
call: "<call>" ARGUMENTS "</call>"
TEXT: /[^\\n<]{1,80}/

%schema ARGUMENTS {"type": "object", "properties": {"city": {"type": "string"}, \
"days": {"type": "integer", "minimum": 1, "maximum": 7}}, "required": ["city", "days"], \
"additionalProperties": false}
"""
_CALCULATOR = """start: sum
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | "-" atom | "(" sum ")"
NUMBER: /[0-9]+(\\.[0-9]+)?/
%ignore " "
"""
_VERDICT = """start: "Verdict: " ("yes" | "no" | "unclear") "\\nReason: " TEXT
TEXT: /[^\\n]{1,200}\\n/
"""
_AMBIGUOUS = """// Lint has something to say about this one.
start: statement+
statement: "if" NAME statement
         | "if" NAME statement "else" statement
         | NAME ";"
unused: "never"
NAME: /[a-z]+/
%ignore " "
"""
_GBNF = """root ::= item ("," ws item)*
item ::= [a-z]+ "=" value
value ::= [0-9]+ | "\\"" [^"\\\\]* "\\""
ws ::= [ \\t]*
"""
_EBNF = """root ::= "<list>" entry+ "</list>"
entry ::= "<item>" [A-Za-z0-9 ]{1,20} "</item>"
"""
_TAG = """{
  "type": "structural_tag",
  "format": {
    "type": "triggered_tags",
    "triggers": ["<tool="],
    "tags": [{
      "begin": "<tool=weather>",
      "content": {"type": "json_schema", "json_schema": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]
      }},
      "end": "</tool>"
    }]
  }
}
"""
_LIBRARY_TEXTS = {
    "python": "def mean(values):\n    total = ",
    "lark:python": "x = [1, 2",
    "json": '{"name": "Ada", "born": 18',
    "json.compact": '{"name":"Ada",',
    "json.indent2": '{\n  "name": ',
    "sql": "SELECT name FROM users WHERE ",
    "c": "int main(void) {\n    return ",
    "go": "package main\n\nfunc main() {\n\t",
    "java": "class Main {\n    void run() {\n        ",
    "toml": '[server]\nport = 8080\nname = "',
    "lark": 'start: "a" | ',
}


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The examples, in the order of the page."""
    own = (
        Example("arithmetic", "Grammars in Lark", _CALCULATOR, "2 * (3 + "),
        Example("a verdict", "Grammars in Lark", _VERDICT, "Verdict: "),
        Example("with findings", "Grammars in Lark", _AMBIGUOUS, "if a "),
        Example("a person", "JSON schemas", _SCHEMA, '{"name": "Jo", "a'),
        Example("a date", "Regular expressions", r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "2026-1"),
        Example("JSON in a tag", "Languages inside languages", _TOOL, "Answer: sunny\n<call>{"),
        Example("a structural tag", "Languages inside languages", _TAG, "Let me see. <tool=weather>{"),
        Example("settings in GBNF", "Other engines' grammars", _GBNF, 'a=1, b="x'),
        Example("a list in GBNF and EBNF", "Other engines' grammars", _EBNF, "<list><item>one</item><"),
    )
    names = sorted(known_grammars(), key=lambda name: (name.startswith(("domino.", "lark:")), name))
    along = [Example(name, "Grammars that come along", name, _LIBRARY_TEXTS.get(name, "")) for name in names]
    return (*own, *along)


def library_text(name: str) -> str | None:
    """The text of a grammar that comes along; None for another name.

    >>> library_text("json").count("start:"), library_text("../secret")
    (1, None)
    """
    return grammar_text(name) if name in known_grammars() else None
