"""Makes the backend selectable in vLLM, which has no registry of backends.

Three places of vLLM are widened: the names that its configuration takes, the validation of a
request in the process that takes requests, and the manager in the engine's. In a server of ours
structural tags are not shown to xgrammar before. Whoever uses another backend notices nothing.
Where vLLM does not have these places as expected, nothing is changed, and the log says so; vLLM
then refuses the name.
"""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from maskwright.analysis.errors import MaskwrightError, MissingExtraError
from maskwright.analysis.locks import new_lock
from maskwright.maskstore.vocabulary import Vocabulary
from maskwright.serving.metrics import metrics, show_metrics
from maskwright.serving.options import RequestLimits
from maskwright.serving.reading import RequestReader
from maskwright.serving.requests import RequestChecker
from maskwright.serving.settings import ServerSettings, read_settings
from maskwright.serving.vllm_backend import (
    NAME,
    MaskwrightBackend,
    MaskwrightGrammar,
    options_of,
    valid_for_xgrammar,
    vocabulary_of,
)

_MARK = "_is_of_maskwright"
_SETTINGS = "_maskwright_settings"
_PROTOCOL = "vllm.entrypoints.generate.base.protocol"

_logger = logging.getLogger(__name__)
_lock = new_lock()
_has_registered = False


def register() -> None:
    """Make ``maskwright`` a backend of the vLLM in this process. Further calls change nothing.

    vLLM calls it in each of its processes (entry point group ``vllm.general_plugins``).

    Raises: MissingExtraError if vLLM is not installed.
    """
    global _has_registered
    with _lock:
        if _has_registered:
            return
        try:
            import vllm
        except ImportError as error:
            raise MissingExtraError(
                "vLLM is not installed: pip install 'maskwright[vllm]', or install maskwright where vLLM is"
            ) from error
        try:
            places = _places()
        except (ImportError, AttributeError, KeyError) as error:
            version = getattr(vllm, "__version__", "?")
            _logger.error(
                "vLLM %s is not as maskwright expects, so %r is not registered as a backend: %s", version, NAME, error
            )
            return
        for change in places:
            change()
        show_metrics()
        log_as_vllm_does()
        _has_registered = True


def log_as_vllm_does() -> None:
    """What is logged goes where vLLM's own lines go, unless handlers are there already."""
    ours, theirs = logging.getLogger("maskwright"), logging.getLogger("vllm")
    if not ours.handlers and theirs.handlers:
        ours.handlers, ours.propagate = list(theirs.handlers), theirs.propagate
        ours.setLevel(theirs.level)


def _places() -> list[Callable[[], None]]:
    """What is to be changed, all of it looked up before anything is."""
    import vllm.config.structured_outputs as configuration
    from pydantic.dataclasses import rebuild_dataclass
    from vllm.sampling_params import SamplingParams
    from vllm.v1.engine.input_processor import InputProcessor
    from vllm.v1.structured_output import StructuredOutputManager as Manager
    from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

    config = configuration.StructuredOutputsConfig
    named = get_args(configuration.StructuredOutputsBackend)
    for place in (config.__annotations__, config.__dataclass_fields__, config.__pydantic_fields__):
        place["backend"]

    def take_name() -> None:
        names = Literal[(*named, NAME)]  # type: ignore[valid-type]
        configuration.StructuredOutputsBackend = names
        config.__annotations__["backend"] = names
        config.__dataclass_fields__["backend"].type = names
        config.__pydantic_fields__["backend"].annotation = names
        rebuild_dataclass(config, force=True)

    def take_classes() -> None:
        StructuredOutputBackend.register(MaskwrightBackend)
        StructuredOutputGrammar.register(MaskwrightGrammar)

    wrappers = (
        (InputProcessor, "__init__", _processor_init),
        (SamplingParams, "_validate_structured_outputs", _validate),
        (Manager, "__init__", _manager_init),
        (Manager, "grammar_init", _grammar_init),
        (Manager, "_create_grammar", _create_grammar),
    )
    changes: list[Callable[[], None]] = [] if NAME in named else [take_name]
    changes.append(take_classes)
    changes += [functools.partial(_wrap, cls, name, getattr(cls, name), made) for cls, name, made in wrappers]
    return changes


