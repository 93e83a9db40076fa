"""Tables of what the benches measured."""

from __future__ import annotations

LIMIT = 1e-3  # p99 of r_con / V above which a speed does not count
NEEDED = {"anymal_c": 3, "go1": 3}  # active contacts below which it does not, 1 elsewhere


def heading(result: dict) -> str:
    m = result["machine"]
    lines = [
        f"{m['processor']}, {m['cores']} cores, load {m['load_average']}, {m['date']}",
        f"stiction {m['stiction']} ({m['commit'][:12]}), mujoco {m['mujoco']}, {result['options'] or 'defaults'}",
    ]
    return "\n".join(lines)


def scene(result: dict) -> str:
    noise = f"+ N(0, {result['amplitude']:g}^2)" if result["explores"] else f"+- {result['amplitude']:g}"
    lines = [
        "",
        f"{result['scene']}: nv {result['nv']}, dt {result['timestep']:g} s, controls home {noise} "
        f"held {result['hold']} steps, settled {result['settled_s']:g} s",
        f"  {'engine':38s} {'batch':>6s} {'thr':>3s} {'k steps/s/core [min, max]':>27s} {'wall':>7s} {'x MuJoCo':>9s} "
        f"{'contacts':>8s} {'r_con/V p50':>11s} {'p95':>8s} {'p99':>8s} {'depth mm':>9s} {'p99':>7s}",
    ]
    lines += [_row(entry) for entry in result["entries"]]
    if "creep_um_per_s" in result:
        creep = result["creep_um_per_s"]
        parts = (f"{n} {creep[n]['p50']:.3g} (p90 {creep[n]['p90']:.3g})" for n in ("stiction", "mujoco") if n in creep)
        lines.append(
            f"  creep after {creep['after_s']:g} s of rest, um/s, median of the fastest body: {', '.join(parts)}"
        )
    if "latency" in result:
        t = {name: value["median"] for name, value in result["latency"]["microseconds_per_step"].items()}
        lines.append(
            f"  one environment, double, us/step: stiction {t['stiction']:.1f} (in bursts {t['stiction_burst']:.1f}), "
            f"mujoco {t['mujoco']:.1f} ({t['mujoco_burst']:.1f})"
        )
    if "profile" in result:
        share = result["profile"]["share"]
        parts = ", ".join(f"{name} {100 * value:.1f} %" for name, value in share.items())
        lines.append(f"  of a step of {result['profile']['microseconds_per_step']:.2f} us: {parts}")
    for entry in result["entries"]:
        if entry["engine"] == "stiction" and "times_mujoco" in entry:
            lines.append(
                f"  {entry['variant']}, batch {entry['batch']}, {entry['threads']} threads: {verdict(result, entry)}"
            )
    return "\n".join(lines)


def _row(entry: dict) -> str:
    core, depth = entry["steps_per_core_second"], entry["penetration_mm"]
    name = f"{entry['engine']} {entry['variant']}" + (
        " <" if entry.get("reference") else " unstable" * (entry.get("diverged", 0) > 0)
    )
    rate = f"{core['median'] / 1e3:.1f} [{core['min'] / 1e3:.1f}, {core['max'] / 1e3:.1f}]"
    ratio = f"{entry['times_mujoco']['median']:.2f}" if "times_mujoco" in entry else ""
    r = entry.get("r_con_over_V")
    certificate = f"{r['p50']:11.1e} {r['p95']:8.1e} {r['p99']:8.1e}" if r else f"{'':11s} {'':8s} {'':8s}"
    return (
        f"  {name:38s} {entry['batch']:6d} {entry['threads']:3d} {rate:>27s} "
        f"{entry['steps_per_wall_second']['median'] / 1e3:7.1f} {ratio:>9s} {entry['contacts']:8.2f} {certificate} "
        f"{depth['mean']:9.3f} {depth['p99']:7.2f}"
    )


def verdict(result: dict, entry: dict) -> str:
    """Whether the speed counts: contacts, certificate, overlap and creep must be as good as MuJoCo's."""
    reference = next(e for e in result["entries"] if e.get("reference") and e["threads"] == entry["threads"])
    needed, against = NEEDED.get(result["scene"], 1), []
    fewest = min(entry["contacts"], reference["contacts"])
    if fewest < needed:
        against.append(f"{fewest:.2f} active contacts, {needed} needed")
    r = entry.get("r_con_over_V")
    if r and r["p99"] > LIMIT:
        against.append(f"r_con p99 {r['p99']:.1e} V")
    for key in ("mean", "p99"):
        ours, theirs = entry["penetration_mm"][key], reference["penetration_mm"][key]
        if ours > theirs:
            against.append(f"overlap {key} {ours:.3g} mm against {theirs:.3g}")
    creep = result.get("creep_um_per_s", {})
    if "mujoco" in creep and creep["stiction"]["p50"] > creep["mujoco"]["p50"]:
        against.append(f"creep {creep['stiction']['p50']:.3g} um/s against {creep['mujoco']['p50']:.3g}")
    speed = f"{entry['times_mujoco']['median']:.2f} x MuJoCo ({reference['variant']})"
    return f"{speed}, counts" if not against else f"{speed}, does not count: " + "; ".join(against)
