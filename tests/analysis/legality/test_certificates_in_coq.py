"""The checker of certificates beside the one that is proved right in Coq: the same verdict on each, whole or damaged."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from coq_runs import needs_coq, verdicts
from grammars import random_grammar

from maskwright.analysis.errors import GrammarError, LimitError
from maskwright.analysis.legality.certificate import (
    CertificateError,
    Claim,
    Node,
    Pending,
    Proof,
    Simulator,
    check_certificate,
)
from maskwright.analysis.legality.exact import ExactDeciders

MODULES = ("stack_automaton", "partial_stacks", "certificate")
FUEL = 40
HEAD = """
From Coq Require Import List Bool Arith.
Import ListNotations.
From Maskwright Require Import partial_stacks certificate.
Definition S_ (s : nat) : @action nat nat := Shift s.
Definition R_ (a n : nat) : @action nat nat := Reduce a n.
Definition P_ (k a : nat) (w : list nat) : @configuration nat nat := Pops k a w.
"""


def numbers(values: object) -> str:
    return str(values).replace(",", ";").replace("(", "[").replace(")", "]").replace(";]", "]")


def coq_tables(simulator: Simulator, name: str) -> str:
    """The tables as functions: by lists, whose items count from 0."""
    columns = range(max(simulator.column, default=-1) + 1)
    actions = "; ".join(
        "["
        + "; ".join(
            "["
            + "; ".join(
                ([f"S_ {shifts[c]}"] if c in shifts else [])
                + [f"R_ {simulator.lhs[rule]} {simulator.length[rule]}" for rule in reductions.get(c, ())]
            )
            + "]"
            for c in columns
        )
        + "]"
        for shifts, reductions in zip(simulator.shift, simulator.reductions, strict=True)
    )
    n_nonterminals = 1 + max(simulator.lhs)
    gotos = "; ".join(
        "[" + "; ".join(f"Some {go[a]}" if a in go else "None" for a in range(n_nonterminals)) + "]"
        for go in simulator.go
    )
    below = "; ".join(numbers(sorted(states)) for states in simulator.below)
    return (
        f"Definition actions_{name} (q t : nat) := nth t (nth q [{actions}] []) [].\n"
        f"Definition goto_{name} (p a : nat) := nth a (nth p [{gotos}] []) None.\n"
        f"Definition below_{name} (q : nat) := nth q [{below}] [].\n"
    )


def coq_check(simulator: Simulator, proof: Proof, name: str) -> str:
    """A command that prints the verdict."""
    unused = max(simulator.column) + 1  # the tables have no actions there
    words = [[c if c >= 0 else unused for c in map(simulator.column.__getitem__, word)] for word in proof.claim.words()]

    def outcome(number: int, found: tuple[Pending, ...] | None) -> str:
        if found is None:
            return "None"
        return (
            "Some ["
            + "; ".join(f"P_ {p.pops} {p.nonterminal} {numbers(words[number][p.position :])}" for p in found)
            + "]"
        )

    nodes = "; ".join(
        f"({node.cell}, [{'; '.join(outcome(i, found) for i, found in enumerate(node.outcomes))}])"
        for node in proof.nodes
    )
    allows = "none_of" if proof.claim.kind == "never" else "both_of"
    tops = numbers(sorted(simulator.tops(proof.claim.context)))
    return (
        f"Eval vm_compute in (check Nat.eq_dec Nat.eq_dec Nat.eq_dec actions_{name} goto_{name} below_{name} 0 {allows} "
        f"[{'; '.join(map(numbers, words))}] [{nodes}] {FUEL} {tops}).\n"
    )


def opposite(proof: Proof, rng: random.Random) -> Proof | None:
    """The proof's situations under the opposite claim; None where that has other words.

    It fails wherever the context has a stack: a sequence is never legal, or it is legal where
    nothing at all is.
    """
    claim = proof.claim
    if len(claim.context) > 1 or claim.kind == "jointly":  # type: ignore[arg-type]
        return None
    nodes = proof.nodes
    if claim.kind == "always":
        kept = tuple(Node(node.cell, node.outcomes[1:]) for node in nodes)
        return Proof(Claim("never", claim.context, claim.sequences), kept)
    more = tuple(Node(node.cell, (None, *node.outcomes)) for node in nodes)
    if rng.random() < 0.5:
        return Proof(Claim("always", claim.context, claim.sequences), more)
    return Proof(Claim("jointly", claim.context, ((), *claim.sequences)), more)


def damaged(proof: Proof, rng: random.Random) -> Proof:
    """The proof with one thing changed, which may leave it right."""
    turned = opposite(proof, rng)
    how = rng.randrange(4)
    if turned is not None and (how == 3 or not proof.nodes):
        return turned
    nodes = list(proof.nodes)
    at = rng.randrange(len(nodes))
    node = nodes[at]
    if how == 0:
        del nodes[at]
    elif how == 1:
        nodes[at] = Node(node.cell, node.outcomes[::-1]) if len(node.outcomes) > 1 else Node(node.cell, (None,))
    else:
        outcomes = [
            found if not found else (dataclasses.replace(found[0], pops=found[0].pops + 1), *found[1:])
            for found in node.outcomes
        ]
        nodes[at] = Node(node.cell, tuple(outcomes))
    return Proof(proof.claim, tuple(nodes))


def proofs(seeds: range) -> Iterator[tuple[str, Simulator, Proof]]:
    """Proofs of random claims about random grammars."""
    for seed in seeds:
        try:
            deciders = ExactDeciders(random_grammar(seed), "all")
        except (GrammarError, LimitError):
            continue
        rng = random.Random(seed)
        simulator = Simulator(deciders.tables)
        terminals = range(deciders.grammar.n_terminals)
        for _ in range(12):
            first, second = (tuple(rng.choices(terminals, k=rng.randint(1, 3))) for _ in range(2))
            context = tuple(rng.choices(terminals, k=rng.randint(0, 2)))
            kind = rng.choice(("never", "always", "jointly"))
            try:
                if kind == "never":
                    verdict = deciders.never_legal(context, first)
                elif kind == "always":
                    verdict = deciders.always_legal(context, first)
                else:
                    verdict = deciders.jointly_legal(context, first, second)
            except LimitError:
                continue
            if isinstance(verdict.certificate, Proof):
                yield str(seed), simulator, verdict.certificate


def says(simulator: Simulator, proof: Proof) -> bool:
    try:
        check_certificate(simulator, proof)
    except CertificateError:
        return False
    return True


def test_the_opposite_of_a_proved_claim_is_refused() -> None:
    rng, refused = random.Random(1), dict.fromkeys(("never", "always", "jointly"), 0)
    for _, simulator, proof in proofs(range(40)):
        turned = opposite(proof, rng)
        if turned is not None:
            has_stacks = bool(simulator.tops(proof.claim.context))
            assert says(simulator, turned) == (not has_stacks), (proof, turned)
            refused[turned.claim.kind] += has_stacks
    assert min(refused.values()) > 5


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(6))
def test_the_checker_says_what_the_proved_one_says(chunk: int, tmp_path: Path) -> None:
    rng = random.Random(chunk)
    text, known, expected = HEAD, set(), []
    for name, simulator, proof in proofs(range(40 * chunk, 40 * chunk + 40)):
        if name not in known:
            known.add(name)
            text += coq_tables(simulator, name)
        can_be = proof.nodes or opposite(proof, rng) is not None
        for one in [proof, *([damaged(proof, rng), damaged(proof, rng)] if can_be else [])]:
            text += coq_check(simulator, one, name)
            expected.append(says(simulator, one))
    found = verdicts(tmp_path, MODULES, text)
    assert len(found) == len(expected) > 30
    assert found == expected
    assert True in expected and False in expected
