"""Faults that exist only here."""

from __future__ import annotations

from fakebrokers.faults.effect import Effect

EFFECTS: tuple[type[Effect], ...] = ()
