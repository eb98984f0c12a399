"""The kernels themselves, threads and all, in Numba's CUDA simulator: tests of this folder, with every index as Python sees it."""

from __future__ import annotations

import pytest
from own_process import check_tests

QUICK = (
    "test_gpu.py::test_rows_are_those_of_matchers[layout-1-20]",
    "test_gpu.py::test_apply_masks_the_rows_and_leaves_idle_slots_alone",
    "test_gpu.py::test_held_tokens",
    "test_gpu_costs.py::test_a_row_is_looked_up_once_for_all_of_its_words",
)
OTHERS = (
    "test_gpu.py::test_rows_are_those_of_matchers[plain-0-90]",
    "test_gpu.py::test_rows_are_those_of_matchers[layout-2-90]",
    "test_gpu.py::test_a_fetched_matcher_goes_on",
    "test_gpu.py::test_a_flag_stays_until_the_slot_is_admitted_again",
    "test_gpu.py::test_without_deep_regions",
    "test_gpu.py::test_the_documented_loop_goes_on_after_the_end_of_a_text[8]",
    "test_gpu.py::test_a_new_text_does_not_read_what_was_sampled_for_the_old[admit]",
)


@pytest.mark.parametrize(
    "names", [pytest.param(QUICK, id="quick"), pytest.param(OTHERS, id="others", marks=pytest.mark.slow)]
)
def test_kernels_in_the_simulator(names: tuple[str, ...]) -> None:
    chosen = [f"tests/decoding/gpu/{name}" for name in names]
    check_tests(chosen, {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}, timeout=600)
