"""The bundled model loads without a hub, its tokenizer says every byte, and it predicts Python that it has not seen."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import socket
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.analysis.errors import MissingExtraError, UnknownNameError
from maskwright.completion import check_model_name
from maskwright.models import BUNDLED, is_held_out, model_folder
from maskwright.models.numpy_model import NumpyModel, load_parts

FOLDER = model_folder(BUNDLED)
LIBRARY = Path(sysconfig.get_path("stdlib"))
HELD_OUT = ("bz2.py", "http/cookies.py", "json/tool.py", "uuid.py")
BITS_PER_BYTE = 2.3  # of the HELD_OUT files; 2.08 when it was trained, 3.4 for random weights; their text differs a little between versions


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


@pytest.fixture(scope="module")
def model() -> Any:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    return transformers.AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True).eval()


def library_texts(n: int) -> list[str]:
    """The first n files at the top of the running Python's library, by name."""
    return [path.read_bytes().decode("utf-8") for path in sorted(LIBRARY.glob("*.py"))[:n]]


def test_a_model_of_another_name_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no bundled model 'python-huge'; bundled are: python-tiny"):
        model_folder("python-huge")
    with pytest.raises(UnknownNameError, match=r"no bundled model '\.\.'"):
        model_folder("..")


def test_one_file_in_sixteen_is_held_out() -> None:
    names = [
        path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.py") if "site-packages" not in path.parts
    ]
    share = sum(map(is_held_out, names)) / len(names)
    assert abs(share - 1 / 16) < 4 * math.sqrt(1 / 16 / len(names))
    assert all(map(is_held_out, HELD_OUT))  # the hash is the one that the model was trained by
    assert not any(map(is_held_out, ("ast.py", "heapq.py", "json/decoder.py")))


def test_it_is_small_and_the_card_says_what_the_record_says() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 12_000_000
    facts = json.loads((FOLDER / "training.json").read_text(encoding="utf-8"))
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    shown = [
        f"{facts['parameters']:,} parameters",
        f"{facts['tokens']['seen']:,} tokens seen",
        f"{facts['held_out_nats_per_token']:.3f} nats a token",
        f"{facts['held_out_bits_per_byte']:.3f} bits a byte",
        f"--minutes {facts['of_minutes']:g} --seed {facts['seed']}",
    ]
    for text in shown:
        assert text in card, f"README.md does not say {text!r}"
    assert "PSF" in card


