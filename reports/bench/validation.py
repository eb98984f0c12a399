"""The three experiments on real code, as `maskwright validate` runs them, and completions of held-out files by the bundled model.

python reports/bench/validation.py [--quick] [--grammar GRAMMAR] [--python EXECUTABLE] [--only PARTS]

1 true next tokens: the standard library and the Python files of the evaluation data, V = 32,000 and 131,072; and what replay costs beside
  encoding the same texts with `tokenizers` (the bundled model's tokenizer.json, the only one in that format at hand).
2 texts drawn under the masks, half uniformly, half by the bundled model, closed with a shortest ending, before CPython's parser.
3 masks of the compiled store and of the entries before streamlining.
4 200 prefixes of held-out files of the standard library completed by the bundled model, with masks and without, before CPython's parser.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from common import add_data, data_files, records_folder, write_record
from rich.progress import track

import maskwright as mw
from maskwright.completion import ModelDraw, start_completion
from maskwright.maskstore.vocabulary.encoders import load_encoder
from maskwright.models import BUNDLED, is_held_out, model_folder
from maskwright.validation.references import make_reference

PARTS = ("replay", "streamlined", "uniform", "model", "completions")
LIBRARY = Path(sysconfig.get_path("stdlib"))


def library_files() -> list[Path]:
    return [path for path in sorted(LIBRARY.rglob("*.py")) if "site-packages" not in path.parts]


def replayed(store: Any, reference: str, quick: bool) -> dict[str, Any]:
    paths = [str(LIBRARY / "*.py"), str(LIBRARY / "asyncio"), str(LIBRARY / "email")]
    if not quick:
        paths += [str(LIBRARY / "[a-su-z]*"), *map(str, data_files("source/python"))]
    report = mw.validate(store, paths, check="replay", suffixes=[".py"], reference=reference)
    return report.to_dict()


def costs(store: Any, name: str) -> dict[str, float]:
    """CPU seconds a MB of text: `tokenizers`, the store's own encoder, and the replay through the masks."""
    from tokenizers import Tokenizer

    texts = [path.read_text("utf-8") for path in sorted(LIBRARY.glob("*.py"))[:120]]
    size = sum(len(text.encode()) for text in texts) / 1e6
    plain = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    encoder = load_encoder(name)
    plain.encode(texts[0]), encoder.encode(texts[0])
    begin = time.process_time()
    n_plain = sum(len(plain.encode(text).ids) for text in texts)
    middle = time.process_time()
    tokens = [encoder.exact_tokens(text).tokens for text in texts]
    after = time.process_time()
    matcher = store.matcher()
    matcher.replay(tokens[0])
    begun = time.process_time()
    read = 0
    for one in tokens:
        matcher.reset()
        read += matcher.replay(one)
    end = time.process_time()
    return {
        "megabytes": round(size, 2),
        "tokenizers_s_per_mb": round((middle - begin) / size, 4),
        "tokenizers_us_per_token": round((middle - begin) / n_plain * 1e6, 3),
        "own_encoder_s_per_mb": round((after - middle) / size, 4),
        "replay_s_per_mb": round((end - begun) / size, 4),
        "replay_us_per_token": round((end - begun) / read * 1e6, 3),
    }


