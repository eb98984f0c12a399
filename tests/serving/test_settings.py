"""What an operator of vLLM can set, and what a wrong setting says."""

from __future__ import annotations

import math
import os
import pickle
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import pytest

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError, MissingExtraError, UnknownNameError
from maskwright.analysis.schema.style import StyleName
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving.options import RequestOptions
from maskwright.serving.settings import ServerSettings, make_compiler, read_settings
from maskwright.stores.cache import warm_cache

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [b""], eos=[256])


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
            "MASKWRIGHT_VLLM_KEY_ORDER": "schema",
            "MASKWRIGHT_VLLM_ESCAPES": "minimal",
            "MASKWRIGHT_VLLM_ADDITIONAL_PROPERTIES": "0",
            "MASKWRIGHT_VLLM_CACHE_ENTRIES": "3",
            "MASKWRIGHT_VLLM_COMPILE_SECONDS": "0.5",
        },
    )
    assert found.stores == (("py", "b=c.safetensors"), ("sql", "a/sql.safetensors"))
    assert (found.hybrid, found.whitespace, found.cache_entries, found.compile_seconds) == (True, 2, 3, 0.5)
    assert found.limits.compile_seconds == 0.5
    assert found.options == RequestOptions(2, False, "schema", "minimal")
    assert read_settings(None, {"MASKWRIGHT_VLLM_STORES": '{"a": "b"}'}).stores == (("a", "b"),)


@pytest.mark.parametrize("name", ["hybrid", "additional_properties", "strict_keywords"])
def test_a_switch_that_is_empty_is_off(name: str) -> None:
    for value, wanted in (("", False), ("  ", False), (" true ", True), ("On\n", True), (" 0", False)):
        assert getattr(read_settings(None, {f"MASKWRIGHT_VLLM_{name.upper()}": value}), name) is wanted


@pytest.mark.parametrize("style", get_args(StyleName))
def test_a_style_is_that_of_schemas(style: StyleName) -> None:
    """And its parts may be given beside it."""
    whitespace, key_order, escapes = mw.load_schema({}, style=style).options.style
    assert read_settings({"maskwright": {"style": style}}, {}).options == RequestOptions(
        whitespace, True, key_order, escapes
    )
    found = read_settings({"maskwright": {"style": style, "escapes": "minimal"}}, {"MASKWRIGHT_VLLM_WHITESPACE": "3"})
    assert found.options == RequestOptions(3, True, key_order, "minimal")


def test_the_configuration_counts_more() -> None:
    found = read_settings({"maskwright": {"hybrid": False, "whitespace": "compact"}}, {"MASKWRIGHT_VLLM_HYBRID": "1"})
    assert not found.hybrid and found.whitespace == "compact"


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("stores", "sql", "MASKWRIGHT_VLLM_STORES is 'sql': .*expected name=path"),
        ("stores", '{"": "x"}', "should match pattern"),
        ("stores", '{"x": " "}', "should match pattern"),
        ("stores", "a=x,a=y", "expected name=path"),
        ("stores", "{", "STORES is '{': .*column 2"),
        ("stores", '{"a": 1}', "should be a valid string"),
        ("hybrid", "perhaps", "MASKWRIGHT_VLLM_HYBRID is 'perhaps': .*a valid boolean"),
        ("cache_entries", "0", "should be greater than 0"),
        ("key_order", "any order", "MASKWRIGHT_VLLM_KEY_ORDER is 'any order': Input should be 'any' or 'schema'"),
        ("escapes", "schema", "should be 'any', 'natural' or 'minimal'"),
        ("style", "indent4", "STYLE is 'indent4': .*should be 'natural', 'compact', 'json.dumps', 'indent2' or 'any'"),
        ("close_early", "-1", "greater than or equal to 0"),
        ("close_early", "1.5", "a valid integer"),
        ("disk_megabytes", "-1", "greater than or equal to 0"),
        ("stores", "{" * 100_000, "STORES is .{,200}: "),
        ("cache_entries", "1.5", "a valid integer"),
        ("compile_seconds", "nan", "finite number|greater than 0"),
        ("compile_seconds", "x", "a valid number"),
    ],
)
def test_a_wrong_value(name: str, value: str, said: str) -> None:
    with pytest.raises(MaskwrightError, match=said):
        read_settings(None, {f"MASKWRIGHT_VLLM_{name.upper()}": value})


