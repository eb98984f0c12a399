"""Judges of texts that masks refuse or allow, one for each kind of store; and the check "replay".

In: a text, and where the masks refuse it, if they do. Out: the class of this outcome, and what was
said.

Of a *grammar*, two parsers that share no code with the engine judge a refusal:

- The grammar's own parse (`GrammarParse`) decides. If it accepts the text, or gets past the byte
  that the engine refuses, the refusal is false: the engine refused what the grammar allows. If it
  stops there too, the text is outside the grammar. The reference parser then tells why: it is no
  text of the language, or the grammar is narrower than the language.
- If the grammar's own parse is undecided, the reference parser decides. A text that it refuses is
  outside; any other refusal counts as false.

A token that the mask refuses, although the engine reads its bytes, is refused falsely whatever the
parsers say.

Of a *schema*, the library `jsonschema` (`instances`) judges what the masks refuse and what they
allow. Of a refusal we ask whether the value is refused or only its spelling: a text of a schema has
no key twice, numbers without exponents where their value matters, and the white space, order of
keys and escapes that the user asked for. A format is stricter here than in jsonschema, so a refusal
that is gone without `format` is no false one.

Of a *composition* no other parser judges texts. So each text that is refused makes the check fail,
and the finding says in which part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from maskwright.analysis.errors import LimitError, MaskwrightError, SchemaError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.kept import cached_property
from maskwright.analysis.schema.load import JsonSchema, read_schema
from maskwright.analysis.schema.style import STYLES
from maskwright.decoding.reference.json_texts import JsonInterpreter
from maskwright.stores.schema_store import SchemaStore, build_schema_store
from maskwright.validation.instances import InstanceJudge, respelled
from maskwright.validation.oracle import GrammarParse
from maskwright.validation.references import Judgement, make_reference, reference_for
from maskwright.validation.replay import facts_of_stop, find_stop, is_text, of_last_line_feed, place_of
from maskwright.validation.work import Outcome, Setup

REPLAYED = "replayed"
OUTSIDE_TEXT = "outside: not a text of the language"
OUTSIDE_GRAMMAR = "outside: the grammar lacks it"
OUTSIDE = "outside the grammar"
NO_INSTANCE = "outside: no instance"
SPELLED_OTHERWISE = "outside: an instance that is spelled otherwise"
BY_A_FORMAT = "outside: by a format, which is stricter here"
NOT_JUDGED = "outside: nobody else judged"
FALSE_REFUSAL = "false refusal"
REFUSED = "refused"
"""The class of texts of a composition that the masks refuse."""

ACCEPTED = "accepted"
DRAWN = "drawn: nobody else judged"
LEFT_OUT = "allowed, since the reading is lenient"
FORMATS_DIFFER = "a format that jsonschema reads otherwise"
FALSE_PERMISSION = "false permission"
REFUSED_GRAMMAR = "refused by the grammar's own parse"
REFUSED_REFERENCE = "refused by the reference"
UNDECIDED = "the reference crashed or hung"
NOT_COUNTED = {"limit": "limits", "not judged": "not_judged"}
"""Classes of drawn texts that are only counted, and the members of outcomes that count them.

A parser gave up because of a limit of its own; or the reference reads an older version of the
language, and refuses the text.
"""


class Judge:
    """Judges texts of one store. by : who does, in words."""

    by = "nobody"

    def own(self, text: str) -> str:
        """What of a file's text is meant."""
        return text

    def refused(self, text: str, where: Outcome, matcher: Any) -> Outcome:
        """The class of a refusal, and what was said, and perhaps more.

        where : see `facts_of_stop`.
        matcher : stands there; it may be changed.
        """
        raise NotImplementedError

    def allowed(self, text: str) -> Outcome:
        """The class of a text that the masks allow, and more if that is not the good one."""
        return {"class": REPLAYED}

    def drawn(self, text: str) -> tuple[str, str]:
        """The class of a text that was drawn under the masks, and what was said."""
        raise NotImplementedError


def judge_of(store: Any, reference: str, seconds: float) -> Judge:
    """The judge of a store's texts.

    reference : its name, as `reference_of` returns it.
    seconds : that a reference parser has for a text.

    Raises: MaskwrightError for a reference that cannot be asked.
    """
    if store.engine == "schema":
        return SchemaJudge(store, reference)
    return CompositionJudge() if store.engine == "composition" else GrammarJudge(store.grammar, reference, seconds)


