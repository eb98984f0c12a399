"""What the benchmark of Domino's grammars replays, counts and draws."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench_scripts import bench_script

import maskwright as mw

pytest.importorskip("torch")


def test_the_texts_are_of_the_grammars(tmp_path: Path) -> None:
    (tmp_path / "domino.c").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "domino.c" / f"{name}.c").write_text(f"int {name}() {{ }}")
    with bench_script("domino") as script:
        for grammar in script.GRAMMARS:
            texts, learned = script.texts_of(grammar, None, 3, 4)
            assert len(texts) == 3 and len(learned) == 4 and not set(texts) & set(learned)
            for text in texts + learned:
                matcher = mw.cached_store(grammar, "python-tiny").matcher()
                assert matcher.try_bytes(text.encode()) and matcher.is_accepting(), text
        assert script.texts_of("domino.c", tmp_path, 1, 1) == (["int a() { }"], ["int b() { }"])


def test_all_ways_write_the_same_text_and_counts_save_passes() -> None:
    with bench_script("domino") as script:
        texts, learned = script.texts_of("domino.conll", None, 1, 10)
        ways = script.of_grammar("domino.conll", script.bundled(), texts, learned, 1)
    assert all(way["same"] == way["texts"] == 1 for way in ways.values())
    passes = {name: way["model_calls"] for name, way in ways.items()}
    assert passes["without masks"] == passes["masks"] == passes["own choice first"] == ways["masks"]["tokens"]
    # the first token's mask is made for the white space before it
    assert ways["without masks"]["masks"] == 0 and ways["own choice first"]["masks"] <= 1 < ways["masks"]["masks"]
    by_s = [passes[f"counts, s = {s}"] for s in script.SPECULATED]
    assert by_s == sorted(by_s, reverse=True) and by_s[-1] < by_s[0] < passes["masks"]
    assert passes["forced tokens"] < passes["masks"]


def test_a_line_for_each_grammar_is_drawn() -> None:
    speeds = {"masks": 0.9, "counts, s = 1": 1.2, "counts, s = 2": 1.5}
    ways = {name: {"speed": speed, "calls_a_token": 1 / speed} for name, speed in speeds.items()}
    with bench_script("domino") as script:
        drawn = script.picture({name: {"json": ways, "domino.c": ways} for name in ("bundled", "int8")}, (1, 2), "foot")
    ElementTree.fromstring(drawn)
    assert len(re.findall("<title>(?:json|domino.c)</title>", drawn.replace(" ", ""))) == 2 * 3
    assert drawn.count("the paper's best, 1.7") + drawn.count("the paper&#x27;s best, 1.7") == 2
