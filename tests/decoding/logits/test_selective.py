"""Selective multiplication: against the definition in float64, and in transformers' generate against the full product."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from paths import TESTS
from selective_cases import DTYPES, SHAPES, check, random_layer, random_lists
from shares import share

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

torch = pytest.importorskip("torch")
from maskwright.decoding.adapters import selective as in_generate  # noqa: E402
from maskwright.decoding.adapters.selective import selective  # noqa: E402
from maskwright.decoding.logits import selective as module  # noqa: E402
from maskwright.decoding.logits.selective import IdLists, id_lists, measure_crossover, selective_logits  # noqa: E402


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_logits_are_the_definition(shape: tuple[int, int, int, int], dtype: str, has_bias: bool) -> None:
    rng = np.random.default_rng(sum(shape))
    hidden, weight, bias = random_layer(rng, shape, dtype, has_bias)
    lists = random_lists(rng, shape[0], shape[1], shape[3])
    found = selective_logits(hidden, weight, lists, bias)
    assert found.dtype == hidden.dtype
    check(found, hidden, weight, bias, lists)
    padded = torch.nn.functional.pad(weight, (1, 2))[:, 1:-2]  # of a wider matrix
    assert torch.equal(selective_logits(hidden, padded, lists, bias), found)


def test_long_lists_are_done_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 5)
    rng = np.random.default_rng(0)
    hidden, weight, bias = random_layer(rng, SHAPES[1], "float32", True)
    lists = random_lists(rng, 3, 200, 30)
    check(selective_logits(hidden, weight, lists, bias), hidden, weight, bias, lists)


@pytest.mark.parametrize("columns", [1, 31, 32, 64, 70, 128])
def test_lists_are_the_bits_of_the_masks(columns: int) -> None:
    rng = np.random.default_rng(columns)
    words = rng.integers(0, 1 << 32, (4, 3), dtype=np.uint32).view(np.int32)
    words[1], words[2, 0] = 0, -1
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")[:, :columns]
    lists = id_lists(words, columns, int(bits.sum()))
    assert lists is not None and lists.count.tolist() == bits.sum(1).tolist()
    assert lists.ids.tolist() == [int(i) for row in bits for i in np.flatnonzero(row)]
    assert lists.ids.dtype == lists.count.dtype == np.int32
    assert id_lists(words, columns, int(bits.sum()) - 1) is None
    nothing = id_lists(words[1:2], columns, 0)
    assert nothing is not None and not len(nothing.ids)
    assert torch.isneginf(selective_logits(torch.ones(1, 2), torch.ones(columns, 2), nothing)).all()


def test_what_does_not_fit_is_said() -> None:
    hidden, weight = torch.zeros(2, 4), torch.zeros(9, 4)
    lists = random_lists(np.random.default_rng(0), 2, 9, 3)
    for given, message in (
        ((hidden[0], weight, lists), r"hidden has shape \(4,\)"),
        ((hidden, weight[:, :3], lists), r"weight \(9, 3\); expected \(B, H\) and \(V, H\)"),
        ((hidden, weight.half(), lists), "weight is torch.float16 on cpu, hidden torch.float32"),
        ((hidden.int(), weight.int(), lists), "expected one floating point dtype"),
        ((hidden, weight, lists, torch.zeros(8)), r"bias has shape \(8,\); expected \(9,\)"),
        ((hidden[:1], weight, lists), "lists for 2 rows, but hidden has 1"),
        ((hidden, weight[: lists.ids.max()], lists), "ids go from"),
        ((hidden, weight, IdLists(-1 - lists.ids, lists.count)), "expected 0 to 8"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            selective_logits(*given)
    for batch, matrix in ((0, weight), (1, weight[0])):
        with pytest.raises(MaskwrightError, match="expected 1 or more"):
            measure_crossover(matrix, batch)


TRITON = """
import sys
import numpy as np, torch
sys.path.insert(0, {folder!r})
from selective_cases import DTYPES, SHAPES, check, random_layer, random_lists
from maskwright.decoding.logits import selective as module
module.BLOCK_HIDDEN = 128
def fused(hidden, weight, lists, bias):
    out = torch.full((len(hidden), len(weight)), -float("inf"), dtype=hidden.dtype)
    module._fused(torch, hidden, weight, lists, bias, out)
    return out
