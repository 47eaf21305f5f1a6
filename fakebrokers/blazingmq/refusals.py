"""What a broker refuses. Raised inside the fake only; a session turns it into a status."""

from __future__ import annotations

from fakebrokers.blazingmq.codes import Category
from fakebrokers.errors import FakeBrokerError


class Refused(FakeBrokerError):
    """A request fails with this status."""

    def __init__(self, category: Category, text: str, code: int = 0) -> None:
        self.category = category
        self.code = code
        self.text = text
        super().__init__(f"{category.name}: {text}")


def stopping() -> Refused:
    """The broker goes down; clients may try another one."""
    return Refused(Category.E_REFUSED, "Self node is stopping.", -11)
