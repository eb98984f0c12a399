"""Builds the store of a grammar and a vocabulary; refuses a grammar that cannot finish any text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_args, overload

from maskwright.analysis.arguments import as_boolean, as_integer, need_choice, need_progress, refuse_argument
from maskwright.analysis.errors import DeadEndError, GrammarError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.normalise import Rules
from maskwright.analysis.loading.sources import GrammarSource
from maskwright.analysis.nesting import on_own_stack
from maskwright.decoding.dead import refuse_dead, refuse_dead_entries
from maskwright.maskstore.table.build import build_engine_table, prepare_engine_table
from maskwright.maskstore.table.compiled import Progress
from maskwright.maskstore.vocabulary import Vocabulary, VocabularySource, as_vocabulary
from maskwright.stores.first_call import say_what_is_compiled
from maskwright.stores.sources import as_constraint, refuse_options, store_of
from maskwright.stores.store import Store

if TYPE_CHECKING:
    from maskwright.analysis.composition import Composition
    from maskwright.stores.closing import Keep
    from maskwright.stores.composed_store import ComposedStore
    from maskwright.stores.entry_store import EntryStore
    from maskwright.stores.schema_store import SchemaStore
    from maskwright.stores.sources import SchemaSource
    from maskwright.stores.store import AnyStore

_CONTEXTS = "1, or 2 where entries are streamlined"

MOST_SAID = 3
"""The most findings of lint that the refusal of a grammar shows."""


class BuildOptions(TypedDict, total=False):
    """The options of `build_store`."""

    streamlined: bool
    rules: Rules
    context: int
    progress: Progress | None
    allow_dead: bool
    lazy: bool


@overload
def build_store(
    grammar: GrammarSource, vocabulary: VocabularySource, **options: Unpack[BuildOptions]
) -> Store | EntryStore: ...


@overload
def build_store(
    grammar: SchemaSource, vocabulary: VocabularySource, **options: Unpack[BuildOptions]
) -> SchemaStore: ...


@overload
def build_store(
    grammar: Composition, vocabulary: VocabularySource, **options: Unpack[BuildOptions]
) -> ComposedStore: ...


@on_own_stack
def build_store(
    grammar: GrammarSource | SchemaSource | Composition,
    vocabulary: VocabularySource,
    *,
    streamlined: bool = True,
    rules: Rules = "normalised",
    context: int = 1,
    progress: Progress | None = None,
    allow_dead: bool = False,
    lazy: bool = False,
) -> AnyStore | ComposedStore:
    """The store of a grammar, a JSON schema or a pattern, and a vocabulary.

    A grammar with lexing "longest" or "contextual" gives a `Store`, with "nfa" an `EntryStore`. A
    schema or a pattern gives a `SchemaStore`, at once: `progress`, `allow_dead` and `lazy` make no
    difference.

    grammar, vocabulary : objects, or what `load_grammar` and `load_vocabulary` accept: names,
        paths, a text, a tokenizer, a list of bytes. Instead of a grammar: what `load_schema`,
        `load_regex`, `load_choice` or `compose` returns; a dict or JSON text, which is a JSON
        schema; a list of answers; a pydantic model.
    streamlined : False keeps every entry, for comparison and tests. Lexing "nfa" only.
    rules : the rules on which always-verdicts are judged, see `Judge`. Lexing "nfa" only.
    context : 2 keeps entries by the last two terminals instead of one: fewer for a mask, in a
        larger store. Lexing "nfa" only.
    progress : called while the store is built, see `Progress`.
    allow_dead : True also builds a store under which no text can be finished, so that one can look
        at it. Under lexing "nfa" only an empty first mask is recognised.
    lazy : the store is returned in a part of the time (docs/serving.md), and closed in a thread.
        Its masks are the same from the beginning, but take up to a millisecond until it is closed,
        which `Store.is_closed` says and `Store.close` waits for. Not for lexing "nfa".

    Raises: DeadEndError if the grammar cannot finish any text with the vocabulary; it shows what
    lint says. TerminalError if a terminal cannot be compiled. LimitError if a construction grows
    past its limit. VocabularyError if the vocabulary has no text. GrammarError if the lexing does
    not have one of the options; also if conflicts are decided by a shift and no text can be
    finished as a result, whatever `allow_dead` says. SchemaError for a dict or a type, as
    `load_schema`.
    Cost: from milliseconds to some CPU seconds (docs/measurements.md, building stores).
    """
    streamlined, allow_dead = as_boolean("streamlined", streamlined), as_boolean("allow_dead", allow_dead)
    lazy = as_boolean("lazy", lazy)
    need_choice("rules", rules, get_args(Rules))
    if as_integer("context", context, expected=_CONTEXTS) not in (1, 2)[: 1 + streamlined]:
        refuse_argument("context", context, _CONTEXTS)
    need_progress(progress)
    found, vocabulary = as_constraint(grammar), as_vocabulary(vocabulary)
    say_what_is_compiled(found.kind)
    refuse_options(found, streamlined, rules, context)

    def build(each: Grammar, tokens: Vocabulary) -> Store | EntryStore:
        if each is not found:  # of a composition
            return build_and_keep(each, tokens, None, progress=progress)
        return build_and_keep(each, tokens, None, streamlined, rules, progress, allow_dead, lazy, context=context)

    return store_of(found, vocabulary, build)  # type: ignore[no-any-return]


@on_own_stack
def build_and_keep(
    grammar: Grammar,
    vocabulary: Vocabulary,
    keep: Keep | None,
    streamlined: bool = True,
    rules: Rules = "normalised",
    progress: Progress | None = None,
    allow_dead: bool = False,
    lazy: bool = False,
    is_left_open: bool = False,
    context: int = 1,
) -> Store | EntryStore:
    """`build_store` of a grammar, and what is to be done with the store once it is closed.

    keep : called with the finished store if texts of it can end; in the background if it is closed
        there.
    is_left_open : a lazy store is not closed, nor kept.
    """
    if grammar.lexing == "nfa":
        if lazy:
            raise GrammarError(
                f"grammar {grammar.name} has lexing 'nfa', whose stores have nothing to close, so lazy=True does not apply: leave it out, "
                "or load the grammar with lexing='longest'"
            )
        entries = compile_entry_store(
            grammar, vocabulary, streamlined=streamlined, rules=rules, context=context, progress=progress
        )
        if not allow_dead:
            _refuse_dead(entries, refuse_dead_entries)
        if keep is not None:
            keep(entries)
        return entries
    found, close = (
        prepare_engine_table(grammar, vocabulary, progress)
        if lazy
        else (build_engine_table(grammar, vocabulary, progress), None)
    )
    store = Store.of(found)
    if not allow_dead:
        _refuse_dead(store, refuse_dead)
    if close is not None:
        return store if is_left_open else store.close_in_background(close, keep)
    if keep is not None:
        keep(store)
    return store


def _refuse_dead(store: Any, check: Callable[[Any], None]) -> None:
    """Raise DeadEndError, with lint's findings, if a quick check finds that no text can end."""
    try:
        check(store)
    except DeadEndError as error:
        # PERF: who builds a store is not kept waiting for what words the refusal
        from maskwright.lint import lint_grammar

        findings = lint_grammar(store.grammar, store.vocabulary, allow=("no-text",)).findings
        wanted = [f for f in findings if f.severity == "error"] or [f for f in findings if f.severity == "warning"]
        said = "".join(f"\n{finding}" for finding in wanted[:MOST_SAID])
        raise DeadEndError(
            f"grammar {store.grammar.name} cannot finish any text under vocabulary {store.vocabulary.name}, so no store is made: "
            f"{error}{said or '; see `maskwright lint`'}"
        ) from None


def compile_store(grammar: Grammar, vocabulary: Vocabulary, progress: Progress | None = None) -> Store:
    """`build_store` for lexing "longest" or "contextual", whether or not texts can be finished.

    grammar, vocabulary, progress : see `build_store`.

    Raises: as `build_store`, but no DeadEndError.
    """
    return Store.of(build_engine_table(grammar, vocabulary, progress))


def compile_entry_store(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    streamlined: bool = True,
    rules: Rules = "normalised",
    context: int = 1,
    progress: Progress | None = None,
) -> EntryStore:
    """`build_store` for lexing "nfa", whether or not any text can be finished.

    grammar, vocabulary, streamlined, rules, context, progress : see `build_store`.

    Raises: as `build_store`, but no DeadEndError; GrammarError for another lexing.
    """
    # PERF: the other lexings need none of it
    from maskwright.maskstore.entries.build import build_entry_table
    from maskwright.stores.entry_store import EntryStore

    return EntryStore.of(
        build_entry_table(grammar, vocabulary, streamlined=streamlined, rules=rules, context=context, progress=progress)
    )
