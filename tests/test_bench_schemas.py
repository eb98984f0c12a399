"""The benchmark of schemas: what it says of our own engine."""

from __future__ import annotations

from bench_scripts import bench_script

import maskwright as mw
from maskwright.maskstore.vocabulary.encoders import load_encoder


def test_our_own_engine_takes_its_documents() -> None:
    vocabulary, encoder = mw.load_vocabulary("python-tiny"), load_encoder("python-tiny")
    work = [
        {"schema": {"enum": ["a", "b"]}, "documents": [[*encoder.tokenize('"a"'), vocabulary.eos[0]]]},
        {"schema": {"enum": ["a", "b"]}, "documents": [encoder.tokenize('"c"')]},
        {"schema": {"type": "nothing"}, "documents": []},
    ]
    with bench_script("schemas") as script:
        found = script.ours(vocabulary, work, lenient=False)
    assert found["schemas"] == 3 and found["refused"] == 1
    assert found["valid tokens refused"] == 2  # the second document's, the first and the second time
    assert found["compile and first mask"]["n"] == 2 and found["step, third"]["n"] > 0
