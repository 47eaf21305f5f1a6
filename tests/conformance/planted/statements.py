"""What nobody notices when one statement of a correct client is taken away, or says something else.

``python -m tests.conformance.planted.statements PROTOCOL [--kinds KIND,...] [--seed N] [--count N]
[--sweep S] [--out FILE] [FILE:LINE ...]`` draws statements of the reference client and changes one of them at
a time, by each kind of `OPERATORS` in its turn. It runs the plain base scripts and the scenarios in memory
that execute the statement, up to the first that finds something; with ``--sweep``, then specs with faults for
so many seconds of the processor. It prints one line for each, and appends one of JSON to FILE, whose changes
are not tried again::

    killed deliveries.py:39 delete [self.take(message)] in pushed BY BMQ-4.07/blazingmq ...
    SURVIVED (80 of 80) deliveries.py:73 false [if self.client.queues.numbered(...)] in confirm
    UNCOVERED client.py:96 delete [self.queues.end()] in reconnect

A survivor is to be read: many are equivalent, or need a fault; the others are what a rule does not state or
no base reaches. Which runs execute which lines is measured first, and kept in the temporary directory for as
long as neither client nor bases change. The changed client is only ever in a process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.conformance.planted.changes import Change, Planted, changes_in
from tests.conformance.planted.check import FORK
from tests.conformance.planted.measure import by_scenario, by_spec, items_of, scenarios
from tests.conformance.planted.operators import OPERATORS

CLIENTS = "conformance.clients.reference"
ADAPTER = "ops.py"  #: translates ops, and is no part of the client
ENOUGH_S = 14.0  #: of the processor, for the runs of one change
LIMIT_S = 240.0  #: after which a changed client has hung
SPARE_S = 30  #: of the processor, beside what its runs may take
MEMORY = 4 << 30  #: bytes that a changed client may take


# what executes what


class Covered(NamedTuple):
    """Which runs execute which lines.

    Attributes:
        lines: By file name and line: the names of runs.
        cost_s: What each run takes of the processor.
    """

    lines: dict[str, dict[str, list[str]]]
    cost_s: dict[str, float]

    def runs_of(self, change: Change) -> list[str]:
        """Those that execute a statement: of one that spans lines, coverage may name the second."""
        there = self.lines.get(change.path.name, {})
        return there.get(str(change.line)) or there.get(str(change.line + 1)) or []


def covered(protocol: str) -> Covered:
    """The same as the last time, if nothing has changed since."""
    folder = folder_of(protocol)
    sources = [*folder.rglob("*.py"), *folder.parents[3].glob("scenarios/**/*.py")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()[:16]
    kept = Path(tempfile.gettempdir()) / f"fakebrokers-statements-{protocol}-{digest}.json"
    if not kept.exists():
        mine, other = FORK.Pipe(duplex=False)
        child = FORK.Process(target=_cover, args=(protocol, folder, other))
        child.start()
        kept.write_text(json.dumps(mine.recv()))
        child.join()
    return Covered(*json.loads(kept.read_text()))


def _cover(protocol: str, folder: Path, pipe: Connection) -> None:
    import coverage

    watch = coverage.Coverage(data_file=None, include=[f"{folder}/*"], branch=False)
    watch.start()
    cost_s: dict[str, float] = {}
    for name in runs_of(protocol):
        watch.switch_context(name)
        begun = time.process_time()
        run(protocol, name)
        cost_s[name] = time.process_time() - begun
    watch.stop()
    data = watch.get_data()
    lines = {Path(path).name: data.contexts_by_lineno(path) for path in data.measured_files()}
    pipe.send((lines, cost_s))


def folder_of(protocol: str) -> Path:
    """Where the reference client is."""
    found = find_spec(f"{CLIENTS}.{protocol.replace('-', '_')}")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


# runs


def runs_of(protocol: str) -> list[str]:
    """All base scripts, as ``base:NAME``, and all scenarios in memory, as ``ID/VARIANT``."""
    from conformance.run.material import material_of

    bases = [f"base:{name}" for name in material_of(protocol).bases]
    return bases + [_name(one.key) for one in scenarios(protocol)]


def _name(key: Iterable[str]) -> str:
    return "/".join(str(part) for part in key if part)


def run(protocol: str, name: str) -> str:
    """What a run finds; "" for nothing."""
    from conformance.run.specs import Spec

    if name.startswith("base:"):
        found = by_spec(protocol, Spec(protocol, name.removeprefix("base:")))
        return f"{found[0][0]}: {found[0][1]}" if found else ""
    [scenario] = [one for one in scenarios(protocol) if _name(one.key) == name]
    verdict, reason = by_scenario(scenario)
    return reason if verdict == "fail" else ""


def noticed(
    protocol: str, change: Change, names: Sequence[str], sweep_s: float = 0.0, items: Sequence[Any] = ()
) -> str:
    """The first run that finds the change, and what; "" if none does.

    Args:
        names: Plain ones.
        sweep_s: What specs with faults may take after them.
        items: What these are drawn from, see `items_with_faults`.
    """
    mine, other = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_notice, args=(protocol, change, names, sweep_s, items, other))
    child.start()
    other.close()
    try:
        return str(mine.recv()) if mine.poll(LIMIT_S) else "a run that does not end"
    except EOFError:
        return "a process that has ended"
    finally:
        child.kill()
        child.join()


def _notice(
    protocol: str,
    change: Change,
    names: Sequence[str],
    sweep_s: float,
    items: Sequence[Any],
    pipe: Connection,
) -> None:
    client = f"{CLIENTS}.{change.path.parent.name}"
    assert client not in sys.modules, "the correct client is loaded already"
    processor_s = int(2 * (ENOUGH_S + sweep_s)) + SPARE_S
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    sys.meta_path.insert(0, Planted(change))
    for name in names:
        try:
            found = run(protocol, name)
        except Exception as error:
            found = repr(error)
        if found:
            pipe.send(f"{name}: {found}")
            return
    pipe.send(_by_faults(protocol, names, sweep_s, items) if sweep_s else "")


def _by_faults(protocol: str, names: Sequence[str], sweep_s: float, items: Sequence[Any]) -> str:
    """What specs with faults find, of the bases that execute the statement if there are any."""
    from conformance.search.systematic.order import DrawOrder

    bases = {name.removeprefix("base:") for name in names if name.startswith("base:")}
    begun = time.process_time()
    for spec in DrawOrder([item for item in items if not bases or item.spec.base in bases]):
        if time.process_time() > begun + sweep_s:
            break
        found = by_spec(protocol, spec)
        if found:
            return f"{spec}: {found[0][0]}: {found[0][1]}"
    return ""


def items_with_faults(protocol: str) -> list[Any]:
    """What a sweep draws from; it is made with the correct client, so in another process."""
    mine, other = FORK.Pipe(duplex=False)
    child = FORK.Process(
        target=lambda: other.send([one for one in items_of(protocol) if one.spec.injections])
    )
    child.start()
    found: list[Any] = mine.recv()
    child.join()
    return found


def chosen(names: Sequence[str], cost_s: dict[str, float], random: Random) -> list[str]:
    """Cheap runs first, in an order of their own for each change, for as long as there is time."""
    ordered = sorted(names, key=lambda name: cost_s.get(name, 1.0) * random.uniform(0.7, 1.3))
    found, spent_s = [], 0.0
    for name in ordered:
        if spent_s > ENOUGH_S:
            break
        found.append(name)
        spent_s += cost_s.get(name, 1.0)
    return found


def drawn(changes: Sequence[Change], random: Random) -> list[Change]:
    """Each kind in its turn, in an order of its own."""
    kinds: dict[str, list[Change]] = {}
    for change in random.sample(changes, len(changes)):
        kinds.setdefault(change.kind, []).append(change)
    return [one for row in zip_longest(*kinds.values()) for one in row if one is not None]


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("protocol")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(OPERATORS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument(
        "--sweep", type=float, default=0.0, metavar="S", help="Specs with faults, for so long."
    )
    parser.add_argument("--out", type=Path, help="Lines of JSON; what is there is not tried again.")
    parser.add_argument("places", nargs="*", metavar="FILE:LINE", help="Only the changes of these lines.")
    given = parser.parse_intermixed_args()
    if unknown := set(given.kinds) - set(OPERATORS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(OPERATORS)}")
    return given


def main() -> None:
    """Print a line for each change, and how many were noticed."""
    given = arguments()
    random = Random(given.seed)
    files = sorted(path for path in folder_of(given.protocol).glob("*.py") if path.name != ADAPTER)
    changes = drawn([change for path in files for change in changes_in(path, given.kinds)], random)
    if given.places:
        changes = [each for each in changes if f"{each.path.name}:{each.line}" in given.places]
    known, counts = covered(given.protocol), {"killed": 0, "SURVIVED": 0, "UNCOVERED": 0}
    items = items_with_faults(given.protocol) if given.sweep else []
    there = given.out.read_text() if given.out and given.out.exists() else ""
    tried_before = {json.loads(line)["change"] for line in there.splitlines()}
    for change in changes[: given.count]:
        if str(change) in tried_before:
            continue
        names = known.runs_of(change)
        tried = chosen(names, known.cost_s, random)
        needed = tried or given.sweep
        found = noticed(given.protocol, change, tried, given.sweep, items) if needed else ""
        word = "killed" if found else "SURVIVED" if tried else "UNCOVERED"
        counts[word] += 1
        how_many = f" ({len(tried)} of {len(names)})" if word == "SURVIVED" else ""
        print(f"{word}{how_many} {change}{f' BY {found}' if found else ''}", flush=True)
        if given.out:
            row = {"word": word, "kind": change.kind, "tried": len(tried), "of": len(names), "by": found}
            with given.out.open("a") as out:
                out.write(json.dumps({"protocol": given.protocol, "change": str(change), **row}) + "\n")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))


if __name__ == "__main__":
    main()
