"""The generation loop under a schema: what comes out is an instance, within its budget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonschema
import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.errors import IllegalTokenError, LimitError, MaskwrightError
from maskwright.completion import complete
from maskwright.stores.schema_store import SchemaStore

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3}, "size": {"type": "integer"}},
    "required": ["name", "size"],
    "additionalProperties": False,
}


def store(whitespace: str = "any") -> SchemaStore:
    return mw.build_store(mw.load_schema(SCHEMA, whitespace=whitespace), "python-tiny")


def random_model(seed: int) -> Any:
    size = store().vocabulary.size

    def logits(tokens: Sequence[int]) -> Any:
        return np.random.default_rng((seed, len(tokens))).normal(size=size).astype(np.float32)

    return logits


@pytest.mark.parametrize("budget", [24, 40])
def test_completions_are_instances_within_the_budget(budget: int) -> None:
    for seed in range(5):
        found = mw.generate(random_model(seed), store("compact").matcher(), [1], max_tokens=budget).run()
        jsonschema.validate(json.loads(found.data), SCHEMA)
        assert found.is_complete and len(found.tokens) <= budget


def test_stop_strings_and_prompts() -> None:
    matcher = store().matcher()
    matcher.advance_bytes(b'{"name": "ab')
    found = mw.generate(random_model(1), matcher, [1], max_tokens=30, stop=['"']).run()
    assert found.reason in ("stop", "tokens")
    jsonschema.validate(json.loads(b'{"name": "ab' + found.data), SCHEMA)


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(LimitError, match="max_tokens is 2, but the shortest ending of the text takes"):
        mw.generate(random_model(0), store().matcher(), [1], max_tokens=2).run()


def test_what_is_no_matcher_is_refused() -> None:
    with pytest.raises(MaskwrightError, match=r"matcher is .*; expected a Matcher, or None"):
        mw.generate(random_model(0), store(), [1])  # type: ignore[arg-type]
    finished = store().matcher()
    finished.advance_bytes(b'{"name":"abc","size":1}')
    finished.advance(store().vocabulary.eos[0])
    with pytest.raises(MaskwrightError, match="the matcher's text has ended"):
        mw.generate(random_model(0), finished, [1])


def test_the_bundled_model_completes_an_instance() -> None:
    pytest.importorskip("transformers")
    begin = '{"name": "'
    found = complete(store(), begin, max_tokens=30)
    jsonschema.validate(json.loads(begin.encode() + found.data), SCHEMA)
    with pytest.raises(IllegalTokenError, match=r"'n' cannot stand at byte 1, line 1:2"):
        complete(store(), "{name", max_tokens=30)
