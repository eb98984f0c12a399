"""From grammar and vocabulary to the closed automaton: what is refused, what is reported, and that nothing depends on chance."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from engine_cases import longest, random_layout_grammar, random_longest_grammar, random_vocabulary, vocabulary_of
from mask_bits import row
from naive import Earley
from own_process import prints_the_same
from shares import share

from maskwright.analysis.errors import GrammarError, LimitError, VocabularyError
from maskwright.analysis.loading import parse_grammar
from maskwright.analysis.lr.bisimulation import bisimulate
from maskwright.analysis.lr.encoding import can_follow
from maskwright.analysis.lr.tables import build_lr_tables
from maskwright.maskstore.automaton import _explore_kernels as kernels
from maskwright.maskstore.automaton import configuration_sets, exploration_tables
from maskwright.maskstore.automaton.stack_automaton import build_automaton
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.stores.build import compile_store


@pytest.mark.parametrize("seed", range(30))
def test_can_follow_is_never_less_than_the_truth(seed: int) -> None:
    grammar = random_longest_grammar(seed)
    tables = bisimulate(build_lr_tables(grammar))
    answer = can_follow(tables)
    earley = Earley(grammar)
    words: list[tuple[int, ...]] = [()]
    seen = 0
    for _ in range(4):
        words = [(*w, t) for w in words for t in range(grammar.n_terminals) if earley.read_word((*w, t))[-1]][:200]
        for word in words:
            if len(word) > 1:
                assert answer(*word[-2:]), word
                seen += 1
    assert seen or len(words) == 0


def test_lexing_nfa_has_no_stack_automaton() -> None:
    grammar = dataclasses.replace(longest('start: "a"'), lexing="nfa")
    with pytest.raises(GrammarError, match="lexing 'nfa'"):
        build_automaton(grammar, vocabulary_of(b"a"))


@pytest.mark.slow
def test_rules_too_long_for_the_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    build_automaton(longest("start: " + '"a" ' * 4095), vocabulary_of(b"a"))
    with pytest.raises(LimitError, match="a rule of 4,096 symbols, expected fewer than 262,144 and 4,096"):
        build_automaton(longest("start: " + '"a" ' * 4096), vocabulary_of(b"a"))
    monkeypatch.setattr(exploration_tables, "MAX_NONTERMINALS", 3)
    with pytest.raises(LimitError, match="has 3 nonterminals"):
        build_automaton(longest('start: a b\na: "a"\nb: "a" b | "b"'), vocabulary_of(b"a"))


def test_a_vocabulary_without_text_is_refused() -> None:
    with pytest.raises(VocabularyError, match="no token that stands for text"):
        build_automaton(longest('start: "a"'), Vocabulary("mute", (b"", b""), {0: "</s>"}, (0,)))


def test_endless_derivations_end_unless_a_parser_of_one_action_meets_them() -> None:
    grammar = longest('start: c\nb: a\na: b | "a"\nc: a | b')
    assert build_automaton(grammar, vocabulary_of(b"a")).tables.n_conflicts == 0
    with pytest.raises(GrammarError, match="infinite ambiguity"):
        build_automaton(dataclasses.replace(grammar, conflicts="shift"), vocabulary_of(b"a"))


def test_progress_is_told_in_stages() -> None:
    seen: list[tuple[str, int, int]] = []
    build_automaton(
        longest('start: "a" start "b" | "c"'), vocabulary_of(b"a", b"b", b"c"), lambda *facts: seen.append(facts)
    )
    assert list(dict.fromkeys(name for name, _, _ in seen)) in (["walk", "parses", "closure"], ["walk", "parses"])
    assert all(0 <= done <= total for _, done, total in seen)


def test_progress_is_told_while_rests_of_one_length_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_sets, "PAUSE", kernels.NEW_STEP)
    seen: list[tuple[int, int]] = []
    rules = "".join(f'r{i}: "k{i}" e0 "m{i}" e0\n' for i in range(5))
    grammar = longest(f'start: r0 | r1 | r2 | r3 | r4\n{rules}e0: e0 "+" e1 | e1\ne1: "x" | "(" e0 ")"')
    automaton = build_automaton(
        grammar,
        vocabulary_of(b"k1", b"x", b"(", b")", b"+", b"m1", b"x)m"),
        lambda name, done, total: seen.append((done, total)) if name == "parses" else None,
    )
    assert automaton.counts["edges"] and seen == sorted(seen)
    assert all(total % configuration_sets.STEPS == 0 and done <= total for done, total in seen)
    within = {done for done, _ in seen if done < configuration_sets.STEPS}
    assert len(within) > 3 and max(within) < configuration_sets.STEPS == min({done for done, _ in seen} - within)


def test_counts_are_those_of_the_closure() -> None:
    grammar = random_layout_grammar(2)
    automaton = build_automaton(grammar, random_vocabulary(grammar, 2))
    counts, closure = automaton.counts, automaton.closure
    assert counts["edges"] == len(closure.edge_key) and counts["nodes"] == closure.n_nodes
    assert counts["masks"] == len(closure.mask_count) and counts["roots"] == closure.n_roots
    assert counts["distinct"] <= counts["rests"] <= counts["entries"]
    roots = {
        lookup.root for depth_cases in automaton.depth_cases for depth_case in depth_cases for lookup in depth_case
    }
    assert roots - {0} == set(range(1, closure.n_roots + 1))


def test_equal_masks_have_one_number() -> None:
    grammar = random_longest_grammar(0)
    closure = build_automaton(grammar, random_vocabulary(grammar, 0)).closure
    contents = []
    for count, at in zip(closure.mask_count.tolist(), closure.mask_at.tolist(), strict=True):
        if count < 0:
            bits = np.unpackbits(closure.dense[at].view(np.uint8), bitorder="little")
            contents.append(tuple(np.flatnonzero(bits).tolist()))
        else:
            contents.append(tuple(closure.mask_ids[at : at + count].tolist()))
    assert contents[0] == () and len(set(contents)) == len(contents)
    assert all(list(ids) == sorted(set(ids)) for ids in contents)


DIGESTS = """
import hashlib, sys
sys.path += ["tests/support", "tests/naive"]
from engine_cases import random_layout_grammar, random_longest_grammar, random_vocabulary
from maskwright.stores.build import compile_store
for make in (random_longest_grammar, random_layout_grammar):
    for seed in (0, 2, 4):
        grammar = make(seed)
        table = compile_store(grammar, random_vocabulary(grammar, seed)).table
        print(hashlib.sha256(table.tobytes()).hexdigest())
