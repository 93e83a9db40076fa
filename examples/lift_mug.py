"""A built-in task with another thing: ArmLift's arm lifts a mug of the package's props, and keeps it upright.

stiction train examples/lift_mug.py:LiftMug --samples 1e7
"""

import mujoco
import numpy as np
import stiction
from stiction.registration import asset_path

ARM = (0, -0.0418, 0, -2.3343, 0, 2.2925, 0.7854)
OPEN = 0.04
MIDDLE = 0.05  # of the mug above the table, m


def scene() -> stiction.Model:
    """The arm, a mug before it, and the pose in which episodes begin."""
    spec = mujoco.MjSpec.from_file(str(asset_path("arm.xml")))
    mug = mujoco.MjSpec.from_file(str(stiction.prop_path("mug"))).body("mug")
    mug = spec.worldbody.add_frame(pos=(0.5, 0, MIDDLE)).attach_body(mug, "its_", "")
    for part in mug.geoms:  # a prop's origin is at its foot; the task leads the gripper to it, so it goes to the middle
        part.pos = (0, 0, -MIDDLE)
    spec.add_key(name="home", qpos=[*ARM, OPEN, OPEN, 0.5, 0, MIDDLE, 1, 0, 0, 0], ctrl=[*ARM, OPEN])
    return stiction.Model.from_mjmodel(spec.compile())


class LiftMug(stiction.Task):
    base = "stiction/ArmLift-v0"
    model, names = scene(), {"grasp": "grasp", "cubes": "its_mug"}
    upright_weight = 0.1

    def upright(self):
        """The cosine of the mug's tilt."""
        w, x, y, z = self.sensors.body_pose("its_mug")[1].T
        return 1 - 2 * (x * x + y * y)

    def reward(self, action):
        return {"upright": self.upright_weight * self.upright()}

    def report(self):
        return {"tilt": np.arccos(self.upright().clip(-1, 1))}
