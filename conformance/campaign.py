"""The main job: every bundled client that can run here, analysed on Spark, in one report.

    python -m conformance.campaign --report report [--full]

`ci/conform` sets a machine up and calls this.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from conformance.cli.analyze import analyze_journals, tally
from conformance.cli.measured import FOLDER as COVERAGE
from conformance.cli.measured import coverage_option, deliver
from conformance.cli.replay import real_time_option
from conformance.clients.adapters.registry import Client, bundled
from conformance.clients.mutants.matrix import matrix
from conformance.clients.reference.registry import protocols
from conformance.coverage.languages import meter_of
from conformance.coverage.meter import CoverageMeter
from conformance.findings import write_findings
from conformance.pipeline.comparison import load_baseline
from conformance.printing import console_for_all, plain
from conformance.report import write_report
from conformance.report.runs import write_run_pages
from conformance.results import Results, Verdict, with_found
from conformance.search.fixed import Swept
from conformance.stages import FOLDER, STAGES, run_stage
from conformance.suite import clients as under_test
from conformance.suite.conform import SuiteRequest, conform_all
from conformance.suite.folder import keep_in, write_folder
from conformance.suite.load import all_scenarios, select
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import FakeBrokerError, UsageError
from fakebrokers.interrupts import Interrupts, interruptible

#: Our own clients prove the scenarios; they are judged only when they are named.
OWN = "reference-"


class ConformCampaign:
    """One run of the main job; what is done when it is cut short is in the report all the same.

    Args:
        real_time: No client runs in this process.
        coverage: What is executed of clients is measured, where they name what that is about.
    """

    def __init__(
        self,
        report: Path,
        which: str,
        parallel: int | None,
        seed: int,
        console: Console,
        *,
        real_time: bool = False,
        coverage: bool = False,
    ) -> None:
        self.report = report
        self.which = which
        self.parallel = parallel
        self.seed = seed
        self.console = console
        self.real_time = real_time
        self.coverage = coverage
        self.meters: dict[str, CoverageMeter] = {}
        self.done: list[Results] = []
        self.staged: dict[str, list[Swept]] = {}
        self.left_out: list[str] = []
        self.is_refused = False

    def without_nightly(self, clients: Sequence[Client]) -> list[Client]:
        """Those that a push can wait for; the others are named as left out."""
        late = [client.name for client in clients if client.nightly]
        self.left_out += [f"{name}: is judged with --full only" for name in late]
        return [client for client in clients if not client.nightly]

    def run(self, clients: Sequence[Client], interrupts: Interrupts) -> None:
        """Judge all clients side by side; each by the scenarios of each protocol it speaks."""
        standing = {item.protocol for item in all_scenarios()}
        orders = []
        for client in clients:
            for protocol in (p for p in client.protocols if p in standing):
                if client.runnable:
                    orders.append(self._order(client, protocol))
                else:
                    self.left_out.append(f"{client.name} ({protocol}): {'; '.join(client.missing)}")
        self.console.print(f"[bold]scenarios[/]: {len(orders)} clients side by side", highlight=False)
        orders.sort(key=lambda order: -_waits_s(order))  # what ends first fills the gaps of the others
        try:
            conform_all(
                orders,
                self.console,
                interrupts,
                parallel=self.parallel,
                on_done=lambda order, results: self._keep(results, order.protocol),
                on_refused=self._refuse,
            )
        finally:
            self.done.sort(key=lambda results: results.client)

    def _order(self, client: Client, protocol: str) -> SuiteRequest:
        known = FOLDER / f"{client.name}.toml"
        meter = self._meter(client, protocol)  # before the library is imported
        who = under_test.speaking(client if meter is None else meter.client, protocol)
        return SuiteRequest(
            client=client.name,
            protocol=protocol,
            make_adapter=who.make,
            here=None if self.real_time else who.here,
            which=self.which,
            expect=known if known.exists() else None,
            seed=self.seed,
            journal=self.report / "journal",
            keep=keep_in(self.report / f"{client.name}-{protocol}"),
            parallel=self.parallel,
            meter=meter,
        )

    def _meter(self, client: Client, protocol: str) -> CoverageMeter | None:
        if not self.coverage:
            return None
        if client.name not in self.meters:
            try:
                meter = meter_of(client, self.report / f"{client.name}-{protocol}" / COVERAGE)
            except UsageError as error:
                self.left_out.append(f"coverage: {error}")
                return None
            self.meters[client.name] = meter
        return self.meters[client.name]

    def _refuse(self, order: SuiteRequest, error: FakeBrokerError) -> None:
        self.is_refused |= isinstance(error, UsageError)  # such as an expectation file of another version
        self.left_out.append(f"{order.client} ({order.protocol}): {error}")

    def _keep(self, results: Results, protocol: str) -> None:
        self.done.append(results)
        write_folder(results, self.report / f"{results.client}-{protocol}")
        name = f"{results.client} {results.client_version} · {protocol}"
        self.console.print(f"   {name}: {_sentence(results)}", highlight=False)

    def run_stages(self, clients: Sequence[Client]) -> None:
        """The fixed lists of sweep and chaos, see `conformance.stages`."""
        for stage in STAGES:
            refused: list[str] = []
            self.staged[stage.name] = run_stage(
                stage,
                clients,
                self.report,
                self.console,
                refused,
                real_time=self.real_time,
                meters=self.meters,
            )
            self.left_out += refused
            self.is_refused |= bool(refused)  # such as an expectation file of another version
            self._keep_found(stage.name)

    def _keep_found(self, stage: str) -> None:
        """Add what a stage has found to the results of its clients, too."""
        found = {(each.client, each.protocol): each.reported(stage) for each in self.staged[stage]}
        for number, results in enumerate(self.done):
            protocol = results.results[0].protocol if results.results else ""
            if rows := found.get((results.client, protocol)):
                self.done[number] = with_found(results, rows)
                write_folder(self.done[number], self.report / f"{results.client}-{protocol}")

    def analyze(
        self, master: str | None, baseline: str | None = None, before: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """The journals of all runs, on Spark. Says why, if that cannot be done here.

        Args:
            baseline: What the earlier analysis is called that the report compares with.
            before: What it says.
        """
        self.console.print("[bold]analysis on Spark[/]", highlight=False)
        try:
            summary = analyze_journals(
                (self.report,), self.report / "analysis", master=master, baseline=baseline, before=before
            )
        except FakeBrokerError as error:
            self.left_out.append(f"analysis on Spark: {error}")
            return None
        allowed = summary["allowed"]
        found = "; ".join(f"{name} {tally(n, allowed[name])}" for name, n in summary["anomalies"].items())
        records = f"{summary['rows']} records of {summary['runs']} runs in {summary['seconds']:.1f} s"
        if summary["broken_off"]:
            records += f", {summary['broken_off']} of them broken off"
        self.console.print(f"   {records}: {found or 'no anomalies'}", highlight=False)
        for line in summary.get("changed", ()):
            self.console.print(f"   {plain(line)}", markup=False, highlight=False)
        document: dict[str, Any] = json.loads((self.report / "analysis" / "analysis.json").read_bytes())
        return document

    def prove(self, clients: Sequence[Client]) -> dict[str, Any]:
        """Which mutants each scenario catches, for the coverage of requirements."""
        self.console.print(
            "[bold]proofs[/]: the scenarios against the mutants of our own clients", highlight=False
        )
        spoken = {protocol for client in clients for protocol in client.protocols} & set(protocols())
        document = matrix(
            [item for item in all_scenarios() if item.protocol in spoken and not item.soak]
        ).document()
        rows = document["scenarios"]
        proven = sum(bool(row["killed_by"]) for row in rows)
        self.console.print(f"   {proven} of {len(rows)} scenarios catch a mutant", highlight=False)
        return document

    def finish(self, analysis: dict[str, Any] | None, mutants: dict[str, Any] | None, note: str = "") -> Path:
        """Write the report; returns its path."""
        for meter in self.meters.values():
            deliver(meter, self.console)
        words = [note, *(f"Not run here: {each}." for each in self.left_out)]
        write_findings(self.done, self.report)
        write_run_pages(self.done, self.report)
        return write_report(
            self.report,
            self.done,
            analysis=analysis,
            mutants=mutants,
            staged=self.staged,
            note=" ".join(word for word in words if word),
        )

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all clients: known failures do not count, a broken harness does."""
        if self.is_refused:
            return ExitCode.USAGE
        codes = {results.exit_code for results in self.done}
        found = [each for stage in self.staged.values() for each in stage if each.new]
        codes |= {ExitCode.HARNESS if each.is_broken else ExitCode.FAILED for each in found}
        order = (ExitCode.HARNESS, ExitCode.FAILED, ExitCode.INCONCLUSIVE)
        otherwise = ExitCode.OK if codes else ExitCode.INCONCLUSIVE  # nobody was judged
        return next((code for code in order if code in codes), otherwise)


