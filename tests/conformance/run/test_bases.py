"""What base scripts can do to a client's process."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from conformance.run.bases import ScriptContext
from conformance.run.inprocess import client_of, run, runner
from conformance.run.specs import Spec
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


def test_a_base_asks_for_what_it_expects_of_a_loss() -> None:
    """A library may reconnect by default, or not, or for producers alone."""
    case = runner("rabbitmq-stream")(Spec("rabbitmq-stream", "publish"))
    connects = [done for done in case.ops if done.op == "connect"]
    assert case.reconnects
    assert [done.args["options"]["auto_reconnect"] for done in connects] == [True]


def test_a_base_does_not_ask_a_client_that_cannot_reconnect() -> None:
    class Unable(client_of("rabbitmq-stream")):  # type: ignore[misc] # made where it is asked for
        caps = client_of("rabbitmq-stream").caps.replace("auto_reconnect ", "")

    case = run(Unable, Spec("rabbitmq-stream", "publish"))
    [connect] = [done for done in case.ops if done.op == "connect"]
    assert not case.reconnects
    assert "auto_reconnect" not in connect.args["options"]
