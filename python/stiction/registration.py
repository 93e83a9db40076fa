"""The environments by id, and their registration with Gymnasium.

They are registered once both packages are imported, in any order; ``gymnasium.make("stiction:stiction/Ant-v0")``
imports stiction itself. `stiction.make_vec` needs neither.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EnvironmentId:
    """What an id stands for: a compiled task, a model in stiction/assets, the default time limit in control steps.

    ``names``: for a task on any robot, what the asset calls its parts. Other tasks take variants of the asset only.
    ``timestep``: seconds; None is the model's. ``integrator``: as of `Simulation`; Gymnasium's tasks are defined with
    MuJoCo's Euler, and a policy that relies on what an implicit step takes from stiff joints fails there.
    """

    task: str
    asset: str
    max_episode_steps: int
    names: dict[str, tuple[str, ...]] | None = None
    timestep: float | None = None
    integrator: str = "implicit"

    @property
    def on_legs(self) -> bool:
        """Whether its robots walk: a free base and servos on a floor."""
        return "feet" in (self.names or ())


ENVIRONMENTS = {
    "stiction/Ant-v0": EnvironmentId("ant", "ant.xml", 1000, integrator="euler"),
    "stiction/HalfCheetah-v0": EnvironmentId("half_cheetah", "half_cheetah.xml", 1000, integrator="euler"),
    "stiction/Hopper-v0": EnvironmentId("hopper", "hopper.xml", 1000, integrator="euler"),
    "stiction/Walker2d-v0": EnvironmentId("walker2d", "walker2d.xml", 1000, integrator="euler"),
    "stiction/Humanoid-v0": EnvironmentId("humanoid", "humanoid.xml", 1000, integrator="euler"),
    "stiction/CartPoleBalance-v0": EnvironmentId("cartpole_balance", "cartpole.xml", 1000),
    "stiction/CartPoleSwingUp-v0": EnvironmentId("cartpole_swing_up", "cartpole.xml", 1000),
    "stiction/QuadrupedVelocity-v0": EnvironmentId(
        "quadruped_velocity", "quadruped.xml", 1000, {"feet": ("LF_foot", "RF_foot", "LH_foot", "RH_foot")}, 0.005
    ),
    "stiction/HumanoidVelocity-v0": EnvironmentId(
        "humanoid_velocity",
        "walking_humanoid.xml",
        1000,
        {"feet": ("left_foot", "right_foot"), "trunk": ("pelvis", "torso")},
        0.005,
    ),
    "stiction/ArmLift-v0": EnvironmentId("arm_lift", "arm_lift.xml", 250, {"grasp": ("grasp",)}, 0.01),
    "stiction/ArmStack-v0": EnvironmentId("arm_stack", "arm_stack.xml", 250, {"grasp": ("grasp",)}, 0.01),
    "stiction/HandReorient-v0": EnvironmentId(
        "hand_reorient",
        "hand.xml",
        300,
        {"fingertips": ("index_tip", "middle_tip", "ring_tip", "thumb_tip")},
        1 / 120,
    ),
}


def unknown(what: str, name, known) -> ValueError:
    """That there is no such thing, and which are like it."""
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are: {', '.join(known)}"
    return ValueError(f"no {what} {name!r}; {hint}")


def plain_id(env_id):
    """An id without the module that Gymnasium's may begin with: "stiction:stiction/Ant-v0"."""
    return env_id.removeprefix("stiction:") if isinstance(env_id, str) else env_id


def environment(env_id: str) -> EnvironmentId:
    if not isinstance(env_id, str):
        raise TypeError(
            f"the environment's id is {type(env_id).__name__}, expected a string such as 'stiction/Ant-v0', or a class "
            "made of stiction.Task"
        )
    known = ENVIRONMENTS.get(env_id)
    if known is None:
        raise unknown("environment", env_id, ENVIRONMENTS)
    return known


def asset_path(name: str) -> Path:
    return Path(__file__).parent / "assets" / name


def register_envs() -> None:
    """Makes the ids known to ``gymnasium.make`` and ``gymnasium.make_vec``; again is harmless."""
    import gymnasium

    for env_id, known in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point="stiction.single_env:SingleEnv",
                vector_entry_point="stiction.vector_env:VectorEnv",
                max_episode_steps=known.max_episode_steps,
                kwargs={"env_id": env_id},
            )
