"""A choice of tests for the inner loop: `--fast` leaves out those of `data/long_tests.txt`, which `--record-long` writes.

`--order SEED` runs files, and the tests in them, in the order of a seed; TEST_RECURSION_LIMIT is the interpreter's then, as an
import or a host may set it (`scripts/check_isolation.py`).
"""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import sys
from collections import defaultdict

import pytest
import typer.testing
from paths import ROOT, TESTS

# as many processes run as there are cores: torch's threads would only wait for one another
os.environ.setdefault("OMP_NUM_THREADS", "1")

# ignored in what a shell runs in the background; tests of Ctrl-C would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# for each call of `CliRunner.invoke` typer reads the parameters of all commands anew: 80 ms
vars(typer.testing)["_get_command"] = functools.cache(typer.main.get_command)

LIST = TESTS / "data" / "long_tests.txt"
SECONDS = 25.0
"""CPU seconds that are left for the tests, after what it takes to collect them: the shortest that fit are fast."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help=f"leave out the tests of {LIST.relative_to(ROOT)}")
    parser.addoption("--order", type=int, metavar="SEED", help="run files and tests in the order of this seed")
    parser.addoption("--record-long", action="store_true", help=f"write {LIST.relative_to(ROOT)} anew, after all tests")


def pytest_configure(config: pytest.Config) -> None:
    sys.setrecursionlimit(int(os.environ.get("TEST_RECURSION_LIMIT", sys.getrecursionlimit())))
    if config.getoption("--record-long") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--fast"):
        long = set(LIST.read_text(encoding="utf-8").splitlines())
        left_out = [item for item in items if long & {item.nodeid, item.nodeid.partition("::")[0]}]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    seed = config.getoption("--order")
    if seed is not None:
        draw = random.Random(seed)
        place_of_file = {path: draw.random() for path in dict.fromkeys(item.path for item in items)}
        items.sort(key=lambda item: (place_of_file[item.path], draw.random()))


def pytest_collection_finish() -> None:
    """What was collected and imported stays to the end: the collector of garbage need not look at it over and over.

    Nor need it look at the young objects after each 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    gc.unfreeze()


class Durations:
    """Adds up how long tests and the fixtures of files take, and writes which are too long.

    A file whose fixtures take long is left out as a whole, since its other tests would need them too.
    """

    def __init__(self) -> None:
        self.calls: dict[str, float] = defaultdict(float)
        self.setups: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.calls[report.nodeid] += report.duration
        if report.when == "setup":
            file = report.nodeid.partition("::")[0]
            self.setups[file] = max(self.setups[file], report.duration)

    def pytest_sessionfinish(self) -> None:
        LIST.write_text("".join(f"{name}\n" for name in self.long()), encoding="utf-8")

    def long(self) -> list[str]:
        """The files and tests that do not fit, in order."""
        files = {file for file, seconds in self.setups.items() if seconds > 1}
        rest = {name: seconds for name, seconds in self.calls.items() if name.partition("::")[0] not in files}
        total, found = 0.0, []
        for name, seconds in sorted(rest.items(), key=lambda item: item[1]):
            total += seconds
            if total > SECONDS:
                found.append(name)
        return sorted([*files, *found])