def _waits_s(order: SuiteRequest) -> float:
    """How long the scenarios of an order may take in all."""
    chosen = select(all_scenarios(), protocol=order.protocol, which=order.which)
    return sum(item.timeout_s for item in chosen)


def _sentence(results: Results) -> str:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in results.summary.items())
    known = sum("expected" in row.tags for row in results.results)
    return f"{counts}; {known} of them as expected; {results.seconds:.0f} s"


#: Broken where it helps, so that the table fits a terminal of 80 columns.
HEADINGS = {
    Verdict.NON_STRICT: "non-\nstrict",
    Verdict.UNSUPPORTED: "unsup-\nported",
    Verdict.PROFILE: "other\nprofile",
    Verdict.INCONCLUSIVE: "incon-\nclusive",
    Verdict.HARNESS_ERROR: "harness\nerror",
}


def verdicts(done: Sequence[Results]) -> Table:
    """Clients against verdicts."""
    table = Table(title="verdicts", title_justify="left", pad_edge=False, padding=0, box=box.SIMPLE_HEAD)
    table.add_column("client", min_width=18)
    table.add_column("protocol", no_wrap=True)
    shown = [v for v in Verdict if any(r.verdict is v for results in done for r in results.results)]
    for verdict in shown:
        table.add_column(HEADINGS.get(verdict, verdict.value), justify="right")
    for results in done:
        protocol = results.results[0].protocol if results.results else ""
        counts = [str(results.summary.get(verdict.value, "")) for verdict in shown]
        table.add_row(f"{results.client} {results.client_version}", protocol, *counts)
    return table


