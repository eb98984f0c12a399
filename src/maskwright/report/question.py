"""One question about a grammar: can a sequence of terminals follow a context?

In: a grammar, names of terminals. Out: what each of the engines of `analysis.legality` answers,
with its grounds. The engines share no code beyond the grammar and the reduction of its rules, so
each is a check of the others.
The LR tables of `exact` are validated first, by code that shares nothing with their builder
(`lr_tables`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from maskwright.analysis.arguments import as_integer, clip
from maskwright.analysis.errors import GrammarError, LimitError, MaskwrightError, MissingExtraError, UnknownNameError
from maskwright.analysis.grammar.grammar import Grammar
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.grammar.normalise import reduce
from maskwright.analysis.legality.bar_hillel import never_legal_pyformlang
from maskwright.analysis.legality.certificate import Certificate, Proof, Witness, check_certificate, spell
from maskwright.analysis.legality.deciders import Deciders
from maskwright.analysis.legality.exact import ExactDeciders
from maskwright.analysis.legality.explain import Explainer
from maskwright.analysis.legality.exploration import Exploration
from maskwright.analysis.legality.graph import Graph
from maskwright.analysis.legality.pushdown import Configuration
from maskwright.analysis.legality.verdict import START, Context, TerminalSequence, Verdict
from maskwright.analysis.loading.sources import GrammarSource, as_grammar
from maskwright.report.lr_tables import Validation, validate_lr_tables
from maskwright.report.parts import table

if TYPE_CHECKING:
    from rich.console import RenderableType

Engine = Literal["paths", "exact", "exploration", "pyformlang"]
"""What decides.

