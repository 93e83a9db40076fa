"""What the benches simulate: models as both engines load them, controls of fixed amplitude, where settling starts.

Files are the repository's, or those of Gymnasium and of MuJoCo's Menagerie in the data folder: ``STICTION_DATA``, else
``../shared/data`` beside the repository. A scene whose file is missing raises FileNotFoundError with the path.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HOLD = 5  # steps for which a control is held


def data_folder() -> Path:
    return Path(os.environ.get("STICTION_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True)
class Scene:
    """``files``: the first that exists, relative to the repository or the data folder. ``amplitude``: controls are
    uniform in home +- amplitude, clipped to their ranges; home is the first keyframe's control (0 where there is none).
    ``settle``: seconds of it before anything is measured. ``explores``: as a new policy acts, controls are normal with
    the amplitude as standard deviation, and MuJoCo starts from the states that these led to here."""

    name: str
    files: tuple[str, ...]
    amplitude: float
    settle: float
    explores: bool = False

    def mjmodel(self) -> mujoco.MjModel:
        """The compiled model with MuJoCo's Euler integrator; nothing else differs from the file."""
        if not self.files:
            model = mujoco.MjModel.from_xml_string(MADE[self.name]())
        else:
            paths = [folder / name for name in self.files for folder in (ROOT, data_folder())]
            found = next((path for path in paths if path.exists()), None)
            if found is None:
                raise FileNotFoundError(f"scene {self.name}: none of {', '.join(map(str, paths))} exists")
            model = mujoco.MjModel.from_xml_path(str(found))
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        return model


def _scene(name: str, bodies: str, actuators: str = "") -> str:
    return (
        f'<mujoco model="{name}"><option timestep="0.005"/><worldbody><geom type="plane" size="5 5 1"/>{bodies}'
        f"</worldbody><actuator>{actuators}</actuator></mujoco>"
    )


def _cube(at: tuple[float, float, float], half: float, mass: float, turned: str = "0 0 0") -> str:
    geom = f'<geom type="box" size="{half} {half} {half}" mass="{mass}"/>'
    return f'<body pos="{at[0]} {at[1]} {at[2]}" euler="{turned}"><freejoint/>{geom}</body>'


def ten_cubes() -> str:
    """Ten cubes of 10 cm and 1 kg on a plane: seven side by side, three on top of them."""
    places = [((i - 3) * 0.13, 0.0, 0.05) for i in range(7)] + [((i - 1) * 0.26, 0.0, 0.15) for i in range(3)]
    return _scene("ten cubes", "".join(_cube((x, y, z + 0.002), 0.05, 1) for x, y, z in places))


