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
from maskwright.analysis.composition.tag_rules import TagRules
from maskwright.analysis.loading.names import DIRECTIVE, grammar_text
from maskwright.analysis.marks import MARK, mark
from maskwright.analysis.nesting import on_own_stack
from maskwright.analysis.schema.load import load_schema
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
    where = file or found.name
    findings = []
    for name, line in unused if "unused-part" not in wanted else ():
        message, remedy = f"no rule uses {name}, which stands for a part", f"use {name} in a rule, or remove the line"
        findings.append(Finding("unused-part", "error", where, line, 1, message, NO_STORE, remedy, part=name))
    if found.kind == "grammar":
        report = lint_grammar(found, given, file=file, allow=wanted)
        return replace(report, findings=(*findings, *report.findings))
    text = grammar_text(source)
    places = {one[2]: text.count("\n", 0, one.start()) + 1 for one in DIRECTIVE.finditer(text)}
    return _report(found, given, where, wanted, places, findings)


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
        terminals = list(host.terminals)
        for number, one in enumerate(terminals):
            if one.name in names:
                terminals[number] = replace(one, line=places.get(one.name, 0), column=int(one.name in places))
        host = replace(host, terminals=tuple(terminals))
        report = lint_grammar(host, _with_bytes_of_marks(vocabulary), file=file, allow=allow)
    else:
        # lint finds nothing in the rules of a structural tag
        host = load_schema(True) if isinstance(host, TagRules) else host
        report = lint_schema(host, None, file=file, allow=allow)
    named = _namer(composition.parts)
    findings = [*before, *(_renamed(one, named) for one in report.findings)]
    skipped, n_allowed = list(map(named, report.skipped)), report.n_allowed
    for part in composition.parts:
        inner: Any = part.inner
        given = vocabulary
        if isinstance(inner, InJsonString):
            # any token may spell a character by an escape: its own bytes need no token
            inner, given = inner.inner, None
        lint = _LINTS.get(getattr(inner, "kind", ""))
        of_part = None if lint is None else lint(inner, given, allow=allow)
        if of_part is not None:
            names_of = ((found, f"{part.name}/{found.part}" if found.part else part.name) for found in of_part.findings)
            findings += [replace(found, part=name) for found, name in names_of]
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


_LINTS: dict[str, Callable[..., Report]] = {
    "composition": lambda inner, given, allow: _report(inner, given, inner.name, allow, {}, []),
    "grammar": lint_grammar,
    "schema": lint_schema,
}
"""By the kind of a part, what finds what is wrong with it; a pattern or a token has no findings."""


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
    words = ("message", "decoding", "remedy", "example")
    renamed: dict[str, Any] = {word: named(getattr(finding, word)) for word in words}
    return replace(finding, **renamed)
