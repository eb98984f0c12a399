"""The cache of built stores: found again, built again when it must be, and never in the way."""

from __future__ import annotations

import logging
import os
import pickle
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest
from paths import TESTS
from stores import layout_grammar, small_vocabulary

from maskwright.analysis.errors import GrammarError, StoreError
from maskwright.maskstore.file.fileformat import save_store
from maskwright.stores import build as build_module
from maskwright.stores import cache
from maskwright.stores.cache import cache_folder, cached_store, clear_cache, warm_cache
from maskwright.stores.entry_store import EntryStore
from maskwright.stores.store import Store
from maskwright.stores.trust import HAS_OWNERS, why_others_cannot_read


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "not yet" / "there"
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(path))
    return path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules of each store that was really built."""
    found: list[str] = []

    def counted(*args: Any, **keywords: Any) -> EntryStore:
        found.append(keywords["rules"])
        return build_module.build_and_keep(*args, **keywords)

    monkeypatch.setattr(cache, "build_and_keep", counted)
    return found


def small() -> EntryStore:
    return cached_store(layout_grammar(), small_vocabulary())


def test_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("MASKWRIGHT_CACHE", "~/stores")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "stores"
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("MASKWRIGHT_CACHE")
        else:
            monkeypatch.setenv("MASKWRIGHT_CACHE", unset)
        assert cache_folder() == Path(platformdirs.user_cache_dir("maskwright", appauthor=False))


def test_second_time_from_the_cache(folder: Path, builds: list[str]) -> None:
    first, second = small(), small()
    assert builds == ["normalised"]
    assert repr(first) == repr(second)
    np.testing.assert_array_equal(first.entry_mask, second.entry_mask)
    assert second.vocabulary is small_vocabulary() and second.grammar is layout_grammar()
    assert len(list(folder.iterdir())) == 1


def test_a_cached_store_is_pickled_as_its_file(folder: Path) -> None:
    """The file is touched when it is read, and is the same file all the same."""
    made = cached_store("json", "python-tiny")
    for _ in range(3):
        stored = cached_store("json", "python-tiny")
        assert stored.origin is not None and stored.origin.is_there()
        assert len(pickle.dumps(stored)) < 2_000 < len(pickle.dumps(made))


def test_what_the_key_depends_on(folder: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    small()
    cached_store(layout_grammar(), small_vocabulary(), rules="lark")
    cached_store(replace(layout_grammar(), text="other"), small_vocabulary())
    cached_store(layout_grammar(), replace(small_vocabulary(), tokens=(*small_vocabulary().tokens, b"")))
    monkeypatch.setattr(cache, "version", lambda: "99")
    small()
    monkeypatch.setattr(cache, "FORMAT_VERSION", 99)
    small()
    assert builds == ["normalised", "lark"] + ["normalised"] * 4
    assert len(list(folder.iterdir())) == 6
    cached_store(layout_grammar(), replace(small_vocabulary(), name="renamed"))
    assert len(builds) == 6


def test_stores_of_longest_lexing(folder: Path, builds: list[str]) -> None:
    """They are found again too, by lexing and conflicts, and are the file's own pages."""
    grammar = replace(layout_grammar(), lexing="longest")
    first, second = (cached_store(grammar, small_vocabulary()) for _ in range(2))
    assert isinstance(first, Store) and isinstance(second, Store)
    assert len(builds) == 1 and first.table.base is None and second.table.base is not None
    np.testing.assert_array_equal(first.table, second.table)
    for other in (replace(grammar, conflicts="shift"), replace(grammar, lexing="contextual"), layout_grammar()):
        cached_store(other, small_vocabulary())
    assert len(builds) == len(list(folder.iterdir())) == 4
    with pytest.raises(GrammarError, match="rules='lark' does not apply"):
        cached_store(grammar, small_vocabulary(), rules="lark")


def test_refresh(folder: Path, builds: list[str]) -> None:
    small()
    (path,) = folder.iterdir()
    before = path.stat().st_ino
    cached_store(layout_grammar(), small_vocabulary(), refresh=True)
    assert len(builds) == 2
    assert path.stat().st_ino != before


