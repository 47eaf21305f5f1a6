"""Every recorded conversation with a real server, replayed against the session of the same profile.

The answers have to be the same bytes at the same time, except for what the recordings cannot fix:

* time stamps in chunks are the fake's own (`without_times`);
* a confirm, or a chunk, may be cut in two where the real writer happened to (`joined`);
* a recorder that sent two segments before it read saw the end only after the second one.

The streams, nodes and versions are set up as the recorder's were. A few cases are notes of a count, not
bytes; they are played out in words.
"""

from __future__ import annotations

from fakebrokers.rabbitmq_stream.cluster import Node
from fakebrokers.rabbitmq_stream.profile import V3_10, V4_0, V4_3

PROFILES = {"3.10.8": V3_10, "4.0.5": V4_0, "4.3.6": V4_3}
NODES = {
    "3.10.8": Node("rmqs310@vm", "localhost", 25552),
    "4.0.5": Node("rmqs405@vm", "localhost", 26552),
    "4.3.6": Node("rmqs43@vm", "localhost", 27552),
}

#: seconds that the recorder's clock and the real server's timers may be off
TOLERANCE = 0.25
