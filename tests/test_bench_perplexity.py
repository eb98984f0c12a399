"""The script that measures what the bundled model thinks of texts: the template's texts, and how they are counted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from bench_scripts import bench_script

import maskwright as mw
from maskwright.decoding.generation.logits import Sampler

pytest.importorskip("torch")
pytest.importorskip("transformers")
PROMPT = "def one():\n    return 1\n\n\ndef"


@pytest.fixture(scope="module")
def perplexity() -> Iterator[Any]:
    with bench_script("perplexity") as script:
        yield script


@pytest.fixture(scope="module")
def model() -> Any:
    return mw.load_model(device="cpu")


def test_a_template_writes_texts_of_its_pattern_with_its_own_tokens(perplexity: Any, model: Any) -> None:
    template, ids = perplexity.Template(model), model.tokens_of(PROMPT)
    tokens = model.vocabulary.tokens
    for temperature, seed in ((0.0, 0), (1.0, 1), (1.0, 2)):
        written = template.write(ids, Sampler(temperature, 0, 1.0, seed))
        text = b"".join(tokens[token] for token in written).decode()
        pieces = [
            re.escape(piece) if i % 2 == 0 else f"({perplexity.HOLES[piece]})"
            for i, piece in enumerate(perplexity.TEMPLATE)
        ]
        parts = re.fullmatch("".join(pieces), text)
        assert parts is not None and re.fullmatch(perplexity.pattern(), text)
        # no token crosses the border of a piece
        ends = {sum(len(tokens[token]) for token in written[:n]) for n in range(len(written) + 1)}
        assert {at for group in range(1, 1 + len(parts.groups())) for at in parts.span(group)} <= ends


def test_a_naturalised_template_is_spelled_by_the_model(perplexity: Any, model: Any) -> None:
    """Its first fixed piece and what follows are what `retokenise` makes of them; the text is of the pattern."""
    ids, tokens = model.tokens_of(PROMPT), model.vocabulary.tokens
    written = perplexity.Template(model, is_naturalised=True).write(ids, Sampler(0.0, 0, 1.0, 0))
    assert re.fullmatch(perplexity.pattern(), b"".join(tokens[token] for token in written).decode())
    last = perplexity.TEMPLATE[-1].encode()
    spelled = mw.retokenise(model, PROMPT + b"".join(tokens[token] for token in written).decode()[: -len(last)], last)
    assert b"".join(tokens[token] for token in spelled) == last
    first = perplexity.TEMPLATE[0]
    assert tuple(written[: len(model.tokenizer(first)["input_ids"])]) == mw.retokenise(model, PROMPT, first)


def test_no_hole_goes_on_with_what_begins_the_next_piece(perplexity: Any) -> None:
    for hole, behind in zip(perplexity.TEMPLATE[1::2], perplexity.TEMPLATE[2::2], strict=True):
        inside = mw.load_regex(f"(?:{perplexity.HOLES[hole]})?")
        every_byte = mw.Vocabulary.from_tokens([b"</s>", *(bytes([byte]) for byte in range(256))], eos=[0])
        matcher = mw.build_store(inside, every_byte).matcher()
        for byte in b"Abc":
            matcher.try_bytes(bytes([byte]))
        assert not matcher.try_bytes(behind[:1].encode())


def test_bits_and_perplexity_are_of_the_text_behind_the_prompt(perplexity: Any, model: Any) -> None:
    import torch

    sums, ids = perplexity.Sums(), model.tokens_of(PROMPT)
    apart = [*model.tokenizer(" ")["input_ids"], *model.tokenizer("two()")["input_ids"]]
    sums.add(model, PROMPT, ids, apart)
    whole = model.tokens_of(PROMPT + " two()")[len(ids) :]
    assert len(apart) > len(whole)
    sums.add(model, PROMPT, ids, whole)
    sums.add(model, PROMPT, ids, model.tokenizer("ault")["input_ids"])  # "default" is one token
    assert (sums.texts, sums.same, sums.left_out, sums.n_bytes) == (2, 1, 1, 12)
    total = 0.0
    for n, token in enumerate(whole):
        with torch.inference_mode():
            logits = model.model(torch.tensor([[*ids, *whole[:n]]])).logits[0, -1].double()
        total += float(torch.log_softmax(logits, -1)[token])
    liked = mw.retokenise(model, PROMPT, " two()")
    assert sums.tokens["retokenised"] == 2 * len(liked) and sums.logs["retokenised"] < 0
    assert sums.logs["again"] == pytest.approx(2 * total, rel=1e-4)
    facts = sums.facts()
    assert facts["again"]["bits_a_byte"] == pytest.approx(-2 * total / math.log(2) / 12, abs=1e-3)
    assert facts["again"]["perplexity"] == pytest.approx(math.exp(-total / len(whole)), rel=1e-3)
