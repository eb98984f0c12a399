"""The kernels as plain Python: the same code, with every index and type as Python sees it, in a process of its own."""

from __future__ import annotations

import pytest
from own_process import check_tests


@pytest.mark.slow
def test_kernels_without_jit() -> None:
    """The first seeds of tests that compare with brute force, errors, and the counts of places that are read."""
    chosen = [
        "tests/analysis/legality/test_deciders.py::test_verdicts_equal_the_ways_up[0]",
        "tests/analysis/legality/test_joint.py::test_representatives_equal_the_ways_up[0]",
        "tests/maskstore/entries/test_walk.py::test_outcomes_of_every_state_and_token[0]",
        "tests/maskstore/entries/test_streamline.py::test_masks_agree[random-0]",
        "tests/decoding/engine/test_engine_random.py::test_rows_equal_the_naive_engines[plain-0]",
        "tests/decoding/engine/test_engine_random.py::test_rows_equal_the_naive_engines[layout-2]",
        "tests/decoding/engine/test_engine_random.py::test_rollback_fork_and_reset_give_the_rows_back[layout-2]",
        "tests/decoding/names/test_names_random.py::test_masks_equal_the_naive_twins[plain-1-1]",
        "tests/decoding/test_matcher.py::test_an_illegal_token_is_named_with_its_bytes_the_byte_and_what_could_come",
        "tests/decoding/test_batch.py::test_an_illegal_token_names_its_slot_and_the_others_advance",
        "tests/decoding/gpu/test_gpu_costs.py::test_open_blocks_cost_a_slot_nothing_more",
    ]
    check_tests(chosen, {"NUMBA_DISABLE_JIT": "1"})
