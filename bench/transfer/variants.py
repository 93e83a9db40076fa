"""Variants of an environment here, which `bench.transfer` plays a policy in and `bench.learning` trains one in."""

from __future__ import annotations

from collections.abc import Callable

import stiction
from stiction.registration import ENVIRONMENTS, asset_path

STIFFNESS, RELAXATION = 1e3, 0.04  # N/m, s: a floor that yields by centimetres to the legs of Gymnasium's Ant


def compliant(env_id: str) -> stiction.Model:
    """The environment's model with a soft floor."""
    return stiction.Model.from_mjcf(asset_path(ENVIRONMENTS[env_id].asset)).with_material(
        STIFFNESS, RELAXATION, geoms="floor"
    )


def here(env_id: str) -> dict[str, Callable[[], dict]]:
    """Variants of the environment here: name -> options of `stiction.make_vec`."""
    return {
        "stiction": dict,
        "double": lambda: {"dtype": "float64"},
        "implicit integrator": lambda: {"integrator": "implicit"},
        "PGS": lambda: {"solver": "pgs"},
        "compliant contact": lambda: {"model": compliant(env_id)},
        "convex law": lambda: {"solver": stiction.SolverOptions(law="convex")},
        "convex law, compliant contact": lambda: {
            "solver": stiction.SolverOptions(law="convex"),
            "model": compliant(env_id),
        },
    }
