"""What the API answers, and where: the one table that the server and the OpenAPI document read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fakebrokers.control import rows
from fakebrokers.control.brokers import Brokers, operations_of
from fakebrokers.control.describe import BoundOperation
from fakebrokers.control.problems import Refusal
from fakebrokers.control.values import plain
from fakebrokers.core.session import HangUp
from fakebrokers.errors import FakeBrokerError, PlanError, UsageError
from fakebrokers.faults.effects import Hold
from fakebrokers.faults.plan import Fault, fault_from, load_plan
from fakebrokers.protocol import protocols
from fakebrokers.server import FakeServer


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No fields."""


@dataclass(frozen=True)
class Route:
    """A path with a method.

    Attributes:
        path: With names of places in braces.
        act: Gets the brokers, the places by name, and what was read; runs where it may block.
        reads: The struct in the body; or in the query, with the method GET.
        answers: The type of the answer; None: 204 without one.
    """

    method: str
    path: str
    act: Callable[[Brokers, dict[str, str], Any], Any]
    about: str
    reads: Any = Nothing
    answers: Any = None
    status: int = 200


def _row(brokers: Brokers, name: str) -> rows.BrokerRow:
    server = brokers.find(name)
    return rows.broker_row(name, server, list(operations_of(server.protocol)))


def list_brokers(brokers: Brokers, at: dict[str, str], given: Any) -> list[rows.BrokerRow]:
    return [_row(brokers, name) for name, _ in brokers]


def add_broker(brokers: Brokers, at: dict[str, str], given: rows.NewBroker) -> rows.BrokerRow:
    return _row(brokers, brokers.add(given.protocol, given.name, given.options))


def show_broker(brokers: Brokers, at: dict[str, str], given: Any) -> rows.BrokerRow:
    return _row(brokers, at["broker"])


def stop_broker(brokers: Brokers, at: dict[str, str], given: Any) -> None:
    brokers.remove(at["broker"])


def list_protocols(brokers: Brokers, at: dict[str, str], given: Any) -> list[dict[str, Any]]:
    return [{"name": each.name, "about": each.about, "port": each.port} for each in protocols()]


# faults


def list_faults(brokers: Brokers, at: dict[str, str], given: Any) -> rows.FaultsRow:
    faults = brokers.find(at["broker"]).faults
    return rows.FaultsRow(faults.plan.seed, rows.fault_rows(faults), list(faults.unfired))


def add_faults(brokers: Brokers, at: dict[str, str], given: Any) -> rows.Added:
    """One fault, or a whole plan, whose seed then holds."""
    server = brokers.find(at["broker"])
    before = set(server.faults.names)
    if not isinstance(given, dict):
        raise Refusal(400, "body", f"expected a fault or a plan, got {type(given).__name__}")
    if "faults" in given or "seed" in given or "version" in given:
        plan = load_plan(given, server.protocol)
        server.faults.load(plan) if "seed" in given else server.faults.add(*plan.faults)
    else:
        server.faults.add(fault_from(given, "fault", server.protocol))
    return rows.Added([name for name in server.faults.names if name not in before])


def show_fault(brokers: Brokers, at: dict[str, str], given: Any) -> rows.FaultRow:
    for row in rows.fault_rows(brokers.find(at["broker"]).faults):
        if row.name == at["fault"]:
            return row
    raise _no_fault(brokers.find(at["broker"]), at)


def remove_fault(brokers: Brokers, at: dict[str, str], given: Any) -> None:
    _known_fault(brokers, at).faults.remove(at["fault"])


def release_fault(brokers: Brokers, at: dict[str, str], given: Any) -> None:
    _known_fault(brokers, at).faults.release(at["fault"])


def clear_faults(brokers: Brokers, at: dict[str, str], given: Any) -> None:
    brokers.find(at["broker"]).faults.clear()


def hold(brokers: Brokers, at: dict[str, str], given: rows.Hold) -> rows.Added:
    server = brokers.find(at["broker"])
    effect = Hold(behind=given.behind, for_s=given.for_s)
    fault = Fault(match=rows.match_of(given), effects=(effect,), name=given.name)
    return rows.Added([server.faults.add(fault)])


