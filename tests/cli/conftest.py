"""Commands in forks of one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forked import Commands, forked_commands


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    with forked_commands() as found:
        yield found
