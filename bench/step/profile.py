"""Where a step's time goes, without a profiler: the same steps from the same state with parts left out.

"solver" is the step less one without iterations, "anderson" less one without acceleration, "fallback" less one without
it. Shares of the whole step; later states do not differ, as the state is restored before every timed step. Without
Anderson the fallback gets more to do, so "anderson" may be negative.
"""

from __future__ import annotations

import numpy as np
from stiction import SolverOptions

from .engines import Stiction, Times

_VARIANTS = {
    "whole": {},
    "solver": {"iterations": 0, "fallback": False},
    "anderson": {"anderson": False},
    "fallback": {"fallback": False},
}


def profile(scene, model, settled: Stiction, isa: str, options: dict, repeats: int = 25, num_envs: int = 256) -> dict:
    base = Stiction(scene, model, min(num_envs, settled.num_envs), isa=isa, solver=SolverOptions(**options))
    base.take_state(settled)
    state = base.sim.get_state()
    engines = {
        name: Stiction(scene, model, base.num_envs, isa=isa, solver=SolverOptions(**(options | changed)))
        for name, changed in _VARIANTS.items()
    }
    seconds = {name: [] for name in engines}
    for _ in range(repeats):
        for name, engine in engines.items():
            engine.sim.set_state(state)
            times = Times()
            times.measure(engine.sim.step, 1)
            seconds[name].append(times.cpu)
    step = {name: float(np.median(values)) / base.num_envs for name, values in seconds.items()}
    share = {name: (step["whole"] - value) / step["whole"] for name, value in step.items() if name != "whole"}
    return {"microseconds_per_step": step["whole"] * 1e6, "share": share, "num_envs": base.num_envs, "isa": isa}
