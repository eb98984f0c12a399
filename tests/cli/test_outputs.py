"""What commands do when their output cannot be written, and what a write that fails leaves behind: the old file, whole, or none."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from forked import Commands
from shares import share
from typer.testing import CliRunner

from maskwright.analysis.errors import MaskwrightError, StoreError
from maskwright.analysis.loading import load_grammar, parse_grammar
from maskwright.cli import app
from maskwright.cli.common import check_writable
from maskwright.maskstore.file import writing
from maskwright.maskstore.file.fileformat import save_store
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store, load_store

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")

RUN = "from maskwright.cli import main; main()"
VOCABULARY = Vocabulary("abc", (b"a", b"b", b"aa", b""), {3: "</s>"}, (3,))


def store(text: str = 'start: "a" start "b" | "a" "b"') -> Store:
    return compile_store(parse_grammar(text, name="pairs"), VOCABULARY)


def command(*words: str, before: str = "", **options: Any) -> Any:
    """The command line in a process of its own. before : statements to run first."""
    environment = {**os.environ, "MASKWRIGHT_CACHE": options.pop("cache", ""), "COLUMNS": "100"}
    run = [sys.executable, "-c", f"{before}\n{RUN}", *words]
    return subprocess.run(run, stderr=subprocess.PIPE, text=True, timeout=500, env=environment, **options)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    folder.chmod(0o700)
    save_store(store(), folder / "pairs.safetensors")
    (folder / "pairs.lark").write_text('start: "a" start "b" | "a" "b"\n')
    (folder / "text").write_text("aabb")
    return folder


QUICK = (["info", "pairs.safetensors"], ["--help"])
ALL = (
    ["lint", "pairs.lark"],
    ["lint", "pairs.lark", "--json", "-"],
    ["analyze", "pairs.lark"],
    ["explain", "pairs.safetensors", "--text", "text"],
    ["export", "json", "-t", "python-tiny", "-o", "out.safetensors"],
    ["validate", "json", "text", "-t", "python-tiny"],
    ["complete", "json", "[1, ", "--max-tokens", "20"],
    *([name, "--help"] for name in ("analyze", "audit", "complete", "explain", "export", "info", "lint", "validate")),
)


def check_full(words: list[str], files: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = command(*words, stdout=full, cwd=files, cache=str(tmp_path / "cache"))
    assert done.returncode == 2, (words, done.returncode, done.stderr)
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert "error: standard output cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("words", share(QUICK, 1), ids=" ".join)
def test_a_full_disk_is_an_error(words: list[str], files: Path, tmp_path: Path) -> None:
    check_full(words, files, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_full_disk_is_an_error_for_every_command(words: list[str], files: Path, tmp_path: Path) -> None:
    check_full(words, files, tmp_path)


def test_nobody_reads_any_more(files: Path) -> None:
    """`maskwright ... | head -0` is quiet; standard output that is closed from the start is an error."""
    read, write = os.pipe()
    os.close(read)
    done = command("info", "pairs.safetensors", stdout=write, cwd=files)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
    done = command("info", "pairs.safetensors", before="", cwd=files, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (2, "error: standard output is closed\n")


def test_where_nothing_can_be_written_is_said_before_the_build(files: Path, tmp_path: Path, commands: Commands) -> None:
    for target, said in (
        (str(tmp_path), "it exists and is not a file; give a file's path"),
        ("/dev/full", "it exists and is not a file"),
        (str(tmp_path / "no" / "x"), "there is no folder"),
        (str(files / "text" / "x"), "there is no folder"),
        ("/proc/1/x.safetensors", "cannot "),
    ):
        # no such tokenizer: it would be said if anything had been read
        done = commands.run("export", "json", "-t", "none-such", "-o", target, folder=files)
        assert done.returncode == 2 and said in done.stderr.replace("\n", " "), (target, done.stderr)


def test_a_folder_that_refuses_is_said_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreError, match=r"cannot write .*x: you may not write in .*; check its permissions"):
        save_store(store(), tmp_path / "x")
    with pytest.raises(MaskwrightError, match=r"x cannot be written: you may not write in"):
        check_writable(tmp_path / "x")


@pytest.mark.parametrize("what", ["write", "fsync", "replace", "memory", "interrupt"])
def test_a_write_that_fails_leaves_the_old_file(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.safetensors"
    save_store(store(), path)
    old = path.read_bytes()
    errors: dict[str, BaseException] = {"memory": MemoryError(), "interrupt": KeyboardInterrupt()}
    error = errors.get(what, OSError(28, "No space left on device"))

    def fails(*_: Any) -> None:
        raise error

    if what == "write":
        monkeypatch.setattr(writing, "open", lambda handle, _: Full(handle, "wb"), raising=False)
    else:
        monkeypatch.setattr(os, "replace" if what == "replace" else "fsync", fails)
    with pytest.raises(type(errors.get(what, StoreError()))) as raised:
        save_store(store('start: "a"'), path)
    if what not in errors:
        assert "cannot write" in str(raised.value)
    monkeypatch.undo()
    assert [one.name for one in tmp_path.iterdir()] == [path.name] and path.read_bytes() == old
    assert isinstance(load_store(path), Store)


class Full(io.FileIO):
    """A file on a full disk, which takes the first bytes."""

    def write(self, data: Any) -> int:
        super().write(data[:100])
        raise OSError(28, "No space left on device")


def limited(kind: str, n: int) -> str:
    return f"import resource; resource.setrlimit(resource.{kind}, ({n}, {n}))"


def words_of_export(files: Path, target: Path) -> list[str]:
    return ["export", "pairs.lark", "-t", str(files / "tokens.json"), "-o", str(target)]


@pytest.fixture(scope="module")
def exporting(files: Path) -> Path:
    import json

    model = {"type": "BPE", "vocab": {chr(97 + i): i for i in range(26)}, "merges": []}
    model["unk_token"] = "z"
    (files / "tokens.json").write_text(json.dumps({"model": model, "decoder": {"type": "Fuse"}}))
    return files


def test_files_may_grow_no_more(exporting: Path, tmp_path: Path, commands: Commands) -> None:
    """As a full disk or a quota does it: the store's file and the cache's."""

    def export(target: Path, cache: Path, before: str = "") -> subprocess.CompletedProcess[str]:
        return commands.run(
            *words_of_export(exporting, target), folder=exporting, before=before, MASKWRIGHT_CACHE=str(cache)
        )

    cache = tmp_path / "cache"
    target = tmp_path / "s.safetensors"
    target.write_bytes(b"old")
    tmp_path.chmod(0o700)
    # compiled code is kept by Numba, which must be allowed to write it: first a run without limit
    assert export(tmp_path / "first.safetensors", tmp_path / "other").returncode == 0
    done = export(target, cache, limited("RLIMIT_FSIZE", 1000))
    assert done.returncode == 2 and "error: cannot write" in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert target.read_bytes() == b"old" and list(cache.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "first.safetensors", "other", "s.safetensors"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("MemoryError()", "error: there is not enough memory\n"),
        ("SystemError('f returned NULL without setting an exception')", "error: there is not enough memory\n"),
        ("SystemError('bad argument')", "SystemError: bad argument\n"),
    ],
)
def test_memory_that_ends_outside_a_command(error: str, said: str) -> None:
    """Where Python itself gets none, it may fail with a SystemError. Others are faults, and are shown."""
    code = f"from maskwright import cli; cli._application = lambda: lambda: exec({'raise ' + error!r}); cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == (2 if said.startswith("error") else 1)
    assert done.stderr == said if said.startswith("error") else done.stderr.endswith(said)


@pytest.mark.slow
def test_memory_ends_somewhere(exporting: Path, tmp_path: Path) -> None:
    """Whatever the limit: the old file or the whole new one, and never a traceback from a MemoryError."""
    target = tmp_path / "s.safetensors"
    codes = set()
    for mega in range(200, 2000, 150):
        target.write_bytes(b"old")
        done = command(
            *words_of_export(exporting, target), before=limited("RLIMIT_AS", mega << 20), cwd=exporting,
            cache=str(tmp_path / "cache"), stdout=subprocess.PIPE,
        )  # fmt: skip
        codes.add(done.returncode)
        if done.returncode == 0:
            load_store(target)
        else:
            assert target.read_bytes() == b"old"
        # below some limit Python or LLVM cannot even begin; what maskwright itself is refused is an error of its own
        assert done.returncode in (0, 2) or "maskwright" not in last_place(done.stderr), done.stderr
        for left in (tmp_path / "cache").glob("store-*"):
            load_store(left)
    assert 0 in codes


def last_place(stderr: str) -> str:
    places = [line for line in stderr.splitlines() if line.lstrip().startswith("File ")]
    return places[-1] if places else ""


@pytest.mark.slow
def test_killed_writers_leave_whole_files(tmp_path: Path) -> None:
    """`kill -9` at random moments: the file is one of the two stores; what is left over is swept later."""
    path = tmp_path / "s.safetensors"
    stores = [tmp_path / "0", tmp_path / "1"]
    save_store(store(), stores[0])
    save_store(store('start: "a"'), stores[1])
    wholes = {one.read_bytes() for one in stores}
    script = (
        "import sys, itertools\nfrom pathlib import Path\nfrom maskwright.maskstore.file.writing import replace_file\n"
        "contents = [Path(name).read_bytes() for name in sys.argv[2:]]\nprint('ready', flush=True)\n"
        "for data in itertools.cycle(contents): replace_file(Path(sys.argv[1]), data)\n"
    )
    for round_ in range(15):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(path), *map(str, stores)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.02 + 0.011 * round_)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert path.read_bytes() in wholes
    for left in tmp_path.glob(".maskwright-*.tmp"):
        os.utime(left, (1, 1))
    save_store(store(), path)
    assert not list(tmp_path.glob(".maskwright-*.tmp"))


@pytest.mark.parametrize(
    "words",
    [
        ["export", "pairs.lark", "-t", "python-tiny", "-o", "pairs.lark"],
        ["export", "pairs.lark", "-t", "python-tiny", "-o", "./pairs.lark"],
        ["lint", "pairs.lark", "--json", "link.lark"],
        ["analyze", "pairs.lark", "--html", "pairs.lark"],
        ["info", "pairs.safetensors", "--json", "pairs.safetensors"],
        ["explain", "pairs.safetensors", "--text", "text", "--json", "text"],
        ["validate", "pairs.safetensors", "text", "--resume", "text"],
        ["analyze", "pairs.lark", "--html", "out", "--json", "out"],
    ],
    ids=" ".join,
)
def test_what_is_read_is_not_written(
    words: list[str], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in files.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "link.lark").symlink_to("pairs.lark")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, words)
    said = result.output.replace("\n", " ")
    assert result.exit_code == 2 and ("is read by this command" in said or "is named for two outputs" in said), said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


LEAF = {"type": "BPE", "vocab": {chr(32 + i): i for i in range(95)}, "merges": [], "unk_token": "~"}


TOKENIZER = json.dumps({"model": LEAF, "decoder": {"type": "Fuse"}})


@pytest.fixture(scope="module")
def pairs_of_leaf(files: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store for the tokenizer of `all_kinds`."""
    folder = tmp_path_factory.mktemp("leaf")
    (folder / "tokenizer.json").write_text(TOKENIZER)
    (folder / "config.json").write_text('{"eos_token_id": 94}')
    (folder / "tokenizer_config.json").write_text("{}")
    save_store(compile_store(load_grammar(files / "pairs.lark"), load_vocabulary(folder)), folder / "s")
    return (folder / "s").read_bytes()


