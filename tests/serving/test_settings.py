"""What an operator of vLLM can set, and what a wrong setting says."""

from __future__ import annotations

import pickle
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from maskwright.analysis.errors import MaskwrightError, MissingExtraError, UnknownNameError
from maskwright.serving.settings import ServerSettings, read_settings


def test_nothing_is_set() -> None:
    assert read_settings(None, {"PATH": "/bin", "MASKWRIGHT_CACHE": "x"}) == ServerSettings()
    assert read_settings({"other": 1}, {}) == ServerSettings()


def test_the_environment() -> None:
    found = read_settings(
        None,
        {
            "MASKWRIGHT_VLLM_STORES": "sql=a/sql.safetensors, py = b=c.safetensors,",
            "MASKWRIGHT_VLLM_HYBRID": "true",
            "MASKWRIGHT_VLLM_WHITESPACE": "2",
            "MASKWRIGHT_VLLM_CACHE_ENTRIES": "3",
            "MASKWRIGHT_VLLM_COMPILE_SECONDS": "0.5",
        },
    )
    assert found.stores == (("py", "b=c.safetensors"), ("sql", "a/sql.safetensors"))
    assert (found.hybrid, found.whitespace, found.cache_entries, found.compile_seconds) == (True, 2, 3, 0.5)
    assert found.limits.compile_seconds == 0.5
    assert read_settings(None, {"MASKWRIGHT_VLLM_STORES": '{"a": "b"}'}).stores == (("a", "b"),)


def test_the_configuration_counts_more() -> None:
    found = read_settings({"maskwright": {"hybrid": False, "whitespace": "compact"}}, {"MASKWRIGHT_VLLM_HYBRID": "1"})
    assert not found.hybrid and found.whitespace == "compact"


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("stores", "sql", "MASKWRIGHT_VLLM_STORES is 'sql'; expected name=path"),
        ("stores", "{", "is no JSON"),
        ("stores", '{"a": 1}', "expected an object of names and paths"),
        ("hybrid", "perhaps", "MASKWRIGHT_VLLM_HYBRID is 'perhaps'; expected 1 or 0"),
        ("cache_entries", "0", "expected a number above 0"),
        ("close_early", "-1", "expected a number above 0"),
        ("close_early", "1.5", "expected a number above 0"),
        ("cache_entries", "1.5", "expected a number above 0"),
        ("compile_seconds", "nan", "expected a number above 0"),
        ("compile_seconds", "x", "expected a number above 0"),
    ],
)
def test_a_wrong_value(name: str, value: str, said: str) -> None:
    with pytest.raises(MaskwrightError, match=said):
        read_settings(None, {f"MASKWRIGHT_VLLM_{name.upper()}": value})


@pytest.mark.parametrize("value", [True, 0, -1, 1.5, "x", None, [1]])
def test_a_wrong_value_in_the_configuration(value: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"additional_config\['maskwright'\]\['cache_entries'\]"):
        read_settings({"maskwright": {"cache_entries": value}}, {})


def test_closing_early_is_off_by_default() -> None:
    assert ServerSettings().close_early == 0
    for value, wanted in ((0, 0), (16, 16)):
        assert read_settings({"maskwright": {"close_early": value}}, {}).close_early == wanted
        assert read_settings(None, {"MASKWRIGHT_VLLM_CLOSE_EARLY": str(value)}).close_early == wanted


def test_settings_travel_to_the_engines_process() -> None:
    found = read_settings({"maskwright": {"stores": {"a": "b"}}}, {})
    assert (
        pickle.loads(pickle.dumps(found)) == found and pickle.loads(pickle.dumps(ServerSettings())) == ServerSettings()
    )


def test_an_unknown_setting() -> None:
    with pytest.raises(UnknownNameError, match="no setting 'store'; did you mean 'stores'"):
        read_settings(None, {"MASKWRIGHT_VLLM_STORE": "a=b"})
    with pytest.raises(MaskwrightError, match="expected an object with settings"):
        read_settings({"maskwright": "hybrid"}, {})


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_module_does_nothing() -> None:
    import maskwright.serving.vllm as module

    assert "vllm" not in sys.modules
    with pytest.raises(MissingExtraError, match=r"maskwright\[vllm\]"):
        module.register()
