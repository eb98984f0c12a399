"""What binds the names around a place in a Python text, and what is certain there.

In: the tree of a text that has a word at the place that is asked about. Out: the names in scope,
and the modules and classes of what is before a point. Where the tree does not tell, jedi is asked.
It tells what a name may be, and leaves out what it cannot tell. So an answer is believed only if
each binding of the name is one that jedi understands.

What the parser cannot read (such as `case` and `except*`) stands as errors in its tree. Names there
may be bound or not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from maskwright.python_modules import names_of_modules, nodes, star_imports

_SCOPES = ("funcdef", "classdef", "lambdef", "file_input")
_STATEMENTS = ("suite", "simple_stmt", *_SCOPES)
_OPENS = {")": "(", "]": "[", "}": "{"}
_NOT_SURE = re.compile(r"\b(?:_[A-Z]\w*|\w*T|T_\w+|AnyStr|Any|Self|Incomplete|object)\b")
"""Results that depend on the arguments, by the conventions of stubs; or that may be anything."""

_PLAIN = {"bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "set", "str", "tuple"}
"""Classes whose instances have only the class's names, unless a text asks for a subclass."""

_ASKS = {"callable", "delattr", "getattr", "hasattr", "isinstance", "issubclass", "setattr", "type"}
"""Functions of the language that tell or change what names an object has."""


