"""What happens to a fake as a whole for a while, as rows of a fault plan: a crash, a partition, a slow line.

Who disturbs a fake writes these rows and adds them: chaos, a simulation, ``serve --faults``. Times count from
when they are added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fakebrokers.faults.match import Moment

Row = dict[str, Any]
Args = Mapping[str, Any]
PAUSE_S = 0.5  #: at least, between two losses by one step: a client that comes back at once makes no storm


def begins(name: str, effect: Row, *, from_s: float = 0.0, until_s: float | None = None) -> Row:
    """A fault that acts once, when its time has come."""
    return {"name": name, "match": {"on": str(Moment.BEGIN), **_times(from_s, until_s)}, "effect": effect}


def lasts(name: str, effect: Row, direction: str, for_s: float) -> Row:
    """A fault at everything that passes in a direction, for a while."""
    return {"name": name, "match": {"direction": direction, **_times(0.0, for_s)}, "effect": effect}


def _times(from_s: float, until_s: float | None) -> Row:
    times = {"from_s": from_s, "until_s": until_s}
    return {name: value for name, value in times.items() if value}


def later(row: Row, seconds: float) -> Row:
    """The row, with all its times so much later."""
    match = dict(row.get("match", {}))
    match["from_s"] = match.get("from_s", 0.0) + seconds
    if match.get("until_s") is not None:
        match["until_s"] += seconds
    return {**row, "match": match}


def for_a_while(row: Row, for_s: float) -> Row:
    """Any row of a plan, at work for so long."""
    return {**row, "match": {**row.get("match", {}), "until_s": for_s}} if for_s > 0 else row


def partition(name: str, for_s: float, args: Args) -> list[Row]:
    """Nothing passes in these directions; without one direction alone, connects hang too."""
    directions = args.get("directions", ("out", "in"))
    hold = {"type": "hold", "behind": True}
    rows = [lasts(f"{name}-{direction}", hold, direction, for_s) for direction in directions]
    if len(directions) > 1:
        rows.append(begins(f"{name}-connects", {"type": "black-hole"}, until_s=for_s))
    return rows


def slow_link(name: str, for_s: float, args: Args) -> list[Row]:
    """Everything is late, and comes in a thin stream: ``delay_s jitter_s bytes_per_s``."""
    late = {"type": "latency", "seconds": args["delay_s"], "jitter": args["jitter_s"]}
    rows = [lasts(f"{name}-{direction}", late, direction, for_s) for direction in ("out", "in")]
    if args["bytes_per_s"]:
        thin = {"type": "throttle", "bytes_per_s": args["bytes_per_s"]}
        rows.append(lasts(f"{name}-thin", thin, "out", for_s))
    return rows


def crash(name: str, for_s: float, args: Args) -> list[Row]:
    """The process ends, and nothing listens meanwhile: ``how``, ``keep_state``."""
    effect = {
        "type": "crash",
        "how": args["how"],
        "restart_s": for_s,
        "keep_state": args.get("keep_state", True),
    }
    return [begins(name, effect, until_s=for_s)]


def rolling_restart(name: str, for_s: float, args: Args) -> list[Row]:
    """Several short restarts in a row: ``times how``; of several ``nodes`` one after the other."""
    nodes = args.get("nodes", 1)
    rows = []
    for number, (from_s, until_s) in enumerate(_turns(for_s, args["times"])):
        effect: Row = {"type": "crash", "how": args["how"], "restart_s": until_s - from_s}
        if nodes > 1:
            effect = {"type": "stop-node", "node": number % nodes + 1}
        rows.append(begins(f"{name}-{number + 1}", effect, from_s=from_s, until_s=until_s))
    return rows


def node_flap(name: str, for_s: float, args: Args) -> list[Row]:
    """A node stops and starts again, several times: ``node times``."""
    effect = {"type": "stop-node", "node": args["node"]}
    return [
        begins(f"{name}-{number}", effect, from_s=from_s, until_s=until_s)
        for number, (from_s, until_s) in enumerate(_turns(for_s, args["times"]), 1)
    ]


def _turns(for_s: float, times: int) -> list[tuple[float, float]]:
    """Beginning and end of so many turns, with as long a pause after each."""
    pause_s = max(PAUSE_S, for_s / (2 * times))
    return [(2 * number * pause_s, (2 * number + 1) * pause_s) for number in range(times)]


def cut(name: str, for_s: float, args: Args) -> list[Row]:
    """All connections end, several times, with an even pause between: ``how times``."""
    times = args.get("times", 1)
    pause_s = max(PAUSE_S, for_s / times)
    effect = {"type": args["how"]}
    return [
        begins(f"{name}-{number + 1}", effect, from_s=number * pause_s, until_s=(number + 1) * pause_s)
        for number in range(times)
    ]


def clock_shift(name: str, for_s: float, args: Args) -> list[Row]:
    """The wall clock jumps, and jumps back: ``seconds``."""
    return [begins(name, {"type": "shift-clock", "seconds": args["seconds"]}, until_s=for_s)]


def refuse(name: str, for_s: float, args: Args) -> list[Row]:
    """New connections are refused; those that are open go on."""
    return [begins(name, {"type": "refuse"}, until_s=for_s)]


def black_hole(name: str, for_s: float, args: Args) -> list[Row]:
    """New connects hang; connections that are open go on."""
    return [begins(name, {"type": "black-hole"}, until_s=for_s)]


#: Makes the rows of a disturbance: its name, how long it lasts (seconds), and its arguments as plain values.
Rows = Callable[[str, float, Args], list[Row]]
