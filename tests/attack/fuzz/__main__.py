"""The long form of the attack: ``python -m tests.attack.fuzz WIRE COUNT``; exit code 1 if it did harm."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.attack.fuzz.attack import attack

#: Memory that a server may have more at the end than behind the warm-up, in KiB.
GROWTH = 16 * 1024
#: The second client is served within this time (seconds), or within so many times its wait without an attack.
WAIT_S, WAIT_RATIO = 0.1, 20.0


def main(wire: str, count: int) -> int:
    """Attack, and say what came of it."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = attack(wire, count, Path(folder), seed=1)
    seconds = time.perf_counter() - began
    print(
        f"{wire}: {count} pieces on {found.connections} connections in {seconds:.0f} s; "
        f"grown by {found.grown} KiB; second client: {found.asked} answers, p99 {1e3 * found.wait_s:.1f} ms, "
        f"longest {1e3 * found.longest_s:.0f} ms; without the attack {1e3 * found.quiet_s:.1f} ms"
    )
    problems = [
        (found.stderr, f"stderr: {found.stderr[:2000]}"),
        (found.grown > GROWTH, "memory is not flat"),
        (found.wait_s > max(WAIT_S, WAIT_RATIO * found.quiet_s), "the second client waits too long"),
    ]
    for is_bad, text in problems:
        if is_bad:
            print(text, file=sys.stderr)
    return int(any(is_bad for is_bad, _ in problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
