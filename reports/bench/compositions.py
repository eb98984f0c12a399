"""What a mask of a composition costs, beside the same language alone: the time of `fill` and `advance`.

python reports/bench/compositions.py

Each text is written token by token: at each step the longest token that goes on with it. It is read ROUNDS times, and each step counts
with its least time. Between `fill` and `advance` the next token is looked up in Python, which leaves little of us in the processor's
caches, as a model would; `warm` is the same without that. `first` is the first reading, under a new store: nothing is known yet of the
host's states. A language alone is the part's text under the part's own store, in the same run. `step` is mask and token together, warm.
Calls of tools are those of eight tools; of each way to write them one text.

`new tag` is the CPU time to read and build a tag of so many tools that differ from all before in names and schemas, once the vocabulary
is known; the least of ROUNDS tags.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import write_record
from rich.console import Console
from rich.table import Table

import maskwright as mw
from maskwright.analysis.composition.structural_tags_xml import STYLES as XML_STYLES

ROUNDS = 5
VOCABULARIES = ("mistral-7b-v0.1", "tekken")
PYTHON = """def mean(values):
    '''The mean of some numbers.'''
    if len(values) < 1:
        return 0.0
    return sum(values) / len(values)
"""
JSON = '{"name": "mean", "values": [1, 2.5, {"unit": "kg", "note": "a \\"rough\\" figure"}], "done": true}'
SQL = "SELECT name, count(*) FROM \"orders\" WHERE total > 100 AND city = 'Rome' GROUP BY name;"
QUERY = {
    "type": "object",
    "properties": {"sql": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["sql", "limit"],
    "additionalProperties": False,
}
CASES: dict[str, tuple[Any, dict[str, Any], str, Any, str]] = {
    "JSON in a fence": (
        'start: PROSE "```json\\n" ANSWER "\\n```\\n"\nPROSE: /[^`]+/\n%declare ANSWER',
        {"ANSWER": {"type": "object"}},
        f"Here is what you asked for:\n```json\n{JSON}\n```\n",
        {"type": "object"},
        JSON,
    ),
    "Python in a tag": (
        'start: "<code>" CODE "</code>"\n%declare CODE',
        {"CODE": "python"},
        f"<code>{PYTHON}</code>",
        "python",
        PYTHON,
    ),
    "SQL in a JSON string": (QUERY, {"/properties/sql": "sql"}, json.dumps({"sql": SQL, "limit": 3}), "sql", SQL),
}

ARGUMENTS = '{"city": "San Francisco", "unit": "celsius", "days": 3, "options": {"verbose": true, "lang": "en"}}'
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "options": {
            "type": "object",
            "properties": {"verbose": {"type": "boolean"}, "lang": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
NAMES = [f"get_weather_{number}" for number in range(8)]


def _tools(family: Any) -> Any:
    return mw.read_tools([{"name": name, "parameters": PARAMETERS} for name in NAMES], family=family)


def _xml(style: str) -> Any:
    content = {"type": "json_schema", "json_schema": PARAMETERS, "style": style}
    tags = [{"begin": f"<function={name}>", "content": content, "end": "</function>"} for name in NAMES]
    call = {"type": "triggered_tags", "triggers": ["<function="], "tags": tags}
    return mw.read_structural_tag({"type": "structural_tag", "format": call})


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "Hermes, Qwen 3": (
        lambda: _tools("hermes"),
        f'I look.\n<tool_call>\n{{"name": "get_weather_3", "arguments": {ARGUMENTS}}}\n</tool_call>',
    ),
    "Llama 3": (lambda: _tools("llama"), f'{{"name": "get_weather_3", "parameters": {ARGUMENTS}}}'),
    "Llama 3, own tag": (lambda: _tools("llama-tag"), f"I look.\n<function=get_weather_3>{ARGUMENTS}</function>"),
    "Qwen 3 Coder": (
        lambda: _xml("qwen_xml"),
        "I look.\n<function=get_weather_3><parameter=city>San Francisco</parameter><parameter=days>3</parameter></function>",
    ),
    "DeepSeek": (
        lambda: _xml("deepseek_xml"),
        'I look.\n<function=get_weather_3><｜DSML｜parameter name="city" string="true">San Francisco</｜DSML｜parameter></function>',
    ),
}


WORDS = [
    "owner",
    "repo",
    "issue",
    "pull",
    "title",
    "body",
    "state",
    "label",
    "path",
    "ref",
    "page",
    "query",
    "sort",
    "order",
]
KINDS: list[Any] = [
    *[{"type": "string"}] * 5,
    *[{"type": "number"}] * 2,
    {"type": "string", "enum": ["open", "closed", "all"]},
    {"type": "boolean"},
    {"type": "integer", "minimum": 0},
    {"type": "array", "items": {"type": "string"}},
    PARAMETERS["properties"]["options"],
]
STYLES = ("json", *XML_STYLES)
SIZES = (8, 128)


def new_tag(style: str, size: int, numbers: Iterator[int]) -> Any:
    """A tag of tools that no tag had before. numbers : of the tools so far."""
    tags = []
    for number in itertools.islice(numbers, size):
        rng = random.Random(number)
        names = rng.sample(WORDS, rng.randrange(2, 9))
        properties = {name: rng.choice(KINDS) for name in names}
        schema = {"type": "object", "properties": properties, "required": names[:2], "additionalProperties": False}
        content = {"type": "json_schema", "json_schema": schema, "style": style}
        tags.append({"type": "tag", "begin": f"<function=tool_{number}>", "content": content, "end": "</function>"})
    return {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<function="], "tags": tags}}


def compile_times(vocabulary: Any) -> dict[str, dict[str, float]]:
    """CPU milliseconds of new tags, by style and number of tools."""
    numbers = itertools.count()
    found: dict[str, dict[str, float]] = {}
    for style in STYLES:
        mw.build_store(mw.read_structural_tag(new_tag(style, 8, numbers)), vocabulary).matcher()
        for size in SIZES:
            least = math.inf
            for _ in range(ROUNDS):
                tag = new_tag(style, size, numbers)
                begin = time.process_time_ns()
                mw.build_store(mw.read_structural_tag(tag), vocabulary).matcher()
                least = min(least, time.process_time_ns() - begin)
            found.setdefault(style, {})[f"{size} tools"] = round(least / 1e6, 1)
    return found


def measure(store: Any, text: str) -> dict[str, float]:
    """CPU microseconds of the steps of a text."""
    tokens: dict[int, list[tuple[int, int, bytes]]] = {}
    for token, data in enumerate(store.vocabulary.tokens):
        if data:
            tokens.setdefault(data[0], []).append((len(data), token, data))
    data, at, path = text.encode(), 0, list[int]()
    while at < len(data):
        n, token, _ = max(one for one in tokens[data[at]] if data.startswith(one[2], at))
        path.append(token)
        at += n

    def lookup(at: int) -> int:
        return max(one for one in tokens[data[at]] if data.startswith(one[2], at))[1]

    cold = [_times(store, path, lookup) for _ in range(ROUNDS)]
    warm = [_times(store, path, None) for _ in range(ROUNDS)]
    fills, advances = np.min(np.array(cold), axis=0).T / 1000
    steps = np.min(np.array(warm), axis=0).sum(axis=1) / 1000
    return {
        "tokens": len(fills),
        "fill_p50": round(float(np.median(fills)), 1),
        "fill_mean": round(float(np.mean(fills)), 1),
        "fill_max": round(float(np.max(fills)), 1),
        "first_fill_mean": round(float(np.mean(np.array(cold[0])[:, 0])) / 1000, 1),
        "warm_fill_p50": round(float(np.median(np.min(np.array(warm), axis=0)[:, 0])) / 1000, 1),
        "advance_p50": round(float(np.median(advances)), 1),
        "advance_mean": round(float(np.mean(advances)), 1),
        "step_mean": round(float(np.mean(steps)), 1),
        "step_p99": round(float(np.percentile(steps, 99)), 1),
    }


def _times(store: Any, path: list[int], lookup: Callable[[int], int] | None) -> list[tuple[int, int]]:
    """Nanoseconds of `fill` and of `advance` for each token of a text. lookup : what is done between them."""
    words = np.zeros(-(-store.vocabulary.size // 32), np.uint32)
    matcher, steps, at = store.matcher(), [], 0
    for token in path:
        begin = time.perf_counter_ns()
        matcher.fill(words)
        filled = time.perf_counter_ns()
        if lookup is not None:
            lookup(at)
        if not words[token >> 5] >> np.uint32(token & 31) & 1:
            raise SystemExit(f"the mask lacks {store.vocabulary.tokens[token]!r} at {at}")
        between = time.perf_counter_ns()
        matcher.advance(token)
        steps.append((filled - begin, time.perf_counter_ns() - between))
        at += len(store.vocabulary.tokens[token])
    if not matcher.is_accepting():
        raise SystemExit("the text is not whole")
    return steps


def main() -> None:
    """Measure all cases and write a record."""
    found, tags = [], []
    for name in VOCABULARIES:
        vocabulary = mw.load_vocabulary(name)
        tags += [{"vocabulary": name, "style": style, **row} for style, row in compile_times(vocabulary).items()]
        for case, (host, parts, text, alone, part) in CASES.items():
            composed = mw.cached_store(mw.compose(host, parts), vocabulary)
            found.append({"vocabulary": name, "case": case, "texts": "composed", **measure(composed, text)})
            found.append(
                {
                    "vocabulary": name,
                    "case": case,
                    "texts": "alone",
                    **measure(mw.cached_store(alone, vocabulary), part),
                }
            )
        for case, (tools, text) in CALLS.items():
            store = mw.build_store(tools(), vocabulary)
            found.append({"vocabulary": name, "case": case, "texts": "call", **measure(store, text)})
    for rows in (found, tags):
        table = Table(*rows[0])
        for row in rows:
            table.add_row(*map(str, row.values()))
        Console().print(table)
    write_record(
        "compositions",
        "python reports/bench/compositions.py",
        {"unit": "microseconds", "rounds": ROUNDS, "rows": found, "new_tag_ms": tags},
    )


if __name__ == "__main__":
    main()
