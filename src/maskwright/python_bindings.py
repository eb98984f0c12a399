"""What binds the names around a place in a Python text: what jedi's own answers leave open.

In: a jedi script whose text has a word at the place that is asked about. Out: which objects are
certain there. Jedi tells what a name may be, and leaves out what it cannot tell. So an answer is
believed only if each binding of the name is one that jedi understands.

What the parser cannot read (such as `case` and `except*`) stands as errors in its tree. Names there
may be bound or not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_SCOPES = ("funcdef", "classdef", "lambdef", "file_input")
_STATEMENTS = ("suite", "simple_stmt", *_SCOPES)
_OPENS = {")": "(", "]": "[", "}": "{"}
_NOT_SURE = re.compile(r"\b(?:_[A-Z]\w*|\w*T|T_\w+|AnyStr|Any|Self|Incomplete|object)\b")
"""Results that depend on the arguments, by the conventions of stubs; or that may be anything."""

_PLAIN = {
    f"builtins.{name}"
    for name in ("bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple")
}
"""Classes whose instances have only the class's names, unless a text asks for a subclass."""

_ASKS = {"callable", "delattr", "getattr", "hasattr", "isinstance", "issubclass", "setattr", "type"}
"""Functions of the language that tell or change what names an object has."""

_MAKES_NAMES = re.compile(
    r"^[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]*\*|\b(?:globals|locals|vars)\(\)(?:\[|\.update\b)|\bsys\.modules\[[^\]]*\][ \t]*=",
    re.MULTILINE,
)
"""What gives a module names that it does not tell."""


