"""How an adapter keeps to its protocol, in bounded memory whatever it writes."""

from __future__ import annotations

VIOLATIONS_KEPT = 20
VIOLATION_LENGTH = 500
VIOLATIONS_MAX = 200  #: an adapter that breaks the protocol as often is not worth reading any more
#: What an adapter may write between two resets; no scenario makes a client write a third of it.
LINES_MAX = 150_000
BYTES_MAX = 64 << 20
TOO_MUCH = f"it wrote more than {LINES_MAX} lines or {BYTES_MAX >> 20} MiB between two resets"


class Conduct:
    """Counts what an adapter writes, and keeps the first things that are wrong with it.

    Attributes:
        violations: One sentence each.
    """

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._violated = 0
        self._lines = self._bytes = 0

    def begin_anew(self) -> None:
        """The adapter was reset: what it wrote until now is done with."""
        self._lines = self._bytes = 0

    def violate(self, problem: str) -> bool:
        """Note one violation; whether that was so often that nothing more is to be read."""
        self._violated += 1
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append(problem[:VIOLATION_LENGTH])
        if self._violated == VIOLATIONS_MAX:
            self.violations.append(f"{VIOLATIONS_MAX} such lines: the adapter is not read any more")
        return self._violated >= VIOLATIONS_MAX

    def count(self, size: int) -> bool:
        """Note one line of that many bytes; whether it was one too many."""
        self._lines += 1
        self._bytes += size
        return self._lines > LINES_MAX or self._bytes > BYTES_MAX
