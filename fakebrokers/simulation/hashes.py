"""The order of sets of strings, which a process draws when it begins unless ``PYTHONHASHSEED`` fixes it.

Python hashes text and bytes with a key of the process, so a set of names is walked in another order in each.
Where that order reaches the wire, a seed gives another run in each process. Nothing in a running process can
change the key, or say which it is: it is fixed from outside, or a run is compared in processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from fakebrokers.errors import FakeBrokerError, UsageError

VARIABLE = "PYTHONHASHSEED"
#: In the environment of a process that was started to run one scenario.
FRESH = "FAKEBROKERS_FRESH_RUN"


def fixed_hash_seed() -> str | None:
    """The ``PYTHONHASHSEED`` of this process; None where it has drawn the order of sets of strings."""
    if not sys.flags.hash_randomization:
        return "0"
    value = os.environ.get(VARIABLE, "")
    return value if value.isdecimal() and not sys.flags.ignore_environment else None


class Order(msgspec.Struct, frozen=True):
    """A scenario that a fresh process is to run.

    Attributes:
        module, file, name: Where the function is.
        path: Where that process looks for modules.
        options: Of `Simulation`.
    """

    module: str
    file: str
    name: str
    path: list[str]
    seed: int
    options: dict[str, Any]


def order_for(scenario: Callable[..., Any], seed: int, options: dict[str, Any]) -> Order:
    """What a fresh process needs to know to run a scenario.

    Raises:
        UsageError: No other process can find it: it is no function of a module, or this process was itself
            started to run a scenario.
    """
    name = getattr(scenario, "__qualname__", "")
    module = getattr(scenario, "__module__", None) or ""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not name.isidentifier():
        raise UsageError(f"hash_seeds: expected a function of a module, which has a file, got {scenario!r}")
    if FRESH in os.environ:
        raise UsageError(
            f"hash_seeds: {file} is imported to run {name}, and asks for that again: put the call under "
            "if __name__ == '__main__':"
        )
    return Order(
        module, os.path.abspath(file), name, [each or os.getcwd() for each in sys.path], seed, options
    )


def lines_of(order: Order, hash_seed: int) -> list[tuple[float, str, str]]:
    """What happens in a scenario, in a fresh process that has this ``PYTHONHASHSEED``.

    Raises:
        FakeBrokerError: It did not come to its end; with what that process said.
    """
    done = subprocess.run(
        [sys.executable, "-m", "fakebrokers.simulation.fresh"],
        input=msgspec.json.encode(order),
        capture_output=True,
        check=False,
        env={**os.environ, VARIABLE: str(hash_seed), FRESH: "1"},
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise FakeBrokerError(f"{order.name} under {VARIABLE}={hash_seed} did not come to its end:\n{said}")
    return msgspec.msgpack.decode(done.stdout, type=list[tuple[float, str, str]])
