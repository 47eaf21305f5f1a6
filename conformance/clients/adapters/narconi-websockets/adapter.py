"""A client on websockets (https://pypi.org/project/websockets/), driven by the adapter protocol.

Narconi has no client library. WebSockets are those of `websockets` here, as any user of it would have them,
HTTP is that of Python's standard library, and it is these that are judged. What travels over them is left to
the parts of the reference client: messages, confirms, acknowledgements.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import websockets

sys.path.insert(0, str(Path(__file__).parent))

from http_parts import Api
from websockets_parts import Sockets

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.narconi.ops import REFERENCE

CAPS = "ack_timeout ack_to callback_raise callback_sleep cancel encoding keepalive reentrant tls"


class Adapter(adapter_of(REFERENCE._replace(caps=CAPS), [Api, Sockets])):  # type: ignore[misc]
    adapter = "narconi-websockets"
    library = "websockets"
    library_version = websockets.__version__
    callbacks = ("message",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        del self.ops["abort"]  # websockets only closes


if __name__ == "__main__":
    kit.run(Adapter())
