"""Everything that an adapter for a Python library needs besides the library. Python 3.11, no dependencies.

    class MyAdapter(AdapterBase):
        library = "mylib"
        protocols = ("rabbitmq-stream",)
        roles = ("publisher",)

        @op("connect")
        async def connect(self, session, endpoints, options=None, timeout_ms=None): ...

    if __name__ == "__main__":
        run(MyAdapter())

`run` serves stdin and stdout; the same class also runs inside the suite's own process. The folder may be
copied next to an adapter that lives elsewhere. The protocol is described in ``conformance/ADAPTER.md``.
"""

from .base import VERSION, AdapterBase
from .bodies import (
    body_bytes,
    body_parts,
    filter_value,
    integer,
    is_wanted,
    key_bytes,
    number,
    report_body,
    report_key,
)
from .failure import CallbackError, Failure
from .helpers import host_port, limits, op, tls_context
from .stdio import run
from .subscription import Subscription

__all__ = [
    "VERSION",
    "AdapterBase",
    "CallbackError",
    "Failure",
    "Subscription",
    "body_bytes",
    "body_parts",
    "filter_value",
    "host_port",
    "integer",
    "is_wanted",
    "key_bytes",
    "limits",
    "number",
    "op",
    "report_body",
    "report_key",
    "run",
    "tls_context",
]