paths : derivation paths (`deciders`), as streamlining does; never is exact, always may be unknown.
exact : an LR parser on all stacks (`exact`), with a certificate.
exploration : the streamlining post's exploration with unlimited credit; proves always or nothing.
pyformlang : the intersection with a regular language, by the package pyformlang; never alone.
"""
ENGINES: tuple[Engine, ...] = get_args(Engine)

MOST_DRAWN = 300
"""The most situations of an exploration that are drawn."""

_ITEM = re.compile(r'"(?:[^"\\]|\\.)*"[a-z]*|/(?:[^/\\]|\\.)+/[a-z]*|\S+')
"""A terminal in the text of an option: a string or a pattern as reports show it, else no blanks."""


@dataclass(frozen=True)
class Answer:
    """What one engine answers.

    never : whether the sequence is legal after no text of the context; None if the engine does not
        say.
    always : whether it is legal after every one; likewise.
    jointly : whether two sequences are legal after the same texts; None if unknown, or not asked.
    legal_after : the beginning of a text after which the sequence is legal; None if none is given.
    refused_after : one after which it is not; likewise.
    grounds : sentences.
    seconds : CPU seconds that the answer took, of `exact` with the validation of its LR tables
        unless they were validated before.
    tables : what is known of the LR tables that the answer rests on: "validated"; "sound, but not
        shown to be complete"; "not validated"; or "WRONG", and then the engine says nothing, and
        the grounds name the first fault. "" if there are none.
    certificates : of never and always, if the engine has any, checked.
    """

    engine: Engine
    never: bool | None = None
    always: bool | None = None
    legal_after: str | None = None
    refused_after: str | None = None
    grounds: tuple[str, ...] = ()
    seconds: float = 0.0
    tables: str = ""
    certificates: tuple[Certificate, ...] = field(default=(), repr=False)
    jointly: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """All but the certificates, JSON-ready; these `report.certificates` writes."""
        facts = {name: value for name, value in vars(self).items() if name != "certificates"}
        return {**facts, "grounds": list(self.grounds)}


def said_of(certificate: Certificate, tables: Validation) -> str:
    """What a certificate shows, in words, once it has been checked. tables : those it rests on."""
    kind = certificate.claim.kind
    checked = f"checked, on LR tables that are {tables}"
    if isinstance(certificate, Proof):
        return f"{kind}: a certificate of {len(certificate.nodes)} situations, {checked}"
    if certificate.is_real:
        return f"not {kind}: a stack of {len(certificate.stack)} states, {checked}"
    return f"{kind}: unknown; it fails on a stack that was found, but is not known to fail on all stacks of a text"


@dataclass(frozen=True)
class Question:
    """Whether a sequence of terminals can follow a context.

    context : terminals, the nearest last; START as the first of them, or alone, for the start of
        the text.
    sequence : terminals, at least one.
    other : another sequence, for the question whether both are legal after the same texts; () for
        the question about the first one alone.

    Raises: GrammarError if the sequence or the context is empty, or no rule has one of them.
    """

    grammar: Grammar
    context: Context
    sequence: TerminalSequence
    other: TerminalSequence = ()
    _reduced: Grammar = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.sequence or not self.context:
            raise GrammarError("a question needs a context (START for the start of the text) and a sequence")
        reduced = reduce(self.grammar)
        named = (*self.context, *self.sequence, *self.other)
        if START in named[1:]:
            raise GrammarError("START is the start of the text: it can be the first of the context alone")
        name, most = self.grammar.name, self.grammar.n_terminals - 1
        for number in named:
            if not START <= number <= most:
                raise GrammarError(f"grammar {name} has no terminal number {number}; expected 0 to {most}")
        used = {symbol for rule in reduced.rules for symbol in rule.rhs}
        for symbol in named:
            if symbol not in used and symbol != START:
                why = "is in no rule that a text can use"
                if symbol in self.grammar.ignored:
                    why = "is ignored, so it may stand anywhere"
                raise GrammarError(f"grammar {name}: {self.grammar.display_name(symbol)} {why}")
        object.__setattr__(self, "_reduced", reduced)

    def ask(self, engine: Engine) -> Answer:
        """What an engine answers.

        Raises: MissingExtraError if engine is "pyformlang" and the package is not installed;
            LimitError if engine is "exact" and the search is too large.
        """
        methods = (self._by_paths, self._exactly, self._by_exploration, self._by_pyformlang)
        begin = time.process_time()
        answer = dict(zip(ENGINES, methods, strict=True))[engine]()
        return replace(answer, seconds=round(time.process_time() - begin, 6))

    def exploration(self, max_stack: int = 8) -> Exploration | None:
        """The post's exploration; None if the context has START and more.

        max_stack : as of `Exploration`.
        """
        context = () if self.context == (START,) else self.context
        return None if START in context else Exploration(self._reduced, context, self.sequence, max_stack=max_stack)

    def picture(self, view: Literal["exploration", "nfa"] = "exploration") -> tuple[Graph[Configuration], str]:
        """A graph of the exploration and its title, with the deepest stack that leaves it small.

        view : as of `Exploration.picture`.

        Raises: LimitError if it has more than MOST_DRAWN situations with any stack; GrammarError if
            the context has START and more.
        """
        for max_stack in range(8, -1, -1):
            exploration = self.exploration(max_stack)
            if exploration is None:
                raise GrammarError(
                    "an exploration with START and more in its context cannot be drawn; ask after START alone"
                )
            if len(exploration.nodes) <= MOST_DRAWN:
                return exploration.picture(view)
        raise LimitError(
            f"the exploration has more than {MOST_DRAWN} situations, too many to draw; ask about a shorter sequence, "
            "or after a terminal that occurs in fewer rules"
        )

    def _by_paths(self) -> Answer:
        explainer = Explainer(Deciders(self.grammar))

        def after(verdict: Verdict) -> str | None:
            witness = [self.grammar.terminal_number[name] for name in verdict.witness]
            return spell(self.grammar, witness) if verdict.holds is False else None

        if self.other:
            both = explainer.jointly_legal(self.context, self.sequence, self.other)
            grounds = [both.reason]
            if (shown := after(both)) is not None:
                grounds.append(f"some text begins with {shown}, and none if the other one stands at its end")
            return Answer("paths", jointly=both.holds, grounds=tuple(grounds))
        never = explainer.never_legal(self.context, self.sequence)
        always = explainer.always_legal(self.context, self.sequence)
        return Answer("paths", never.holds, always.holds, after(never), after(always), (never.reason, always.reason))

    def _exactly(self) -> Answer:
        deciders = ExactDeciders(self.grammar)
        tables = validate_lr_tables(deciders.grammar, deciders.tables)
        if tables.faults:
            more = f" (and {len(tables.faults) - 1} more faults)" if len(tables.faults) > 1 else ""
            fault = f"LR tables are {tables}: {tables.faults[0]}{more}"
            return Answer("exact", grounds=(fault,), tables=str(tables))
        if self.other:
            claims = [deciders.jointly_legal(self.context, self.sequence, self.other)]
        else:
            claims = [decide(self.context, self.sequence) for decide in (deciders.never_legal, deciders.always_legal)]
        certificates = tuple(claim.certificate for claim in claims)
        holds: list[bool | None] = []
        after: list[str | None] = []
        for found in certificates:
            check_certificate(deciders.tables, found)
            holds.append(True if isinstance(found, Proof) else False if found.is_real else None)
            after.append(spell(self.grammar, found.text) if isinstance(found, Witness) and found.is_real else None)
        grounds = [said_of(found, tables) for found in certificates]
        if tables.not_shown:
            grounds.append(f"LR tables: {tables}: {tables.not_shown}")
        if self.grammar.conflicts == "shift":
            grounds.append("every action of a conflict is followed here, though the grammar decides for shifts")
        if self.other and after[0] is not None:
            grounds.append(f"only one of them can follow {after[0] or 'the start of the text'}")
        answer = Answer("exact", grounds=tuple(grounds), tables=str(tables), certificates=certificates)
        if self.other:
            return replace(answer, jointly=holds[0])
        return replace(answer, never=holds[0], always=holds[1], legal_after=after[0], refused_after=after[1])

    def _by_exploration(self) -> Answer:
        exploration = self.exploration()
        if self.other or exploration is None:
            why = "does not compare sequences" if self.other else "knows the start of the text only alone"
            return Answer("exploration", grounds=(f"the exploration {why}",))
        size = f"{len(exploration.nodes)} situations, {len(exploration.edges)} steps"
        if exploration.unproved is None:
            ground = f"every stack of return addresses lets it be read ({size})"
            return Answer("exploration", always=True, grounds=(ground,))
        below = ", then ".join(map(exploration.pushdown.text, exploration.unproved[1])) or "nothing"
        cut = "; a limit cut the exploration off" if exploration.is_truncated else ""
        return Answer("exploration", grounds=(f"no proof where {below} is borrowed ({size}){cut}",))

    def _by_pyformlang(self) -> Answer:
        if self.other:
            return Answer("pyformlang", grounds=("an intersection does not compare sequences",))
        context, sequence = self.context, self.sequence
        if context[0] == START:
            context, sequence = (), context[1:] + sequence
        never = never_legal_pyformlang(self._reduced, context, sequence)
        kind = "no word" if never else "some word"
        where = "begins with them" if not context else "has them side by side"
        return Answer("pyformlang", never, grounds=(f"{kind} {where}, by intersection with a regular language",))


@dataclass(frozen=True)
class Answers:
    """A question with the answers of some engines.

    skipped : for each engine that did not answer, why.
    """

    question: Question
    answers: tuple[Answer, ...]
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> Literal["never", "always", "sometimes", "jointly", "apart", "unknown"]:
        """What all answers say together: the sequence can follow never, always, or sometimes.

        Of two sequences: they are legal after the same texts, or not ("jointly", "apart").
        """
        if any(answer.jointly is not None for answer in self.answers):
            return "jointly" if any(answer.jointly for answer in self.answers) else "apart"
        if any(answer.never for answer in self.answers):
            return "never"
        if any(answer.always for answer in self.answers):
            return "always"
        known = {answer.never for answer in self.answers}, {answer.always for answer in self.answers}
        return "sometimes" if all(False in each for each in known) else "unknown"

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Pairs of engines of which one says what the other denies; there should be none."""
        return tuple(
            f"{one.engine} and {other.engine} disagree on {what}"
            for what in ("never", "always", "jointly")
            for i, one in enumerate(self.answers)
            for other in self.answers[:i]
            if {getattr(one, what), getattr(other, what)} == {True, False}
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """Why an engine's tables are wrong, so that it said nothing; there should be none."""
        return tuple(
            f"{answer.engine} has no verdict, since its {ground}"
            for answer in self.answers
            if answer.tables == "WRONG"
            for ground in answer.grounds[:1]
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it, JSON-ready. Terminals stand by the names that messages use."""
        question = self.question
        return {
            "grammar": question.grammar.name,
            "context": names_of(question.grammar, question.context),
            "sequence": names_of(question.grammar, question.sequence),
            "other": names_of(question.grammar, question.other),
            "verdict": self.verdict,
            "answers": [answer.to_dict() for answer in self.answers],
            "skipped": self.skipped,
            "contradictions": list(self.contradictions),
            "faults": list(self.faults),
        }

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        facts, said = self.to_dict(), _SAID[self.verdict]
        asked = ["jointly"] if self.question.other else ["never", "always"]
        if self.verdict == "unknown" and self.question.other:
            said = "is not known to follow exactly where the other does"
        elif self.verdict == "unknown" and all(answer.never is None for answer in self.answers):
            said = "is not proved to follow always; no engine that tells whether ever was asked"
            if self.faults:
                said = "nothing is known, see the fault below"
        words = {True: "yes", False: "no", None: "?"}
        rows = []
        for answer in self.answers:
            grounds = list(answer.grounds)
            for what, text in (("legal", answer.legal_after), ("refused", answer.refused_after)):
                if text is not None:
                    shown = text.replace("\n", "\N{RETURN SYMBOL}") or "nothing, at the start of the text"
                    grounds.append(f"{what} after: {shown}")
            verdicts = [words[getattr(answer, what)] for what in asked]
            rows.append((answer.engine, *verdicts, f"{answer.seconds:.3f}", "\n".join(grounds)))
        rows += [(engine, *["?"] * len(asked), "", f"not asked: {why}") for engine, why in self.skipped.items()]
        where = "at " if facts["context"] == ["START"] else "after "
        both = " | ".join(" ".join(each) for each in (facts["sequence"], facts["other"]) if each)
        head = Text(f"{facts['grammar']}: {both} {where}{' '.join(facts['context'])}: {said}")
        wrong = [f"FAULT: {each}" for each in self.faults] + [f"contradiction: {each}" for each in self.contradictions]
        found = table("engine", *asked, "seconds", "grounds", rows=rows)
        return Group(head, "", found, *(Text(each, style="red") for each in wrong))


_SAID = {
    "never": "can never follow",
    "always": "can always follow",
    "sometimes": "can follow some texts and not others",
    "jointly": "can follow exactly where the other can",
    "apart": "can follow where the other cannot, or cannot where it can",
    "unknown": "can follow some texts; whether all, is not known",
}
"""A verdict in words."""


def ask(
    grammar: GrammarSource,
    context: str | Sequence[int],
    sequence: str | Sequence[int],
    engines: Iterable[str] = ("paths", "exact"),
    jointly: str | Sequence[int] | None = None,
) -> Answers:
    """Ask engines whether a sequence of terminals can follow a context.

    grammar : a grammar, or what `load_grammar` takes.
    context, sequence : numbers of terminals, or a text with their names, literals in quotes, and
        START for the start of the text: `ask("json", "START", '"["')`.
    engines : the engines to ask. If there are several, one whose package is not installed is left
        out, and said to be.
    jointly : another sequence: the question is then whether both can follow after the same texts
        (jointly legal).

    Raises: UnknownNameError for a name that is no terminal's; GrammarError and LimitError as
        `Question`; MissingExtraError if the only engine needs a package that is not installed.
    """
    loaded = as_grammar(grammar)
    question = Question(
        loaded,
        _as_terminals(loaded, "context", context),
        _as_terminals(loaded, "sequence", sequence),
        () if jointly is None else _as_terminals(loaded, "jointly", jointly),
    )
    if jointly is not None and not question.other:
        raise GrammarError("the sequence to compare with is empty")
    wanted = list(dict.fromkeys(engines))
    if unknown := [name for name in wanted if name not in ENGINES]:
        raise UnknownNameError(f"no engine is named {unknown[0]!r}" + suggestion(unknown[0], ENGINES))
    if not wanted:
        raise MaskwrightError(f"no engine is asked; expected some of {', '.join(ENGINES)}")
    answers: list[Answer] = []
    skipped: dict[str, str] = {}
    for engine in wanted:
        try:
            answers.append(question.ask(engine))  # type: ignore[arg-type]
        except MissingExtraError as error:
            if len(wanted) == 1:
                raise
            skipped[engine] = str(error)
    return Answers(question, tuple(answers), skipped)


def _as_terminals(grammar: Grammar, name: str, given: str | Sequence[int]) -> tuple[int, ...]:
    """The numbers of terminals that are given by number or by name."""
    if isinstance(given, str):
        return terminals_of(grammar, given)
    if any(isinstance(each, str) for each in given):
        raise MaskwrightError(f"{name} is {clip(given)}; expected numbers of terminals, or one text with their names")
    return tuple(as_integer(f"a member of {name}", each) for each in given)


def terminals_of(grammar: Grammar, text: str) -> tuple[int, ...]:
    """The terminals that a text names, with blanks between them.

    Each is named by its name, by its literal, in quotes (escaped as in a grammar, or not) or
    without, by its pattern as messages show it, or START for the start of the text, which must be
    the first.

    Raises: UnknownNameError for another name; GrammarError for START behind another one.
    """
    known: dict[str, int] = {}
    for number, terminal in enumerate(grammar.terminals):
        literal = terminal.literal
        spelled = () if literal is None else (f'"{literal}"', json.dumps(literal, ensure_ascii=False), literal)
        for name in (terminal.name, grammar.display_name(number), *spelled):
            known.setdefault(name, number)
    known |= {terminal.name: number for number, terminal in enumerate(grammar.terminals)}
    found: list[int] = []
    for name in _ITEM.findall(text):
        if name == "START" and "START" not in known:
            if found:
                raise GrammarError(f"START is the start of the text, so nothing stands before it: {text}")
            found.append(START)
        elif name not in known:
            shown = sorted({grammar.display_name(number) for number in range(grammar.n_terminals)})
            raise UnknownNameError(
                f"grammar {grammar.name} has no terminal {name}" + suggestion(name, shown, "; or START")
            )
        else:
            found.append(known[name])
    return tuple(found)


def names_of(grammar: Grammar, terminals: Iterable[int]) -> list[str]:
    """The names of terminals as messages have them, START included."""
    return ["START" if number == START else grammar.display_name(number) for number in terminals]
