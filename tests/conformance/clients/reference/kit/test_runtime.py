"""Deadlines, tasks, pauses, callbacks and the parts that mutants replace."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from conformance.clients.reference.kit import Backoff, Callbacks, ClientError, Clock, Memory, Runtime, shown
from fakebrokers.core import virtual


def test_work_that_takes_too_long_is_a_timeout_and_ends() -> None:
    async def work() -> None:
        runtime = Runtime(Memory())
        cancelled = []

        async def slow() -> None:
            try:
                await asyncio.sleep(100)
            finally:
                cancelled.append(True)

        with pytest.raises(ClientError) as caught:
            await runtime.tasks.within(2.0, slow())
        assert (caught.value.kind, caught.value.definite, cancelled) == ("timeout", False, [True])
        assert asyncio.get_running_loop().time() == pytest.approx(2.0)

    virtual.run(work())


def test_a_closed_client_begins_nothing() -> None:
    async def work() -> None:
        runtime = Runtime(Memory())
        runtime.end()
        began = []

        async def begin() -> None:
            began.append(True)

        with pytest.raises(ClientError) as caught:
            await runtime.tasks.within(2.0, begin())
        assert (caught.value.kind, caught.value.definite, began) == ("closed", True, [])

    virtual.run(work())


def test_who_joins_a_task_may_leave_and_is_told_of_its_end() -> None:
    async def work() -> None:
        runtime = Runtime(Memory())
        task = runtime.tasks.spawn(asyncio.sleep(100))
        with pytest.raises(ClientError, match="too long"):
            await runtime.tasks.join(task, runtime.clock.deadline(1.0))
        assert not task.done()
        waiting = asyncio.create_task(runtime.tasks.join(task))
        await asyncio.sleep(0)
        runtime.end()
        with pytest.raises(ClientError) as caught:
            await waiting
        assert caught.value.kind == "closed"

    virtual.run(work())


def test_a_wall_clock_that_is_wrong_moves_no_deadline() -> None:
    async def work() -> None:
        clock = Runtime(Memory()).clock
        right, deadline = clock.wall(), clock.deadline(5.0)
        clock.wrong_by_s = 3600.0
        assert clock.wall() == right + 3600.0
        assert clock.deadline(5.0) == deadline

    virtual.run(work())


def test_pauses_grow_to_a_limit_and_differ() -> None:
    backoff = Backoff(Random(1), 0.5, 4.0)
    pauses = []
    for _ in range(8):
        pauses.append(backoff.delay())
        backoff.failures += 1
    for pause, middle in zip(pauses, (0.5, 1, 2, 4, 4, 4, 4, 4), strict=True):
        assert middle / 2 <= pause <= middle * 1.5
    assert len(set(pauses)) == len(pauses)
    backoff.reset()
    assert backoff.delay() <= 0.75


def test_it_is_tried_again_until_it_works_or_is_final() -> None:
    async def work() -> None:
        problems = [ClientError("connection", "refused"), ClientError("auth", "wrong password")]

        async def again() -> str:
            if problems:
                raise problems.pop(0)
            return "connected"

        backoff = Runtime(Memory()).backoff(0.5, 4.0)
        with pytest.raises(ClientError, match="wrong password"):
            await backoff.retry(again, is_final=lambda error: error.kind == "auth")
        assert await backoff.retry(again, is_final=lambda error: True) == "connected"
        assert backoff.failures == 3  # each attempt counts until somebody says that it was a success
        assert asyncio.get_running_loop().time() >= 0.5 * (0.5 + 1 + 2)

    virtual.run(work())


def test_what_callbacks_raise_is_told_and_goes_no_further(caplog: pytest.LogCaptureFixture) -> None:
    reported: list[str] = []

    def on_session(*what: object) -> None:
        raise RuntimeError("the application's own")

    def on_error(where: str, error: ClientError) -> None:
        reported.append(f"{where}: {error.text}")
        raise RuntimeError("even here")

    callbacks = Callbacks(on_session, on_error)
    callbacks.report("connection_lost")
    assert reported == ["callback: the session callback failed: the application's own"]
    assert "even here" in caplog.text


class _Slow(Clock):
    pass


class _Quiet(Callbacks):
    pass


def test_the_part_that_replaces_another_is_taken_for_it_only() -> None:
    runtime = Runtime(Memory(), replaced=(_Slow, _Quiet))
    assert runtime.part(Clock) is _Slow
    assert runtime.part(Backoff) is Backoff
    assert (type(runtime.clock), type(runtime.callbacks)) == (_Slow, _Quiet)


def test_text_from_the_wire_fits_into_a_line() -> None:
    assert ClientError("refused", b"caf\xe9".decode(errors="surrogateescape")).text == "caf?"
    assert shown("café") == "café"
