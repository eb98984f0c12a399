"""The generation loop and token healing, with functions for models: every completion is legal, and within its budget."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from grammars import json_text
from shares import share

from maskwright.analysis.errors import DeadEndError, IllegalTokenError, LimitError, MaskwrightError
from maskwright.analysis.loading import parse_grammar
from maskwright.decoding.endings import ending
from maskwright.decoding.generation.blanks import MOST_BLANKS, MOST_LINES
from maskwright.decoding.generation.completion import Completion
from maskwright.decoding.generation.generation import generate
from maskwright.decoding.generation.healing import Healing, split_for_healing
from maskwright.decoding.generation.logits import Sampler, likeliest
from maskwright.decoding.matcher import Matcher
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.maskstore.vocabulary.masks import words_of
from maskwright.stores.build import compile_store
from maskwright.stores.store import Store

JSON_TEXT = json_text(r'"[a-z ]{0,6}"', r"-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,3})?", r"[ \n]{1,3}")
PIECES = ['{"', '":', '": ', '",', "[[", "[1", "[[[[[", "true", "null", "12", "ab", "abc", '{"a":{"b":{"c":[']
EOS = 256 + len(PIECES)


@functools.cache
def vocabulary() -> Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES] + [b"", b""]
    return Vocabulary("bytes", tuple(tokens), {EOS: "</s>", EOS + 1: "<s>"}, (EOS,))


@functools.cache
def store() -> Store:
    return compile_store(parse_grammar(JSON_TEXT, name="json"), vocabulary())


def test_a_text_that_has_ended_is_refused() -> None:
    matcher = store().matcher()
    matcher.advance_bytes(b"1")
    matcher.advance(EOS)
    with pytest.raises(MaskwrightError, match="the matcher's text has ended, so nothing can be generated"):
        generate(random_model(0), matcher, [1])


def random_model(seed: int, closes: float = 0.0) -> Any:
    """Logits by the number of tokens read, and nothing else."""

    def logits(tokens: Sequence[int]) -> Any:
        found = np.random.default_rng((seed, len(tokens))).normal(size=vocabulary().size).astype(np.float32)
        found[[ord("]"), ord("}"), EOS]] += closes
        return found

    return logits


def writer(data: bytes) -> Any:
    """A model that wants to write some bytes, one at a time, and then to end."""
    calls = iter([*data, *[EOS] * 1000])

    def logits(tokens: Sequence[int]) -> Any:
        found = np.zeros(vocabulary().size, np.float32)
        found[next(calls)] = 10
        return found

    return logits


def run(model: Any, prompt: bytes = b"", heal: bytes = b"", **options: Any) -> Completion:
    matcher = store().matcher()
    matcher.advance_bytes(prompt)
    generation = generate(model, matcher, [EOS + 1, *prompt], heal=heal, **options)
    steps = list(generation)
    found = generation.completion
    assert b"".join(step.data for step in steps) == found.data
    assert b"".join(step.data for step in steps if step.is_closing) == found.closing
    assert found.data.endswith(found.closing)
    return found


@pytest.mark.parametrize("n", share([3, 12], 1))
@pytest.mark.parametrize("prompt", [b"", b"[1, ", b'{"a": [[', b'["ab'])
def test_every_budget_is_kept_and_every_text_parses(prompt: bytes, n: int) -> None:
    """Random models open brackets all the time; the text is closed before they are too many."""
    reasons = set()
    for seed in range(n):
        for budget in (8, 9, 12, 17, 18, 19, 25, 40):
            for options in ({}, {"temperature": 1.0}, {"temperature": 2.0, "top_k": 40, "top_p": 0.9}):
                found = run(random_model(seed, seed / 3), prompt, max_tokens=budget, seed=seed, **options)
                json.loads(prompt + found.data)
                assert found.is_complete and len(found.tokens) <= budget
                spelled = b"".join(vocabulary().tokens[token] for token in found.tokens)
                assert spelled == found.data
                reasons.add(found.reason)
    assert reasons == {"end", "tokens"}


def test_texts_are_closed_where_the_search_for_a_shortest_ending_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "SHORT_NODES", -(10**6))
    for seed in range(12):
        for budget in (9, 17, 40):
            found = run(random_model(seed, seed / 3), b"[1, ", max_tokens=budget, temperature=1.0, seed=seed)
            json.loads(b"[1, " + found.data)
            assert found.is_complete and len(found.tokens) <= budget
    # that a budget is too small is only said when it is known
    near = ending._near
    monkeypatch.setattr(ending, "_near", lambda *given: (near(*given)[0], False))
    assert json.loads(b"[[[[" + run(random_model(0), b"[[[[", max_tokens=2).data) is not None


def test_a_budget_that_cannot_suffice_is_an_error() -> None:
    with pytest.raises(LimitError, match=r"max_tokens is 2, but the shortest ending of the text takes \d tokens"):
        run(random_model(0), b"[[[[", max_tokens=2)
    open_text = run(random_model(0), b"[[[[", max_tokens=2, close=False)
    assert not open_text.is_complete and len(open_text.tokens) == 2 and open_text.reason == "tokens"


def test_a_budget_of_one_token() -> None:
    assert json.loads(run(random_model(0), max_tokens=1).data) is not None
    assert json.loads(b"[1" + run(random_model(0), b"[1", max_tokens=1).data) == [1]


def test_what_opens_too_much_is_not_taken() -> None:
    """Of two tokens left one must close the bracket; `[[[[[` is what the model wants."""

    def greedy_opener(tokens: Sequence[int]) -> Any:
        found = np.zeros(vocabulary().size, np.float32)
        found[256 + PIECES.index("[[[[[")] = 5
        return found

    for budget in range(2, 60):
        found = run(greedy_opener, b"[", max_tokens=budget)
        json.loads(b"[" + found.data)
        assert len(found.tokens) <= budget


def test_time_runs_out_and_the_text_is_closed() -> None:
    def slow(tokens: Sequence[int]) -> Any:
        time.sleep(0.02)
        return random_model(1)(tokens)

    found = run(slow, b'{"a": [', max_tokens=100_000, seconds=0.3)
    assert found.reason == "seconds" and found.is_complete and found.closing
    assert 0.3 <= found.seconds < 3 and found.model_seconds > 0.2
    json.loads(b'{"a": [' + found.data)


def test_the_model_ends_the_text() -> None:
    found = run(writer(b'[true, "ab"]'), max_tokens=50)
    assert found.data == b'[true, "ab"]' and found.reason == "end" and found.closing == b""
    free = generate(writer(b"]] no json"), None, [EOS + 1], vocabulary=vocabulary(), max_tokens=50).run()
    assert free.data == b"]] no json" and free.reason == "end" and free.is_complete is None


def test_stop_strings_are_cut_off_and_the_text_is_closed() -> None:
    """Also where a token goes past the stop string, begins before it, and where it might begin but does not."""
    text = b'["ab", "abc", true]'
    for stop in ("abc", '", "', "c", 'bc"', "zzz", "true]", ", t"):
        found = run(writer(text), max_tokens=50, stop=["nope", stop])
        at = text.find(stop.encode())
        if at < 0:
            assert found.data == text and found.reason == "end"
            continue
        kept = text[:at]
        assert found.reason == "stop" and found.data == kept + found.closing and found.is_complete
        json.loads(found.data)
        free = generate(writer(text), None, [EOS + 1], vocabulary=vocabulary(), max_tokens=50, stop=[stop]).run()
        assert free.data == kept


def test_a_stop_string_inside_a_token() -> None:
    def opener(tokens: Sequence[int]) -> Any:
        found = np.zeros(vocabulary().size, np.float32)
        found[256 + PIECES.index('{"a":{"b":{"c":[')] = 5
        return found

    found = run(opener, max_tokens=50, stop=['"c"'])
    assert found.data.startswith(b'{"a":{"b":{') and b'"c"' not in found.data and found.reason == "stop"
    json.loads(found.data)


def test_shown_steps_are_never_taken_back() -> None:
    """What may still become a stop string is held back until it cannot."""
    matcher = store().matcher()
    generation = generate(writer(b'["ab", 1]'), matcher, [EOS + 1], max_tokens=50, stop=['ab", 2'])
    shown = b""
    for step in generation:
        shown += step.data
        assert b'["ab", 1]'.startswith(shown)
        assert shown in (b"[", b'["', b'["ab", 1', b'["ab", 1]')
    assert shown == b'["ab", 1]'


def test_until_complete() -> None:
    """After a blank line in a complete text, or where only space can follow."""
    found = run(writer(b"[1]  \n\n\n"), max_tokens=50, stop_when_complete=True)
    assert found.data == b"[1]" and found.reason == "complete"
    lines = parse_grammar("start: (/[a-z]+/ NL)+\nNL: /\\n+/", name="lines")
    matcher = compile_store(lines, vocabulary()).matcher()
    found = generate(writer(b"ab\ncd\n\nef\n"), matcher, [EOS + 1], max_tokens=50, stop_when_complete=True).run()
    assert found.data == b"ab\ncd\n\n" and found.reason == "complete" and found.is_complete


def test_equal_seeds_and_other_seeds() -> None:
    def one(seed: int) -> bytes:
        return run(random_model(5), b"[", max_tokens=30, temperature=1.0, seed=seed).data

    assert one(1) == one(1)
    assert len({one(seed) for seed in range(6)}) > 3


@pytest.mark.parametrize("n", share([1_000, 5_000], 1))
def test_the_sampler_draws_what_it_should(n: int) -> None:
    """Shares within five standard deviations; top-k and top-p cut where the definition does."""
    logits = np.log(np.array([0.5, 0.25, 0.15, 0.1, 0.0], np.float32) + 1e-30)
    logits[4] = -np.inf
    for options, shares in (
        ((1.0, 0, 1.0), [0.5, 0.25, 0.15, 0.1]),
        ((1.0, 2, 1.0), [2 / 3, 1 / 3, 0, 0]),
        ((1.0, 0, 0.6), [2 / 3, 1 / 3, 0, 0]),
        ((1.0, 0, 0.5), [1, 0, 0, 0]),
        ((1.0, 3, 0.8), [0.5 / 0.75, 0.25 / 0.75, 0, 0]),
        ((0.5, 0, 1.0), [0.25 / 0.345, 0.0625 / 0.345, 0.0225 / 0.345, 0.01 / 0.345]),
        ((0.0, 0, 1.0), [1, 0, 0, 0]),
    ):
        sampler = Sampler(*options, seed=3)
        counts = np.bincount([sampler.choose(logits.copy()) for _ in range(n)], minlength=5)
        assert counts[4] == 0
        for count, p in zip(counts, shares, strict=False):
            assert abs(count - n * p) <= 5 * (n * p * (1 - p)) ** 0.5 + 1e-9 * n, (options, counts)
    with pytest.raises(MaskwrightError, match="no allowed token has a finite logit"):
        Sampler(0.0, 0, 1.0, 0).choose(np.full(3, -np.inf, np.float32))
    with pytest.raises(MaskwrightError, match="NaN"):
        Sampler(1.0, 0, 1.0, 0).choose(np.full(3, np.nan, np.float32))


def test_a_choice_under_a_mask_is_that_of_masked_logits() -> None:
    """Whether or not the likeliest token is allowed, with ties, NaN and infinities; and drawn alike from equal seeds."""
    rng, seen = np.random.default_rng(0), set()
    for seed in range(400):
        n = int(rng.integers(1, 70))
        logits = np.round(rng.normal(size=n), 1).astype(np.float32)
        for strange in (np.nan, -np.inf, np.inf):
            logits[rng.random(n) < 0.1 * rng.integers(0, 2)] = strange
        allowed = np.flatnonzero(rng.random(n) < rng.random())
        words = words_of(allowed, n).view(np.int32)
        masked = np.full(n, -np.inf, np.float32)
        masked[allowed] = logits[allowed]
        own = likeliest(logits)
        for temperature in (0.0, 1.0):
            for known in (-1, own):
                expected = found = None
                with contextlib.suppress(MaskwrightError):
                    expected = Sampler(temperature, 0, 1.0, seed).choose(masked.copy())
                with contextlib.suppress(MaskwrightError):
                    found = Sampler(temperature, 0, 1.0, seed).choose(logits.copy(), words, known)
                assert found == expected
                seen.add((found is None, own in allowed, temperature))
    assert len(seen) == 8, "not all cases came"


@pytest.mark.parametrize(
    ("options", "begins"), [({}, "model"), ({"fast_forward": True}, "mask"), ({"stop_when_complete": True}, "mask")]
)
def test_the_pass_is_launched_before_the_mask_is_made(
    options: Any, begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a device works while the mask is made; unless the mask may say that no pass is needed."""
    events: list[str] = []
    fill = Matcher.fill
    monkeypatch.setattr(Matcher, "fill", lambda self, words: (events.append("mask"), fill(self, words))[1])
    model = writer(b"[[12],3]")
    found = generate(lambda tokens: (events.append("model"), model(tokens))[1], store().matcher(), [1], **options).run()
    assert found.data == b"[[12],3]"
    assert events[:16] == [begins, "model" if begins == "mask" else "mask"] * 8


