"""Texts that say why nothing can come next: `Matcher` and `Batch` are such."""

from __future__ import annotations

from maskwright.decoding.engine.texts import Texts


class DeadEndTexts(Texts):
    """Texts whose errors at a dead end say who is at fault: grammar or vocabulary."""

    def _dead_end(self, slot: int) -> str:
        from maskwright.decoding.endings.ending import is_completable  # see `Matcher`

        where = f" in slot {slot}" if self.size > 1 else ""
        grammar = self.store.grammar.name
        if self._can_end(slot):
            return (
                f"the text{where} is complete under grammar {grammar} and no token can come behind it, but vocabulary "
                f"{self.store.vocabulary.name} has no end-of-text token to say so: ask is_accepting before fill, or give the vocabulary one"
            )
        fact = (
            f"no token of vocabulary {self.store.vocabulary.name} can come next{where}, and the text is not complete under grammar "
            f"{grammar}."
        )
        allowed = bytes(byte for byte in range(256) if self._reads(slot, bytes([byte])))
        completable = is_completable(self, slot)
        if completable is False or not allowed:
            return (
                f"{fact} The grammar is at fault, not the vocabulary: no bytes at all complete this text. `maskwright lint` says where it "
                "leads into dead ends, and what to do"
            )
        wanted = f"The grammar allows the bytes {allowed[:20]!r} next, but no token that begins with one of them is legal: use"
        if completable:
            return f"{fact} {wanted} a vocabulary that has them, or a grammar that does not need them"
        return f"{fact} {wanted} a vocabulary that has them; or the grammar leads into a dead end, which `maskwright lint` may show"
