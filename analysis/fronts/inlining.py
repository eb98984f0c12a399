"""Rules whose texts are a regular language, written into the rules that use them.

A rule that does not lead back to itself is replaced by its body wherever it is used, as long as
that stays small. A rule that leads back to itself only at the end of its alternatives, or only at
their beginning, is a repetition: ``A : x A | y`` has the texts ``x* y`` (Arden's lemma), and
``A : A x | y`` those of ``y x*``. So rules such as ``chars ::= [a-z] chars | "."`` become regular
too. The languages of all rules stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from maskwright.analysis.fronts.expressions import NEVER, Expr, choice, non_empty, repetition, sequence

MAX_SIZE = 3_000
"""The most positions of a body that is written into other rules."""
MAX_DEPTH = 60
"""The deepest nesting of such a body."""


def inlined(rules: Mapping[str, Expr], root: str) -> tuple[dict[str, Expr], dict[str, str]]:
    """The rules that are left, `root` first: each is recursive, or too large to be written out.

    Also returns the names of regular rules by their patterns, without the empty text.

    rules : all references in them are defined.

    Cost: O(size of the rules * MAX_SIZE) at worst.
    """
    bodies = {name: _without_linear(name, body) for name, body in rules.items()}
    order = _reachable_bottom_up(bodies, root)
    recursive = _recursive(bodies, order)
    found: dict[str, Expr] = {}
    kept: list[str] = []
    for name in order:
        found[name] = _substituted(bodies[name], found, recursive, {})
        small = found[name].size <= MAX_SIZE and found[name].depth <= MAX_DEPTH
        if name in recursive or name == root or not small:
            recursive.add(name)
            kept.append(name)
    names: dict[str, str] = {}
    for name in order:
        if found[name].is_regular:
            names.setdefault(str(non_empty(found[name]).pattern), name)
    return {name: found[name] for name in reversed(kept)}, names


def _without_linear(name: str, body: Expr) -> Expr:
    """The body of a rule, with recursion of itself at one end of its alternatives as repetition."""
    options = [_parts(option) for option in (body.parts if body.kind == "choice" else (body,))]
    is_use = [any(_mentions(part, name) for part in parts) for parts in options]
    uses = [parts for parts, uses_it in zip(options, is_use, strict=True) if uses_it]
    for inner, own in ((slice(1, None), 0), (slice(None, -1), -1)):
        if not uses or any(
            not (parts[own].kind == "reference" and parts[own].name == name)
            or any(_mentions(part, name) for part in parts[inner])
            for parts in uses
        ):
            continue
        others = choice(sequence(parts) for parts, uses_it in zip(options, is_use, strict=True) if not uses_it)
        repeated = repetition(choice(sequence(parts[inner]) for parts in uses if len(parts) > 1), 0, None)
        if others.is_never:
            return NEVER
        return sequence((others, repeated) if own == 0 else (repeated, others))
    return body


def _parts(option: Expr) -> tuple[Expr, ...]:
    return option.parts if option.kind == "sequence" else (option,)


def _mentions(expr: Expr, name: str) -> bool:
    if expr.is_regular:
        return False
    return expr.name == name if expr.kind == "reference" else any(_mentions(part, name) for part in expr.parts)


def references(expr: Expr) -> list[Expr]:
    """The references in an expression, in order."""
    if expr.is_regular:
        return []
    if expr.kind == "reference":
        return [expr]
    return [found for part in expr.parts for found in references(part)]


def _reachable_bottom_up(bodies: Mapping[str, Expr], root: str) -> list[str]:
    """The rules that root leads to; each behind those that it uses, but for recursion."""
    order: list[str] = []
    seen = {root}
    path = [(root, iter(references(bodies[root])))]
    while path:
        name, uses = path[-1]
        use = next(uses, None)
        if use is None:
            path.pop()
            order.append(name)
        elif use.name not in seen:
            seen.add(use.name)
            path.append((use.name, iter(references(bodies[use.name]))))
    return order


def _recursive(bodies: Mapping[str, Expr], order: list[str]) -> set[str]:
    """The rules that an earlier rule of the order uses, or that use themselves.

    Every cycle of rules has such a rule, and the uses of all others come behind them.
    """
    at = {name: i for i, name in enumerate(order)}
    return {use.name for name in order for use in references(bodies[name]) if at[use.name] >= at[name]}


def _substituted(expr: Expr, found: Mapping[str, Expr], kept: set[str], done: dict[int, Expr]) -> Expr:
    """The expression with the bodies of rules that are not kept, as far as they are known."""
    if expr.is_regular:
        return expr
    if id(expr) in done:
        return done[id(expr)]
    if expr.kind == "reference":
        new = expr if expr.name in kept or expr.name not in found else found[expr.name]
    else:
        parts = [_substituted(part, found, kept, done) for part in expr.parts]
        if all(new is old for new, old in zip(parts, expr.parts, strict=True)):
            new = expr
        elif expr.kind == "sequence":
            new = sequence(parts)
        elif expr.kind == "choice":
            new = choice(parts)
        else:
            new = repetition(parts[0], expr.least, expr.most)
    done[id(expr)] = new
    return new
