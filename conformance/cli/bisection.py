"""``fakebrokers bisect``: the version of a client that changed a verdict."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from conformance.cli.completion import client_names, scenario_ids
from conformance.cli.replay import opened, protocol_of, workload_option
from conformance.printing import SafeConsole
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError
from fakebrokers.interrupts import interruptible
from fakebrokers.protocol import protocol_names

if TYPE_CHECKING:
    from conformance.versions.search import Bisection, Skipped, VersionOutcome
    from conformance.versions.sources import Source
    from conformance.versions.subjects import Once


@click.command("bisect")
@click.argument("what", nargs=-1, metavar="[ID|FILE]", shell_complete=scenario_ids)
@click.option("--client", metavar="NAME", shell_complete=client_names, help="A bundled client.")
@click.option(
    "--adapter", metavar="CMD", help="With --git: the command of your own adapter, run in the checkout."
)
@click.option("--good", metavar="V", help="The version to begin with; the oldest release, unless given.")
@click.option("--bad", metavar="V", help="The version to end with; the newest release, unless given.")
@click.option(
    "--git", "commits", metavar="GOOD..BAD", help="Commits of the repository here, instead of releases."
)
@click.option(
    "--build", default="", metavar="CMD", help="With --git: run this in the checkout of each commit first."
)
@click.option(
    "--rule", metavar="NAME", help="Judge by this rule, in the runs of the rows (of the set smoke)."
)
@click.option("--protocol", type=click.Choice(protocol_names()), help="Needed if the client speaks several.")
@click.option("--variant", metavar="V", help="The transporter, profile or server version of the row.")
@workload_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the row's random decisions.")
@click.option(
    "--runs",
    type=click.IntRange(1, 20),
    default=2,
    show_default=True,
    help="Of each version, at least; what differs between them is looked at more often.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def bisect_command(
    what: tuple[str, ...],
    client: str | None,
    adapter: str | None,
    good: str | None,
    bad: str | None,
    commits: str | None,
    build: str,
    rule: str | None,
    protocol: str | None,
    variant: str | None,
    workload: str,
    seed: int,
    runs: int,
    as_json: bool,
) -> int:
    """Find the version of a client that changed the verdict of a row, or of a replay file.

    Exit code 0: it is named; 1: the oldest and the newest version agree; 2: too little could be judged to
    name it.
    """
    from conformance.versions.search import Bisection

    _check(what, client, adapter, good, bad, commits, build, rule)
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    found = Bisection()
    with interruptible() as interrupts:
        try:
            with _source(client, adapter, commits, build, (good, bad)) as source:
                spoken = _protocol(what, client, protocol)
                name, once = _once(source, what, spoken, rule, variant, workload, seed)
                versions = _between(source.versions(), good, bad)
                _search(console, source, name, spoken, versions, once, runs, found)
        except KeyboardInterrupt as stopped:
            code = getattr(getattr(stopped, "results", None), "exit_code", interrupts.exit_code)
            console.print("cut short", markup=False)
            raise SystemExit(code) from None
    if as_json:
        click.echo(json.dumps(document(name, found), indent=1))
    else:
        _print(SafeConsole(highlight=False, soft_wrap=True), source.name, name, found)
    ends = (good, bad) if commits is None else (versions[0], versions[-1])
    return _code(found, ends)


def _check(
    what: Sequence[str],
    client: str | None,
    adapter: str | None,
    good: str | None,
    bad: str | None,
    commits: str | None,
    build: str,
    rule: str | None,
) -> None:
    """Raise `UsageError` for what does not go together."""
    if not what and rule is None:
        raise UsageError("say what to judge by: the id of a row, a replay file, or --rule NAME")
    if len(what) > 1 and rule is None:
        raise UsageError(f"expected one row or replay file, got {len(what)}: several go with --rule only")
    if commits is None:
        if client is None or adapter is not None or build:
            raise UsageError("say --client NAME; --adapter and --build go with --git")
    elif good is not None or bad is not None:
        raise UsageError("--git names both ends: leave out --good and --bad")
    elif (client is None) == (adapter is None):
        raise UsageError("--git: say which adapter: either --client NAME or --adapter CMD")
    if rule is not None:
        from conformance.rules.sentences import rules
        from fakebrokers.errors import instead_of

        if rule not in rules():
            raise UsageError(f"there is no rule {rule!r}{instead_of(rule, rules())}")


@contextmanager
def _source(
    client: str | None,
    adapter: str | None,
    commits: str | None,
    build: str,
    ends: Sequence[str | None],
) -> Iterator[Source]:
    from conformance.versions.sources import Checkout, Releases

    if commits is None:
        yield Releases(client or "", [end for end in ends if end is not None])
    else:
        with Checkout(commits, build, adapter, client) as checkout:
            yield checkout


def _protocol(what: Sequence[str], client: str | None, protocol: str | None) -> str:
    """The one that is asked for, that of the file, or the only one of the client."""
    if protocol is None and what and _is_file(what[0]):
        return str(opened(Path(what[0]), "")[0].protocol) if client is None else protocol_of(client, None)
    return protocol_of(client, protocol)


def _is_file(word: str) -> bool:
    return word.endswith(".json") or Path(word).is_file()


def _once(
    source: Source,
    what: Sequence[str],
    protocol: str,
    rule: str | None,
    variant: str | None,
    workload: str,
    seed: int,
) -> tuple[str, Once]:
    """What it is called, and what judges a version by it."""
    from conformance.versions.subjects import by_replay, by_row, by_rule, the_row

    if rule is not None:
        return rule, by_rule(source, protocol, rule, what, variant, seed)
    if not _is_file(what[0]):
        id, only = the_row(what[0], protocol, variant)
        return "/".join(filter(None, (id, only))), by_row(source, protocol, id, only, seed)
    path = Path(what[0])
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    file, _, kind = opened(path, workload)
    return path.name, by_replay(source, file, lambda command: kind(protocol, "", "", command))


def _between(versions: Sequence[str], good: str | None, bad: str | None) -> list[str]:
    """From one version to the other one. `UsageError` if one is not there, or nothing is between."""
    for option, end in (("--good", good), ("--bad", bad)):
        if end is not None and end not in versions:
            newest = ", ".join(versions[-5:])
            raise UsageError(f"{option}: there is no version {end}; the newest are {newest}")
    first = versions.index(good) if good is not None else 0
    last = versions.index(bad) if bad is not None else len(versions) - 1
    if first > last:  # what was mended is found as well
        first, last = last, first
    if first == last:
        raise UsageError("there is only one version: nothing can have changed")
    return list(versions[first : last + 1])


def _search(
    console: Console,
    source: Source,
    name: str,
    protocol: str,
    versions: Sequence[str],
    once: Once,
    runs: int,
    found: Bisection,
) -> None:
    """Search, and say on the way what is judged."""
    from conformance.versions.search import VersionOutcome, search
    from conformance.versions.settle import SettledJudge
    from conformance.versions.sources import refused

    settled = SettledJudge(once, runs)
    most = math.ceil(math.log2(len(versions))) + 2
    console.print(f"{name}: {len(versions)} versions of {source.name}, at most {most} to judge", markup=False)

    def judge(version: str) -> VersionOutcome | Skipped:
        with console.status(f"judging {version}"):
            outcome = settled.judge(version)
        if isinstance(outcome, VersionOutcome):
            console.print(f"{version}: {_word(outcome)}", markup=False)
        else:
            console.print(f"{version}: skipped: {outcome.reason}", markup=False)
        return outcome

    def cannot(version: str) -> str:
        with console.status(f"fetching {version}"):
            reason = refused(source, version, protocol)
        if reason:
            console.print(f"{version}: skipped: {reason}", markup=False)
        return reason

    search(versions, judge, cannot, found)


def _word(outcome: VersionOutcome) -> str:
    if outcome.steady:
        return f"{outcome.word}: {outcome.detail}" if outcome.detail else outcome.word
    return f"fails now and then, in {outcome.runs} runs: {outcome.detail}"


def document(name: str, found: Bisection) -> dict[str, Any]:
    """The document of ``--json``."""
    return {
        "id": name,
        "judged": [
            {
                "version": version,
                "verdict": each.word,
                "steady": each.steady,
                "runs": each.runs,
                "reason": each.detail,
            }
            for version, each in found.judged.items()
        ],
        "skipped": [{"version": version, "reason": reason} for version, reason in found.skipped.items()],
        "changed_in": found.changed_in,
        "possible": list(found.possible),
        "before": found.judged[found.before].word if found.before is not None else None,
        "after": found.judged[found.changed_in].word if found.changed_in is not None else None,
        "last_before": found.before,
    }


def _code(found: Bisection, asked: Sequence[str | None]) -> ExitCode:
    """The exit code; where ends agree, but not those that were asked for, too little is known."""
    if found.changed_in is not None:
        return ExitCode.INCONCLUSIVE if found.possible else ExitCode.OK
    is_known = len(found.judged) > 1 and not any(end in found.skipped for end in asked)
    return ExitCode.FAILED if is_known else ExitCode.INCONCLUSIVE


def _print(console: Console, client: str, name: str, found: Bisection) -> None:
    """The answer, in a sentence or two."""
    say: Callable[[str], None] = lambda text: console.print(text, markup=False)  # noqa: E731
    alike: dict[str, list[str]] = {}
    for version, reason in found.skipped.items():
        alike.setdefault(re.sub(r"\d+ ms", "", reason), []).append(version)
    for versions in alike.values():
        say(f"skipped {', '.join(versions)}: {found.skipped[versions[0]]}")
    counts = f"{len(found.judged)} versions judged, {len(found.skipped)} skipped"
    if found.before is None or found.changed_in is None:
        if len(found.judged) < 2:
            say(f"{name}: too few versions of {client} could be judged: {counts}")
            return
        first, last = list(found.judged)[:2]
        say(f"{name}: {client} {first} and {last} agree ({found.judged[first].word}): {counts}")
        return
    old, new = found.judged[found.before], found.judged[found.changed_in]
    if found.possible:
        which = f"one of {', '.join(found.possible)} and {found.changed_in}"
        say(f"{name} changed in {which} of {client}; the others say nothing: {counts}")
    else:
        say(f"{name} changed in {client} {found.changed_in}: {counts}")
    say(f"    {found.before}: {_word(old)}")
    say(f"    {found.changed_in}: {_word(new)}")
