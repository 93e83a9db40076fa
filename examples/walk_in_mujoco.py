"""A trained walking policy in MuJoCo itself, without stiction: by policy.onnx and the names in policy.json.

python walk_in_mujoco.py unitree_go1/scene.xml runs/go1 --command 0.5 0 0 --video go1.mp4
"""

import argparse
import json
from pathlib import Path

import mujoco
import numpy as np
import onnxruntime


class Walker:
    def __init__(self, scene, run):
        said = json.loads((run / "policy.json").read_text())
        self.model = mujoco.MjModel.from_xml_path(str(scene))
        self.data = mujoco.MjData(self.model)
        self.signals, self.actions = next(iter(said["observations"].values())), said["actions"]
        self.session = onnxruntime.InferenceSession(run / "policy.onnx")
        self.steps = round(said["step_dt"] / self.model.opt.timestep)
        driven = {self.model.joint(of).name: a for a, (of, _) in enumerate(self.model.actuator_trnid)}
        self.motors = [driven[action["name"].split("/")[1]] for action in self.actions]
        self.last = dict.fromkeys([f"last_action/{action['name'].split('/')[1]}" for action in self.actions], 0.0)
        if self.model.nkey:
            mujoco.mj_resetDataKeyframe(self.model, self.data, 0)

    def quantities(self, command):
        """Each by its name in policy.json. In qvel the trunk's velocity has the world's axes, its rate its own."""
        turn, gravity, velocity = np.zeros(9), np.zeros(3), np.zeros(3)
        mujoco.mju_quat2Mat(turn, self.data.qpos[3:7])
        mujoco.mju_mulMatTVec(gravity, turn.reshape(3, 3), np.array([0.0, 0, -1]))
        mujoco.mju_mulMatTVec(velocity, turn.reshape(3, 3), self.data.qvel[:3])
        known = dict(self.last)
        for term, values in (
            ("linear_velocity", velocity),
            ("angular_velocity", self.data.qvel[3:6]),
            ("gravity", gravity),
        ):
            known |= {f"{term}/{axis}": value for axis, value in zip("xyz", values, strict=True)}
        known |= {f"command/{axis}": value for axis, value in zip(("x", "y", "yaw"), command, strict=True)}
        for joint in map(self.model.joint, range(1, self.model.njnt)):
            known[f"joint_position/{joint.name}"] = self.data.qpos[joint.qposadr[0]]
            known[f"joint_velocity/{joint.name}"] = self.data.qvel[joint.dofadr[0]]
        return known

    def step(self, command):
        known = self.quantities(command)
        seen = [
            np.clip(s.get("scale", 1) * (known[s["name"]] - s.get("offset", 0)), s.get("low"), s.get("high"))
            for s in self.signals
        ]
        (action,) = self.session.run(None, {"observation": np.array([seen], np.float32)})[0]
        for number, said, motor in zip(action.tolist(), self.actions, self.motors, strict=True):
            self.last[f"last_action/{said['name'].split('/')[1]}"] = number
            self.data.ctrl[motor] = said.get("offset", 0) + said.get("scale", 1) * number
        mujoco.mj_step(self.model, self.data, self.steps)
        return self.quantities(command)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("--command", type=float, nargs=3, default=(0.5, 0, 0), help="x, y, yaw: m/s, m/s, rad/s")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--video", type=Path)
    asked = parser.parse_args()

    walker, told, frames = Walker(asked.scene, asked.run), [], []
    renderer = mujoco.Renderer(walker.model, 480, 480) if asked.video else None
    period = walker.steps * walker.model.opt.timestep
    for _ in range(round(asked.seconds / period)):
        told.append(walker.step(asked.command))
        if renderer:
            camera = mujoco.MjvCamera()
            camera.lookat, camera.distance, camera.elevation = walker.data.qpos[:3], 2, -15
            renderer.update_scene(walker.data, camera)
            frames.append(renderer.render().copy())
    away = [
        np.hypot(now["linear_velocity/x"] - asked.command[0], now["linear_velocity/y"] - asked.command[1])
        for now in told
    ]
    how = "walked" if all(now["gravity/z"] < -0.5 for now in told) else "fell"
    print(f"{how}: velocity error {np.median(away):.2f} m/s, the median of {len(told)} steps")
    if renderer:
        import imageio

        imageio.mimwrite(asked.video, frames, fps=1 / period, macro_block_size=1)


if __name__ == "__main__":
    main()
