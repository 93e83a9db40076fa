"""Writes the props of this folder, <name>.xml: every part convex, with its vertices in the file.   m, kg

    python envs/props/generate.py

A prop stands on z = 0 about the origin. Parts of one prop meet at faces and do not overlap, so that densities times
volumes are its mass and inertia.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
STEEL, WOOD, CERAMIC, GLASS, PLASTIC, RUBBER, WATER = 7850, 700, 2400, 2500, 1050, 1100, 1000  # kg/m^3
CIRCLE = 2 * np.pi

Points = np.ndarray  # (n, 3)


def numbers(values) -> str:
    """To a micrometre."""
    return " ".join(f"{value:.6f}".rstrip("0").rstrip(".").replace("-0.", "-.").lstrip("0") or "0" for value in values)


def polygon(corners: int, radius: float, turn: float = 0.0) -> Points:
    """Corners (n, 2) of a regular one; its first at the angle `turn`."""
    angle = turn + CIRCLE * np.arange(corners) / corners
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def prism(outline, low: float, high: float) -> Points:
    """An outline (n, 2) in x and y from z = low to high."""
    return np.array([(x, y, z) for z in (low, high) for x, y in outline])


def turned_solid(corners: int, *rings: tuple[float, float]) -> Points:
    """Polygons about z with a side towards x: of each ring (radius, z)."""
    return np.vstack([np.c_[polygon(corners, r, -np.pi / corners), np.full(corners, z)] for r, z in rings])


def rounded_box(half, radius: float, steps: int) -> Points:
    """Edges and corners are rounded by `steps` chords a quarter; centre at the origin."""
    turns = np.linspace(0, np.pi / 2, steps + 1)
    corner = {(0.0, 0.0, 1.0)}
    for polar in turns[1:]:
        along = np.linspace(0, np.pi / 2, round(steps * np.sin(polar)) + 1)
        corner |= {(np.sin(polar) * np.cos(a), np.sin(polar) * np.sin(a), np.cos(polar)) for a in along}
    inner = np.asarray(half) - radius
    return np.array([np.array(s) * (inner + radius * np.array(c)) for s in product((-1, 1), repeat=3) for c in corner])


def box(half, centre=(0, 0, 0)) -> Points:
    return np.array([np.array(s) * half + centre for s in product((-1, 1), repeat=3)])


def shell(sectors: int, low, high, floor_at: float | None = None) -> list[Points]:
    """A wall about z, one part a sector, the first towards x; low, high: radii of corners inside and outside, z.
    `floor_at`: with a bottom from there."""
    parts = []
    for i in range(sectors):
        angles = CIRCLE * np.array([i - 0.5, i + 0.5]) / sectors
        rows = [(r * np.cos(a), r * np.sin(a), z) for *radii, z in (low, high) for r in radii for a in angles]
        parts.append(np.array(rows))
    if floor_at is not None:
        parts.append(turned_solid(sectors, (low[1], floor_at), (low[1], low[2])))
    return parts


def arc(centre, radius: float, section: Points, angles) -> list[Points]:
    """Sectors of a ring about an axis along y: a section (n, 2), outward and along y, carried over the angles."""
    parts = []
    for begin, end in zip(angles[:-1], angles[1:], strict=True):
        rows = [
            (centre[0] + (radius + out) * np.cos(a), centre[1] + y, centre[2] + (radius + out) * np.sin(a))
            for a in (begin, end)
            for out, y in section
        ]
        parts.append(np.array(rows))
    return parts


def upright(points: Points) -> Points:
    """The prism's z to y: what was drawn in x and y stands in x and z."""
    return points[:, [0, 2, 1]] * (1, -1, 1)


# ---- the props: parts as (points, density, colour) ------------------------------------------------------------------

GREY, DARK, BRASS = (0.62, 0.64, 0.67), (0.25, 0.27, 0.3), (0.8, 0.62, 0.25)


def of(parts, density: float, colour) -> list[tuple]:
    return [(part, density, colour) for part in (parts if isinstance(parts, list) else [parts])]


def bolt():
    head = turned_solid(6, (0.0095, 0), (0.0104, 0.0006), (0.0104, 0.0075))
    shank = turned_solid(16, (0.006, 0.0075), (0.006, 0.0563), (0.0048, 0.0575))
    return of([head, shank], STEEL, GREY)


