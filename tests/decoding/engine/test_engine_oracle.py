"""The engine on python.lark against `oracle.Oracle`; `reports/bench/oracle_agreement.py` does the same at length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from bench_scripts import bench_script
from engine_cases import real_store
from oracle import Oracle
from paths import SHARED
from shares import share

from maskwright.stores.store import Store

MISTRAL = "mistral-7b-v0.1"


@pytest.fixture(scope="module")
def python() -> Store:
    return real_store("python")


@pytest.fixture(scope="module")
def oracle(python: Store) -> Oracle:
    return Oracle(python.grammar)


@pytest.fixture
def script() -> Iterator[Any]:
    with bench_script("oracle_agreement") as module:
        yield module


@pytest.mark.parametrize(("n_pairs", "positions"), share([(60, 3), (160, 5), (4000, 40)], 1))
def test_sampled_tokens_of_real_files(
    n_pairs: int, positions: int, python: Store, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (SHARED / "source" / "python.jsonl.xz").exists():
        pytest.skip("the evaluation data is not there")
    monkeypatch.setattr(script, "POSITIONS_A_FILE", positions)
    facts, disagreements = script.compare(python, MISTRAL, n_pairs, seed=7)
    assert disagreements == []
    assert facts["pairs"] >= n_pairs and min(facts["by_kind"].values()) > n_pairs // 8


def test_a_disagreement_would_be_seen(python: Store, script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (SHARED / "source" / "python.jsonl.xz").exists():
        pytest.skip("the evaluation data is not there")
    monkeypatch.setattr(script, "POSITIONS_A_FILE", 2)
    monkeypatch.setattr(script.Oracle, "is_allowed", lambda self, prefix, token: False)
    facts, disagreements = script.compare(python, MISTRAL, 20, seed=7)
    assert len(disagreements) == facts["by_kind"]["allowed"] + facts["by_kind"]["allowed, long"]


# the last takes some seconds: each byte of a string may go on in many ways
SNIPPETS = [
    "x = 1.e5 if y else 1.else_\n",
    "x = 1.if y else 2\n",
    "x = (1\n  +\n\n2) \\\n + 3\n",
    "def f(a, *b, c=1, **d):\n\treturn a\n\tpass\n",
    "class A:\n    @property\n    def f(self): pass\n\n\n# comment\n    # another\n    x: int = 3\n",
    "if x:\n  if y:\n    z\n  else:\n    w\nq\n",
    "match x:\n    case [1, *_]: pass\n    case {'a': b, **rest} if b:\n        pass\n",
    "lambda: (yield)\nasync def g():\n    async for i in x: await y\n",
    "x = 0x_ff + 0b1 + 0o7 + 1_0.0_1e-5j + .5\n",
    "\f\n  \nx\n",
    "é = 'ü€😀'\n",
    "with open(a) as b, c: pass\ntry:\n pass\nexcept* E as e:\n pass\nfinally:\n pass\n",
    "for x in *a, b: print(x, end='')\nelse: pass\n",
    "a[..., 1:2, ::3]; x = y = z; del a, b; global_ = not None is not True\n",
    "s = f'{a}' \"b\" r'\\n' b\"\\x00\" '''long\n\"string\"''' \"\"\"\n'''\\\"\"\"\"\n",
]


@pytest.mark.parametrize("text", share(SNIPPETS, len(SNIPPETS) - 1))
def test_every_byte_of_snippets(text: str, python: Store, oracle: Oracle) -> None:
    """At every byte: which bytes may come, and whether the text may end."""
    data = text.encode()
    matcher = python.matcher()
    for at in range(0, len(data) + 1):
        state = oracle.feed(data[:at])
        assert matcher.is_accepting() == state.is_legal_text, data[:at]
        fork = matcher.fork()
        for byte in b"a1.=( \n#'\"\\]},*e\xc3\xa9" + data[at : at + 1]:
            legal = fork.try_bytes(bytes([byte]))
            if legal:
                fork = matcher.fork()
            assert legal == state.allows(bytes([byte])), (data[:at], bytes([byte]))
        if at < len(data):
            if not state.allows(data[at : at + 1]):
                break  # python.lark does not know all of Python
            matcher.advance_bytes(data[at : at + 1])
