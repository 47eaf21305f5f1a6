"""What a client says that it cannot do otherwise: the words of ``limits`` in its hello, and what they mean.

Scripts need not look: `fitted` holds every op against it before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.clients.adapter.deadline import deadline_kind, least_ms
from conformance.clients.adapter.messages import Hello
from fakebrokers.errors import FakeBrokerError

_KINDS = {
    "connect": "a `connect`",
    "request": "any other op",
    "publish": "a `publish` or `publish_many`",
    "close": "a `close`",
}
#: The words of ``limits``, and what each means.
LIMITS: Mapping[str, str] = {
    **{
        f"{kind}_timeout_ms": f"{what} takes that long at most, whatever its `timeout_ms` says"
        for kind, what in _KINDS.items()
    },
    "timeout_min_ms": "the smallest time-out that the library takes, of any op",
    **{f"{kind}_timeout_min_ms": f"the same of {what}" for kind, what in _KINDS.items()},
    "timeout_factor": "how many times its time-out an op takes until the library notices, where it looks now "
    "and then; at least 1",
    "heartbeat_min_s": "the smallest heartbeat that the library takes, in seconds, whatever its protocol "
    "calls it (`heartbeat_s`, `keepalive_s`, `keep_alive_s`, `ping_interval_s`)",
    "max_body": "the largest body that the library takes, in bytes",
    "unconfirmed": "how many messages of one publisher can be open with `publish`; where scenarios need "
    "more, they send a batch with `publish_many`, whose messages may share one outcome",
    "processes": "how many of the adapter's processes one machine carries (a browser each, say); no more "
    "scenarios than that run at once",
}
#: Options of ``connect`` that are a heartbeat in seconds; 0 stands for none.
HEARTBEATS = ("heartbeat_s", "keepalive_s", "keep_alive_s", "ping_interval_s")


class NotFitting(FakeBrokerError):
    """An op asks for what the client said that it cannot do."""


def fitted(hello: Hello, op: str, args: Mapping[str, Any], timeout_ms: float) -> float:
    """The time-out to send with an op, in milliseconds: that given, or the smallest that the library takes.

    Raises:
        NotFitting: The op asks for an argument that the library does not have, for a smaller heartbeat or
            time-out, a larger body, or another number than it takes.
    """
    given = {name: value for name, value in _given(args)}
    for name in given:
        if not hello.takes(op, name):
            raise NotFitting(f"the library has no {name} for {op}")
    for name, value in given.items():
        _check_bounds(hello, op, name, value)
    for name in HEARTBEATS:
        least = hello.limits.get("heartbeat_min_s", 0.0)
        if 0 < given.get(name, least) < least:
            raise NotFitting(f"{name} {given[name]:g}: the smallest heartbeat of the library is {least:g} s")
    for kind, asked_ms in _timeouts(given):
        if asked_ms < (least := least_ms(hello, kind)):
            raise NotFitting(f"{asked_ms:g} ms: the smallest {kind} time-out of the library is {least:g} ms")
    most = hello.limits.get("max_body")
    if most is not None and (size := max(map(_size, _bodies(args)), default=0)) > most:
        raise NotFitting(f"a body of {size} bytes: the library takes {most:g} at most")
    kind = deadline_kind(op)
    return timeout_ms if kind in ("local", "waiting") else max(timeout_ms, least_ms(hello, kind))


def without_lacking(hello: Hello, op: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an op, and its options, but those that the library does not have."""
    found = {name: value for name, value in args.items() if hello.takes(op, name)}
    options = found.get("options")
    if isinstance(options, Mapping):
        found["options"] = {name: value for name, value in options.items() if hello.takes(op, name)}
    return found


def has_one_timeout(hello: Hello) -> bool:
    """Whether a session has one time-out for all its ops, which is given as it connects."""
    lacks = any(name.endswith(".timeout_ms") and has is False for name, has in hello.caps.items())
    return lacks and hello.takes("connect", "request_timeout_ms")


def _check_bounds(hello: Hello, op: str, name: str, value: Any) -> None:
    """Raise `NotFitting` for a number below the smallest, or above the largest, that the library takes."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    least, most = (hello.limits.get(f"{op}.{name}_{end}", value) for end in ("min", "max"))
    if not least <= value <= most:
        end, bound = ("min", least) if value < least else ("max", most)
        size = "smallest" if end == "min" else "largest"
        text = f"{name} {value:g}: the {size} of the library is {bound:g} (limit {op}.{name}_{end})"
        raise NotFitting(text)


def _given(args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in args.items():
        if value is not None:
            yield name, value
    options = args.get("options")
    if isinstance(options, Mapping):
        yield from _given(options)


def _timeouts(given: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The time-outs among the arguments of an op, in milliseconds, by the kind of op that they are for."""
    for name in ("timeout_ms", "request_timeout_ms"):
        if name in given:
            yield "request", given[name]
    for kind, value in given.get("timeouts", {}).items():
        yield (kind if kind in _KINDS else "request"), value


def _bodies(args: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("body", "stream"):
        if isinstance(args.get(name), Mapping | list):
            yield args[name]
    for message in args.get("messages", ()):
        yield message["body"]


def _size(body: Mapping[str, Any] | Sequence[Any]) -> int:
    """Bytes of a body of a request; those of all its parts."""
    if not isinstance(body, Mapping):
        return sum(map(_size, body))
    if "len" in body:
        return int(body["len"])
    text = body.get("text")
    return len(text.encode()) if text is not None else len(body.get("b64", "").rstrip("=")) * 3 // 4