for number, (dtype, shape) in enumerate(zip([*DTYPES, *DTYPES[:2]], [*SHAPES, SHAPES[1]])):
    rng = np.random.default_rng(number)
    hidden, weight, bias = random_layer(rng, shape, dtype, number % 2 == 0)
    lists = random_lists(rng, shape[0], shape[1], shape[3])
    found = fused(hidden, weight, lists, bias)
    check(found, hidden, weight, bias, lists)
    # a logit's bits do not depend on other rows and ids: one row, and every second of its ids
    ids = lists.ids[: lists.count[0] : 2]
    alone = module.IdLists(ids, np.array([len(ids)], np.int32))
    some = fused(hidden[:1], weight, alone, bias)
    kept = torch.from_numpy(ids).long()
    assert torch.equal(some[0, kept], found[0, kept]) and int(torch.isfinite(some).sum()) == len(ids)
# transposed weights are copied, and ids out of range are left out
hidden, weight = torch.ones(2, 3), torch.arange(12.0).reshape(3, 4).T
lists = module.IdLists(np.array([3, -1, 0, 4, 99], np.int32), np.array([2, 3], np.int32))
inf = float("inf")
assert fused(hidden, weight, lists, None).tolist() == [[-inf, -inf, -inf, 21.0], [12.0, -inf, -inf, -inf]]
print("same")
"""


def run(code: str, **environment: str) -> None:
    """In a process of its own: Triton reads its variables when it is first imported."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("same"), done.stderr[-2000:]


@pytest.mark.slow
def test_the_triton_kernel_under_its_interpreter() -> None:
    run(TRITON.format(folder=str(TESTS / "support")), TRITON_INTERPRET="1")


AHEAD_OF_TIME = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from maskwright.decoding.logits import selective as module
for kind in ("fp32", "bf16", "fp16"):
    for has_bias in (False, True):
        floats = dict.fromkeys(("hidden", "weight", "bias", "out"), "*" + kind)
        numbers = dict.fromkeys(("ids", "begin", "count"), "*i32")
        sizes = dict.fromkeys(("n_columns", "n_hidden", "hidden_stride", "weight_stride", "out_stride"), "i32")
        constants = dict(HAS_BIAS=has_bias, BLOCK_IDS=module.BLOCK_IDS, BLOCK_HIDDEN=module.BLOCK_HIDDEN)
        signature = dict(**floats, **numbers, **sizes, **dict.fromkeys(constants, "constexpr"))
        names = list(signature)
        source = ASTSource(
            fn=module._gather_dot, signature=signature,
            constexprs={(names.index(name),): value for name, value in constants.items()},
            attrs={(names.index(name),): [["tt.divisibility", 16]] for name in [*floats, "n_hidden", "hidden_stride", "weight_stride"]},
        )
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        assert compiled.asm["cubin"][:4] == b"\\x7fELF" and ".target sm_90" in compiled.asm["ptx"]
        wide = "ld.global.v4" in compiled.asm["ptx"] or "ld.global.L1::evict_first.v4" in compiled.asm["ptx"]
        assert wide, "weights are not read 16 bytes at once"
