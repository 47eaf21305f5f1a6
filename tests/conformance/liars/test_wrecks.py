"""Adapters that break at the first publish: whose failure that is, and that nothing of them remains."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.clients.adapter.process import MARK, ProcessAdapter
from conformance.results import Verdict
from conformance.rules import INVARIANTS
from conformance.suite.brokers import fake_for
from conformance.suite.judge import Judgement, judge
from conformance.suite.load import all_scenarios, select
from conformance.suite.scenario import Scenario

PROGRAM = Path(__file__).with_name("wrecks.py")
ROOT = Path(__file__).parents[3]
AT_ONCE = 8
#: What one adapter may cost the runner at most, however much it writes.
MEMORY = 400 << 20

#: A scenario of each protocol that publishes and knows without a fault what has to come of it.
PLAIN = {"rabbitmq-stream": "RMQS-3.01", "narconi": "NARC-2.01", "pzq": "PZQ-1.01"}

DEAD = {"crash", "segfault", "half_a_line", "grandchild"}
SILENT = {"stop", "hang"}
WRONG = {
    "not_utf8": "no UTF-8",
    "deep": "nested deeper",
    "nested": "nested deeper",
    "surrogate": "half of a surrogate pair",
    "huge_number": "not a line of the protocol",
    "flood_of_lines": "not a line of the protocol",
    "flood_of_notes": "has n 1",
    "flood_of_events": "between two resets",
    "endless_line": "a line of more than",
    "own_bug": "it ended with exit code 3, for a bug of its own: ValueError: I am no adapter",
}
#: It is right in all that it does, and only noisy.
RIGHT = {"flood_of_stderr"}

QUICK = [*sorted(DEAD), "stop", "not_utf8", "deep", "surrogate", "flood_of_lines", "endless_line", "own_bug"]
ALL = [*sorted(DEAD | SILENT | RIGHT), *WRONG]


def judged(runs: Sequence[tuple[str, Scenario]]) -> list[Judgement]:
    """Each kind by its scenario, several at once, each in a process of its own."""

    async def one(kind: str, item: Scenario, material: asyncio.Semaphore) -> Judgement:
        command = [sys.executable, str(PROGRAM), kind, item.protocol]
        adapter = ProcessAdapter(command, item.protocol, env={"PYTHONPATH": str(ROOT)})
        async with material:
            await adapter.start()
            try:
                return await judge(item, adapter, fake_for())
            finally:
                await adapter.kill()

    async def work() -> list[Judgement]:
        material = asyncio.Semaphore(AT_ONCE)
        return await asyncio.gather(*(one(kind, item, material) for kind, item in runs))

    return asyncio.run(work())


def blamed(kind: str, found: Judgement) -> None:
    """Assert that the verdict is that of a client, or of an adapter, that broke in this way."""
    where = f"{kind} {found.scenario.label}: {found.verdict} {found.tags}: {found.reason}"
    assert found.verdict is (Verdict.HARNESS_ERROR if kind in WRONG else Verdict.FAIL), where
    assert set(found.tags) - {"waited", "setup", *INVARIANTS} == {tag_of(kind)}, where
    if kind in DEAD:
        may_lack = "?" if kind == "grandchild" else ""  # it holds the pipes, whose end tells when it was
        when = rf"( \d+\.\d\d s after publish(_many)? of \w+ was asked){may_lack}"
        assert re.search(rf"\[the client's process ended{when}\]", found.reason), where
    if kind in WRONG:
        assert found.reason.startswith("the adapter broke its protocol: "), where
        assert WRONG[kind] in found.reason, where


def tag_of(kind: str) -> str:
    return "crashed" if kind in DEAD else "hang" if kind in SILENT else "adapter"


def left() -> list[str]:
    """Processes that this one has started as adapters, or that those have."""
    mark = f"{MARK}={os.getpid()}-".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # ended meanwhile, or another user's
    return found


@pytest.mark.full
@pytest.mark.parametrize(
    ("protocol", "kinds"),
    [
        ("rabbitmq-stream", QUICK),
        *(pytest.param(protocol, ALL, marks=pytest.mark.nightly) for protocol in PLAIN),
    ],
)
def test_who_breaks_is_blamed_in_bounded_memory_and_leaves_nothing(protocol: str, kinds: list[str]) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    [item] = [s for s in all_scenarios() if (s.id, s.protocol) == (PLAIN[protocol], protocol)]
    for kind, found in zip(kinds, judged([(kind, item) for kind in kinds]), strict=True):
        if kind in RIGHT:
            assert found.verdict is Verdict.PASS, found.reason
        else:
            blamed(kind, found)
    assert not left()
    if sys.platform == "linux":
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before < MEMORY


@pytest.mark.full
@pytest.mark.parametrize(
    ("protocol", "section"), [("rabbitmq-stream", "RMQS-3"), ("narconi", "NARC-2"), ("pzq", "PZQ-1")]
)
@pytest.mark.parametrize(("kind", "every"), [("crash", 1), ("stop", 4)])  # whoever stops costs all deadlines
def test_no_scenario_that_publishes_takes_a_wreck_for_untried(
    protocol: str, section: str, kind: str, every: int
) -> None:
    items = [s for s in select(all_scenarios(), protocol=protocol, ids=(section,)) if s.timeout_s <= 30][
        ::every
    ]
    for item, found in zip(items, judged([(kind, item) for item in items]), strict=True):
        assert found.verdict is not Verdict.HARNESS_ERROR, f"{item.label}: {found.reason}"
        if any(b'"op":"publish' in line for line in found.transcript):
            blamed(kind, found)
