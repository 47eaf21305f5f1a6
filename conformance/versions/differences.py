"""What two versions of a client do differently, besides the rows: findings of a sweep, what is sent, times.

Both run the same specs on virtual time. What only one of them violates counts if processes in real time show
the same difference.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

import msgspec

from conformance.clients.adapters import registry
from conformance.run.specs import Spec, to_json
from conformance.search.live import SIDE_BY_SIDE
from conformance.search.systematic.campaign import SweptClient
from conformance.versions.behaviour import Behaviour, BehaviourOrder
from fakebrokers.errors import UsageError

SPECS = 150  #: of a sweep, for each version
CONFIRMED_MAX = 12  #: findings that are looked at in real time
TWICE = 2
SLOWER = 1.2  #: times as long, from where on a time is shown
AT_LEAST_MS = 5.0  #: and so much longer


class SweepDifference(msgspec.Struct, frozen=True):
    """A rule that one of the versions violates.

    Attributes:
        detail: What happened in the first run that showed it.
        spec: That run, in words.
        count: In how many of the runs.
        is_worse: The newer version violates it.
    """

    rule: str
    detail: str
    spec: str
    count: int
    is_worse: bool


class Changed(msgspec.Struct, frozen=True):
    """A value before and after; empty where there is none."""

    name: str
    before: str
    now: str


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Of one version and the next.

    Attributes:
        runs: How many specs each version has run.
        why_not: Why nothing could be compared; empty if it could.
        findings: The worse first.
        unconfirmed: How many more differ on virtual time only.
        sent: What it sends by itself.
        took_ms: How long ops take that nothing disturbs, virtual milliseconds.
    """

    runs: int = 0
    why_not: str = ""
    findings: tuple[SweepDifference, ...] = ()
    unconfirmed: int = 0
    sent: tuple[Changed, ...] = ()
    took_ms: tuple[Changed, ...] = ()


Ask = tuple[str, Spec]  #: a version, by name, and what it is to run
#: The rules that each of these violates in real time; None where the machine was too busy to say.
Shows = Callable[[Sequence[Ask]], Sequence[set[str] | None]]


def differences(older: str, newer: str, protocol: str, seed: int = 0, count: int = SPECS) -> Differences:
    """Compare two versions, named as ``--client`` takes them. Blocks for some ten seconds."""
    name = newer.partition("==")[0]
    if not registry.find(name).simulated:
        return Differences(why_not=f"{name} does not run on virtual time")
    try:
        now = behaviour_of(newer, BehaviourOrder(name, protocol, seed, count))
        specs = tuple(each.spec for each in now.runs)
        then = behaviour_of(older, BehaviourOrder(name, protocol, seed, specs=specs))
    except UsageError as error:
        return Differences(why_not=str(error))

    return compared((older, then), (newer, now), lambda asks: asyncio.run(_in_real_time(protocol, asks)))


async def _in_real_time(protocol: str, asks: Sequence[Ask]) -> list[set[str] | None]:
    free = asyncio.Semaphore(SIDE_BY_SIDE)
    children = {version: SweptClient(protocol, version).child for version in {each[0] for each in asks}}

    async def one(version: str, spec: Spec) -> set[str] | None:
        child = children[version]
        assert child is not None
        async with free:
            case, findings = await child.judged(spec)
        return None if case.is_starved or case.harness else {found.name for found in findings}

    return list(await asyncio.gather(*(one(*each) for each in asks)))


def behaviour_of(version: str, order: BehaviourOrder) -> Behaviour:
    """What a version does, in a process of its own. `UsageError` if it cannot be had, or fails."""
    client = registry.find(version)
    command = [sys.executable, "-m", "conformance.versions.behaviour"]
    done = subprocess.run(
        command,
        input=msgspec.json.encode(order),
        capture_output=True,
        env={**os.environ, **client.env},
        check=False,
    )
    try:
        return msgspec.json.decode(done.stdout, type=Behaviour)
    except msgspec.DecodeError:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no answer"])[-1]
        raise UsageError(f"{version} could not be swept: {last}") from None


def compared(older: tuple[str, Behaviour], newer: tuple[str, Behaviour], shows: Shows) -> Differences:
    """The differences of two behaviours; `shows` is asked where a finding differs."""
    then, now = _findings(older[1]), _findings(newer[1])
    both = {to_json(each.spec) for each in older[1].runs} & {to_json(each.spec) for each in newer[1].runs}
    suspected = []
    for rule in sorted(then.keys() ^ now.keys()):
        here = [each for each in {**then, **now}[rule] if to_json(each[0]) in both]
        if here:
            suspected.append(
                (here[0][0], SweepDifference(rule, here[0][1], str(here[0][0]), len(here), rule in now))
            )
    found = _confirmed(suspected[:CONFIRMED_MAX], older[0], newer[0], shows)
    return Differences(
        runs=len(both),
        findings=tuple(sorted(found, key=lambda each: (not each.is_worse, each.rule))),
        unconfirmed=len(suspected) - len(found),
        sent=changed(older[1].sent, newer[1].sent),
        took_ms=slower(older[1].took_ms, newer[1].took_ms),
    )


def _confirmed(
    suspected: Sequence[tuple[Spec, SweepDifference]], older: str, newer: str, shows: Shows
) -> list[SweepDifference]:
    """Those that one version shows in each of two runs in real time, and the other one in none."""
    asks = [(version, spec) for spec, _ in suspected for version in (older, newer) for _ in range(TWICE)]
    shown = iter(shows(asks))
    found = []
    for _, each in suspected:
        then, now = ([next(shown) for _ in range(TWICE)] for _ in (older, newer))
        bad, good = (now, then) if each.is_worse else (then, now)
        if all(rules is not None and each.rule in rules for rules in bad) and all(
            rules is not None and each.rule not in rules for rules in good
        ):
            found.append(each)
    return found


def _findings(of: Behaviour) -> dict[str, list[tuple[Spec, str]]]:
    found: dict[str, list[tuple[Spec, str]]] = {}
    for each in of.runs:
        for rule, detail in each.findings.items():
            found.setdefault(rule, []).append((each.spec, detail))
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[Changed, ...]:
    """Values that are there in both, and differ."""
    return tuple(
        Changed(name, before[name], now[name])
        for name in sorted(before.keys() & now.keys())
        if before[name] != now[name]
    )


def slower(before: Mapping[str, float], now: Mapping[str, float]) -> tuple[Changed, ...]:
    """Times that differ by more than chance, in either direction."""
    return tuple(
        Changed(op, f"{before[op]:g} ms", f"{now[op]:g} ms")
        for op in sorted(before.keys() & now.keys())
        if _far_apart(before[op], now[op])
    )


def _far_apart(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return high - low >= AT_LEAST_MS and high > SLOWER * low
