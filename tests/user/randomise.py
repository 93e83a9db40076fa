"""Environments that differ: everything in stiction.randomisation at once, the same for the same seed."""

import numpy as np
import stiction
from stiction.randomisation import Bias, Force, Gains, Latency, Noise, Parameter, Push

terms = [
    Parameter("body_mass", 0.8, 1.2, distribution="normal"),
    Parameter("body_inertia", 0.8, 1.25, distribution="log_uniform"),
    Parameter("geom_friction", 0.5, 1.25, operation="set", columns=0),
    Parameter("body_ipos", -0.02, 0.02, operation="add", each=True),
    Parameter("body_pos", 0.98, 1.02, each=True),
    Gains(0.9, 1.1),
    Push(0.5, every=(0.1, 0.5)),
    Force(20.0, every=(0.1, 0.5)),
    Latency(0, 2),
    Bias({"joint_position": 0.02}),
    Noise({"joint_position": 0.01, "joint_velocity": 0.5}),
]


actions = np.random.default_rng(0).uniform(-1, 1, (30, 8, 12)).astype(np.float32)


def walk(randomize):
    envs = stiction.make_vec("stiction/QuadrupedVelocity-v0", 8, randomize=randomize, num_threads=1)
    envs.reset(seed=0)
    return np.array([envs.step(action)[0] for action in actions])


first = walk(terms)
np.testing.assert_array_equal(first, walk(terms))
for number in range(len(terms)):
    assert (walk(terms[:number] + terms[number + 1 :]) != first).any(), terms[number]
