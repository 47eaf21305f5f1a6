"""The settings of a Narconi server, with the names of its environment.

Source: docs/protocols/narconi.md, "Settings".
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

#: Environment variable and the setting that it fills.
ENVIRONMENT: dict[str, str] = {
    "PORT": "port",
    "NARCONI_AMQP_URI": "amqp_uri",
    "NARCONI_MAX_MESSAGE_SIZE": "max_message_size",
    "NARCONI_MAX_MESSAGE_TTL": "max_message_ttl",
    "NARCONI_DEFAULT_LIMIT": "default_limit",
}


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set.

    Attributes:
        port: TCP port of the real server.
        amqp_uri: Accepted and not used: there is no RabbitMQ behind the fake.
        max_message_size: Bytes.
        max_message_ttl: Seconds; upper bound of the parameter ``ttl``.
        default_limit: Unacknowledged messages per consumer that names no ``limit``.
        faithful_crashes: Die like the real process where it dies: every connection ends without a
            close frame. Otherwise only the connection that asked for it ends.
        crash_s: Seconds for which a dead process accepts nobody.
    """

    port: int = 8080
    amqp_uri: str = "amqp://guest:guest@127.0.0.1:5672/%2F"
    max_message_size: int = 65536
    max_message_ttl: int = 3600
    default_limit: int = 10
    faithful_crashes: bool = False
    crash_s: float = 1.0

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Config:
        """The settings that the environment names; 0 or text that is no number means the default."""
        found: dict[str, str | int] = {}
        for variable, field in ENVIRONMENT.items():
            text = environ.get(variable, "").strip()
            if field == "amqp_uri":
                if text:
                    found[field] = text
            elif text.isdecimal() and int(text):
                found[field] = int(text)
        return msgspec.convert(found, cls)
