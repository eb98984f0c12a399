"""What an operator of a server tells maskwright: in the environment, or in vLLM's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, TypeAdapter, ValidationError

from maskwright.analysis.arguments import a_type, clip
from maskwright.analysis.errors import MaskwrightError, UnknownNameError
from maskwright.analysis.grammar.lark_files import suggestion
from maskwright.analysis.nesting import read_json
from maskwright.analysis.schema.rewriting import FormatsName
from maskwright.analysis.schema.shapes import Escapes
from maskwright.analysis.schema.style import KeyOrder, StyleName, read_style
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving.options import RequestLimits, RequestOptions
from maskwright.serving.requests import RequestCompiler
from maskwright.serving.work import default_workers

PREFIX = "MASKWRIGHT_VLLM_"
"""How vLLM's environment variables begin: ``MASKWRIGHT_VLLM_STORES`` is the setting `stores`."""
KEY = "maskwright"
"""The key of `additional_config` whose value, a JSON object, has settings by their names."""


def _stores(value: Any) -> Any:
    """Names and paths, of an object, its JSON, or ``name=path,name=path``; by name."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = read_json(value)
    elif isinstance(value, str):
        parts = [part.partition("=") for part in value.split(",") if part.strip()]
        found = {name.strip(): path.strip() for name, is_there, path in parts if is_there}
        value = found if len(found) == len(parts) else None
    if not isinstance(value, Mapping):
        raise ValueError("expected name=path,name=path or an object of names and paths")
    return sorted(value.items())


def _switch(value: Any) -> Any:
    return value.strip() or False if isinstance(value, str) else value


def _whitespace(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


Said = Annotated[str, Field(pattern=r"\S")]
Switch = Annotated[bool, BeforeValidator(_switch)]
AboveZero = Annotated[int, BeforeValidator(_number), Field(gt=0)]
OrZero = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Amount = Annotated[float, BeforeValidator(_number), Field(gt=0, allow_inf_nan=False)]


class ServerSettings(NamedTuple):
    """The settings.

    stores : names, and paths of stores, which requests may name as their grammar; by name.
    hybrid : whether xgrammar takes what maskwright refuses; vLLM's alone. Each such request is
        logged.
    style, whitespace, key_order, escapes, formats, additional_properties : as for `load_schema`,
        where a request does not say.
    strict_keywords : whether to refuse schemas with keywords that JSON Schema does not have.
    cache_entries, cache_megabytes, disk_megabytes : how much of what was compiled is kept in the
        process, and in the cache on disk; 0 for grammars of requests that do not come there.
    most_bytes, check_seconds, compile_seconds, most_megabytes : see `RequestLimits`.
    workers : how many processes there may be for what takes long, 0 for none; see
        `RequestCompiler`.
    close_early : how many tokens before the last moment a text is closed with a short ending, so
        that it ends within `max_tokens`: see `TokenBudget`. 0 for texts that are cut off. vLLM's
        alone.
    """

    stores: Annotated[tuple[tuple[Said, Said], ...], BeforeValidator(_stores)] = ()
    hybrid: Switch = False
    style: StyleName = "natural"
    whitespace: Annotated[StrictStr | StrictInt | None, BeforeValidator(_whitespace)] = None
    key_order: KeyOrder | None = None
    escapes: Escapes | None = None
    formats: FormatsName = "assert"
    additional_properties: Switch = True
    strict_keywords: Switch = False
    cache_entries: AboveZero = 256
    cache_megabytes: AboveZero = 2048
    disk_megabytes: OrZero = 2048
    most_bytes: AboveZero = RequestLimits().most_bytes
    check_seconds: Amount = RequestLimits().check_seconds
    compile_seconds: Amount = RequestLimits().compile_seconds
    most_megabytes: AboveZero = RequestLimits().most_megabytes
    workers: OrZero = default_workers()
    close_early: OrZero = 0

    @property
    def options(self) -> RequestOptions:
        """What holds for requests of JSON that do not say otherwise."""
        spaces, order, escapes = read_style(self.style, self.whitespace, self.key_order, self.escapes)
        return RequestOptions(spaces, self.additional_properties, order, escapes, self.formats)

    @property
    def limits(self) -> RequestLimits:
        """The limits of requests among them."""
        return RequestLimits(self.most_bytes, self.check_seconds, self.compile_seconds, self.most_megabytes)


def read_settings(
    additional: object = None, environment: Mapping[str, str] | None = None, prefix: str = PREFIX
) -> ServerSettings:
    """The settings of a server.

    additional : vLLM's `additional_config`; what it says counts more than the environment.
    environment : by default that of the process.
    prefix : how its variables begin.

    Raises: UnknownNameError for an unknown setting; MaskwrightError for a value that does not fit.

    >>> read_settings({"maskwright": {"stores": {"sql": "sql.safetensors"}}}, {}).stores
    (('sql', 'sql.safetensors'),)
    """
    environment = os.environ if environment is None else environment
    found: dict[str, Any] = {}
    for variable in sorted(environment):
        if variable.startswith(prefix):
            name = variable.removeprefix(prefix).lower()
            found[name] = _value(name, variable, environment[variable])
    more = additional.get(KEY, {}) if isinstance(additional, Mapping) else {}
    if not isinstance(more, Mapping):
        raise MaskwrightError(f"additional_config[{KEY!r}] is {a_type(more)}; expected an object with settings")
    for name, value in more.items():
        found[name] = _value(name, f"additional_config[{KEY!r}][{name!r}]", value)
    return ServerSettings(**found)


def make_compiler(
    vocabulary: Vocabulary, settings: ServerSettings, options: RequestOptions, n_tokens: int
) -> RequestCompiler:
    """The compiler of a server's requests, whose workers begin to start.

    options : what holds for requests that do not say otherwise.
    n_tokens : how many logits the model gives.

    Raises: as `RequestCompiler`.
    """
    compiler = RequestCompiler(
        vocabulary,
        dict(settings.stores),
        cache_entries=settings.cache_entries,
        cache_bytes=settings.cache_megabytes << 20,
        on_disk=settings.disk_megabytes > 0,
        disk_bytes=max(settings.disk_megabytes, 1) << 20,
        limits=settings.limits,
        options=options,
        strict_keywords=settings.strict_keywords,
        n_tokens=n_tokens,
        workers=settings.workers,
    )
    compiler.start()
    return compiler


def _value(name: str, where: str, value: Any) -> Any:
    """A setting's value. Strings are read, since an environment has nothing else."""
    if name not in ServerSettings._fields:
        raise UnknownNameError(
            f"{where}: there is no setting {clip(name)}{suggestion(str(name)[:60], ServerSettings._fields)}"
        )
    try:
        return TypeAdapter(get_type_hints(ServerSettings, include_extras=True)[name]).validate_python(value)
    except (ValidationError, OverflowError, TypeError) as error:
        why = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise MaskwrightError(f"{where} is {clip(value)}: {why}") from None