print("same")
"""


@pytest.mark.slow
def test_the_triton_kernel_compiles_for_sm_90() -> None:
    run(AHEAD_OF_TIME, TRITON_INTERPRET="0")


# ---- Where it pays


class Clock:
    """Stands for `seconds`: the full product takes `full`, n ids in all `fixed` + n, and every so many runs of these `noise` more."""

    def __init__(self, fixed: float, full: float, noise: float = 0.0, every: int = 1, unit: float = 1e-6) -> None:
        self.fixed, self.full, self.noise, self.every, self.unit = fixed, full, noise, every, unit
        self.turns, self.n_runs, self.n_ids = itertools.count(), 0, 0

    def __call__(self, torch: Any, call: Any, device: Any, n: int = 10) -> float:
        self.n_runs += 1
        self.n_ids = -1
        call()
        if self.n_ids < 0:
            return self.unit * self.full
        return self.unit * (self.fixed + self.n_ids + self.noise * (next(self.turns) % self.every == 0))


@pytest.mark.parametrize(
    ("clock", "batch", "expected"),
    [
        (Clock(0, 1100), 1, 768),  # the ladder has 1024, which is too near
        (Clock(0, 1200), 1, 1024),
        (Clock(0, 1200), 4, 256),
        (Clock(100, 1100), 1, 768),
        (Clock(1100, 1100), 1, 0),
        (Clock(0, 1e9), 2, 3072),  # never more than there are tokens
        (Clock(0, 1200, noise=1e6, every=2), 1, 1024),  # the least of six counts
        (Clock(0, 1200, noise=1e6, every=3, unit=1e-3), 1, 1024),  # of three, where a run takes long
        (Clock(0, 1200, noise=900), 1, 128),
    ],
)
def test_the_crossover_is_where_the_clock_says(
    clock: Clock, batch: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = torch.zeros(4000, 1)
    original = selective_logits

    def noted(hidden: Any, weight: Any, lists: IdLists, bias: Any = None) -> Any:
        clock.n_ids = int(lists.count.sum())
        return original(hidden, weight, lists, bias)

    monkeypatch.setattr(module, "selective_logits", noted)
    monkeypatch.setattr(module, "seconds", clock)
    monkeypatch.setattr(module, "_crossovers", {})
    assert measure_crossover(weight, batch) == expected
    n_runs = clock.n_runs
    assert measure_crossover(weight, batch) == expected and clock.n_runs == n_runs
    measure_crossover(weight, batch, torch.zeros(4000))
    assert clock.n_runs > n_runs  # another layer, another measurement
    assert measure_crossover(torch.zeros(4000, 1, device="meta"), batch) == 0


def test_the_crossover_of_a_real_layer() -> None:
    """A layer so large that one id is surely faster, and all of them in another order surely not by a tenth."""
    n = measure_crossover(torch.zeros(20_000, 256))
    assert 0 < n < 20_000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows counts a thread's time in steps of 16 ms")
def test_the_crossover_of_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand of 24,000 ids are several times as fast, whoever else wants the processors."""
    monkeypatch.setattr(module, "_crossovers", {})
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        found = [measure_crossover(torch.zeros(24_000 + turn, 512)) for turn in range(3)]
    finally:
        torch.set_num_threads(threads)
        for process in busy:
            process.kill()
            process.wait()
    assert min(found) >= 1024


# ---- In generate

OBJECT = r"""
start: "{" "\"name\": " STRING ARMOR ", \"age\": " INTEGER "}"
STRING: /"[a-z]{0,10}"/
ARMOR: ", \"armor\": \"" ("leather" | "chainmail" | "plate") "\""
INTEGER: /0|[1-9][0-9]{0,3}/
"""
PIECES = ['{"', '"name', '": "', '", "', "armor", "chain", "mail", "leather", "plate", "age", '": ', "12", "ab", "name"]
EOS, PAD, BOS = 256 + len(PIECES), 257 + len(PIECES), 258 + len(PIECES)
N_ROWS = 288
"""Of the embedding: more than the tokenizer has ids."""


@functools.cache
def store(lacking: str = "") -> Store:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES] + [b"", b"", b""]
    if lacking:
        tokens[ord(lacking)] = b""
    vocabulary = Vocabulary("bytes", tuple(tokens), {EOS: "</s>", PAD: "<pad>", BOS: "<s>"}, (EOS,))
    return compile_store(parse_grammar(OBJECT, name="object"), vocabulary)


@functools.cache
def model(kind: str) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    more = {
        "Gemma2": {"final_logit_softcapping": 3.0, "head_dim": 16},
        "Cohere": {"logit_scale": 0.25},
        "Phi": {"tie_word_embeddings": False},
    }.get(kind, {})
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=N_ROWS, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=512, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD, initializer_range=0.5, **more,
    )  # fmt: skip
    made = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    if kind == "Phi":
        torch.nn.init.normal_(made.lm_head.bias)
    made.generation_config.pad_token_id = PAD
    made.generation_config.eos_token_id = EOS
    return made


