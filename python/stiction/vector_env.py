"""stiction.make_vec: environments for reinforcement learning, as one `gymnasium.vector.VectorEnv`.

A step is one call into compiled code; Python touches the batch as a whole. What `reset` and `step` return is new memory
at every call, never overwritten later. With ``backend="torch"`` the same memory comes as tensors.
"""

from __future__ import annotations

import numpy as np
from gymnasium import error, vector
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import env_state
from .backend import as_numpy
from .custom_task import Task, is_task
from .env_checks import checked_actions, checked_backend, checked_limit, checked_mask, checked_mode, checked_seeds
from .env_core import EnvCore, can_render, checked_render_mode
from .goals import GoalGroups, groups_of
from .picture import task_markers
from .randomisation import Parameter, Randomiser, flattened, require_shared_sites
from .registration import plain_id
from .signals import interface, names_of
from .task_core import task_core


def make_vec(
    env_id: str | type[Task],
    num_envs: int = 1,
    *,
    device: str = "auto",
    backend: str = "numpy",
    autoreset_mode: str | AutoresetMode = "SameStep",
    render_mode: str | None = None,
    max_episode_steps: int | None = None,
    task: dict | None = None,
    randomize=None,
    observations=None,
    **simulation,
) -> VectorEnv:
    """``num_envs`` environments of an id such as ``"stiction/Ant-v0"``, or of a `stiction.Task`, stepped together.

    Parameters
    ----------
    device: "auto" and "cpu" are the CPU; "cuda" or "cuda:1" a GPU, where there is one and a CUDA build.
    backend: "numpy", or "torch" for tensors, which are on the device; there `step` of an id does not wait for a GPU.
    autoreset_mode: "SameStep" (an ended environment is reset at once; ``infos["final_obs"]`` and ``["final_info"]``
        keep its end), "NextStep" (the next step resets it and ignores its action) or "Disabled" (call ``reset`` with
        ``options={"reset_mask": mask}``), as in Gymnasium.
    render_mode: "rgb_array" for `VectorEnv.render`, with ``width`` and ``height`` in pixels and ``camera``, one of the
        model's: by default "track", or one that follows.
    max_episode_steps: control steps until truncation; None is the id's, -1 no limit.
    task: parameters of the task that are not its defaults, ``{"ctrl_cost_weight": 0.1, "healthy_z_range": (0.3, 1)}``:
        `VectorEnv.task_parameters` has them all. As keywords too, as in Gymnasium: ``ctrl_cost_weight=0.1``.
    randomize: what differs from environment to environment: a list of `stiction.randomisation`'s `Parameter`, `Gains`,
        `Push`, `Force`, `Latency`, `Noise` and `Bias`.
    observations: groups of observations by name, ``{"policy": Group("gravity", history=3), "critic": ("*",)}``, of
        `stiction.Group` or names of terms (`VectorEnv.observation_signals` has those there are); then observations are
        dictionaries. "goal" or a `stiction.Goal`: "observation", "achieved_goal" and "desired_goal", and rewards by
        `VectorEnv.compute_reward`. None: one array of all, or the groups that a `stiction.Task` has.
    simulation: options of `stiction.Simulation`: dtype, solver, integrator, num_threads, ... ``dtype`` is also that of
        observations, rewards and actions: float32 by default. The rate of control follows ``timestep``: a task makes
        a fixed number of time steps per action, so with half the time step actions come twice as often (`step_dt`),
        and an episode of as many steps is half as long.

    Other Parameters
    ----------------
    model: a `stiction.Model` or an MJCF file instead of the task's own: a variant of it with as many coordinates,
        bodies and motors, or, for tasks on any robot (``"stiction/QuadrupedVelocity-v0"``), any robot and a floor.
    names: of tasks on any robot, what the model calls its parts. A walking robot's: ``{"feet": ("FL", "FR", "RL",
        "RR")}``, geoms or bodies; if need be ``"trunk"`` (bodies whose touch ends the episode), ``"undesired"`` (bodies
        that should touch nothing), ``"joints"`` (in the order of actions) and ``"keyframe"`` (the standing pose). An
        arm's: ``"grasp"``, ``"arm"``, ``"gripper"``, ``"fingers"``, ``"cubes"``, ``"keyframe"``. A hand's:
        ``"fingertips"``, ``"joints"``, ``"cube"``, ``"keyframe"``. See the docs' list of tasks.
    """
    return VectorEnv(
        num_envs=num_envs,
        env_id=env_id,
        device=device,
        backend=backend,
        autoreset_mode=autoreset_mode,
        render_mode=render_mode,
        max_episode_steps=max_episode_steps,
        task=task,
        randomize=randomize,
        observations=observations,
        **simulation,
    )