class Place:
    """A word in a text, and what is before it.

    tree : the text, as parso parses it.
    line, column : where the word begins, as jedi counts.
    word : what stands there for the name that is to come.
    script : makes the text's jedi `Script`. It is asked for only where the tree does not tell: jedi
        starts a process, and reads the stubs of the language.
    """

    def __init__(self, tree: Any, line: int, column: int, word: str, script: Callable[[], Any]) -> None:
        self._make_script = script
        self._module = tree
        leaf = self._module.get_leaf_for_position((line, column + 1), include_prefixes=True)
        self.is_name = (
            leaf is not None and leaf.type == "name" and leaf.value == word and leaf.start_pos == (line, column)
        )
        """Whether the word is one, and no part of a string or a comment."""
        self._word = leaf
        self._line = _line_before(leaf) if self.is_name else []

    @cached_property
    def script(self) -> Any:
        """The text's jedi `Script`."""
        return self._make_script()

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
        if values & {"lambda", "for"}:
            return False
        bindings = self._bindings_of_chain(names)
        if bindings is None:
            return False
        if not bindings:
            is_certain = len(names) == 1 and not self.star_imports()
        elif len(bindings) == 1 and bindings[0].get_definition().type in ("funcdef", "classdef"):
            is_certain = len(names) == 1
        else:
            is_certain = self._are_imports(bindings)
        signatures = self.script.get_signatures(*self._word.start_pos)
        return is_certain and bool(signatures) and all(map(_is_certain_signature, signatures))

    def imports(self) -> list[str]:
        """What the text imports by absolute names, as `StandardModules.find` takes it."""
        found = [".".join(_values(path)) for node in nodes(self._module, "import_name") for path in node.get_paths()]
        for node in nodes(self._module, "import_from"):
            if not node.level:
                members = [] if node.is_star_import() else [path[-1] for path in node.get_paths()]
                found.append(":".join([".".join(_values(node.get_from_names())), *_values(members)]))
        return found

    def star_imports(self) -> list[Any]:
        """The statements `from ... import *` of the text."""
        return star_imports(self._module)

    def paths(self) -> list[str]:
        """Dotted names of what is before the point, if imports bind it and nothing else does."""
        names = _chain(self._line[:-1])
        found = []
        for leaf in self._bindings_of_chain(names) or []:
            definition = leaf.get_definition()
            if definition.type not in ("import_name", "import_from") or definition.level:
                return []
            found.append(".".join(_values([*definition.get_path_for_name(leaf), *names[1:]])))
        return found

    def names_in_scope(self) -> set[str]:
        """Names that the text binds in the scopes around the place, or may bind there."""
        scopes = _scopes(self._word)

        def is_bound(leaf: Any) -> bool:
            if _is_attribute(leaf):
                return False
            is_own = _scope_bound(leaf) in scopes and leaf.get_definition().type not in ("comp_for", "sync_comp_for")
            return is_own or _may_bind_anywhere(leaf)

        return self._names(is_bound)

    def attributes_of_modules(self) -> set[str] | None:
        """What is in the modules before the point, if these are certain and all of it is known."""
        names = _chain(self._line[:-1])
        bindings = self._bindings_of_chain(names)
        if not bindings or not self._are_imports(bindings):
            return None
        return names_of_modules(self.script, *names[-1].start_pos)

    def classes(self) -> list[str]:
        """Dotted names of the standard library's classes of what is before the point, if certain.

        One binding of the name tells the class, and the text asks no more of it. What is annotated
        with a class that often has subclasses may have more names.
        """
        names = _chain(self._line[:-1])
        bindings = self._bindings(names[0]) if len(names) == 1 else None
        if not bindings or len(bindings) > 1:
            return []
        (binding,) = bindings
        if any(_is_asked(leaf) for leaf in self._module.get_used_names()[binding.value] if not _is_attribute(leaf)):
            return []
        definition = binding.get_definition()
        if definition.type == "param":
            return [] if definition.star_count else self._classes_of_annotation(definition.annotation)
        if binding.parent.type == "with_item":
            return self._classes_of_call(binding, binding.parent.children[0])
        if definition.type != "expr_stmt" or definition.children[0] is not binding:
            return []
        if definition.children[1].type == "annassign":
            return self._classes_of_annotation(definition.children[1].children[1])
        value = definition.children[2]
        if len(definition.children) > 3:
            return []
        literal = _class_of_literal(value)
        return [f"builtins.{literal}"] if literal else self._classes_of_call(binding, value)

    def attributes_listed(self) -> set[str] | None:
        """What jedi lists of the object before the point, but functions; None if there is more."""
        listed = self.script.complete(*self._word.start_pos)
        if any(
            each.name == "__getattr__"
            or (each.name == "__getattribute__" and each.full_name != "builtins.object.__getattribute__")
            for each in listed
        ):
            return None
        return {each.name for each in listed if each.type not in ("function", "keyword")}

    def attributes_given(self) -> set[str]:
        """Attributes that the text itself gives to objects."""
        return self._names(lambda leaf: _is_attribute(leaf) and leaf.is_definition())

    def _names(self, is_found: Callable[[Any], bool]) -> set[str]:
        """The names of the text that have a leaf of some kind."""
        return {name for name, leaves in self._module.get_used_names().items() if any(map(is_found, leaves))}

    def _is_case(self) -> bool:
        return bool(self._line) and self._line[0].value == "case"

    def _bindings(self, name: Any) -> list[Any] | None:
        """The leaves that bind a name in the scope that it is of; None if more may bind it."""
        by_scope: dict[Any, list[Any]] = {}
        for leaf in self._module.get_used_names().get(name.value, []):
            if _is_attribute(leaf):
                continue
            if (
                leaf.parent.type in ("global_stmt", "nonlocal_stmt")
                or _after(leaf) == ":="
                or (leaf is not name and _is_in_error(leaf) and _after(leaf) != ".")
            ):
                return None
            by_scope.setdefault(_scope_bound(leaf), []).append(leaf)
        return next((by_scope[scope] for scope in _scopes(self._word) if scope in by_scope), [])

    def _bindings_of_chain(self, names: list[Any]) -> list[Any] | None:
        """As `_bindings`, of the `a` of `a.b.c`; None too where the text sets a `.b` or `.c`."""
        is_set = {name.value for name in names[1:]} & self.attributes_given()
        return self._bindings(names[0]) if names and not is_set else None

    def _are_imports(self, bindings: list[Any]) -> bool:
        """Whether only imports bind a name, each of what is found."""
        return all(
            leaf.get_definition().type in ("import_name", "import_from") and self.script.infer(*leaf.start_pos)
            for leaf in bindings
        )

    def _classes_of_annotation(self, annotation: Any) -> list[str]:
        """The class of the language that an annotation names, whatever its parameters."""
        head = annotation
        if head is not None and head.type == "atom_expr" and len(head.children) == 2:
            head = head.children[0] if head.children[1].children[0].value == "[" else None
        if head is None or head.type != "name" or self._bindings(head) != [] or self.star_imports():
            return []
        return [f"builtins.{head.value}"] if head.value in _PLAIN else []

    def _classes_of_call(self, binding: Any, value: Any) -> list[str]:
        """The classes of what a call in the library gives, where it depends on no argument."""
        if not self._is_certain_call(value):
            return []
        found = self.script.infer(*binding.start_pos)
        is_certain = all(each.type == "instance" and _is_stub(each.module_path) and each.full_name for each in found)
        return [each.full_name for each in found] if is_certain else []

    def _is_certain_call(self, value: Any) -> bool:
        """Whether a value is a call in the library whose result depends on no argument."""
        if value.type != "atom_expr" or value.children[-1].children[0].value != "(":
            return False
        names = _chain(_line_before(value.children[-1].children[0]))
        if not names or names[0] is not value.children[0]:
            return False
        bindings = self._bindings(names[0])
        if bindings is None or not self._are_imports(bindings) or (not bindings and self.star_imports()):
            return False
        found = self.script.infer(*names[-1].start_pos, prefer_stubs=True)
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