"""


@pytest.mark.parametrize("hash_seed", share(["12345", "1"], 1))
def test_tables_do_not_depend_on_the_hash_seed(hash_seed: str) -> None:
    assert len(prints_the_same(DIGESTS, hash_seed).split()) == 6


def test_a_token_of_thousands_of_terminals() -> None:
    """More of them than Python nests calls."""
    tokens = (b"[", b"]", b"[" * 3000, b"]" * 40, b"")
    vocabulary = Vocabulary("deep", tokens, {4: "</s>"}, (4,))
    matcher = compile_store(parse_grammar('start: "[" start? "]"'), vocabulary).matcher()
    matcher.advance(2)
    for _ in range(75):
        matcher.advance(3)
    assert matcher.is_accepting() and not matcher.is_allowed(1)


@pytest.mark.parametrize("n", share([20, 60, 100], 2))
def test_chains_of_renaming_rules_are_closed(n: int) -> None:
    """Operators come in descending order. Behind x a state would reduce by n rules, one for each operator that may follow."""
    names = [f"p{i:03}" for i in range(n)]
    rules = "".join(f'e{i}: e{i + 1} | e{i + 1} "{name}"\n' for i, name in enumerate(names))
    grammar = parse_grammar(f'start: e0\n{rules}e{n}: "x"\n')
    tokens = (*(bytes([byte]) for byte in b"xp0123456789"), b"p01", b"17p00", b"xp2", b"")
    vocabulary = Vocabulary("v", tokens, {len(tokens) - 1: "</s>"}, (len(tokens) - 1,))
    assert build_automaton(grammar, vocabulary).counts["open"] == 0
    matcher = compile_store(grammar, vocabulary).matcher()
    for text in ("", "x", "xp", "xp0", "xp01", "xp017", "xp017p", "xp017p0", "xp017p01", "xp017p016", "xp017p016p000"):
        matcher.reset()
        matcher.advance_bytes(text.encode())
        complete, _, partial = text.rpartition("p") if len(text) % 4 != 1 else (text, "", None)
        least = int(complete[-3:]) if "p" in complete else n
        left = [name for name in names if int(name[1:]) < least]
        endings = [a + b for a in left for b in ["", *(b for b in left if b < a)]]
        if not text:
            rests = ["x" + ending for ending in ["", *endings]]
        elif partial is None:
            rests = endings
        else:
            rests = [ending[len(partial) + 1 :] for ending in endings if ending.startswith("p" + partial)]
        allowed = {i for i, token in enumerate(tokens) if token and any(r.startswith(token.decode()) for r in rests)}
        assert row(matcher) == allowed | ({len(tokens) - 1} if text and partial is None else set()), text


def test_tables_of_an_exploration_that_begin_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """More lookahead sets than there is room for at first, and every table full again and again."""
    rules = "\n".join(f'r{i}: "k{i}"? "w{i}"' for i in range(40))
    grammar = parse_grammar(f"start: {' '.join(f'r{i}' for i in range(40))}\n{rules}")
    vocabulary = random_vocabulary(grammar, 0)
    expected = compile_store(grammar, vocabulary)
    monkeypatch.setattr(exploration_tables, "FIRST_CAPACITY", 2)
    monkeypatch.setattr(exploration_tables, "MOST_FIRST", 2)
    found = compile_store(grammar, vocabulary)
    assert found.counts == expected.counts and (found.table == expected.table).all()
