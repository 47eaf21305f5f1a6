"""What the report of a failed test tells of a fake, and which frames of tracebacks it leaves out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakebrokers.errors import FakeBrokerError

if TYPE_CHECKING:
    import pytest

    from fakebrokers.server import FakeServer


def describe(server: FakeServer, lines: int, replay: str, unmet: Sequence[str]) -> str:
    """Seed, faults with their counts, what was expected, how to run it again, and the end of the journal.

    Args:
        lines: Journal lines, at most.
        replay: The command that runs the test again.
        unmet: What was expected and had not happened when the test ended.
    """
    seed = server.engine.injector.seed
    parts = [f"seed {seed}, profile {server.profile}; again: {replay}"]
    parts += [f"fault {line}" for line in server.faults.counts]
    parts += [f"unmet: {line}" for line in unmet]
    journal = server.journal
    left_out = journal.dropped + max(0, len(journal) - lines)
    if left_out:
        parts.append(f"... {left_out} earlier {'line is' if left_out == 1 else 'lines are'} left out")
    return "\n".join([*parts, journal.excerpt(lines)])


def replay_command(item: pytest.Item, settings: Sequence[str]) -> str:
    """The command that runs this test alone, with the same seed."""
    return shlex.join(["pytest", item.nodeid, *settings])


def hide_frames() -> None:
    """Leave this package's own frames out of tracebacks of the errors that it raises on purpose.

    pytest looks for ``__tracebackhide__`` among the globals of each frame.
    """
    for name, module in tuple(sys.modules.items()):
        if name.partition(".")[0] == __package__ and module is not None:
            vars(module).setdefault("__tracebackhide__", _is_on_purpose)


def _is_on_purpose(error: pytest.ExceptionInfo[BaseException]) -> bool:
    return isinstance(error.value, FakeBrokerError)
