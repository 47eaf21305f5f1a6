"""Writes one scenario's run into the journal: what the client was asked and told, beside the wire."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from conformance.adapter.kit.bodies import body_bytes
from conformance.adapter.transcript import Line
from conformance.suite.scenario import Scenario
from fakebrokers import __version__
from fakebrokers.journal import RunJournal
from fakebrokers.journal.run import value_id

#: The place of a message of `publish_many` in its op's number.
MANY = 1_000_000
SKIPPED = frozenset({"hello", "echo", "state", "reset", "shutdown", "stats"})
Outcome = Literal["invoke", "ok", "fail", "info"]


def open_run(
    folder: Path, scenario: Scenario, *, client: str, client_version: str, seed: int, profile: str
) -> RunJournal:
    """A journal for one more run of the scenario."""
    parts = [client, scenario.id, scenario.protocol, scenario.variant]
    stem = "@".join(re.sub("[^A-Za-z0-9._+-]", "-", part) for part in parts if part)
    number = 1 + sum(1 for _ in folder.glob(f"{stem}@*.ops"))
    return RunJournal(
        folder,
        f"{stem}@{number}",
        client=client,
        client_version=client_version,
        suite_version=__version__,
        protocol=scenario.protocol,
        variant=scenario.variant,
        profile=profile,
        scenario=scenario.id,
        revision=scenario.revision,
        level=scenario.level,
        requirement=" ".join(scenario.requirement.basis),
        seed=seed,
        contract="at-least-once",
    )


def write_ops(journal: RunJournal, lines: Sequence[Line]) -> None:
    """Everything that went between runner and adapter, as operations with their outcomes."""
    asked: dict[int, Mapping[str, Any]] = {}
    for line in lines:
        now, body = line.at_ns / 1e9, line.value
        if not isinstance(body, Mapping):
            continue
        if line.way == "out" and body.get("op") not in SKIPPED:
            asked[body["id"]] = body
            for number, value in _values(body):
                _begin(journal, now, body, number, value)
        elif "event" in body:
            _told(journal, now, body)
        elif body.get("id") in asked:
            _end(journal, now, asked.pop(body["id"]), body)


def _values(request: Mapping[str, Any]) -> Iterator[tuple[int, str | None]]:
    """The parts of an op: its number in the journal, and the message it carries."""
    args = request.get("args", {})
    if request["op"] != "publish_many":
        yield request["id"], _value(args.get("body"))
        return
    for place, message in enumerate(args.get("messages", [])):
        yield request["id"] * MANY + place, _value(message.get("body"))


def _begin(
    journal: RunJournal, now: float, request: Mapping[str, Any], number: int, value: str | None
) -> None:
    args = request.get("args", {})
    process = str(args.get("session", args.get("sub", "")))
    journal.op(now, process, number, _name(request), "invoke", key=args.get("target"), value=value)


def _name(request: Mapping[str, Any]) -> str:
    return "publish" if request["op"] == "publish_many" else str(request["op"])


def _end(journal: RunJournal, now: float, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    args = request.get("args", {})
    process = str(args.get("session", args.get("sub", "")))
    error = answer.get("error") or {}
    result = answer.get("result") or {}
    rows = result.get("outcomes", []) if isinstance(result, dict) else []
    for place, (number, value) in enumerate(_values(request)):
        outcome: Outcome = "ok" if answer.get("ok") else "fail" if error.get("definite") else "info"
        key = result.get("key") if isinstance(result, dict) else None
        if place < len(rows):
            outcome = {"acked": "ok", "nacked": "fail"}.get(rows[place].get("outcome"), "info")  # type: ignore[assignment]
            key = rows[place].get("key")
        elif isinstance(result, dict) and result.get("outcome") == "sent":
            outcome = "info"
        journal.op(
            now,
            process,
            number,
            _name(request),
            outcome,
            key=args.get("target"),
            value=value,
            wire_key=None if key is None else str(key),
            error=error.get("kind"),
        )


def _told(journal: RunJournal, now: float, line: Mapping[str, Any]) -> None:
    fields = line.get("fields", line)
    if line["event"] == "message":
        position = fields.get("position")
        offset = int(position) if isinstance(position, str | int) and str(position).isdecimal() else None
        journal.op(
            now,
            str(fields.get("sub", "")),
            None,
            "deliver",
            "ok",
            key=fields.get("target"),
            value=_value(fields.get("body")),
            offset=offset,
        )
    elif line["event"] in ("session", "error"):
        what = str(fields.get("what") or line["event"])
        journal.event(now, str(fields.get("session", "")), what, str(fields.get("text", ""))[:200])


def _value(body: Any) -> str | None:
    """Which message: the same for a body in a request and the one that is reported."""
    if body is None:
        return None
    if isinstance(body, list):
        parts = [_value(part) or "" for part in body]
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]
    if "sha256" in body:
        return str(body["sha256"])[:16]
    if "b64" in body:
        return value_id(base64.b64decode(body["b64"]))
    return value_id(body_bytes(body))
