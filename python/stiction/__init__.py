"""Batched multibody simulation with accurate Coulomb contact.

Names are imported when first used, so that `import stiction` needs neither torch nor gymnasium and costs little.
"""

from importlib import import_module

from ._build import VERSION as __version__
from .gymnasium_import import register_when_imported

#: Public name -> the module of this package that defines it.
_NAMES = {
    "Admm": "solver_options",
    "Bisection": "solver_options",
    "Canal": "solver_options",
    "Cond": "solver_options",
    "ContactProblem": "contact_problem",
    "Goal": "goals",
    "Group": "observation_groups",
    "Marker": "picture",
    "Model": "model",
    "Pgs": "solver_options",
    "Sap": "solver_options",
    "Sensors": "sensors",
    "Simulation": "simulation",
    "Solution": "contact_solver",
    "SolverOptions": "solver_options",
    "Status": "status",
    "SubAdmm": "solver_options",
    "Task": "custom_task",
    "Video": "picture",
    "UnsupportedModelError": "model",
    "VectorEnv": "vector_env",
    "make_vec": "vector_env",
    "prop_names": "props",
    "prop_path": "props",
    "read_fclib": "fclib",
    "record": "picture",
    "register_envs": "registration",
    "solve": "contact_solver",
    "solve_contact_problem": "contact_solver",
    "solver_names": "solver_options",
}

#: Packages and modules reached as attributes.
_PACKAGES = ("adapters", "randomisation")

__all__ = ["__version__", *_NAMES, *_PACKAGES]


def __getattr__(name):
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'stiction' has no attribute '{name}'")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_NAMES) | set(_PACKAGES))


register_when_imported()  # gymnasium.make("stiction/Ant-v0") works once both are imported
