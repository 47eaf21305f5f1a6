"""The faults that only PZQ has, in one line of Python each.

    store_failure("disk full", nth=2)

See `fakebrokers.faults.build`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from fakebrokers.faults.making import FaultArgs, builder
from fakebrokers.faults.plan import Fault
from fakebrokers.pzq.faults import (
    ChangeIdentity,
    CorruptPart,
    ExpireNow,
    ExtraHeaders,
    StoreFailure,
    WithoutDelimiter,
)


@builder(ChangeIdentity)
def change_identity(identity: str, **fault: Unpack[FaultArgs]) -> Fault:
    """The send socket comes back with another routing id; its connections end."""


@builder(CorruptPart)
def corrupt_part(xor: int = 0xFF, **fault: Unpack[FaultArgs]) -> Fault:
    """One byte of one part, both drawn from the seed, is another one; the parts stay as long as they are."""


@builder(ExpireNow)
def expire_now(**fault: Unpack[FaultArgs]) -> Fault:
    """All deliveries expire at this moment, however young: the messages come again."""


@builder(ExtraHeaders)
def extra_headers(headers: Sequence[str], **fault: Unpack[FaultArgs]) -> Fault:
    """Protocol parts that clients have to ignore are before the delimiter, as the document announces."""


@builder(StoreFailure)
def store_failure(reason: str, **fault: Unpack[FaultArgs]) -> Fault:
    """The message is not stored; the producer gets the reason."""


@builder(WithoutDelimiter)
def without_delimiter(**fault: Unpack[FaultArgs]) -> Fault:
    """The message ends where the empty part would be: no texts, no body."""
