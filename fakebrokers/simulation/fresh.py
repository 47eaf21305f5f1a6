"""A process that runs one scenario: ``python -m fakebrokers.simulation.fresh``, see `hashes`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

import msgspec

from fakebrokers.simulation.hashes import Order
from fakebrokers.simulation.repeats import run_once


def module_of(order: Order) -> ModuleType:
    """The module of a scenario: imported by its name, or from its file where that finds another or none."""
    if order.module != "__main__":
        found = importlib.util.find_spec(order.module)
        if found is not None and found.origin is not None and os.path.abspath(found.origin) == order.file:
            return importlib.import_module(order.module)
    name = "fakebrokers_scenario" if order.module == "__main__" else order.module
    spec = importlib.util.spec_from_file_location(name, order.file)
    assert spec is not None and spec.loader is not None  # the file of a module
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """The program."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a scenario prints is no answer
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    sys.path[:] = order.path
    scenario = getattr(module_of(order), order.name)
    with answer:
        answer.write(msgspec.msgpack.encode(run_once(scenario, order.seed, order.options)))


if __name__ == "__main__":
    main()
