"""README says in a few screens what is needed, and what it shows runs. Links, records and tables: test_docs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_docs import blocks, page, printed

from maskwright.models import model_folder

README = page("README.md")


def test_first_screen_has_both_commands() -> None:
    first_screen = README.splitlines()[:60]
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in first_screen)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 190


def test_the_first_example_is_a_whole_ticket_with_masks_and_no_json_without() -> None:
    """Another processor may round otherwise, so that the model writes something else: the texts are not compared."""
    pytest.importorskip("tokenizers")
    pytest.importorskip("pydantic")
    code, shown = blocks("README.md")[0]
    names: dict[str, Any] = {}
    for text in (printed(code, names), shown):
        assert text is not None
        free, held = re.fullmatch(r"without masks:\n(.*)\nwith masks:\n(.*)\n", text, re.DOTALL).groups()  # type: ignore[union-attr]
        assert names["Ticket"].model_validate_json(held).subject == "The login page crashes"
        with pytest.raises(ValueError):
            json.loads(free)
    assert printed(blocks("README.md")[1][0], names) in ("red\n", "blue\n")


def test_ten_lines_with_an_own_grammar_print_what_is_shown() -> None:
    ((code, shown),) = (block for block in blocks("README.md") if "parse_grammar" in block[0])
    assert shown is not None and printed(code, {}) == shown


def test_ten_lines_with_a_schema_print_what_is_shown() -> None:
    ((code, _),) = (block for block in blocks("README.md") if "shortest_ending" in block[0])
    assert printed(code, {}).strip() == code.strip().rpartition("  # ")[2]


def test_ten_lines_with_transformers_write_a_text_of_the_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("pydantic")
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    ((code, _),) = (block for block in blocks("README.md") if "transformers" in block[0])
    code, n = re.subn(r'^name = ".*"$', f"name = {str(model_folder())!r}", code, flags=re.MULTILINE)
    assert n == 1
    assert {*json.loads(printed(code, {}))} == {"name", "age"}
