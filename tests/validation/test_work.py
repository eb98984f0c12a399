"""The same report however the work is spread, whatever is killed on the way, and whenever it is taken up again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from shares import share

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.analysis.loading import parse_grammar
from maskwright.maskstore.vocabulary.encoders import Encoder
from maskwright.stores.build import build_store
from maskwright.stores.store import Store
from maskwright.validation import ValidationReport, run, validate, work
from maskwright.validation.work import CRASHED


def facts(report: ValidationReport) -> dict[str, Any]:
    """The report without what may differ."""
    found = report.to_dict()
    for name in ("seconds", "resumed"):
        del found[name]
    return found


@pytest.fixture
def many(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Many texts in small batches."""
    monkeypatch.setattr(work, "BATCH_UNITS", 3)
    for i in range(40):
        (corpus / f"{i:02}.txt").write_text(f"x = y\n# {i}\n" * (i + 1) + ("x = x + y\n" if i % 7 == 0 else ""))
    return corpus


@pytest.mark.parametrize(
    "check", ["replay", *(pytest.param(check, marks=pytest.mark.slow) for check in ("sample", "streamlined", "oracle"))]
)
def test_processes_change_nothing(check: str, store: Store, many: Path, encoder: Encoder) -> None:
    pytest.importorskip("regex")
    options: dict[str, Any] = {"check": check, "tokenizer": encoder, "suffixes": [".txt"], "reference": "grep -q ="}
    if check != "replay":
        options["amount"] = {"sample": 20, "streamlined": 200, "oracle": 400}[check]
    alone = validate(store, many, **options)
    assert sum(alone.classes.values()) > 2
    assert facts(validate(store, many, jobs=2, **options)) == facts(alone)


