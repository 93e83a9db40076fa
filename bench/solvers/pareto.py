"""Error against CPU time: one panel a scene, one line an engine through the settings that none of its others beats."""

from __future__ import annotations

from pathlib import Path

import numpy as np

COLOURS = {
    "subadmm": "#d62728",
    "canal": "#1f77b4",
    "admm": "#2ca02c",
    "pgs": "#ff7f0e",
    "cond": "#9467bd",
    "sap": "#8c564b",
    "bisection": "#e377c2",
    "MuJoCo": "#000000",
}
FLOOR = 1e-10  # what is less is drawn here
LESS = 0.95  # of an error: what is hardly better does not count


def front(points: np.ndarray) -> np.ndarray:
    """Of rows (time, error), those that no other beats in both, by time."""
    points, best = points[np.lexsort((points[:, 1], points[:, 0]))], []
    for time, error in points:
        if not best or error < LESS * best[-1][1]:
            best.append((time, error))
    return np.array(best)


def panel(axes, scene: dict) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    entries = [e for e in scene["entries"] if np.isfinite(e["error"])]
    for order, (engine, colour) in enumerate(COLOURS.items()):
        mine = [e for e in entries if e["engine"] == engine]
        if not mine:
            continue
        points = np.array([(1e3 * e["cpu"]["median"], scene["per"] * max(e["error"], FLOOR)) for e in mine])
        axes.scatter(*points.T, s=6, color=colour, alpha=0.25, lw=0)
        best, above = front(points), 10 - order if engine != "MuJoCo" else 11
        style = {"color": colour, "zorder": above, "lw": 2 if engine in ("subadmm", "MuJoCo") else 1.2}
        axes.plot(*best.T, marker="o", ms=3, label=engine, **style)
        usual = [p for e, p in zip(mine, points, strict=True) if e["variant"] == "default" and e["timestep"] == 0.002]
        if usual:
            axes.plot(*usual[0], marker="D", ms=7, color=colour, mec="white", mew=1, zorder=20)
    doubt = scene["per"] * max((error for name, error in scene["doubts"].items() if "MuJoCo" not in name), default=0)
    if doubt > 0:
        axes.axhline(doubt, color="0.5", lw=1, ls=":")
        axes.annotate(
            "the reference's own",
            (0, doubt),
            (3, 2),
            xycoords=("axes fraction", "data"),
            fontsize=7,
            textcoords="offset points",
            color="0.4",
        )
    axes.set(xscale="log", yscale="log", title=scene["title"], ylabel=scene["unit"])
    few = np.divide(*axes.get_xlim()[::-1]) < 300
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)


def draw(result: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    scenes = list(result["scenes"].values())
    columns = min(3, len(scenes) + 1)
    rows = -(-(len(scenes) + 1) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(4.4 * columns, 3.5 * rows), squeeze=False)
    panels = grid.ravel()
    for axes, scene in zip(panels, scenes, strict=False):
        panel(axes, scene)
        axes.set_xlabel("ms of a core for a simulated second", fontsize=8)
    for axes in panels[len(scenes) :]:
        axes.axis("off")
    handles, names = panels[0].get_legend_handles_labels()
    handles.append(pyplot.Line2D([], [], color="0.4", marker="D", ms=8, mec="white", ls=""))
    names.append("as it comes, steps of 2 ms")
    handles.append(pyplot.Line2D([], [], color="0.4", marker="o", ms=3, alpha=0.4, ls=""))
    names.append("other settings and steps")
    panels[len(scenes)].legend(handles, names, loc="center", frameon=False, title="lower and further left is better")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
    print(f"wrote {path}")
