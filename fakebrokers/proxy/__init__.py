"""A byte proxy with the faults, the journal and the interface of the fakes, and Toxiproxy's control API.

    with Proxy("127.0.0.1:5432") as proxy:
        proxy.faults.add(fault(truncate(keep=40, of="stream"), rst(), direction="out", byte=40))
        ...  # point the client at proxy.host, proxy.port

For wires that a library owns, so that the fake cannot touch the bytes itself, and for real servers.
"""

from fakebrokers.proxy.server import Proxy

__all__ = ["Proxy"]
