"""What the user of a session sets."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

VERSION, OLD_VERSION = "5", "4"  #: of the protocol; only the old one has serializers with a schema
NAME_MAX = 900  #: bytes; a line of NATS has two names twice, which has 4096 at most
JOIN_S = 10.0  #: until a connection is the node's: its handshake and the topics
START_S = 0.5  #: a node that starts waits so long for the INFO of others
QUIET_S = 0.2  #: after the last change of its services until all nodes get it
OVERDUE_S = 1.0  #: between two looks at a node that somebody keeps although it is silent
LOOK_AGAIN_S = 0.001  #: after the moment at which a node has been silent for as long as it may be
STEADY_S = 1.0  #: a connection that ends earlier is no reason to try again at once
STOP_DELAY_S = 0.1  #: between the empty INFO and the end of the services
CHUNK_MAX = 256 * 1024  #: bytes of a stream in one packet
ENVELOPE_BYTES = 4096  #: of a packet around its payload, at most


@dataclass(frozen=True)
class Settings:
    """See ADAPTER.md, section 5.

    Attributes:
        transporter: ``nats``, ``redis``, ``mqtt`` or ``tcp``.
        endpoints: ``host:port`` of each server; for ``tcp`` the URLs of nodes.
        timeout_s: Of calls that are given none; 0 for none.
        serializer: ``JSON``, ``ProtoBuf``, ``Avro`` or ``Thrift``.
    """

    transporter: str
    endpoints: tuple[str, ...]
    node_id: str = "reference"
    namespace: str = ""
    heartbeat_s: float = 10.0
    heartbeat_timeout_s: float = 30.0
    timeout_s: float = 0.0
    disable_balancer: bool = False
    serializer: str = "JSON"

    @property
    def version(self) -> str:
        """Of the protocol."""
        return VERSION if self.serializer == "JSON" else OLD_VERSION

    @property
    def prefix(self) -> str:
        """What the topics begin with."""
        return f"MOL-{self.namespace}" if self.namespace else "MOL"


def addresses(text: str) -> tuple[str, tuple[str, ...]]:
    """Transporter and ``host:port`` of the servers, whose URLs have commas between them."""
    urls = text.split(",")
    if text.startswith("tcp://"):
        return "tcp", tuple(urls)  # of several nodes, with their ids
    parts = [urlsplit(url if "://" in url else f"nats://{url}") for url in urls]
    return parts[0].scheme, tuple(part.netloc.rpartition("@")[2] for part in parts)