def bottle():
    body = turned_solid(16, (0.028, 0), (0.0325, 0.005), (0.0325, 0.13), (0.028, 0.15), (0.014, 0.175))
    neck = turned_solid(16, (0.014, 0.175), (0.014, 0.195))
    cap = turned_solid(16, (0.016, 0.195), (0.016, 0.213), (0.0145, 0.215))
    return of([body, neck], WATER, (0.35, 0.65, 0.5)) + of(cap, PLASTIC, (0.9, 0.9, 0.88))


def bowl():
    sectors = 8
    lower = shell(sectors, (0.036, 0.042, 0.006), (0.058, 0.064, 0.025), floor_at=0.0)
    return of(lower + shell(sectors, (0.058, 0.064, 0.025), (0.068, 0.073, 0.055)), CERAMIC, (0.85, 0.45, 0.35))


def box_():
    return of(rounded_box((0.05, 0.035, 0.025), 0.008, 3) + (0, 0, 0.025), 400, (0.72, 0.55, 0.35))


def bracket():
    foot = box((0.03, 0.02, 0.002), (0, 0, 0.002))
    wall = box((0.002, 0.02, 0.028), (-0.028, 0, 0.032))
    rib = upright(prism([(-0.026, 0.004), (0.004, 0.004), (-0.026, 0.034)], -0.002, 0.002))
    return of([foot, wall, rib], STEEL, GREY)


def cup():
    return of(shell(10, (0.027, 0.0295, 0.003), (0.0375, 0.04, 0.11), floor_at=0.0), PLASTIC, (0.3, 0.55, 0.85))


def die():
    return of(rounded_box((0.008, 0.008, 0.008), 0.0015, 3) + (0, 0, 0.008), 1200, (0.93, 0.92, 0.88))


def gear():
    teeth, root, tip, thick, half = 10, 0.021, 0.0265, 0.008, 0.55
    hub = prism(polygon(2 * teeth, root, -np.pi / (2 * teeth)), 0, thick)
    parts = [hub, turned_solid(16, (0.009, thick), (0.009, 0.014))]
    foot = root * np.sin(np.pi / (2 * teeth))
    flat = root * np.cos(np.pi / (2 * teeth))
    for i in range(teeth):
        c, s = np.cos(CIRCLE * i / teeth), np.sin(CIRCLE * i / teeth)
        tooth = np.array([(flat, -foot), (flat, foot), (tip, half * foot), (tip, -half * foot)])
        parts.append(prism(tooth @ [[c, s], [-s, c]], 0, thick))
    return of(parts, 1400, BRASS)


def hammer():
    neck = box((0.012, 0.0125, 0.0125), (0.2, 0, 0.0125))
    rings = ((0.0115, 0.0125), (0.0135, 0.02), (0.0135, 0.05))
    face = upright(np.vstack([np.c_[polygon(8, r, CIRCLE / 16), np.full(8, z)] for r, z in rings]))
    peen = box((0.012, 0, 0.0125), (0, 0.0125, 0)), box((0.012, 0, 0.0025), (0, 0.055, 0))
    ends = [(x, s * np.array([-0.009, 0.009])) for x, s in ((-0.1, 1.25), (0.02, 1.0), (0.188, 0.9))]
    handle = np.array([(x, y, 10 / 9 * z + 0.0125) for x, sides in ends for y in sides for z in sides])
    head = [neck, face + (0.2, 0, 0.0125), np.vstack(peen) + (0.2, 0, 0.0125)]
    return of(head, STEEL, DARK) + of(handle, WOOD, (0.75, 0.55, 0.33))


def mug():
    sectors = 10
    parts = shell(sectors, (0.036, 0.04, 0.005), (0.036, 0.04, 0.095), floor_at=0.0)
    section = np.array([(-0.004, -0.005), (-0.004, 0.005), (0.004, 0.005), (0.004, -0.005)])
    flat = 0.04 * np.cos(np.pi / sectors)  # where a wall's outer face is
    handle = arc((flat, 0, 0.05), 0.027, section, np.radians([90, 36, -36, -90]))
    return of(parts + handle, CERAMIC, (0.2, 0.5, 0.6))


def nut():
    inner, outer, high = 0.0065, 0.0104, 0.01
    return of(shell(6, (inner / np.cos(np.pi / 6), outer, 0), (inner / np.cos(np.pi / 6), outer, high)), STEEL, GREY)


def plate():
    rim = shell(12, (0.062, 0.066, 0.005), (0.1, 0.104, 0.02), floor_at=0.0)
    return of(rim, CERAMIC, (0.7, 0.75, 0.82))


