"""What an installed package can do with nothing but what comes along: masks of each kind, texts, a cache, a store's file.

python scripts/check_library.py FILE

Fails where something needs a package that is not in the base, Numba above all: the kernels have to be compiled ahead of time.
"""

import sys
from typing import Any

import numpy as np

import maskwright as mw


def written(store: Any, prefix: bytes) -> Any:
    """What a model without any sense writes, and the masks after it."""
    matcher, batch, words = store.matcher(), store.batch(2, n_threads=2), np.zeros((2, store.n_words), np.uint32)
    batch.fill(words)
    matcher.advance_bytes(prefix)
    matcher.fill(words[0])
    mw.apply_mask(np.zeros((2, store.vocabulary.size), np.float32), words)
    logits = np.linspace(0, 1, store.vocabulary.size)
    found = mw.generate(lambda tokens: logits, matcher, [1], max_tokens=20)
    list(found)
    assert words[0].any() and found.completion is not None
    return found.completion


for source, prefix in (
    ("json", b"[1, "),
    ("python", b"def f("),
    (mw.load_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}), b'{"a'),
    (mw.load_regex("[0-9]+(, [0-9]+)*"), b"12, "),
    (mw.compose('start: "<" A ">"\n%declare A', {"A": {"type": "array"}}), b"<["),
):
    assert written(mw.build_store(source, "python-tiny"), prefix).data
mw.cached_store("json", "python-tiny")
mw.cached_store("json", "python-tiny")
mw.build_store("json", "python-tiny").save(sys.argv[1])
assert mw.lint_grammar("json") is not None and mw.analyze("json").to_html()
loaded = sorted({"numba", "llvmlite", "networkx", "rich", "typer"} & set(sys.modules))
assert not loaded, loaded
