"""A bar that tells how far a bench is; nothing without tqdm."""

from __future__ import annotations

import contextlib


def progress(total: int, unit: str):
    """A context; what it gives is for `tell`."""
    try:
        from tqdm import tqdm
    except ImportError:
        return contextlib.nullcontext()
    return tqdm(total=total, unit=unit, dynamic_ncols=True, leave=False)


def tell(bar, doing: str) -> None:
    """One more."""
    if bar is not None:
        bar.set_description(doing, refresh=False)
        bar.update()
