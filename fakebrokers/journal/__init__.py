"""The journal: what went over the wire, in order, on one clock."""

from fakebrokers.journal.memory import Journal
from fakebrokers.journal.record import Record, Tap

__all__ = ["Journal", "Record", "Tap"]