def _ancestor(node: Any, kinds: tuple[str, ...]) -> Any:
    node = node.parent
    while node is not None and node.type not in kinds:
        node = node.parent
    return node


def _scopes(node: Any) -> list[Any]:
    """The scopes whose names a node sees, the innermost first."""
    found = [_ancestor(node, _SCOPES)]
    while (outer := _ancestor(found[-1], _SCOPES)) is not None:
        found.append(outer)
    return [scope for at, scope in enumerate(found) if not at or scope.type != "classdef"]


def _scope_bound(leaf: Any) -> Any:
    """The scope in which a leaf binds a name; None if it binds none.

    What a comprehension binds counts for the scope around it.
    """
    definition = leaf.get_definition()
    if definition is None:
        return None
    is_own = definition.type in ("funcdef", "classdef") and definition.name is leaf
    return _ancestor(definition if is_own else leaf, _SCOPES)


def _may_bind_anywhere(leaf: Any) -> bool:
    """Whether a leaf may bind a name in another scope than its own, or where jedi reads none."""
    is_elsewhere = leaf.parent.type == "global_stmt" or _after(leaf) == ":="
    return is_elsewhere or _is_in_error(leaf) or (leaf.is_definition() and _ancestor(leaf, ("error_node",)) is not None)


def _values(names: list[Any]) -> list[str]:
    return [name.value for name in names]


def _is_in_error(leaf: Any) -> bool:
    """Whether a leaf is in what the parser could not read, and in no statement there.

    Type parameters are such too: the parser of some versions of Python reads them, and jedi none.
    """
    return _ancestor(leaf, ("error_node", "type_params", *_STATEMENTS)).type in ("error_node", "type_params")


def _after(name: Any) -> str:
    """The leaf behind a name: there is one, since a text ends with a marker."""
    return str(name.get_next_leaf().value)


def _is_attribute(leaf: Any) -> bool:
    before = leaf.get_previous_leaf()
    return before is not None and before.value == "."


def _is_asked(leaf: Any) -> bool:
    """Whether a text asks here for what an object has, or gives it an attribute."""
    if _after(leaf) == ".":
        attribute = leaf.get_next_leaf().get_next_leaf()
        return attribute.type == "name" and bool(attribute.is_definition())
    line = [each.value for each in _line_before(leaf)]
    return line[:1] == ["match"] or (line[-1:] == ["("] and bool(_ASKS & {*line[-2:-1]}))


def _is_stub(path: Path | None) -> bool:
    return path is not None and path.suffix == ".pyi" and "typeshed" in path.parts


def _class_of_literal(value: Any) -> str:
    """The class of a literal or a display; nothing if a value is neither."""
    if value.type == "number":
        return type(ast.literal_eval(value.value)).__name__
    if value.type in ("string", "strings", "fstring"):
        prefix = value.get_first_leaf().value.lower().partition('"')[0].partition("'")[0]
        return "bytes" if "b" in prefix else "str"
    if value.type != "atom" or value.children[0].value not in ("[", "{"):
        return ""
    if value.children[0].value == "[":
        return "list"
    inside = value.children[1]
    is_dict = inside.type == "dictorsetmaker" and {":", "**"} & {getattr(each, "value", "") for each in inside.children}
    return "dict" if inside.type == "operator" or is_dict else "set"


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
