"""``fakebrokers conform``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape

from conformance.cli.completion import client_names, scenario_ids
from conformance.cli.folders import with_folders
from conformance.cli.measured import coverage_option, deliver, meter_for
from conformance.cli.replay import real_time_option
from conformance.printing import console_for_all
from conformance.results import Results
from conformance.suite.load import SETS
from conformance.suite.verdicts import was_executed
from fakebrokers.commands import ExitCode, reserve
from fakebrokers.errors import UsageError
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.clients.adapters.registry import Client
    from conformance.coverage.meter import CoverageMeter
    from conformance.suite.clients import ClientUnderTest
    from conformance.versions.differences import Differences

PROTOCOL = click.Choice(protocol_names())


@click.command("conform")
@click.option(
    "--client",
    metavar="NAME",
    shell_complete=client_names,
    help="A bundled client; `fakebrokers clients` lists them. Also NAME==VERSION, "
    "and several versions as NAME==VERSION,==VERSION: may one upgrade?",
)
@click.option("--adapter", metavar="CMD", help="The command of your own adapter.")
@click.option("--protocol", type=PROTOCOL, help="Needed only if the client has several.")
@click.option("--variant", metavar="V", help="Only this transporter, profile or server version.")
@click.option(
    "--set",
    "which",
    type=click.Choice(SETS),
    default="gate",
    show_default=True,
    help="Which scenarios: the 15 of a protocol that find most, all MUST, all, or only those that take long.",
)
@click.option(
    "--target",
    metavar="URL",
    help="Run against this real broker, a URL or HOST:PORT; scenarios without broker-side faults.",
)
@with_folders
@click.option("--strict", is_flag=True, help="SHOULD counts like MUST.")
@click.option(
    "--expect",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Known failures, with reasons.",
)
@click.option(
    "--report", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write a report here."
)
@click.option(
    "--traces",
    is_flag=True,
    help="Keep every byte in the report's journals, credentials too, for `analyze --rules`.",
)
@click.option(
    "--baseline",
    metavar="DIR",
    help="An earlier report: the pages of this one show what changed; `gate` makes an exit code of it.",
)
@click.option(
    "--uses",
    metavar="ROWS",
    help="With several versions: ids, sections and rules that you rely on, such as RMQS-3,NET-2.01; "
    "nothing else stops the upgrade.",
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
@real_time_option
@coverage_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.argument("ids", nargs=-1, metavar="[ID ...]", shell_complete=scenario_ids)
def conform_command(
    client: str | None,
    adapter: str | None,
    protocol: str | None,
    variant: str | None,
    which: str,
    target: str | None,
    strict: bool,
    expect: Path | None,
    report: Path | None,
    traces: bool,
    baseline: str | None,
    uses: str | None,
    parallel: int | None,
    seed: int,
    real_time: bool,
    coverage: bool,
    as_json: bool,
    ids: tuple[str, ...],
) -> int:
    """Judge a client: report which requirements it meets.

    Scenarios run against it, one for each requirement.
    """
    from conformance.cli.versions import judge_versions, versions_of
    from conformance.suite.conform import CutShort, NothingExecuted

    if (client is None) == (adapter is None):
        raise UsageError("name the client: either --client NAME or --adapter CMD")
    if baseline is not None and report is None:
        raise UsageError("--baseline is for the pages of a report: add --report DIR")
    if traces and report is None:
        raise UsageError("--traces is for the journals of a report: add --report DIR")
    reserve(report)
    console = console_for_all(stderr=as_json)
    given: dict[str, Any] = {
        "protocol": protocol, "variant": variant, "which": "full" if ids else which, "ids": ids,
        "target": target, "strict": strict, "expect": expect, "seed": seed, "parallel": parallel,
        "traces": traces, "real_time": real_time,
    }  # fmt: skip
    names = versions_of(client) if client is not None else []
    relied = _relied_on(uses, len(names))
    if len(names) < 2:
        given["meter"] = meter_for(client, report) if coverage else None  # before its library is imported
        return _judge_one(client, adapter, report, baseline, console, given, as_json=as_json)
    if coverage:
        raise UsageError("--coverage is for a single version")
    if expect is not None or baseline is not None:
        raise UsageError("several versions are compared with each other: leave out --expect and --baseline")

    def judge(name: str, folder: Path | None) -> Results:
        try:
            results = _run(name, None, folder, console, given)
        except NothingExecuted as nothing:
            raise UsageError(f"{name}: nothing was executed: {nothing}") from None
        except CutShort as cut:
            _deliver(cut.results, folder, console, {}, as_json=False, is_shown=False)
            console.print(f"[bold yellow]{cut}[/]: the versions are not compared", highlight=False)
            raise SystemExit(cut.results.exit_code) from None
        _deliver(results, folder, console, {}, as_json=False, is_shown=False)
        return results

    return judge_versions(
        names,
        judge,
        report,
        console,
        as_json=as_json,
        uses=relied,
        differ=None if report is None or target is not None else _differ(protocol, seed),
    )


def _differ(protocol: str | None, seed: int) -> Callable[[str, str], Differences]:
    from conformance.cli.replay import protocol_of
    from conformance.versions.differences import differences

    return lambda older, newer: differences(older, newer, protocol_of(newer, protocol), seed)


def _relied_on(uses: str | None, versions: int) -> list[str]:
    """The words of ``--uses``. `UsageError` for one that names nothing, or with a single version."""
    from conformance.rules.sentences import rules
    from conformance.suite.load import requirements
    from fakebrokers.errors import instead_of

    if uses is None:
        return []
    if versions < 2:
        raise UsageError("--uses is for several versions: --client NAME==VERSION,==VERSION")
    ids = requirements()
    words = {*ids, *(each.partition(".")[0] for each in ids), *(each.partition("-")[0] for each in ids)}
    relied = [each.strip() for each in uses.split(",")]
    for each in relied:
        if each.upper() not in words and each not in rules():
            raise UsageError(f"--uses: there is no row, section or rule {each!r}{instead_of(each, words)}")
    return relied


def _run(
    client: str | None, adapter: str | None, report: Path | None, console: Console, given: Mapping[str, Any]
) -> Results:
    """Run the scenarios; `given` has what the command line says of them, by the names of `SuiteRequest`, and
    whether the client is to be in processes."""
    from conformance.suite.conform import SuiteRequest, conform
    from conformance.suite.folder import keep_in

    meter = given.get("meter")
    who = _who(client, adapter, given["protocol"], None if meter is None else meter.client)
    given = {**given, "protocol": who.protocol}
    real_time = given.pop("real_time")
    if who.why_process and not real_time:
        console.print(f"in processes of its own, in real time: {who.why_process}", markup=False)
    order = SuiteRequest(
        **given,
        client=who.name,
        who=who.options,
        make_adapter=who.make,
        here=None if real_time else who.here,
        journal=None if report is None else report / "journal",
        keep=None if report is None else keep_in(report),
    )
    return conform(order, console)


def _who(
    client: str | None, adapter: str | None, protocol: str | None, measured: Client | None = None
) -> ClientUnderTest:
    from conformance.suite import clients

    if client is None:
        return clients.command(adapter or "", protocol)
    return clients.bundled(client, protocol, measured=measured)


def _judge_one(
    client: str | None,
    adapter: str | None,
    report: Path | None,
    baseline: str | None,
    console: Console,
    given: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    """A single client in a single version; the exit code."""
    from conformance.suite.conform import CutShort, NothingExecuted

    who = _who(client, adapter, given["protocol"])
    # now: this run may write into the same folder
    pages = {"baseline": baseline, "before": _before(baseline, who.name, who.protocol, given["ids"])}
    meter = given["meter"]
    try:
        results = _run(client, adapter, report, console, given)
    except CutShort as cut:
        _deliver(cut.results, report, console, pages, as_json=as_json, meter=meter)
        console.print(f"[bold yellow]{cut}[/]: what had not ended by then is missing above", highlight=False)
        raise SystemExit(cut.results.exit_code) from None
    except NothingExecuted as nothing:
        console.print(f"[bold yellow]nothing was executed[/]: {escape(str(nothing))}", highlight=False)
        return ExitCode.INCONCLUSIVE
    _deliver(results, report, console, pages, as_json=as_json, meter=meter)
    if not any(map(was_executed, results.results)):
        console.print("[bold yellow]nothing was executed[/]: this is no verdict on the client")
    return results.exit_code


def _before(baseline: str | None, client: str, protocol: str, ids: Sequence[str]) -> Mapping[str, Any] | None:
    """What an earlier analysis says of these scenarios of this client."""
    if baseline is None:
        return None
    from conformance.pipeline.comparison import load_baseline, of_one_client

    asked = [word.upper() for word in ids] or None
    return of_one_client(load_baseline(baseline), client, protocol, asked)


def _deliver(
    results: Results,
    report: Path | None,
    console: Console,
    pages: Mapping[str, Any],
    *,
    as_json: bool,
    is_shown: bool = True,
    meter: CoverageMeter | None = None,
) -> None:
    """Write the report, if one is wanted, and print the results; `pages` says what `write_pages` is given."""
    from conformance.suite.console import print_results
    from conformance.suite.folder import write_folder, write_pages

    covered = None if meter is None else deliver(meter, console)
    if report is not None:
        write_folder(results, report)
        write_pages(results, report, **pages)
    if not is_shown:
        return
    if as_json:
        sys.stdout.write(contract_json(results, covered))
        return
    print_results(console, results)
    if report is not None:
        console.print(f"report: {report}", highlight=False)


def contract_json(results: Results, covered: Mapping[str, Any] | None = None) -> str:
    """The document of ``--json``: what scripts need, without diagrams and journals.

    Args:
        covered: What was executed of the client, where that was measured.
    """
    data = msgspec.to_builtins(results)
    data |= {} if covered is None else {"coverage": covered}
    kept = ("id", "protocol", "variant", "level", "verdict", "criterion", "tags", "seconds", "reason")
    data["results"] = [{key: row.get(key, "") for key in kept} for row in data["results"]]
    reported = ("rule", "protocol", "variant", "level", "verdict", "rows", "reason", "cause", "tags")
    data["rules"] = [{key: rule[key] for key in reported} for rule in data["rules"]]
    return json.dumps(data, indent=1) + "\n"
