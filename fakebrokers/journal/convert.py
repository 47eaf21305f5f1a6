"""What older versions wrote, as this one would have written it.

Version 1 knew no types of keys, no parts and no peers; PZQ noted a client's address as the state ``peer``.
"""

from __future__ import annotations

import msgspec

from fakebrokers.journal.lines import Line, StateLine
from fakebrokers.journal.record import State


def upgraded_lines(lines: list[Line], version: int) -> list[Line]:
    """The lines of a file of that version."""
    return (
        [_state_of_1(line) if isinstance(line, StateLine) else line for line in lines]
        if version == 1
        else lines
    )


def _state_of_1(line: StateLine) -> StateLine:
    return msgspec.structs.replace(line, what=State.ADDRESS) if line.what == State.PEER else line
