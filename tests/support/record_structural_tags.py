"""Record what xgrammar allows in random structural tags: `python tests/support/record_structural_tags.py`.

Needs xgrammar. Writes tests/data/cases/structural_tag_masks.json: for each random tag of
`naive_structural_tags` a walk of tokens, with the mask before each of them in hexadecimal, bit i for
token i. A walk ends where xgrammar's mask is not the definition's; `differs` then says why.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "naive"))  # as a script
from naive_structural_tags import VOCABULARY, Text, random_tag

DATA = Path(__file__).parents[1] / "data" / "cases" / "structural_tag_masks.json"


def main() -> None:
    import xgrammar

    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(VOCABULARY, stop_token_ids=[0]), cache_enabled=False)
    found = []
    for seed in range(120):
        rng = random.Random(seed)
        form = random_tag(rng)
        tag = {"type": "structural_tag", "format": form}
        theirs = xgrammar.GrammarMatcher(compiler.compile_structural_tag(json.dumps(tag)))
        walk: list[list[Any]] = []
        ours, differs, was_twice = Text(form), "", False
        for _ in range(12):
            bitmask = xgrammar.allocate_token_bitmask(1, len(VOCABULARY))
            theirs.fill_next_token_bitmask(bitmask)
            mask = int(bitmask[0, 0]) & (1 << len(VOCABULARY)) - 1
            allowed = ours.allowed()
            if mask != sum(1 << token for token in allowed):
                differs = "text and token" if was_twice else "trigger begins an end" if _has_such(form) else "shared"
                walk.append([f"{mask:x}", -1])
                break
            going_on = sorted(allowed - {0})
            token = rng.choice(going_on) if going_on else -1
            walk.append([f"{mask:x}", token])
            if token < 0:
                break
            was_twice = was_twice or ours.is_twice(token)
            assert theirs.accept_token(token)
            ours.advance(token)
        found.append({"format": form, "walk": walk, "differs": differs})
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in found)
    DATA.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(len(found), "tags,", sum(bool(one["differs"]) for one in found), "differ")


def _has_such(form: Any, ends: tuple[str, ...] = ()) -> bool:
    """Whether a trigger is the beginning of the end of the tag around it."""
    if isinstance(form, list):
        return any(_has_such(one, ends) for one in form)
    if not isinstance(form, dict):
        return False
    if form.get("type") == "tag":
        said = form["end"] if isinstance(form["end"], list) else [form["end"]]
        ends = tuple(one for one in said if isinstance(one, str))
    triggers = tuple(form.get("triggers", ()))
    if triggers and any(end.startswith(triggers) for end in ends):
        return True
    return any(_has_such(one, ends) for one in form.values())


if __name__ == "__main__":
    main()
