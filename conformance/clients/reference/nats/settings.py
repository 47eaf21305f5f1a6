"""What the application gives to ``connect``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Settings:
    """Options of the op ``connect``.

    Attributes:
        ping_interval_s: Between two PINGs of the client.
        max_pings: How many may be without an answer before the next one.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.reconnects = bool(options.get("auto_reconnect", False))
        self.ping_interval_s = float(options.get("ping_interval_s", 120.0))
        self.max_pings = int(options.get("max_pings", 2))
        names = {"user": "user", "password": "pass", "token": "auth_token"}
        self.login = {names[name]: options[name] for name in names if name in options}

    def greeting(self) -> dict[str, Any]:
        """What CONNECT says."""
        return {
            "verbose": False,
            "pedantic": False,
            "protocol": 1,
            "headers": True,
            "no_responders": True,
            "lang": "reference",
            "version": "1",
            **self.login,
        }
