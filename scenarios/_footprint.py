"""What a client costs while something happens to it."""

from __future__ import annotations

import asyncio

from conformance.suite import Client, Expect
from conformance.suite.expect import slug

MIB = 1 << 20


class Footprint:
    """Memory and processor time of the client's process between two moments; nothing in process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before = client.facts()
        self._begun_s = asyncio.get_running_loop().time()

    def judge(
        self, expect: Expect, *, rss_mib: int, worst_mib: int = 0, cpu_share: float | None = None
    ) -> None:
        """Demand that neither grew beyond the limits since this object was made.

        Args:
            worst_mib: Up to here memory beyond `rss_mib` is non-strict.
        """
        before, after = self._before, self._client.facts()
        if before is None or after is None:
            return
        if before.rss_bytes is not None and after.rss_bytes is not None:
            grown = (after.rss_bytes - before.rss_bytes) // MIB
            demand = expect.tolerate if grown < worst_mib else expect.that
            demand(grown < rss_mib, f"RSS growth < {rss_mib} MiB", f"{grown} MiB", id="rss-growth-n-mib")
        if cpu_share is not None and before.cpu_s is not None and after.cpu_s is not None:
            elapsed = asyncio.get_running_loop().time() - self._begun_s
            share = (after.cpu_s - before.cpu_s) / max(elapsed, 0.1)
            expect.that(
                share < cpu_share,
                f"CPU < {cpu_share:.0%}",
                f"{share:.0%} over {elapsed:.1f} s",
                id=slug("cpu-{}", f"{cpu_share:.0%}"),
            )