def test_a_store_file_and_a_store_are_the_same(store: Store, many: Path, encoder: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "lines.safetensors"
    store.save(path)
    reports = [validate(one, many, tokenizer=encoder, suffixes=[".txt"]) for one in (store, path, str(path))]
    assert facts(reports[0]) == facts(reports[1]) == facts(reports[2])


def killing(tmp_path: Path, times: int) -> str:
    """A reference that kills the process that asks, the first so many times, then refuses."""
    flag = tmp_path / "kills"
    script = tmp_path / "reference.sh"
    script.write_text(
        f"n=$(cat {flag} 2>/dev/null || echo 0)\nif [ $n -lt {times} ]; then echo $((n + 1)) > {flag}; kill -9 $PPID; sleep 5; fi\nexit 1\n"
    )
    return f"sh {script}"


@pytest.mark.slow
def test_a_killed_process_loses_nothing(store: Store, many: Path, encoder: Encoder, tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"]}
    alone = validate(store, many, reference="false", **options)
    report = validate(store, many, jobs=2, reference=killing(tmp_path, 1), **options)
    assert (tmp_path / "kills").read_text() == "1\n"
    assert report.classes == alone.classes and [f.name for f in report.findings] == [f.name for f in alone.findings]


def workers_of(process: subprocess.Popen[str], n: int) -> list[int]:
    """The processes that a command has started to work for it, once there are n."""
    while process.poll() is None:
        found = []
        with contextlib.suppress(OSError):  # a thread or a child may have ended
            for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
                for child in children.read_text().split():
                    if b"maskwright.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
        if len(found) >= n:
            return found
        time.sleep(0.005)
    raise AssertionError("the command ended before it had workers")


@contextlib.contextmanager
def command(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`maskwright validate` with two workers."""
    grammar = parse_grammar("start: WORD*\nWORD: /[a-z]+/\n%ignore /[ \\n]+/", name="words")
    build_store(grammar, "python-tiny").save(tmp_path / "store.safetensors")
    texts = tmp_path / "texts"
    texts.mkdir()
    for i in range(12):
        (texts / f"{i}.txt").write_text("ab cd\n" * (i + 1))
    options = ["--suffix", ".txt", "--jobs", "2"]
    arguments = [
        sys.executable,
        "-m",
        "maskwright",
        "validate",
        str(tmp_path / "store.safetensors"),
        str(texts),
        *options,
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")


@pytest.mark.slow
@needs_proc
def test_a_worker_killed_as_it_starts_is_not_waited_for(tmp_path: Path) -> None:
    """Its start waited for ever for somebody to read what did not fit into a pipe."""
    with command(tmp_path) as process:
        os.kill(workers_of(process, 1)[0], signal.SIGKILL)
        output, _ = process.communicate(timeout=120)
        assert process.returncode in (0, 1) and "replayed" in output, output


@needs_proc
@pytest.mark.slow
def test_stopped_workers_are_not_waited_for_after_ctrl_c(tmp_path: Path) -> None:
    with command(tmp_path) as process:
        workers = workers_of(process, 1)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130, process.stdout.read() if process.stdout else ""
        assert time.monotonic() - begin < 5


@pytest.mark.slow
@needs_proc
def test_workers_end_with_a_killed_command(tmp_path: Path) -> None:
    with command(tmp_path) as process:
        workers = workers_of(process, 1)
        process.kill()
        process.wait()
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    """Workers do not begin it anew."""
    (tmp_path / "text.txt").write_text("ab")
    script = tmp_path / "script.py"
    script.write_text(
        "import maskwright as mw\n"
        "store = mw.build_store(mw.parse_grammar('start: /[a-z]+/'), 'python-tiny')\n"
        f"mw.validate(store, [{str(tmp_path / 'text.txt')!r}], reference='false', jobs=2)\n"
        "print('done')\n"
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr


@pytest.mark.slow
def test_a_text_that_kills_every_process_is_named_and_the_rest_goes_on(
    store: Store, many: Path, encoder: Encoder
) -> None:
    (many / "20.txt").write_text("killer = = x\n")
    command = "sh -c 'grep -q killer && kill -9 $PPID && sleep 5; exit 1'"
    options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"]}
    alone = validate(store, many, reference="false", **options)
    report = validate(store, many, jobs=2, reference=command, **options)
    assert report.classes[CRASHED] == 1 and not report.passed
    (crashed,) = [finding for finding in report.findings if finding.kind == CRASHED]
    assert crashed.name == str(many / "20.txt") and "killed, twice" in crashed.why
    assert sum(report.classes.values()) == sum(alone.classes.values())
    assert report.classes["replayed"] == alone.classes["replayed"]


@pytest.mark.slow
def test_errors_in_processes_are_the_users_errors(store: Store, many: Path, encoder: Encoder) -> None:
    with pytest.raises(MaskwrightError, match="cannot be run"):
        validate(store, many, tokenizer=encoder, suffixes=[".txt"], jobs=2, reference="no-such-command-here")


def test_what_is_in_the_log_is_not_done_again(
    store: Store, wrong_store: Store, many: Path, encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.jsonl"
    options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"], "resume": log}
    alone = validate(store, many, tokenizer=encoder, suffixes=[".txt"])
    n = sum(alone.classes.values())
    first = validate(store, many, limit=10, **options)
    assert first.resumed == 0 and len(log.read_bytes().splitlines()) == 10
    log.write_bytes(log.read_bytes()[:-7])  # as after a crash
    second = validate(store, many, **options)
    assert second.resumed == 9 and facts(second) == facts(alone)
    # now nothing is left to do
    monkeypatch.setattr(run, "run_here", lambda setup, units: ((1 // 0, {}) for _ in units))
    third = validate(store, many, **options)
    assert third.resumed == n and facts(third) == facts(alone)
    monkeypatch.undo()
    # another check, reference, store or text is another result
    for changed in ({"check": "streamlined"}, {"reference": "false"}):
        assert validate(store, many, limit=3, **options, **changed).resumed == 0
    assert validate(wrong_store, many, limit=3, **options).resumed == 0
    with monkeypatch.context() as patch:
        patch.setattr(run, "version", lambda: "another")
        assert validate(store, many, limit=3, **options).resumed == 0
    (many / "00.txt").write_text("x = other\n")
    assert validate(store, many, limit=3, **options).resumed == 2


def test_the_log_of_a_sample(store: Store, tmp_path: Path) -> None:
    options: dict[str, Any] = {"check": "sample", "budget": 5, "reference": "false", "resume": tmp_path / "log.jsonl"}
    whole = validate(store, amount=6, **(options | {"resume": None}))
    validate(store, amount=4, **options)
    report = validate(store, amount=6, **options)
    assert report.resumed == 4 and facts(report) == facts(whole)
    assert validate(store, amount=6, seed=1, **options).resumed == 0


@pytest.mark.parametrize(("jobs", "n_times"), share([(1, 2), (2, 1), (2, 2)], 1))
def test_an_interrupted_run_keeps_what_was_done(
    store: Store, many: Path, encoder: Encoder, tmp_path: Path, jobs: int, n_times: int
) -> None:
    log = tmp_path / "log.jsonl"
    done: list[int] = []

    def stop(what: str, n: int, total: int) -> None:
        done.append(n)
        if len(done) == 12:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"], "resume": log}
    for _ in range(n_times):
        done.clear()
        with pytest.raises(KeyboardInterrupt):
            validate(store, many, jobs=jobs, progress=stop, **options)
    kept = len(log.read_bytes().splitlines())
    assert kept >= 12
    report = validate(store, many, **options)
    assert report.resumed == kept
    assert facts(report) == facts(validate(store, many, tokenizer=encoder, suffixes=[".txt"]))


@pytest.mark.slow
def test_ctrl_c_on_the_command_line(store: Store, tokenizer: str, tmp_path: Path) -> None:
    """The whole process group gets the signal, as from a terminal, when the first of ten batches is kept."""
    path, log, many = tmp_path / "lines.safetensors", tmp_path / "log.jsonl", tmp_path / "many"
    store.save(path)
    many.mkdir()
    for i in range(10):
        (many / f"{i}.txt").write_text("x = y\n" * (work.BATCH_WEIGHT // 6 + 1))
    command = [
        sys.executable, "-m", "maskwright", "validate", str(path), str(many), "--suffix", ".txt", "-t", tokenizer,
    ]  # fmt: skip
    command += ["--jobs", "2", "--resume", str(log), "--reference", "sh -c 'sleep 3; exit 1'"]
    # a process started in the background may have been told to ignore the signal, and its children would too
    obey = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=obey
    )
    until = time.monotonic() + 120
    while time.monotonic() < until and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 130, errors
    assert f"interrupted; what was done is kept in {log}" in errors and "Traceback" not in errors
    assert len(log.read_bytes().splitlines()) >= 1


def test_what_does_not_fit_together(store: Store, many: Path, encoder: Encoder) -> None:
    for options, message in [
        ({"check": "nothing"}, "no check is named 'nothing': expected replay, sample"),
        ({"jobs": 0}, "jobs is 0; expected at least 1"),
        ({"cuts": -1}, "cuts is -1"),
        ({"jobs": 2, "scheduler": "tcp://x"}, "give one of the two"),
        ({"colour": "red"}, "no option 'colour'"),
        ({"check": "sample", "next_token": max, "jobs": 2}, "a model is asked in this process"),
        ({"check": "sample", "next_token": max, "resume": "log"}, "a model is asked in this process"),
        ({"reference_seconds": -1}, "time limit is -1 s"),
    ]:
        with pytest.raises(MaskwrightError, match=message):
            validate(store, many, tokenizer=encoder, suffixes=[".txt"], **options)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a real Dask cluster of two worker processes.

    By default a LocalCluster gives up a worker that is being started again 15 s after it was lost before.
    """
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as cluster,
    ):
        yield cluster.scheduler_address


class TestCluster:
    """On a cluster."""

    @pytest.mark.slow
    def test_the_same_results(self, address: str, store: Store, many: Path, encoder: Encoder) -> None:
        options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"], "reference": "grep -q ="}
        assert facts(validate(store, many, scheduler=address, **options)) == facts(validate(store, many, **options))
        options |= {"check": "streamlined", "amount": 200}
        assert facts(validate(store, many, scheduler=address, **options)) == facts(validate(store, many, **options))

    @pytest.mark.slow
    def test_a_killed_worker_loses_nothing(
        self, address: str, store: Store, many: Path, encoder: Encoder, tmp_path: Path
    ) -> None:
        options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"]}
        alone = validate(store, many, reference="false", **options)
        report = validate(store, many, scheduler=address, reference=killing(tmp_path, 2), **options)
        assert (tmp_path / "kills").read_text() == "2\n"
        assert report.classes == alone.classes and [f.name for f in report.findings] == [f.name for f in alone.findings]

    @pytest.mark.slow
    def test_a_worker_killed_from_outside(self, address: str, store: Store, many: Path, encoder: Encoder) -> None:
        distributed = pytest.importorskip("distributed")
        killed: list[int] = []
        options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"]}

        def kill(what: str, done: int, total: int) -> None:
            if done and not killed:
                with distributed.Client(address, set_as_default=False) as client:
                    killed.extend(list(client.run(os.getpid, on_error="ignore").values())[:1])
                os.kill(killed[0], signal.SIGKILL)

        slow = "sh -c 'sleep 0.2; exit 1'"
        alone = validate(store, many, reference="false", **options)
        report = validate(store, many, scheduler=address, reference=slow, progress=kill, **options)
        assert killed and report.classes == alone.classes

    @pytest.mark.slow
    def test_a_text_that_kills_every_worker(self, address: str, store: Store, many: Path, encoder: Encoder) -> None:
        (many / "20.txt").write_text("killer = = x\n")
        command = "sh -c 'grep -q killer && kill -9 $PPID && sleep 5; exit 1'"
        report = validate(store, many, tokenizer=encoder, suffixes=[".txt"], scheduler=address, reference=command)
        assert report.classes[CRASHED] == 1
        assert [f.name for f in report.findings if f.kind == CRASHED] == [str(many / "20.txt")]

    @pytest.mark.slow
    def test_a_text_that_waits_beside_a_killer(self, address: str, store: Store, many: Path, encoder: Encoder) -> None:
        """Dask blames each task that was assigned to a lost worker, also one that had not begun."""
        for name in ("20.txt", "21.txt", "22.txt"):
            (many / name).write_text(f"killer_{name[:2]} = = x\n")
        command = "sh -c 'grep -q killer && kill -9 $PPID && sleep 5; sleep 0.3; exit 1'"
        report = validate(store, many, tokenizer=encoder, suffixes=[".txt"], scheduler=address, reference=command)
        assert report.classes[CRASHED] == 3
        assert {Path(f.name).stem for f in report.findings if f.kind == CRASHED} == {"20", "21", "22"}

    def test_no_worker(self, store: Store, many: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(work, "WORKER_SECONDS", 1)
        options: dict[str, Any] = {"tokenizer": encoder, "suffixes": [".txt"]}
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
            pytest.raises(MaskwrightError, match="the Dask cluster has had no worker for 1 s: start workers"),
        ):
            validate(store, many, scheduler=cluster.scheduler_address, **options)

    def test_no_scheduler(self, store: Store, many: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("distributed")
        monkeypatch.setattr(work, "CONNECT_SECONDS", 1)
        with pytest.raises(MaskwrightError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
            validate(store, many, tokenizer=encoder, suffixes=[".txt"], scheduler="tcp://127.0.0.1:9")

    def test_without_distributed(
        self, store: Store, many: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'maskwright\[cluster\]'"):
            validate(store, many, tokenizer=encoder, suffixes=[".txt"], scheduler="tcp://127.0.0.1:9")
