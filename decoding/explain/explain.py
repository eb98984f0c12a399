"""Explain why a token may not come next, where a text goes wrong, and what could stand there.

An explanation goes from the bytes to the lexemes read so far, then to the terminals that the token
would make, then to the parser stacks that refuse them, with the rules under way.

The text is read again by plain Python code (`decoding.reference`), which records why each reading
stops. The engine's masks are used only to name the nearest allowed tokens.
"""

from __future__ import annotations

from maskwright.analysis.arguments import as_integer, need_type, refuse_argument
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.decoding.engine.arguments import plain_bytes
from maskwright.decoding.engine.slot import SlotText
from maskwright.decoding.explain.explainer import Explainer
from maskwright.decoding.explain.explanation import Explanation, shown_bytes
from maskwright.decoding.reference.machine import Machine, machine_of
from maskwright.maskstore.table.compiled import EngineTable


def explain_text(grammar: Grammar, text: bytes) -> Explanation:
    """Return where a text stops being a prefix of a legal text, or whether it is complete.

    grammar : its lexing is "longest" or "contextual".
    text : bytes.

    Returns an `Explanation`. Its verdict is "allowed" if the text is a prefix of a legal text;
        `is_whole` then says whether it is legal as it stands.
    Raises: the errors of `build_store`; GrammarError if lexing is "nfa"; LimitError if the text has
        too many readings; MaskwrightError if the text is not bytes.
    Cost: 1.5 s for the first text of python.lark, then 25 us a byte.
    """
    return Explainer(_machine_of(grammar)).text(plain_bytes("the text", text))


def explain_token(grammar: Grammar, text: bytes, data: bytes, store: EngineTable | None = None) -> Explanation:
    """Return why some bytes may or may not come after a text.

    If the text itself is not legal, the explanation says where and why.

    grammar : as in `explain_text`.
    text : bytes; the text so far.
    data : bytes; what comes next.
    store : table of the grammar; names the nearest allowed tokens, and the id of `data` if it is a
        token. None: neither is named.

    Raises: as `explain_text`.
    """
    text, data = plain_bytes("the text", text), plain_bytes("what comes next", data)
    what = shown_bytes(data)
    if store is not None:
        _need_store(store)
        if data in store.vocabulary.tokens:
            what = f"token {store.vocabulary.tokens.index(data)} ({data!r})"
    explainer = Explainer(_machine_of(grammar), store)
    places, good = explainer.run([explainer.trace.start], text)
    return explainer.text(text) if good < len(text) else explainer.token(places, data, what, text)


def _need_store(store: EngineTable) -> None:
    if not hasattr(store, "grammar"):
        refuse_argument("the store", store, "a Store: mw.build_store(grammar, vocabulary)")


def _machine_of(grammar: Grammar) -> Machine:
    need_type("the grammar", grammar, Grammar, "a Grammar: mw.load_grammar(name)")
    return machine_of(grammar)


def explain_id(store: EngineTable, text: bytes, token: int) -> Explanation:
    """Return why a token of a store's vocabulary may or may not come after a text.

    Like `explain_token`, but by id, so it also explains end-of-text and other special tokens. An id
    outside the vocabulary is always refused.

    text : bytes; the text so far.
    token : token id.

    Raises: as `explain_text`; MaskwrightError if the token is not an integer.
    """
    _need_store(store)
    text, token = plain_bytes("the text", text), as_integer("a token", token)
    explainer = Explainer(machine_of(store.grammar), store)
    configurations, good = explainer.run([explainer.trace.start], text)
    return explainer.text(text) if good < len(text) else explainer.token_by_id(configurations, token, text)


def explain_next(text: SlotText, wanted: int | bytes) -> Explanation:
    """Return why a token, or bytes, may or may not come next in the state of a text.

    The state keeps neither its text nor the names of terminals that its parser cannot tell apart.
    Of such terminals the first is shown.

    text : not ended.
    wanted : token id, 0 or more; or bytes, which need be no token.

    Raises: as `explain_text`; StoreError if the store's lexer or parser is not the one that this
        version, under this Python's Unicode, builds for its grammar.
    """
    explainer = Explainer(machine_of(text.store.grammar), text.store, text)
    places = explainer.configurations_of(text)
    if isinstance(wanted, bytes):
        return explainer.token(places, wanted, shown_bytes(wanted), None)
    return explainer.token_by_id(places, wanted, None)


__all__ = ["explain_id", "explain_next", "explain_text", "explain_token"]
