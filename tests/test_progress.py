"""What is said to whoever waits."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from fakebrokers import progress
from fakebrokers.progress import Shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def to(seconds: float) -> None:
        now[0] = 100.0 + seconds

    return to


@pytest.mark.parametrize(
    ("total", "seconds", "said"),
    [
        (400, None, "100 of 400 runs, 2 failed, about 60 s to go\n"),
        (None, 50.0, "100 runs, 2 failed, about 30 s to go\n"),
        (400, 50.0, "100 of 400 runs, 2 failed, about 30 s to go\n"),  # whatever is over first
        (110, 50.0, "100 of 110 runs, 2 failed, about 2 s to go\n"),
    ],
)
def test_where_there_is_no_terminal_a_line_tells_how_far_it_is(
    clock: Callable[[float], None], total: int | None, seconds: float | None, said: str
) -> None:
    out = io.StringIO()
    with Shown(Console(file=out, width=200), "sweep", None, seconds) as shown:
        clock(5.0)
        shown.advance(50, 0, total)
        assert not out.getvalue()  # it was asked to tell only now and then
        clock(20.0)
        shown.advance(100, 2, total)
    assert out.getvalue() == said


def test_on_a_terminal_there_is_a_bar_and_no_lines(clock: Callable[[float], None]) -> None:
    out = io.StringIO()
    with Shown(Console(file=out, force_terminal=True, width=80), "sweep", 10, None) as shown:
        clock(20.0)
        shown.advance(5, 0)
        shown.say("done")
    assert "to go" not in out.getvalue()
    assert "5/10" in out.getvalue()
    assert "done" in out.getvalue()