def _known_fault(brokers: Brokers, at: dict[str, str]) -> FakeServer:
    server = brokers.find(at["broker"])
    if at["fault"] not in server.faults.names:
        raise _no_fault(server, at)
    return server


def _no_fault(server: FakeServer, at: dict[str, str]) -> Refusal:
    there = ", ".join(server.faults.names) or "none"
    return Refusal(404, "fault", f"expected a fault that is at work ({there}), got {at['fault'][:100]!r}")


# connections


def list_connections(brokers: Brokers, at: dict[str, str], given: Any) -> list[dict[str, Any]]:
    return [plain(row) for row in brokers.find(at["broker"]).connections]


def show_connection(brokers: Brokers, at: dict[str, str], given: Any) -> dict[str, Any]:
    for row in list_connections(brokers, at, given):
        if row["name"] == at["connection"]:
            return row
    raise _no_connection(brokers, at)


class HowToEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a connection ends.

    Attributes:
        how: ``fin`` in order, ``rst`` by a reset, ``half-open`` without telling the client.
    """

    how: HangUp = HangUp.FIN


def end_connection(brokers: Brokers, at: dict[str, str], given: HowToEnd) -> None:
    server = brokers.find(at["broker"])
    try:
        server.kill(at["connection"], given.how)
    except UsageError:
        raise _no_connection(brokers, at) from None


def _no_connection(brokers: Brokers, at: dict[str, str]) -> Refusal:
    there = ", ".join(row["name"] for row in brokers.find(at["broker"]).connections) or "none"
    return Refusal(
        404, "connection", f"expected a connection that is open ({there}), got {at['connection'][:100]!r}"
    )


BROKER = "/brokers/{broker}"

#: All that is not an operation, a journal or a wait; those are `api.ControlApi`'s.
ROUTES = (
    Route(
        "GET", "/protocols", list_protocols, "The protocols that can be faked.", answers=list[dict[str, Any]]
    ),
    Route("GET", "/brokers", list_brokers, "The brokers that run.", answers=list[rows.BrokerRow]),
    Route("POST", "/brokers", add_broker, "Start a broker.", rows.NewBroker, rows.BrokerRow, 201),
    Route("GET", BROKER, show_broker, "One broker.", answers=rows.BrokerRow),
    Route("DELETE", BROKER, stop_broker, "Stop a broker.", status=204),
    Route("GET", BROKER + "/faults", list_faults, "The faults with their counts.", answers=rows.FaultsRow),
    Route("POST", BROKER + "/faults", add_faults, "Add a fault, or a plan.", Any, rows.Added, 201),
    Route("DELETE", BROKER + "/faults", clear_faults, "Take all faults out.", status=204),
    Route("GET", BROKER + "/faults/{fault}", show_fault, "One fault.", answers=rows.FaultRow),
    Route("DELETE", BROKER + "/faults/{fault}", remove_fault, "Take a fault out.", status=204),
    Route("POST", BROKER + "/faults/{fault}/release", release_fault, "Let go what it holds.", status=204),
    Route(
        "POST",
        BROKER + "/hold",
        hold,
        "Keep frames back until they are released.",
        rows.Hold,
        rows.Added,
        201,
    ),
    Route("GET", BROKER + "/connections", list_connections, "The connections.", answers=list[dict[str, Any]]),
    Route("GET", BROKER + "/connections/{connection}", show_connection, "One.", answers=dict[str, Any]),
    Route("DELETE", BROKER + "/connections/{connection}", end_connection, "End one.", HowToEnd, status=204),
)


def carry_out(server: FakeServer, operation: BoundOperation, arguments: Any) -> Any:
    """Do an operation that waits for nothing; it may block for a moment."""
    return plain(operation.carry_out(server, arguments))


async def carry_out_waiting(server: FakeServer, operation: BoundOperation, arguments: Any) -> Any:
    """Do an operation that waits, on the fake's loop: however many do, others are served meanwhile."""
    return plain(await operation.carry_out(server, arguments))


def refusal_of(error: Exception, path: str) -> Refusal | None:
    """What an error means to whoever asked; None for a defect of the fake."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, PlanError):
        where = error.path if error.path.startswith("body") else f"body.{error.path}"
        return Refusal(400, where.replace("body.fault.", "body."), error.problem)
    if isinstance(error, FakeBrokerError):
        return Refusal(422, path, str(error))
    return None
