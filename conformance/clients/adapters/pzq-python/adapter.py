"""A plain PZQ client on pyzmq, driven by the adapter protocol.

PZQ has no maintained client library; this is what a user of its document and of pyzmq would write. It is put
together from the parts of the reference client, and leaves out what those do for their user beyond the
document: no message is sent again, and no copy is known as one.
"""

from __future__ import annotations

import zmq

from conformance.clients.adapter import kit
from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.pzq.consumer import Consumer, Delivery
from conformance.clients.reference.pzq.ops import REFERENCE
from conformance.clients.reference.pzq.producer import Producer
from conformance.clients.reference.pzq.sockets import Parts


class PlainProducer(Producer):
    def repeat(self, message: Parts) -> None:
        """Nothing: the user may."""


class PlainConsumer(Consumer):
    def is_known(self, delivery: Delivery) -> bool:
        return False


CAPS = " ".join(word for word in REFERENCE.caps.split() if word not in ("dedup", "retry"))


class Adapter(adapter_of(REFERENCE._replace(caps=CAPS), [PlainProducer, PlainConsumer])):  # type: ignore[misc]
    adapter = "pzq-python"
    library = "pyzmq"
    library_version = zmq.__version__


if __name__ == "__main__":
    kit.run(Adapter())