def test_progress_is_told_of_building_only(folder: Path) -> None:
    steps: list[str] = []

    def progress(step: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        steps.append(step)

    cached_store(layout_grammar(), small_vocabulary(), progress=progress)
    assert "walk" in steps
    steps.clear()
    cached_store(layout_grammar(), small_vocabulary(), progress=progress)
    assert steps == []


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_file_is_built_anew(
    folder: Path, builds: list[str], caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    small()
    (path,) = folder.iterdir()
    good = path.read_bytes()
    path.write_bytes({"cut": good[:999], "empty": b"", "other": b"something else"}[damage])
    small()
    assert len(builds) == 2
    assert path.read_bytes() == good
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the cached store is built anew: " in caplog.text and "is not a whole safetensors file" in caplog.text
    small()
    assert len(builds) == 2


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "file" / "stores"))
    assert repr(small()) == repr(small())
    cached_store(layout_grammar(), small_vocabulary(), rules="lark")
    assert len(builds) == 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "cannot be written, so stores are built each time: " in caplog.text
    assert "Not a directory" in caplog.text and "set MASKWRIGHT_CACHE to a writable folder" in caplog.text
    assert clear_cache() == 0


def test_a_path_that_is_taken(folder: Path, builds: list[str], caplog: pytest.LogCaptureFixture) -> None:
    small()
    (path,) = folder.iterdir()
    path.unlink()
    path.mkdir()
    small()
    assert len(builds) == 2
    assert "the cached store is built anew: " in caplog.text and "is not a file" in caplog.text
    assert "cannot be written, so stores are built each time: cannot write" in caplog.text


def test_clear(folder: Path) -> None:
    assert clear_cache() == 0
    small()
    cached_store(layout_grammar(), small_vocabulary(), rules="lark")
    (folder / ".maskwright-0123456789abcdef.tmp").touch()
    kept = [folder / "my.safetensors", folder / "store-x.safetensors", folder / ("store-" + "0" * 64 + ".safetensors")]
    for path in kept[:2]:
        path.touch()
    kept[2].mkdir()
    assert clear_cache() == 3
    assert sorted(folder.iterdir()) == sorted(kept)


def test_clear_of_a_folder_that_cannot_be_emptied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small()

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", denied)
    with pytest.raises(
        StoreError, match=r"cache folder .* cannot be emptied: Permission denied; check its permissions"
    ):
        clear_cache()


