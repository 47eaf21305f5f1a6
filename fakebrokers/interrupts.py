"""SIGTERM ends a command as Ctrl-C does: what was done so far is written, and the exit code says why."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """What has ended the command.

    Attributes:
        exit_code: 130 after Ctrl-C, 143 after SIGTERM.
    """

    exit_code = 128 + signal.SIGINT


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Inside the block SIGTERM raises KeyboardInterrupt; a second one ends the process at once."""
    told = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield told
        return

    def end(number: int, frame: FrameType | None) -> None:
        told.exit_code = 128 + signal.SIGTERM
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):  # in the background of a script
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)  # asyncio knows what to do with it

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, former)
