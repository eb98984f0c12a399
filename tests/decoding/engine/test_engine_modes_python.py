"""Masks of the library's python within f-strings, under a vocabulary of real size: each token's bit is what reading its bytes says."""

from __future__ import annotations

import pytest
from mask_bits import check_mask

from maskwright.analysis.loading import load_grammar
from maskwright.maskstore.vocabulary import load_vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

TEXTS = (
    "f'a", "f\"a", "f\"{a}", "f\"{a:", "f\"{a:b", "f\"{a:{b}", "f\"{a!r", "f\"{{", "f\"\"\"a", "f\"\"\"a\"", "f\"\"\"a\"\"", "f\"\"\"{{a\"",
    "f\"\"\"a}}\"", "f\"\"\"{a}\"", "f\"\"\"{a:b}\"", "f\"\"\"{a:", "f\"\"\"{a:b", "f\"\"\"\\", "f'''a'",
    "f'''a''", "rf\"\"\"a\"", "rf\"a\\",
    "f\"{f'{a", "f\"{f'{a}", "f\"{(a", "f\"{x:{y", "f\"\"\"a\n\"",
)  # fmt: skip


@pytest.fixture(scope="module")
def store() -> Store:
    return compile_store(load_grammar("python"), load_vocabulary("mistral-7b-v0.1"))


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_masks_are_what_reading_the_tokens_says(store: Store, text: str) -> None:
    matcher = store.matcher()
    matcher.advance_bytes(text.encode())
    check_mask(matcher)
