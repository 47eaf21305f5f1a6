"""An adapter of a library that takes services and listeners before its node starts, and none later."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.kit import AdapterBase, Failure


class BeforeItStarts(AdapterBase):
    """Says so, and goes in front of an adapter that takes them at any time."""

    lacks = "late_services"

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, list[dict[str, Any]]] = {}

    async def _perform(self, request: dict[str, Any]) -> Any:
        session = (request.get("args") or {}).get("session", "")
        if request["op"] in ("mol.serve", "mol.listen"):
            if session in self.sessions:
                raise Failure("unsupported", "the node runs")
            self._kept.setdefault(session, []).append(request)
            return None
        done = await super()._perform(request)
        if request["op"] == "connect":
            for each in self._kept.pop(session, []):
                await super()._perform(each)
        return done
