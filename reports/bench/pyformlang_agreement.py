"""never_legal beside pyformlang's general intersection: random queries of python.lark and of random small grammars.

python reports/bench/pyformlang_agreement.py [--python 200] [--small 2000]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from common import write_record
from rich.progress import track

import maskwright as mw
from maskwright.analysis.grammar.normalise import productive_symbols
from maskwright.analysis.legality.bar_hillel import never_legal_pyformlang
from maskwright.analysis.legality.deciders import Deciders

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "naive"))
from grammars import random_grammar


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=int, default=200)
    parser.add_argument("--small", type=int, default=2000)
    arguments = parser.parse_args()
    generator = random.Random(0)
    seconds = {"maskwright": 0.0, "pyformlang": 0.0}
    agree = {"python.lark": 0, "small": 0}
    never = {"python.lark": 0, "small": 0}

    def compare(
        grammar: mw.Grammar, deciders: Deciders, context: tuple[int, ...], sequence: tuple[int, ...], kind: str
    ) -> None:
        begin = time.perf_counter()
        ours = deciders.is_never_legal(context, sequence)
        middle = time.perf_counter()
        theirs = never_legal_pyformlang(grammar, context, sequence)
        if kind == "python.lark":
            seconds["maskwright"] += middle - begin
            seconds["pyformlang"] += time.perf_counter() - middle
        if ours != theirs:
            sys.exit(f"disagreement on {grammar}: context {context}, sequence {sequence}: {ours} against {theirs}")
        agree[kind] += 1
        never[kind] += ours

    python = mw.load_grammar("lark:python", soft=())
    deciders = Deciders(python)
    live = deciders.live_terminals
    follow = mw.build_follow_graph(deciders)
    for _ in track(range(arguments.python), description="python.lark"):
        # half of them paths of the follow graph, where the answer is not plain
        path = [generator.choice(live)]
        while len(path) < generator.randint(2, 5):
            successors = sorted(follow.successors(path[-1]))
            path.append(
                generator.choice(successors) if successors and generator.random() < 0.8 else generator.choice(live)
            )
        compare(python, deciders, (path[0],), tuple(path[1:]) or (generator.choice(live),), "python.lark")
    seed = 0
    with_progress = track(range(arguments.small), description="small grammars")
    for _ in with_progress:
        while True:
            grammar = random_grammar(seed)
            seed += 1
            if grammar.start in productive_symbols(grammar):
                break
        terminals = range(grammar.n_terminals)
        context = (generator.choice(terminals),)
        sequence = tuple(generator.choice(terminals) for _ in range(generator.randint(1, 4)))
        compare(grammar, Deciders(grammar), context, sequence, "small")
    facts = {
        "queries_that_agree": agree,
        "never_among_them": never,
        "milliseconds_a_query_on_python.lark": {
            k: round(1000 * v / max(1, arguments.python), 2) for k, v in seconds.items()
        },
    }
    print(facts)
    write_record("pyformlang_agreement", "python reports/bench/pyformlang_agreement.py", facts)


if __name__ == "__main__":
    main()
