"""A client on aiohttp (https://pypi.org/project/aiohttp/), driven by the adapter protocol.

Narconi has no client library. HTTP and WebSockets are aiohttp's here, as any user of it would have them, and
it is aiohttp that is judged. What travels over them is left to the parts of the reference client: messages,
confirms, acknowledgements.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import aiohttp

sys.path.insert(0, str(Path(__file__).parent))

from aiohttp_parts import Api, Client, Sockets

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.narconi.ops import REFERENCE

CAPS = "ack_timeout ack_to callback_raise callback_sleep cancel encoding keepalive reentrant tls"


class Adapter(adapter_of(REFERENCE._replace(caps=CAPS), [Client, Api, Sockets])):  # type: ignore[misc]
    adapter = "narconi-python"
    library = "aiohttp"
    library_version = aiohttp.__version__
    callbacks = ("message",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        del self.ops["abort"]  # aiohttp only closes


if __name__ == "__main__":
    kit.run(Adapter())