@pytest.mark.parametrize("value", [True, 0, -1, 1.5, "x", None, [1], math.inf, math.nan, -math.inf])
def test_a_wrong_value_in_the_configuration(value: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"additional_config\['maskwright'\]\['cache_entries'\]"):
        read_settings({"maskwright": {"cache_entries": value}}, {})


def test_numbers_past_all_limits_and_names_that_are_none() -> None:
    for value in (math.inf, 10**400, "1e999"):
        with pytest.raises(MaskwrightError, match=r"\['check_seconds'\] is"):
            read_settings({"maskwright": {"check_seconds": value}}, {})
    with pytest.raises(MaskwrightError, match=r"\['stores'\] is"):
        read_settings({"maskwright": {"stores": {1: "x", "b": "y"}}}, {})
    with pytest.raises(MaskwrightError, match=r"\['stores'\] is .*expected name=path,name=path or an object"):
        read_settings({"maskwright": {"stores": [["b", "x"], ["a", "y"]]}}, {})
    with pytest.raises(UnknownNameError, match="there is no setting 5"):
        read_settings({"maskwright": {5: 3}}, {})


@pytest.mark.parametrize("value", ["compct", "[", 10**30, "[ \t]{" + "0" * 2000 + "1}"])
def test_white_space_that_no_request_could_have_ends_the_start(value: Any) -> None:
    settings = read_settings({"maskwright": {"whitespace": value}}, {})
    with pytest.raises(MaskwrightError, match="for all requests: "):
        make_compiler(VOCABULARY, settings, RequestOptions(settings.whitespace), VOCABULARY.size)


def test_the_cache_on_disk_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that were not asked for the longest are deleted when a new one comes; other files stay."""
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    (tmp_path / "mine.safetensors").write_bytes(b"x" * 2_000_000)
    warmed = warm_cache('start: "warm"', VOCABULARY)

    def stores() -> set[Path]:
        return set(tmp_path.glob("request-*"))

    def compile_grammar(text: str, **settings: int) -> None:
        found = read_settings({"maskwright": settings}, {})
        made = make_compiler(VOCABULARY, found, RequestOptions(), VOCABULARY.size)
        made.compile("grammar", text).close()

    grammars = [f'start: "{k}" "a"+' for k in range(3)]
    paths = []
    for k, text in enumerate(grammars):
        before = stores()
        compile_grammar(text)
        (path,) = stores() - before
        os.utime(path, (1000 + k, 1000 + k))
        with path.open("r+b") as file:
            file.truncate(400_000)  # damaged, and so large
        os.utime(path, (1000 + k, 1000 + k))
        paths.append(path)
    compile_grammar('start: "new"', disk_megabytes=1)
    assert stores() >= set(paths[1:]) and paths[0] not in stores()
    paths[1].unlink()
    compile_grammar(grammars[1])
    os.utime(paths[1], (500, 500))
    compile_grammar(grammars[1])  # it is read, and so the newest
    assert paths[1].stat().st_atime > 1e9 > paths[1].stat().st_mtime
    before = stores()
    compile_grammar('start: "newer"', disk_megabytes=0)
    assert stores() == before and (tmp_path / "mine.safetensors").exists()
    with warmed.open("r+b") as file:
        file.truncate(3_000_000)
    compile_grammar('start: "newest"', disk_megabytes=1)
    assert warmed.exists() and (tmp_path / "mine.safetensors").exists()  # what was made ahead stays


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
