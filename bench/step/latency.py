"""One environment in double precision: microseconds per step, beside MuJoCo's mj_step on the same model."""

from __future__ import annotations

import mujoco

from .engines import Stiction, Times
from .rounds import spread
from .scenes import HOLD, start_qpos

BURST = 50  # steps of one call


def latency(scene, model, mjmodel, rounds: int, calls: int = 200) -> dict:
    """Per step, of calls of one step each (with what a call from Python costs) and of calls of BURST steps."""
    engine = Stiction(scene, model, 1, dtype="float64")
    engine.settle()
    data = mujoco.MjData(mjmodel)
    data.qpos[:] = start_qpos(mjmodel)
    for _ in range(max(1, round(scene.settle / (HOLD * engine.timestep)))):
        data.ctrl[:] = engine.controls.next()[0]
        mujoco.mj_step(mjmodel, data, HOLD)
    micro = {name: [] for name in ("stiction", "stiction_burst", "mujoco", "mujoco_burst")}

    def timed(name, call, steps):
        times = Times()
        control = engine.controls.next()[0]
        if mjmodel.nu:
            engine.sim.ctrl[:], data.ctrl[:] = control, control
        times.measure(call)
        micro[name].append(times.cpu * 1e6 / steps)

    def repeat(call):
        for _ in range(calls):
            call()

    for _ in range(rounds):
        timed("stiction", lambda: repeat(lambda: engine.sim.step(1)), calls)
        timed("mujoco", lambda: repeat(lambda: mujoco.mj_step(mjmodel, data)), calls)
        timed("stiction_burst", lambda: [engine.sim.step(BURST) for _ in range(calls // BURST)], calls)
        timed("mujoco_burst", lambda: [mujoco.mj_step(mjmodel, data, BURST) for _ in range(calls // BURST)], calls)
    return {"microseconds_per_step": {name: spread(values) for name, values in micro.items()}, "burst": BURST}
