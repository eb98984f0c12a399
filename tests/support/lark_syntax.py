"""The syntax of Lark's grammar language by Lark's own parser: what `analysis/loading/library/lark.lark` is held against.

Lark's loader parses a text, then builds literals and definitions of the tree. `accepts` does these two steps for each statement by itself:
what it refuses no loader takes, whatever else is defined.
"""

from __future__ import annotations

from typing import Any

from lark import Tree
from lark.exceptions import GrammarError, LarkError
from lark.load_grammar import PrepareGrammar, PrepareLiterals, _get_parser


def accepts(text: str) -> bool:
    try:
        # `_parse_grammar` would first look for a helpful message, and crash on the way for some texts
        tree: Any = PrepareGrammar().transform(_get_parser().parse(text + "\n", "start"))
        return all(is_sound(statement) for statement in tree.children)
    except (LarkError, AssertionError, ValueError, SyntaxError):
        return False


def is_sound(statement: Tree[Any]) -> bool:
    """Whether a statement's literals can be read, and a terminal holds nothing but terminals. Raises where Lark does.

    A literal that is empty or no regular expression is a matter of what it means, not of syntax.
    """
    if statement.data in ("override", "extend"):
        return all(is_sound(child) for child in statement.children)
    if statement.data == "import":
        path, *rest = statement.children
        return len(path.children) > 1 or (bool(rest) and isinstance(rest[0], Tree))
    if statement.data == "declare":
        return all(type(symbol).__name__ == "Terminal" for symbol in statement.children)
    if statement.data != "rule":  # a terminal, or what is ignored
        parts = list(statement.iter_subtrees())
        expansions = list(statement.find_data("expansion"))
        if any(part.data in ("alias", "template_usage") for part in parts):
            return False
        if any(type(name).__name__ == "NonTerminal" for part in parts for name in part.children):
            return False
        if len(expansions) == 1 and not expansions[0].children:
            return False
    try:
        PrepareLiterals().transform(statement.__deepcopy__({}))
    except GrammarError as error:
        if not str(error).startswith("Empty terminals are not allowed"):
            raise
    return True