PROMPTS = torch.tensor([[PAD, BOS, 97], [BOS, 98, 99], [PAD, PAD, BOS]])


def generate(kind: str, prompts: Any = PROMPTS, processors: Any = (), seed: int = 0, **options: Any) -> Any:
    which = model(kind)  # making it draws numbers
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return which.generate(
            prompts, attention_mask=(prompts != PAD).long(), return_dict_in_generate=True, output_scores=True,
            logits_processor=list(processors), **{"max_new_tokens": 40, **options},
        )  # fmt: skip


SAMPLING = {"do_sample": True, "temperature": 1.3, "top_k": 0}


@pytest.mark.parametrize("kind", ["Llama", "Phi", "Gemma2", "Cohere"])
@pytest.mark.parametrize(
    "options",
    share(
        [
            SAMPLING,
            {"do_sample": False, "use_cache": False, "min_new_tokens": 25},
            {"do_sample": False},
            {"do_sample": True, "top_p": 0.8, "num_return_sequences": 2, "repetition_penalty": 1.3},
        ],
        1,
    ),
)
def test_greedy_and_seeded_sampling_agree_with_the_full_product(kind: str, options: dict[str, Any]) -> None:
    """Bias, soft caps, scales and tied embeddings: the same tokens, the same finite scores, and these equal up to rounding."""
    processor = MaskwrightLogitsProcessor(store())
    full = generate(kind, processors=[processor], **options)
    with selective(model(kind), processor, N_ROWS) as head:
        found = generate(kind, processors=[processor], **options)
    assert torch.equal(found.sequences, full.sequences)
    assert head.n_full == 1 and head.n_selective == len(full.scores) - 1 > 10
    for mine, theirs in zip(found.scores, full.scores, strict=True):
        assert torch.equal(torch.isneginf(mine), torch.isneginf(theirs))
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4)


def test_rows_with_many_ids_take_the_full_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """26 letters are too many for a limit of 20 ids a row; a limit of the whole batch counts all rows."""
    processor = MaskwrightLogitsProcessor(store())
    counts: list[int] = []

    def noted(words: npt.NDArray[np.int32], n_columns: int, limit: int) -> IdLists | None:
        lists = id_lists(words, n_columns, limit)
        counts.append(-1 if lists is None else int(lists.count.sum()))
        assert limit == 60
        return lists

    monkeypatch.setattr(in_generate, "id_lists", noted)
    full = generate("Llama", processors=[processor], **SAMPLING)
    with selective(model("Llama"), processor, 20) as head:
        found = generate("Llama", processors=[processor], **SAMPLING)
    assert torch.equal(found.sequences, full.sequences)
    assert head.n_selective == sum(count >= 0 for count in counts) > 5 and max(counts) <= 60
    assert head.n_full == 1 + counts.count(-1) > 2


def test_the_limit_is_measured_for_no_more_rows_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def measured(weight: Any, batch: int = 1, bias: Any = None) -> int:
        assert weight is model("Phi").lm_head.weight and bias is model("Phi").lm_head.bias
        asked.append(batch)
        return 0 if batch == 1 else 50

    monkeypatch.setattr(in_generate, "measure_crossover", measured)
    processor = MaskwrightLogitsProcessor(store())
    with selective(model("Phi"), processor) as head:
        generate("Phi", processors=[processor], **SAMPLING)
        assert set(asked) == {2} and head.n_selective > 5
        n_selective = head.n_selective
        generate("Phi", PROMPTS[1:2], processors=[processor], **SAMPLING)
        assert set(asked) == {1, 2} and head.n_selective == n_selective


