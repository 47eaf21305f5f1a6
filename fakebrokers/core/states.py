"""The states of a connection, one of each direction: what is done in each, and which event leads where.

Output is what the broker says, input what the client says. Each direction has its own state, because FIN
ends one and leaves the other; an event concerns one or both. `OUTPUT` and `INPUT` have a row for each state:
an event that the row does not name cannot happen there, and `Life.on` raises `ImpossibleEvent`.

What the tables cannot say:

* **An end waits in line.** `HANG_UP` and `FINISH` are the broker's decision, `END` and `FIN_SENT` the moment
  at which a `Lane` lets it go, after every byte that faults hold back. The end that a fault
  causes is not the broker's decision: the broker goes on until `END`.
* **A client that has gone** (`LOST`) may have left frames that wait for their turn or are late; they are
  handled before the session is notified (`CLOSE`).
* **Reading may pause** in any state, see `receive_path.Reason`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from functools import cache
from typing import NamedTuple


class Output(StrEnum):
    """What becomes of what the broker says."""

    OPEN = "open"  #: as it begins
    FINISHING = "finishing"  #: the broker has ended this direction; its FIN comes after what is held back
    FINISHED = "finished"  #: FIN has left, the client may still write
    HUNG_UP = "hung up"  #: the broker has ended the connection; the end comes after what is held back
    MUTE = "mute"  #: the broker's host has vanished: nothing leaves, and neither side is notified
    LOST = "lost"  #: the transport is gone; the session is notified once the client's input is handled
    ENDED = "ended"  #: the end has left; the transport and the session are notified at the end of the step
    CLOSED = "closed"  #: the session has been notified


class Input(StrEnum):
    """What becomes of what the client says."""

    OPEN = "open"  #: as it begins
    ENDING = "ending"  #: the client has sent FIN; what came before it is handled first
    ENDED = "ended"  #: the session knows that nothing more comes
    LEFT = "left"  #: the client has gone; what came before is handled first
    DEAF = "deaf"  #: nothing is handled any more
    CLOSED = "closed"  #: the session has been notified


class Event(StrEnum):
    """What happens to a connection."""

    FINISH = "finish"  #: the broker ends its own direction
    FIN_SENT = "FIN sent"  #: FIN of the broker's direction leaves
    HANG_UP = "hang up"  #: the broker ends the connection
    END = "end"  #: an end leaves: the broker's, a fault's, that of a kill or a crash
    VANISH = "vanish"  #: the broker's host is gone, without an end (half-open)
    CLIENT_FIN = "client's FIN"  #: FIN of the client's direction came
    INPUT_END = "input end"  #: the session is notified of it
    LOST = "lost"  #: the transport is gone
    CLOSE = "close"  #: the session is notified that the connection has ended


class Says(Enum):
    """What happens to a frame that the broker says."""

    SENT = "goes to the faults and leaves"
    NOTED = "is written down as said, and does not leave"
    IGNORED = "is ignored"


class OutputRow(NamedTuple):
    """One state of the output.

    Attributes:
        says: What happens to a frame that is said now.
        held_leaves: Whether what faults hold back still leaves at its time.
        acts: Whether the session acts: its timers run, and what comes in is read.
        next: The state after each event that leads on.
        stays: The events that can happen as well, and change nothing.
    """

    says: Says
    held_leaves: bool
    acts: bool
    next: Mapping[Event, Output]
    stays: frozenset[Event] = frozenset()


class InputRow(NamedTuple):
    """One state of the input.

    Attributes:
        hears: Whether the session gets frames that have come.
        next: The state after each event that leads on.
        stays: The events that can happen as well, and change nothing.
    """

    hears: bool
    next: Mapping[Event, Input]
    stays: frozenset[Event] = frozenset()


_WISHES = frozenset({Event.FINISH, Event.HANG_UP})
_CUT = {Event.END: Output.ENDED, Event.VANISH: Output.MUTE, Event.LOST: Output.LOST}
_ENDS = {Event.HANG_UP: Output.HUNG_UP, **_CUT}

OUTPUT: Mapping[Output, OutputRow] = {
    Output.OPEN: OutputRow(Says.SENT, True, True, {Event.FINISH: Output.FINISHING, **_ENDS}),
    Output.FINISHING: OutputRow(
        Says.NOTED, True, True, {Event.FIN_SENT: Output.FINISHED, **_ENDS}, frozenset({Event.FINISH})
    ),
    Output.FINISHED: OutputRow(Says.NOTED, True, True, _ENDS, frozenset({Event.FINISH})),
    Output.HUNG_UP: OutputRow(Says.IGNORED, True, False, _CUT, _WISHES | {Event.FIN_SENT}),
    Output.MUTE: OutputRow(
        Says.NOTED, False, False, {Event.END: Output.ENDED, Event.LOST: Output.LOST}, _WISHES | {Event.VANISH}
    ),
    Output.LOST: OutputRow(
        Says.NOTED,
        False,
        False,
        {Event.CLOSE: Output.CLOSED},
        _WISHES | {Event.END, Event.VANISH, Event.LOST},
    ),
    Output.ENDED: OutputRow(
        Says.IGNORED, False, False, {Event.LOST: Output.LOST, Event.CLOSE: Output.CLOSED}, _WISHES
    ),
    Output.CLOSED: OutputRow(Says.IGNORED, False, False, {}, _WISHES),
}

_DEAF = {Event.HANG_UP: Input.DEAF, Event.END: Input.DEAF, Event.VANISH: Input.DEAF}
_GONE = {Event.CLOSE: Input.CLOSED, **_DEAF}

INPUT: Mapping[Input, InputRow] = {
    Input.OPEN: InputRow(True, {Event.CLIENT_FIN: Input.ENDING, Event.LOST: Input.LEFT, **_DEAF}),
    Input.ENDING: InputRow(True, {Event.INPUT_END: Input.ENDED, Event.LOST: Input.LEFT, **_DEAF}),
    Input.ENDED: InputRow(False, _GONE, frozenset({Event.LOST})),
    Input.LEFT: InputRow(True, _GONE, frozenset({Event.LOST})),
    Input.DEAF: InputRow(False, {Event.CLOSE: Input.CLOSED}, frozenset({*_DEAF, Event.LOST})),
    Input.CLOSED: InputRow(False, {}, frozenset({Event.HANG_UP})),
}

#: The events of each table; one that a table does not have leaves its direction as it is.
OF_OUTPUT = frozenset().union(*({*row.next, *row.stays} for row in OUTPUT.values()))
OF_INPUT = frozenset().union(*({*row.next, *row.stays} for row in INPUT.values()))


class ImpossibleEvent(RuntimeError):
    """An event came in a state in which it cannot happen: an error inside the fake."""


class Life:
    """Where one connection is in both tables, with what the rows say: the paths read it for each frame.

    Attributes:
        output: The state of what the broker says.
        input: The state of what the client says.
        sends: Whether a frame that is said now goes to the faults and leaves.
        ignores: Whether a frame that is said now is ignored.
        held_leaves: Whether what faults hold back still leaves.
        acts: Whether the session acts.
        hears: Whether the session gets frames that have come.
        ended: Whether the end has left, or the session was notified.
        closed: Whether the session was notified.
        unsettled: Whether the end of a step has somebody to tell of an end.
    """

    __slots__ = (
        "acts",
        "closed",
        "ended",
        "hears",
        "held_leaves",
        "ignores",
        "input",
        "output",
        "sends",
        "unsettled",
    )

    def __init__(self) -> None:
        self._enter(Output.OPEN, Input.OPEN)

    def _enter(self, output: Output, input: Input) -> None:
        self.output, self.input = output, input
        (
            self.sends,
            self.ignores,
            self.held_leaves,
            self.acts,
            self.hears,
            self.closed,
            self.ended,
            self.unsettled,
        ) = _what_holds(output, input)

    def on(self, event: Event) -> bool:
        """Something happens; returns whether a state has changed.

        Raises:
            ImpossibleEvent: It cannot happen here; with state and event.
        """
        output, input = _after(self.output, self.input, event)
        changes = output is not self.output or input is not self.input
        if changes:
            self._enter(output, input)
        return changes


@cache
def _what_holds(output: Output, input: Input) -> tuple[bool, ...]:
    """What `Life` says in these states, in the order in which it takes it."""
    row = OUTPUT[output]
    closed = output is Output.CLOSED
    return (
        row.says is Says.SENT,
        row.says is Says.IGNORED,
        row.held_leaves,
        row.acts,
        INPUT[input].hears,
        closed,
        closed or output is Output.ENDED,
        output in (Output.ENDED, Output.LOST) or input is Input.ENDING,
    )


@cache
def _after(output: Output, input: Input, event: Event) -> tuple[Output, Input]:
    """The states after an event."""
    of_output, of_input = OUTPUT[output], INPUT[input]
    for state, row, events in ((output, of_output, OF_OUTPUT), (input, of_input, OF_INPUT)):
        if event in events and not (event in row.next or event in row.stays):
            raise ImpossibleEvent(f"{event!r} cannot happen with {state!r}")
    return of_output.next.get(event, output), of_input.next.get(event, input)
