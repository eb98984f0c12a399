"""Which schemas of the evaluation data are refused, by reason: SchemaStore, and all drafts of the JSON-Schema-Test-Suite.

    python reports/bench/schema_refusals.py [--most N]

Schemas are read with the default options (`build_graph`), those of the suite in their draft; nothing is compiled for a vocabulary. Drafts
before 4 are left out. Prints the counts, and up to N schemas of each reason.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

from common import add_data, has_records, shared_records

from maskwright.analysis.errors import MaskwrightError
from maskwright.analysis.schema.graph import build_graph

DRAFTS = {"draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020}


def refusals(name: str) -> tuple[int, dict[str, list[str]]]:
    """The number of schemas of a file, and those that are refused by reason: its beginning, without names."""
    n, found = 0, defaultdict(list)
    for record in shared_records(f"jsonschema/{name}"):
        draft = record.get("draft", "draft2020-12")
        if draft not in DRAFTS:
            continue
        n += 1
        try:
            build_graph(record["schema"], default_draft=DRAFTS[draft])
        except MaskwrightError as error:
            reason = re.sub(r"'[^']*'", "...", str(error).partition(": ")[2]).partition(";")[0]
            found[reason[:100]].append(record["id"])
    return n, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=3, help="schemas to name for each reason")
    add_data(parser)
    most = parser.parse_args().most
    names = [name for name in ("json_schema_test_suite", "schemastore") if has_records(f"jsonschema/{name}")]
    for name in names or ["schemastore"]:
        n, found = refusals(name)
        print(f"{name}: {n} schemas, {sum(map(len, found.values()))} refused")
        for reason, schemas in sorted(found.items(), key=lambda pair: -len(pair[1])):
            print(f"  {len(schemas):4} {reason}: {', '.join(schemas[:most])}")


if __name__ == "__main__":
    main()
