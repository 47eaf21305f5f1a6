"""What the suite makes of each planted defect: scenarios in memory, then sweep, then chaos, up to the first
finding, or with ``--on`` to the end of its time.

``python -m tests.conformance.planted.measure OUT [--limit S] [--on] [--plain PROTOCOL ...] [ID ...]``: each
defect has a process of its own in which ``plant()`` was called, and the correct client runs in another one,
which confirms that a finding is the defect's. Times are of the processor. ``--plain`` measures the reference
client without any defect: nothing may be found.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import cache
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.conformance.planted.check import FORK, module_of, modules

TOTAL_S = 60.0


def protocol_of(name: str) -> str:
    """Such as ``rabbitmq-stream``."""
    return name.partition("/")[0].replace("_", "-")


def scenarios(protocol: str) -> list[Any]:
    """Those that run in memory, the long ones left out."""
    from conformance.clients.mutants.matrix import Mode, mode_of
    from conformance.suite.load import all_scenarios, select

    chosen = select(all_scenarios(), protocol=protocol)
    return [one for one in chosen if mode_of(one) is Mode.MEMORY]


@cache
def items_of(protocol: str) -> list[Any]:
    """What the sweep draws from; loaded with the correct client, once for all processes."""
    from conformance.search.systematic.universe import universe

    return universe(protocol)


def by_scenario(scenario: Any) -> tuple[str, str]:
    """The verdict, and the criterion."""
    from conformance.clients.mutants.matrix import run

    judged = run(scenario, invariants=True)
    setup = "setup: " if "setup" in judged.tags else ""
    return str(judged.verdict), f"{setup}{judged.reason}"


def by_spec(protocol: str, spec: Any) -> list[tuple[str, str]]:
    """Names and details of what a run of the sweep violates."""
    from conformance.rules import judge
    from conformance.run.inprocess import runner

    return [(one.name, one.text) for one in judge(runner(protocol)(spec))]


def by_schedule(protocol: str, schedule: Any) -> list[tuple[str, str]]:
    """The same of a run of chaos."""
    from conformance.search.random.run import runner
    from conformance.search.random.verdict import Word, verdict_on

    verdict = verdict_on(runner(protocol)(schedule))
    return [(one.name, one.detail) for one in verdict.found] if verdict.word is Word.FAIL else []


class Correct:
    """The correct client, in a process of its own; to be made before the defect is planted."""

    def __init__(self) -> None:
        self._pipe, other = FORK.Pipe()
        self.process = FORK.Process(target=serve, args=(other,), daemon=True)
        self.process.start()

    def ask(self, *question: Any) -> Any:
        """What the correct client makes of it."""
        self._pipe.send(question)
        return self._pipe.recv()


def serve(pipe: Connection) -> None:
    """Answer until the other side is gone."""
    while True:
        try:
            kind, protocol, what = pipe.recv()
        except EOFError:
            return
        if kind == "scenario":
            [scenario] = [one for one in scenarios(protocol) if one.key == what]
            pipe.send(by_scenario(scenario))
        else:
            pipe.send((by_spec if kind == "sweep" else by_schedule)(protocol, what))


class Search:
    """Of one defect, in a process that has it already.

    Attributes:
        row: What was found first, and how much was tried.
        found: All that was found: the first finding may be a consequence, and a later one name the defect.
        on: Whether the search goes on after the first finding.
    """

    def __init__(self, name: str, limit_s: float, correct: Correct, *, on: bool = False) -> None:
        self.protocol = protocol_of(name)
        self.limit_s = limit_s
        self.correct = correct
        self.on = on
        self.found: list[dict[str, Any]] = []
        self.row: dict[str, Any] = {"id": name, "means": "", "scenarios": 0, "sweep": 0, "chaos": 0}
        self._begun = time.process_time()

    @property
    def spent_s(self) -> float:
        """What it has cost."""
        return time.process_time() - self._begun

    def kept(self, means: str, what: str, criterion: str) -> bool:
        """It was found: whether that is enough."""
        found = {"means": means, "what": what, "criterion": criterion}
        if not self.found:
            self.row |= found | {"first_s": round(self.spent_s, 1)}
        self.found.append(found | {"s": round(self.spent_s, 1)})
        return not self.on

    def scenarios(self) -> bool:
        """Whether a scenario finds it that the correct client passes."""
        for scenario in scenarios(self.protocol):
            if self.spent_s > self.limit_s:
                break
            self.row["scenarios"] += 1
            verdict, reason = by_scenario(scenario)
            if verdict != "fail":
                continue
            again, _ = self.correct.ask("scenario", self.protocol, scenario.key)
            if again in ("pass", "non-strict"):
                label = "/".join(part for part in (scenario.id, scenario.variant) if part)
                title = f"{label} {scenario.requirement.title}"
                if self.kept("scenarios", title, f"{verdict}: {reason}"):
                    return True
        return False

    def sweep(self) -> bool:
        """Whether the sweep finds it, in half of the time that is left."""
        from conformance.rules.registry import ALIVE, HARNESS
        from conformance.run.inprocess import runner
        from conformance.search.garbage import rare_collections
        from conformance.search.systematic.order import DrawOrder
        from conformance.search.systematic.sweep import Sweep

        half_s = self.spent_s + (self.limit_s - self.spent_s) / 2
        sweep = Sweep(runner(self.protocol))
        with rare_collections() as collect:
            for spec in DrawOrder(items_of(self.protocol)):
                if self.spent_s > half_s:
                    break
                findings = sweep.try_one(spec)
                collect(sweep.runs)
                self.row["sweep"] = sweep.runs
                excused = (
                    {name for name, _ in self.correct.ask("sweep", self.protocol, spec)}
                    if findings
                    else set()
                )
                own = [(each.name, each.text) for each in findings if each.name not in excused]
                if excused & {ALIVE, HARNESS}:
                    continue
                if self.rules("sweep", own, f"{spec.base}: {','.join(spec.acts)}"):
                    return True
        return False

    def chaos(self) -> bool:
        """Whether chaos finds it."""
        from conformance.search.random.kills import _schedules

        for number, schedule in enumerate(_schedules(self.protocol), 1):
            if self.spent_s > self.limit_s:
                break
            self.row["chaos"] = number
            names = by_schedule(self.protocol, schedule)
            excused = (
                {name for name, _ in self.correct.ask("chaos", self.protocol, schedule)} if names else set()
            )
            if self.rules("chaos", [each for each in names if each[0] not in excused], schedule.about):
                return True
        return False

    def rules(self, means: str, violated: list[tuple[str, str]], about: str) -> bool:
        """Whether these violations are enough; a rule that was violated before is not reported twice."""
        known = {name for each in self.found for name in each.get("rules", ())}
        own = [each for each in violated if each[0] not in known]
        if not own:
            return False
        names = list(dict.fromkeys(name for name, _ in own))
        enough = self.kept(means, f"{', '.join(names)} ({about})", own[0][1])
        self.found[-1]["rules"] = names
        return enough

    def go(self, skip: list[str]) -> dict[str, Any]:
        """One means after the other, up to what is enough."""
        for means in ("scenarios", "sweep", "chaos"):
            if means not in skip and getattr(self, means)():
                break
            self.row[f"{means}_s"] = round(self.spent_s, 1)
        more = {"found": self.found} if self.on else {}
        return self.row | more | {"seconds": round(self.spent_s, 1)}


def one(name: str, limit_s: float, skip: list[str], pipe: Connection, *, on: bool) -> None:
    """One defect, in this process."""
    correct = Correct()
    if not name.endswith("/plain"):
        import_module(module_of(name)).plant()
    try:
        pipe.send(Search(name, limit_s, correct, on=on).go(skip))
    except Exception as error:
        pipe.send({"id": name, "means": "BROKEN", "error": repr(error)})
    finally:
        correct.process.kill()


def preload(protocols: set[str], skip: list[str]) -> None:
    """Load the suite once, for all processes that come out of this one."""
    for module in (
        "conformance.search.systematic.sweep",
        "conformance.search.systematic.universe",
        "conformance.search.random.kills",
        "conformance.run.inprocess",
    ):
        import_module(module)
    for protocol in protocols:
        if "scenarios" not in skip:
            scenarios(protocol)
        if "sweep" not in skip:
            items_of(protocol)


def main() -> None:
    """All of them, one after the other; what is in OUT already is left out."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=float, default=TOTAL_S)
    parser.add_argument("--on", action="store_true", help="Go on after a finding, to the end of the time.")
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--plain", action="append", default=[])
    parser.add_argument("--rest", type=float, default=TOTAL_S, help="At most so much after a first pass.")
    parser.add_argument("--after", action="append", default=[], help="Rows of a first pass.")
    parser.add_argument("--share", default="1/1", help="The n-th of m drivers.")
    parser.add_argument("--until", type=float, default=0.0, help="Begin nothing after this time (Unix).")
    parser.add_argument("ids", nargs="*")
    given = parser.parse_args()
    there = (
        {json.loads(line)["id"] for line in given.out.read_text().splitlines()}
        if given.out.exists()
        else set()
    )
    names = [f"{each}/plain" for each in given.plain] or modules(given.ids)
    names.sort(key=lambda name: (name.rpartition("/")[2][1:], name))  # the protocols in turn
    number, count = map(int, given.share.split("/"))
    names = [name for name in names if name not in there][number - 1 :: count]
    spent = {}
    if given.after:  # what a first pass has found is left out, and what it has cost counts
        rows = [json.loads(line) for path in given.after for line in Path(path).read_text().splitlines()]
        spent = {row["id"]: row.get("seconds", 0.0) for row in rows if not row["means"]}
        names = [name for name in names if name in spent]
    preload({protocol_of(name) for name in names}, given.skip)
    for name in names:
        if given.until and time.time() > given.until:
            break
        begun = time.monotonic()
        mine, other = FORK.Pipe()
        limit_s = min(given.rest, given.limit - spent.get(name, 0.0))
        child = FORK.Process(target=one, args=(name, limit_s, given.skip, other), kwargs={"on": given.on})
        child.start()
        other.close()
        try:
            row = mine.recv()
        except EOFError:
            row = {"id": name, "means": "BROKEN", "error": "the process has ended"}
        child.join()
        row["wall"] = round(time.monotonic() - begun, 1)
        with given.out.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
