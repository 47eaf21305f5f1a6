"""Writes one scenario's run into the journal: what the client was asked and answered, beside the wire."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.clients.adapter.kit.bodies import body_bytes
from conformance.clients.adapter.transcript import WAITED, TranscriptLine
from conformance.rules.anomalies.anomaly import ALLOWED_BY, RECONNECTS
from conformance.suite.contract import AnyRun, contract, promise
from conformance.suite.deeds import Deed
from conformance.suite.scenario import Scenario
from conformance.suite.story import one_line
from fakebrokers import __version__
from fakebrokers.journal import Journal, RunJournal
from fakebrokers.journal.run import Outcome, value_id
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.protocol import find_protocol

#: The place of a message of `publish_many` in its op's number.
MANY = 1_000_000
#: The contract of a run that was broken off: nobody knows what its faults took back.
UNKNOWN = " ".join(ALLOWED_BY)
SKIPPED = frozenset({"hello", "echo", "state", "reset", "shutdown", "stats"})
OUTCOMES: Mapping[Any, Outcome] = {"acked": "ok", "nacked": "fail"}


def open_run(
    folder: Path,
    scenario: Scenario,
    *,
    client: str,
    client_version: str,
    seed: int,
    profile: str,
    traces: bool = False,
) -> RunJournal:
    """A journal for one more run of the scenario.

    Args:
        traces: Keep what passed byte by byte.
    """
    parts = [client, scenario.id, scenario.protocol, scenario.variant]
    name = "@".join(re.sub("[^A-Za-z0-9._+-]", "-", part[:60]) for part in parts if part)
    return RunJournal(
        folder,
        name.lstrip("-._+@") or "run",  # a scope such as npm's @scope/name begins with what a name may not
        frames=True,  # the page of a failed run shows the fields of its frames
        traces=traces,
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
        contract=UNKNOWN,
    )


def write_ops(
    journal: RunJournal,
    scenario: AnyRun,
    lines: Sequence[TranscriptLine],
    wire: Journal | None,
    deeds: Sequence[Deed] = (),
) -> None:
    """Everything that went between runner and adapter, and the contract that came of it.

    Args:
        wire: The fake's journal, if there was a fake.
        deeds: What the script did to it.
    """
    for deed in deeds:
        if text := one_line(deed):
            journal.did(deed.at_s, without_secrets(text))
    notes = _Notes(journal, offsets=find_protocol(scenario.protocol).ordered)
    for line in lines:
        now, body = line.at_ns / 1e9, line.value
        try:
            notes.take(now, line.way, body)
        except (AttributeError, KeyError, TypeError, ValueError):
            journal.event(now, "", "unreadable", str(body)[:200])  # it breaks the adapter protocol
    promised = promise(scenario.protocol)
    if wire is not None:
        promised = contract(scenario, wire, resumed_s=notes.resumed_s)
    journal.attributes(contract=promised)


class _Notes:
    """The exchange so far: what was asked and has not ended, and who reads what."""

    def __init__(self, journal: RunJournal, offsets: bool) -> None:
        self._journal = journal
        self._offsets = offsets
        self._asked: dict[int, Mapping[str, Any]] = {}
        self._sent: dict[int, Mapping[str, Any]] = {}  #: publishes whose outcome comes as an event
        self._logs: dict[str, tuple[str, str | None]] = {}  #: subscription to its session and log
        self._slow: set[str] = set()  #: subscriptions whose callbacks take time
        self._partial: set[str] = set()  #: those to several logs, or to parts of one: positions have gaps
        self._long: dict[tuple[str, str], str | None] = {}  #: their messages whose callbacks run
        self.resumed_s: float | None = None  #: when the client last reported that it works again after a loss

    def take(self, now: float, way: str, line: Mapping[str, Any]) -> None:
        """One line of the exchange."""
        if way == WAITED:
            sub = line["sub"]
            self._journal.op(now, sub, None, "drain", "ok", key=self._logs.get(sub, ("", None))[1])
        elif way == "out":
            if line.get("op") not in SKIPPED:
                self._begin(now, line)
        elif "event" in line:
            self._reported(now, line.get("fields", line) | {"event": line["event"]})
        elif line.get("id") in self._asked:
            self._end(now, self._asked.pop(line["id"]), line)

    def _begin(self, now: float, request: Mapping[str, Any]) -> None:
        args = request.get("args", {})
        self._asked[request["id"]] = request
        if request["op"] == "subscribe":
            self._logs[str(args.get("sub", ""))] = (str(args.get("session", "")), args.get("target"))
            plan = args.get("on_message") or {}
            if plan.get("sleep_ms") or plan.get("do"):
                self._slow.add(str(args.get("sub", "")))
            options = args.get("options") or {}
            if options.get("super_stream") or options.get("filter"):
                self._partial.add(str(args.get("sub", "")))
        for number, value in _values(request):
            self._journal.op(
                now, _process(request), number, _name(request), "invoke", key=args.get("target"), value=value
            )

    def _end(self, now: float, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        found = answer.get("result")
        result: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        rows = result.get("outcomes") or [result]
        publishes = _name(request) == "publish"
        for place, (number, value) in enumerate(_values(request)):
            row = rows[place] if place < len(rows) else {}
            outcome = _outcome(answer, row, publishes)
            self._ended(now, request, number, value, outcome, row, answer.get("error") or {})
        if result.get("outcome") == "sent":
            self._sent[request["id"]] = request
        if request["op"] == "next":
            for message in result.get("messages", ()):
                self._delivered(now, message)

    def _ended(
        self,
        now: float,
        request: Mapping[str, Any],
        number: int,
        value: str | None,
        outcome: Outcome,
        row: Mapping[str, Any],
        error: Mapping[str, Any],
    ) -> None:
        key = row.get("key")
        self._journal.op(
            now,
            _process(request),
            number,
            _name(request),
            outcome,
            key=request.get("args", {}).get("target"),
            value=value,
            wire_key=None if key is None else str(key),
            error=error.get("kind"),
        )

    def _reported(self, now: float, event: Mapping[str, Any]) -> None:
        if event["event"] == "message":
            self._delivered(now, event)
        elif event["event"] == "returned":
            self._returned(now, event)
        elif event["event"] == "outcome" and event.get("id") in self._sent:
            request = self._sent.pop(event["id"])
            for number, value in _values(request):
                outcome = OUTCOMES.get(event.get("outcome"), "info")
                self._ended(now, request, number, value, outcome, event, event.get("error") or {})
        elif event["event"] in ("session", "error"):
            session = str(event.get("session", ""))
            what = str(event.get("what") or event["event"])
            self._journal.event(now, session, what, str(event.get("text", ""))[:200])
            if what == "reconnected":
                self.resumed_s = now
            if what in RECONNECTS:
                for sub, (own, log) in self._logs.items():
                    if session in ("", own):
                        self._journal.op(now, sub, None, "assign", "info", key=log)

    def _returned(self, now: float, event: Mapping[str, Any]) -> None:
        """A callback has ended; it began with the row ``deliver`` of the same message."""
        sub = str(event["sub"])
        self._journal.op(
            now,
            sub,
            None,
            "returned",
            "event",
            key=self._logs.get(sub, ("", None))[1],
            value=self._long.pop((sub, str(event["ref"])), None),
            note="raised" if event.get("raised") else "",
        )

    def _delivered(self, now: float, message: Mapping[str, Any]) -> None:
        if message.get("sub") in self._slow:
            self._long[str(message["sub"]), str(message.get("ref"))] = _value(message.get("body"))
        counts = self._offsets and message.get("sub") not in self._partial
        position = str(message.get("position")) if counts else ""
        numbered = position.isdecimal()
        readable = numbered and len(position) <= 20  # the digits of 2^64
        self._journal.op(
            now,
            str(message.get("sub", "")),
            None,
            "deliver",
            "ok",
            key=message.get("target"),
            value=_value(message.get("body")),
            offset=int(position) if readable else None,
            note="" if readable or not numbered else f"position {position[:80]} does not fit",
        )


def _values(request: Mapping[str, Any]) -> Iterator[tuple[int, str | None]]:
    """The parts of an op: its number in the journal, and the message it carries."""
    args = request.get("args", {})
    if request["op"] != "publish_many":
        yield request["id"], _value(args.get("body"))
        return
    for place, message in enumerate(args.get("messages", [])):
        yield request["id"] * MANY + place, _value(message.get("body"))


def _name(request: Mapping[str, Any]) -> str:
    return "publish" if request["op"] == "publish_many" else str(request["op"])


def _process(request: Mapping[str, Any]) -> str:
    """Who does it: a subscription is a process of its own, and so is a session."""
    args = request.get("args", {})
    return str(args.get("sub", args.get("session", "")))


def _outcome(answer: Mapping[str, Any], row: Mapping[str, Any], publishes: bool) -> Outcome:
    """How an op ended; of a publish that was only sent nothing is known yet."""
    if not answer.get("ok"):
        return "fail" if (answer.get("error") or {}).get("definite") else "info"
    return OUTCOMES.get(row.get("outcome"), "info") if publishes else "ok"


def _value(body: Any) -> str | None:
    """Which message: the same for a body in a request and the one that is reported."""
    if body is None:
        return None
    if isinstance(body, list):
        if len(body) == 1:
            return _value(body[0])
        parts = [_value(part) or "" for part in body]
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]
    if "sha256" in body:
        return str(body["sha256"])[:16]
    if "b64" in body:
        return value_id(base64.b64decode(body["b64"]))
    return value_id(body_bytes(body))
