"""What every packet of a node has to have (docs/protocols/moleculer.md, 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from conformance.run.facts import Should
from conformance.run.showing import shown
from fakebrokers.moleculer.packets import Event, Heartbeat, Info, Packet, Ping, Pong, Request, Response

Test = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _none_or(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _absent_or(test: Test) -> Test:
    return lambda value: value is UNSET or value is None or test(value)


NEWEST = "5"
NEW = ("headers",)  #: in the newest version only
#: of INFO; nodes take it without them (docs/protocols/moleculer.md, 4.2), so they are asked for, and no more
NEEDLESS = ("ipList", "hostname")
MEMBERS: Mapping[type[Packet], Mapping[str, Test]] = {
    Info: {
        "services": lambda value: isinstance(value, list),
        "ipList": lambda value: isinstance(value, list) and all(map(_text, value)),
        "hostname": _text,
        "client": lambda value: _object(value) and _text(value.get("type")),
        "config": _object,
        "instanceID": _text,
        "metadata": _object,
        "seq": _count,
    },
    Heartbeat: {"cpu": _none_or(_number)},
    Ping: {"time": _number},
    Pong: {"arrived": _number},
    Request: {
        "id": _text,
        "action": _text,
        "meta": _object,
        "headers": _object,
        "timeout": _number,
        "level": _count,
        "requestID": _text,
        "parentID": _none_or(_text),
        "caller": _none_or(lambda value: isinstance(value, str)),
        "stream": _absent_or(_flag),
    },
    Response: {
        "id": lambda value: isinstance(value, str),
        "meta": _object,
        "success": _flag,
        "headers": _none_or(_object),
        "stream": _absent_or(_flag),
    },
    Event: {
        "id": _text,
        "event": _text,
        "meta": _object,
        "headers": _object,
        "broadcast": _flag,
        "groups": _absent_or(lambda value: isinstance(value, list)),
        "level": _count,
    },
}


def problem(packet: Packet) -> str:
    """What is wrong with a packet of the client; "" if nothing is. It is a `Should` if that does no harm."""
    wrong = [name for name in _wrong_members(packet) if name not in NEEDLESS]
    if wrong:
        return _sentence(packet, wrong[0])
    if isinstance(packet, Info):
        harmless = [Should(_sentence(packet, name)) for name in _wrong_members(packet)]
        return _services_problem(packet.services) or next(iter(harmless), "")
    if isinstance(packet, Response):
        return _response_problem(packet)
    if isinstance(packet, Request) and packet.stream is True and not isinstance(packet.seq, int):
        return "a REQ with a stream and without a seq"
    return ""


def _wrong_members(packet: Packet) -> list[str]:
    return [
        name for name, test in MEMBERS.get(type(packet), {}).items()
        if (name not in NEW or packet.ver == NEWEST) and not test(getattr(packet, name))
    ]  # fmt: skip


def _sentence(packet: Packet, name: str) -> str:
    value = getattr(packet, name)
    return f"{name} of {packet.COMMAND} is {'missing' if value is UNSET else shown(value)}"


def _services_problem(services: list[Any]) -> str:
    for service in services:
        if not _object(service) or not _text(service.get("name")):
            return f"a service without a name in INFO: {shown(service)}"
        full = service.get("fullName") or service["name"]
        for name, action in (service.get("actions") or {}).items():
            if not _object(action) or action.get("name") != name or not name.startswith(f"{full}."):
                return f"the action {name} of {full} in INFO is {shown(action)}"
    return ""


def _response_problem(answer: Response) -> str:
    if answer.success is False:
        error = answer.error
        if not _object(error) or not _text(error.get("name")) or not isinstance(error.get("message"), str):
            return f"a RES without success, whose error is {shown(error)}"
        return "" if answer.data in (None, UNSET) else "a RES without success that has data"
    return "" if answer.error in (None, UNSET) else "a RES with success and an error"
