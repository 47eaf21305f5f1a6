"""The faults that only PZQ has, in one line of Python each.

    store_failure("disk full", nth=2)

The types of these functions are in the stub beside this file; see `fakebrokers.faults.build`.
"""

from __future__ import annotations

from fakebrokers.faults.making import builder
from fakebrokers.pzq.faults import (
    ChangeIdentity,
    CorruptPart,
    ExpireNow,
    ExtraHeaders,
    StoreFailure,
    WithoutDelimiter,
)

change_identity = builder(ChangeIdentity)
corrupt_part = builder(CorruptPart)
expire_now = builder(ExpireNow)
extra_headers = builder(ExtraHeaders)
store_failure = builder(StoreFailure)
without_delimiter = builder(WithoutDelimiter)
