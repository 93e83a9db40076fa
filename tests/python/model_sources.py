"""Where tests take models from: the named robots of the data folder, and small scenes as MJCF."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The data folder; tests on it skip without it.
DATA = Path(os.environ.get("STICTION_DATA", ROOT.parent / "shared" / "data"))
MENAGERIE = "mujoco_menagerie/"
ROBOTS = [
    *(f"gymnasium/assets/{name}.xml" for name in ("ant", "humanoid", "half_cheetah", "hopper", "walker2d_v5")),
    "mujoco/model/humanoid/humanoid.xml",
    MENAGERIE + "anybotics_anymal_b/scene.physics.xml",
    MENAGERIE + "anybotics_anymal_c/scene.physics.xml",
    MENAGERIE + "anybotics_anymal_c/scene_mjx.physics.xml",
    MENAGERIE + "unitree_a1/scene.physics.xml",
    MENAGERIE + "unitree_go1/scene.physics.xml",
    MENAGERIE + "wonik_allegro/scene_right.xml",
    MENAGERIE + "kuka_iiwa_14/scene.xml",
    MENAGERIE + "universal_robots_ur5e/scene.physics.xml",
    MENAGERIE + "franka_emika_panda/scene.physics.xml",
]


def data_file(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def body(inside, name="b"):
    return f'<body name="{name}"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>{inside}</body>'


def scene(world="", rest=""):
    return f"<mujoco><worldbody>{world}</worldbody>{rest}</mujoco>"


HINGE = scene(body('<joint name="j"/><site name="s" pos="1 0 0"/>') + '<site name="t"/>', "{}")