def ring():
    section = polygon(8, 0.008, CIRCLE / 16)
    parts = arc((0, 0, 0), 0.035, section, CIRCLE * np.arange(13) / 12)
    low = 0.008 * np.cos(CIRCLE / 16)
    return of([part[:, [0, 2, 1]] * (1, -1, 1) + (0, 0, low) for part in parts], RUBBER, (0.85, 0.35, 0.3))


def wedge():
    side = [(-0.06, 0), (0.06, 0), (0.06, 0.004), (-0.06, 0.035)]
    return of(upright(prism(side, -0.02, 0.02)), RUBBER, (0.85, 0.65, 0.2))


def wrench():
    thick, inner, outer, sides = 0.006, 0.0092, 0.0152, 8
    bar = box((0.055, 0.007, thick / 2), (0, 0, thick / 2))
    web = prism([(x, s * y) for s in (-1, 1) for x, y in ((0.055, 0.007), (0.062, 0.016), (0.066, 0.016))], 0, thick)
    jaw = np.array([(0.066, 0.0092), (0.066, 0.016), (0.076, 0.016), (0.084, 0.0115), (0.084, 0.0092)])
    radii = np.array([inner, outer]) / np.cos(np.pi / sides)
    eye = shell(sides, (*radii, 0), (*radii, thick))
    parts = [bar, web, *(prism(jaw * (1, s), 0, thick) for s in (-1, 1))]
    return of(parts + [part - (0.055 + outer, 0, 0) for part in eye], STEEL, GREY)


PROPS = {
    "bolt": bolt, "bottle": bottle, "bowl": bowl, "box": box_, "bracket": bracket, "cup": cup, "die": die, "gear": gear,
    "hammer": hammer, "mug": mug, "nut": nut, "plate": plate, "ring": ring, "wedge": wedge, "wrench": wrench,
}  # fmt: skip


def pips(half: float = 0.008) -> list[str]:
    """The spots of a die, which touch nothing; opposite faces add up to seven."""
    places = {1: "c", 2: "ai", 3: "aci", 4: "agik", 5: "agcik", 6: "abgijk"}
    grid = {"a": (-1, -1), "b": (0, -1), "g": (1, -1), "c": (0, 0), "i": (1, 1), "j": (0, 1), "k": (-1, 1)}
    lines = []
    for face, (axis, side) in {1: (2, 1), 6: (2, -1), 2: (0, 1), 5: (0, -1), 3: (1, 1), 4: (1, -1)}.items():
        for place in places[face]:
            at, size = np.zeros(3), np.full(3, 0.0012)
            at[[(axis + 1) % 3, (axis + 2) % 3]] = np.array(grid[place]) * 0.0037
            at[axis], size[axis] = side * half, 0.0001
            lines.append(f'<geom class="die_pip" pos="{numbers(at + (0, 0, half))}" size="{numbers(size)}"/>')
    return lines


def mjcf(name: str) -> str:
    parts = PROPS[name]()
    lines = [f'<mujoco model="{name}">', "  <default>"]
    lines += [f'    <default class="{name}"><geom type="mesh" friction=".6"/></default>']
    if name == "die":
        pip = '<geom type="ellipsoid" contype="0" conaffinity="0" mass="0" group="2" rgba=".1 .1 .12 1"/>'
        lines += [f'    <default class="die_pip">{pip}</default>']
    lines += ["  </default>", "  <asset>"]
    for i, (points, _, _) in enumerate(parts):
        lines.append(f'    <mesh name="{name}_{i}" vertex="{numbers(np.ravel(points))}"/>')
    lines += ["  </asset>", "  <worldbody>", f'    <body name="{name}" childclass="{name}">', "      <freejoint/>"]
    for i, (_, density, colour) in enumerate(parts):
        rgba = numbers([*colour, 1])
        lines.append(f'      <geom name="{name}_{i}" mesh="{name}_{i}" density="{density}" rgba="{rgba}"/>')
    if name == "die":
        lines += [f"      {line}" for line in pips()]
    return "\n".join([*lines, "    </body>", "  </worldbody>", "</mujoco>", ""])


def main() -> None:
    for name in PROPS:
        (FOLDER / f"{name}.xml").write_text(mjcf(name))
    size = sum((FOLDER / f"{name}.xml").stat().st_size for name in PROPS)
    print(f"{len(PROPS)} props, {size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
