"""Applications, their stock clients and fake brokers in one process, on virtual time, from one seed."""

from __future__ import annotations

from fakebrokers.simulation.applications import Application
from fakebrokers.simulation.loop import SimulationLoop
from fakebrokers.simulation.repeats import check_repeats
from fakebrokers.simulation.simulation import Simulation

__all__ = ["Application", "Simulation", "SimulationLoop", "check_repeats"]