def reference_of(store: Any, given: str | None, check: str) -> str:
    """The name of a reference for a store's texts. given : what a user names, or None."""
    if store.engine == "schema":
        return given or "jsonschema"
    if store.engine == "composition":
        return "none"
    return given or reference_for(store.grammar if check == "sample" else store.grammar.name)


class GrammarJudge(Judge):
    """Judges texts with the grammar's own parse and a reference parser.

    grammar : a grammar of lexing "longest" or "contextual".
    reference, seconds : as for `make_reference`.
    """

    def __init__(self, grammar: Grammar, reference: str, seconds: float) -> None:
        self.grammar, self.by = grammar, reference
        self.reference = make_reference(reference, seconds)

    @cached_property
    def parse(self) -> GrammarParse:
        """The grammar's own parse."""
        return GrammarParse(self.grammar)

    def refused(self, text: str, where: Outcome, matcher: Any) -> Outcome:
        said = of_last_line_feed(matcher, text)
        stops: Literal["here", "later", "unknown"] = "unknown"
        try:
            refused = self.parse.refusal(text)
        except MaskwrightError as error:
            said.append(f"the grammar's own parse is undecided: {error}")
        else:
            if refused is None:
                stops = "later"
                said.append("the grammar's own parse takes the text")
            else:
                begin = len(text[: refused.begin].encode())
                stops = "later" if where["byte"] < begin else "here"
                line, column = place_of(text, begin)
                said.append(f"the grammar's own parse refuses it at {line}:{column}: {refused.why}")
        answer = None
        if self.reference is not None:
            verdict = self.reference.judge(text)
            answer = verdict.answer
            said.append(f"{self.reference.name}: {verdict.answer}{': ' * bool(verdict.message)}{verdict.message}")
        if stops == "later" or (stops == "unknown" and answer != "refused"):
            kind = FALSE_REFUSAL
        elif answer == "refused":
            kind = OUTSIDE_TEXT
        else:
            kind = OUTSIDE_GRAMMAR if answer == "accepted" else OUTSIDE
        return {"class": kind, "said": said}

    def drawn(self, text: str) -> tuple[str, str]:
        try:
            refused = self.parse.refusal(text)
        except MaskwrightError as error:
            return "limit", str(error)
        if refused is not None:
            return REFUSED_GRAMMAR, refused.why
        if self.reference is None:
            return ACCEPTED, ""
        verdict = self.reference.judge(text)
        if verdict.answer in ("crashed", "hung"):
            return UNDECIDED, f"{verdict.answer}: {verdict.message}"
        kinds = {"accepted": ACCEPTED, "refused": REFUSED_REFERENCE}
        return kinds.get(verdict.answer, verdict.answer), verdict.message