def test_what_is_out_of_range_is_said() -> None:
    for options, message in (
        ({"max_tokens": 0}, "max_tokens is 0; expected at least 1"),
        ({"seconds": 0.0}, "seconds is 0.0; expected more than 0"),
        ({"temperature": -1.0}, "temperature is -1.0; expected 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_k": -1}, "top_k is -1"),
        ({"top_p": 0.0}, "top_p is 0.0; expected more than 0"),
        ({"stop": [""]}, "strings that are not empty"),
    ):
        with pytest.raises(MaskwrightError, match=message):
            run(random_model(0), **options)
    with pytest.raises(MaskwrightError, match="at least one token"):
        generate(random_model(0), store().matcher(), [])
    with pytest.raises(MaskwrightError, match="give the model's vocabulary"):
        generate(random_model(0), None, [1])
    with pytest.raises(MaskwrightError, match="expected a model of transformers, or a function"):
        generate("model", store().matcher(), [1])
    with pytest.raises(
        MaskwrightError, match=r"the model gives 7 logits, but vocabulary bytes has tokens up to id 269"
    ):
        run(lambda tokens: np.zeros(7))
    with pytest.raises(MaskwrightError, match=r"logits of shape \(1, 7\)"):
        run(lambda tokens: np.zeros((1, 7)))
    for odd in (["a"], [[1], [1, 2]], {}):
        with pytest.raises(MaskwrightError, match=r"the model gave .*; expected \(N,\) numbers"):
            run(lambda tokens, odd=odd: odd)
    generation = generate(random_model(0), store().matcher(), [1])
    with pytest.raises(MaskwrightError, match="under way"):
        _ = generation.completion


