"""Snapshots, copies and pickles go on to the bit; what would hang or race is told."""

import copy
import pickle
import threading

import numpy as np
import stiction

envs = stiction.make_vec("stiction/QuadrupedVelocity-v0", 6, num_threads=1)
envs.reset(seed=0)
actions = np.random.default_rng(0).uniform(-1, 1, (20, *envs.action_space.shape)).astype(np.float32)
for action in actions[:10]:
    envs.step(action)


def rest(envs):
    return np.array([envs.step(action)[0] for action in actions[10:]])


others = copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))
kept = envs.get_state()
expected = rest(envs)
for other in others:
    np.testing.assert_array_equal(rest(other), expected)
envs.set_state(kept)
np.testing.assert_array_equal(rest(envs), expected)

sim = envs.simulation
sim.copy_env(2, [0, 5])
np.testing.assert_array_equal(sim.qpos[[0, 5]], sim.qpos[[2, 2]])
state = sim.get_state([1])
sim.set_state(state, envs=slice(None))
assert (sim.qpos == state.qpos).all()

big, told = stiction.Simulation(sim.model, 2048, num_threads=1), []


def step_often():
    """Until one of the two threads was told."""
    while not told:
        try:
            big.step(10)
        except RuntimeError as error:
            told.append(str(error))


both = [threading.Thread(target=step_often) for _ in range(2)]
for thread in both:
    thread.start()
for thread in both:
    thread.join()
assert "another thread is in a call of this simulation" in told[0]
