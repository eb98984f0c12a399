"""LR tables written down for the programs of proofs/tables.v and proofs/viable.v."""

from __future__ import annotations

from collections.abc import Iterable

from maskwright.analysis.grammar.grammar import Grammar
from maskwright.maskstore.verify.trusted import ACCEPTS, Actions, Columns

HEAD = """
From Coq Require Import List Bool Arith.
Import ListNotations.
From Maskwright Require Import grammar tables.
Definition t_ (t : nat) : symbol nat nat := Ter t.
Definition n_ (n : nat) : symbol nat nat := Non n.
Definition S_ (s : nat) : @action nat nat := Shift s.
Definition R_ (a n : nat) : @action nat nat := Reduce a n.
Definition A_ : @action nat nat := Accept.
"""


def listed(items: Iterable[str]) -> str:
    return "[" + "; ".join(items) + "]"


def coq_symbols(grammar: Grammar, symbols: Iterable[int]) -> str:
    n = grammar.n_terminals
    return listed(f"n_ {s - n}" if s >= n else f"t_ {s}" for s in symbols)


def coq_tables(grammar: Grammar, parser: Actions, lexer: Columns, checker: str, side: str = "") -> str:
    """The beginning of a command: a checker with the rules, the tables as functions, and the states. side : the column of a goto."""

    def action(a: int) -> str:
        return f"R_ {parser.lhs[-1 - a]} {parser.length[-1 - a]}" if a < 0 else "A_" if a == ACCEPTS else f"S_ {a - 1}"

    rows = [
        listed(
            listed(map(action, parser.acts[state * parser.n_columns + column])) for column in range(parser.n_columns)
        )
        for state in range(parser.n_states)
    ]
    n = grammar.n_terminals
    rules = [f"({rule.lhs - n}, {coq_symbols(grammar, rule.rhs)})" for rule in grammar.rules]
    goto = [listed("None" if q < 0 else f"Some {q}" for q in row) for row in parser.goto]
    columns = [str(column) if column >= 0 else str(parser.n_columns) for column in lexer.column]
    return (
        f"Eval vm_compute in (let rows := {listed(rows)} in let gotos := {listed(goto)} in\n"
        f"  let columns := {listed(columns)} in {checker} {listed(rules)} {grammar.start - n}\n"
        f"  (fun q o => nth (match o with None => {parser.n_columns - 1} | Some t => nth t columns {parser.n_columns} end)\n"
        f"    (nth q rows []) []) (fun q a => nth a (nth q gotos []) None) 0 {side} (seq 0 {parser.n_states})\n"
    )