def test_a_generation_that_has_failed_says_so() -> None:
    generation = generate(lambda tokens: 1 / 0, store().matcher(), [1])
    with pytest.raises(ZeroDivisionError):
        generation.run()
    for ask in (generation.run, lambda: generation.completion):
        with pytest.raises(MaskwrightError, match="ended before its text was whole, by an error"):
            ask()


@pytest.mark.parametrize("close", [True, False])
def test_an_end_of_the_prompt_that_cannot_be_healed_is_not_blamed_on_the_model(close: bool) -> None:
    with pytest.raises(IllegalTokenError, match="bytes b'x' are not legal here"):
        run(random_model(0), heal=b"x", close=close)
    lacking = Vocabulary.from_tokens([b"", b"ab", b"a", b"c"], eos=[0])
    matcher = compile_store(parse_grammar('start: "ab" | "ac" | "bc"', name="g"), lacking).matcher()
    with pytest.raises(DeadEndError, match="no token that can come next spells b'b', the healed end"):
        generate(lambda _: np.zeros(4), matcher, [1], heal=b"b", close=False).run()


def test_logits_wider_than_the_vocabulary() -> None:
    def wide(tokens: Sequence[int]) -> Any:
        return np.concatenate([random_model(2)(tokens), np.full(40, 100, np.float32)])

    assert json.loads(run(wide, max_tokens=20).data) is not None


