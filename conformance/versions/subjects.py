"""What a version is judged by: a row of the suite, a rule in the runs of rows, or a replay file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.process import ProcessAdapter
from conformance.results import Results, RowResult, Verdict
from conformance.run.case import Case
from conformance.search.replay import ReplayFile
from conformance.suite.conform import SuiteRequest, conform
from conformance.suite.load import all_scenarios, select
from conformance.suite.verdicts import was_executed
from conformance.versions.blame import is_adapters
from conformance.versions.search import Skipped
from conformance.versions.settle import Shown
from conformance.versions.sources import Source, in_a_line
from fakebrokers.errors import UsageError

Once = Callable[[str], Shown | Skipped]

TRIES = 3  #: of a row that is inconclusive


def the_row(id: str, protocol: str, variant: str | None) -> tuple[str, str]:
    """Id and variant of the one row that is meant. `UsageError` if it is none, or several."""
    rows = select(all_scenarios(), protocol=protocol, variant=variant, ids=(id,))
    if len(rows) == 1:
        return rows[0].id, rows[0].variant
    if len({row.id for row in rows}) == 1:
        which = ", ".join(row.variant or "none" for row in rows)
        raise UsageError(f"{id}: say with --variant which row of {protocol} it is: {which}")
    raise UsageError(f"{id}: expected one row, got {len(rows)}: {', '.join(row.id for row in rows[:5])} ...")


def by_row(source: Source, protocol: str, id: str, variant: str, seed: int = 0) -> Once:
    """Judges a version by a row; what the machine was too busy for is tried again."""

    def once(version: str) -> Shown | Skipped:
        for _ in range(TRIES):
            results = _suite(source, version, protocol, (id,), variant, seed)
            if isinstance(results, Skipped):
                return results
            row = results.results[0]
            if row.verdict is not Verdict.INCONCLUSIVE:
                break
        return of_row(row)

    return once


def of_row(row: RowResult) -> Shown | Skipped:
    """What the result of a row says. A failure was seen twice, and where runs differed, a third decided."""
    flaky = "flaky" in row.tags
    if is_adapters(row):
        return Skipped(f"its adapter: {row.reason}")
    if row.verdict is Verdict.FAIL:
        return Shown(2, int(flaky), row.reason, row.criterion)
    if was_executed(row):
        return Shown(int(flaky), 2 if flaky else 1)
    text = f"{row.verdict}: {row.reason}" if row.reason else str(row.verdict)
    return Skipped(text, passing=row.verdict is Verdict.INCONCLUSIVE)


def by_rule(
    source: Source, protocol: str, rule: str, ids: Sequence[str], variant: str | None, seed: int = 0
) -> Once:
    """Judges a version by a rule, in the runs of rows; without ids those of the set smoke.

    What the machine was too busy for is tried again.
    """

    def once(version: str) -> Shown | Skipped:
        shown: Shown | Skipped = Skipped("")
        for _ in range(TRIES):
            results = _suite(source, version, protocol, ids, variant, seed)
            if isinstance(results, Skipped):
                return results
            shown = of_rule(results, rule)
            if isinstance(shown, Shown):
                break
        return shown

    return once


def of_rule(results: Results, rule: str) -> Shown | Skipped:
    """What a run says of a rule."""
    if not any(map(was_executed, results.results)):
        return Skipped("none of the rows could be run")
    found = [each for each in results.rules if each.rule == rule]
    for each in found:
        if each.verdict is Verdict.FAIL:
            return Shown(2, 0, each.reason)  # it was seen in two runs of a row
    return Skipped(found[0].reason) if found else Shown(0, 1)


def _suite(
    source: Source, version: str, protocol: str, ids: Sequence[str], variant: str | None, seed: int
) -> Results | Skipped:
    try:
        command = source.command(version)
        order = SuiteRequest(
            client=source.name,
            protocol=protocol,
            make_adapter=lambda: ProcessAdapter(command, protocol),
            variant=variant,
            which="full" if ids else "smoke",
            ids=tuple(ids),
            seed=seed,
            parallel=1 if ids else None,
        )
        return conform(order, Console(quiet=True))
    except (AdapterFailed, UsageError) as error:
        return Skipped(in_a_line(error))


def by_replay(source: Source, file: ReplayFile[Any, Any], client: Callable[[list[str]], Any]) -> Once:
    """Judges a version by whether the run of a replay file shows one of the findings that the file names.

    Args:
        client: Makes the client of such files, of the command of an adapter.
    """

    def once(version: str) -> Shown | Skipped:
        try:
            command = source.command(version)
        except UsageError as error:
            return Skipped(in_a_line(error))
        case: Case = client(command).run(file.plan, **file.options)
        if case.harness:
            return Skipped(case.harness)
        shown, _ = file.judged(case)
        found = [f"{name}: {text}" for name, text in shown.items() if name in file.found]
        return Shown(1, 0, found[0]) if found else Shown(0, 1)

    return once
