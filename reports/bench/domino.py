"""Domino's table 3 and figure 5, how fast each way of writing under its grammars is, relative to no masks; and appendix A on white space.

python reports/bench/domino.py [--models bundled,int8,float32] [--texts N] [--long N] [--from FOLDER] [--data PATH ...] [--quick]

The paper lets Mistral 7B and Llama 2 13B answer prompts on GPUs. Neither they nor its prompts are at hand, so texts of its grammars are
replayed: at each place the model's likeliest token is made to be the next one of a text. So all ways write the same tokens, as a model
does that keeps to the format unasked. `same` counts the texts that came out as they were wanted. Measured is the time of whole
completions, passes of the model and masks, without what compiles the grammar or loads the model.

- Models: the bundled one; and 24 layers of the shape of Qwen 2.5 0.5B with random weights and Mistral 7B's tokenizer, the weights of a byte
  each (int8) or float32. The bundled model's passes are short, so that masks and Python weigh.
- Texts: of json_gsm8k, conll, xml_person and rpg_template as tests/support/domino_tasks.py draws them, with words of the standard library's
  docstrings, and of c as tests/support/domino_c.py does, in one layout each; json has the texts of json_gsm8k, without their schema. With
  --from FOLDER those in FOLDER/GRAMMAR/* are taken, where that is there. Counts are learned from --learned other texts (with
  a folder: from those behind the first N).
- Times: CPU seconds with one thread of PyTorch, the least of --repeats; all ways of a text in turn, after one run of each that does not
  count.
- calls_a_token: passes of the model for a token. They do not depend on the machine; a GPU reads a few tokens in the time of one.

White space: instances of small schemas of SchemaStore, each in three layouts, are replayed with the bundled model in the styles compact,
natural and any: tokens, and passes with forced tokens and without. And what the model writes of these schemas itself, greedily.

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988), section 4.2 and appendix A.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bundled_model import held_out_files
from common import add_data, cpu_seconds, has_records, least_in_turn, machine, shared_records, write_record
from corpora.domino_c import LEXEME, domino_c
from corpora.domino_tasks import domino_tasks
from domino_chart import picture
from generation_replay import BEGIN, ROOM, SHAPE, TOKENIZER, wanting
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.analysis.errors import MaskwrightError
from maskwright.maskstore.vocabulary.encoders import load_encoder

HERE = Path(__file__).resolve()
GRAMMARS = ("json", "domino.json_gsm8k", "domino.conll", "domino.c", "domino.xml_person", "domino.rpg_template")
SPECULATED = (1, 2, 4, 8, 16)
"""Domino's s: tokens that are put after the text at most."""
WAYS: dict[str, dict[str, Any]] = {
    "without masks": {},
    "masks": {},
    "own choice first": {"opportunistic": True},
    "forced tokens": {"fast_forward": True},
    **{f"counts, s = {s}": {"ahead": s} for s in SPECULATED},
}
LEAST, MOST = 80, 400
"""Bytes of a text; a character of rpg_template has more."""
STYLES = ("compact", "natural", "any")
LAYOUTS: dict[str, dict[str, Any]] = {"compact": {"separators": (",", ":")}, "one line": {}, "indented": {"indent": 2}}
WRITTEN = [("compact", "compact"), *((style, layout) for style in ("natural", "any") for layout in LAYOUTS)]
"""Styles, and the layouts in which they can be written."""
SCHEMAS = 8
LONGEST = 1_500
"""Bytes of a schema, and of its instance."""
FILLED = 120
"""Tokens of a text that the model writes itself."""


# ---- Texts


@cache
def words() -> tuple[str, ...]:
    """Words of docstrings of the standard library, as often as they come there."""
    docs = (ast.get_docstring(ast.parse(path.read_bytes())) or "" for path in islice(held_out_files(), 60))
    return tuple(word for text in docs for word in re.findall(r"[A-Za-z][a-z']*", text))


