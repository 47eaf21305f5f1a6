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
MAX_SEGMENT_SIZE = 3_000_000_000

LOCATORS = frozenset({"client-local", "balanced", "random", "least-leaders"})

_TEXTS = ("max-age", "queue-leader-locator")
_NUMBERS = (
    "max-length-bytes",
    "stream-max-segment-size-bytes",
    "initial-cluster-size",
    "stream-filter-size-bytes",
)

_AGE = re.compile(r"(\d+)([YMDhms])")
_SECONDS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


class StreamArguments(msgspec.Struct, frozen=True):
    """What a stream was declared with, and what that means.

    Two declarations are the same if they name the same arguments with the same values: naming a default is
    not the same as leaving it out.

    Attributes:
        max_length: Bytes that are kept; None or a negative number: all of them.
        max_age: How old chunks may get, as text such as ``7D``; what is no age counts as unlimited.
        segment_size: Bytes after which a new segment is begun.
        cluster_size: Members of the stream; None: one per node.
        locator: Which node leads; None: the node of the connection that declares.
        filter_size: Bytes of a chunk's bloom filter.
        declared: The arguments that were named, of those that a server knows, with their values.
    """

    max_length: int | None = None
    max_age: str | None = None
    segment_size: int = DEFAULT_SEGMENT_SIZE
    cluster_size: int | None = None
    locator: str | None = None
    filter_size: int = DEFAULT_FILTER_SIZE
    declared: Mapping[str, int | str] = {}

    @property
    def max_age_s(self) -> int | None:
        """`max_age` in seconds; None: unlimited. A year has 365 days, a month 30."""
        return seconds_of(self.max_age or "")

    def limited(self, settings: Mapping[str, int | str]) -> StreamArguments:
        """The same with the limits of a policy: of two sizes or ages the smaller counts."""
        max_length, max_age = settings.get("max-length-bytes"), settings.get("max-age")
        if max_length is None or (self.max_length is not None and 0 <= self.max_length <= int(max_length)):
            max_length = self.max_length
        if max_age is None or _or_endless(self.max_age_s) <= _or_endless(seconds_of(str(max_age))):
            max_age = self.max_age
        return msgspec.structs.replace(
            self,
            max_length=None if max_length is None else int(max_length),
            max_age=None if max_age is None else str(max_age),
        )


def _or_endless(seconds: int | None) -> float:
    return float("inf") if seconds is None else seconds


def seconds_of(age: str) -> int | None:
    """An age such as ``7D`` in seconds; None: it is no age. A year has 365 days, a month 30."""
    match = _AGE.fullmatch(age)
    return int(match[1]) * _SECONDS[match[2]] if match else None


def parse_arguments(given: Mapping[str, str], profile: Profile) -> StreamArguments:
    """Read the arguments of a declaration; unknown keys are ignored.

    Raises:
        Refused: A value is out of range: code 17.
        Crashed: A number is no number, or an age that is read does not begin with one.
    """
    if profile.reads_max_age and not given.get("max-age", "0")[:1].isdecimal():
        raise Crashed(f"expected an age, got {given['max-age']!r}")
    declared = {key: given[key] for key in _TEXTS if key in given} | _numbers(given, profile)
    if _out_of_range(declared):
        raise Refused(Code.PRECONDITION_FAILED)
    cluster_size = declared.get("initial-cluster-size")
    max_length = declared.get("max-length-bytes")
    return StreamArguments(
        max_length=None if max_length is None else int(max_length),
        max_age=given.get("max-age"),
        segment_size=int(declared.get("stream-max-segment-size-bytes") or DEFAULT_SEGMENT_SIZE),
        cluster_size=None if cluster_size is None else int(cluster_size),
        locator=given.get("queue-leader-locator"),
        filter_size=int(declared.get("stream-filter-size-bytes", DEFAULT_FILTER_SIZE)),
        declared=declared,
    )


def _out_of_range(declared: Mapping[str, int | str]) -> bool:
    filter_size = int(declared.get("stream-filter-size-bytes", DEFAULT_FILTER_SIZE))
    return (
        int(declared.get("initial-cluster-size", 1)) <= 0
        or declared.get("queue-leader-locator", "balanced") not in LOCATORS
        or not DEFAULT_FILTER_SIZE <= filter_size <= 255
        or int(declared.get("stream-max-segment-size-bytes", 0)) > MAX_SEGMENT_SIZE
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


def _numbers(given: Mapping[str, str], profile: Profile) -> dict[str, int | str]:
    """The arguments that are numbers.

    Raises:
        Crashed: One is no number.
    """
    found: dict[str, int | str] = {}
    for key in _NUMBERS:
        if key not in given or (key == "stream-filter-size-bytes" and not profile.filters):
            continue
        if re.fullmatch(r"[+-]?[0-9]+", given[key]) is None:
            raise Crashed(f"expected a number for {key}, got {given[key]!r}")
        found[key] = int(given[key])
    return found
