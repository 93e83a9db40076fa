"""A task of one's own: a two-link arm in a plane brings its tip to a target.

stiction train examples/reach.py:Reach --samples 4e5
"""

import numpy as np
import stiction

ARM = """
<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <default><joint type="hinge" axis="0 0 1" damping="0.05" armature="0.01"/><geom size="0.02" mass="0.1"/></default>
  <worldbody>
    <body name="upper"><joint name="shoulder"/><geom type="capsule" fromto="0 0 0 0.3 0 0"/>
      <body name="lower" pos="0.3 0 0"><joint name="elbow"/><geom type="capsule" fromto="0 0 0 0.3 0 0"/>
        <site name="tip" pos="0.3 0 0"/></body></body>
  </worldbody>
  <actuator><motor joint="shoulder" ctrlrange="-0.5 0.5"/><motor joint="elbow" ctrlrange="-0.5 0.5"/></actuator>
</mujoco>"""


class Reach(stiction.Task):
    model, substeps, max_episode_steps = ARM, 2, 100

    def setup(self):
        self.target = np.zeros((self.num_envs, 2))

    def reset(self, envs, random):
        self.sim.qpos[envs] = random.uniform(-np.pi, np.pi, shape=2)
        radius, angle = random.uniform(0.2, 0.55), random.uniform(-np.pi, np.pi)
        self.target[envs] = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)

    def away(self):
        return self.target - self.sensors.site_pose("tip")[0][:, :2]

    def observe(self):
        angles, rates = self.sensors.joint_state(["shoulder", "elbow"])
        return np.concatenate([np.cos(angles), np.sin(angles), 0.1 * rates, self.target, self.away()], axis=1)

    def reward(self, action):
        distance = np.linalg.norm(self.away(), axis=1)
        return {"near": np.exp(-10 * distance), "effort": -0.01 * np.square(action).sum(axis=1)}

    def report(self):
        return {"distance": np.linalg.norm(self.away(), axis=1)}
