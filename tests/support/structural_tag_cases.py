"""Tool calls in the formats of the models that xgrammar knows, and xgrammar's verdicts on them.

    python tests/support/structural_tag_cases.py

records the verdicts anew, where xgrammar is installed. A verdict is w for a whole text, b for the
beginning of one, - for neither.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parents[1] / "data" / "cases" / "structural_tags.json"

FIND = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "where": {
            "type": "object",
            "properties": {"lat": {"type": "number"}},
            "required": ["lat"],
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
STOP = {
    "type": "object",
    "properties": {"why": {"enum": ["done", "lost"]}},
    "required": ["why"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema}}
    for name, schema in (("find", FIND), ("stop", STOP))
]
CHOICES: dict[str, Any] = {
    "auto": "auto",
    "required": "required",
    "stop": {"type": "function", "function": {"name": "stop"}},
}

Arguments = list[tuple[str, Any]]


def _json(arguments: Arguments) -> str:
    return json.dumps(dict(arguments))


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _named(begin: str, behind: str, end: str) -> Callable[[Arguments], str]:
    return lambda arguments: "".join(f"{begin}{key}{behind}{_raw(value)}{end}" for key, value in arguments)


def _dsml(blank: str) -> Callable[[Arguments], str]:
    def write(arguments: Arguments) -> str:
        return "".join(
            f'<｜DSML｜{blank}parameter name="{key}" string="{"true" if isinstance(value, str) else "false"}">{_raw(value)}'
            f"</｜DSML｜{blank}parameter>"
            for key, value in arguments
        )

    return write


def _kimi(arguments: Arguments) -> str:
    kinds = {str: "string", int: "number", dict: "object"}
    return "".join(
        f'<|open|>argument key="{key}" type="{kinds[type(value)]}"<|sep|>{_raw(value)}<|close|>argument<|sep|>'
        for key, value in arguments
    )


def _cohere(arguments: Arguments) -> str:
    found = ""
    for key, value in arguments:
        kind = {str: "raw", dict: "dict"}.get(type(value), "json")
        said = _cohere(list(value.items())) if isinstance(value, dict) else _raw(value)
        found += f'<cofl:value name="{key}" type="{kind}">{said}</cofl:value>'
    return found


def _minimax_m3(arguments: Arguments) -> str:
    found = ""
    for key, value in arguments:
        said = _minimax_m3(list(value.items())) if isinstance(value, dict) else _raw(value)
        found += f"]<]minimax[>[<{key}>{said}]<]minimax[>[</{key}>"
    return found


_QWEN = _named("\n<parameter=", ">\n", "\n</parameter>")
_INVOKE = "<｜DSML｜invoke name="
# of each model: the arguments; a call; what stands around calls
MODELS: dict[str, tuple[Callable[[Arguments], str], str, str]] = {
    "llama": (_json, '{"name": "NAME", "parameters": ARGUMENTS}', "CALLS"),
    "kimi": (
        _json,
        "<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGUMENTS<|tool_call_end|>",
        "<|tool_calls_section_begin|>CALLS<|tool_calls_section_end|>",
    ),
    "kimi_k3": (
        _kimi,
        '<|open|>call tool="NAME" index="1"<|sep|>ARGUMENTS<|close|>call<|sep|>',
        "<|close|>response<|sep|><|open|>tools<|sep|>CALLS<|close|>tools<|sep|><|close|>message<|sep|>",
    ),
    "deepseek_r1": (
        _json,
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGUMENTS\n```<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>CALLS<｜tool▁calls▁end｜>",
    ),
    "deepseek_v3_1": (
        _json,
        "<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS<｜tool▁call▁end｜>",
        "<｜tool▁calls▁begin｜>CALLS<｜tool▁calls▁end｜>",
    ),
    "qwen_3_coder": (_QWEN, "<tool_call>\n<function=NAME>\nARGUMENTS\n</function>\n</tool_call>", "CALLS"),
    "qwen_3_5": (_QWEN, "<tool_call>\n<function=NAME>\nARGUMENTS\n</function>\n</tool_call>", "CALLS"),
    "mimo": (
        _named("<parameter=", ">", "</parameter>"),
        "<tool_call><function=NAME>ARGUMENTS</function></tool_call>",
        "CALLS",
    ),
    "qwen_3": (_json, '<tool_call>\n{"name": "NAME", "arguments": ARGUMENTS}\n</tool_call>', "CALLS"),
    "harmony": (_json, "<|channel|>commentary to=functions.NAME<|constrain|>json<|message|>ARGUMENTS<|call|>", "CALLS"),
    "deepseek_v3_2": (
        _dsml(""),
        f'{_INVOKE}"NAME">\nARGUMENTS\n</｜DSML｜invoke>\n',
        "\n\n<｜DSML｜function_calls>\nCALLS</｜DSML｜function_calls>",
    ),
    "minimax": (
        _named('<parameter name="', '">', "</parameter>"),
        '<invoke name="NAME">\nARGUMENTS\n</invoke>\n',
        "\n</think>\n\n\n\n\n<minimax:tool_call>\nCALLS</minimax:tool_call>",
    ),
    "minimax_m3": (
        _minimax_m3,
        ']<]minimax[>[<invoke name="NAME">ARGUMENTS]<]minimax[>[</invoke>\n',
        "]<]minimax[>[<tool_call>\nCALLS]<]minimax[>[</tool_call>",
    ),
    "glm_4_7": (
        _named("<arg_key>", "</arg_key><arg_value>", "</arg_value>"),
        "<tool_call>NAMEARGUMENTS</tool_call>",
        "CALLS",
    ),
    "deepseek_v4": (
        _dsml(""),
        f'{_INVOKE}"NAME">\nARGUMENTS\n</｜DSML｜invoke>\n',
        "\n\n<｜DSML｜tool_calls>\nCALLS</｜DSML｜tool_calls>",
    ),
    "deepseek_v4_1": (
        _dsml(" "),
        '<｜DSML｜ invoke name="NAME">\nARGUMENTS\n</｜DSML｜ invoke>\n',
        "\n\n<｜DSML｜ calls>\nCALLS</｜DSML｜ calls>",
    ),
    "cohere": (
        _cohere,
        '<cofl:tool_call id="0" name="NAME">ARGUMENTS</cofl:tool_call>',
        "<cofl:tool_calls>CALLS</cofl:tool_calls>",
    ),
    "exaone": (_json, '<tool_call>{"name": "NAME", "arguments": ARGUMENTS}</tool_call>', "CALLS"),
}


def texts_of(model: str) -> list[str]:
    """Tool calls of a model, right ones and wrong ones, and free text."""
    write, call, around = MODELS[model]

    def calls(*each: tuple[str, Arguments]) -> str:
        said = "".join(call.replace("NAME", name).replace("ARGUMENTS", write(values)) for name, values in each)
        return around.replace("CALLS", said)

    rome: Arguments = [("city", "Rome")]
    all_of_them: Arguments = [*rome, ("days", 2), ("where", {"lat": 41.9})]
    whole = calls(("find", all_of_them))
    return [
        whole,
        calls(("find", rome)),
        calls(("stop", [("why", "lost")])),
        calls(("find", rome), ("stop", [("why", "done")])),
        calls(("find", [("city", "a < b & c")])),
        calls(("find", [("days", 2)])),
        calls(("find", [*rome, ("days", "two")])),
        calls(("find", [("days", 2), *rome])),
        calls(("find", [*rome, ("where", {"lon": 1})])),
        calls(("find", [*rome, ("street", "x")])),
        calls(("find", [*rome, *rome])) if write is not _json else calls(("find", [*rome, ("city2", "x")])),
        calls(("stop", [("why", "bored")])),
        calls(("look", rome)),
        whole[: len(whole) // 2],
        whole[:-1],
        whole + "!",
        "Hello.",
        "",
    ]


def cases() -> list[dict[str, Any]]:
    """The recorded cases: model, choice, format, texts and xgrammar's verdicts."""
    found: list[dict[str, Any]] = json.loads(RECORD.read_text())
    return found