class SchemaJudge(Judge):
    """Judges instances of a schema; of a pattern, only what was drawn.

    reference : "jsonschema" or "none".

    Raises: MaskwrightError for another reference.
    """

    def __init__(self, store: SchemaStore, reference: str) -> None:
        if reference not in ("none", "jsonschema"):
            raise MaskwrightError("instances are judged by jsonschema: --reference jsonschema, the default, or none")
        self.store, self.constraint = store, store.constraint
        self.judge: InstanceJudge | None = None
        if isinstance(self.constraint, JsonSchema) and reference != "none":
            self.judge = InstanceJudge(self.constraint)
            self.by = "jsonschema" if self.judge.is_installed else "nobody (no jsonschema)"

    def own(self, text: str) -> str:
        # a file's last line feed is not part of a pattern's text; JSON has white space anyway
        return text if isinstance(self.constraint, JsonSchema) else text.removesuffix("\n")

    def refused(self, text: str, where: Outcome, matcher: Any) -> Outcome:
        if self.judge is None:
            return {"class": NOT_JUDGED, "said": []}
        verdict = self.judge.judge(text)
        said = [f"{verdict.by}: {verdict.message}"] if verdict.message else []
        return {"class": self._kind_of_refusal(text, verdict), "said": said}

    def _kind_of_refusal(self, text: str, verdict: Judgement) -> str:
        if verdict.answer == "refused":
            return NO_INSTANCE
        if not self._is_legal(text):
            if is_text(self.store.matcher(0), respelled(text)):
                return SPELLED_OTHERWISE
            for kind, looser in self._looser:
                if any(is_text(looser.matcher(0), one) for one in (text, respelled(text))):
                    return kind
        return FALSE_REFUSAL if verdict.answer == "accepted" else NOT_JUDGED

    def _is_legal(self, text: str) -> bool:
        """Whether a text is one of the schema's in its style, as the plain interpreter reads it."""
        assert isinstance(self.constraint, JsonSchema)
        plain = JsonInterpreter(self.constraint.texts)
        try:
            return plain.is_complete(plain.read_bytes(plain.start(), text.encode()))
        except (LimitError, UnicodeEncodeError):
            return False

    @cached_property
    def _looser(self) -> list[tuple[str, SchemaStore]]:
        """Stores that refuse less, each with the class of what only they allow.

        The schema for any white space, order of keys and escapes, if it asked for some; and
        without formats, if it has some.
        """
        assert isinstance(self.constraint, JsonSchema)
        schema, options, found = self.constraint.schema, self.constraint.options, []
        plain = _without_formats(schema)
        for kind, looser, is_looser in (
            (SPELLED_OTHERWISE, schema, options.style != STYLES["any"]),
            (BY_A_FORMAT, plain, plain != schema),
        ):
            if is_looser:
                try:
                    loaded = read_schema(
                        looser, style=STYLES["any"], documents=options.documents, lenient=options.lenient, name=kind
                    )
                except SchemaError:
                    continue
                found.append((kind, build_schema_store(loaded, self.store.vocabulary)))
        return found

    def allowed(self, text: str) -> Outcome:
        kind, why = self._permitted(text)
        return {"class": REPLAYED} if kind in (ACCEPTED, DRAWN) else {"class": kind, "why": why, "text": text}

    def drawn(self, text: str) -> tuple[str, str]:
        if isinstance(self.constraint, JsonSchema):
            return self._permitted(text)
        if self.constraint.automaton.matches(text.encode()):
            return ACCEPTED, ""
        return FALSE_PERMISSION, "the automaton refuses it"

    def _permitted(self, text: str) -> tuple[str, str]:
        """The class of a text that the masks allow, and what was said."""
        verdict = None if self.judge is None else self.judge.judge(text)
        if verdict is None or verdict.answer != "refused":
            return ACCEPTED if verdict is not None and verdict.answer == "accepted" else DRAWN, ""
        why = f"{verdict.by}: {verdict.message}"
        if getattr(self.constraint, "left_out", ()):
            return LEFT_OUT, why
        return FORMATS_DIFFER if verdict.keyword == "format" else FALSE_PERMISSION, why


def _without_formats(schema: Any) -> Any:
    """The schema without keywords `format`. Members of that name with other values stay."""
    if isinstance(schema, dict):
        kept = {k: v for k, v in schema.items() if k != "format" or not isinstance(v, str)}
        return {key: value if key in ("enum", "const") else _without_formats(value) for key, value in kept.items()}
    return [_without_formats(each) for each in schema] if isinstance(schema, list) else schema


class CompositionJudge(Judge):
    """Says which part of a text of a composition refuses it."""

    def refused(self, text: str, where: Outcome, matcher: Any) -> Outcome:
        part = matcher.text.where()
        return {"class": REFUSED, "part": part, "said": of_last_line_feed(matcher, text)}


def replay(setup: Setup, reference: str, reference_seconds: float) -> Callable[[str], Outcome]:
    """The check "replay": is every next token of real texts allowed? A unit of work is a text.

    reference, reference_seconds : as for `judge_of`.
    """
    store, encoder = setup.store, setup.encoder
    assert encoder is not None
    matcher, judge = store.matcher(0), judge_of(store, reference, reference_seconds)

    def run(text: str) -> Outcome:
        text = judge.own(text)
        spelling = encoder.exact_tokens(text)
        stop = find_stop(matcher, spelling.tokens)
        facts: Outcome = {"tokens": len(spelling.tokens) if stop is None else stop.n_tokens}
        if spelling.respelled:
            facts["respelled_bytes"] = spelling.respelled
        if stop is None:
            return facts | judge.allowed(text)
        where = facts_of_stop(text, spelling.tokens, stop, store.vocabulary)
        found = judge.refused(text, where, matcher)
        if stop.token is not None and stop.good == len(store.vocabulary.tokens[stop.token]):
            said = [*found["said"], "the engine itself takes the token's bytes, one by one"]
            found |= {"class": FALSE_REFUSAL, "said": said}
        return facts | where | found

    return run
