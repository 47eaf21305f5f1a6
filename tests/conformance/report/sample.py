"""Results of made-up clients, with everything in them that a report can show."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from conformance.pipeline.comparison import compare
from conformance.results import Results, RowResult, Step, Verdict, summarize

HOSTILE = "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'>\"'&amp;{{7*7}}]]>\u202e\x00"

TITLES = [
    "Confirm lost, connection alive",
    "A batch of a hundred messages is confirmed in two halves",
    "The broker closes while messages are unconfirmed",
    "A frame is cut in the middle of its length",
    "Heartbeats stop, the connection stays",
    "Unknown response code",
]
SOURCES = [
    "R7: A confirm names every publishing id that was stored; it may come in any order and any grouping.",
    "R9: Either side closes the connection when nothing was heard for two intervals.",
    "R20: Frames with an unknown key are answered with Close, code 13; a client must survive them.",
]


def steps() -> tuple[Step, ...]:
    return (
        Step(0.0, "", "accepted", "127.0.0.1:51234", connection="c1"),
        Step(0.0012, "in", "PeerProperties", "#1", connection="c1"),
        Step(0.0015, "out", "PeerPropertiesResponse", "#1 code 1", connection="c1"),
        Step(0.004, "in", "DeclarePublisher", "#5", connection="c1"),
        Step(0.0044, "out", "DeclarePublisherResponse", "#5 code 1", connection="c1"),
        Step(0.0101, "in", "Publish", "0..99 (100)", connection="c1"),
        Step(0.0105, "out", "PublishConfirm", "0..99 (100)", "lose the first confirm", "c1", lost=True),
        Step(0.5, "out", "Heartbeat", connection="c1"),
        Step(1.011, "", "closed", "closed by client", connection="c1"),
    )


def reconnects() -> tuple[Step, ...]:
    """The connection is reset, the next one refused, and the third one works."""
    return (
        *steps()[:6],
        Step(0.011, "", "reset", "by the fake", "reset after the first publish", "c1"),
        Step(0.25, "", "accepted", "127.0.0.1:51240", connection="c2"),
        Step(0.2504, "", "reset", "by the fake", "refuse the second connection", "c2"),
        Step(0.75, "", "accepted", "127.0.0.1:51244", connection="c3"),
        Step(0.7512, "in", "PeerProperties", "#1", connection="c3"),
        Step(0.7515, "out", "PeerPropertiesResponse", "#1 code 1", connection="c3"),
        Step(0.76, "in", "Publish", "0..99 (100)", connection="c3"),
        Step(0.761, "out", "PublishConfirm", "0..99 (100)", connection="c3"),
    )


def result(number: int, verdict: Verdict, **more: Any) -> RowResult:
    failed = verdict is Verdict.FAIL
    base: dict[str, Any] = {
        "id": f"RMQS-3.{number:02}",
        "protocol": "rabbitmq-stream",
        "variant": "",
        "level": ("MUST", "SHOULD", "MAY")[number % 3],
        "verdict": verdict,
        "title": TITLES[number % len(TITLES)],
        "tags": ("hang",) if failed else (),
        "seconds": 1.0 + number / 7,
        "reason": "" if verdict is Verdict.PASS else "expected the outcome unknown, got acked after 12 ms",
        "basis": ("R7",),
        "requirement": "A publish whose confirm does not come ends as unknown, within its deadline.",
        "source": SOURCES[number % len(SOURCES)],
        "acceptable": ("unknown within 1.45 s", "unknown after the connection was closed by the client"),
        "actual": "acked after 12 ms" if failed else "unknown after 1.02 s",
        "diagram": () if verdict is Verdict.UNSUPPORTED else reconnects() if number % 4 == 3 else steps(),
        "journal": tuple(
            f"   {s.t:.4f}   c1 -> {s.kind}" + (f" [fault: {s.fault}]" if s.fault else "") for s in steps()
        ),
        "plan": {
            "seed": 42,
            "faults": [{"match": {"role": "confirm", "nth": 1}, "effect": {"type": "drop"}}],
        },
        "replay": f"fakebrokers conform --client alpha --seed 42 RMQS-3.{number:02}",
        "reproducer": "def test_it(rabbitmq_stream):\n    assert rabbitmq_stream.url  # and so on\n"
        if failed
        else "",
        "run": f"run-{number}",
    }
    return RowResult(**{**base, **more})


def client(name: str, version: str, scenarios: int, seed: int, **more: Any) -> Results:
    dice = random.Random(seed)
    weights = {
        Verdict.PASS: 20,
        Verdict.FAIL: 3,
        Verdict.NON_STRICT: 2,
        Verdict.UNSUPPORTED: 3,
        Verdict.INCONCLUSIVE: 1,
    }
    found = tuple(
        result(number, dice.choices(list(weights), list(weights.values()))[0], **more)
        for number in range(1, scenarios + 1)
    )
    return Results(name, version, "0.1.0", 42, "2026-01-02T03:04:05Z", 12.5, found, summarize(found), 1)


def analysis() -> dict[str, Any]:
    quantiles = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0]
    cell = {"client_version": "1.0", "protocol": "rabbitmq-stream", "variant": "", "messages": 12345}
    finding = {
        "name": "lost-write",
        "run": "run-3",
        "key": "orders",
        "value": "2cf24dba5fb0a30e",
        "process": "c1",
        "seqs": [17, 23],
        "detail": "read past",
        "allowed": False,
        "client": "alpha",
        "client_version": "1.0",
        "protocol": "rabbitmq-stream",
        "variant": "",
        "scenario": "RMQS-3.03",
        "requirement": "R7",
        "seed": 42,
    }
    return {
        "version": 1,
        "rows": 123456,
        "runs": 78,
        "anomalies": {"lost-write": 1, "duplicate": 1},
        "allowed": {"lost-write": 0, "duplicate": 1},
        "findings": [
            finding,
            {**finding, "name": "duplicate", "allowed": True, "value": HOSTILE, "seed": None},
        ],
        "quantiles": quantiles,
        "latencies": [
            {
                **cell,
                "client": name,
                "scenario": "",
                "measure": measure,
                "quantiles_ms": [base * 1.9**i for i in range(10)],
            }
            for measure in ("publish-confirm", "publish-deliver", "wire-confirm")
            for name, base in (("alpha", 0.21), ("beta", 0.4), ("gamma", 1.1))
        ],
        "matrix": [],
        "faults": faults(),
        "comparison": comparison(),
        "harness": {"loop_lag_ms": 3.25, "cpu_steal": 0.02},
        "seconds": 8.25,
        "out": "analysis",
    }


def faults() -> list[dict[str, Any]]:
    """Two scenarios, one of them with cuts at forty places; and a client that puts markup wherever it can."""
    rows = []
    for client, bad in (("alpha", 7), ("beta", 41)):
        for scenario, fault, number in [
            *(("RMQS-3.03", f"c1 cut at {n}", n) for n in range(1, 41)),
            ("RMQS-3.04", "confirms are lost", 0),
        ]:
            verdicts = {"fail": 1, "pass": 2} if number == bad else {"pass": 3}
            affected = {"lost-write": 1} if (client, number) == ("alpha", 0) else {}
            rows.append(_cell(client, scenario, fault, verdicts, affected))
    rows.append(_cell(HOSTILE, HOSTILE, HOSTILE, {"inconclusive": 3}, {HOSTILE: 1}))
    rows.append(
        {**_cell("alpha", "RMQS-3.01", "", {"pass": 3}, {}), "protocol": "moleculer", "variant": "nats"}
    )
    return rows


def _cell(
    client: str, scenario: str, fault: str, verdicts: dict[str, int], affected: dict[str, int]
) -> dict[str, Any]:
    cell = {"client": client, "client_version": "1.0", "protocol": "rabbitmq-stream", "variant": ""}
    reported = {"fault": fault, "runs": 3, "broken_off": 0, "verdicts": verdicts, "affected": affected}
    return {**cell, "scenario": scenario, "anomalies": sum(affected.values()), **reported}


def comparison() -> dict[str, Any]:
    """Against the baseline as ``analysis.json`` has it."""
    before = [*faults()[:-1], _cell("beta", "RMQS-3.99", "", {"pass": 3}, {})]
    flipped = {"RMQS-3.03": {"fail": 3}, "RMQS-3.04": {"pass": 3}}
    now = [
        _cell("alpha", "RMQS-3.03", "", {"pass": 1, "fail": 2}, {"lost-write": 3}),
        _cell("alpha", "RMQS-3.04", "", {"fail": 3}, {}),
        _cell("alpha", "RMQS-3.05", "", {"pass": 3}, {}),
        {**_cell("beta", "RMQS-3.03", "", {"pass": 3}, {}), "client_version": "2.0"},
        _cell(HOSTILE, HOSTILE, "", {"fail": 3}, {HOSTILE: 1}),
    ]
    then = [{**row, "verdicts": flipped.get(row["scenario"], {"pass": 3})} for row in before]
    found: dict[str, Any] = msgspec.to_builtins(compare({"matrix": now}, {"matrix": then}, "last week"))
    return found


def everything(*, hostile: bool = True) -> dict[str, Any]:
    """Arguments of `write_report`; with a hostile client among them."""
    runs = [client("alpha", "1.0", 24, 1), client("beta", "0.9.1", 24, 2), client("gamma", "3.2", 20, 3)]
    runs.append(client("alpha", "1.0", 8, 5, protocol="moleculer", variant="nats"))
    if hostile:
        runs.append(hostile_client())
    mutants = {
        "scenarios": [
            {
                "id": f"RMQS-3.{n:02}",
                "protocol": "rabbitmq-stream",
                "variant": "",
                "killed_by": ["forgets-waiter"],
            }
            for n in range(1, 20)
        ]
    }
    note = "Not run here: node clients (no node)."
    return {"runs": runs, "analysis": analysis(), "mutants": mutants, "note": note}


def hostile_client() -> Results:
    """A client that puts markup wherever it can."""
    model = result(99, Verdict.FAIL)
    text = {
        name: HOSTILE
        for name in (
            "id",
            "variant",
            "title",
            "reason",
            "requirement",
            "source",
            "actual",
            "replay",
            "reproducer",
            "run",
        )
    }
    bad = RowResult(
        **{
            **{name: getattr(model, name) for name in model.__struct_fields__},
            **text,
            "acceptable": (HOSTILE,),
            "tags": (HOSTILE,),
            "journal": (HOSTILE, "</pre>"),
            "diagram": (
                Step(0.0, "in", HOSTILE, HOSTILE, HOSTILE, HOSTILE),
                Step(0.1, "", HOSTILE, HOSTILE, HOSTILE),
            ),
            "plan": {HOSTILE: HOSTILE},
        }
    )
    return Results(HOSTILE, HOSTILE, "0.1.0", 42, HOSTILE, 1.0, (bad,), {"fail": 1}, 1)