def test_processes_share_the_folder(folder: Path, builds: list[str]) -> None:
    script = (
        "from stores import layout_grammar, small_vocabulary; from maskwright.stores.cache import cached_store; "
        "cached_store(layout_grammar(), small_vocabulary(), refresh=True)"
    )
    command = [sys.executable, "-c", script]
    running = [subprocess.Popen(command, cwd=TESTS / "support", env=dict(os.environ)) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(list(folder.iterdir())) == 1
    small()
    assert builds == []


def test_another_unicode_version_builds_anew(folder: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    small()
    monkeypatch.setattr(cache.unicodedata, "unidata_version", "99.0.0")
    small()
    assert len(builds) == len(list(folder.iterdir())) == 2


def forge(folder: Path) -> bytes:
    """Another store under the right name, as somebody who may write in the folder could put it there."""
    small()
    (path,) = folder.iterdir()
    good = path.read_bytes()
    save_store(build_module.build_store(layout_grammar(), small_vocabulary(), streamlined=False), path)
    assert path.read_bytes() != good
    return good


@pytest.mark.skipif(not HAS_OWNERS, reason="no owners and modes here")
@pytest.mark.parametrize("way", ["world", "group", "above", "file", "link", "owner", "owner of the file"])
def test_what_others_may_have_written_is_not_used(
    way: str, folder: Path, builds: list[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    forge(folder)
    (path,) = folder.iterdir()
    expected = r"the cache folder .* is not used, because others could put stores there.*others may write in"
    if way in ("world", "group"):
        folder.chmod(0o707 if way == "world" else 0o770)
    elif way == "above":
        folder.parent.chmod(0o777)
    elif way == "file":
        path.chmod(0o666)
        expected = r"is built anew: .* cannot be trusted: others may write in it \(mode 0666\)"
    elif way == "link":
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
        expected = r"is built anew: .* cannot be trusted: it is not a file, or it is a link to one"
    else:
        strange = folder if way == "owner" else path
        lstat = os.lstat

        def other_owner(path: Any) -> Any:
            facts = lstat(path)
            return os.stat_result((*facts[:4], 4321, *facts[5:])) if Path(path) == strange else facts

        monkeypatch.setattr(os, "lstat", other_owner)
        expected = r"belongs to another user \(user id 4321\)"
    builds.clear()
    assert small().is_streamlined and len(builds) == 1
    assert re.search(expected, caplog.text)
    if way in ("file", "link", "owner of the file"):
        monkeypatch.undo()
        monkeypatch.setenv("MASKWRIGHT_CACHE", str(folder))
        assert path.is_file() and not path.is_symlink() and cache.why_not_trusted_file(path) is None, "it is ours again"


@pytest.mark.skipif(not HAS_OWNERS, reason="no owners and modes here")
def test_folders_and_files_are_for_this_user_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        small()
    finally:
        os.umask(before)
    (path,) = folder.iterdir()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, folder.parent, path)] == [0o700, 0o700, 0o600]


@pytest.mark.skipif(not HAS_OWNERS, reason="no owners and modes here")
def test_a_sticky_folder_above_is_fine(folder: Path, builds: list[str]) -> None:
    small()
    folder.parent.chmod(0o1777)
    small()
    folder.chmod(0o1777)
    small()
    assert len(builds) == 2, "the folder itself may not be sticky and open"


@pytest.mark.skipif(not HAS_OWNERS, reason="files are not held here")
def test_what_killed_writers_left_is_swept(folder: Path) -> None:
    """Not what is new, what a process holds, or what is called otherwise."""
    import fcntl

    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    left, held, new, other = (folder / f".maskwright-{i:016x}.tmp" for i in range(4))
    other = folder / ".maskwright-x.tmp"
    for path in (left, held, new, other):
        path.write_bytes(b"half")
        if path != new:
            os.utime(path, (1, 1))
    with held.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        small()
    names = sorted(path.name for path in folder.iterdir() if path.suffix == ".tmp")
    assert names == sorted(path.name for path in (held, new, other))


def test_a_warm_cache_has_the_store(folder: Path, builds: list[str]) -> None:
    path = warm_cache(layout_grammar(), small_vocabulary())
    assert path.parent == folder and path.is_file() and len(builds) == 1
    cached_store(layout_grammar(), small_vocabulary())
    assert warm_cache(layout_grammar(), small_vocabulary()) == path and len(builds) == 1


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no file modes")
def test_a_warm_cache_that_all_may_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "why_others_cannot_read", lambda folder: None)  # the folders of pytest are closed
    path = warm_cache(layout_grammar(), small_vocabulary())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    warm_cache(layout_grammar(), small_vocabulary(), readable=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644 and stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no file modes")
def test_folders_that_are_made_for_a_readable_cache_are_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "why_others_cannot_read", lambda folder: None)
    folder.parents[1].chmod(0o700)
    warm_cache(layout_grammar(), small_vocabulary(), readable=True)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.parents[:2])]
    assert modes == [0o755, 0o755, 0o700], "made just now, made just now, somebody's"


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no file modes")
def test_a_closed_folder_above_a_readable_cache_is_named(folder: Path) -> None:
    closed = folder.parents[1]
    closed.chmod(0o700)
    with pytest.raises(
        StoreError, match=r"others cannot read the cache folder .*: they may not enter (.*) \(mode 0700;"
    ) as found:
        warm_cache(layout_grammar(), small_vocabulary(), readable=True)
    assert f"enter {closed} (" in str(found.value)
    closed.chmod(0o755)
    assert f"enter {closed} (" not in str(why_others_cannot_read(folder))
    warm_cache(layout_grammar(), small_vocabulary())


@pytest.mark.parametrize("named", ["~/stores", "~nobody-of-this-name/stores", None])
def test_without_a_home_directory_stores_are_built(
    named: str | None,
    builds: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def no_home(*_: Any, **__: Any) -> Path:
        raise RuntimeError("no home directory")

    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.setattr(platformdirs, "user_cache_path", no_home)
    monkeypatch.delenv("MASKWRIGHT_CACHE", raising=False)
    if named is not None:
        monkeypatch.setenv("MASKWRIGHT_CACHE", named)
    monkeypatch.chdir(tmp_path)
    small()
    small()
    assert len(builds) == 2 and not list(tmp_path.iterdir())
    assert len(caplog.records) == 1
    assert "cannot be found, so stores are built each time: this user has no home directory" in caplog.text
    for refused in (cache_folder, clear_cache, lambda: warm_cache(layout_grammar(), small_vocabulary())):
        with pytest.raises(
            StoreError, match="cannot be found: this user has no home directory; set MASKWRIGHT_CACHE to"
        ):
            refused()


def test_a_cache_that_cannot_be_warmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"the cache folder .*file .*; set MASKWRIGHT_CACHE to another"):
        warm_cache(layout_grammar(), small_vocabulary())


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no file modes")
def test_a_cache_in_which_others_may_write_is_not_warmed(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="is not used, because others could put stores there"):
        warm_cache(layout_grammar(), small_vocabulary())


def test_a_cache_folder_that_is_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "file"))
    cached_store(layout_grammar(), small_vocabulary())
    assert "cannot be written, so stores are built each time: it is not a folder" in caplog.text
