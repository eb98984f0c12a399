"""Tokens in GBNF and EBNF: masks against the definition, and what else a text of such a grammar can do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import naive_token_rules as naive
import numpy as np
import pytest
from mask_bits import mask_of
from naive_token_rules import EOS, SPECIAL, TOKENS, random_rules
from shares import share

import maskwright as mw

SMALL = mw.Vocabulary("small", TOKENS, {number: name for name, number in SPECIAL.items()}, (EOS,))


@pytest.mark.parametrize("seed", share(range(100), 4))
def test_masks_of_random_rules(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"tokens {seed}")
    for _ in range(4):
        rules, *texts = random_rules(rng)
        syntax = rng.randrange(2)
        found = mw.read_constraint(texts[syntax], ("gbnf", "ebnf")[syntax])
        store = mw.build_store(found, SMALL)
        if rng.random() < 0.2 and isinstance(found, mw.Composition):
            store.save(tmp_path / "store.safetensors")
            store = mw.load_store(tmp_path / "store.safetensors")
        batch = store.batch(2)
        words = np.zeros((2, store.n_words), np.uint32)
        for row in range(2):
            matcher, stacks = store.matcher(), [naive.begin(rules)]
            for _ in range(rng.randrange(2, 9)):
                legal = naive.mask(rules, stacks[-1])
                assert mask_of(matcher) == legal, (texts[syntax], stacks[-1])
                assert matcher.is_accepting() == (EOS in legal)
                batch.fill(words)
                assert {token for token in range(len(TOKENS)) if words[row, 0] >> token & 1} == legal, texts[syntax]
                if not legal - {EOS}:
                    break
                token = rng.choice(sorted(legal - {EOS}))
                matcher.advance(token)
                batch.advance(np.array([token if k == row else -1 for k in range(2)]))
                stacks.append(naive.behind(rules, stacks[-1], token))
            check_ending(matcher.fork(), rules, stacks[-1])
            back = rng.randrange(len(stacks))
            matcher.rollback(back)
            assert mask_of(matcher) == naive.mask(rules, stacks[len(stacks) - 1 - back]), texts[syntax]


def check_ending(matcher: mw.Matcher, rules: naive.Rules, stacks: set[naive.Stack]) -> None:
    for token in matcher.shortest_ending().tokens:
        assert token in naive.mask(rules, stacks)
        stacks = naive.behind(rules, stacks, token)
        matcher.advance(token)
    assert () in stacks and matcher.is_accepting()


@pytest.mark.parametrize("seed", share(range(12), 4))
def test_the_definition_against_all_texts_of_a_few_tokens(seed: int) -> None:
    """A token is in the mask if and only if some text of at most eight tokens more goes on with it."""
    rng = random.Random(f"all texts {seed}")
    for _ in range(10):
        rules, *_ = random_rules(rng, 2)
        stacks = naive.begin(rules)
        for _ in range(3):
            tried = {token for token in range(EOS) if naive.ends(rules, naive.behind(rules, stacks, token), 8)}
            assert naive.mask(rules, stacks) - {EOS} == tried
            if not tried:
                break
            stacks = naive.behind(rules, stacks, rng.choice(sorted(tried)))


BYTES = mw.load_vocabulary(
    [*(bytes([i]) for i in range(256)), b"", b"", b"", b"<t>", b"abc"],
    eos=[256],
    special={"<|e|>": 256, "<|x|>": 257, "<think>": 258},
    name="bytes",
)


def verdict(text: str, tokens: Sequence[int]) -> bool:
    matcher = mw.build_store(mw.read_constraint(text), BYTES).matcher()
    return matcher.replay(tokens) == len(tokens) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        # as in a guide and a test of llama.cpp's, and as programs send it
        ("root ::= <think> thinking <|x|> .*\nthinking ::= !<|x|>*", [258, 97, 258, 257, 98], [258, 97, 257, 257]),
        ("root ::= pre <[257]> post\npre ::= !<[257]>*\npost ::= !<[257]>*", [97, 257, 258], [257, 257]),
        ("root ::= (<[257]> | <[258]>) !<[257-258]>", [258, 97], [257, 258]),
        ("root ::= x\nx ::= | <[257]> y | (. | <[258]>) x\ny ::= | [x] <[258]> | ([^x] | <[258]>) x", [97, 257, 120, 258], [257, 120, 97]),
        ('root ::= <[*]> "a"', [257, 97], [256]),
        ("root ::= <t> .*", [259, 60], [60, 116, 62]),
        ('root ::= "ab" <abc>? <[99]>', [97, 98, 99], [260]),
        # xgrammar's
        ('root ::= Token(257, 97) "b"', [97, 98], [98]),
        ('root ::= TokenTagDispatch((257, x), excludes=(98,))\nx ::= "b"', [97, 257, 98, 97, 258], [97, 98]),
        ('root ::= TokenTagDispatch((257, x), loop_after_dispatch=false)\nx ::= "b"', [97, 257, 98], [257, 98, 97]),
    ],
)  # fmt: skip
def test_what_a_token_means(text: str, good: list[int], bad: list[int]) -> None:
    if "abc" not in text:
        assert verdict(text, good) and not verdict(text, bad)
    else:  # <abc> is no token, abc is one
        with pytest.raises(
            mw.VocabularyError, match=r"part <abc> \(1:15\): vocabulary bytes has no token '<abc>', neither"
        ):
            verdict(text, good)


def test_tokens_beside_what_is_ignored() -> None:
    """Of llguidance's dialect: nothing is ignored within a token, and a token of the set is never ignored."""
    text = 'start: "a" <[257,32]> <[^257]>* "b"\n%ignore " "'
    assert all(verdict(text, one) for one in ([97, 257, 98], [97, 32, 32, 257, 32, 98], [97, 32, 98]))
    assert not verdict(text, [97, 257, 257, 98]) and not verdict(text, [97, 98])


def test_where_a_text_with_tokens_may_stand() -> None:
    text = 'root ::= <think> !<|x|>* <|x|> "a"'
    store = mw.build_store(mw.compose('start: "q" P\n%declare P', {"P": text}), BYTES)
    assert store.matcher().replay([113, 258, 99, 257, 97]) == 5
    form = {
        "type": "tag",
        "begin": "<",
        "content": {"type": "grammar", "grammar": 'root ::= Token(257) "b"'},
        "end": ">",
    }
    tag = mw.read_structural_tag({"type": "structural_tag", "format": form})
    assert mw.build_store(tag, BYTES).matcher().shortest_ending().tokens == (60, 257, 98, 62)
    with pytest.raises(mw.GrammarError, match="they cannot be in a JSON string"):
        mw.in_json_string(text)
    with pytest.raises(mw.MaskwrightError, match="a middle is for one grammar"):
        mw.build_store(text, BYTES).matcher(suffix=b"a")
    with pytest.raises(mw.VocabularyError, match=r"part <\|e\|> \(1:10\): token 256 ends the text"):
        mw.build_store("root ::= <|e|>", BYTES)