def test_what_is_taken_back_for_healing() -> None:
    """The longest run of last tokens that begins a longer token; never the first token, never what has no text."""
    split = functools.partial(split_for_healing, vocabulary())
    piece = {text: 256 + i for i, text in enumerate(PIECES)}
    assert split([EOS + 1, ord("["), ord("t")]) == ([EOS + 1, ord("[")], b"t")
    assert split([EOS + 1, ord("["), ord("["), ord("[")]) == ([EOS + 1], b"[[[")
    assert split([ord("["), ord("[")]) == ([ord("[")], b"[")
    assert split([EOS + 1, ord("x")]) == ([EOS + 1, ord("x")], b"")
    assert split([EOS + 1, piece["true"]]) == ([EOS + 1, piece["true"]], b"")
    assert split([EOS + 1, ord("t"), EOS]) == ([EOS + 1, ord("t"), EOS], b"")
    assert split([EOS + 1, piece["ab"]]) == ([EOS + 1], b"ab")
    assert split([]) == ([], b"")


def test_healing_never_leads_where_the_rest_cannot_be_spelled() -> None:
    """Every way through the masks spells the tail. After `ab` only `cd` could go on, which the grammar may refuse."""
    lame = Vocabulary("lame", (b"a", b"ab", b"abcd", b"cd", b"abce", b""), {5: "</s>"}, (5,))
    ways = set()

    def walk(healing: Healing, spelled: tuple[int, ...]) -> None:
        if not healing.to_spell:
            ways.add(spelled)
            return
        words = healing.words()
        for token, data in enumerate(lame.tokens):
            if int(words[0]) >> token & 1:
                other = Healing(lame, healing.tail)
                other.to_spell = healing.to_spell
                assert other.take(data) == data[len(healing.to_spell) :]
                walk(other, (*spelled, token))

    walk(Healing(lame, b"abc"), ())
    assert ways == {(2,), (4,)}


