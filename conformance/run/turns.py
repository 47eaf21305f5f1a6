"""What base scripts do in each turn of the loop after an op has begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.clients.adapter.call import Call
from conformance.run.bases import ScriptContext
from conformance.run.concurrent_actions import pass_turns


async def close_each_turn(
    context: ScriptContext, turns: int, begin: Callable[[str, int], Sequence[Call]]
) -> None:
    """Begin something in a session of its own, and close that some turns later: for each number of turns.

    What takes the client several turns is met at each of them.

    Args:
        begin: Is given the name of the session and the number.
    """
    context.notes.sessions += turns
    for number in range(turns):
        name = f"t{number}"
        await context.connect(name)
        calls = begin(name, number)
        await pass_turns(number)
        await context.op("close", session=name)
        await context.ended(calls)
