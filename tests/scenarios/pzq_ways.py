"""What correct clients of PZQ do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.reference.pzq.consumer import Consumer, Delivery, Parts
from conformance.clients.reference.pzq.inquirer import Inquirer
from conformance.clients.reference.pzq.producer import Answer, Producer


class BodyMayBeMissing(Consumer):
    """A delivery that ends with its delimiter is a message without parts."""

    def read(self, parts: Parts) -> Delivery:
        at = self.delimiter(parts)
        if at is None or at + 1 < len(parts):
            return super().read(parts)
        return super().read((*parts, b""))._replace(body=())


class NoListOfOne(AdapterBase):
    """Reports a message of one part as that part, and not as a list. Its author has declared nothing."""

    contract: Mapping[str, bool] = {}

    def emit(self, event: str, **fields: Any) -> None:
        if event == "message" and isinstance(fields["body"], list) and len(fields["body"]) == 1:
            [fields["body"]] = fields["body"]
        super().emit(event, **fields)


class StatusIsEnough(Producer):
    """Reads the status of an answer, and needs no delimiter behind it, as PZQ's own client in PHP."""

    def read(self, parts: Parts) -> Answer:
        return super().read(parts if len(parts) != 2 else (*parts, b""))


class ValuesAreDigits(Inquirer):
    """Hands over the values of the monitor as the text that they are."""

    def value(self, text: str) -> str:
        return text


class ByTheLetter(Inquirer):
    """Reads lines ``key: value``, as the daemon writes them, and no others."""

    def split(self, line: str) -> tuple[str, str, str]:
        return line.partition(": ")


WAYS: Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]] = {
    "status-is-enough": ((StatusIsEnough,), None),
    "values-are-digits": ((ValuesAreDigits,), None),
    "by-the-letter": ((ByTheLetter,), None),
    "body-may-be-missing": ((BodyMayBeMissing,), NoListOfOne),
    "no-list-of-one": ((), NoListOfOne),
}
