"""Which meter is for which language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from conformance.clients.adapters.registry import Client
from conformance.coverage.go import GoMeter
from conformance.coverage.java import JavaMeter
from conformance.coverage.meter import CoverageMeter
from conformance.coverage.node import NodeMeter
from conformance.coverage.python import PythonMeter
from conformance.coverage.rust import RustMeter
from fakebrokers.errors import UsageError

METERS: Mapping[str, Callable[[Client, Path], CoverageMeter]] = {
    "python": PythonMeter,
    "javascript": NodeMeter,
    "go": GoMeter,
    "java": JavaMeter,
    "rust": RustMeter,
}


def meter_of(client: Client, folder: Path) -> CoverageMeter:
    """Measures a bundled client. Nothing of its library has been imported before.

    Raises:
        UsageError: It cannot be measured, and why.
    """
    if client.language not in METERS:
        raise UsageError(f"{client.name} is a client in {client.language.title()}: that is not measured")
    if not client.protocol_modules:
        raise UsageError(f"{client.name}: its adapter.toml names no protocol_modules")
    return METERS[client.language](client, folder)