def _wrap(cls: Any, name: str, original: Callable[..., Any], make: Callable[..., Callable[..., Any]]) -> None:
    """Put a function around a method, or a module's function, once."""
    if not hasattr(original, _MARK):
        found = functools.wraps(original)(make(original))
        setattr(found, _MARK, True)
        setattr(cls, name, found)


def _is_ours(config: Any) -> bool:
    return getattr(config, "backend", None) == NAME


def _processor_init(original: Callable[..., Any]) -> Callable[..., Any]:
    """The process that takes requests learns the settings: validation is not told of them."""

    def init(self: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        original(self, vllm_config, *args, **options)
        if _is_ours(vllm_config.structured_outputs_config):
            settings = read_settings(getattr(vllm_config, "additional_config", None))
            setattr(vllm_config.structured_outputs_config, _SETTINGS, settings)
            leave_tags_to_us()

    return init


def leave_tags_to_us() -> None:
    """Keep vLLM's API server from asking xgrammar about each structural tag, whatever the backend.

    xgrammar, which is given no tokenizer there, refuses tags that name tokens and patterns that it
    does not read, without a reason. What is no tag at all stays refused. An engine without an API
    server has not loaded the module.
    """
    protocol = sys.modules.get(_PROTOCOL)
    if protocol is None:
        return
    original = getattr(protocol, "validate_structural_tag_payload", None)
    try:
        from vllm.sampling_params import check_json_nesting
    except ImportError:
        check_json_nesting = None
    if original is None or check_json_nesting is None:
        _logger.warning("this vLLM shows structural tags to xgrammar first, and refuses what it does not read")
        return
    _wrap(protocol, "validate_structural_tag_payload", original, functools.partial(_tag_payload, check_json_nesting))


def _tag_payload(check_nesting: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def validate(payload: Any, *, parameter: str) -> None:
        if not payload or not isinstance(payload, str | Mapping):
            original(payload, parameter=parameter)
        elif isinstance(payload, str):
            check_nesting(payload, structural_tag=True)

    return validate


def _manager_init(original: Callable[..., Any]) -> Callable[..., Any]:
    """The backend is made with the manager, so that what is wrong with settings ends the start."""

    def init(self: Any, vllm_config: Any, *args: Any, **options: Any) -> None:
        original(self, vllm_config, *args, **options)
        if _is_ours(vllm_config.structured_outputs_config) and getattr(self, "tokenizer", None) is not None:
            _make_backend(self)

    return init


def _make_backend(manager: Any) -> None:
    config = manager.vllm_config
    manager.backend = MaskwrightBackend(
        config, tokenizer=manager.tokenizer, vocab_size=config.model_config.get_vocab_size()
    )
    manager.backend_name = NAME


def _grammar_init(original: Callable[..., Any]) -> Callable[..., Any]:
    def grammar_init(self: Any, request: Any) -> None:
        if (
            self.backend is None
            and request.structured_output_request is not None
            and _is_ours(self.vllm_config.structured_outputs_config)
        ):
            _make_backend(self)
        original(self, request)

    return grammar_init


def _create_grammar(original: Callable[..., Any]) -> Callable[..., Any]:
    """The request's options come to the backend; vLLM's own call has the constraint alone."""

    def create(self: Any, request: Any) -> Any:
        backend = self.backend
        if not isinstance(backend, MaskwrightBackend):
            return original(self, request)
        struct = request.structured_output_request
        kind, spec = struct.structured_output_key
        params = request.sampling_params
        stops = params.all_stop_token_ids if params is not None else None
        try:
            grammar = backend.compile_grammar(kind, spec, stops, struct.params)
        except MaskwrightError as error:
            _logger.warning("request %s is refused: %s", request.request_id, error)
            raise
        reserve = backend.settings.close_early
        if reserve and isinstance(grammar, MaskwrightGrammar):
            grammar.keep_budget(request, self.vllm_config.model_config.max_model_len, reserve)
        return grammar

    return create


def _validate(original: Callable[..., Any]) -> Callable[..., Any]:
    """A request is checked where it comes in."""

    def validate(self: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
        if config is None or self.structured_outputs is None or not _is_ours(config):
            original(self, model_config, config, tokenizer)
            return
        from vllm.exceptions import VLLMValidationError

        if getattr(model_config, "is_diffusion", False):
            raise VLLMValidationError(
                "maskwright: structured outputs need a model that writes from left to right; this one does not"
            )
        if tokenizer is None:
            raise VLLMValidationError(
                "maskwright: structured outputs need a tokenizer; start the server without skip_tokenizer_init"
            )
        params = self.structured_outputs
        named = params._backend
        if named and named != NAME:
            raise VLLMValidationError(
                f"maskwright: the request names the backend {named!r}, but the server has {NAME!r}; leave it out"
            )
        settings = getattr(config, _SETTINGS, None)
        try:
            spec = check_params(
                params,
                config,
                read_settings() if settings is None else settings,
                lambda: _vocabulary(tokenizer, model_config),
            )
        except MaskwrightError as error:
            raise VLLMValidationError(f"maskwright: {error}", parameter="structured_outputs") from error
        params._backend = NAME
        if params.json is not None and not isinstance(params.json, str):
            # as text from here on, also for the caller: vLLM ends where it cannot pickle a deeply
            # nested dict, and cannot write integers of more than 64 bits
            params.json = spec

    return validate


def check_params(
    params: Any, config: Any, settings: ServerSettings, vocabulary: Callable[[], Vocabulary] | None = None
) -> str:
    """Check what a request asks for. In a hybrid server xgrammar may take what is refused here.

    Returns the constraint's text, that of JSON where it is a schema.

    params : a `StructuredOutputsParams`. config : the engine's `StructuredOutputsConfig`.
    vocabulary : returns the server's; see `RequestChecker.check`.

    Raises: MaskwrightError if the request is refused.
    """
    from vllm.v1.structured_output.request import get_structured_output_key

    if params.json_object is False:
        raise MaskwrightError("json_object is false; leave structured_outputs out for a text without a constraint")
    try:
        kind, spec = get_structured_output_key(params)
    except (TypeError, ValueError, RecursionError) as error:
        raise MaskwrightError(f"the constraint cannot be written as JSON: {error}") from error
    name = str(kind.name).lower()
    try:
        names = tuple(name for name, _ in settings.stores)
        checker = _checker(names, settings.limits, settings.strict_keywords, settings.workers)
        options = options_of(name, params, config, settings)
        checker.check(checker.reader.request(name, spec, options), vocabulary)
    except MaskwrightError as error:
        if not settings.hybrid:
            metrics().count("refusals", cause=type(error).__name__)
            raise
        from vllm.exceptions import VLLMValidationError

        try:
            valid_for_xgrammar(params)
        except (ValueError, VLLMValidationError) as other:
            raise MaskwrightError(f"{error}; and xgrammar, which was asked next, says: {other}") from other
    return str(spec)


_known: list[tuple[Any, Vocabulary]] = []


def _vocabulary(tokenizer: Any, model_config: Any) -> Vocabulary:
    """The vocabulary that the engine has, in the process that takes requests; made once.

    Raises: as `vocabulary_of`.
    """
    with _lock:
        if not _known or _known[0][0] is not tokenizer:
            _known[:] = [(tokenizer, vocabulary_of(tokenizer, model_config, model_config.get_vocab_size()))]
        return _known[0][1]


@functools.cache
def _checker(stores: tuple[str, ...], limits: RequestLimits, is_strict: bool, workers: int) -> RequestChecker:
    """The checker of this process for a server's settings."""
    found = RequestChecker(RequestReader(stores, limits, is_strict), workers=workers)
    found.start()
    return found
