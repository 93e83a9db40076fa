"""Environments under random actions, and their contacts as MuJoCo would sum them: what the tests of tasks share."""

import mujoco
import numpy as np
import stiction


def make(name, num_envs=1, **options):
    options.setdefault("num_threads", 1)
    return stiction.make_vec(f"stiction/{name}-v0", num_envs, **options)


def random_walk(env, steps, amplitude=1.0, seed=0):
    """Yields (action, results) of random actions within ``amplitude`` times the action space, after a reset."""
    env.reset(seed=1)
    random, space = np.random.default_rng(seed), env.single_action_space
    for _ in range(steps):
        unit = random.uniform(-amplitude, amplitude, (env.num_envs, *space.shape))
        action = (unit * space.high).astype(space.dtype)
        yield action, env.step(action)


def contact_wrenches(simulation, data, env):
    """Torque about MuJoCo's centre of mass of the tree, and force, on each body, from the arrays of contacts.

    ``data``: of the environment's present positions (its subtree_com is read).
    """
    model, contact = simulation.model, simulation.contact
    root = simulation.model.mjmodel.body_rootid
    out = np.zeros((model.nbody, 6))
    for c in range(contact.count[env]):
        force = contact.frame[env, c].T @ contact.impulse[env, c] / simulation.timestep
        for geom, sign in zip(contact.geom[env, c], (-1, 1), strict=True):
            body = model.geom_bodyid[geom]
            if body:
                out[body, :3] += np.cross(contact.pos[env, c] - data.subtree_com[root[body]], sign * force)
                out[body, 3:] += sign * force
    return out


def forward(model, data, simulation, env, ctrl=None):
    """MuJoCo's derived quantities of one environment's present state."""
    data.qpos[:], data.qvel[:] = simulation.qpos[env], simulation.qvel[env]
    if ctrl is not None:
        data.ctrl[:] = ctrl
    mujoco.mj_forward(model, data)
