"""Which languages is a text made of, and where does each of them stand?

In: a host, a Lark grammar or a JSON schema, and the parts of other languages that stand in it. Out:
a `Composition`, in which the host knows its parts as marks (`analysis.marks`). Knows nothing of
tokens.
"""

from maskwright.analysis.composition.compose import (
    Composition,
    InJsonString,
    Inner,
    Part,
    compose,
    in_json_string,
    read_composition,
)
from maskwright.analysis.composition.structural_tags import read_structural_tag
from maskwright.analysis.composition.token_parts import SpecialToken, TokenSet, special_token
from maskwright.analysis.composition.tools import read_tools

__all__ = [
    "Composition",
    "InJsonString",
    "Inner",
    "Part",
    "SpecialToken",
    "TokenSet",
    "compose",
    "in_json_string",
    "read_composition",
    "read_structural_tag",
    "read_tools",
    "special_token",
]
