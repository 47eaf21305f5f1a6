"""Rules that act on single items of a frame: one message of a batch, one id of a confirm."""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from fakebrokers.faults.parcel import Parcel


def apply_to_items(
    act: Callable[[list[Parcel]], list[Parcel]],
    chosen: Collection[int],
    parcels: list[Parcel],
) -> list[Parcel]:
    """Let a rule act on the chosen items only; neighbours that nothing came between stay one frame.

    Args:
        act: What the rule makes of parcels.
        chosen: Places of the items in the frame as it came into the pipe.
    """
    out: list[Parcel] = []
    for parcel in parcels:
        if parcel.items is None or parcel.raw is not None or not any(i in chosen for i in parcel.items):
            out.append(parcel)
            continue
        rest: list[int] = []
        for place, item in enumerate(parcel.items):
            if item not in chosen:
                rest.append(place)
                continue
            result = act([_part(parcel, [place])])
            if result:
                if rest:
                    out.append(_part(parcel, rest))
                    rest = []
                out.extend(result)
        if rest:
            out.append(_part(parcel, rest))
    return out


def _part(parcel: Parcel, places: list[int]) -> Parcel:
    """A parcel with only these of its items."""
    assert parcel.items is not None and parcel.frame is not None
    items = parcel.frame.spec.items
    assert items is not None
    if len(places) == len(parcel.items):
        return parcel
    return msgspec.structs.replace(
        parcel,
        frame=items.select(parcel.frame, places),
        unit=None,
        items=tuple(parcel.items[place] for place in places),
    )
