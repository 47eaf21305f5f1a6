"""A failure as one file: a pytest test with its fault plan that needs nothing of the suite."""

from __future__ import annotations

from pprint import pformat
from typing import Any

from conformance.suite.judge import Judgement
from fakebrokers.protocol import find_protocol

_TEMPLATE = '''"""{id} {title} ({level})

Required: {passes}
Seen:     {reason}

Run it with `pytest {file}` after `pip install fakebrokers`. Fill in `use_the_client` with what your
application does; the ops that the client was asked for stand there as comments.
"""

from fakebrokers import {server}

PLAN = {plan}
{proxy_plan}

def use_the_client(host: str, port: int) -> None:
    """What was asked of the client, in order; times in seconds since the start."""
{ops}
    raise NotImplementedError("call the client library here, connected to host and port")


def test_{name}() -> None:
    with {server}({settings}) as broker:
        broker.faults.load(PLAN)
{proxy_load}        try:
            use_the_client(broker.host, broker.port)
        finally:
            print(broker.journal_excerpt(60))
'''


def reproducer(judgement: Judgement) -> str:
    """The text of the file."""
    item = judgement.scenario
    name = item.id.lower().replace("-", "_").replace(".", "_")
    settings: dict[str, Any] = dict(item.server)
    is_proxied = bool(judgement.proxy_plan)
    return _TEMPLATE.format(
        id=item.id,
        title=item.requirement.title,
        level=item.level,
        passes=_one_line(item.requirement.passes),
        reason=_one_line(judgement.reason),
        file=f"test_{name}.py",
        server=find_protocol(item.protocol).server_name,
        plan=_plan(judgement.plan),
        proxy_plan=f"PROXY_PLAN = {_plan(judgement.proxy_plan)}\n" if is_proxied else "",
        proxy_load="        broker.proxy.faults.load(PROXY_PLAN)\n" if is_proxied else "",
        ops=_ops(judgement),
        name=name,
        settings=", ".join(f"{key}={value!r}" for key, value in settings.items()),
    )


def _plan(plan: dict[str, Any]) -> str:
    return pformat(plan, width=100, sort_dicts=False)


def _one_line(text: str) -> str:
    return " ".join(text.replace('"""', "'''").replace("\\", "\\\\").split())


def _ops(judgement: Judgement) -> str:
    import msgspec

    lines = []
    first = None
    for raw in judgement.transcript:
        entry = msgspec.json.decode(raw)
        if entry["way"] != "out" or entry["line"].get("op") in ("hello", "reset", "state", "echo"):
            continue
        first = entry["at_ns"] if first is None else first
        line = entry["line"]
        args = {k: v for k, v in line.get("args", {}).items() if k != "endpoints"}
        lines.append(
            f"    # {(entry['at_ns'] - first) / 1e9:7.3f}  {line['op']} {_one_line(str(args))[:150]}"
        )
    return "\n".join(lines[:60]) or "    # (nothing was asked of it)"
