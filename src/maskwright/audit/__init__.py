"""Which tokens does another engine allow wrongly, or refuse wrongly?

In: an engine, a grammar, a corpus. Out: an `AuditReport`.

The engine under audit runs in a process of its own (`host`), under any Python that has it.
`engines` knows how to drive it. `run` reads the corpus with both engines and compares each mask
with the exact one. `compare` says which terminals a token spells. `shrink` makes the texts that
show a difference as short as possible.

Of a JSON schema there is no corpus and no grammar: `schema_run` draws instances and changes them
(`mutations`), and compares whole texts with what the package jsonschema says.
"""

from maskwright.audit.remote import EngineFailed
from maskwright.audit.report import AuditReport, Difference, SchemaAuditReport, SchemaDifference
from maskwright.audit.run import audit
from maskwright.audit.schema_run import audit_schema

__all__ = [
    "AuditReport",
    "Difference",
    "EngineFailed",
    "SchemaAuditReport",
    "SchemaDifference",
    "audit",
    "audit_schema",
]
