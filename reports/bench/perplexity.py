"""What the bundled model thinks of texts that are written freely, under masks, and by a template: Domino's question, asked of Python.

python reports/bench/perplexity.py [--prompts N] [--tokens N]

A prompt is a whole function of the standard library's files that the model was not trained on, and behind it `def`, where the next one
begins. Each way writes what comes then:

- free: the model alone, --tokens tokens at most; masks: the same under the exact masks of the library's `python`.
- template: fixed pieces with holes between them (TEMPLATE). The template brings the tokens of each fixed piece, spelled apart from what
  is around it. A hole is filled under the masks of its own pattern, so no token crosses its borders. It ends where the model wants a
  token that begins like the next piece. That is how programs of templates write, such as those of guidance.
- naturalised: the template whose fixed pieces are spelled as the model likes, token by token (`mw.retokenise`, Domino's Algorithm 3).
- pattern: the whole template as one pattern, under exact masks, which let tokens cross borders: the same texts are possible.
- canonical: the same with the tokenizer's own tokens alone (`canonical`).

Greedily, and at temperature 1. Of each text, without the prompt: the perplexity a token and the bits a byte that the model gives to it
without any masks, for the tokens that were written (`written`), for those that the tokenizer makes of prompt and text together
(`again`, canonical), and for those in which the model would have written it (`retokenised`). Spellings differ in tokens, so bits a byte
compare. `same` counts the texts that are spelled as the tokenizer
would. Left out are texts that are no UTF-8, and those whose first byte changes the tokens of the prompt.

Source: Beurer-Kellner, Fischer and Vechev, Guiding LLMs The Right Way (Domino, arXiv 2403.06988), section 2 and appendix B.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bundled_model import held_out_files, log_probabilities
from common import write_record
from rich.console import Console
from rich.progress import track
from rich.table import Table

import maskwright as mw
from maskwright.decoding.generation.logits import Sampler, reader_of
from maskwright.retokenisation import spell

TEXT = ' {name}({name}, {name}):\n    """{summary}"""\n    {name} = {name}({name})\n    return {name}\n'
TEMPLATE = re.split(r"\{(\w+)\}", TEXT)
"""Fixed pieces and the names of holes, in turn."""
HOLES = {"name": "[a-z_][a-z0-9_]{0,15}", "summary": r"[A-Z][A-Za-z ,]{3,60}\."}
LONGEST = 160
"""Tokens of a prompt at most."""
A_FILE = 3
"""Prompts of a file at most."""
WAYS = ("free", "masks", "template", "naturalised", "pattern", "canonical")
SPELLINGS = ("written", "again", "retokenised")


def pattern() -> str:
    """The template as a regular expression."""
    return "".join(HOLES[piece] if i % 2 else re.escape(piece) for i, piece in enumerate(TEMPLATE))


def functions(path: Path) -> list[str]:
    """The functions of a file that stand on their own, without the line feed behind them."""
    text = path.read_text("utf-8", "replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found = [ast.get_source_segment(text, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [one for one in found if one]


def prompts(model: Any, store: Any, n: int) -> Iterator[tuple[str, list[int]]]:
    """Prompts with their tokens, begin-of-text first."""
    found = 0
    for path in held_out_files():
        of_file = 0
        for function in functions(path):
            text = f"{function}\n\n\ndef"
            if len(text) > 16 * LONGEST:
                continue
            ids = model.tokens_of(text)
            if len(ids) > LONGEST or not store.matcher().try_bytes(text.encode()):
                continue
            yield text, ids
            found, of_file = found + 1, of_file + 1
            if found == n:
                return
            if of_file == A_FILE:
                break


class Template:
    """Writes texts of the template, see the module.

    is_naturalised : whether the model spells the fixed pieces, and not the tokenizer.

    INVARIANT: no hole can go on with the first byte of the piece behind it, so the template and its pattern have the same texts.
    """

    def __init__(self, model: Any, is_naturalised: bool = False) -> None:
        self._model = model
        self._is_naturalised = is_naturalised
        self._tokens = model.vocabulary.tokens
        self._stores = {name: mw.build_store(mw.load_regex(hole), model.vocabulary) for name, hole in HOLES.items()}
        self._begins = {
            piece: np.array([token[:1] == piece[:1].encode() for token in self._tokens]) for piece in TEMPLATE[2::2]
        }

    def write(self, ids: Sequence[int], sampler: Sampler) -> list[int]:
        """The tokens behind a prompt."""
        reader = reader_of(self._model.model, ids)
        written: list[int] = []
        for i, piece in enumerate(TEMPLATE):
            if i % 2:
                written += self._fill(reader, piece, self._begins[TEMPLATE[i + 1]], sampler)
            elif self._is_naturalised:
                written += spell(reader, self._model.vocabulary, piece.encode())
            else:
                for token in self._model.tokenizer(piece)["input_ids"]:
                    reader.push(token)
                    written.append(token)
        return written

    def _fill(self, reader: Any, hole: str, ends: Any, sampler: Sampler) -> list[int]:
        """The tokens of a hole. ends : of each token, whether it begins like the piece behind the hole."""
        matcher, n_tokens = self._stores[hole].matcher(), len(self._tokens)
        words = np.zeros(-(-n_tokens // 32), np.uint32)
        found: list[int] = []
        while True:
            matcher.fill(words)
            legal = np.unpackbits(words.view(np.uint8), bitorder="little")[:n_tokens].astype(bool)
            legal[list(self._model.vocabulary.eos)] = False
            if matcher.is_accepting():
                if not legal.any():
                    return found
                legal |= ends
            token = sampler.choose(np.where(legal, reader.logits()[:n_tokens], np.float32(-np.inf)))
            if ends[token]:
                return found
            matcher.advance(token)
            reader.push(token)
            found.append(token)


@dataclass
class Sums:
    """What was added up over the texts of a way: tokens, and natural logarithms of their probabilities."""

    texts: int = 0
    left_out: int = 0
    same: int = 0
    n_bytes: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPELLINGS, 0))
    logs: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SPELLINGS, 0.0))

    def add(self, model: Any, prompt: str, ids: list[int], written: list[int]) -> None:
        """Add a text. ids : of the prompt. written : what stands behind it."""
        data = b"".join(model.vocabulary.tokens[token] for token in written)
        try:
            again = model.tokens_of(prompt + data.decode())
        except UnicodeDecodeError:
            again = []
        if not data or again[: len(ids)] != ids:
            self.left_out += 1
            return
        self.texts += 1
        self.n_bytes += len(data)
        self.same += again == [*ids, *written]
        liked = spell(reader_of(model.model, ids), model.vocabulary, data)
        for name, spelled in zip(SPELLINGS, ([*ids, *written], again, [*ids, *liked]), strict=True):
            self.tokens[name] += len(spelled) - len(ids)
            behind = np.arange(len(ids), len(spelled))
            self.logs[name] += float(log_probabilities(model, spelled)[behind - 1, spelled[len(ids) :]].sum())

    def facts(self) -> dict[str, Any]:
        """Perplexities a token and bits a byte."""
        found: dict[str, Any] = {
            "texts": self.texts,
            "left_out": self.left_out,
            "same": self.same,
            "bytes": self.n_bytes,
        }
        for name, total in self.logs.items():
            found[name] = {
                "tokens": self.tokens[name],
                "perplexity": round(math.exp(-total / self.tokens[name]), 3),
                "bits_a_byte": round(-total / math.log(2) / self.n_bytes, 4),
            }
        return found


class Writer:
    """Writes texts in all ways."""

    def __init__(self, model: Any, store: Any, max_tokens: int) -> None:
        self._model, self._store, self._max_tokens = model, store, max_tokens
        self._templates = {"template": Template(model), "naturalised": Template(model, is_naturalised=True)}
        self._pattern = mw.build_store(mw.load_regex(pattern()), model.vocabulary)
        self._canonical = mw.load_canonical("python-tiny")

    def write(self, way: str, prompt: str, ids: list[int], temperature: float, seed: int) -> list[int]:
        """The tokens that a way writes behind a prompt."""
        if way in self._templates:
            return self._templates[way].write(ids, Sampler(temperature, 0, 1.0, seed))
        matcher: Any = None
        more: dict[str, Any] = {"max_tokens": self._max_tokens}
        if way == "masks":
            matcher = self._store.matcher()
            matcher.advance_bytes(prompt.encode())
        elif way != "free":
            matcher, more = self._pattern.matcher(), {"max_tokens": 200}
            more["canonical"] = self._canonical if way == "canonical" else None
        found = mw.generate(
            self._model.model,
            matcher,
            ids,
            vocabulary=self._model.vocabulary,
            temperature=temperature,
            seed=seed,
            close=False,
            **more,
        ).run()
        return list(found.tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=60)
    options = parser.parse_args()
    model, store = mw.load_model(device="cpu"), mw.cached_store("python", "python-tiny")
    writer = Writer(model, store, options.tokens)
    asked = list(prompts(model, store, options.prompts))
    ways: dict[str, Any] = {}
    for temperature in (0.0, 1.0):
        for way in WAYS:
            sums = Sums()
            for seed, (prompt, ids) in enumerate(track(asked, way, transient=True)):
                sums.add(model, prompt, ids, writer.write(way, prompt, ids, temperature, seed))
            ways[f"{way}, temperature {temperature:g}"] = sums.facts()
    measures = [f"{one} {what}" for one in SPELLINGS for what in ("tokens", "perplexity", "bits")]
    table = Table("", "texts", "same", "bytes", *measures)
    for name, one in ways.items():
        values = (value for spelling in SPELLINGS for value in one[spelling].values())
        table.add_row(name, *map(str, (one["texts"], one["same"], one["bytes"], *values)))
    Console().print(table)
    write_record(
        "perplexity",
        " ".join(["python", "reports/bench/perplexity.py", *sys.argv[1:]]),
        {
            "model": "python-tiny",
            "prompts": len(asked),
            "max_tokens": options.tokens,
            "template": list(TEMPLATE),
            "ways": ways,
        },
    )


if __name__ == "__main__":
    main()