class Place:
    """A word in a text, and what is before it.

    script : a jedi `Script`.
    line, column : where the word begins, as jedi counts.
    word : what stands there for the name that is to come.
    """

    def __init__(self, script: Any, line: int, column: int, word: str) -> None:
        self._script = script
        self._module = script._module_node
        leaf = self._module.get_leaf_for_position((line, column + 1), include_prefixes=True)
        self.is_name = (
            leaf is not None and leaf.type == "name" and leaf.value == word and leaf.start_pos == (line, column)
        )
        """Whether the word is one, and no part of a string or a comment."""
        self._word = leaf
        self._line = _line_before(leaf) if self.is_name else []

    def is_scope(self) -> bool:
        """Whether any name here is one in scope: none is bound by what comes."""
        values = [leaf.value for leaf in self._line]
        return _innermost(self._line) < 0 and "lambda" not in values and not self._is_case()

    def is_argument(self) -> bool:
        """Whether the word is in a call of a function whose parameters are certain."""
        begin = _innermost(self._line)
        if begin < 0 or self._line[begin].value != "(" or self._is_case():
            return False
        values = {leaf.value for leaf in self._line[begin:]}
        names = _chain(self._line[:begin])
        if not names or values & {"lambda", "for"}:
            return False
        bindings = self._bindings(names[0])
        if bindings is None or not self._are_not_set(names[1:]):
            return False
        if not bindings:
            is_certain = len(names) == 1 and not self._has_star_import()
        elif len(bindings) == 1 and bindings[0].get_definition().type in ("funcdef", "classdef"):
            is_certain = len(names) == 1
        else:
            is_certain = self._are_imports(bindings)
        signatures = self._script.get_signatures(*self._word.start_pos)
        return is_certain and bool(signatures) and all(map(_is_certain_signature, signatures))

    def objects(self) -> list[Any]:
        """What is before the point, if certain: modules, or instances of the library."""
        names = _chain(self._line[:-1])
        if not names:
            return []
        bindings = self._bindings(names[0])
        if not bindings:
            return []
        at = names[-1].start_pos
        found: list[Any] = self._script.infer(*at)
        if not found:
            return []
        if all(each.type == "module" for each in found):
            is_certain = self._are_imports(bindings) and self._are_not_set(names[1:]) and are_whole(self._script, *at)
        elif all(each.type == "instance" and _is_stub(each.module_path) for each in found):
            is_certain = len(names) == 1 and len(bindings) == 1 and self._is_certain_instance(bindings[0])
        else:
            is_certain = False
        return [*found, *self._script.infer(*at, prefer_stubs=False)] if is_certain else []

    def attributes_given(self) -> set[str]:
        """Attributes that the text itself gives to objects."""
        return {
            name
            for name, leaves in self._module.get_used_names().items()
            if any(_is_attribute(leaf) and leaf.is_definition() for leaf in leaves)
        }

    def names_not_read(self) -> set[str]:
        """Names that may be bound where jedi reads no binding."""
        return {
            name
            for name, leaves in self._module.get_used_names().items()
            if any(
                not _is_attribute(leaf)
                and (
                    _is_in_error(leaf)
                    or _is_walrus(leaf)
                    or (leaf.is_definition() and _ancestor(leaf, ("error_node",)) is not None)
                )
                for leaf in leaves
            )
        }

    def are_stars_found(self) -> bool:
        """Whether each `from ... import *` is of a module whose names are all known."""
        modules = [star.get_from_names()[-1:] for star in self._stars()]
        return all(names and are_whole(self._script, *names[0].start_pos) for names in modules)

    def _is_case(self) -> bool:
        return bool(self._line) and self._line[0].value == "case"

    def _has_star_import(self) -> bool:
        return bool(self._stars())

    def _stars(self) -> list[Any]:
        return [each for each in _nodes(self._module, "import_from") if each.is_star_import()]

    def _bindings(self, name: Any) -> list[Any] | None:
        """The leaves that bind a name in the scope that it is of; None if more may bind it."""
        by_scope: dict[Any, list[Any]] = {}
        for leaf in self._module.get_used_names().get(name.value, []):
            if _is_attribute(leaf):
                continue
            after = leaf.get_next_leaf()
            if (
                leaf.parent.type in ("global_stmt", "nonlocal_stmt")
                or _is_walrus(leaf)
                or (leaf is not name and _is_in_error(leaf) and (after is None or after.value != "."))
            ):
                return None
            definition = leaf.get_definition()
            if definition is not None:
                is_own = definition.type in ("funcdef", "classdef") and definition.name is leaf
                by_scope.setdefault(_scope(definition if is_own else leaf), []).append(leaf)
        scope, is_first = _scope(self._word), True
        while scope is not None:
            if scope in by_scope and (is_first or scope.type != "classdef"):
                return by_scope[scope]
            scope, is_first = _scope(scope), False
        return []

    def _are_imports(self, bindings: list[Any]) -> bool:
        """Whether only imports bind a name, each of what is found."""
        return all(
            leaf.get_definition().type in ("import_name", "import_from") and self._script.infer(*leaf.start_pos)
            for leaf in bindings
        )

    def _are_not_set(self, names: list[Any]) -> bool:
        """Whether the text gives no object attributes of these names."""
        return not {name.value for name in names} & self.attributes_given()

    def _is_certain_instance(self, binding: Any) -> bool:
        """Whether the one binding of a name tells its class, and the text no more of it."""
        if any(_is_asked(leaf) for leaf in self._module.get_used_names()[binding.value] if not _is_attribute(leaf)):
            return False
        definition = binding.get_definition()
        if definition.type == "param":
            return not definition.star_count and self._is_class(definition.annotation)
        if binding.parent.type == "with_item":
            return self._is_certain_call(binding.parent.children[0])
        if definition.type != "expr_stmt" or definition.children[0] is not binding:
            return False
        if definition.children[1].type == "annassign":
            return self._is_class(definition.children[1].children[1])
        value = definition.children[2]
        return len(definition.children) == 3 and (
            value.type in ("number", "string", "strings", "fstring")
            or (value.type == "atom" and value.children[0].value in "[{")
            or self._is_certain_call(value)
        )

    def _is_class(self, annotation: Any) -> bool:
        """Whether an annotation is a plain class, whatever its parameters.

        What is annotated with another class is often of a subclass, which has more names.
        """
        if annotation is None:
            return False
        if annotation.type == "atom_expr" and annotation.children[-1].children[0].value == "[":
            head = annotation.children[-2]
        else:
            head = annotation
        leaf = head.get_last_leaf()
        if leaf.type != "name" or head.type not in ("name", "atom_expr", "trailer"):
            return False
        found = self._script.infer(*leaf.start_pos, prefer_stubs=True)
        return bool(found) and all(
            each.type == "class" and _is_stub(each.module_path) and each.full_name in _PLAIN for each in found
        )

    def _is_certain_call(self, value: Any) -> bool:
        """Whether a value is a call in the library whose result depends on no argument."""
        if value.type != "atom_expr" or value.children[-1].children[0].value != "(":
            return False
        names = _chain(_leaves(value, value.children[-1]))
        if not names or names[0] is not value.children[0]:
            return False
        bindings = self._bindings(names[0])
        if bindings is None or not self._are_imports(bindings) or (not bindings and self._has_star_import()):
            return False
        found = self._script.infer(*names[-1].start_pos, prefer_stubs=True)
        return bool(found) and all(
            _is_stub(each.module_path)
            and (each.type == "class" or (each.type == "function" and _is_sure(each.get_signatures())))
            for each in found
        )


