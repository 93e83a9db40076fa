"""``python -m bench.gpu.mujoco_warp``: MuJoCo Warp on the robots of ``bench.gpu``, with their controls.

Physics steps per second of a CUDA graph of one step, replayed, after 200 steps; only the replays are timed. Needs
``mujoco-warp``; compiles for most of a minute first. One model a run: two at a time disturb each other.
"""

from __future__ import annotations

import argparse
import json
import time

import mujoco
import numpy as np

from bench.gpu.__main__ import ENVS, HOLD, MODELS, spread


def main():
    import mujoco_warp as mjw
    import warp as wp

    parser = argparse.ArgumentParser(prog="python -m bench.gpu.mujoco_warp", description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--num-envs", type=int, default=16384)
    parser.add_argument("--steps", type=int, default=100, help="of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cone", choices=("pyramidal", "elliptic"), default="pyramidal")
    parser.add_argument("--noslip", type=int, default=0, metavar="N", help="noslip_iterations")
    options = parser.parse_args()

    path, amplitude = MODELS[options.model]
    host = mujoco.MjModel.from_xml_path(str(ENVS / path))
    host.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{options.cone.upper()}")
    host.opt.noslip_iterations = options.noslip
    state = mujoco.MjData(host)
    if host.nkey:
        mujoco.mj_resetDataKeyframe(host, state, 0)
    mujoco.mj_forward(host, state)
    began = time.perf_counter()
    model = mjw.put_model(host)
    data = mjw.put_data(host, state, nworld=options.num_envs, nconmax=48, njmax=200)
    random = np.random.default_rng(1)

    def control():
        shape = (options.num_envs, host.nu)
        data.ctrl.assign((state.ctrl + amplitude * random.uniform(-1, 1, shape)).astype(np.float32))

    control()
    mjw.step(model, data)
    wp.synchronize()
    compiled = time.perf_counter() - began
    with wp.ScopedCapture() as capture:
        mjw.step(model, data)

    def seconds_of(steps: int) -> float:
        spent = 0.0
        for _ in range(steps // HOLD):
            control()
            wp.synchronize()
            started = time.perf_counter()
            for _ in range(HOLD):
                wp.capture_launch(capture.graph)
            wp.synchronize()
            spent += time.perf_counter() - started
        return spent

    seconds_of(200)
    steps = max(options.steps // HOLD, 1) * HOLD
    rates = [options.num_envs * steps / seconds_of(steps) for _ in range(options.rounds)]
    told = {
        "model": options.model,
        "num_envs": options.num_envs,
        "timestep": host.opt.timestep,
        "cone": options.cone,
        "noslip_iterations": options.noslip,
        "compile_seconds": compiled,
        "steps_per_second": spread(rates),
        "contacts": float(data.nacon.numpy().sum()) / options.num_envs,
        "solver_iterations": float(data.solver_niter.numpy().mean()),
        "finite": bool(np.isfinite(data.qpos.numpy()).all()),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
