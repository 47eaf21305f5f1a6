"""What base scripts can do to a client's process."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from conformance.run.bases import ScriptContext
from tests.eventually import takes_at_least


class Process:
    """A client in a process of its own, as far as it can be stopped."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def pause(self) -> None:
        self.steps.append("pause")

    def resume(self) -> None:
        self.steps.append("resume")


class Broker:
    """One that is never asked."""

    where = "nowhere:1"


def test_a_process_is_stopped_where_time_is_real() -> None:
    process = Process()

    async def work() -> None:
        context = ScriptContext(Broker(), cast(Any, process), cast(Any, None))
        with takes_at_least(0.04):
            await context.stand_still(0.05, stops_client=True)

    asyncio.run(work())
    assert process.steps == ["pause", "resume"]
