"""What a request of a server can ask for, and how much work it may make."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from maskwright.analysis.arguments import as_boolean, clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.schema.rewriting import FormatsName
from maskwright.analysis.schema.shapes import Escapes
from maskwright.analysis.schema.style import KeyOrder, check_texts

Kind = Literal["json", "json_object", "regex", "grammar", "choice", "structural_tag"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a constraint can be. The words are those of vLLM's requests."""


JSON_KINDS: frozenset[Kind] = frozenset({"json", "json_object", "structural_tag"})
"""Those about which `RequestOptions` say something."""


class RequestOptions(NamedTuple):
    """What a request says beside its constraint. All of it is about JSON texts.

    whitespace : what may stand between the tokens of JSON, as for `load_schema`: "natural",
        "compact", "json.dumps", "indent2", "any", a number of characters, or a regular expression.
    additional_properties : False to read each subschema with `properties` or `patternProperties`,
        and without `additionalProperties`, as if it had ``"additionalProperties": false``.
    key_order, escapes : the order of members, and the escapes of strings, as for `load_schema`. A
        structural tag says the order itself (`any_order`).
    formats : what `format` asserts: a word that `load_schema` has for it.
    """

    whitespace: str | int = "natural"
    additional_properties: bool = True
    key_order: KeyOrder = "any"
    escapes: Escapes = "natural"
    formats: FormatsName = "assert"

    def checked(self, kind: Kind) -> RequestOptions:
        """The same for a kind of constraint: what says nothing of it is as by default.

        Raises: UnknownNameError and MaskwrightError for what the options do not have;
        MaskwrightError for what they ask of a constraint that is not JSON.
        """
        check_texts(self.whitespace, self.key_order, self.escapes)
        if self.formats not in get_args(FormatsName):
            raise UnknownNameError(f"formats is {clip(self.formats)}; expected {' or '.join(get_args(FormatsName))}")
        found = self._replace(additional_properties=as_boolean("additional_properties", self.additional_properties))
        if kind not in JSON_KINDS and found != RequestOptions():
            said = ", ".join(name for name, one in found._asdict().items() if one != getattr(RequestOptions(), name))
            raise MaskwrightError(
                f"the request says something about JSON ({said}), but {kind} is not JSON: leave it out"
            )
        if kind == "json_object":  # there is no subschema with properties
            return found._replace(additional_properties=True, key_order="any", formats="assert")
        return found._replace(key_order="any") if kind == "structural_tag" else found


class RequestLimits(NamedTuple):
    """How much work one request may make. What would take more is refused.

    Grammars that come along, and closing automata in the background, have six times the limits of
    time and memory.

    most_bytes : of a constraint's text, in UTF-8.
    check_seconds, compile_seconds : of CPU time that `RequestCompiler.check` and
        `RequestCompiler.compile` may take, however loaded the machine is. Where a worker process
        compiles, putting its store together here may take a quarter as much again. The background
        work that makes a lazy store fast is not counted.
    most_megabytes : of memory that a worker process may ask for, for one request, where the
        platform can limit it (Linux).
    """

    most_bytes: int = 1_000_000
    check_seconds: float = 5.0
    compile_seconds: float = 8.0
    most_megabytes: int = 500


def as_kind(value: object) -> Kind:
    """The kind that a str names.

    Raises: UnknownNameError for another value.

    >>> as_kind("json")
    'json'
    """
    for kind in KINDS:
        if value == kind:
            return kind
    raise UnknownNameError(f"no kind of constraint is named {clip(value)}{suggestion(str(value)[:60], KINDS)}")
