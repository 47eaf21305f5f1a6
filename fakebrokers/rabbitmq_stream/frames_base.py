"""What all frames of this protocol have in common.

A class is the wire layout: its fields stand in wire order after key and version, each with its wire
type (see `wiretypes`). Only `Publish` and `Deliver` are read and written by hand, because most traffic is
theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fakebrokers.core.frames import Frame, FrameSpec, Role
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.wiretypes import U16, U32

Sender = Literal["client", "server", "both"]

RESPONSE_BIT = 0x8000


class StreamFrame(Frame, frozen=True, gc=False):
    """A frame of this protocol. `KEY` is the u16 it begins with; the version is 1 unless a field says."""

    KEY: ClassVar[int]
    SENDER: ClassVar[Sender] = "client"
    code_names: ClassVar[Mapping[int, str]] = {code.value: code.name for code in Code}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.way = {"client": "in", "server": "out", "both": ""}[cls.SENDER]


class Correlated(StreamFrame, frozen=True):
    """A question or an answer: both carry the id that the asking side chose."""

    correlation_id: U32


class Request(Correlated, frozen=True):
    """Expects an answer with the same correlation id."""

    spec = FrameSpec(Role.REQUEST, key="correlation_id")


class Response(Correlated, frozen=True):
    """Answers the request with this correlation id; `code` is one of `codes.Code`."""

    spec = FrameSpec(Role.RESPONSE, key="correlation_id", status="code")

    SENDER: ClassVar[Sender] = "server"
    code: U16
