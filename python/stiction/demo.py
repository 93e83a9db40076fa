"""``python -m stiction.demo``: a batch of Ants under random actions; figures, a comparison with MuJoCo, a video.

Both engines step the same model with the same time step, number of threads, kind and amplitude of actions, MuJoCo with
its Euler integrator through `mujoco.rollout`; they settle first, then take turns, and the median of the rounds is told
with its range. The certificate is taken from every single step of a further stretch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from . import __version__
from .batch_renderer import BatchRenderer, choose_gl, write_sheet, write_video
from .model import Model
from .simulation import Simulation
from .status import Status

SUBSTEPS = 5  # time steps per action
ROUNDS = 5


def bundled_model() -> Path:
    return Path(__file__).parent / "assets" / "ant.xml"


class Actions:
    """Uniform random controls of one amplitude, relative to each actuator's range; one stream per engine, same seed."""

    def __init__(self, model: Model, num_envs: int, amplitude: float, seed: int):
        self._random = np.random.default_rng(seed)
        low, high = model.actuator_ctrlrange[:, 0].copy(), model.actuator_ctrlrange[:, 1].copy()
        unlimited = model.actuator_ctrllimited == 0
        low[unlimited], high[unlimited] = -1, 1
        self._middle, self._half = (low + high) / 2, amplitude * (high - low) / 2
        self._shape = (num_envs, model.nu)

    def draw(self) -> np.ndarray:
        return self._middle + self._half * self._random.uniform(-1, 1, self._shape)


def start(sim: Simulation, seed: int) -> np.ndarray:
    """The model's keyframe or qpos0 with joint angles disturbed a little, in sim and as an array."""
    sim.reset(keyframe=0 if sim.model.nkey else None)
    first = 7 if sim.model.jnt_type[0] == 0 else 0
    qpos = sim.qpos
    qpos[:, first:] += np.random.default_rng(seed).uniform(-0.1, 0.1, qpos[:, first:].shape)
    sim.forward()
    return qpos.astype(float)


class MujocoBatch:
    """The same ants in MuJoCo C: its Euler, `mujoco.rollout` over the same number of threads."""

    def __init__(self, sim: Simulation, qpos: np.ndarray, actions: Actions):
        import mujoco
        from mujoco.rollout import Rollout

        self._mujoco = mujoco
        self._model = sim.model.mjmodel
        self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self._model.opt.timestep = sim.timestep
        self._data = [mujoco.MjData(self._model) for _ in range(sim.num_threads)]
        self._rollout = Rollout(nthread=sim.num_threads)
        self._actions = actions
        count = len(qpos)
        self._state = np.concatenate([np.zeros((count, 1)), qpos, np.zeros((count, self._model.nv))], axis=1)
        self._warm = np.zeros((count, self._model.nv))

    def run(self, control_steps: int) -> float:
        """Seconds."""
        controls = np.stack([self._actions.draw() for _ in range(control_steps)], axis=1)
        controls = np.repeat(controls, SUBSTEPS, axis=1)
        begin = time.perf_counter()
        states, _ = self._rollout.rollout(self._model, self._data, self._state, controls, initial_warmstart=self._warm)
        seconds = time.perf_counter() - begin
        self._state = states[:, -1].copy()
        self._last_controls = controls[:, -1]
        return seconds

    def mean_contacts(self, sample: int = 128) -> float:
        """Contacts with a normal force, per environment, in a step from the present states."""
        mujoco, model, data, force = self._mujoco, self._model, self._data[0], np.zeros(6)
        spec, found = mujoco.mjtState.mjSTATE_FULLPHYSICS, 0
        chosen = range(min(sample, len(self._state)))
        for number in chosen:
            mujoco.mj_setState(model, data, self._state[number], spec)
            data.ctrl[:] = self._last_controls[number]
            mujoco.mj_forward(model, data)
            for contact in range(data.ncon):
                mujoco.mj_contactForce(model, data, contact, force)
                found += force[0] > 1e-9
        return found / len(chosen)

    def close(self) -> None:
        self._rollout.close()