class VectorEnv(vector.VectorEnv):
    """A ``gymnasium.vector.VectorEnv``, made by `make_vec` or ``gymnasium.make_vec``.

    ``infos`` has an array (num_envs,) for each quantity and a mask ``_name`` of the environments it is meant for: in
    `step` positions, velocities and every term of the reward; ``status``: bits of `stiction.Status` (those that an
    episode ended with are in ``final_info``). `simulation` is the batch itself: its state may be read and written
    between two calls. `episode_length` is writable.

    Environment i of a batch seeded ``s`` moves exactly as a batch of one seeded ``s + i``.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        env_id: str | type[Task] = "stiction/Ant-v0",
        device: str = "auto",
        backend: str = "numpy",
        autoreset_mode: str | AutoresetMode = "SameStep",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        randomize=None,
        observations=None,
        **simulation,
    ):
        self.closed, env_id = True, plain_id(env_id)  # closed until all is there
        self._made = {"num_envs": num_envs, "env_id": env_id, "device": device, "backend": backend}
        self._made |= {"autoreset_mode": autoreset_mode, "render_mode": render_mode, "randomize": randomize}
        self._made |= {"max_episode_steps": max_episode_steps, "observations": observations, **simulation}
        backend, mode = checked_backend(backend), checked_mode(autoreset_mode)
        self.render_mode = checked_render_mode(render_mode)
        limit = 0 if max_episode_steps is None else checked_limit(max_episode_steps)
        terms = [] if randomize is None else flattened(randomize)
        own = [term.name for term in terms if isinstance(term, Parameter)]
        if own:
            simulation["per_env"] = tuple(dict.fromkeys([*simulation.get("per_env", ()), *own]))
        core = task_core if is_task(env_id) else EnvCore
        self._core = core(env_id, num_envs, mode.value, limit, device, backend, simulation)
        self._core.require_camera()
        require_shared_sites(terms, self._core.sites)
        self._env_id = env_id.__name__ if is_task(env_id) else env_id
        self._task, self._batch, self._backend = self._core.task, self._core.batch, self._core.backend
        self._names = self._task.report_names
        self._mode = mode
        self.num_envs = self._core.simulation.num_envs
        self.metadata = self._core.metadata() | {"autoreset_mode": mode}
        given = getattr(self._core, "groups", None) if observations is None else observations
        known = self._core.observation_signals, self._names[: self._task.reset_reports], self._core.simulation
        self._groups = groups_of(given, env_id, *known, self._backend, self._task.parameters)
        if isinstance(self._groups, GoalGroups) and mode is AutoresetMode.NEXT_STEP:
            raise ValueError("observations with a goal need autoreset_mode 'SameStep' or 'Disabled'")
        flat = self._core.observation_space
        self.single_observation_space = self._groups.space(flat.dtype) if self._groups else flat
        self.single_action_space = self._core.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._random = self._randomiser(terms) if terms else None
        self._all_told = self._backend.array(np.ones((len(self._names) + 1, self.num_envs), bool))  # masks of infos
        self._seeds: tuple[int | None, ...] = (None,) * self.num_envs
        self._started, self._reports = False, None
        self.closed = False

    @property
    def simulation(self):
        """The `stiction.Simulation` underneath."""
        return self._core.simulation

    @property
    def env_id(self) -> str:
        return self._env_id

    @property
    def reward_names(self) -> tuple[str, ...]:
        """The terms that add up to the reward, as ``infos`` names them."""
        return tuple(name for name in self._names if name.startswith("reward_"))

    @property
    def observation_signals(self):
        """What each number of an observation is: `stiction.signals.Signal`s in order; with groups by the group."""
        return self._groups.signals if self._groups else self._core.observation_signals

    @property
    def action_signals(self):
        """What each number of an action is, with the present parameters of the task."""
        return self._core.action_signals

    @property
    def observation_names(self):
        """Their names, such as "joint_velocity/knee"; with groups a dictionary."""
        signals = self.observation_signals
        return {g: names_of(of) for g, of in signals.items()} if self._groups else names_of(signals)

    @property
    def action_names(self) -> tuple[str, ...]:
        return names_of(self.action_signals)

    def interface(self) -> dict:
        """All that a policy has to know of observations and actions, for JSON; `stiction train` writes it beside the
        exported policy."""
        return interface(self)

    @property
    def max_episode_steps(self) -> int | None:
        """Control steps until truncation; None without limit."""
        steps = self._task.max_episode_steps
        return steps if steps > 0 else None

    @property
    def episode_length(self) -> np.ndarray:
        """Control steps since each environment's reset (num_envs,): a view; what is written decides on truncation."""
        return self._task.elapsed

    @property
    def task_parameters(self) -> dict:
        """The task's weights (numbers), ranges (low, high) and switches (bool) by name: a copy."""
        return self._task.parameters()

    def set_task_parameters(self, **parameters) -> None:
        """Changes some of them, from the next call on: ``envs.set_task_parameters(ctrl_cost_weight=0.1)``."""
        self._core.set_parameters(parameters)

    @property
    def device(self) -> str:
        """Where environments are: "cpu", or "cuda:0" with the number of the GPU."""
        return self._core.simulation.device

    @property
    def data_device(self) -> str:
        """Where what `reset` and `step` return lies: `device` for tensors, "cpu" for NumPy's arrays."""
        return self.device if self._backend.tells_tensors else "cpu"

    @property
    def step_dt(self) -> float:
        """Seconds between two actions."""
        return self._core.period

    @property
    def dt(self) -> float:
        """`step_dt`, by the name that Gymnasium's MuJoCo environments have for it."""
        return self.step_dt

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:
        """The seed of each environment; None where it was never given."""
        return self._seeds

    # ---- Gymnasium's calls

    def reset(self, *, seed: int | list[int | None] | None = None, options: dict | None = None):
        """New episodes, of all or of ``options["reset_mask"]``; (observations, infos).

        ``seed``: an int s seeds environment i with s + i; a list gives each its own (None leaves it as it is).
        """
        self._open()
        seeds, seeded = self._checked_seeds(seed)
        mask = checked_mask(options, self.num_envs, self._backend.tells_tensors)
        if mask is None and not self._started:
            self._started = True
        elif not self._started:
            raise error.ResetNeeded("reset all environments once before resetting some of them")
        observations, reports, status = self._batch.reset(seeds, seeded, mask)
        began = self._batch.began()
        if seeds is not None:
            chosen = seeded if mask is None else seeded & mask
            self._note_seeds(seeds, chosen)
            if self._random is not None:
                self._random.seed(seeds, chosen)
        self._reports, count = reports, self._task.reset_reports
        observations = self._shown(observations, reports, began, stepped=False)
        infos = self._infos(reports[:count], status * began, self._backend.repeated(began, count + 1))
        return self._backend.answer((observations, infos))

    def step(self, actions):
        """(observations, rewards, terminations, truncations, infos) after one control step."""
        self._open()
        if not self._started:
            raise error.ResetNeeded("call reset before step")
        actions = self._checked_actions(actions)
        if self._random is not None:
            actions = self._random.act(actions)
        observations, rewards, terminated, truncated, reports, status = self._batch.step(actions)
        began, told = self._batch.began(), self._backend.copy(self._all_told)
        told[self._task.reset_reports : -1] = ~began
        self._reports, infos = reports, self._infos(reports, status, told)
        if self._random is not None:
            self._random.advance()
        if self._mode is AutoresetMode.SAME_STEP and (self._backend.tells_tensors or self._batch.any_ended):
            self._add_final(infos)
        observations = self._shown(observations, reports, began, stepped=True)
        if self._groups:
            rewards = self._groups.rewarded(rewards)
        return self._backend.answer((observations, rewards, terminated, truncated, infos))

    def compute_reward(self, achieved_goal, desired_goal, info=None):
        """Of observations with a goal: 0 where goals (..., k) are near enough, else -1 (...,); see goals.py."""
        if not isinstance(self._groups, GoalGroups):
            raise ValueError("compute_reward is of environments made with observations='goal' or a stiction.Goal")
        return self._groups.compute_reward(achieved_goal, desired_goal)

    def get_state(self, envs=None) -> dict:
        """Copies of all that later steps depend on, by name: simulation, seeds, episodes and memory (env_state.py).

        After `set_state` the same actions give the same bits. Of a `stiction.Task` the memory is what its attributes
        have in numbers, arrays and containers of such; a warning names what else they have. Environments can be pickled
        and deep-copied too. ``envs``: the rows of these alone, in their order: indices, a mask or a slice.
        """
        self._open()
        return env_state.get_state(self, None if envs is None else self.simulation._numbers(envs))

    def set_state(self, state: dict, envs=None) -> None:
        """Puts a state of `get_state` back, of environments of the same task. The next call is `step`.

        ``envs``: into these alone, rows in their order: indices, a mask or a slice; the state has as many rows, or one
        for all of them. What a `stiction.Task` keeps for all environments together has no rows and stays.
        """
        self._open()
        if not (self._started or envs is None):
            raise error.ResetNeeded("reset all environments once before putting states into some of them")
        env_state.set_state(self, state, None if envs is None else self.simulation._numbers(envs))
        self._started = True

    def copy_env(self, source: int, envs) -> None:
        """Makes environments (mask, indices or slice) copies of another, with all that a state has."""
        self.set_state(self.get_state([self.simulation._environment(source, "source")]), envs)

    def __repr__(self) -> str:
        told = f"num_envs={self.num_envs}, backend={self._made['backend']!r}, device={self.device!r}"
        return f"stiction.VectorEnv({getattr(self, '_env_id', None)!r}, {'closed' if self.closed else told})"

    def __reduce__(self):
        self._open()
        return env_state.pickled(self)

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A picture (height, width, 3) of every environment; None, with a warning, without a render mode."""
        self._open()
        return tuple(map(self.picture, range(self.num_envs))) if can_render(self.render_mode) else None

    def picture(self, env: int = 0) -> np.ndarray:
        """A picture (height, width, 3) of one, with its goal or command; see picture.py."""
        self._open()
        return self._core.frame(env, self._reported(env))

    def markers(self, env: int = 0) -> list:
        """The `stiction.Marker`s of its goal or command."""
        return [*task_markers(self._reported(env), self.simulation, env), *self._core.markers(env)]

    def _reported(self, env: int) -> dict:
        env = self.simulation._environment(env)
        if self._reports is None:
            return {}
        return dict(zip(self._names, as_numpy(self._reports[:, env]).tolist(), strict=True))

    def close_extras(self, **kwargs) -> None:
        self._core.close()

    # ---- what Gymnasium's own vector environments also have

    def call(self, name: str, *args, **kwargs) -> tuple:
        """The attribute or method ``name`` of this object, once for each environment."""
        if name == "render":
            return self.render()
        value = getattr(self, name)
        if callable(value):
            value = value(*args, **kwargs)
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple:
        """A task parameter or an attribute of this object, once for each environment."""
        parameters = self.task_parameters
        return (parameters[name],) * self.num_envs if name in parameters else self.call(name)

    def set_attr(self, name: str, values) -> None:
        """Sets a task parameter or an attribute of this object. Environments share it: a list must repeat one value."""
        if isinstance(values, (list, tuple)):
            if len(values) != self.num_envs:
                raise ValueError(f"values has {len(values)} entries, expected {self.num_envs}")
            if any(value != values[0] for value in values):
                raise ValueError(f"the environments share '{name}', so its values must be equal")
            values = values[0]
        if name in self.task_parameters:
            return self.set_task_parameters(**{name: values})
        return setattr(self, name, values)

    # ---- inside

    def _randomiser(self, terms) -> Randomiser:
        kind = Randomiser
        if self._backend.tensors:
            from .tensor_randomiser import TensorRandomiser as kind
        signals, actions = self._core.observation_signals, self._task.actions
        return kind(terms, self._core.simulation, self._core.period, signals, actions)

    def _shown(self, observations, reports, began, stepped: bool):
        """What is seen of ``observations``, once episodes that ``began`` (N,) have drawn their numbers."""
        clean = observations
        if self._random is not None:
            if self._random.begin(began):
                clean = self._backend.where(began[:, None], self._batch.begun_observations(), clean)
            observations = self._random.observe(clean)
        if self._groups:
            return self._groups.shown(clean, observations, reports, began, stepped)
        return observations

    def _infos(self, reports, status, told) -> dict:
        """Of reports (names, N) and status (N,), with the masks ``told`` (names + 1, N) of who they are meant for."""
        infos = {}
        for name, row, mask in zip(self._names, reports, told, strict=False):
            infos[name], infos[f"_{name}"] = row, mask
        infos["status"], infos["_status"] = status, told[-1]
        return infos

    def _add_final(self, infos: dict) -> None:
        """The ends of episodes that have ended in a step."""
        ended, where = self._batch.ended(), self._backend.where
        rows = clean = self._batch.final_observations()
        reports, status = self._batch.final_reports(), self._batch.final_status()
        if self._random is not None:  # it still counts the episode that has ended
            rows = self._random.observe(rows)
        if self._groups:
            rows = self._groups.last(clean, rows, reports)
        told = self._backend.repeated(ended, len(self._names) + 2)  # what is returned shares no memory
        infos["final_obs"], infos["_final_obs"] = self._backend.final(rows, ended), ended
        infos["final_info"] = self._infos(where(ended, reports, 0), where(ended, status, 0), told[:-1])
        infos["_final_info"] = told[-1]

    def _open(self) -> None:
        if self.closed:
            raise error.ClosedEnvironmentError("this environment is closed")

    def _checked_actions(self, actions):
        given = checked_actions(self._backend.numbers("actions", actions), (self.num_envs, self._task.actions))
        return self._backend.cast(given)

    def _checked_seeds(self, seed):
        """(seeds, seeded), each (num_envs,), or Nones."""
        if seed is None:
            return None, None
        given = checked_seeds(seed, self.num_envs)
        if isinstance(given, range):
            self._np_random, self._np_random_seed = seeding.np_random(given[0])
        seeded = np.array([s is not None for s in given])
        return np.array([(s or 0) % 2**64 for s in given], np.uint64), seeded

    def _note_seeds(self, seeds: np.ndarray, seeded: np.ndarray) -> None:
        pairs = zip(self._seeds, seeds.tolist(), seeded.tolist(), strict=True)
        self._seeds = tuple(new if given else old for old, new, given in pairs)
