"""Rows in which every text of a client is as bad as it can be."""

from __future__ import annotations

from typing import Any

import msgspec

from conformance.results import Results, RowResult, Step, Verdict, summarize

HOSTILE = "<b>&\"']]>[red]x[/red]\x00\x1b[2J\x1b]0;owned\x07\u202e\x9b1m\ufffe{0}\r\n\u2028\N{SNOWMAN}"


def row(verdict: Verdict = Verdict.FAIL, **more: Any) -> RowResult:
    base: dict[str, Any] = {
        "id": "RMQS-3.05",
        "protocol": "rabbitmq-stream",
        "variant": "",
        "level": "MUST",
        "verdict": verdict,
        "title": "PublishError with unknown code",
        "seconds": 1.25,
        "reason": f"the message is nacked: {HOSTILE}",
        "requirement": "`nacked`, no crash; non-strict: it waits; fail: it hangs",
        "source": "R7: Publish has no answer",
        "acceptable": ("`nacked`, no crash",),
        "actual": HOSTILE,
        "fault": "Code 999",
        "adapter": (f"broke its protocol: {HOSTILE}", "ended with exit status 7", f"stderr: {HOSTILE}"),
        "story": (f"0.1 client publish -> {HOSTILE}",),
        "diagram": (
            Step(0.1, "in", "Publish", HOSTILE, connection="c1"),
            Step(0.2, "out", "PublishConfirm", "1", fault=HOSTILE, connection="c1", lost=True),
        ),
        "journal": (f"0.1 c1 -> Publish {HOSTILE}",),
        "replay": "fakebrokers conform --adapter 'node a.mjs' --protocol rabbitmq-stream --seed 7 RMQS-3.05",
        "began_at": 1_700_000_000.5,
    }
    return RowResult(**{**base, **more})


#: What XML 1.0 forbids, what no UTF-8 can hold, and what ends or turns a line.
CHARACTERS = (
    *map(chr, range(0x20)),
    *"\x7f\x85\x9f\xad\u2028\u202e\ud800\udfff\ue000\ufdd0\ufffe\uffff\U0001fffe\U0010ffff",
)
TEXTS = ("id", "protocol", "variant", "title", "reason", "requirement", "source", "actual", "fault", "replay")
LINES = ("basis", "tags", "acceptable", "adapter", "story", "journal")


def with_everywhere(text: str, **more: Any) -> Results:
    """A run of a failure in which every text of the client is this one."""
    every = {**dict.fromkeys(TEXTS, text), **{name: (text,) for name in LINES}}
    found = results(
        row(**{**every, **more}), row(Verdict.HARNESS_ERROR, **every), row(Verdict.PROFILE, **every)
    )
    return msgspec.structs.replace(found, client=text, client_version=text)


def results(*rows: RowResult) -> Results:
    return Results(
        client=f"@scope/{HOSTILE}",
        client_version=HOSTILE,
        suite_version="1",
        seed=7,
        started="2025-01-01T00:00:00Z",
        seconds=3.0,
        results=rows,
        summary=summarize(rows),
    )
