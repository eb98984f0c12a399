"""Where things are: the repository, its tests, and the data beside it, which may be absent."""

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
HELPERS = [str(TESTS / "support"), str(TESTS / "naive")]
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared" / "data"
