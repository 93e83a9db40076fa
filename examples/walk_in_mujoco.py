"""A trained walking policy in MuJoCo itself, without stiction: by policy.onnx and the names in policy.json.

python walk_in_mujoco.py unitree_go1/scene.xml runs/go1 --command 0.5 0 0 --video go1.mp4
python walk_in_mujoco.py runs/dog/model.mjb runs/dog      # of a URDF: with the servos and the floor that it got
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
        read = mujoco.MjModel.from_binary_path if scene.suffix == ".mjb" else mujoco.MjModel.from_xml_path
        self.model = read(str(scene))
        self.data = mujoco.MjData(self.model)
        groups, self.actions = said["observations"], said["actions"]
        self.signals = groups["policy"] if "policy" in groups else groups["observation"]
        self.places = [place_of(signal["name"]) for signal in self.signals]
        self.seen = []  # quantities of the last steps, as many as a history tells of
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

    def observation(self, command):
        """What the policy sees. As an episode begins, what came before is as now."""
        now, length = self.quantities(command), 1 + max(back for _, back in self.places)
        self.seen = [*self.seen[1:], now] if self.seen else [now] * length
        numbers = []
        for signal, (name, back) in zip(self.signals, self.places, strict=True):
            number = signal.get("scale", 1) * (self.seen[-1 - back][name] - signal.get("offset", 0))
            numbers.append(np.clip(number, signal.get("low"), signal.get("high")))
        return np.array([numbers], np.float32)

    def step(self, command):
        (action,) = self.session.run(None, {"observation": self.observation(command)})[0]
        for number, said, motor in zip(action.tolist(), self.actions, self.motors, strict=True):
            self.last[f"last_action/{said['name'].split('/')[1]}"] = number
            self.data.ctrl[motor] = said.get("offset", 0) + said.get("scale", 1) * number
        mujoco.mj_step(self.model, self.data, self.steps)
        return self.quantities(command)


def place_of(name):
    """The quantity and how many steps ago: ("gravity/x", 2) of "gravity/x[-2]"."""
    quantity, _, back = name.partition("[-")
    return quantity, int(back.rstrip("]") or 0)


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
