"""Options of one call of `stiction train`. A call that resumes a run has those of the call before, unless said anew."""

from __future__ import annotations

from argparse import Namespace

SAMPLES = 3e6  # where neither samples nor minutes are said
#: What they are in a first call that does not say them.
USUAL = {
    "samples": None, "minutes": None, "threads": None, "device": "auto", "evaluate": 100, "wandb": None, "onnx": True,
    "video": True,
}  # fmt: skip


def settled(arguments: Namespace, before: dict) -> Namespace:
    """``arguments`` with what they leave out (None) as in ``before``, what `kept` returned of the call before, or {}.

    Samples and minutes are one target: who says one of them leaves the other.
    """
    said = vars(arguments)
    if said["samples"] is not None or said["minutes"] is not None:
        before = before | {"samples": None, "minutes": None}
    call = {name: before.get(name, usual) if said[name] is None else said[name] for name, usual in USUAL.items()}
    if call["samples"] is None and call["minutes"] is None:
        call["samples"] = SAMPLES
    if call["wandb"] is True:  # without a project's name
        call["wandb"] = before.get("wandb") or "stiction"
    call["wandb"] = call["wandb"] or None  # False: no more
    return Namespace(**said | call)


def kept(arguments: Namespace, seconds: float) -> dict:
    """For a checkpoint: the options of a call that has learned for so many seconds, of its minutes those left."""
    call = {name: getattr(arguments, name) for name in USUAL}
    if call["minutes"] is not None:
        call["minutes"] = max(0.0, round(call["minutes"] - seconds / 60, 3))
    return call