def completions(store: Any, model: Any, judge: Any, n: int) -> dict[str, Any]:
    """Prefixes of held-out files that end inside a line somewhere, completed by 60 tokens."""

    def parses(text: str) -> bool:
        return bool(judge.judge(text).answer == "accepted")

    chosen = random.Random(7)
    files = [path for path in library_files() if is_held_out(path.relative_to(LIBRARY).as_posix())]
    counts = {"prefixes": 0, "constrained": 0, "closed_by_the_grammar": 0, "unconstrained": 0}
    refused: list[str] = []
    first: list[float] = []
    tries = 0
    with track_of(n) as step:
        while counts["prefixes"] < n and tries < 50 * n:
            tries += 1
            text = chosen.choice(files).read_text("utf-8", errors="replace")
            if not parses(text) or len(text) < 400:
                continue
            prefix = text[: chosen.randrange(100, min(len(text), 3000))]
            try:
                generation = start_completion(
                    store, prefix, model, max_tokens=60, temperature=0.7, top_p=0.95, seed=tries
                )
            except mw.IllegalTokenError:
                continue  # outside the grammar
            begin = time.perf_counter()
            for _ in generation:
                if len(first) == counts["prefixes"]:
                    first.append(time.perf_counter() - begin)
            done = generation.completion
            free = start_completion(
                store, prefix, model, constrained=False, max_tokens=60, temperature=0.7, top_p=0.95, seed=tries
            ).run()
            whole = prefix + done.data.decode("utf-8", "replace")
            matcher = store.matcher()
            matcher.advance_bytes(whole.encode())
            counts["prefixes"] += 1
            counts["closed_by_the_grammar"] += matcher.is_accepting()
            counts["constrained"] += parses(whole)
            counts["unconstrained"] += parses(prefix + free.data.decode("utf-8", "replace"))
            if not parses(whole):
                refused.append(judge.judge(whole).message[:80])
            step()
    first.sort()
    return {**counts, "refused_by_cpython": refused, "first_token_s": {"p50": first[len(first) // 2], "max": first[-1]}}


@contextlib.contextmanager
def track_of(n: int) -> Any:
    progress = iter(track(range(n), description="completions"))
    yield lambda: next(progress, None)


class Record:
    """The record of the day, written after each part, so that one may be asked for at a time; parts measured before stay in it."""

    def __init__(self, grammar: str, python: str, is_quick: bool) -> None:
        self.name = f"validation-{grammar.replace(':', '-')}"
        other = " --python PYTHON" if python != sys.executable else ""
        self.command = f"python reports/bench/validation.py --grammar {grammar}{other}"
        self.is_quick = is_quick
        self.judge = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
        self.facts: dict[str, Any] = {}
        path = records_folder() / f"{datetime.date.today().isoformat()}-{self.name}.json"
        if path.exists():
            before = json.loads(path.read_text("utf-8"))
            self.facts = {name: part for name, part in before.items() if name not in ("date", "command", "machine")}

    def add(self, name: str, part: dict[str, Any]) -> None:
        refused = [finding for finding in part.pop("findings", []) if finding.get("failure")]
        if name.startswith("sample"):
            part["refused"] = [short(finding) for finding in refused]
        part.pop("settings", None)  # it names places on this machine
        print(name, {key: part[key] for key in part if key in ("classes", "causes", "figures", "costs")} or part)
        self.facts[name] = {"judged_by": self.judge, **part}
        if not self.is_quick:
            write_record(self.name, self.command, self.facts)


def short(finding: dict[str, Any]) -> dict[str, str]:
    """A refused text: why, and its end."""
    text = finding.get("minimal", finding).get("text", finding["before"])
    return {"why": finding["why"], "text": text[-200:], "ending": finding["ending"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small amounts, no record")
    parser.add_argument("--grammar", default="python")
    parser.add_argument(
        "--only", metavar="PARTS", help=f"some of {','.join(PARTS)}; the others stay in the day's record"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="whose parser judges; the grammar python is that of 3.13"
    )
    add_data(parser)
    args = parser.parse_args()
    quick, reference = args.quick, f"python:{args.python}"
    judge = make_reference(reference)
    record = Record(args.grammar, args.python, args.quick)
    grammar = mw.load_grammar(args.grammar)
    only = set(args.only.split(",")) if args.only else set(PARTS)
    for name in ("mistral-7b-v0.1", "tekken"):
        if not only & ({"replay"} if name == "tekken" else {"replay", "streamlined", "uniform"}):
            continue
        store: Any = mw.cached_store(grammar, mw.load_vocabulary(name))
        if "replay" in only:
            record.add(f"replay {name}", {**replayed(store, reference, quick), "costs": costs(store, name)})
        if name == "mistral-7b-v0.1" and "streamlined" in only:
            amount = 3_000 if quick else 300_000
            report = mw.validate(store, [str(LIBRARY / "*.py")], check="streamlined", amount=amount)
            record.add("streamlined", report.to_dict())
        if name == "mistral-7b-v0.1" and "uniform" in only:
            amount = 20 if quick else 500
            report = mw.validate(store, check="sample", amount=amount, budget=800, cuts=2, reference=reference)
            record.add("sample uniform", report.to_dict())
    if only & {"model", "completions"}:
        tiny: Any = mw.cached_store(grammar, mw.load_vocabulary(str(model_folder())))
        model = mw.load_model(BUNDLED, "cpu")
        if "completions" in only:
            record.add("completions", completions(tiny, model, judge, 5 if quick else 200))
        if "model" in only:
            report = mw.validate(
                tiny, check="sample", amount=10 if quick else 500, budget=400, cuts=2, next_token=ModelDraw(model),
                reference=reference,
            )  # fmt: skip
            record.add("sample model", report.to_dict())


if __name__ == "__main__":
    main()
