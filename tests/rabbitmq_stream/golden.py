"""The recorded conversations with real RabbitMQ servers: ``vectors/rabbitmq-stream.jsonl``.

for case in cases("4.3.6"):
    case.id, case.desc, case.client_bytes, [step.data for step in case.steps]
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

SERVERS = ("3.10.8", "4.0.5", "4.3.6")

_FILE = Path(__file__).with_name("vectors") / "rabbitmq-stream.jsonl"


class Step(NamedTuple):
    """What one side did.

    Attributes:
        direction: ``c2s`` client to server, ``s2c`` server to client, ``eof`` the server hung up.
        at: Seconds since the case began.
        data: One segment; mostly, not always, one whole frame. Empty for ``eof``.
    """

    direction: Literal["c2s", "s2c", "eof"]
    at: float
    data: bytes


class Case(NamedTuple):
    """One recorded conversation; `id` is unique per server."""

    id: str
    server: str
    desc: str
    steps: tuple[Step, ...]
    note: str

    @property
    def client_bytes(self) -> bytes:
        """Everything that the client sent."""
        return b"".join([step.data for step in self.steps if step.direction == "c2s"])

    @property
    def server_bytes(self) -> bytes:
        """Everything that the server sent."""
        return b"".join([step.data for step in self.steps if step.direction == "s2c"])

    @property
    def closed(self) -> bool:
        """Did the server hang up?"""
        return any(step.direction == "eof" for step in self.steps)

    def __str__(self) -> str:
        return f"{self.server}-{self.id}"


@cache
def cases(server: str | None = None) -> tuple[Case, ...]:
    """All cases, or those of one server version."""
    with _FILE.open(encoding="utf-8") as lines:
        next(lines)  # says what the file is
        found = [_case(json.loads(line)) for line in lines]
    return tuple([case for case in found if server in (None, case.server)])


def case(server: str, case_id: str) -> Case:
    """The case with this id."""
    return next(case for case in cases(server) if case.id == case_id)


def _case(raw: dict[str, object]) -> Case:
    steps = [
        Step(frame["dir"], float(frame["t"]), bytes.fromhex(frame.get("hex", "")))
        for frame in raw["frames"]  # type: ignore[attr-defined]
    ]
    return Case(str(raw["id"]), str(raw["server"]), str(raw["desc"]), tuple(steps), str(raw.get("note", "")))
