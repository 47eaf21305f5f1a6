"""Mutated recordings against the fakes: nothing may go wrong inside, and memory stays what it is.

python -m tests.moleculer.fuzz nats 1000000
"""

from __future__ import annotations

import resource
import sys
import time
from random import Random

from tests.moleculer.bench import Bench, Client
from tests.moleculer.golden import rows, talks

TRANSPORTERS = ("nats", "redis", "mqtt", "tcp")


def recorded(transporter: str) -> list[bytes]:
    """What real nodes sent, in pieces."""
    if transporter == "tcp":
        return [row.data for row in rows("frame")]
    pieces = [data for talk in talks(transporter) for way, data in talk.steps if way == "C>S"]
    return [piece for piece in pieces if len(piece) < 4000]


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with a few changes: other bytes, a piece doubled, left out or moved, an end cut off."""
    found = bytearray(data)
    for _ in range(random.randint(1, 3)):
        if not found:
            break
        at, size = random.randrange(len(found)), random.randint(1, 8)
        match random.randrange(5):
            case 0:
                found[at] = random.randrange(256)
            case 1:
                found[at:at] = found[at : at + size]
            case 2:
                del found[at : at + size]
            case 3:
                del found[at:]
            case _:
                found[at] ^= 1 << random.randrange(8)
    return bytes(found)


def run(transporter: str, count: int, seed: int = 0) -> int:
    """Feed so many mutated pieces; how many connections that took. Raises what went wrong inside."""
    random = Random(seed)
    bench = Bench(transporter, journal_limit=1000, profile="0.14")
    if transporter != "tcp":
        for number in range(2):
            bench.fake.node(f"n{'AB'[number]}", {"bs": {"echo": lambda ctx: ctx.params}}, heartbeat_s=0)
    pieces = recorded(transporter)
    client: Client | None = None
    connections = 0
    for number in range(count):
        if client is None or client.ended is not None:
            client, connections = bench.connect(), connections + 1
            said = 0
        piece = random.choice(pieces)
        client.say(piece if random.random() < 0.5 else mutated(piece, random))
        said += 1
        if said > 50:  # bytes that promise a long frame keep a connection waiting
            client.leave()
            client = None
        if number % 1000 == 0:
            bench.check()
            for node in bench.fake.broker.nodes.values():
                node.received.clear()
                node.broken.clear()
                node.calls.orphans.clear()
    bench.check()
    return connections


def main() -> None:
    """The command line."""
    transporter, count = sys.argv[1], int(sys.argv[2])
    run(transporter, 20_000)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    connections = run(transporter, count, seed=1)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    seconds = time.perf_counter() - began
    print(f"{transporter}: {count} pieces, {connections} connections, {seconds:.0f} s, grown by {grown} KiB")


if __name__ == "__main__":
    main()
