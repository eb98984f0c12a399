"""What a server's processes count is what its registry shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
ENGINE = """
from maskwright.serving.metrics import metrics
for kind in ("json", "regex", "json"):
    metrics().count("requests", kind=kind)
metrics().count("compile_seconds", 0.25, kind="json")
metrics().count("cache_bytes", 7)
metrics().count("cache_bytes", 5)
"""
SERVER = f"""
import subprocess, sys
from maskwright.serving.metrics import metrics, show_metrics
show_metrics()
metrics().count("refusals", cause="SchemaError")
for _ in range(2):
    subprocess.run([sys.executable, "-c", {ENGINE!r}], check=True)
from prometheus_client import {{registry}}
print({{shown}}.decode())
"""


@pytest.mark.parametrize("has_several", [False, True])
def test_two_engines_and_the_process_that_takes_requests(has_several: bool, tmp_path: Path) -> None:
    """has_several : whether the server has several processes for requests, and so a folder of its own."""
    registry, shown = "generate_latest, REGISTRY", "generate_latest(REGISTRY)"
    environment = {**os.environ, "MASKWRIGHT_METRICS_DIR": str(tmp_path / "gone")}
    if has_several:
        registry = "CollectorRegistry, generate_latest, multiprocess"
        shown = "[generate_latest(one) for one in [CollectorRegistry()] if multiprocess.MultiProcessCollector(one)][0]"
        environment["PROMETHEUS_MULTIPROC_DIR"] = str(tmp_path)
    script = SERVER.format(registry=registry, shown=shown)
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert found.returncode == 0, found.stderr
    ours = {line for line in found.stdout.splitlines() if line.startswith("maskwright_")}
    assert ours == {
        'maskwright_requests_total{kind="json"} 4.0',
        'maskwright_requests_total{kind="regex"} 2.0',
        'maskwright_compile_seconds_total{kind="json"} 0.5',
        'maskwright_refusals_total{cause="SchemaError"} 1.0',
        "maskwright_cache_bytes 10.0",
    }


FORK = """
import os
from maskwright.serving.metrics import metrics
held = metrics()
held.count("requests", 5, kind="json")
for k in range(5): held.count_mask(0.0)  # the first one is written at once, the others wait
child = os.fork()
if not child:
    held.count("requests", 2, kind="json")
    held.count_mask(0.0)
    held.count("cache_hits")
    os._exit(0)
os.waitpid(child, 0)
held.count("requests", 0, kind="json")
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_counts_for_itself(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    found = subprocess.run(
        [sys.executable, "-c", FORK], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert found.returncode == 0, found.stderr
    assert 'maskwright_requests_total{kind="json"} 7.0' in found.stdout
    assert "maskwright_masks_total 6.0" in found.stdout and "maskwright_cache_hits_total 1.0" in found.stdout


def test_nothing_is_counted_where_no_server_asks(tmp_path: Path) -> None:
    script = "from maskwright.serving.metrics import metrics; metrics().count('masks'); "
    script += "import sys; print('prometheus_client' in sys.modules)"
    environment = {name: one for name, one in os.environ.items() if "METRICS" not in name and "PROMETHEUS" not in name}
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.stdout.strip() == "False" and not list(tmp_path.iterdir()), found.stderr
