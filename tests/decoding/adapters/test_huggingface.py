"""The logits processor in transformers' own loops: whatever they do with prefixes, what they return is legal.

Checked in two ways that share nothing: a fresh matcher over the bytes, and json.loads. Models are small and random, so they try everything.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from huggingface_cases import (
    BOS,
    EOS,
    N_ROWS,
    PAD,
    PAIRS_TEXT,
    PIECES,
    PROMPT,
    STORES,
    check,
    generate,
    model,
    store,
    text_of,
    vocabulary,
)
from shares import parts, share

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, MaskwrightError, VocabularyError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.adapters import huggingface
from maskwright.decoding.adapters.huggingface import MaskwrightLogitsProcessor
from maskwright.decoding.logits import ResidentRows
from maskwright.maskstore.vocabulary import Vocabulary, load_vocabulary
from maskwright.stores.build import compile_store

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


MODES: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.3},
    "top-k, top-p": {"do_sample": True, "top_k": 5, "top_p": 0.9},
    "beams": {"do_sample": False, "num_beams": 4},
    "beams returned": {"do_sample": False, "num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.0},
    "samples": {"do_sample": True, "num_return_sequences": 4},
    "prompt lookup": {"do_sample": False, "prompt_lookup_num_tokens": 6},
    "prompt lookup, sampling": {"do_sample": True, "prompt_lookup_num_tokens": 6},
    "repetition penalty": {"do_sample": True, "repetition_penalty": 1.5},
}


@pytest.mark.parametrize(
    ("kind", "mode", "seeds"),
    [
        *share([("json", mode, seeds) for seeds in parts(20, 5) for mode in MODES], len(MODES)),
        *share([("schema", mode, range(n, 2 * n or 2)) for n in (0, 2) for mode in MODES], len(MODES)),
    ],
)
def test_every_way_of_decoding_yields_legal_texts(kind: str, mode: str, seeds: range) -> None:
    """Of models and samples."""
    ended = 0
    for seed in seeds:
        processor = MaskwrightLogitsProcessor(STORES[kind]())
        prompt = PROMPT[: 3 + seed]
        found = generate(processor, [prompt], seed, model=model(seed), **MODES[mode])
        ended += check(processor, found, len(prompt), [kind])
    if "greedy" not in mode and "lookup" not in mode and (kind == "json" or 0 in seeds):
        assert ended, "no text ended by itself: the test would not see a wrong end"


@pytest.mark.parametrize(
    ("kind", "seeds"),
    share([*((kind, range(1)) for kind in ("json", "schema")), ("schema", range(1, 3)), ("json", range(1, 10))], 2),
)
@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_decoding(do_sample: bool, kind: str, seeds: range) -> None:
    """The processor is called by both models, with prefixes that grow and shrink."""
    for seed in seeds:
        processor = MaskwrightLogitsProcessor(STORES[kind]())
        options = {"assistant_model": model(seed + 1), "do_sample": do_sample}
        found = generate(processor, [PROMPT], seed, model=model(seed), **options)
        check(processor, found, len(PROMPT), [kind])
        if not do_sample:
            alone = MaskwrightLogitsProcessor(STORES[kind]())
            assert found.tolist() == generate(alone, [PROMPT], seed, model=model(seed), do_sample=False).tolist()


@pytest.mark.parametrize("seeds", share([range(1), range(1, 5)], 1), ids=str)
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("kinds", [["json", "pairs"] * 4, ["schema", "pattern", "json", "schema"]], ids=len)
def test_a_left_padded_batch_with_several_stores(kinds: list[str], beams: int, seeds: range) -> None:
    prompts = [PROMPT[: 2 + 4 * i] for i in range(len(kinds))]
    for seed in seeds:
        processor = MaskwrightLogitsProcessor([STORES[kind]() for kind in kinds])
        found = generate(processor, prompts, seed, do_sample=beams == 1, num_beams=beams, num_return_sequences=beams)
        check(processor, found, len(prompts[-1]), kinds)


def test_rows_of_a_batch_are_as_alone() -> None:
    """Greedy, so that nothing but the grammar and the prompt decides."""
    prompts = [PROMPT[:9], PROMPT[:9], PROMPT[:9]]
    together = generate(MaskwrightLogitsProcessor(store()), prompts, do_sample=False)
    alone = generate(MaskwrightLogitsProcessor(store()), prompts[:1], do_sample=False)
    assert together.tolist() == alone.tolist() * 3


def test_one_processor_serves_one_generation_after_the_other() -> None:
    """Another prompt, the same one again, one that goes on where the last generation stopped, and a batch."""
    processor = MaskwrightLogitsProcessor(store())
    first = generate(processor, [PROMPT[:6]], do_sample=True)
    check(processor, first, 6)
    again = generate(processor, [PROMPT[:6]], do_sample=True)
    assert again.tolist() == first.tolist()
    longer = first[0].tolist() + PROMPT
    check(processor, generate(processor, [longer], do_sample=True), len(longer))
    batch = generate(processor, [PROMPT[:6], PROMPT[:9]], do_sample=True)
    check(processor, batch, 9)


def test_generated_text_is_not_taken_for_a_prompt() -> None:
    """Two tokens in one step; fewer rows; a call that failed before: what is masked is the text, not a new one."""

    def mask(processor: Any, *rows: list[int]) -> Any:
        return torch.isfinite(processor(torch.tensor(rows), torch.zeros(len(rows), N_ROWS)))

    steps = [BOS, ord("["), ord("1")]
    jump, fewer, failed = (MaskwrightLogitsProcessor(store()) for _ in range(3))
    mask(jump, steps[:1])
    mask(fewer, steps[:1], steps[:1])
    mask(fewer, steps[:2], steps[:2])
    mask(failed, steps[:1])
    with pytest.raises(IllegalTokenError, match="position 1"):
        mask(failed, [BOS, ord("]")])
    for processor in (jump, fewer, failed):
        allowed = mask(processor, steps)[0]
        assert allowed[ord("]")] and not allowed[ord("{")]
    unfit = MaskwrightLogitsProcessor(store())
    with pytest.raises(MaskwrightError, match="the model gives 40 logits"):
        unfit(torch.tensor([steps[:1]]), torch.zeros(1, 40))
    assert not mask(unfit, steps)[0, ord("{")], "the first call said where the text begins"


def test_a_cut_off_text_goes_on_as_itself() -> None:
    """`generate` again on what it returned: the same text goes on, in any number of rows."""
    processor = MaskwrightLogitsProcessor(store())
    first = generate(processor, [PROMPT, PROMPT], max_new_tokens=6, do_sample=True)
    again = generate(processor, first.tolist(), max_new_tokens=6, do_sample=True)
    check(processor, again, len(PROMPT))
    more = generate(processor, again[:1].tolist(), max_new_tokens=20, do_sample=True)
    check(processor, more, len(PROMPT))


def test_endings_of_other_sequences_are_refused() -> None:
    processor = MaskwrightLogitsProcessor(store())
    generate(processor, [PROMPT], max_new_tokens=2)
    with pytest.raises(MaskwrightError, match="sequence 0 does not begin with a prompt of the last generation"):
        processor.endings([[ord("x")] * 60])
    with pytest.raises(MaskwrightError, match=r"the sequences have shape \(3,\); expected"):
        processor.endings([1, 2, 3])


def biased(rows: int, wanted: list[int], start: int) -> Any:
    """A model whose greedy output is `wanted`: it adds to the logits of a random one what makes the next of them win."""
    torch.manual_seed(3)

    class Biased(transformers.LlamaForCausalLM):  # type: ignore[misc,name-defined]
        def forward(self, *arguments: Any, **options: Any) -> Any:
            found = super().forward(*arguments, **options)
            at = found.past_key_values.get_seq_length() - start
            if 0 <= at < len(wanted):
                found.logits[:, -1, wanted[at]] += 1000
            return found

    config = model(0, rows).config
    made = Biased(config).eval()
    made.generation_config = model(0, rows).generation_config
    return made


def test_what_the_model_prefers_is_kept_where_it_is_legal() -> None:
    """Greedy output with and without masks is the same, in every score that is not masked too."""
    wanted = [*b'{"a', PIECES.index("abc") + 256, *b'": [1, -2.5, ', PIECES.index("null") + 256, *b"]}", EOS]
    made = biased(N_ROWS, wanted, len(PROMPT))
    options = {"model": made, "do_sample": False, "output_scores": True, "output_logits": True}
    options["return_dict_in_generate"] = True
    free = generate(None, [PROMPT], **options)
    held = generate(MaskwrightLogitsProcessor(store()), [PROMPT], **options)
    assert free.sequences.tolist() == held.sequences.tolist() == [PROMPT + wanted]
    for before, after, raw in zip(free.scores, held.scores, held.logits, strict=True):
        kept = torch.isfinite(after)
        assert torch.equal(before[kept], after[kept]) and not torch.isnan(after).any()
        assert torch.isfinite(raw).all(), "the raw logits are the model's own"
    assert not torch.isfinite(held.scores[0]).all()


def test_scores_are_changed_in_place_only_if_asked() -> None:
    ids = torch.tensor([[BOS]])
    for in_place in (False, True):
        scores = torch.zeros(1, N_ROWS)
        found = MaskwrightLogitsProcessor(store(), in_place=in_place)(ids, scores)
        assert (found is scores) is in_place
        assert torch.isinf(scores).any() == in_place
        assert found[0, ord("{")] == 0 and found[0, ord("}")] == -torch.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_and_rows_past_the_vocabulary(dtype: str) -> None:
    for columns in (vocabulary().size, vocabulary().size + 1, N_ROWS, 3 * N_ROWS + 1):
        scores = torch.randn(1, columns).to(getattr(torch, dtype))
        found = MaskwrightLogitsProcessor(store())(torch.tensor([[BOS]]), scores)
        words = np.zeros(store().n_words, np.int32)
        store().matcher().fill(words)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)[: vocabulary().size]
        expected = torch.where(torch.from_numpy(allowed), scores[0, : len(allowed)], -torch.inf)
        assert found.dtype == scores.dtype and torch.equal(found[0, : len(allowed)], expected)
        assert (found[0, len(allowed) :] == -torch.inf).all()


def test_a_prompt_of_the_grammar_can_be_read() -> None:
    """By its tokens, by where it begins, or as text."""
    prompts = [[BOS, *b'{"a": [1, '], [BOS, *b'["ab", '], [BOS, *b"-1"]]
    width = max(map(len, prompts))
    starts = [width - len(prompt) + 1 for prompt in prompts]
    texts = [bytes(prompt[1:]) for prompt in prompts]
    ways = [{"constrain_prompt": True}, {"prompt_lengths": starts}, {"prefix": texts}]
    results = []
    for way in ways:
        processor = MaskwrightLogitsProcessor(store(), **way)  # type: ignore[arg-type]
        found = generate(processor, prompts, do_sample=True)
        results.append(found.tolist())
        for row, ending in enumerate(processor.endings(found)):
            tokens = [token for token in found[row, width:].tolist() if token < EOS]
            json.loads(texts[row] + text_of(tokens) + ending.data)
    assert results[0] == results[1] == results[2]
    processor = MaskwrightLogitsProcessor(store(), prefix='{"a": ')
    check_row = generate(processor, [PROMPT], do_sample=True)[0, len(PROMPT) :].tolist()
    whole = b'{"a": ' + text_of([token for token in check_row if token < EOS])
    store().matcher().advance_bytes(whole)


def test_prefixes_in_any_order_get_the_masks_of_fresh_matchers() -> None:
    """Rows swap, fork, shrink and grow at random, further back than is remembered."""
    rng = np.random.default_rng(5)
    processor = MaskwrightLogitsProcessor(store(), max_rollback=3)
    texts = [b'{"ab": [1, {"a": "b"}, 2', b'{"ab": [1, {"ba": nul', b'[[[[], {"":', b'{"ab": [1, {"a": "b"}], "b']
    prefixes = [list(text) for text in texts]
    processor(torch.tensor([[BOS]] * 4), torch.zeros(4, N_ROWS))
    length = 0
    for _ in range(200):
        length = int(np.clip(length + rng.choice([-5, -1, 0, 1, 1, 1, 1]), 0, min(map(len, prefixes))))
        rows = [prefixes[i][:length] for i in rng.integers(4, size=4)]
        found = processor(torch.tensor([[BOS, *row] for row in rows]), torch.zeros(4, N_ROWS))
        for row, tokens in enumerate(rows):
            matcher = store().matcher()
            for token in tokens:
                matcher.advance(token)
            words = np.zeros(store().n_words, np.int32)
            matcher.fill(words)
            allowed = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)[: vocabulary().size]
            assert np.array_equal(found[row, : len(allowed)].numpy() == 0, allowed)


def test_a_token_that_another_party_wrote_is_an_error() -> None:
    processor = MaskwrightLogitsProcessor(store())
    processor(torch.tensor([[BOS], [BOS]]), torch.zeros(2, N_ROWS))
    with pytest.raises(IllegalTokenError, match=r"row 1, position 1: token 125 \(b'}'\) is not legal here"):
        processor(torch.tensor([[BOS, ord("{")], [BOS, ord("}")]]), torch.zeros(2, N_ROWS))
    # and the processor is of use afterwards
    processor(torch.tensor([[BOS], [BOS]]), torch.zeros(2, N_ROWS))


def test_a_later_processor_that_forces_a_token_is_found_out() -> None:
    class Force:
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            scores = torch.full_like(scores, -torch.inf)
            scores[:, ord("}")] = 0
            return scores

    processor = MaskwrightLogitsProcessor(store())
    with pytest.raises(IllegalTokenError, match="something else wrote it"):
        model().generate(torch.tensor([PROMPT]), logits_processor=[processor, Force()], max_new_tokens=3)


def test_an_earlier_processor_that_rules_out_all_is_an_error_and_no_nan() -> None:
    only = MaskwrightLogitsProcessor(store(PAIRS_TEXT))
    with pytest.raises(
        MaskwrightError, match=r"row 0: none of the \d+ tokens .* finite logit.*ruled them all out. Allowed: 97"
    ):
        suppressed = [i for i in range(N_ROWS) if i != ord("z")]
        generate(only, [PROMPT], do_sample=True, suppress_tokens=suppressed)


def test_minus_infinity_of_the_model_itself() -> None:
    for value in (-torch.inf, torch.nan):
        scores = torch.full((1, N_ROWS), value)
        with pytest.raises(MaskwrightError, match="ruled them all out"):
            MaskwrightLogitsProcessor(store())(torch.tensor([[BOS]]), scores)


def dead_scores(value: float = -torch.inf) -> Any:
    """Two rows, the second of which has nothing left that JSON could begin with."""
    scores = torch.zeros(2, N_ROWS, dtype=torch.bfloat16)
    scores[1] = value
    scores[1, ord("}")] = 1.0
    return scores


@pytest.mark.parametrize("value", [-torch.inf, torch.nan, torch.inf])
def test_on_a_device_that_is_not_waited_for_the_error_comes_a_call_later(
    monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    """Until then legal tokens have the same chance, so that drawing from the row neither fails nor leaves the grammar."""
    monkeypatch.setattr(huggingface, "_is_asynchronous", lambda device: True)
    message = r"row 1: none of the \d+ tokens .* finite logit.*ruled them all out"
    whole = MaskwrightLogitsProcessor(store())(torch.tensor([[BOS]]), torch.zeros(1, N_ROWS))
    processor, expected = MaskwrightLogitsProcessor(store()), torch.isfinite(whole[0])
    assert expected.any() and not expected[ord("}")]
    for _ in range(2):  # the second time after the first time's error
        found = processor(torch.tensor([[BOS], [BOS]]), dead_scores(value))
        assert torch.equal(torch.isfinite(found[1]), expected) and (found[1][expected] == 0).all()
        with pytest.raises(MaskwrightError, match=message):
            processor(torch.tensor([[BOS, ord("[")]] * 2), torch.zeros(2, N_ROWS))
    # the last step of a generation: whoever asks for the endings learns of it
    processor(torch.tensor([[BOS], [BOS]]), dead_scores(value))
    with pytest.raises(MaskwrightError, match=message):
        processor.endings([[BOS, ord("[")]] * 2)
    assert processor.endings([[BOS, ord("[")]] * 2)[0].data == b"]"
    # rows that have nothing to choose from because they have ended are no such rows
    processor = MaskwrightLogitsProcessor(store())
    for tail in ([], [ord("1")], [ord("1"), EOS], [ord("1"), EOS, PAD]):
        found = processor(torch.tensor([[BOS, *tail]]), torch.full((1, N_ROWS), 0.0 if len(tail) < 2 else value))
    assert torch.isfinite(found).nonzero().tolist() == [[0, EOS]] and found[0, EOS] == 0


def test_generations_are_the_same_where_errors_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [generate(MaskwrightLogitsProcessor(store()), [PROMPT], seed, do_sample=True).tolist() for seed in range(4)]
    monkeypatch.setattr(huggingface, "_is_asynchronous", lambda device: True)
    processor = MaskwrightLogitsProcessor(store())
    assert plain == [generate(processor, [PROMPT], seed, do_sample=True).tolist() for seed in range(4)]


def test_masks_stay_where_they_are_from_one_generation_to_the_next() -> None:
    """And give way to more where a batch needs more; ended and refused rows need none."""
    processor = MaskwrightLogitsProcessor([store(), store(PAIRS_TEXT)])
    for _ in range(2):
        processor.reset()
        processor(torch.tensor([[BOS]] * 2), torch.zeros(2, N_ROWS))
        resident = processor._resident
        assert isinstance(resident, ResidentRows) and resident.n_rows == 3 and resident.capacity == 4096
    processor(torch.tensor([[BOS]] * 2048), torch.zeros(2048, N_ROWS, dtype=torch.bfloat16))
    assert processor._resident is not resident and processor._resident.capacity == 4097


def test_a_refused_draft_is_left_alone_and_an_accepted_one_is_an_error() -> None:
    processor = MaskwrightLogitsProcessor(store(), drafts=True)
    processor(torch.tensor([[BOS]]), torch.zeros(1, N_ROWS))
    for drafted in ([ord("}")], [ord("}"), ord("1")]):
        found = processor(torch.tensor([[BOS, *drafted]]), torch.zeros(1, N_ROWS))
        assert torch.isfinite(found[0, : vocabulary().size]).all()
    found = processor(torch.tensor([[BOS, ord("[")]]), torch.zeros(1, N_ROWS))
    assert found[0, ord("]")] == 0 and found[0, ord("}")] == -torch.inf
    processor(torch.tensor([[BOS, ord("["), ord("}")]]), torch.zeros(1, N_ROWS))
    with pytest.raises(IllegalTokenError, match="position 2"):
        processor(torch.tensor([[BOS, ord("["), ord("}")]]), torch.zeros(1, N_ROWS))


def test_after_the_end_only_the_end_is_left() -> None:
    processor = MaskwrightLogitsProcessor(store())
    processor(torch.tensor([[BOS]]), torch.zeros(1, N_ROWS))
    processor(torch.tensor([[BOS, ord("1")]]), torch.zeros(1, N_ROWS))
    for tail in ([EOS], [EOS, PAD], [EOS, PAD, PAD]):
        scores = torch.full((1, N_ROWS), -torch.inf)
        found = processor(torch.tensor([[BOS, ord("1"), *tail]]), scores)
        assert torch.isfinite(found).nonzero().tolist() == [[0, EOS]]


def test_what_does_not_fit_is_said() -> None:
    one = torch.tensor([[BOS]])
    with pytest.raises(
        MaskwrightError, match=r"the model gives 40 logits, but vocabulary bytes has tokens up to id 274"
    ):
        MaskwrightLogitsProcessor(store())(one, torch.zeros(1, 40))
    with pytest.raises(MaskwrightError, match=r"3 stores are given for 4 rows"):
        MaskwrightLogitsProcessor([store()] * 3)(one.repeat(4, 1), torch.zeros(4, N_ROWS))
    with pytest.raises(MaskwrightError, match="prompt_lengths says 2, but the prompt has 1 positions"):
        MaskwrightLogitsProcessor(store(), prompt_lengths=2)(one, torch.zeros(1, N_ROWS))
    with pytest.raises(MaskwrightError, match="give one of them"):
        MaskwrightLogitsProcessor(store(), prompt_lengths=2, constrain_prompt=True)
    with pytest.raises(IllegalTokenError, match="row 0: the prefix is not the beginning"):
        MaskwrightLogitsProcessor(store(), prefix="}")(one, torch.zeros(1, N_ROWS))
    with pytest.raises(MaskwrightError, match="for the same B"):
        MaskwrightLogitsProcessor(store())(one, torch.zeros(2, N_ROWS))
    with pytest.raises(MaskwrightError, match="no store is given"):
        MaskwrightLogitsProcessor([])
    other = Vocabulary("other", vocabulary().tokens[:-1], {EOS: "</s>", PAD: "<pad>"}, (EOS,))
    stranger = compile_store(parse_grammar(PAIRS_TEXT, name="pairs"), other)
    with pytest.raises(VocabularyError, match="different vocabularies, bytes and other"):
        MaskwrightLogitsProcessor([store(), stranger])
    nfa = parse_grammar(PAIRS_TEXT, name="pairs", lexing="nfa")
    from maskwright.stores.build import build_store

    with pytest.raises(MaskwrightError, match="lexing='longest'"):
        MaskwrightLogitsProcessor(build_store(nfa, vocabulary()))  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="no generation yet"):
        MaskwrightLogitsProcessor(store()).endings([[1]])


def test_a_dead_end_is_an_error_with_its_row() -> None:
    """The grammar needs an é, which no token has whole, and whose second byte no token is."""
    lame = Vocabulary("lame", (b"a", b"\xc3", b""), {2: "</s>"}, (2,))
    lame_store = compile_store(parse_grammar('start: "a" "é"', name="accent"), lame)
    processor = MaskwrightLogitsProcessor(lame_store)
    with pytest.raises(DeadEndError, match=r"row 0: no token of vocabulary lame can come next"):
        processor(torch.tensor([[2]]), torch.zeros(1, 3))
        processor(torch.tensor([[2, 0]]), torch.zeros(1, 3))
        processor(torch.tensor([[2, 0, 1]]), torch.zeros(1, 3))


def test_the_tokenizer_is_compared() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = {symbol: i for i, symbol in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}
    built = tokenizers.Tokenizer(tokenizers.models.BPE({**alphabet, "ab": 256, "</s>": 257}, [("a", "b")]))
    built.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    built.decoder = tokenizers.decoders.ByteLevel()
    built.add_special_tokens(["</s>"])
    same = load_vocabulary(built, size=300)
    grammar = parse_grammar(PAIRS_TEXT, name="pairs")
    MaskwrightLogitsProcessor(compile_store(grammar, same), built)
    other = Vocabulary("other", (*same.tokens[:256], b"bb", b""), {257: "</s>"}, (257,))
    with pytest.raises(
        VocabularyError, match=r"token 256 is b'bb' in the store's vocabulary other \(258 ids\), b'ab' in"
    ):
        MaskwrightLogitsProcessor(compile_store(grammar, other), built)


def test_padding_of_beams_is_no_text() -> None:
    """Fewer texts than beams: rows of padding alone, and padding without an end of text."""
    processor = MaskwrightLogitsProcessor(store('start: "a" | "b"'))
    options: dict[str, Any] = {"num_beams": 4, "length_penalty": -2.0, "num_return_sequences": 4}
    found = generate(processor, [PROMPT], **options)
    endings = processor.endings(found)
    rows = found[:, len(PROMPT) :].tolist()
    assert any(set(row) == {PAD} for row in rows)
    for row, ending in zip(rows, endings, strict=True):
        text = text_of([token for token in row if token < EOS])
        assert text + ending.data in (b"a", b"b") and bool(text) != bool(ending.data)
    with pytest.raises(IllegalTokenError):
        processor.endings([[*PROMPT, PAD, ord("a")]] * len(found))
