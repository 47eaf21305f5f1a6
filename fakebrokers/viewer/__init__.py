"""A run to look at: one HTML file without network, made of a journal.

Lanes for the test, the client's sessions and subscriptions, its connections and the broker; ops as spans,
frames as arrows, faults where they took place. ``fakebrokers trace RUN`` writes it, and pytest with
``--fakebrokers-trace``.
"""

from fakebrokers.viewer.document import of_journal, of_log
from fakebrokers.viewer.page import write_page
from fakebrokers.viewer.rows import RunDocument

__all__ = ["RunDocument", "of_journal", "of_log", "write_page"]
