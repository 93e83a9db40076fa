"""`Simulation.dump` and `stiction replay`: one environment's last substep, kept in a file and solved again."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from .command_words import WORDS, values_of

_FORMAT = 3
_APPLIED = ("ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
_CERTIFICATE = (
    *(
        "r_dyn",
        "r_con",
        "r_split",
        "r_ccp",
        "r_mdp",
        "r_row",
        "r_cone",
        "penetration",
        "scale",
        "num_contacts",
        "iterations",
    ),
)


def write_dump(sim, env, path):
    """Everything that one substep of one environment depends on, and what came of it."""
    qpos, qvel, owed = (rows[env] for rows in sim._world.previous_states())
    meta = {
        "format": _FORMAT,
        "timestep": sim.timestep,
        "integrator": sim.integrator,
        "dtype": sim.dtype,
        "per_env": list(sim.per_env),
        "solver": asdict(sim.solver),
    }
    arrays = {f"model.{name}": np.asarray(value) for name, value in sim.model.to_arrays().items()}
    arrays |= {f"input.{name}": np.array(getattr(sim, name)[env]) for name in _APPLIED}
    arrays |= {f"params.{name}": np.array(getattr(sim.params, name)[env]) for name in sim.per_env}
    arrays |= {f"problem.{name}": value for name, value in sim.contact_problem(env).arrays().items()}
    arrays |= {f"certificate.{name}": np.array(getattr(sim.certificate, name)[env]) for name in _CERTIFICATE}
    arrays |= {
        "before.qpos": qpos,
        "before.qvel": qvel,
        "before.owed": owed,
        "after.qpos": sim.qpos[env],
        "after.qvel": sim.qvel[env],
    }
    with open(path, "wb") as file:
        np.savez_compressed(file, meta=np.array(json.dumps(meta)), **arrays)


def replay(path, dtype=None, solver=None, iterations=None, tolerance=None, knobs=None):
    """The simulation of a dump after its step, taken anew from a cold start, and the dump's arrays and meta data.

    ``knobs``: options of the solver by name.
    """
    from . import Model, Simulation
    from .model import plain_array
    from .solver_options import SolverOptions, solver_class

    if not Path(path).is_file():
        raise FileNotFoundError(f"no dump {path}: expected a file of Simulation.dump")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays["meta"]))
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is no dump of a simulation") from error
    if meta.get("format") != _FORMAT:
        raise ValueError(f"{path} has format {meta.get('format')}, expected {_FORMAT}")
    own = {name[6:]: value for name, value in arrays.items() if name.startswith("model.")}
    model = Model.from_arrays({name: plain_array(name, value) for name, value in own.items()})
    options = dict(meta["solver"])
    for name, value in (("name", solver), ("iterations", iterations), ("tolerance", tolerance)):
        if value is not None:
            options[name] = value
    same = options["name"] == meta["solver"]["name"]
    kind = solver_class(options["name"])
    has = {field.name for field in fields(kind if same else SolverOptions)}  # another solver has other knobs
    sim = Simulation(
        model,
        dtype=dtype or meta["dtype"],
        timestep=meta["timestep"],
        integrator=meta["integrator"],
        solver=kind(**{name: value for name, value in options.items() if name in has} | (knobs or {})),
        per_env=tuple(meta["per_env"]),
    )
    for name in meta["per_env"]:
        setattr(sim.params, name, arrays[f"params.{name}"][None])
    sim.qpos, sim.qvel = arrays["before.qpos"][None], arrays["before.qvel"][None]
    for name in _APPLIED:
        setattr(sim, name, arrays[f"input.{name}"][None])
    # What the substep before owed is an impulse like that of an applied force.
    sim.qfrc_applied += arrays.get("before.owed", np.zeros(model.nv)) / sim.timestep
    sim.step()
    return sim, arrays, meta


def add_arguments(parser):
    parser.add_argument("path", help="a file written by Simulation.dump")
    parser.add_argument("--dtype", choices=("float32", "float64"), help="that of the dump by default")
    parser.add_argument("--solver", help="that of the dump by default")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--tolerance", type=float)
    parser.add_argument("--solver-option", **WORDS, metavar="NAME=VALUE", dest="solver_options",
                        help="knobs of the solver: penalty=10")  # fmt: skip


def run(arguments):
    knobs = values_of("--solver-option", arguments.solver_options)
    sim, arrays, meta = replay(
        arguments.path, arguments.dtype, arguments.solver, arguments.iterations, arguments.tolerance, knobs
    )
    told = "(dump: worst of its call's steps; replay: the last, from a cold start)"
    print(f"{'':14}{'dump, ' + meta['dtype']:>16}{'replay, ' + sim.dtype:>18}   {told}")
    for name in _CERTIFICATE:
        if f"certificate.{name}" not in arrays:  # an older dump
            continue
        print(f"{name:14}{float(arrays['certificate.' + name]):16.4g}{float(getattr(sim.certificate, name)[0]):18.4g}")
    change = np.abs(sim.qvel[0] - arrays["after.qvel"]).max()
    print(f"largest difference of the new velocity: {change:.3g}")
    return 0
