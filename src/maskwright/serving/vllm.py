"""maskwright as a structured output backend of vLLM.

    vllm serve MODEL --structured-outputs-config.backend maskwright

An installed maskwright is found by vLLM itself. `LLM` looks at its configuration before it loads
plug-ins, so import this module first:

    import maskwright.serving.vllm
    llm = LLM(MODEL, structured_outputs_config={"backend": "maskwright"})

Without vLLM the module can be imported, and does nothing. See docs/serving-vllm.md.
"""

from __future__ import annotations

from importlib.util import find_spec

from maskwright.serving.vllm_backend import MaskwrightBackend, MaskwrightGrammar
from maskwright.serving.vllm_plugin import register

if find_spec("vllm") is not None:
    register()

__all__ = ["MaskwrightBackend", "MaskwrightGrammar", "register"]
