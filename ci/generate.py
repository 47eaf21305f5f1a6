"""Writes every file, and every part of one, that is made from others.

    python -m ci.generate               writes what is not as it should be, and names it
    python -m ci.generate --check       only names it; exit code 1 if there is any
    python -m ci.generate REPORT ...    which scenarios are slow is taken from these reports of ci/conform

What takes runs of scenarios to find out is written by ``fakebrokers mutants --write``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci import addresses, fixtures, states
from conformance import results
from conformance.clients.adapter import schema as lines
from conformance.clients.adapter.reference import GUIDE_FILE, guide
from conformance.suite import smoke
from conformance.suite.load import SMOKE
from fakebrokers.faults.schema import plan_schema
from fakebrokers.files import by_rows
from fakebrokers.journal.rows import json_schema as journal_schema

TOP = Path(__file__).parents[1]

#: Files that are written as a whole, and what they hold.
DOCUMENTS: Mapping[str, Callable[[], Mapping[str, Any]]] = {
    "conformance/clients/adapter/schema.json": lines.schema,
    "conformance/results.schema.json": results.json_schema,
    "fakebrokers/faults/plan.schema.json": plan_schema,
    "fakebrokers/journal/schema.json": journal_schema,
}


def made(reports: Sequence[Path] = ()) -> dict[Path, str]:
    """The text of all of them."""
    texts = {TOP / path: by_rows(document()) for path, document in DOCUMENTS.items()}
    texts[SMOKE] = by_rows(smoke.document(reports))
    texts[GUIDE_FILE] = guide(_read(GUIDE_FILE))
    texts[states.PAGE] = states.page(_read(states.PAGE))
    texts[fixtures.PAGE] = fixtures.page(_read(fixtures.PAGE))
    for path in addresses.files():
        text = texts.get(path) or _read(path)
        texts[path] = addresses.with_addresses(text, is_yaml=path.suffix == ".yml")
    return texts


def stale(reports: Sequence[Path] = ()) -> dict[Path, str]:
    """Those that are not as they should be, with the text that they should have."""
    return {path: text for path, text in made(reports).items() if not path.exists() or _read(path) != text}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def main(*arguments: str) -> int:
    """Write them, or only look."""
    only_looks, reports = arguments == ("--check",), [Path(each) for each in arguments if each != "--check"]
    if wrong := [str(each) for each in reports if not each.is_dir()]:
        sys.stderr.write(f"expected --check alone, or folders of reports; got {wrong[0]}\n")
        return 64
    found = stale(reports)
    for path, text in found.items():
        if not only_looks:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(TOP)}\n")
    return 1 if only_looks and found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