@pytest.mark.parametrize("budget", [5, 6, 30])
def test_healed_prompts_are_kept_whole(budget: int) -> None:
    """The completion goes on from the whole prompt, whatever tokens spell its end, and the prompt's end costs no budget."""
    for seed in range(30):
        found = run(random_model(seed), b"[[1, ", heal=b"[tr", max_tokens=budget)
        assert json.loads(b"[[1, [tr" + found.data) and found.is_complete
        assert found.data.startswith(b"ue")
        new = b"".join(vocabulary().tokens[token] for token in found.tokens)
        assert new == b"[tr" + found.data
    with_stop = run(random_model(1), b"[[1, ", heal=b"[tr", max_tokens=20, stop=["ue"])
    assert with_stop.reason == "stop" and with_stop.closing == with_stop.data
    assert json.loads(b"[[1, [tr" + with_stop.data)
    free = generate(writer(b"[true]"), None, [EOS + 1], vocabulary=vocabulary(), heal=b"[tr").run()
    assert free.data.startswith(b"ue]")


@pytest.mark.parametrize("n", share([6, 20], 1))
@pytest.mark.parametrize("prompt", [b"", b"[1, ", b'{"a": [['])
def test_the_models_own_choice_may_be_asked_about_first(prompt: bytes, n: int) -> None:
    """Greedy texts are the same, with fewer masks; no text is illegal or too long."""
    masks = calls = 0
    for seed in range(n):
        for budget in (12, 25, 60):
            model = random_model(seed, seed / 2)
            usual, first = (run(model, prompt, max_tokens=budget, opportunistic=tries) for tries in (False, True))
            assert (usual.data, usual.tokens, usual.reason) == (first.data, first.tokens, first.reason)
            assert usual.masks >= usual.model_calls and first.masks <= first.model_calls
            masks, calls = masks + first.masks, calls + first.model_calls
            drawn = run(model, prompt, max_tokens=budget, opportunistic=True, temperature=1.0, seed=seed)
            assert json.loads(prompt + drawn.data) is not None and len(drawn.tokens) <= budget
    assert 0 < masks < calls