@pytest.fixture
def all_kinds(files: Path, pairs_of_leaf: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of each kind that commands find by themselves: nobody names it."""
    for name in ("pairs.lark", "text"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    for name in ("imp", "tok", "texts", "texts/deep", "nn", "model"):
        (tmp_path / name).mkdir()
    (tmp_path / "imp" / "g.lark").write_text('start: "a" middle\n%import .sub.other.middle\n')
    (tmp_path / "imp" / "sub").mkdir()
    (tmp_path / "imp" / "sub" / "other.lark").write_text("middle: B\n%import .leaf.B\n")
    (tmp_path / "imp" / "sub" / "leaf.lark").write_text('B: "b"\n')
    for folder in ("tok", "model"):
        (tmp_path / folder / "tokenizer.json").write_text(TOKENIZER)
        (tmp_path / folder / "config.json").write_text('{"eos_token_id": 94}')
        (tmp_path / folder / "tokenizer_config.json").write_text("{}")
    (tmp_path / "pairs.safetensors").write_bytes(pairs_of_leaf)
    (tmp_path / "model" / "weights").symlink_to("../blob")
    (tmp_path / "blob").write_text("weights")
    (tmp_path / "texts" / "x.json").write_text("aabb")
    (tmp_path / "texts" / "deep" / "y.json").write_text("ab")
    (tmp_path / "texts" / "link.json").symlink_to("../elsewhere.txt")
    (tmp_path / "elsewhere.txt").write_text("ab")
    (tmp_path / "texts" / "log").write_text("ab")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


VALIDATE = ["validate", "pairs.safetensors", "--tokenizer", "tok"]
COMPLETE = ["complete", "pairs.lark", "a", "--model"]


@pytest.mark.parametrize(
    "words",
    [
        ["export", "imp/g.lark", "-t", "python-tiny", "-o", "imp/sub/other.lark"],
        ["lint", "imp/g.lark", "--json", "imp/sub/leaf.lark"],
        ["lint", "imp/g.lark", "--json", "imp/../imp/sub/leaf.lark"],
        ["analyze", "imp/g.lark", "--html", "imp/sub/other.lark"],
        ["explain", "imp/g.lark", "--text", "text", "--json", "imp/sub/leaf.lark"],
        ["export", "pairs.lark", "-t", "tok", "-o", "tok/tokenizer.json"],
        ["export", "pairs.lark", "-t", "tok", "-o", "tok/config.json"],
        ["export", "pairs.lark", "-t", "tok/tokenizer.json", "-o", "out", "--json", "tok/tokenizer_config.json"],
        ["info", "pairs.lark", "-t", "tok", "--json", "tok/config.json"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "texts/x.json"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "texts/deep/y.json"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "texts/new.json"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "elsewhere.txt"],
        [*VALIDATE, "texts", "--suffix", ".json", "--resume", "texts/new.json"],
        [*VALIDATE, "texts/*.json", "--json", "texts/x.json"],
        [*VALIDATE, "texts/*.json", "--json", "nn/../texts/x.json"],
        [*VALIDATE, "texts/*.json", "--json", "texts/new.json"],
        [*VALIDATE, "texts/*.json", "--resume", "elsewhere.txt"],
        [*VALIDATE, "texts/**/*.json", "--json", "texts/deep/new.json"],
        [*VALIDATE, "text", "--resume", "tok/config.json"],
        ["validate", "json", "texts", "-t", "tok", "--json", "texts/new.json"],
        ["audit", "xgrammar", "-g", "json", "-t", "tok", "texts", "--json", "texts/x.json"],
        ["audit", "mine:make", "-g", "json", "-t", "tok", "text", "--json", "mine.py"],
        ["validate", "json", "text", "-t", "tok", "--reference", "sh 'judge it.sh' {}", "--json", "judge it.sh"],
        [*COMPLETE, "model", "--json", "model/config.json"],
        [*COMPLETE, "model", "--json", "model/new.json"],
        [*COMPLETE, "./model", "--json", "blob"],
        ["validate", "pairs.lark", "-t", "tok", "--check", "sample", "--model", "model", "--json", "model/config.json"],
        ["analyze", "pairs.lark", "--json", "d1.json", "--html", "nn/../d1.json"],
        ["analyze", "pairs.lark", "--json", "d1.json", "--html", "to-d1"],
    ],
    ids=" ".join,
)
def test_what_is_found_and_read_is_not_written(words: list[str], all_kinds: Path) -> None:
    (all_kinds / "mine.py").write_text("")
    (all_kinds / "judge it.sh").write_text("")
    (all_kinds / "to-d1").symlink_to("d1.json")
    before = content(all_kinds)
    result = CliRunner().invoke(app, words)
    said = " ".join(result.output.split())
    assert result.exit_code == 2, said
    assert (
        "is read by this command, so it is not written; name" in said
        or "are read by this command" in said
        or ("is named for two outputs; name two files" in said)
    ), said
    assert content(all_kinds) == before


@pytest.mark.parametrize(
    "words",
    [
        ["lint", "imp/g.lark", "--json", "imp/sub/new.lark"],
        ["info", "pairs.lark", "-t", "tok", "--json", "tok/report.json"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "texts/report.txt"],
        [*VALIDATE, "texts", "--suffix", ".json", "--json", "texts/.new.json", "--resume", "texts/log.jsonl"],
        [*VALIDATE, "texts/*.json", "--json", "texts/deep/new.json"],
        [*VALIDATE, "texts/deep/*.json", "--json", "texts/x.json"],
    ],
    ids=" ".join,
)
def test_what_is_not_read_can_be_written_twice(words: list[str], all_kinds: Path) -> None:
    """Beside what is read, and once more over what the first run wrote."""
    target = Path(words[words.index("--json") + 1])
    for _ in range(2):
        result = CliRunner().invoke(app, words)
        assert result.exit_code in (0, 1), result.output
        json.loads(target.read_text())


def test_a_store_of_the_cache_is_not_written(all_kinds: Path) -> None:
    (all_kinds / "cache").mkdir(mode=0o700)
    all_kinds.chmod(0o700)
    words = ["info", "pairs.lark", "-t", "tok", "--json"]
    assert CliRunner().invoke(app, [*words, "out.json"]).exit_code == 0
    (stored,) = (all_kinds / "cache").glob("store-*")
    before = content(all_kinds)
    result = CliRunner().invoke(app, [*words, str(stored)])
    assert result.exit_code == 2 and "is read by this command" in " ".join(result.output.split()), result.output
    assert content(all_kinds) == before


def test_standard_input_is_not_written(files: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("aabb")
    for words in (["explain", "pairs.safetensors", "--text", "-"], ["complete", "pairs.safetensors"]):
        with path.open() as text:
            done = command(*words, "--json", str(path), stdin=text, cwd=files, stdout=subprocess.PIPE)
        assert done.returncode == 2 and "is read by this command" in " ".join(done.stderr.split()), done.stderr
        assert path.read_text() == "aabb"


def test_outputs_of_one_command_are_none_of_the_next(all_kinds: Path) -> None:
    """What one call in a process was told is forgotten when it ends."""
    (all_kinds / "g.lark").write_bytes((all_kinds / "pairs.lark").read_bytes())
    assert CliRunner().invoke(app, ["lint", "pairs.lark", "--json", "g.lark"]).exit_code in (0, 1)
    (all_kinds / "g.lark").write_bytes((all_kinds / "pairs.lark").read_bytes())
    assert CliRunner().invoke(app, ["lint", "g.lark"]).exit_code in (0, 1)


def test_characters_that_the_output_has_not(tmp_path: Path, commands: Commands) -> None:
    (tmp_path / "e.lark").write_text('start: "\u00e9"+', encoding="utf-8")
    (tmp_path / "text").write_text("\u00e9", encoding="utf-8")
    before = "import os, sys; sys.stdout.reconfigure(encoding='ascii', errors='strict')"
    done = commands.run("explain", "e.lark", "--text", "text", folder=tmp_path, before=before)
    assert done.returncode == 0 and "\\xe9" in done.stdout, done.stderr
    done = commands.run("explain", "e.lark", "--text", "text", "--json", "-", folder=tmp_path, before=before)
    assert done.returncode == 0 and "\u00e9" in json.loads(done.stdout)["position"]["before"], done.stdout