def drawn(grammar: str) -> Iterator[str]:
    """Texts of a grammar, each of them in the same layout, as a model keeps to one."""
    task = {"json": "json_gsm8k"}.get(grammar, grammar.removeprefix("domino."))
    if task == "c":
        for text in domino_c.texts(100_000, 2):
            lexemes = (found[0].strip() for found in LEXEME.finditer(text))
            yield "".join(one + ("\n" if one in ("{", "}", ";") or one.startswith("//") else " ") for one in lexemes)
    for text in domino_tasks.texts(task, 100_000, 2) if task != "c" else ():
        if task == "rpg_template" or not re.search(r"\n|>  <", text):
            yield text


def texts_of(grammar: str, folder: Path | None, n: int, n_learned: int) -> tuple[list[str], list[str]]:
    """Texts to measure and to learn from: one's own files if there are some, else drawn ones."""
    files = sorted(path for path in (folder / grammar).glob("*") if path.is_file()) if folder else []
    if files:
        found = [path.read_text(encoding="utf-8") for path in files]
        return found[:n], found[n : n + n_learned]
    fitting = (text for text in drawn(grammar) if LEAST <= len(text) <= MOST or grammar == "domino.rpg_template")
    with patch.object(domino_tasks, "WORDS", words()):
        found = list(islice(fitting, n_learned + n))
    return found[n_learned:], found[:n_learned]


# ---- Models that want a text


@dataclass
class Replay:
    """A model that wants a text: at each place its likeliest token is the next one of `model.text`.

    tokenizer : its name. begin : the begin-of-text token. tokenize : makes the tokenizer's tokens of a text.
    """

    model: Any
    tokenizer: str
    begin: int
    tokenize: Callable[[str], list[int]]

    def write(self, store: Any, text: list[int], **more: Any) -> tuple[float, mw.Completion, bool]:
        """A text under a store's masks, or without them: CPU seconds, the completion, and whether it is the text."""
        vocabulary = mw.load_vocabulary(self.tokenizer)
        self.model.text = (self.begin, *text, vocabulary.eos[0])
        matcher = None if store is None else store.matcher(max_rollback=64)
        one = mw.generate(self.model, matcher, [self.begin], vocabulary=vocabulary, max_tokens=len(text) + ROOM, **more)
        seconds = cpu_seconds(one.run)
        return seconds, one.completion, list(one.completion.tokens) == text


def bundled() -> Replay:
    """The bundled model, which is made to want a text as generation_replay's is."""
    import torch

    language_model = mw.load_model(device="cpu")
    model = language_model.model

    def want(_model: Any, _given: Any, found: Any) -> None:
        cache = getattr(found, "cache", None) or found.past_key_values
        n_rows = found.logits.shape[1]
        behind = cache.get_seq_length() - n_rows + 1
        wanted = [model.text[min(at, len(model.text) - 1)] for at in range(behind, behind + n_rows)]
        found.logits[0, torch.arange(n_rows), torch.tensor(wanted)] = 1e4

    model.register_forward_hook(want)
    return Replay(model, "python-tiny", 0, lambda text: language_model.tokens_of(text)[1:])


def large(*, is_int8: bool) -> Replay:
    """The model of 24 layers."""
    import torch

    vocabulary, encode = mw.load_vocabulary(TOKENIZER), load_encoder(TOKENIZER).tokenize

    def tokenize(text: str) -> list[int]:
        """The tokens that a text has behind a line break, where the tokenizer puts no blank before it."""
        _, _, *ids = encode("\n" + text)
        return ids

    return Replay(wanting(torch, vocabulary.size, "cpu", is_int8=is_int8), TOKENIZER, BEGIN, tokenize)


MODELS: dict[str, Callable[[], Replay]] = {
    "bundled": bundled,
    "int8": partial(large, is_int8=True),
    "float32": partial(large, is_int8=False),
}


# ---- Table 3 and figure 5


