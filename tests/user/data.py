"""What people penalise: forces, torques, accelerations, matrices, contacts by pairs, and the sensors of a file."""

import numpy as np
import stiction

FILE = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="0 0 1"/>
<body name="base" pos="0 0 0.5"><freejoint/>
<geom name="box" type="box" size="0.1 0.1 0.5" mass="2"/><site name="imu"/>
<body name="arm" pos="0.2 0 0"><joint name="elbow" axis="0 1 0"/>
<geom size="0.03" mass="0.1"/></body></body></worldbody>
<actuator><position name="servo" joint="elbow" kp="5"/></actuator>
<sensor><gyro name="rates" site="imu"/>
<actuatorfrc name="pull" actuator="servo"/><rangefinder name="range" site="imu"/>
</sensor></mujoco>"""

model = stiction.Model.from_mjcf(FILE)
assert any("range" in line and "not" in line for line in model.import_report), model.import_report
sim, sensors = stiction.Simulation(model, 4), None
sensors = stiction.Sensors(sim)
acceleration = sensors.acceleration(["elbow"])
sim.ctrl[:] = 0.3
for _ in range(200):
    sim.step()
    sensors.advance(sim.timestep)
np.testing.assert_allclose(sensors.contact_force("base", "world")[:, 0, 2], 2.1 * 9.81, rtol=1e-3)
assert (sensors.contact_count("base", "world") >= 3).all()
assert (
    sensors.actuator_force("servo").shape == sensors.joint_torque("elbow").shape == acceleration.value.shape == (4, 1)
)
np.testing.assert_array_equal(sensors.named("pull"), sensors.actuator_force("servo"))
assert sensors.named("rates").shape == (4, 3) and "range" not in sensors.names
assert sensors.geom_pose("box")[0].shape == (4, 3) and sensors.subtree_com("arm").shape == (4, 3)
mass, bias = sim.mass_matrix(dtype=np.float64), sim.bias(dtype=np.float64)
assert mass.shape == (4, 7, 7) and bias.shape == (4, 7) and mass.dtype == bias.dtype == np.float64


class Gentle(stiction.Task):
    """A built-in task with a term, an observation and an end of one's own."""

    base = "stiction/QuadrupedVelocity-v0"
    effort = 0.001

    def reward(self, action):
        return {"effort": -self.effort * np.square(self.sensors.actuator_force()).sum(1)}

    def observe(self):
        return {"height": self.sim.qpos[:, 2]}

    def terminate(self):
        return self.sim.qpos[:, 2] < 0.2


envs = stiction.make_vec(Gentle, 4, effort=0.01)
envs.reset(seed=0)
*_, infos = envs.step(envs.action_space.sample())
assert envs.observation_names[-1] == "height" and (infos["reward_effort"] < 0).all()
