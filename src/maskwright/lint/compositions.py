"""What is wrong with a composition: the findings of its host and of each of its parts.

In: a Lark file that names parts, or a composition. Out: a report, in which findings of a part name
it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from maskwright.analysis.composition.compose import Composition, InJsonString, Part, read_used_parts
from maskwright.analysis.loading.names import DIRECTIVE, grammar_text
from maskwright.analysis.marks import MARK, mark
from maskwright.analysis.nesting import on_own_stack
from maskwright.lint.finding import NO_STORE, Finding, Report, codes_of
from maskwright.lint.run import lint_grammar
from maskwright.lint.schemas import lint_schema
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary


@on_own_stack
def lint_composition(
    source: Composition | str | os.PathLike[str],
    vocabulary: VocabularySource | None = None,
    *,
    file: str | None = None,
    allow: Iterable[str] = (),
) -> Report:
    """Report what is wrong with a host, and with each part that stands in it.

    source : a composition, or the path or text of one, as `read_composition` takes it. Of a file,
        parts that no rule uses are findings too.
    vocabulary : what `load_vocabulary` accepts.
    file : what findings call the host's file; by default its name.
    allow : codes of findings to leave out.

    Returns a `Report`: the findings of the host, then those of the parts in their order, whose
        `Finding.part` names the part, `OUTER/INNER` for a part of a part. A pattern and a special
        token have no findings.
    Raises: UnknownNameError if `allow` has an unknown code; and as `read_composition`,
        `lint_grammar` and `lint_schema`.
    """
    wanted = codes_of(allow)
    given = None if vocabulary is None else as_vocabulary(vocabulary)
    if isinstance(source, Composition):
        return _report(source, given, file or source.name, wanted, {}, [])
    found, unused = read_used_parts(source)
    findings = [
        Finding(
            "unused-part",
            "error",
            file or found.name,
            line,
            1,
            f"no rule uses {name}, which stands for a part",
            NO_STORE,
            f"use {name} in a rule, or remove the line",
            part=name,
        )
        for name, line in unused
        if "unused-part" not in wanted
    ]
    if found.kind == "grammar":
        report = lint_grammar(found, given, file=file, allow=wanted)
        return replace(report, findings=(*findings, *report.findings))
    text = grammar_text(source)
    places = {one[2]: text.count("\n", 0, one.start()) + 1 for one in DIRECTIVE.finditer(text)}
    return _report(found, given, file or found.name, wanted, places, findings)


def _report(
    composition: Composition,
    vocabulary: Vocabulary | None,
    file: str,
    allow: frozenset[str],
    places: dict[str, int],
    before: list[Finding],
) -> Report:
    """The findings of host and parts.

    places : the lines of the parts in the host's text, as far as they are known.
    before : findings that are known already.
    """
    host, names = composition.host, [part.name for part in composition.parts]
    if host.kind == "grammar":
        at = [
            replace(one, line=places.get(one.name, 0), column=1 if one.name in places else 0)
            if one.name in names
            else one
            for one in host.terminals
        ]
        report = lint_grammar(
            replace(host, terminals=tuple(at)), _with_bytes_of_marks(vocabulary), file=file, allow=allow
        )
    else:
        report = lint_schema(host, None, file=file, allow=allow)
    named = _namer(composition.parts)
    findings = [*before, *(_renamed(one, named) for one in report.findings)]
    skipped, n_allowed = list(map(named, report.skipped)), report.n_allowed
    for part in composition.parts:
        of_part = _of_part(part, vocabulary, allow)
        if of_part is not None:
            findings += [
                replace(one, part=f"{part.name}/{one.part}" if one.part else part.name) for one in of_part.findings
            ]
            skipped += [f"part {part.name}: {why}" for why in of_part.skipped]
            n_allowed += of_part.n_allowed
    return replace(
        report,
        grammar=composition.name,
        tokenizer=None if vocabulary is None else vocabulary.name,
        findings=tuple(dict.fromkeys(findings)),
        skipped=tuple(dict.fromkeys(skipped)),
        n_allowed=n_allowed,
    )


def _of_part(part: Part, vocabulary: Vocabulary | None, allow: frozenset[str]) -> Report | None:
    """The findings of a part alone; None for a pattern or a token, which have none."""
    inner: Any = part.inner.inner if isinstance(part.inner, InJsonString) else part.inner
    # inside a string, any token may spell a character by an escape: its own bytes need no token
    given = None if isinstance(part.inner, InJsonString) else vocabulary
    lint = _LINTS.get(getattr(inner, "kind", ""))
    return None if lint is None else lint(inner, given, allow=allow)


_LINTS: dict[str, Callable[..., Report]] = {
    "composition": lambda inner, given, allow: _report(inner, given, inner.name, allow, {}, []),
    "grammar": lint_grammar,
    "schema": lint_schema,
}
"""By the kind of what is inside, what finds what is wrong with it."""


def _with_bytes_of_marks(vocabulary: Vocabulary | None) -> Vocabulary | None:
    """The vocabulary with tokens for the marks, so that no part is taken for one without bytes."""
    if vocabulary is None:
        return None
    tokens = (*vocabulary.tokens, *(bytes((byte,)) for byte in (MARK, *range(0x40, 0x80))))
    return Vocabulary(vocabulary.name, tokens, dict(vocabulary.special), vocabulary.eos)


def _namer(parts: tuple[Part, ...]) -> Callable[[str], str]:
    """A function that writes `<NAME>` in a text instead of the mark of a part.

    A mark may be there as such, or with its first byte escaped once or more.
    """
    names = {mark(number)[1:].decode(): part.name for number, part in enumerate(parts)}
    shown = re.compile(r"(?:\\+xf8|\udcf8|\\+udcf8)([@-\x7f]{2})")
    return lambda text: shown.sub(lambda found: f"<{names.get(found[1], found[1])}>", text)


def _renamed(finding: Finding, named: Callable[[str], str]) -> Finding:
    words: dict[str, Any] = {
        word: named(getattr(finding, word)) for word in ("message", "decoding", "remedy", "example")
    }
    return replace(finding, **words)
