"""An arm that is moved by hand: inverse kinematics to places over a table, and the actions that pass through them."""

import mujoco
import numpy as np


class ArmScript:
    """Moves the arms of an arm task's environments; the gripper points down all the time.

    ``arm``: the names of its joints, ``grasp``: of its site. Targets are (num_envs, 3) m and yaws (num_envs,) rad.
    """

    def __init__(self, env, arm, grasp="grasp", scale=0.5):
        self.env, self.model = env, env.simulation.model.mjmodel
        self.scale, self.site = scale, self.model.site(grasp).id
        joints = [self.model.joint(name) for name in arm]
        self.qpos = np.array([joint.qposadr[0] for joint in joints])
        self.dof = np.array([joint.dofadr[0] for joint in joints])
        self.range = np.array([joint.range for joint in joints])
        self.data = mujoco.MjData(self.model)
        self.home = self.model.key_qpos[0, self.qpos]
        self.angles = np.tile(self.home, (env.num_envs, 1))  # where the arms are sent
        self._place(self.home)
        self.down = self.data.site_xmat[self.site].reshape(3, 3).copy()
        self.results = None

    def _place(self, angles):
        self.data.qpos[self.qpos] = angles
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)

    def solved(self, target, yaw, angles):
        """Joint angles that bring the grasp point to a target, from those nearby."""
        c, s = np.cos(yaw), np.sin(yaw)
        wanted = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ self.down
        jacobian = np.zeros((6, self.model.nv))
        for _ in range(60):
            self._place(angles)
            axes = self.data.site_xmat[self.site].reshape(3, 3)
            turn = sum(np.cross(axes[:, i], wanted[:, i]) for i in range(3)) / 2
            error = np.concatenate([target - self.data.site_xpos[self.site], turn])
            if np.abs(error).max() < 1e-9:
                break
            mujoco.mj_jacSite(self.model, self.data, jacobian[:3], jacobian[3:], self.site)
            J = jacobian[:, self.dof]
            step = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
            angles = np.clip(angles + step, *self.range.T)
        assert np.abs(error).max() < 1e-5, f"{target} is out of reach"
        return angles

    def move(self, targets, yaws, gripper, steps, seen=None):
        """A smooth move in joint space in 0.7 of ``steps``, then still. ``seen(script)`` is called after every step."""
        start = self.angles
        ends = np.stack([self.solved(*place) for place in zip(targets, yaws, start, strict=True)])
        for t in range(1, steps + 1):
            part = min(1, t / (0.7 * steps))
            part *= part * (3 - 2 * part)
            self.angles = start + part * (ends - start)
            joints = (self.angles - self.home) / self.scale
            assert np.abs(joints).max() <= self.env.single_action_space.high[0]
            action = np.column_stack([joints, np.full(len(joints), gripper)])
            self.results = self.env.step(action.astype(self.env.single_action_space.dtype))
            if seen is not None:
                seen(self)

    @property
    def infos(self):
        return self.results[4]


def cube_yaw(pose):
    """The heading of cubes that lie flat, (num_envs, 7) -> (num_envs,) in +-pi/4."""
    yaw = 2 * np.arctan2(pose[:, 6], pose[:, 3])
    return (yaw + np.pi / 4) % (np.pi / 2) - np.pi / 4
