"""What is warmed for a server that runs as another user."""

from __future__ import annotations

from pathlib import Path

import pytest

import maskwright as mw
from maskwright.serving.warming import warm_constraint
from maskwright.stores.trust import HAS_OWNERS

VOCABULARY = mw.Vocabulary.from_tokens([b"", *(bytes([byte]) for byte in range(256))], eos=[0])


@pytest.mark.skipif(not HAS_OWNERS, reason="this system has no file modes")
@pytest.mark.parametrize("named", ["link", "relative"])
def test_a_closed_folder_is_named_whatever_path_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Pytest's own folders above are closed too, but the first that is met is named."""
    closed = tmp_path.resolve() / "closed"
    (closed / "cache").mkdir(parents=True, mode=0o700)
    closed.chmod(0o700)
    (tmp_path / "link").symlink_to(closed / "cache")
    monkeypatch.chdir(closed)
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path / "link") if named == "link" else "cache")
    assert warm_constraint(mw.parse_grammar('start: "a"'), VOCABULARY).paths
    with pytest.raises(mw.StoreError) as found:
        warm_constraint(mw.load_schema({"type": "object"}), VOCABULARY, readable=True)
    assert f"they may not enter {closed} (" in str(found.value)