def heap() -> str:
    """27 cubes of 10 cm and 1 kg that fell on a plane, one on the other, and rest; alike in all environments."""
    places = [(0.13 * (i % 3), 0.13 * (i // 3 % 3), 0.1 + 0.12 * (i // 9)) for i in range(27)]
    return _scene("heap", "".join(_cube(at, 0.05, 1, f"{7 * i} {11 * i} 0") for i, at in enumerate(places)))


def tray() -> str:
    """30 cubes of 6 cm and 0.2 kg on a tray of 3 kg that is moved to and fro."""
    board = '<joint name="along" type="slide" axis="1 0 0"/><geom type="box" size="0.3 0.3 0.02" mass="3"/>'
    cubes = "".join(_cube((0.09 * (i % 6) - 0.22, 0.09 * (i // 6) - 0.18, 0.15), 0.03, 0.2) for i in range(30))
    servo = '<position joint="along" kp="5000" kv="300"/>'
    return _scene("tray", f'<body pos="0 0 0.1">{board}</body>{cubes}', servo)


def shaken() -> str:
    """27 cubes of 10 cm and 1 kg in a crate of 20 kg that is shaken: some are in the air, some lie, all move."""
    walls = "".join(
        f'<geom type="box" size="{x} {y} 0.3" pos="{px} {py} 0.3" mass="2"/>'
        for x, y, px, py in ((0.02, 0.4, 0.4, 0), (0.02, 0.4, -0.4, 0), (0.4, 0.02, 0, 0.4), (0.4, 0.02, 0, -0.4))
    )
    joints = "".join(f'<joint name="{n}" type="slide" axis="{a}"/>' for n, a in (("along", "1 0 0"), ("up", "0 0 1")))
    crate = f'<body pos="0 0 1">{joints}<geom type="box" size="0.4 0.4 0.02" mass="12"/>{walls}</body>'
    places = [(0.2 * (i % 3 - 1), 0.2 * (i // 3 % 3 - 1), 1.12 + 0.13 * (i // 9)) for i in range(27)]
    cubes = "".join(_cube(at, 0.05, 1, f"{7 * i} {11 * i} 0") for i, at in enumerate(places))
    servos = "".join(f'<position joint="{name}" kp="20000" kv="2000"/>' for name in ("along", "up"))
    return _scene("shaken", crate + cubes, servos)


MADE = {"ten_cubes": ten_cubes, "heap": heap, "tray": tray, "shaken": shaken}

_MENAGERIE = "mujoco_menagerie/"
_EXPLORERS = {name: (f"{_MENAGERIE}unitree_{name}/scene.physics.xml",) for name in ("go1", "a1")}
SCENES = {
    scene.name: scene
    for scene in (
        Scene("ant", ("envs/ant/ant.xml", "gymnasium/assets/ant.xml"), 0.1, 3.0),
        Scene("humanoid", ("gymnasium/assets/humanoid.xml",), 0.1, 2.0),
        Scene("anymal_c", (_MENAGERIE + "anybotics_anymal_c/scene_mjx.physics.xml",), 0.1, 1.0),
        Scene("go1", _EXPLORERS["go1"], 0.1, 1.0),
        Scene("half_cheetah", ("gymnasium/assets/half_cheetah.xml",), 0.1, 2.0),
        Scene("panda", (_MENAGERIE + "franka_emika_panda/scene.physics.xml",), 0.1, 0.5),
        Scene("ten_cubes", (), 0.0, 1.0),
        Scene("heap", (), 0.0, 2.0),
        Scene("tray", (), 0.02, 1.0),
        Scene("shaken", (), 0.1, 0.5, explores=True),
        Scene("stirred", ("bench/step/stirred.xml",), 2.0, 2.0, explores=True),
        Scene("biped", ("bench/step/biped.xml",), 0.03, 1.0),
        # Targets as a new policy of ArmLift gives them, and about those of HandReorient (parts of each joint's range).
        Scene("arm_lift", ("envs/arm/arm_lift.xml",), 0.5, 2.0, explores=True),
        Scene("hand", ("envs/hand/hand.xml",), 0.5, 1.0, explores=True),
        *(
            Scene(f"{name}_explores_{amplitude:g}", files, amplitude, 2.0, explores=True)
            for name, files in _EXPLORERS.items()
            for amplitude in (0.1, 0.3, 1.0)
        ),
    )
}


class Controls:
    """Random controls (num_envs, nu), the same for every engine that asks with the same seed and number."""

    def __init__(self, model: mujoco.MjModel, amplitude: float, num_envs: int, seed: int = 0, normal: bool = False):
        self.home = model.key_ctrl[0].copy() if model.nkey else np.zeros(model.nu)
        limited = model.actuator_ctrllimited.astype(bool)
        self.low = np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf)
        self.high = np.where(limited, model.actuator_ctrlrange[:, 1], np.inf)
        self.home = np.clip(self.home, self.low, self.high)
        self.amplitude, self.shape, self.normal = amplitude, (num_envs, model.nu), normal
        self._random = np.random.default_rng(seed)

    def next(self) -> np.ndarray:
        draw = self._random.normal if self.normal else self._random.uniform
        noise = draw(0.0 if self.normal else -self.amplitude, self.amplitude, self.shape)
        return np.clip(self.home + noise, self.low, self.high)


def start_qpos(model: mujoco.MjModel) -> np.ndarray:
    """The first keyframe, or qpos0 where there is none or it is all zeros."""
    key = model.key_qpos[0] if model.nkey else model.qpos0
    return (key if np.any(key) else model.qpos0).copy()


def option(text: str):
    """name=value of a SolverOptions field."""
    name, _, value = text.partition("=")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
