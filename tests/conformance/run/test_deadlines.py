"""When an op may end for want of an answer, where the library says how long it takes at most."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.run.bases import RunOp
from conformance.run.trace import Position

AT = Position(0, 0, 10.0)


def op(given_ms: float | None, latest_s: float, **args: Any) -> RunOp:
    return RunOp(1, "publish", args, given_ms=given_ms, timeout_s=latest_s, begun=AT, phase="")


@pytest.mark.parametrize(
    ("given_ms", "latest_s", "args", "earliest_s"),
    [
        (2000, 2.0, {}, 2.0),
        (None, 10.0, {}, 10.0),
        (2000, 10.0, {}, 2.0),
        (9000, 10.0, {}, 5.0),
        (4000, 4.0, {"timeout_ms": 3000}, 3.0),
        (4000, 4.0, {"timeout_ms": 5000}, 4.0),
    ],
    ids=[
        "given",
        "not given",
        "at most",
        "looks now and then",
        "the call's own",
        "longer than it is waited for",
    ],
)
def test_the_earliest_end(
    given_ms: float | None, latest_s: float, args: dict[str, Any], earliest_s: float
) -> None:
    assert op(given_ms, latest_s, **args).earliest_s == earliest_s


@pytest.mark.parametrize(
    ("after_s", "may"), [(1.6, False), (1.8, True), (5.0, True), (10.2, True), (10.4, False)]
)
def test_it_may_run_out_between_the_earliest_and_the_latest(after_s: float, may: bool) -> None:
    assert op(2000, 10.0).may_run_out(AT._replace(t=AT.t + after_s), 0.3) is may