class Normaliser:
    """A processor that reads the logits of all tokens."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return scores.log_softmax(-1)


@pytest.mark.parametrize(
    ("before", "after", "options"),
    [
        ([], [], {"num_beams": 3, "do_sample": False}),
        ([], [], {"output_logits": True}),
        ([Normaliser()], [], SAMPLING),
        ([], [], {"guidance_scale": 1.5}),
    ],
)
def test_where_all_logits_are_compared_the_full_product_is_taken(
    before: list[Any], after: list[Any], options: dict[str, Any]
) -> None:
    processor = MaskwrightLogitsProcessor(store())
    processors = [*before, processor, *after]
    full = generate("Llama", processors=processors, **options)
    with selective(model("Llama"), processor, N_ROWS) as head:
        found = generate("Llama", processors=processors, **options)
    assert head.n_selective == 0 < head.n_full
    assert torch.equal(found.sequences, full.sequences)
    for mine, theirs in zip(found.scores, full.scores, strict=True):
        assert torch.equal(mine, theirs)


def test_generations_of_others_are_left_alone() -> None:
    """Without the processor, with gradients, and in a chunked prefill, whose prefixes grow by one."""
    processor = MaskwrightLogitsProcessor(store())
    free = generate("Llama", max_new_tokens=8)
    constrained = generate("Llama", processors=[processor])
    chunked = {"prefill_chunk_size": 1}
    with selective(model("Llama"), processor, N_ROWS) as head:
        assert torch.equal(generate("Llama", max_new_tokens=8).sequences, free.sequences)
        hidden = model("Llama")(PROMPTS).logits
        hidden.sum().backward()
        assert head.n_selective == 0
        own: list[Any] = [processor]
        for options in ({}, chunked):
            assert torch.equal(generate("Llama", processors=own, **options).sequences, constrained.sequences)
            assert head.n_selective > 10 and own == [processor]
    model("Llama").zero_grad()


def test_errors_are_the_processors_own() -> None:
    """Dead ends and tokens that others write, found a moment earlier; the processor can be used again."""
    dead, fine = MaskwrightLogitsProcessor(store("}")), MaskwrightLogitsProcessor(store())
    full = generate("Llama", processors=[fine])
    for _ in range(2):
        with pytest.raises(DeadEndError, match="row 0: no token"), selective(model("Llama"), dead, N_ROWS) as head:
            generate("Llama", PROMPTS[:1], processors=[dead])
        assert head.n_selective > 10

    class Tilde:
        """Writes a token that the grammar refuses, in the third step."""

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return scores if input_ids.shape[1] < 5 else scores.index_fill(1, torch.tensor([126]), 1e9)

    with selective(model("Llama"), fine, N_ROWS) as head:
        with pytest.raises(IllegalTokenError, match="row 0, position 5"):
            generate("Llama", processors=[fine, Tilde()])
        assert head.n_selective == 2
        assert torch.equal(generate("Llama", processors=[fine]).sequences, full.sequences)


def test_under_torch_compile_the_full_product_is_traced() -> None:
    made = model("Phi")
    hidden = torch.ones(2, 1, 32)
    with selective(made, MaskwrightLogitsProcessor(store()), N_ROWS) as head, torch.no_grad():
        compiled = torch.compile(lambda x: made.lm_head(x), backend="eager", fullgraph=True)
        assert torch.equal(compiled(hidden), torch.nn.functional.linear(hidden, made.lm_head.weight, made.lm_head.bias))
        assert head.n_selective == 0


def test_the_model_is_as_before_afterwards() -> None:
    made = model("Llama")
    processor = MaskwrightLogitsProcessor(store())
    before = {name: set(vars(owner)) for name, owner in (("model", made), ("head", made.lm_head))}
    with pytest.raises(KeyError), selective(made, processor):
        with pytest.raises(MaskwrightError, match="its forward has been replaced"), selective(made, processor):
            pass
        raise KeyError
    assert before == {name: set(vars(owner)) for name, owner in (("model", made), ("head", made.lm_head))}

    class Odd(torch.nn.Linear):
        pass

    head, made.lm_head = made.lm_head, Odd(32, N_ROWS, bias=False)
    try:
        with pytest.raises(MaskwrightError, match="last layer is Odd"), selective(made, processor):
            pass
    finally:
        made.lm_head = head


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'maskwright\[hf\]'"):
        selective_logits(None, None, IdLists(np.zeros(0, np.int32), np.zeros(0, np.int32)))
