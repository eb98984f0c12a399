"""The GPU benchmark without a GPU: it says so, and all of its parts run on the CPU with tiny shapes and see what is planted for them."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from paths import ROOT

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

BENCH = ROOT / "reports" / "bench"
NAMES = ("apply", "check", "chart", "clock", "decode", "engines", "model", "step", "work")
CPU = torch.device("cpu")
TINY = ["--device", "cpu", "--tiny", "--engines", ""]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The script as `gpu`, its modules by the rest of their names."""
    before = set(sys.modules)
    threads = torch.get_num_threads()
    sys.path.insert(0, str(BENCH))
    modules = {name: importlib.import_module(f"gpu_{name}") for name in NAMES}
    yield SimpleNamespace(gpu=importlib.import_module("gpu"), common=importlib.import_module("common"), **modules)
    sys.path.remove(str(BENCH))
    torch.set_num_threads(threads)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCH)):
            del sys.modules[name]


@pytest.fixture(scope="module")
def folder(bench: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What --prepare writes."""
    path = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            bench.gpu.main([*TINY, "--prepare", str(path)])
        assert "json, V = 257: " in said.getvalue()
        yield path


@pytest.fixture(scope="module")
def facts(bench: Any, folder: Path) -> dict[str, Any]:
    """What all parts find."""
    out = folder / "facts.json"
    with contextlib.redirect_stdout(io.StringIO()) as said:
        bench.gpu.main([*TINY, "--work", str(folder), "--json", str(out)])
    for part in ("apply: at worst", "step: json", "decode: json", "check: json"):
        assert part in said.getvalue()
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.fixture
def work(bench: Any, folder: Path) -> Any:
    return bench.work.load(folder, "json", "bytes")


@pytest.mark.slow
def test_without_a_gpu_it_says_so_and_records_nothing() -> None:
    def written() -> list[tuple[Path, float]]:
        paths = [*BENCH.parent.glob("gpu_*.svg"), *BENCH.parent.glob("record/*-gpu*.json")]
        return [(path, path.stat().st_mtime) for path in sorted(paths)]

    before = written()
    run = subprocess.run(
        [sys.executable, str(BENCH / "gpu.py")],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "not measured yet: there is no CUDA device" in run.stdout
    assert written() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--parts", "apply,bake"], "no part bake"),
        (["--engines", "nobody"], "no peer nobody"),
        (["--device", "cpu"], "wants --tiny"),
    ],
)
def test_what_cannot_be_run_is_said(
    bench: Any, given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        bench.gpu.main(given)
    assert stopped.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.slow
def test_apply_kernels_are_timed_and_right(facts: dict[str, Any]) -> None:
    shapes = facts["parts"]["apply"]["shapes"]
    assert {shape["rows"] for shape in shapes} == {"real", "single", "dense"}
    for shape in shapes:
        for name in ("pass", "ours rows", "ours words"):
            candidate = shape["candidates"][name]
            assert candidate["status"] == "measured" and candidate["us"]["n"] == 3 and candidate["us"]["least"] > 0
    assert facts["parts"]["apply"]["worst_of_pass"]["ratio"] > 0


def test_the_step_alone_reads_the_texts(facts: dict[str, Any]) -> None:
    (cell,) = facts["parts"]["step"]["cells"]
    for batch in cell["batches"]:
        assert batch["forced_refused"] == batch["slots_not_reading"] == 0
        assert batch["memory"]["tensors_bytes"] > batch["memory"]["table_bytes"] > 0
        assert batch["memory"]["slot_bytes"] > 32_000 and batch["made_s"] >= 0
        for part in ("step", "advance", "find", "apply"):
            assert batch[f"{part}_cold_us"]["n"] == batch[f"{part}_warm_us"]["n"] == batch["steps"]
    assert cell["resident_memory"]["rows_bytes"] == 4 * cell["resident_memory"]["rows"] * 9


def test_decoding_loops_run_the_same_texts(facts: dict[str, Any]) -> None:
    (cell,) = facts["parts"]["decode"]["cells"]
    assert cell["columns"] > 257
    for batch in cell["batches"]:
        loops = batch["loops"]
        assert set(loops) == {"unconstrained", "resident rows", "GpuBatch", "GpuBatch, forked"}
        for name, loop in loops.items():
            assert loop["status"] == "measured" and loop["steps"] == batch["steps"] and loop["forced_refused"] == 0
            assert loop["tokens_per_s"] == pytest.approx(batch["batch"] * 1e6 / loop["step_us"]["median"], rel=3e-3)
            if name != "unconstrained":
                assert loop["sampled_outside_masks"] == loop["sampled_unlike_resident"] == 0
        assert loops["GpuBatch"]["slots_not_reading"] == loops["resident rows"]["texts_lost"] == 0
        assert loops["GpuBatch, forked"]["slots_not_reading"] == 0
        assert loops["unconstrained"]["overhead_percent"]["median"] == 0


def test_the_check_compares_every_row(facts: dict[str, Any]) -> None:
    (cell,) = facts["parts"]["check"]["cells"]
    assert cell["wrong"] == 0 and cell["tokens"] >= 3000 and cell["rows"] > 2500 and cell["admitted"] > 8


@pytest.fixture
def lively(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Namespace:
    """Texts come and go, and end, more often."""
    monkeypatch.setattr(bench.check, "MEAN_STAY", 30)
    monkeypatch.setattr(bench.check, "ILLEGAL_EVERY", 40)
    return Namespace(check_tokens=1500, check_batch=6, seed=1)


def test_the_check_admits_evicts_ends_and_flags(bench: Any, folder: Path, lively: Namespace) -> None:
    short = bench.work.build("json", "bytes", 0, "stdlib")
    texts = (b"[1, 2]", b'{"a": [true, null]}', b'"' + b"x" * 50 + b'"')
    documents = [bench.work.Document(str(i), list(text), {}) for i, text in enumerate(texts)]
    found = bench.check.check(bench.work.GpuWork("json", "bytes", short.store, documents), lively, CPU)
    assert found["wrong"] == 0, found["first_wrong"]
    for what in ("admitted", "from_a_matcher", "ended", "flagged", "idle"):
        assert found[what] > 5, what


def test_the_check_sees_a_wrong_row_of_gpu_batch(
    bench: Any, work: Any, lively: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.decoding.gpu import GpuBatch

    original = GpuBatch.find_rows

    def wrong(self: Any) -> None:
        original(self)
        self.words[3, 2] ^= 16

    monkeypatch.setattr(GpuBatch, "find_rows", wrong)
    found = bench.check.check(work, lively, CPU)
    assert found["wrong"] > 100 and {place["slot"] for place in found["first_wrong"]} == {3}
    assert all("GpuBatch" in place["wrong"] and "resident rows" not in place["wrong"] for place in found["first_wrong"])


def test_the_check_sees_a_wrong_resident_row_and_a_flag_that_is_missing(
    bench: Any, work: Any, lively: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwright.decoding.gpu import GpuBatch
    from maskwright.decoding.logits import ResidentRows

    ids, states = ResidentRows.ids, GpuBatch.states

    def wrong_ids(self: Any, *given: Any, **named: Any) -> Any:
        found = ids(self, *given, **named)
        found[1] = 0
        return found

    monkeypatch.setattr(ResidentRows, "ids", wrong_ids)
    found = bench.check.check(work, lively, CPU)
    assert {(place["slot"], *place["wrong"]) for place in found["first_wrong"]} == {(1, "resident rows")}
    monkeypatch.setattr(ResidentRows, "ids", ids)
    monkeypatch.setattr(GpuBatch, "states", lambda self: ["reading" for _ in states(self)])
    found = bench.check.check(work, lively, CPU)
    assert found["wrong"] >= found["flagged"] > 0 and found["first_wrong"][0]["wrong"] == ["state"]


def test_a_difference_is_an_exit_code(
    bench: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = {"work": "json", "tokenizer": "bytes", "batch": 1, "tokens": 1, "admitted": 1, "flagged": 0, "seconds": 0}
    found = {**cell, "wrong": 1, "first_wrong": [{"slot": 7}]}
    monkeypatch.setattr(bench.check, "check", lambda *given: found)
    with pytest.raises(SystemExit, match="rows of the GPU engine differ"):
        bench.gpu.main([*TINY, "--work", str(folder), "--parts", "check"])
    assert "{'slot': 7}" in capsys.readouterr().out

    def broken(*given: Any) -> Any:
        raise RuntimeError("no more memory")

    monkeypatch.setattr(bench.check, "check", broken)
    with pytest.raises(SystemExit, match=r"no record was written.*RuntimeError: no more memory"):
        bench.gpu.main([*TINY, "--work", str(folder), "--parts", "check"])


def test_a_kernel_that_forgets_a_logit_is_wrong(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(logits: Any, words: Any, row_ids: Any, rows: Any) -> Any:
        run = bench.apply.ours_rows(logits, words, row_ids, rows)

        def apply() -> None:
            kept = logits[1, 7].clone()
            run()
            logits[1, 7] = kept

        return apply

    monkeypatch.setitem(bench.apply.CPU, "forgets", forgets)
    rows = bench.apply.rows_of("single", 100, np.zeros((0, 0), np.int32))
    rows[:, 0] &= ~np.int32(1 << 7)
    found = bench.apply.measure_shape(2, 100, torch.float32, "single", rows, CPU, 3, lambda: None)
    assert found["candidates"]["forgets"]["status"] == "wrong"
    assert found["candidates"]["ours rows"]["status"] == "measured"


def test_rows_and_the_definition_of_masking(bench: Any) -> None:
    real = np.array([[5, -1]], np.int32)
    for kind in bench.apply.KINDS:
        rows = bench.apply.rows_of(kind, 100, real)
        bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(bool)
        assert rows.shape[1] == 4 and not bits[:, 100:].any()
        if kind == "single":
            assert (bits.sum(axis=1) == 1).all()
        logits = torch.randn(len(rows), 100)
        found = bench.apply.expected(logits, torch.from_numpy(rows))
        assert torch.equal(torch.isneginf(found), torch.from_numpy(~bits[:, :100]))
        assert torch.equal(found[torch.from_numpy(bits[:, :100])], logits[torch.from_numpy(bits[:, :100])])
    assert rows_as_list(bench.apply.rows_of("real", 100, real)) == [[5, -1, 5, 15]]


def rows_as_list(rows: Any) -> list[list[int]]:
    found: list[list[int]] = rows.tolist()
    return found


@pytest.mark.slow
def test_forced_tokens_that_a_loop_masks_are_counted(
    bench: Any, work: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mask_all_but_two(self: Any, logits: Any) -> None:
        logits[:, 2:] = -torch.inf

    monkeypatch.setattr(bench.engines.Resident, "apply", mask_all_but_two)
    out = tmp_path / "facts.json"
    with contextlib.redirect_stdout(io.StringIO()):
        bench.gpu.main([*TINY, "--work", str(folder), "--parts", "decode", "--batches", "2", "--json", str(out)])
    loops = json.loads(out.read_text())["parts"]["decode"]["cells"][0]["batches"][0]["loops"]
    wrong, right = loops["resident rows"], loops["GpuBatch"]
    assert wrong["forced_refused"] == wrong["sampled_outside_masks"] == 2 * wrong["steps"]
    assert right["forced_refused"] == right["sampled_outside_masks"] == 0
    assert right["sampled_unlike_resident"] == 2 * right["steps"]


def test_places_are_where_all_engines_can_go_on(bench: Any, work: Any) -> None:
    def with_documents(*documents: tuple[int, dict[str, int]]) -> Any:
        made = [bench.work.Document(str(i), list(range(n)), taken) for i, (n, taken) in enumerate(documents)]
        return bench.work.GpuWork("json", "bytes", work.store, made)

    some = with_documents((50, {"a": 50, "b": 3}), (40, {"a": 40, "b": 40}), (9, {"a": 9, "b": 9}))
    found, may_refuse = bench.work.places(some, 200, 10, 20, seed=0)
    assert may_refuse == set() and {len(tokens) for tokens, _ in found} == {40}
    assert {begun for _, begun in found} == set(range(21))
    found, _ = bench.work.places(some, 200, 38, 20, seed=0)
    assert {begun for _, begun in found} == {0, 1}
    found, may_refuse = bench.work.places(some, 20, 45, 20, seed=0)
    assert may_refuse == {"b"} and {len(tokens) for tokens, _ in found} == {50}
    with pytest.raises(SystemExit, match="no document has 61 tokens"):
        bench.work.places(some, 1, 60, 20, seed=0)


def test_one_record_from_several_runs(
    bench: Any, facts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = tmp_path / "reports"
    (reports / "record").mkdir(parents=True)
    monkeypatch.setattr(bench.common, "RECORDS", reports / "record")
    monkeypatch.setattr(bench.gpu, "HERE", reports / "bench")
    for number, parts in enumerate((("apply", "decode"), ("decode", "check"))):
        some = {**facts, "parts": {part: copy.deepcopy(facts["parts"][part]) for part in parts}}
        if number == 0:  # the second batch size was not reached
            (cell,) = some["parts"]["decode"]["cells"]
            cell["batches"][1] = {"batch": cell["batches"][1]["batch"], "status": "not measured yet", "reason": "over"}
        (tmp_path / f"{number}.json").write_text(json.dumps(some))
    with contextlib.redirect_stderr(io.StringIO()):
        bench.gpu.main(["--record", str(tmp_path / "0.json"), str(tmp_path / "1.json")])
    (record,) = (reports / "record").glob("*-gpu.json")
    found = json.loads(record.read_text())
    assert set(found["parts"]) == {"apply", "decode", "check"}
    assert found["parts"]["decode"]["cells"] == facts["parts"]["decode"]["cells"]
    assert found["device"]["name"] == "CPU" and found["seconds"]["decode"] == pytest.approx(
        2 * facts["seconds"]["decode"]
    )
    for part in ("apply", "decode"):
        picture = ElementTree.parse(reports / f"gpu_{part}.svg").getroot()
        curves = [node for node in picture.iter() if node.get("class") == "curve"]
        assert len(curves) > 3 and "CPU" in "".join(picture.itertext())
    other = {**facts, "device": {**facts["device"], "name": "another"}}
    (tmp_path / "other.json").write_text(json.dumps(other))
    with pytest.raises(SystemExit, match=r"other\.json is of another device"):
        bench.gpu.main(["--record", str(tmp_path / "0.json"), str(tmp_path / "other.json")])