@pytest.mark.slow
def test_samples_have_the_distribution_of_the_mask_whether_it_is_made_first_or_not() -> None:
    """One token of three that are allowed, most of the weight on others."""
    weights = np.full(vocabulary().size, -np.inf, np.float32)
    weights[[ord("1"), ord("2"), ord("t"), ord("}"), ord(",")]] = np.log([0.1, 0.05, 0.05, 0.5, 0.3])
    counts = {}
    for opportunistic in (False, True):
        found: dict[int, int] = {}
        for seed in range(1500):
            matcher = store().matcher()
            generation = generate(
                lambda tokens: weights.copy(),
                matcher,
                [EOS + 1],
                max_tokens=1000,
                temperature=1.0,
                seed=seed,
                close=False,
                opportunistic=opportunistic,
                stop=["2", "1", "t"],
            )
            for _ in generation:
                pass
            first = generation.completion.tokens[0]
            found[first] = found.get(first, 0) + 1
        counts[opportunistic] = found
    for found in counts.values():
        assert set(found) == {ord("1"), ord("2"), ord("t")}
        assert abs(found[ord("1")] / 1500 - 0.5) < 0.06 and abs(found[ord("t")] / 1500 - 0.25) < 0.05


@pytest.mark.parametrize("opportunistic", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1.0])
def test_numbers_that_overflow(opportunistic: bool, temperature: float) -> None:
    """A logit of +inf is an error where the token is allowed; elsewhere the mask takes it away."""

    def model(infinite: int) -> Any:
        logits = np.full(vocabulary().size, -np.inf, np.float32)
        logits[ord("1")], logits[EOS], logits[infinite] = 3, 4, np.inf
        return lambda tokens: logits.copy()

    options: dict[str, Any] = {"opportunistic": opportunistic, "temperature": temperature, "max_tokens": 20}
    assert run(model(ord("}")), close=False, **options).data[:1] == b"1"
    with pytest.raises(MaskwrightError, match=rf"the allowed token {ord('2')} the logit \+inf"):
        run(model(ord("2")), **options)
    empty = np.full(vocabulary().size, np.nan, np.float32)
    with pytest.raises(MaskwrightError, match="NaN or -inf"):
        run(lambda tokens: empty.copy(), **options)


def test_what_looks_at_the_mask_makes_it() -> None:
    for options in ({"top_k": 3, "temperature": 1.0}, {"top_p": 0.5, "temperature": 1.0}, {"stop_when_complete": True}):
        found = run(random_model(3), b"[1, ", max_tokens=20, opportunistic=True, **options)
        assert found.masks >= found.model_calls


@pytest.mark.parametrize("options", [{}, {"opportunistic": True}, {"temperature": 0.5}])
def test_white_space_in_a_row_is_bounded(options: dict[str, Any]) -> None:
    """A model that likes blanks or line feeds best; where nothing else may come they go on."""
    tokens = [b"", b" ", b"\n", b"    ", b"a", b"b"]
    for liked, most in ((1, MOST_BLANKS), (2, MOST_LINES), (3, MOST_BLANKS)):
        logits = np.array([-9.0, 0, 0, 0, -5, -5], np.float32)
        logits[liked] = 9

        def written(grammar: str, n: int, logits: Any = logits) -> bytes:
            store = compile_store(parse_grammar(grammar), Vocabulary.from_tokens(tokens, eos=[0]))
            one = generate(lambda _: logits, store.matcher(), [0], max_tokens=n, close=False, **options)
            return one.run().data

        text = written('start: ("a" | "b" | BLANK)+ \nBLANK: /[ \\n]/', 600)
        runs = re.findall(rb"\s+", text)
        assert max(map(len, runs)) <= MOST_BLANKS + 3 and max(map(len, runs)) >= most
        assert max(run.count(b"\n") for run in runs) <= MOST_LINES
        if liked != 3:
            assert written(
                f'start: BLANK~300 "a"\nBLANK: /[{tokens[liked].decode()!r}]/'.replace("'", ""), 300
            ).isspace()
