"""The faults that only Narconi has, in one line of Python each.

    cut_body(keep=40, kind="HttpDeliver")

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.narconi.faults import (
    BreakBackend,
    CutBody,
    FailInstead,
    HttpAnswer,
    SlowBody,
    SplitDelivery,
    WithLength,
    WithoutHeader,
)
from fakebrokers.narconi.forging import CorruptContent, WithHeaders


@builder(BreakBackend)
def break_backend(down_s: float = 0.0, pass_frame: bool = True, **fault: Unpack[FaultArgs]) -> Fault:
    """RabbitMQ goes away: WebSocket connections end with an error."""


@builder(CorruptContent)
def corrupt_content(xor: int = 0xFF, **fault: Unpack[FaultArgs]) -> Fault:
    """One byte, drawn from the seed, is another one; all lengths and the heads of frames stay right."""


@builder(CutBody)
def cut_body(keep: int = 0, **fault: Unpack[FaultArgs]) -> Fault:
    """The answer's head, and only the front of its body; usually an end of the connection follows."""


@builder(FailInstead)
def fail_instead(
    error: str = "AMQP channel was closed.", code: int = 500, close: bool = True, **fault: Unpack[FaultArgs]
) -> Fault:
    """The server's error object in place of a confirm or a delivery."""


@builder(HttpAnswer)
def http_answer(
    status: int,
    body: str = "",
    content_type: str = "text/html",
    headers: Mapping[str, str] = ...,
    close: bool = False,
    **fault: Unpack[FaultArgs],
) -> Fault:
    """Another answer than the server's, as a gateway might give it."""


@builder(SlowBody)
def slow_body(bytes_per_s: float = 1.0, **fault: Unpack[FaultArgs]) -> Fault:
    """The answer's head at once, its body byte by byte."""


@builder(SplitDelivery)
def split_delivery(gap_s: float | None = None, pings: int = 0, **fault: Unpack[FaultArgs]) -> Fault:
    """A delivery's metadata now, its payload message later or never."""


@builder(WithHeaders)
def with_headers(headers: Mapping[str, str], **fault: Unpack[FaultArgs]) -> Fault:
    """The answer has more headers."""


@builder(WithLength)
def with_length(**fault: Unpack[FaultArgs]) -> Fault:
    """The answer has a ``Content-Length`` instead of chunks (as from a gateway, or from node 20)."""


@builder(WithoutHeader)
def without_header(header: str, **fault: Unpack[FaultArgs]) -> Fault:
    """A header of the answer is missing."""
