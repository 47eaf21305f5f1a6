"""Whether a failure is the adapter's, which was written for other versions of the library than this one."""

from __future__ import annotations

import re

from conformance.results import RowResult

#: Calls of what the library does not have: no fault of a broker brings these about. That an object lacks an
#: attribute, or something is no function, may be a defect of the client as well.
_UNKNOWN_CALL = re.compile(
    r"unexpected keyword argument|missing \d+ required positional argument|cannot import name"
    r"|module '?[\w.]+'? has no attribute|NoSuchMethodError"
)


def is_adapters(row: RowResult) -> bool:
    """Whether a row says nothing of the client, for a reason that is in the adapter."""
    return "adapter" in row.tags or bool(_UNKNOWN_CALL.search(row.reason))
