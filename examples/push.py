"""A manipulation task: a finger, moved in the plane by two motors, pushes a puck to a target.

stiction train examples/push.py:Push --samples 2e6 --set gamma=0.97
"""

import numpy as np
import stiction

SCENE = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <light pos="0 0 2" dir="0 0 -1" directional="true"/>
    <camera name="track" pos="0 -0.9 0.9" xyaxes="1 0 0 0 0.7 0.7"/>
    <geom name="table" type="plane" size="0.6 0.6 0.1" friction="0.4" rgba="0.8 0.8 0.75 1"/>
    <body name="puck" pos="0 0 0.03"><freejoint/>
      <geom type="cylinder" size="0.06 0.03" mass="0.3" rgba="0.9 0.5 0.1 1"/></body>
    <body name="finger" pos="0 0 0.04">
      <joint name="x" type="slide" axis="1 0 0" damping="4"/><joint name="y" type="slide" axis="0 1 0" damping="4"/>
      <geom type="sphere" size="0.03" mass="0.2" rgba="0.2 0.3 0.8 1"/>
    </body>
  </worldbody>
  <actuator><motor joint="x" ctrlrange="-3 3"/><motor joint="y" ctrlrange="-3 3"/></actuator>
</mujoco>"""


class Push(stiction.Task):
    model, substeps, max_episode_steps = SCENE, 4, 100
    units = {"puck": "m", "target": "m", "to_puck": "m", "to_target": "m", "velocity": "m/s"}
    pressing = 0.01  # what a newton between finger and puck costs
    within = 0.03

    def setup(self):
        self.target = np.zeros((self.num_envs, 2))

    def reset(self, envs, random):
        place, around = random.uniform(-0.15, 0.15, shape=2), random.uniform(-np.pi, np.pi)
        self.sim.qpos[envs, 0:2] = place
        self.sim.qpos[envs, 7:9] = place + 0.15 * np.stack([np.cos(around), np.sin(around)], axis=1)
        self.target[envs] = random.uniform(-0.3, 0.3, shape=2)

    def puck(self):
        return self.sim.qpos[:, 0:2]

    def finger(self):
        return self.sim.qpos[:, 7:9]

    def distance(self):
        return np.linalg.norm(self.target - self.puck(), axis=1)

    def observe(self):
        return {
            "puck": self.puck(),
            "target": self.target,
            "to_puck": self.puck() - self.finger(),
            "to_target": self.target - self.puck(),
            "velocity": self.sim.qvel[:, [0, 1, 6, 7]],
        }

    def reward(self, action):
        """Near the target; at first for a finger behind the puck, as seen from the target; little force."""
        forward = (self.target - self.puck()) / (self.distance()[:, None] + 1e-3)
        behind = np.linalg.norm(self.puck() - 0.09 * forward - self.finger(), axis=1)
        force = np.linalg.norm(self.sensors.contact_force("puck", "finger")[:, 0], axis=1)
        return {
            "near": np.exp(-8 * self.distance()),
            "behind": 0.3 * np.exp(-8 * behind),
            "pressing": -self.pressing * force.clip(0, 10),
        }

    def report(self):
        return {"distance": self.distance(), "arrived": self.distance() < self.within}

    def markers(self, env):
        return [stiction.Marker((*self.target[env], 0.0), color=(0.1, 0.8, 0.2, 0.6), size=0.03)]