def throughput(sim: Simulation, actions: Actions, rival: MujocoBatch | None, rival_envs: int, bar, rounds_of: int):
    """Steps per second of each round: (ours, MuJoCo's)."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        seconds = 0.0
        for _ in range(rounds_of):
            sim.ctrl = actions.draw()
            begin = time.perf_counter()
            sim.step(SUBSTEPS)
            seconds += time.perf_counter() - begin
            bar.update()
        ours.append(sim.num_envs * rounds_of * SUBSTEPS / seconds)
        if rival is not None:
            theirs.append(rival_envs * rounds_of * SUBSTEPS / rival.run(rounds_of))
    return ours, theirs


def inspect(sim: Simulation, actions: Actions, control_steps: int, shown: int, bar) -> dict:
    """Steps one by one; what each said about contacts and accuracy, and the qpos of the environments to be shown."""
    errors, contacts, penetration, frames = [], [], [], []
    for _ in range(control_steps):
        sim.ctrl = actions.draw()
        for _ in range(SUBSTEPS):
            sim.step()
            pushing = (sim.contact.impulse[..., 2] > 0).sum(axis=1)
            touched = pushing > 0
            errors.append((sim.certificate.r_con / sim.certificate.scale)[touched])
            contacts.append(pushing.mean())
            penetration.append(float(sim.certificate.penetration.max()))
        frames.append(sim.qpos[:shown].astype(float))
        bar.update()
    errors = np.concatenate(errors)
    return {"errors": errors, "contacts": float(np.mean(contacts)), "penetration": max(penetration), "frames": frames}


def figures(sim: Simulation, seen: dict, ours, theirs, rival, arguments) -> dict:
    errors = seen["errors"]
    percentiles = np.percentile(errors, [50, 99, 100]) if errors.size else [0.0] * 3
    result = {
        "stiction": __version__,
        "envs": sim.num_envs,
        "isa": sim.isa,
        "threads": sim.num_threads,
        "timestep": sim.timestep,
        "solver": sim.solver.name,
        "iterations": sim.solver.iterations,
        "amplitude": arguments.amplitude,
        "steps_per_second": {"median": float(np.median(ours)), "min": min(ours), "max": max(ours)},
        "contacts_with_impulse": seen["contacts"],
        "world_steps_with_impulse": int(errors.size),
        "r_con_over_V": dict(zip(("p50", "p99", "max"), map(float, percentiles), strict=True)),
        "max_penetration": seen["penetration"],
        "status": Status.counts(sim.status),
    }
    if rival is not None:
        import mujoco

        result["mujoco"] = {
            "version": mujoco.__version__,
            "steps_per_second": {"median": float(np.median(theirs)), "min": min(theirs), "max": max(theirs)},
            "contacts_with_force": rival.mean_contacts(),
        }
    return result


def report(result: dict) -> None:
    def speed(entry):
        return f"{entry['median']:>10,.0f} steps/s  ({entry['min']:,.0f} to {entry['max']:,.0f} in {ROUNDS} rounds)"

    print(
        f"\n{result['envs']} environments, {result['timestep'] * 1e3:g} ms steps, {SUBSTEPS} per action, control "
        f"amplitude {result['amplitude']:g}, {result['solver']} with {result['iterations']} iterations"
    )
    print(f"stiction     {speed(result['steps_per_second'])}  {result['isa']}, {result['threads']} threads")
    rival = result.get("mujoco")
    if rival:
        ratio = result["steps_per_second"]["median"] / rival["steps_per_second"]["median"]
        name = f"MuJoCo {rival['version']}"
        print(f"{name:<12} {speed(rival['steps_per_second'])}  Euler, {result['threads']} threads; ratio {ratio:.1f}")
    also = f" (MuJoCo {rival['contacts_with_force']:.2f})" if rival else ""
    print(f"contacts     {result['contacts_with_impulse']:.2f} per environment push{also}")
    r = result["r_con_over_V"]
    print(
        f"certificate  r_con/V p50 {r['p50']:.1e}, p99 {r['p99']:.1e}, max {r['max']:.1e} over "
        f"{result['world_steps_with_impulse']:,} environment steps with an impulse; deepest overlap "
        f"{result['max_penetration'] * 1e3:.2f} mm"
    )
    bits = ", ".join(f"{name} {count}" for name, count in result["status"].items() if count) or "none"
    print(f"status       {bits} (environments that had the bit set at any time)")


def draw(model: Model, frames, shown: int, folder: Path, fps: int, bar) -> Path:
    """Writes ants.mp4, or a sheet where that cannot be; and ants.png, a frame of it."""
    pictures = []
    with BatchRenderer(model.mjmodel, shown) as renderer:
        for qpos in frames:
            pictures.append(renderer.render(qpos))
            bar.update()
    sheet = folder / "ants.png"
    write_sheet(sheet, [pictures[i] for i in np.linspace(0, len(pictures) - 1, 6).astype(int)])
    try:
        video = folder / "ants.mp4"
        write_video(video, pictures, fps)
    except (ImportError, OSError, RuntimeError) as error:
        print(f"no video, a sheet of frames instead: {error}", file=sys.stderr)
        return sheet
    return video


def options(argv) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m stiction.demo", description="A batch of Ants under random actions."
    )
    parser.add_argument("--envs", type=int, default=1024, help="environments (1024)")
    parser.add_argument("--steps", type=int, default=200, help=f"actions of {SUBSTEPS} time steps each (200)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/demo"), help="folder for the video and the figures (out/demo)"
    )
    parser.add_argument("--amplitude", type=float, default=0.1, help="of the random actions, of their range (0.1)")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads for both engines (all)")
    parser.add_argument("--shown", type=int, default=9, help="environments in the picture (9); 0: no picture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, default=bundled_model(), help="another MJCF file")
    parser.add_argument("--no-mujoco", action="store_true", help="no comparison")
    parsed = parser.parse_args(argv)
    if parsed.envs < 1 or parsed.steps < 20 or parsed.shown < 0:
        parser.error("expected --envs of at least 1, --steps of at least 20, --shown of at least 0")
    return parsed


def main(argv=None) -> int:
    arguments = options(argv)
    choose_gl()
    from tqdm import tqdm

    arguments.out.mkdir(parents=True, exist_ok=True)
    model = Model.from_mjcf(arguments.model)
    sim = Simulation(model, arguments.envs, num_threads=arguments.threads)
    print(f"stiction {__version__}: {sim}")
    settle = arguments.steps // 4
    timed = max(1, arguments.steps // (4 * ROUNDS))
    watched = arguments.steps - settle - timed * ROUNDS
    shown = min(arguments.shown, sim.num_envs)

    qpos = start(sim, arguments.seed)
    actions = Actions(model, sim.num_envs, arguments.amplitude, arguments.seed)
    rival, rival_envs = None, min(256, sim.num_envs)
    if not arguments.no_mujoco:
        rival = MujocoBatch(sim, qpos[:rival_envs], Actions(model, rival_envs, arguments.amplitude, arguments.seed))
        rival.run(settle)
    with tqdm(total=arguments.steps, unit="action", desc="stepping", leave=False) as bar:
        for _ in range(settle):
            sim.ctrl = actions.draw()
            sim.step(SUBSTEPS)
            bar.update()
        ours, theirs = throughput(sim, actions, rival, rival_envs, bar, timed)
        seen = inspect(sim, actions, watched, shown, bar)
    result = figures(sim, seen, ours, theirs, rival, arguments)
    report(result)
    (arguments.out / "demo.json").write_text(json.dumps(result, indent=2) + "\n")
    if rival is not None:
        rival.close()
    if shown:
        with tqdm(total=len(seen["frames"]), unit="frame", desc="drawing", leave=False) as bar:
            path = draw(model, seen["frames"], shown, arguments.out, round(1 / (SUBSTEPS * sim.timestep)), bar)
        print(f"picture      {path} (and ants.png)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
