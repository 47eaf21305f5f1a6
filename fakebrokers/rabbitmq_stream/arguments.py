"""The arguments of Create and CreateSuperStream.

Rules: docs/protocols/rabbitmq-stream.md, 9.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.profile import Profile
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused

DEFAULT_SEGMENT_SIZE = 500_000_000
DEFAULT_FILTER_SIZE = 16

LOCATORS = frozenset({"client-local", "balanced", "random", "least-leaders"})

_AGE = re.compile(r"(\d+)([YMDhms])")
_SECONDS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


class StreamArguments(msgspec.Struct, frozen=True):
    """What a stream was declared with; two declarations are the same if these are equal.

    Attributes:
        max_length: Bytes that are kept; None or a negative number: all of them.
        max_age: How old chunks may get, as text such as ``7D``; what is no age counts as unlimited.
        segment_size: Bytes after which a new segment is begun.
        cluster_size: Members of the stream; None: one per node.
        locator: Which node leads; None: the node of the connection that declares.
        filter_size: Bytes of a chunk's bloom filter.
    """

    max_length: int | None = None
    max_age: str | None = None
    segment_size: int = DEFAULT_SEGMENT_SIZE
    cluster_size: int | None = None
    locator: str | None = None
    filter_size: int = DEFAULT_FILTER_SIZE

    @property
    def max_age_s(self) -> int | None:
        """`max_age` in seconds; None: unlimited. A year has 365 days, a month 30."""
        match = _AGE.fullmatch(self.max_age or "")
        return int(match[1]) * _SECONDS[match[2]] if match else None


def parse_arguments(given: Mapping[str, str], profile: Profile) -> StreamArguments:
    """Read the arguments of a declaration; unknown keys are ignored.

    Raises:
        Refused: A value is out of range: code 17.
        Crashed: A number is no number.
    """
    cluster_size = _number(given, "initial-cluster-size")
    locator = given.get("queue-leader-locator")
    filter_size = _number(given, "stream-filter-size-bytes") if profile.filters else None
    if (
        (cluster_size is not None and cluster_size <= 0)
        or (locator is not None and locator not in LOCATORS)
        or (filter_size is not None and not 16 <= filter_size <= 255)
    ):
        raise Refused(Code.PRECONDITION_FAILED)
    return StreamArguments(
        max_length=_number(given, "max-length-bytes"),
        max_age=given.get("max-age"),
        segment_size=_number(given, "stream-max-segment-size-bytes") or DEFAULT_SEGMENT_SIZE,
        cluster_size=cluster_size,
        locator=locator,
        filter_size=filter_size or DEFAULT_FILTER_SIZE,
    )


def parse_name(name: str) -> str:
    """The name under which a stream or super stream is declared: without line breaks.

    Raises:
        Refused: Nothing is left, or the name is reserved: code 17.
    """
    name = name.replace("\r", "").replace("\n", "")
    if not name or name.startswith("amq."):
        raise Refused(Code.PRECONDITION_FAILED)
    return name


def _number(given: Mapping[str, str], key: str) -> int | None:
    text = given.get(key)
    if text is None:
        return None
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise Crashed(f"expected a number for {key}, got {text!r}")
    return int(text)
