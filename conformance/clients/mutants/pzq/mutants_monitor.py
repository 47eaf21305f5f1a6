"""Questions to the monitor with one defect."""

from __future__ import annotations

from conformance.clients.mutants.registry import mutant
from conformance.clients.reference.kit import ClientError
from conformance.clients.reference.pzq.inquirer import Inquirer, Values
from conformance.clients.reference.pzq.sockets import Parts

KNOWN = {
    "messages",
    "messages_inflight",
    "messages_in_flight",
    "db_size",
    "inflight_db_size",
    "in_flightdb_size",
    "syncs",
    "expired_messages",
}


@mutant("lines-all-count", tag="wire", breaks=["P12"])
class LinesAllCount(Inquirer):
    """Takes what follows the last newline for a line with an empty key."""

    def read(self, parts: Parts) -> Values:
        values = super().read(parts)
        if parts[0].endswith(b"\n"):
            values[""] = ""
        return values


@mutant("last-line-is-empty", tag="wire", breaks=["P12"])
class LastLineIsEmpty(Inquirer):
    """Leaves out the last line, as a newline is at the end."""

    def read(self, parts: Parts) -> Values:
        return super().read((b"\n".join(parts[0].split(b"\n")[:-1]),))


@mutant("known-keys-only", tag="wire", breaks=["P12"])
class KnownKeysOnly(Inquirer):
    """Fails on a key that it does not know."""

    def read(self, parts: Parts) -> Values:
        values = super().read(parts)
        if not KNOWN.issuperset(values):
            raise ClientError("protocol", f"unknown keys: {sorted(set(values) - KNOWN)}")
        return values


@mutant("colon-and-blank", tag="wire", breaks=["P12"])
class ColonAndBlank(Inquirer):
    """Splits lines at the last colon with a blank after it."""

    def split(self, line: str) -> tuple[str, str, str]:
        return line.rpartition(": ")


@mutant("values-are-numbers", tag="wire", breaks=["P12"])
class ValuesAreNumbers(Inquirer):
    """Fails on a value that is no number."""

    def value(self, text: str) -> int | str:
        return int(text)