@click.command()
@click.option(
    "--report", type=click.Path(file_okay=False, path_type=Path), default=Path("report"), show_default=True
)
@click.option("--full", is_flag=True, help="All scenarios, not only the MUST ones; and their proofs.")
@click.option(
    "--client", "names", multiple=True, metavar="NAME", help="Only this client; may be given again."
)
@click.option(
    "-n",
    "parallel",
    type=click.IntRange(1, 64),
    help="Scenarios at once; as many as the machine carries, unless given.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the scenarios' random decisions."
)
@click.option("--master", metavar="URL", help="Spark's master; local[*], unless given.")
@click.option("--baseline", metavar="DIR", help="An earlier report: this one shows what has changed since.")
@real_time_option
@coverage_option
def main(
    report: Path,
    full: bool,
    names: tuple[str, ...],
    parallel: int | None,
    seed: int,
    master: str | None,
    baseline: str | None,
    real_time: bool,
    coverage: bool,
) -> None:
    """Judge every bundled client that can run here, and write one report.

    Exit code: the worst of all clients; failures that are listed in ci/known do not count.
    """
    console = console_for_all()
    begun = time.monotonic()
    try:  # now: the folder of the report may be the one that is emptied
        reserve(report)
        before = load_baseline(baseline) if baseline is not None else None
    except UsageError as error:
        console.print(str(error), markup=False)
        sys.exit(ExitCode.USAGE)
    which = "full" if full else "gate"
    campaign = ConformCampaign(
        _emptied(report), which, parallel, seed, console, real_time=real_time, coverage=coverage
    )
    clients = [c for c in bundled() if (c.name in names if names else not c.name.startswith(OWN))]
    if not full and not names:
        clients = campaign.without_nightly(clients)
    analysis: dict[str, Any] | None = None
    mutants: dict[str, Any] | None = None
    note = ""
    cut_by = 0
    with interruptible() as interrupts:
        try:
            campaign.run(clients, interrupts)
            campaign.run_stages(clients)
            analysis = campaign.analyze(master, baseline, before)
            mutants = campaign.prove(clients) if full else None
        except KeyboardInterrupt:
            cut_by = interrupts.exit_code
            note = "This run was cut short; the report holds what was done until then."
            console.print(f"\n{note}")
    path = campaign.finish(analysis, mutants, note)
    console.print(verdicts(campaign.done))
    for each in campaign.left_out:
        console.print(f"not run here: {each}", markup=False)
    console.print(f"{time.monotonic() - begun:.0f} s in all. Report: {path.resolve()}", highlight=False)
    sys.exit(cut_by or int(campaign.exit_code))


def _emptied(report: Path) -> Path:
    """The folder, without what an earlier campaign has left in it."""
    import shutil

    stale = [path.parent for path in report.glob("*/results.json")]
    for folder in (report / "journal", report / "analysis", *stale):
        shutil.rmtree(folder, ignore_errors=True)
    (report / "index.html").unlink(missing_ok=True)
    report.mkdir(parents=True, exist_ok=True)
    return report


if __name__ == "__main__":
    main()
