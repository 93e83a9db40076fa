"""A batch for skrl's trainers, through skrl's wrapper of Isaac Lab environments."""

from __future__ import annotations

from skrl.envs.wrappers.torch import Wrapper, wrap_env

from . import isaaclab


class _Logged(isaaclab.Env):
    """skrl's trainers log what they find under "episode"."""

    def step(self, actions):
        *results, extras = super().step(actions)
        if "log" in extras:
            extras["episode"] = extras["log"]
        return *results, extras


def Env(envs, *, clip_actions: float | None = None) -> Wrapper:  # noqa: N802  (reads as the class it stands for)
    """``envs`` as skrl's environment, by ``wrap_env(..., wrapper="isaaclab-single-agent")``.

    A group ``"critic"`` of ``envs`` is skrl's state, what the value sees; other groups but ``"policy"`` are not used.
    Its first reset takes the seed that skrl was given (``skrl.utils.set_seed``). ``clip_actions`` bounds actions to
    ± itself.
    """
    return wrap_env(_Logged(envs, clip_actions=clip_actions), wrapper="isaaclab-single-agent", verbose=False)
