"""A grammar, and changes of a model's folder, for the tests of `maskwright serve-check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GRAMMAR = 'start: "[" ("true" ",")* "]"\n'


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
