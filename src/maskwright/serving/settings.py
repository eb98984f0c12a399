"""What an operator of a server tells maskwright: in the environment, or in vLLM's configuration."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

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


_OR_ZERO = frozenset({"close_early", "disk_megabytes", "workers"})
"""The settings that 0 turns off."""


_WORDS_OF = {
    "style": get_args(StyleName),
    "key_order": get_args(KeyOrder),
    "escapes": get_args(Escapes),
    "formats": get_args(FormatsName),
}
"""The settings that are one of some words."""


class ServerSettings(NamedTuple):
    """The settings.

    stores : names, and paths of stores, which requests may name as their grammar; by name.
    hybrid : whether xgrammar takes what maskwright refuses; vLLM's alone. Each such request is
        logged.
    style : how JSON is written, where a request does not say: a name that `load_schema` knows.
    whitespace, key_order, escapes : parts of it, as for `load_schema`; None: as the style has them.
    formats, additional_properties : as for `load_schema`.
    strict_keywords : whether to refuse schemas with keywords that JSON Schema does not have.
    cache_entries, cache_megabytes : how much of what was compiled is kept in the process.
    disk_megabytes : how much of it the cache on disk has; 0 for grammars of requests that do not
        come to the disk.
    most_bytes, check_seconds, compile_seconds, most_megabytes : see `RequestLimits`.
    workers : how many processes there may be for what takes long, 0 for none; see
        `RequestCompiler`.
    close_early : how many tokens before the last moment a text is closed with a short ending, so
        that it ends within `max_tokens`: see `TokenBudget`. 0 for texts that are cut off. vLLM's
        alone.
    """

    stores: tuple[tuple[str, str], ...] = ()
    hybrid: bool = False
    style: StyleName = "natural"
    whitespace: str | int | None = None
    key_order: KeyOrder | None = None
    escapes: Escapes | None = None
    formats: FormatsName = "assert"
    additional_properties: bool = True
    strict_keywords: bool = False
    cache_entries: int = 256
    cache_megabytes: int = 2048
    disk_megabytes: int = 2048
    most_bytes: int = RequestLimits().most_bytes
    check_seconds: float = RequestLimits().check_seconds
    compile_seconds: float = RequestLimits().compile_seconds
    most_megabytes: int = RequestLimits().most_megabytes
    workers: int = default_workers()
    close_early: int = 0

    @property
    def options(self) -> RequestOptions:
        """What holds for requests of JSON that do not say otherwise."""
        style = read_style(self.style, self.whitespace, self.key_order, self.escapes)
        spaces, order, escapes = style
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
        where = f"additional_config[{KEY!r}][{name!r}]"
        found[name] = _value(name, where, value)
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
    if name in _WORDS_OF:
        if value not in _WORDS_OF[name]:
            raise MaskwrightError(f"{where} is {clip(value)}; expected {' or '.join(_WORDS_OF[name])}")
        return value
    default = ServerSettings._field_defaults[name]
    if name in ("stores", "whitespace"):
        return (_stores if name == "stores" else _whitespace)(where, value)
    return _boolean(where, value) if isinstance(default, bool) else _number(where, value, type(default), name)


def _number(where: str, value: Any, wanted: type[int] | type[float], name: str) -> int | float:
    """A number above 0, or 0."""
    try:
        found = wanted(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        found = None
    or_zero = name in _OR_ZERO
    is_above = found is not None and (0 < found < math.inf or (or_zero and found == 0))
    if found is None or not is_above or not (isinstance(value, str) or found == value):
        raise MaskwrightError(f"{where} is {clip(value)}; expected {'0, or ' if or_zero else ''}a number above 0")
    return found


def _stores(where: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Names and paths, of an object, its JSON, or ``name=path,name=path``."""
    found = value
    if isinstance(value, str):
        if value.lstrip().startswith("{"):
            try:
                found = read_json(value)
            except ValueError as error:
                raise MaskwrightError(f"{where} is not JSON: {error}") from None
        else:
            parts = [part.strip().partition("=") for part in value.split(",") if part.strip()]
            if not all(name and is_there and path for name, is_there, path in parts):
                raise MaskwrightError(f"{where} is {clip(value)}; expected name=path,name=path or a JSON object")
            found = {name.strip(): path.strip() for name, _, path in parts}
    if not isinstance(found, Mapping) or not all(isinstance(each, str) for pair in found.items() for each in pair):
        raise MaskwrightError(f"{where} is {clip(value)}; expected an object of names and paths")
    return tuple(sorted(found.items()))


def _whitespace(where: str, value: Any) -> str | int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MaskwrightError(f"{where} is {clip(value)}; expected natural, compact, any, a number or a pattern")
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value


def _boolean(where: str, value: Any) -> bool:
    said = str(value).strip().lower()  # also of True and False
    if said not in ("1", "true", "yes", "on", "0", "false", "no", "off", ""):
        raise MaskwrightError(f"{where} is {clip(value)}; expected 1 or 0")
    return said in ("1", "true", "yes", "on")