def verdicts_of_xgrammar(tag: dict[str, Any], texts: list[str]) -> str:
    """The verdicts of the installed xgrammar."""
    import xgrammar

    tokens = [bytes((byte,)) for byte in range(256)]
    info = xgrammar.TokenizerInfo([*tokens, b"</s>"], vocab_size=257, stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(xgrammar.StructuralTag.model_validate(tag))
    found = ""
    for text in texts:
        matcher = xgrammar.GrammarMatcher(compiled)
        found += "-" if not matcher.accept_string(text) else "w" if matcher.accept_token(256) else "b"
    return found


def record() -> None:
    """Write the verdicts of the installed xgrammar."""
    import xgrammar

    found = []
    for model in MODELS:
        for choice, said in CHOICES.items():
            tag = _short(xgrammar.get_model_structural_tag(model, TOOLS, said, "disabled").model_dump())
            texts = texts_of(model)
            found.append({"model": model, "choice": choice, "tag": tag, "verdicts": verdicts_of_xgrammar(tag, texts)})
    RECORD.write_text(
        json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace('{"model"', '\n{"model"') + "\n"
    )


def _short(form: Any) -> Any:
    """A tag without members that say nothing."""
    if isinstance(form, dict):
        if form.get("type") == "json_schema":
            return {
                key: form[key] for key in ("type", "json_schema", "style", "excludes") if form[key] not in ("json", [])
            }
        return {key: _short(value) for key, value in form.items() if value not in (None, False, [])}
    return [_short(one) for one in form] if isinstance(form, list) else form


if __name__ == "__main__":
    record()
