"""Records by what they are of, and single facts in them."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parents[1] / "record"
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(.+)\.json")


@cache
def newest() -> dict[str, Path]:
    """The last record of each kind, by kind: `names` for DATE-names.json."""
    found = {}
    for path in sorted(RECORDS.glob("*.json")):
        name = _NAME.fullmatch(path.name)
        assert name, f"a record is named DATE-KIND.json: {path.name}"
        found[name[2]] = path
    return found


@dataclass(frozen=True)
class Facts:
    """A record's facts, by paths such as `cells/work=json,vocabulary=32000/engines/0/mean`."""

    kind: str
    facts: Any

    def __call__(self, path: str) -> Any:
        """The fact at a path of keys, indices, and `key=value` for the one member of a list that has them."""
        fact = self.facts
        for step in path.split("/"):
            if isinstance(fact, list) and "=" in step:
                wanted = [pair.split("=") for pair in step.split(",")]
                (fact,) = (one for one in fact if all(str(one[key]) == value for key, value in wanted))
            else:
                fact = fact[int(step) if isinstance(fact, list) else step]
        return fact

    def at(self, path: str) -> Facts:
        """The facts below a path."""
        return Facts(self.kind, self(path))


def record(kind: str) -> Facts:
    """The newest record of a kind."""
    return Facts(kind, json.loads(newest()[kind].read_text(encoding="utf-8")))


def constant(path: str, name: str) -> Any:
    """A constant of a module, or a default of a class, whose value is written out."""
    tree = ast.parse((RECORDS.parents[1] / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            return eval(compile(ast.Expression(node.value), path, "eval"), {})
    raise KeyError(f"{path} has no {name}")
