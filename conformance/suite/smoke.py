"""The set ``smoke``: the 15 scenarios of each protocol that find most, for a first look at a client.

What a scenario finds are the mutants that it fails (``kills.json``), the root causes that it shows in stock
clients (``ci/known``), and the findings that name it (``docs/findings``). One after the other is taken
that finds most of what none before it has found. All of them are MUST, so what they find the gate finds too.
A scenario that keeps any client busy for more than a few seconds is not among them: how long each takes is
in the report of ``ci/conform``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.clients.adapters.registry import bundled
from conformance.clients.mutants.kills import known_kills
from conformance.findings import findings
from conformance.known.files import read
from conformance.results import Verdict, load
from conformance.suite.load import all_scenarios, joined, written
from conformance.suite.scenario import Key, Scenario
from fakebrokers.protocol import find_protocol

KNOWN = Path(__file__).parents[2] / "ci" / "known"
ROWS = 15
SLOW_S = 4.0  #: of a whole smoke test's ten


def finds(clients: Mapping[str, Sequence[str]]) -> dict[Key, set[tuple[str, ...]]]:
    """What each scenario finds.

    Args:
        clients: The protocols of each bundled client.
    """
    found: dict[Key, set[tuple[str, ...]]] = defaultdict(set)
    for key, mutants in known_kills().items():
        found[key] |= {("mutant", name) for name in mutants}
    for path in sorted(KNOWN.glob("*.toml")):
        for row in read(path).rows:
            if row.verdict is not Verdict.FAIL:
                continue
            shown = [key for key in found if row.rows and row.covers(row.rule, key)]
            for key in [row.key] if row.id else shown:
                found[key].add(("cause", path.stem, row.defect.id))
    for finding in findings():
        for key, seen in found.items():
            if key[0] in finding.scenarios and key[1] in clients.get(finding.client, ()):
                seen.add(("finding", finding.client, finding.title))
    return found


def cover(rows: Iterable[Key], found: Mapping[Key, set[tuple[str, ...]]], count: int = ROWS) -> list[Key]:
    """So many rows that find most together: always the one that adds most, of equals the one that finds most
    by itself, then the first."""
    left, seen, chosen = list(rows), set[tuple[str, ...]](), list[Key]()
    while left and len(chosen) < count:
        best = max(left, key=lambda key: (len(found[key] - seen), len(found[key])))
        left.remove(best)
        chosen.append(best)
        seen |= found[best]
    return chosen


def computed(scenarios: Sequence[Scenario], slow: Sequence[str]) -> dict[str, list[str]]:
    """The rows of the file: by protocol, and by variant where there are any.

    Where a client may be of one of several transporters, those of the first count for all.
    """
    found = finds({client.name: client.protocols for client in bundled()})
    fit = [
        item.key
        for item in scenarios
        if item.level == "MUST" and not item.soak and not item.alone and joined(*item.key) not in slow
    ]
    rows = {}
    for protocol, variant in sorted({(key[1], variant) for key in fit for variant in ("", key[2])}):
        others = find_protocol(protocol).variants[1:] if not variant else ()
        pool = [key for key in fit if key[1] == protocol and variant in ("", key[2]) and key[2] not in others]
        chosen = cover(pool, found)
        rows[joined(protocol, variant)] = [joined(key[0], key[2]) for key in pool if key in chosen]
    return rows


def slow_in(reports: Iterable[Path]) -> list[str]:
    """The scenarios that keep some client busy for long, even in the report in which it was quickest."""
    quickest: dict[tuple[str, str], float] = {}
    for run in (load(path) for report in reports for path in sorted(report.glob("*/results.json"))):
        for row in run.results:
            of = run.client, joined(*row.key)
            quickest[of] = min(row.seconds, quickest.get(of, row.seconds))
    return sorted({name for (_, name), seconds in quickest.items() if seconds > SLOW_S})


def document(reports: Iterable[Path] = ()) -> dict[str, Any]:
    """What ``smoke.json`` holds. Without reports, what was slow stays what is slow."""
    slow = slow_in(reports) or written()["slow"]
    return {"slow": slow, "rows": computed(all_scenarios(), slow)}