def test_it_loads_without_a_hub(tokenizer: Any, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once more than the fixtures, so that no imports are counted."""
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(socket, "getaddrinfo", None)
    monkeypatch.setattr(socket.socket, "connect", None)
    began = time.process_time()
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER)
    assert str(model.dtype) == "torch.float32" and len(tokenizer) == 4096
    assert model.get_input_embeddings().weight is model.lm_head.weight
    assert time.process_time() - began < 10  # of processor time, which a busy machine does not lengthen much


def test_every_byte_is_a_token() -> None:
    vocabulary = mw.load_vocabulary(FOLDER)
    assert vocabulary.size == 4096
    assert vocabulary.is_byte_complete
    assert {bytes([byte]) for byte in range(256)} <= set(vocabulary.tokens)
    assert vocabulary.special == {0: "<|endoftext|>", 1: "<|pad|>"}
    assert set(vocabulary.eos) == {0}


def test_special_ids_agree(tokenizer: Any, model: Any) -> None:
    assert tokenizer.eos_token_id == tokenizer.bos_token_id == 0
    assert tokenizer.pad_token_id == 1
    for settings in (model.config, model.generation_config):
        assert (settings.bos_token_id, settings.eos_token_id, settings.pad_token_id) == (0, 0, 1)
    assert tokenizer("x = 1")["input_ids"][0] != 0, "nothing is put before a text unasked"
    assert tokenizer.model_max_length == model.config.max_position_embeddings


def test_tokenizer_gives_real_files_back(tokenizer: Any) -> None:
    vocabulary = mw.load_vocabulary(FOLDER)
    texts = [*library_texts(40), "é中文🎉\t\r\n\x00\x7f\u2028 \u0301 x", "  \n\n \t \n", "a\rb", ""]
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids) == text
        assert b"".join(vocabulary.tokens[i] for i in ids) == text.encode()


def test_indentation_is_one_token(tokenizer: Any) -> None:
    tokens = tokenizer.tokenize("def f(self):\n        return self.x\n")
    assert tokens == ["def", "Ġf", "(", "self", "):", "Ċ" + 8 * "Ġ", "return", "Ġself", ".", "x", "Ċ"]


def test_it_predicts_files_that_it_has_not_seen(tokenizer: Any, model: Any) -> None:
    import torch

    nats = n_bytes = 0.0
    for name in HELD_OUT:
        path = LIBRARY / name
        if not path.exists():  # a later Python may have moved it
            continue
        ids = tokenizer(path.read_text(encoding="utf-8"))["input_ids"][:511]
        with torch.inference_mode():
            scores = model(torch.tensor([[0, *ids[:-1]]])).logits[0].log_softmax(-1)
        nats -= scores[torch.arange(len(ids)), torch.tensor(ids)].sum().item()
        n_bytes += len(tokenizer.decode(ids).encode())
    assert n_bytes > 2000
    assert nats / math.log(2) / n_bytes < BITS_PER_BYTE


@pytest.mark.parametrize(
    "prompt", ["def read(self, size):\n    ", "import os\nimport ", "class Error(Exception):\n    "]
)
def test_greedy_completion_is_text(tokenizer: Any, model: Any, prompt: str) -> None:
    inputs = tokenizer("<|endoftext|>" + prompt, return_tensors="pt")
    ids = model.generate(**inputs, do_sample=False, max_new_tokens=48)[0, inputs["input_ids"].shape[1] :]
    text = tokenizer.decode(ids, skip_special_tokens=True)
    assert re.search(r"\w\w", text), repr(text)
    assert sum(c.isprintable() or c in "\n\t" for c in text) > 0.95 * len(text)


def test_the_next_word_is_the_likely_one(tokenizer: Any, model: Any) -> None:
    """What an untrained model gets right one time in 4,096."""
    import torch

    cases = {
        "class Reader:\n    def __init__(self, path):\n        self.path =": " path",
        "try:\n    import threading\nexcept ImportError:\n    threading =": " None",
        "if __name__ == '__main": "__",
        "def add(self, item):\n    self._items.append(": "item",
        "    def __repr__(": "self",
    }
    right = 0
    for prompt, word in cases.items():
        with torch.inference_mode():
            best = int(model(torch.tensor([tokenizer("<|endoftext|>" + prompt)["input_ids"]])).logits[0, -1].argmax())
        right += tokenizer.decode([best]) == word
    assert right >= 3, f"{right} of {len(cases)}"


def test_numpy_has_the_logits_of_transformers() -> None:
    """A token at a time, several at once, behind another text, and where the context is full."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    ours, _ = load_parts()
    theirs = mw.load_model(device="cpu")
    ids = theirs.tokens_of("import os\n\n\ndef first(values):\n    return values[0]\n" * 40)
    assert len(ids) > ours.context
    for text in (ids[:1], ids[:2], ids[:40], [*ids[:20], 5, 6], ids[: ours.context], ids[: ours.context + 1], ids[:3]):
        read = text if len(text) <= ours.context else text[ours.context // 4 :]
        with torch.inference_mode():
            wanted = theirs.model(torch.tensor([read])).logits[0, -1].float().numpy()
        np.testing.assert_allclose(ours(text), wanted, rtol=0, atol=1e-3)


def test_the_bundled_model_needs_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers")
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == "torch" else find(name, *more))
    model = mw.load_model()
    assert isinstance(model.model, NumpyModel)
    found = mw.complete(mw.build_store("json", model.vocabulary), '{"a": [1, ', model, max_tokens=12, canonical=True)
    assert json.loads('{"a": [1, ' + found.data.decode()) is not None
    with pytest.raises(MissingExtraError, match="torch is not installed, but language models need it"):
        check_model_name("gpt2")
    check_model_name(BUNDLED)


def test_numpy_s_window_depends_on_the_text_alone() -> None:
    """A text behind a longer one, has the logits of a fresh model."""
    fresh, used = (NumpyModel(model_folder()) for _ in range(2))
    long = [number % 200 for number in range(3 * used.context)]
    used(long)
    for size in (used.context + 30, used.context + 200, 5, used.context + 30):
        text = [(7 * number) % 190 for number in range(size)]
        np.testing.assert_allclose(used(text), fresh(text), rtol=0, atol=1e-3)
        fresh = NumpyModel(model_folder())
