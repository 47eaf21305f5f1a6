"""``fakebrokers bisect``: the version of a client that changed a verdict."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
@click.option("--protocol", type=click.Choice(protocol_names()), help="Needed if the client has several.")
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
def bisect_command(as_json: bool, **given: Any) -> int:
    """Find the version of a client that changed a verdict.

    The verdict is that of a row, a rule or a replay file.

    Exit code 0: it is named; 1: the oldest and the newest version agree; 2: too little could be judged to
    name it.
    """
    from conformance.suite.conform import CutShort
    from conformance.versions.search import Bisection

    asked = _Asked(**given)
    _check(asked)
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    found = Bisection()
    with interruptible() as interrupts:
        try:
            with _source(asked) as source:
                protocol = _protocol(asked)
                name, once = _once(source, asked, protocol)
                versions = _between(source.versions(), asked.good, asked.bad)
                _search(console, source, name, protocol, versions, once, asked.runs, found)
        except KeyboardInterrupt as stopped:
            console.print("cut short", markup=False)
            code = stopped.results.exit_code if isinstance(stopped, CutShort) else interrupts.exit_code
            raise SystemExit(code) from None
    if as_json:
        click.echo(json.dumps(document(name, found), indent=1))
    else:
        _print(SafeConsole(highlight=False, soft_wrap=True), source.name, name, found)
    ends = (asked.good, asked.bad) if asked.commits is None else (versions[0], versions[-1])
    return _code(found, ends)


class _Asked(NamedTuple):
    """What the command line asks for; see its help."""

    what: tuple[str, ...]
    client: str | None
    adapter: str | None
    good: str | None
    bad: str | None
    commits: str | None
    build: str
    rule: str | None
    protocol: str | None
    variant: str | None
    workload: str
    seed: int
    runs: int


def _check(asked: _Asked) -> None:
    """Raise `UsageError` for what does not go together."""
    if not asked.what and asked.rule is None:
        raise UsageError("say what to judge by: the id of a row, a replay file, or --rule NAME")
    if len(asked.what) > 1 and asked.rule is None:
        raise UsageError(
            f"expected one row or replay file, got {len(asked.what)}: several go with --rule only"
        )
    if asked.commits is None:
        if asked.client is None or asked.adapter is not None or asked.build:
            raise UsageError("say --client NAME; --adapter and --build go with --git")
    elif asked.good is not None or asked.bad is not None:
        raise UsageError("--git names both ends: leave out --good and --bad")
    elif (asked.client is None) == (asked.adapter is None):
        raise UsageError("--git: say which adapter: either --client NAME or --adapter CMD")
    if asked.rule is not None:
        from conformance.rules.sentences import rules
        from fakebrokers.errors import instead_of

        if asked.rule not in rules():
            raise UsageError(f"there is no rule {asked.rule!r}{instead_of(asked.rule, rules())}")


@contextmanager
def _source(asked: _Asked) -> Iterator[Source]:
    from conformance.versions.sources import Checkout, Releases

    if asked.commits is None:
        yield Releases(asked.client or "", [end for end in (asked.good, asked.bad) if end is not None])
    else:
        with Checkout(asked.commits, asked.build, asked.adapter, asked.client) as checkout:
            yield checkout


def _protocol(asked: _Asked) -> str:
    """The one that is asked for, that of the file, or the only one of the client."""
    if asked.protocol is None and asked.client is None and asked.what and _is_file(asked.what[0]):
        return str(opened(Path(asked.what[0]), "")[0].protocol)
    return protocol_of(asked.client, asked.protocol)


def _is_file(word: str) -> bool:
    return word.endswith(".json") or Path(word).is_file()


def _once(source: Source, asked: _Asked, protocol: str) -> tuple[str, Once]:
    """What it is called, and what judges a version by it."""
    from conformance.versions.subjects import by_replay, by_row, by_rule, the_row

    if asked.rule is not None:
        return asked.rule, by_rule(source, protocol, asked.rule, asked.what, asked.variant, asked.seed)
    if not _is_file(asked.what[0]):
        id, only = the_row(asked.what[0], protocol, asked.variant)
        return "/".join(filter(None, (id, only))), by_row(source, protocol, id, only, asked.seed)
    path = Path(asked.what[0])
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    file, _, kind = opened(path, asked.workload)
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
    said = outcome.word if outcome.steady else f"fails now and then, in {outcome.runs} runs"
    return f"{said}: {outcome.detail}" if outcome.detail else said


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
                "criterion": each.by,
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
