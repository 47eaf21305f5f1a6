"""What one version of a client does on virtual time, as another process asks for it.

    python -m conformance.versions.behaviour <order >behaviour

Run with that version before the packages of this environment: modules of two versions do not go together in
one process.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from statistics import median

import msgspec

from conformance.clients.adapters.stock import adapter_class
from conformance.rules import judge
from conformance.run.case import Case
from conformance.run.inprocess import run
from conformance.run.simulated import NeedsProcess
from conformance.run.specs import PLAIN, Spec
from conformance.search.systematic.order import DrawOrder
from conformance.search.systematic.stock import stock_universe
from fakebrokers.core.frames import Frame, Malformed, kind_of

#: Frames of these kinds and fewer values are what a client says by itself; longer ones hold what was asked.
LONGEST = 200
FEWEST = 2  #: runs in which a value has to be the same


class BehaviourOrder(msgspec.Struct, frozen=True):
    """What is to be run.

    Attributes:
        client: Its name, without a version.
        seed: Of the order in which specs are drawn.
        count: How many are drawn, where `specs` has none.
        specs: Those that another version was run on.
    """

    client: str
    protocol: str
    seed: int = 0
    count: int = 0
    specs: tuple[Spec, ...] = ()


class SpecRun(msgspec.Struct, frozen=True):
    """A run: the rules that it violates, each with what happened."""

    spec: Spec
    findings: dict[str, str]


class Behaviour(msgspec.Struct, frozen=True):
    """What was run, and what it showed.

    Attributes:
        sent: What the client sends without being asked otherwise: members of frames that had one value in
            all undisturbed runs, by kind and member.
        took_ms: The median time of each op in undisturbed runs, virtual milliseconds.
    """

    runs: tuple[SpecRun, ...]
    sent: dict[str, str]
    took_ms: dict[str, float]


def behaviour(order: BehaviourOrder) -> Behaviour:
    """Run it. Blocks; main thread only."""
    client = adapter_class(order.client)
    assert client is not None
    specs: Sequence[Spec] = order.specs
    if not specs:
        specs = list(islice(DrawOrder(stock_universe(order.protocol, client), order.seed), order.count))
    runs, undisturbed = [], []
    for spec in specs:
        try:
            case = run(client, spec)
        except NeedsProcess:
            continue
        runs.append(SpecRun(spec, {found.name: found.detail for found in judge(case)}))
        if spec.acts == [PLAIN]:
            undisturbed.append(case)
    return Behaviour(tuple(runs), sent(undisturbed), took_ms(undisturbed))


def sent(cases: Sequence[Case]) -> dict[str, str]:
    """Members of what the client sends whose value is the same in all runs that have the frame."""
    values: dict[str, set[str]] = defaultdict(set)
    runs: dict[str, set[int]] = defaultdict(set)
    for number, case in enumerate(cases):
        for conn in case.conns.values():
            for seen in conn.of("in"):
                for name, value in _members(seen.frame):
                    values[name].add(value)
                    runs[name].add(number)
    return {
        name: next(iter(found))
        for name, found in sorted(values.items())
        if len(found) == 1 and len(runs[name]) >= FEWEST
    }


def _members(frame: Frame) -> list[tuple[str, str]]:
    if isinstance(frame, Malformed):
        return []
    found: list[tuple[str, str]] = []
    for name, value in msgspec.structs.asdict(frame).items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for key, one in inner:
            text = repr(one)
            if len(text) <= LONGEST:
                found.append((f"{kind_of(frame)} {name}{'.' * bool(key)}{key}", text))
    return found


def took_ms(cases: Sequence[Case]) -> dict[str, float]:
    """The median of each op that ended well."""
    times: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        for done in case.ops:
            if done.ended is not None and done.result is not None and done.result.ok:
                times[done.op].append((done.ended.t - done.begun.t) * 1000)
    return {op: round(median(each), 3) for op, each in sorted(times.items())}


def main() -> None:
    """Answer one order."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=BehaviourOrder)
    answer = msgspec.json.encode(behaviour(order))
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    main()
