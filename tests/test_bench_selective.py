"""What the benchmark of selective multiplication counts and draws, without a model."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from bench_scripts import bench_script

import maskwright as mw

pytest.importorskip("torch")


def test_steps_are_counted_and_drawn() -> None:
    rows = np.array([[1, 2.0, 4.0, 0.5], [3, 2.0, 4.0, 0.6], [900, 2.0, 4.0, 4.1], [2, 2.0, 4.0, 0.5]])
    selected = rows[:, 0] <= 8
    with bench_script("selective") as script:
        per_text = script.per_text(rows, selected, [3, 1])
        by_ids = script.by_ids(rows, selected)
        facts = {"steps": 4, "steps_selected": 3, "head_speedup": 2.8, "per_step": rows.tolist()}
        schema = {**facts, "per_text": per_text, "by_ids": json.loads(json.dumps(by_ids))}
        head = {"batch": 1, "full_ms": 4.0, "selective_ms": [[1, 0.5], [2, 0.5], [4, 0.6]], "crossover": 4}
        drawn = script.picture({"head": [head], "schemas": {"character": schema}}, "foot")
    assert per_text == [[3, 2, 6.0, 12.0, 5.2], [1, 1, 2.0, 4.0, 0.5]]
    counts = [(group["ids_at_least"], group["steps"], group["selected"]) for group in by_ids]
    assert counts == [(1, 1, 1), (2, 2, 2), (512, 1, 0)]
    assert by_ids[1]["full"] == {"6": 2} and by_ids[1]["ours"] == {"2.5": 1, "2.6": 1}
    ElementTree.fromstring(drawn)
    for title in ("time of a token in each of 2 texts", "time of a token by number of allowed tokens"):
        assert f"character: {title}" in drawn
    assert len(re.findall('fill-opacity="0.5"', drawn)) == 4  # a dot for each text and product


def test_the_texts_are_of_the_schemas() -> None:
    vocabulary = mw.load_vocabulary("python-tiny")
    with bench_script("selective") as script:
        schemas = {name: script.store_of(schema, vocabulary) for name, schema in script.SCHEMAS.items()}
        rng = script.random.Random(1)
        for name, store in schemas.items():
            for _ in range(5):
                matcher = store.matcher()
                text = json.dumps(getattr(script, name)(rng))
                assert matcher.try_bytes(text.encode()) and matcher.is_accepting(), text
            assert not store.matcher().try_bytes(b'{"more"')
