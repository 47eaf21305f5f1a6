"""The journal: what went over the wire, in order, on one clock."""

from fakebrokers.journal.memory import Journal, Sink
from fakebrokers.journal.record import Record, Tap
from fakebrokers.journal.run import RunJournal, value_id

__all__ = ["Journal", "Record", "RunJournal", "Sink", "Tap", "value_id"]
