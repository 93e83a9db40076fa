"""Things to grasp, stack and drop: MJCF files of the package, each with a free body of its name. See envs/props.

``prop_path("mug")`` is a file to load alone (`Model.from_mjcf`), to ``<include>`` once in another, or to attach as
often as wanted with ``mujoco.MjSpec.attach``: everything in it is named after the prop.
"""

from __future__ import annotations

from pathlib import Path

from .registration import asset_path, unknown


def prop_names() -> tuple[str, ...]:
    """What `prop_path` knows: "bolt", "bottle", "bowl" and so on."""
    return tuple(sorted(path.stem for path in asset_path("props").glob("*.xml")))


def prop_path(name: str) -> Path:
    """The MJCF file of a prop: convex parts of real density and size, standing on z = 0. ValueError for other names."""
    if name not in prop_names():
        raise unknown("prop", name, prop_names())
    return asset_path(f"props/{name}.xml")
