"""What the exact LR deciders prove beyond the approximations, and how long it takes: all pairs, and longer sequences, of two grammars.

python reports/bench/exact_deciders.py [--longer 20000] [--joint 20000]
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from common import write_record

import maskwright as mw
from maskwright.analysis.legality.certificate import Claim, Kind, Proof, Simulator, check_certificate
from maskwright.analysis.legality.deciders import ALWAYS, NEVER, Query
from maskwright.analysis.legality.exact import ExactDeciders
from maskwright.analysis.legality.judge import Judge
from maskwright.analysis.legality.verdict import START
from maskwright.analysis.loading.lark_loader import parse_grammar

JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
array: "[" [value ("," value)*] "]"
pair: STRING ":" value
STRING: /"([^"\\\n]|\\.)*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\n\r]+/
"""

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def timed(seconds: dict[str, float], what: str, compute: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    result = compute()
    seconds[what] = round(time.perf_counter() - begin, 3)
    return result


def judge_exactly(
    exact: ExactDeciders, kind: Kind, cases: Sequence[tuple[tuple[int, ...], ...]]
) -> npt.NDArray[np.bool_]:
    """Whether the claim of each case holds: a context and one sequence, or two."""
    return np.array([exact.holds(Claim(kind, context, tuple(words))) for context, *words in cases], np.bool_)


def longer_sequences(judge: Judge, n: int) -> list[Pair]:
    """Paths of the follow graph of 3 to 7 terminals, the first of them the context, each once."""
    generator = random.Random(0)
    following = [np.flatnonzero(row).tolist() for row in judge.follow]
    live = judge.always_deciders.live_terminals
    found: dict[Pair, None] = {}
    for _ in range(20 * n):
        path = [generator.choice(live)]
        length = generator.randint(3, 7)
        while len(path) < length and following[path[-1]]:
            path.append(generator.choice(following[path[-1]]))
        if len(path) >= 3:
            found[(path[0],), tuple(path[1:])] = None
        if len(found) == n:
            break
    return list(found)


def compare(exact: ExactDeciders, judges: dict[str, Judge], cases: list[Pair]) -> dict[str, Any]:
    """Counts of the verdicts of both; "some" = the sequence is legal somewhere."""
    seconds: dict[str, float] = {}
    queries = [Query(context[0], sequence) for context, sequence in cases]
    facts: dict[str, Any] = {"cases": len(cases)}
    never: npt.NDArray[np.bool_] = timed(seconds, "exact never", lambda: judge_exactly(exact, "never", cases))
    always: npt.NDArray[np.bool_] = timed(seconds, "exact always", lambda: judge_exactly(exact, "always", cases))
    verdicts: dict[str, npt.NDArray[np.int8]] = {}
    for rules, judge in judges.items():
        verdicts[rules] = timed(
            seconds, f"approximation, {rules} rules", lambda j=judge: j.always_deciders.judge(queries)
        )
    for approximate in verdicts.values():
        assert ((approximate == NEVER) == never).all(), "the deciders of never_legal disagree"
        assert always[approximate == ALWAYS].all(), "a proof of always_legal is refuted"
    facts["never legal (both prove it)"] = int(never.sum())
    facts["legal somewhere"] = int((~never).sum())
    for rules, approximate in verdicts.items():
        facts[f"always legal, proved by the approximation on {rules} rules"] = int((approximate == ALWAYS).sum())
    facts["always legal, proved by the exact decider"] = int((always & ~never).sum())
    # what is neither never nor always legal: a witness proves it, unless conflicts stand in its way
    open_cases = [case for case, n, a in zip(cases, never, always, strict=True) if not n and not a]
    sample = random.Random(1).sample(open_cases, min(2000, len(open_cases)))
    found = timed(seconds, f"{len(sample)} witnesses", lambda: [exact.always_legal(*case) for case in sample])
    facts["legal somewhere, not always"] = len(open_cases)
    facts["of a sample of these"] = {
        "asked": len(sample),
        "proved by a witness": sum(v.is_proof for v in found),
        "unknown": sum(not v.is_proof for v in found),
    }
    beyond = [
        case for case, a, v in zip(cases, always & ~never, verdicts["normalised"], strict=True) if a and v != ALWAYS
    ]
    name = exact.grammar.display_name
    facts["examples of what only the exact decider proves always legal (context / sequence)"] = [
        f"{'the start' if context == (START,) else name(context[0])} / {' '.join(map(name, sequence))}"
        for context, sequence in random.Random(4).sample(beyond, min(8, len(beyond)))
    ]
    facts["seconds"] = seconds
    facts["exact microseconds a case"] = {
        kind: round(1e6 * seconds[f"exact {kind}"] / max(1, len(cases)), 1) for kind in ("never", "always")
    }
    return facts


def compare_joint(exact: ExactDeciders, judge: Judge, cases: list[Pair], n: int) -> dict[str, Any]:
    """Pairs of sequences after one terminal, both legal somewhere and not always."""
    open_ = ~judge_exactly(exact, "never", cases) & ~judge_exactly(exact, "always", cases)
    of_context: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for (context, sequence), is_open in zip(cases, open_, strict=True):
        if is_open and context != (START,):
            of_context.setdefault(context, []).append(sequence)
    questions = [
        (context, first, second)
        for context, sequences in of_context.items()
        for i, second in enumerate(sequences)
        for first in sequences[:i]
    ]
    questions = random.Random(2).sample(questions, min(n, len(questions)))
    seconds: dict[str, float] = {}
    holds = timed(seconds, "exact", lambda: judge_exactly(exact, "jointly", questions))
    prover = judge.always_deciders.prover()
    approximate = timed(
        seconds,
        "approximation",
        lambda: np.array([prover.is_jointly_legal(c[0], *words) for c, *words in questions], np.bool_),
    )
    assert holds[approximate].all(), "a proof of jointly_legal is refuted"
    refuted = [question for question, h in zip(questions, holds, strict=True) if not h][:2000]
    found = timed(
        seconds, f"{len(refuted)} witnesses", lambda: [exact.jointly_legal(c, *words) for c, *words in refuted]
    )
    return {
        "cases": len(questions),
        "proved by the approximation on normalised rules": int(approximate.sum()),
        "proved by the exact decider": int(holds.sum()),
        "of a sample of the others": {
            "asked": len(refuted),
            "refuted by a witness": sum(v.is_proof for v in found),
            "unknown": sum(not v.is_proof for v in found),
        },
        "seconds": seconds,
        "exact microseconds a case": round(1e6 * seconds["exact"] / max(1, len(questions)), 1),
    }


def check_some(exact: ExactDeciders, cases: list[Pair], n: int) -> dict[str, Any]:
    """The independent checker on certificates of a sample."""
    simulator = Simulator(exact.tables)
    sample = random.Random(3).sample(cases, min(n, len(cases)))
    certificates = [f(*case).certificate for case in sample for f in (exact.never_legal, exact.always_legal)]
    begin = time.perf_counter()
    for certificate in certificates:
        check_certificate(simulator, certificate)
    sizes = sorted(len(c.nodes) for c in certificates if isinstance(c, Proof))
    return {
        "certificates": len(certificates),
        "proofs": len(sizes),
        "nodes of a proof, median and largest": [sizes[len(sizes) // 2], sizes[-1]] if sizes else [],
        "seconds": round(time.perf_counter() - begin, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longer", type=int, default=20_000)
    parser.add_argument("--joint", type=int, default=20_000)
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    for name in ("lark:python", "json"):
        grammar = parse_grammar(JSON, name="json.lark") if name == "json" else mw.load_grammar(name, soft=())
        seconds: dict[str, float] = {}
        exact = timed(seconds, "tables", lambda g=grammar: ExactDeciders(g))
        judges = {"lark": Judge(grammar, "lark"), "normalised": Judge(grammar, "normalised")}
        lefts = (START, *judges["lark"].always_deciders.live_terminals)
        pairs: list[Pair] = [((left,), (right,)) for left in lefts for right in lefts[1:]]
        longer = longer_sequences(judges["lark"], arguments.longer)
        found[name] = {
            "lr_states": int(exact.tables.action.shape[0]),
            "conflicts": exact.tables.n_conflicts,
            "seconds_to_build_tables": seconds["tables"],
            "pairs": compare(exact, judges, pairs),
            "longer_sequences": compare(exact, judges, longer),
            "jointly_legal_pairs": compare_joint(exact, judges["normalised"], pairs, arguments.joint),
            "jointly_legal_longer": compare_joint(exact, judges["normalised"], longer, arguments.joint),
            "checked": check_some(exact, [*pairs, *longer], 500),
        }
        print(name, found[name])
    write_record("exact_deciders", "python reports/bench/exact_deciders.py", found)


if __name__ == "__main__":
    main()
