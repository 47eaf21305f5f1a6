"""Judges the versions of a client side by side: what is stale of each, and again what differs between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec
from rich.console import Console

from conformance.clients.adapter.process import ProcessAdapter
from conformance.known.defects import KnownDefects
from conformance.results import Results
from conformance.suite.conform import SuiteRequest, conform_all
from conformance.suite.scenario import Key, Scenario
from conformance.versions.keep import Shelf, kept_row, stale
from conformance.versions.sources import Source, in_a_line
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.interrupts import Interrupts

#: A row that a release seems to have mended or broken is judged so often before and after.
LOOKS = 3


class Ask(msgspec.Struct, frozen=True):
    """A version that is to be judged.

    Attributes:
        command: What starts its adapter.
    """

    version: str
    command: list[str]
    rows: list[Scenario]


#: Gets each version as soon as it is judged, with its results or why there are none; from any thread.
OnDone = Callable[[str, Results | FakeBrokerError], None]
Judge = Callable[[Sequence[Ask], OnDone], None]


def side_by_side(
    client: str,
    protocol: str,
    console: Console,
    interrupts: Interrupts,
    parallel: int | None,
    foreseen: KnownDefects,
) -> Judge:
    """Judges versions with the suite. Ctrl-C raises KeyboardInterrupt once what there is was handed over.

    Args:
        foreseen: Failures like these need no second opinion, in whichever version.
    """

    def judge(asks: Sequence[Ask], on_done: OnDone) -> None:
        orders = {f"{client} {ask.version}": ask for ask in asks}
        conform_all(
            [
                SuiteRequest(
                    client=name,
                    protocol=protocol,
                    make_adapter=lambda command=ask.command: ProcessAdapter(command, protocol),  # type: ignore[misc]
                    rows=tuple(ask.rows),
                    foreseen=foreseen,
                )
                for name, ask in orders.items()
            ],
            console,
            interrupts,
            parallel=parallel,
            on_done=lambda order, results: on_done(orders[order.client].version, results),
            on_refused=lambda order, error: on_done(orders[order.client].version, error),
        )

    return judge


class Judging:
    """The versions of a client.

    Args:
        shelf: Where verdicts are kept; what is not stale there is not judged.
        judge: Runs rows of several versions.
        say: Gets a line before a version is made ready, which may take minutes, and on what became of it.
    """

    def __init__(
        self,
        shelf: Shelf,
        source: Source,
        wanted: Sequence[Scenario],
        judge: Judge,
        say: Callable[[str], object],
    ) -> None:
        self._shelf = shelf
        self._source = source
        self._wanted = wanted
        self._judge = judge
        self._say = say

    def of(self, versions: Sequence[str]) -> None:
        """Judge versions, given in order."""
        rows = {version: stale(self._shelf.load(version), self._wanted) for version in versions}
        self._run(rows, self._first)
        for _ in range(LOOKS - 1):
            doubted = dict(self._doubted(versions))
            if not any(doubted.values()):
                break
            self._say(f"looking again at {sum(map(len, doubted.values()))} rows that differ between versions")
            self._run(doubted, self._again)

    def _run(self, rows: dict[str, list[Scenario]], on_done: OnDone) -> None:
        asks = []
        for version, some in rows.items():
            if not some:
                continue
            if on_done == self._first:
                self._say(f"{version}: making it ready")
            try:
                asks.append(Ask(version, self._source.command(version), some))
            except UsageError as error:
                on_done(version, error)
        if asks:
            self._judge(asks, on_done)

    def _first(self, version: str, results: Results | FakeBrokerError) -> None:
        kept = self._shelf.load(version)
        if isinstance(results, FakeBrokerError):
            why = in_a_line(results)
            self._shelf.keep(kept.refusing(why))
            self._say(f"{version}: not judged: {why}")
            return
        rows = [kept_row(row) for row in results.results]
        self._shelf.keep(kept.having(rows))
        passed, failed = sum(row.passes for row in rows), sum(row.fails for row in rows)
        rest = len(rows) - passed - failed
        self._say(f"{version}: {len(rows)} rows: {passed} pass, {failed} fail, {rest} neither")

    def _again(self, version: str, results: Results | FakeBrokerError) -> None:
        if isinstance(results, FakeBrokerError):
            return
        kept = self._shelf.load(version)
        known = kept.by_key
        rows = [known[row.key].seen_again(row) for row in map(kept_row, results.results)]
        self._shelf.keep(kept.having(rows))
        for row in rows:
            if not row.steady:
                self._say(f"{version}: {row.id} is not steady")

    def _doubted(self, versions: Sequence[str]) -> Iterator[tuple[str, list[Scenario]]]:
        """Rows that one version passes and the next one fails, or the other way round, for both of them."""
        judged = [each for each in map(self._shelf.load, versions) if each.rows]
        changed: dict[str, set[Key]] = {each.version: set() for each in judged}
        for before, after in pairwise(judged):
            then = before.by_key
            for row in after.rows:
                old = then.get(row.key)
                if old is not None and ((old.fails and row.passes) or (old.passes and row.fails)):
                    changed[before.version].add(row.key)
                    changed[after.version].add(row.key)
        for each in judged:
            few = {row.key for row in each.rows if row.looks < LOOKS}
            yield each.version, [item for item in self._wanted if item.key in changed[each.version] & few]
