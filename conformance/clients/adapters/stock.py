"""Adapters of stock clients in Python as classes, for runs in the suite's own process."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapters.registry import Client, find


class NotHere(Exception):
    """A client that could run in this process cannot; says why."""


@cache
def adapter_class(name: str) -> type[AdapterBase] | None:
    """The adapter class of a bundled client; None of one that only runs in processes of its own.

    Raises:
        NotHere: It would run here, if its library were this environment's, and could be imported.
    """
    client = find(name)
    if not client.simulated:
        return None
    if client.packages:
        raise NotHere(f"{client.asked} is another version than this environment has")
    try:
        return _load(client)
    except ImportError as error:
        raise NotHere(f"{client.library} cannot be imported here ({error})") from None


def _load(client: Client) -> type[AdapterBase]:
    path = Path(client.folder) / "adapter.py"
    spec = spec_from_file_location(f"adapter_of_{client.name.replace('-', '_')}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    places = list(sys.path)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = places
    found: type[AdapterBase] = module.Adapter
    return found
