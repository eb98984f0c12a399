"""A request's body: a JSON object with the members of its question, each at most once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maskwright.analysis.arguments import clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.nesting import read_json

_OF_ALL = ("constraint", "kind", "whitespace")
_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "about": (),
    "mask": ("before", "after", "show", "sort", "search", "first", "size"),
    "explain": ("before", "token", "byte"),
    "ending": ("before",),
    "lint": (),
    "complete": ("before", "max_tokens", "temperature", "seed"),
}
QUESTIONS = tuple(_MEMBERS)
"""What can be asked, by the last part of the path."""


def members_of(name: str, body: bytes) -> dict[str, Any]:
    """The members of a question.

    name : one of `QUESTIONS`.
    body : the JSON text.

    Raises: MaskwrightError for what is not a JSON object, or names a member twice; UnknownNameError
    for a member that the question does not have.

    >>> members_of("ending", b'{"constraint": "[a-z]+", "before": "a"}')
    {'constraint': '[a-z]+', 'before': 'a'}
    """
    try:
        found = read_json(body, object_pairs_hook=_once)
    except MaskwrightError:
        raise
    except ValueError:
        raise MaskwrightError("the body is not JSON") from None
    if not isinstance(found, dict):
        raise MaskwrightError("the body is not a JSON object")
    known = _OF_ALL + _MEMBERS[name]
    for member in found:
        if member not in known:
            raise UnknownNameError(f"{name} has no member {clip(member)}{suggestion(member[:60], known)}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for member, _ in pairs:
            if member in seen:
                raise MaskwrightError(f"the body has the member {clip(member)} twice; leave one of them out")
            seen.add(member)
    return found


__all__ = ["QUESTIONS", "members_of"]
