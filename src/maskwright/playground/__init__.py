"""How does a grammar behave? A local page to try one out.

In: what a browser on this machine asks for (`server`). Out: one page, and answers in JSON: masks,
explanations, endings, findings, completions (`answers`). Worker processes make the answers
(`pool`), so that no grammar can take the server down.
"""

from maskwright.playground.server import PlaygroundServer

__all__ = ["PlaygroundServer"]
