"""Work in a pool of processes that does not outlive its owner, and leaves Ctrl-C to it."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import active_children, get_context
from threading import Thread
from typing import TypeVar

Given = TypeVar("Given")
Found = TypeVar("Found")

AHEAD = 4  #: items that wait for each process


def in_order(
    work: Callable[[Given], Found],
    items: Iterable[Given],
    processes: int,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[Found]:
    """What the work makes of each item, in the order of the items, however many processes there are.

    Args:
        work: Can be pickled, and so can what it takes and returns.
        is_over: Whether to take no more items; what waits is still done.
    """
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (os.getpid(),)) as pool:
        waiting: deque[Future[Found]] = deque()
        try:
            for item in items:
                if is_over():
                    break
                waiting.append(pool.submit(work, item))
                if len(waiting) >= AHEAD * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:  # or the caller wants no more
            for worker in active_children():
                worker.kill()
            pool.shutdown(cancel_futures=True)
            raise


def _begin(parent: int) -> None:
    """In a process of the pool, once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """A process of the pool does not outlive the one that started it."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
