"""The checker accepts what is right and refuses everything else; texts for witnesses."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from grammars import make_grammar, random_grammar
from naive_lr import unchecked_tables

from maskwright.analysis.errors import LimitError
from maskwright.analysis.grammar import Grammar, Layout, Rule, Terminal
from maskwright.analysis.legality import certificate as certificate_module
from maskwright.analysis.legality.certificate import (
    Certificate,
    CertificateError,
    Claim,
    LrState,
    Node,
    Pending,
    Proof,
    Simulator,
    Witness,
    check_certificate,
    spell,
)
from maskwright.analysis.legality.exact import ExactDeciders
from maskwright.analysis.legality.verdict import START

GRAMMAR = make_grammar("S : a S b | a b | c T\nT : T d | d")
A, B, C, D = (GRAMMAR.terminal_number[name] for name in "abcd")


@pytest.fixture(scope="module")
def deciders() -> ExactDeciders:
    return ExactDeciders(GRAMMAR)


@pytest.fixture(scope="module")
def proof(deciders: ExactDeciders) -> Proof:
    """After b there is no b d: every situation on the way to the bottom."""
    found = cast(Proof, deciders.never_legal((B,), (B, D)).certificate)
    check_certificate(deciders.tables, found)
    assert len(found.nodes) > 1
    return found


@pytest.fixture(scope="module")
def witness(deciders: ExactDeciders) -> Witness:
    found = cast(Witness, deciders.always_legal((B,), (B,)).certificate)
    check_certificate(deciders.tables, found)
    assert found.text == (A, B) and found.is_real
    return found


def test_members_of_other_types_are_refused(deciders: ExactDeciders, proof: Proof, witness: Witness) -> None:
    """Whoever reads a certificate from a file may get anything; it is an error that names it, and no TypeError."""
    node = next(node for node in proof.nodes if any(node.outcomes))
    pending = next(one for outcome in node.outcomes for one in outcome or ())

    def of_node(**parts: object) -> Proof:
        return replace(proof, nodes=(replace(node, **parts),))  # type: ignore[arg-type]

    def of_claim(**parts: object) -> Proof:
        return replace(proof, claim=replace(proof.claim, **parts))  # type: ignore[arg-type]

    def of_witness(**parts: object) -> Witness:
        return replace(witness, **parts)  # type: ignore[arg-type]

    for wrong, message in [
        ("a proof", "'a proof' is no certificate; expected a Proof or a Witness"),
        (replace(proof, claim="x"), "is no certificate; expected a Proof or a Witness of a Claim"),  # type: ignore[arg-type]
        (of_claim(context=("b",)), r"the context is \('b',\); expected a tuple of integers"),
        (of_claim(context=[1]), r"the context is \[1\]; expected a tuple of integers"),
        (of_claim(context=LrState("x")), "the LR state of the context is"),  # type: ignore[arg-type]
        (of_claim(sequences=[(1,)]), r"the claim's sequences are \[\(1,\)\]; expected a tuple"),
        (of_claim(sequences=(("d",),)), "a sequence of the claim is"),
        (of_claim(sequences=((1.5,),)), "a sequence of the claim is"),
        (replace(proof, nodes=[node]), "the proof.s nodes are .*; expected a tuple of them"),  # type: ignore[arg-type]
        (replace(proof, nodes=("node",)), "the proof has 'node'; expected a node with a tuple of outcomes"),  # type: ignore[arg-type]
        (of_node(cell="0"), r"the cell of a node is \('0',\); expected a tuple of integers"),
        (of_node(outcomes=None), "the proof has Node"),
        (of_node(outcomes=(5,)), "a node has the outcome 5; expected None or a tuple of Pending"),
        (of_node(outcomes=((5,),)), "a node has the outcome"),
        (of_node(outcomes=((replace(pending, pops="1"),),)), "a pending reduction is"),  # type: ignore[arg-type]
        (of_witness(stack=("0",)), "the stack is"),
        (of_witness(stack=None), "the stack is None"),
        (of_witness(prefix=("a",)), "the prefix is"),
        (of_witness(is_real="yes"), "is_real is 'yes'; expected True or False"),
    ]:
        with pytest.raises(CertificateError, match=message):
            check_certificate(deciders.tables, cast(Certificate, wrong))


def test_a_proof_with_any_node_missing_is_not_closed(deciders: ExactDeciders, proof: Proof) -> None:
    for i in range(len(proof.nodes)):
        with pytest.raises(CertificateError, match="the proof is not closed"):
            check_certificate(deciders.tables, replace(proof, nodes=proof.nodes[:i] + proof.nodes[i + 1 :]))


def test_a_proof_of_another_claim_is_refused(deciders: ExactDeciders, proof: Proof) -> None:
    for claim, message in [
        (Claim("never", (B,), ((B,),)), "the claim fails: Node"),
        (Claim("never", (A,), ((B, B),)), "not closed"),
        (Claim("never", (A,), ((B,),)), "the claim fails: the stack's top"),
        (Claim("always", (B,), ((B, D),)), "not closed"),
        (Claim("always", (B,), ((A,),)), "the claim fails"),
        (Claim("never", (), ((B,),)), "the claim fails"),
        (Claim("never", (B,), ()), "has 0 sequences; expected 1"),
        (Claim("jointly", (B,), ((A,),)), "has 1 sequences; expected 2"),
        (Claim("ever", (B,), ((A,),)), "of kind 'ever'"),  # type: ignore[arg-type]
        (Claim("never", (9,), ((A,),)), "no terminal 9"),
        (Claim("never", (B,), ((9,),)), "no terminal 9"),
        (Claim("never", LrState(77), ((A,),)), "no LR state 77"),
    ]:
        with pytest.raises(CertificateError, match=message):
            check_certificate(deciders.tables, replace(proof, claim=claim))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Node(99, ((),)), "is not a situation of the claim"),
        (Node(1, ((), ())), "is not a situation of the claim"),
        (Node(1, ((Pending(7, 0, 0),),)), "is not a situation of the claim"),
        (Node(1, ((Pending(0, -1, 0),),)), "is not a situation of the claim"),
        (Node(0, ((Pending(0, 1, 0),),)), "below the bottom"),
        (Node(1, ((Pending(0, 0, 5),),)), "no goto on nonterminal 5"),
        (Node(1, ((Pending(0, 3, 0),),)), "not closed"),
    ],
)
def test_a_node_that_is_no_situation(deciders: ExactDeciders, proof: Proof, node: Node, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        check_certificate(deciders.tables, replace(proof, nodes=(*proof.nodes, node)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: replace(w, stack=()), "does not begin at the bottom"),
        (lambda w: replace(w, stack=w.stack[1:]), "does not begin at the bottom"),
        (lambda w: replace(w, stack=w.stack[:-2] + w.stack[-1:]), "is not feasible"),
        (lambda w: replace(w, stack=(*w.stack, 99)), "is not feasible"),
        (lambda w: replace(w, stack=w.stack[:-1]), "does not belong to the context"),
        (lambda w: replace(w, prefix=(A, B, A)), "does not end in the context's terminal"),
        (lambda w: replace(w, prefix=(A, A, B)), "the claim is not refuted"),
        (lambda w: replace(w, prefix=(B,)), "the claim is not refuted"),
        (lambda w: replace(w, is_real=False), "the claim is refuted"),
        (lambda w: replace(w, claim=Claim("always", (B,), ((),))), "the claim holds on the stack"),
        (lambda w: replace(w, claim=Claim("jointly", (B,), ((B,), (A,)))), "the claim holds on the stack"),
        (lambda w: replace(w, claim=Claim("never", (B,), ((B,),))), "the claim holds on the stack"),
        (lambda w: replace(w, stack=(0,), claim=Claim("always", (START,), ((B,),))), "the start of the text"),
    ],
)
def test_a_witness_that_is_none(
    deciders: ExactDeciders, witness: Witness, change: Callable[[Witness], Witness], message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        check_certificate(deciders.tables, change(witness))


def test_a_refusal_is_the_same_in_every_order_of_nodes(deciders: ExactDeciders, proof: Proof) -> None:
    check_certificate(deciders.tables, replace(proof, nodes=proof.nodes[::-1]))
    check_certificate(Simulator(deciders.tables), replace(proof, nodes=proof.nodes * 2))


def test_certificates_of_random_questions_prove_only_their_claim() -> None:
    """A certificate put under the opposite claim is refused."""
    n_refused = 0
    for seed in range(60):
        deciders = ExactDeciders(random_grammar(seed))
        rng = random.Random(seed)
        simulator = Simulator(deciders.tables)
        terminals = range(deciders.grammar.n_terminals)
        for _ in range(10):
            context, sequence = (rng.choice(terminals),), tuple(rng.choices(terminals, k=rng.randint(1, 3)))
            for kind, verdict in [
                ("never", deciders.never_legal(context, sequence)),
                ("always", deciders.always_legal(context, sequence)),
            ]:
                if deciders.never_legal(context, ()).holds:
                    continue  # no stack: everything holds
                other = "always" if kind == "never" else "never"
                if verdict.holds:
                    wrong: Certificate = replace(verdict.certificate, claim=Claim(other, context, (sequence,)))
                    with pytest.raises(CertificateError):
                        check_certificate(simulator, wrong)
                else:
                    claim = Claim(other, context, (sequence,))
                    with pytest.raises(CertificateError):
                        check_certificate(simulator, replace(verdict.certificate, claim=claim))
                n_refused += 1
    assert n_refused > 500


def test_a_spurious_refutation_is_not_called_a_proof() -> None:
    """After a b a c every text goes on, on one of two stacks; either of them alone refuses one terminal."""
    grammar = make_grammar("S : X c d | Y c e\nX : a\nY : a")
    c, d = grammar.terminal_number["c"], grammar.terminal_number["d"]
    deciders = ExactDeciders(grammar)
    assert deciders.tables.n_conflicts
    verdict = deciders.always_legal((c,), (d,))
    assert not verdict.holds and not verdict.is_proof
    check_certificate(deciders.tables, verdict.certificate)
    with pytest.raises(CertificateError, match="the claim is not refuted"):
        check_certificate(deciders.tables, replace(cast(Witness, verdict.certificate), is_real=True))
    # a later stack may do where the first is no proof
    grammar = make_grammar("S : X c d | Y c e | b b Y c e\nX : a\nY : a")
    c, d = grammar.terminal_number["c"], grammar.terminal_number["d"]
    deciders = ExactDeciders(grammar)
    verdict = deciders.always_legal((c,), (d,))
    assert not verdict.holds and verdict.is_proof
    check_certificate(deciders.tables, verdict.certificate)


def test_limits_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_module, "STACK_LIMIT", 20)
    deciders = ExactDeciders(make_grammar("S : S S | a"))
    unpruned = unchecked_tables(make_grammar("S : S S | a"))
    proof = deciders.always_legal((0,), (0,) * 30).certificate
    with pytest.raises(LimitError, match="reading 30 terminals takes more than 20 steps of the parser"):
        check_certificate(deciders.tables, proof)
    with pytest.raises(LimitError, match="more than 20 parser stacks"):
        Simulator(unpruned).parse({(0,)}, (0,) * 30)
    claim = Claim("never", (0,), ((0,) * 30,))
    assert not Simulator(unpruned).is_real(claim, (0,), (0,))


def test_spelling() -> None:
    terminals = (
        Terminal("IF", "if", literal="if"), Terminal("NAME", "[a-z]+"), Terminal("COLON", ":", literal=":"),
        Terminal("NL", r"\n"), Terminal("IN", None), Terminal("DE", None), Terminal("OPEN", r"\(", literal="("),
        Terminal("CLOSE", r"\)", literal=")"), Terminal("PLUS", r"\+", literal="+"),
    )  # fmt: skip
    layout = Layout(newline=3, indent=4, dedent=5, brackets=((6, 7),))
    grammar = Grammar("g", terminals, ("start",), (Rule(9, (0,)),), 9, layout=layout)
    block = (0, 1, 2, 3, 4, 1, 6, 1, 7, 3, 0, 1, 8, 8, 1, 3, 5, 1)
    assert spell(grammar, block, (None, b"x")) == "if x:\n    x(x)\n    if x+ +x\nx"
    assert spell(grammar, (0, 1)) == "if <NAME>"
    assert spell(grammar, (1, 1), (None, b"\xff ")) == "\\xff \\xff "
    assert spell(grammar, ()) == ""
