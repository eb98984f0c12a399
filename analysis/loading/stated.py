"""What option lines state of single terminals: that they are refused, verbatim, or of some length.

In: the names of the lines (`options`), and a grammar. Out: the grammar in which they hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lark.load_grammar import Grammar as LarkGrammar

from maskwright.analysis.errors import GrammarError, LimitError, TerminalError
from maskwright.analysis.grammar.grammar import Grammar, Lengths
from maskwright.analysis.grammar.lark_files import GrammarFiles, suggestion


def refused_terminals(names: Sequence[str], builder: LarkGrammar, files: GrammarFiles) -> Sequence[str]:
    """The terminals of option `refused`, which are kept though no rule uses them."""
    defined = [str(name) for name, (tree, _) in builder.term_defs if tree is not None]
    for name in names:
        if name not in defined:
            raise files.error(
                f"option refused names {name}, which is not a terminal of the grammar" + suggestion(name, defined), name
            )
    return names


def check_refused(grammar: Grammar, names: Sequence[str], files: GrammarFiles) -> None:
    """Raises GrammarError if something takes a terminal of option `refused`."""
    for name in names:
        if any(grammar.terminal_number[name] in used for used in (grammar.ignored, *(r.rhs for r in grammar.rules))):
            raise files.error(f"option refused names {name}, but a rule or %ignore takes it", name)


def with_verbatim(grammar: Grammar, names: Sequence[str], files: GrammarFiles) -> Grammar:
    """The grammar with its verbatim terminals. Raises GrammarError for an unknown name."""
    number = grammar.terminal_number
    for name in names:
        if name not in number:
            what = f"option verbatim names {name}, which is not a terminal that the rules use"
            raise files.error(what + suggestion(name, list(number)), name)
    return replace(grammar, verbatim=frozenset(number[name] for name in names)) if names else grammar


def check_lengths(
    stated: Sequence[tuple[str, Lengths]], grammar: Grammar, builder: LarkGrammar, files: GrammarFiles
) -> None:
    """Raises GrammarError for a length of what is no terminal.

    A terminal that is defined may have one though no rule needs it: another start symbol does, or a
    restriction.
    """
    known = list(dict.fromkeys([*grammar.terminal_number, *(str(name) for name, _ in builder.term_defs)]))
    for name, _ in stated:
        if name not in known:
            what = f"option length names {name}, which is not a terminal of the grammar"
            raise _at_line(what + suggestion(name, known), name, files)


def narrowed(
    grammar: Grammar, restrict: Sequence[str], stated: Sequence[tuple[str, Lengths]], files: GrammarFiles
) -> Grammar:
    """The grammar under the caller's restrictions and with the lengths that the file states.

    A restriction of a terminal's length overrides the file's. A terminal that restrictions took
    away needs none.

    Raises: as `restrict` and as `bound_length`, at the place of the line where the length cannot
    be; GrammarError if a convention splits a terminal of which the file states the length.
    """
    if not restrict and not stated:
        return grammar
    # PERF: most grammars are not narrowed
    from maskwright.analysis.restrict.restrict import bound_length, bounded_names
    from maskwright.analysis.restrict.restrict import restrict as restricted

    found = restricted(grammar, restrict) if restrict else grammar
    overridden = bounded_names(restrict)
    for name, lengths in stated:
        if name in overridden:
            continue
        if name in found.terminal_number:
            try:
                found = bound_length(found, name, lengths)
            except TerminalError:
                raise
            except (GrammarError, LimitError) as error:
                placed = _at_line(str(error).removeprefix(f"grammar {grammar.name}: "), name, files)
                raise (LimitError(str(placed)) if isinstance(error, LimitError) else placed) from error
        elif _is_split(name, grammar, found):
            what = f"option length bounds {name}, whose words a convention tells apart"
            remedy = "bound them in the convention, as in [a-z]{1,20}, and take the line away"
            raise _at_line(f"{what}; {remedy}", name, files)
    return found


def _at_line(message: str, name: str, files: GrammarFiles) -> GrammarError:
    """An error at the line that states the length of a terminal."""
    return files.error_at(message, rf"(?m)^[ \t]*//[ \t]*maskwright:[ \t]*length[ \t]+{re.escape(name)}(?!\w)")


def _is_split(name: str, before: Grammar, after: Grammar) -> bool:
    """Whether a terminal that is gone has parts in its stead, as `conventions` names them."""
    if name not in before.terminal_number:
        return False
    terminal = before.terminals[before.terminal_number[name]]
    return any(
        part.name.startswith(f"{name}__")
        and part.name not in before.terminal_number
        and (part.line, part.column) == (terminal.line, terminal.column)
        for part in after.terminals
    )