def _line_before(word: Any) -> list[Any]:
    """The leaves before a word on its line, or on the lines that brackets join."""
    found: list[Any] = []
    leaf = word.get_previous_leaf()
    while leaf is not None and leaf.type != "newline":
        if leaf.value:
            found.append(leaf)
        leaf = leaf.get_previous_leaf()
    return found[::-1]


def _innermost(line: list[Any]) -> int:
    """Where the innermost open bracket is; -1 if none is open."""
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        value = line[at].value
        if value in _OPENS:
            depth += 1
        elif value in _OPENS.values():
            if not depth:
                return at
            depth -= 1
    return -1


def _chain(line: list[Any]) -> list[Any]:
    """The names of `a.b.c` at the end of a line; none if something else is there."""
    found: list[Any] = []
    at = len(line) - 1
    while at >= 0 and line[at].type == "name":
        found.append(line[at])
        if not at or line[at - 1].value != ".":
            return found[::-1]
        at -= 2
    return []


def _leaves(node: Any, end: Any) -> list[Any]:
    """The leaves of a node before one of its parts."""
    found, leaf, last = [], node.get_first_leaf(), end.get_first_leaf()
    while leaf is not last:
        found.append(leaf)
        leaf = leaf.get_next_leaf()
    return found


def _nodes(node: Any, kind: str) -> list[Any]:
    found, agenda = [], [node]
    while agenda:
        node = agenda.pop()
        if node.type == kind:
            found.append(node)
        agenda += getattr(node, "children", [])
    return found


def _ancestor(node: Any, kinds: tuple[str, ...]) -> Any:
    node = node.parent
    while node is not None and node.type not in kinds:
        node = node.parent
    return node


def _scope(node: Any) -> Any:
    return _ancestor(node, _SCOPES)


def _is_in_error(leaf: Any) -> bool:
    """Whether a leaf is in what the parser could not read, and in no statement there.

    Type parameters are such too: the parser of some versions of Python reads them, and jedi none.
    """
    return _ancestor(leaf, ("error_node", "type_params", *_STATEMENTS)).type in ("error_node", "type_params")


def _is_walrus(leaf: Any) -> bool:
    """Whether `:=` binds a name, in whichever scope."""
    after = leaf.get_next_leaf()
    return after is not None and after.value == ":="


def _is_attribute(leaf: Any) -> bool:
    before = leaf.get_previous_leaf()
    return before is not None and before.value == "."


def _is_asked(leaf: Any) -> bool:
    """Whether a text asks here for what an object has, or gives it an attribute."""
    after = leaf.get_next_leaf()
    if after is not None and after.value == ".":
        attribute = after.get_next_leaf()
        return attribute.type == "name" and bool(attribute.is_definition())
    line = [each.value for each in _line_before(leaf)]
    return line[:1] == ["match"] or (line[-1:] == ["("] and bool(_ASKS & {*line[-2:-1]}))


def _is_stub(path: Path | None) -> bool:
    return path is not None and path.suffix == ".pyi" and "typeshed" in path.parts


def are_whole(script: Any, line: int, column: int) -> bool:
    """Whether the modules that a name stands for have no names that jedi cannot see."""
    found = script.infer(line, column, prefer_stubs=True)
    return bool(found) and all(_is_whole_module(each) for each in found)


def _is_whole_module(module: Any) -> bool:
    if _is_stub(module.module_path) or module.module_path is None or module.module_path.suffix != ".py":
        return True
    return not _MAKES_NAMES.search(module.module_path.read_text(errors="replace"))


def _is_certain_signature(signature: Any) -> bool:
    """Whether a call takes no keyword but a parameter's name."""
    if any(param.kind.name == "VAR_KEYWORD" for param in signature.params):
        return False
    if _is_stub(signature.module_path):
        return True
    name = getattr(signature._name, "tree_name", None)
    called = None if name is None else name.parent
    if called is not None and called.type == "classdef" and not called.get_decorators():
        # a base may have a metaclass, which takes the arguments
        made = {each.name.value: each for each in called.iter_funcdefs()}
        called = None if called.get_super_arglist() or "__new__" in made else made.get("__init__")
    return called is not None and called.type == "funcdef" and not called.get_decorators()


def _is_sure(signatures: list[Any]) -> bool:
    """Whether the result of a call is of one class, whatever its arguments."""
    results = set()
    for signature in signatures:
        result = signature.to_string().rpartition("->")[2]
        while (shorter := re.sub(r"\[[^\[\]]*\]", "", result)) != result:
            result = shorter
        results.add(result)
    return len(results) == 1 and not _NOT_SURE.search(*results)
