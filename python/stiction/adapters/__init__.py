"""Faces of a `stiction.VectorEnv` for trainers: one module per library, imported when it is asked for.

    envs = stiction.make_vec("stiction/Ant-v0", 1024)
    stiction.adapters.rsl_rl.VecEnv(envs)      # rsl_rl's runners
    stiction.adapters.sb3.VecEnv(envs)         # Stable-Baselines3
    stiction.adapters.skrl.Env(envs)           # skrl's trainers
    stiction.adapters.isaaclab.Env(envs)       # what reads Isaac Lab's direct environments

They need the default ``autoreset_mode="SameStep"``, and either backend. Ray RLlib needs no adapter; README.md beside
this file shows each in use.
"""

from importlib import import_module

#: Module -> what it imports, and how that is installed.
_LIBRARIES = {
    "isaaclab": ("torch", "torch"),
    "rsl_rl": ("rsl_rl", "rsl-rl-lib"),
    "sb3": ("stable_baselines3", "stable-baselines3"),
    "skrl": ("skrl", "skrl"),
}

__all__ = list(_LIBRARIES)


def __dir__() -> list[str]:
    return __all__


def __getattr__(name):
    if name not in _LIBRARIES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'; there are: {', '.join(_LIBRARIES)}")
    library, package = _LIBRARIES[name]
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in (library, "torch"):
            raise
        package = package if missing == library else missing
        raise ImportError(f"stiction.adapters.{name} needs {missing}: pip install {package}") from error