def of_grammar(grammar: str, replay: Replay, texts: list[str], learned: list[str], repeats: int) -> dict[str, Any]:
    """What each way takes for the texts of a grammar."""
    vocabulary, canonical = mw.load_vocabulary(replay.tokenizer), mw.load_canonical(replay.tokenizer)
    store = mw.cached_store(grammar, replay.tokenizer)
    counts = mw.TokenCounts(vocabulary)
    for text in learned:
        counts.learn(store.matcher(), [*replay.tokenize(text), vocabulary.eos[0]])
    rows: dict[str, list[tuple[mw.Completion, bool]]] = {way: [] for way in WAYS}
    seconds = dict.fromkeys(WAYS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "counts.json"
        counts.save(saved)

        def write(way: str, text: list[int], found: dict[str, Any]) -> float:
            more = dict(WAYS[way])
            if "ahead" in more:  # what a text adds to the counts is not kept
                more = {"counts": mw.TokenCounts.load(saved, vocabulary, ahead=more["ahead"])}
            if "fast_forward" in more:
                more["canonical"] = canonical
            took, *found[way] = replay.write(None if way == "without masks" else store, text, **more)
            return took

        ids = [replay.tokenize(text) for text in texts]
        for way in WAYS:
            write(way, min(ids, key=len), {})
        for text in track(ids, grammar, transient=True):
            found: dict[str, Any] = {}
            calls = [partial(write, way, text, found) for way in WAYS]
            for way, least in zip(WAYS, least_in_turn(calls, repeats, lambda call: call()), strict=True):
                seconds[way] += least
                rows[way].append(found[way])
    n_tokens = sum(len(text) + 1 for text in ids)
    facts = {}
    for way, done in rows.items():
        n_calls = sum(one.model_calls for one, _ in done)
        facts[way] = {
            "texts": len(done),
            "tokens": n_tokens,
            "model_calls": n_calls,
            "calls_a_token": round(n_calls / n_tokens, 3),
            "masks": sum(one.masks for one, _ in done),
            "same": sum(is_same for _, is_same in done),
            "tokens_a_second": round(n_tokens / seconds[way], 1),
            "speed": round(seconds["without masks"] / seconds[way], 2),
        }
    return facts


def of_model(name: str, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The ways of each grammar with a model, shown as they come."""
    replay, n = MODELS[name](), options.texts if name == "bundled" else options.long
    grammars = GRAMMARS[:2] if options.quick else GRAMMARS
    found = {}
    for grammar in grammars:
        texts, learned = texts_of(grammar, options.folder, n, options.learned)
        found[grammar] = of_grammar(grammar, replay, texts, learned, options.repeats)
    table = Table("", *grammars, title=f"{name}: passes a token, speed relative to no masks, texts as wanted")
    for way in WAYS:
        cells = [found[grammar][way] for grammar in grammars]
        table.add_row(way, *(f"{one['calls_a_token']:.2f}, {one['speed']:.2f}, {one['same']}" for one in cells))
    console.print(table)
    return found


# ---- Appendix A


def cases(n: int) -> Iterator[tuple[str, dict[str, Any], dict[str, str]]]:
    """Small schemas with an instance each: name, a store for each style, and the instance in each layout."""
    records = [one for one in shared_records("jsonschema/schemastore") if len(json.dumps(one["schema"])) <= LONGEST]
    random.Random(1).shuffle(records)
    found = 0
    for record in records:
        instances = [json.dumps(one["data"]) for one in record.get("tests", ()) if one["valid"]]
        if found == n or not instances or len(min(instances, key=len)) > LONGEST:
            continue
        value = json.loads(min(instances, key=len))
        try:
            stores = {
                style: mw.build_store(mw.load_schema(record["schema"], style=style), "python-tiny") for style in STYLES
            }
        except MaskwrightError:  # a reference to another document, or what cannot be said exactly
            continue
        texts = {layout: json.dumps(value, **how) for layout, how in LAYOUTS.items()}
        if all(stores[style].matcher().try_bytes(texts[layout].encode()) for style, layout in WRITTEN):
            found += 1
            yield record["id"], stores, texts


def white_space(n: int) -> dict[str, Any]:
    """What white space takes: instances of schemas that are wanted in a layout, and what the bundled model writes itself."""
    replay, own, canonical = bundled(), mw.load_model(device="cpu"), mw.load_canonical("python-tiny")
    names = []
    wanted = {f"{style}, {layout}": Counter[str]() for style, layout in WRITTEN}
    free = {style: Counter[str]() for style in STYLES}
    for name, stores, texts in track(cases(n), "schemas", total=n, transient=True):
        names.append(name)
        for style, layout in WRITTEN:
            ids = replay.tokenize(texts[layout])
            _, usual, is_same = replay.write(stores[style], ids)
            _, forced, is_same_too = replay.write(stores[style], ids, canonical=canonical, fast_forward=True)
            wanted[f"{style}, {layout}"].update(
                tokens=len(ids) + 1,
                model_calls=usual.model_calls,
                model_calls_forced=forced.model_calls,
                same=int(is_same and is_same_too),
            )
        for style, store in stores.items():
            one = mw.complete(store, "", own, max_tokens=FILLED)
            blanks = len(re.findall(rb"\s", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", one.data)))
            free[style].update(
                tokens=len(one.tokens), model_calls=one.model_calls, bytes=len(one.data), white_space=blanks
            )
    return {"schemas": names, "wanted": wanted, "free": free}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--models", default="bundled,int8", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--texts", type=int, default=8, help="of each grammar, for the bundled model")
    parser.add_argument("--long", type=int, default=2, help="as many for a model of 24 layers")
    parser.add_argument("--learned", type=int, default=50, help="texts that counts are learned from")
    parser.add_argument("--repeats", type=int, default=2, help="runs whose least time counts")
    parser.add_argument("--from", dest="folder", type=Path, help="a folder of texts: FOLDER/GRAMMAR/*")
    parser.add_argument(
        "--quick", action="store_true", help="a smoke run: the bundled model, two grammars, no record, no picture"
    )
    add_data(parser)
    options = parser.parse_args()
    names = options.models.split(",")
    if unknown := sorted(set(names) - set(MODELS)):
        parser.error(f"--models {unknown[0]}: expected some of {', '.join(MODELS)}")
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"--from {options.folder}: no such folder")
    if options.quick:
        names, options.texts, options.repeats, options.learned = ["bundled"], 1, 1, 10
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"{error.name} is not installed (pip install 'maskwright[hf]'): not measured yet")
        return
    torch.set_num_threads(1)
    console = Console(width=None if sys.stdout.isatty() else 160)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "threads": 1}
    models: dict[str, Any] = {}
    facts: dict[str, Any] = {
        **versions,
        "shape": SHAPE,
        "learned": options.learned,
        "repeats": options.repeats,
        "models": models,
    }
    try:
        for name in names:
            models[name] = of_model(name, options, console)
        facts["white_space"] = None
        if has_records("jsonschema/schemastore"):
            facts["white_space"] = found = white_space(1 if options.quick else SCHEMAS)
            for what in ("wanted", "free"):
                table = Table(
                    "style", *next(iter(found[what].values())), title=f"{what}, {len(found['schemas'])} schemas"
                )
                for style, sums in found[what].items():
                    table.add_row(style, *map(str, sums.values()))
                console.print(table)
        else:
            console.print(
                "white space: not measured, the evaluation data is not there (jsonschema/schemastore.jsonl.xz)"
            )
    except KeyboardInterrupt:
        console.print("interrupted: no record, no picture")
        sys.exit(130)
    if options.quick:
        return
    write_record("domino", " ".join(["python", "reports/bench/domino.py", *sys.argv[1:]]), facts)
    foot = f"{datetime.date.today().isoformat()}, one core of {machine()['cpu']}"
    (HERE.parents[1] / "domino.svg").write_text(picture(models, SPECULATED, foot) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
