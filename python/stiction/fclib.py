"""Files of FCLIB, a collection of discrete frictional contact problems (HDF5). Keys: docs/references.md, FCLIB."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def read_fclib(path) -> dict[str, np.ndarray]:
    """The arrays of a file, for `ContactProblem`: of a local problem W, q, mu; of a global one A, J, b, e, mu.

    Files have the normal first, u = W r + q or M v = H r + f, u = H' v + w; here rows are t1, t2, n. W is as the file
    has it, symmetric or not. Errors: OSError for what is no HDF5 file, ValueError for what it holds.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("FCLIB files need h5py: pip install h5py") from error

    path = Path(path)
    with h5py.File(path) as file:
        kinds = [kind for kind in ("fclib_local", "fclib_global") if kind in file]
        if not kinds:
            raise ValueError(f"{path.name} has {', '.join(file) or 'nothing'}, expected fclib_local or fclib_global")
        problem = file[kinds[0]]
        dimension = int(np.ravel(_entry(problem, "spacedim", path))[0])
        if dimension != 3:
            raise ValueError(f"{path.name} has contacts of {dimension} dimensions, expected 3")
        for equality in ("V", "G"):
            if equality in problem:
                raise ValueError(f"{path.name} has bilateral constraints ({equality}), which are not supported")
        vectors = {name: np.asarray(values, float) for name, values in _entry(problem, "vectors", path).items()}
        for name in ("mu", "q") if kinds[0] == "fclib_local" else ("mu", "f", "w"):
            if name not in vectors:
                raise ValueError(f"{path.name} has no vector {name!r}")
        if kinds[0] == "fclib_local":
            W, order = _matrix(problem, "W", path), _order(path, vectors, "q")
            _require(path, "W", W.shape, (len(order), len(order)))
            return {"W": W[np.ix_(order, order)], "q": vectors["q"][order], "mu": vectors["mu"]}
        H, M, order = _matrix(problem, "H", path), _matrix(problem, "M", path), _order(path, vectors, "w")
        _require(path, "M", M.shape, (len(vectors["f"]), len(vectors["f"])))
        _require(path, "H", H.shape, (len(M), len(order)))
        return {
            "A": M,
            "J": H.T[order],
            "b": vectors["f"],
            "e": vectors["w"][order],
            "mu": vectors["mu"],
        }


def _require(path: Path, name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise ValueError(f"{path.name}: {name} has shape {shape}, expected {expected}")


def _order(path: Path, vectors: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Of rows n, t1, t2 of every contact: t1, t2, n."""
    _require(path, name, vectors[name].shape, (3 * len(vectors["mu"]),))
    return np.arange(len(vectors[name])).reshape(-1, 3)[:, [1, 2, 0]].ravel()


def _entry(group, name: str, path: Path):
    if name not in group:
        raise ValueError(f"{path.name}: {group.name} has no {name!r}")
    return group[name]


def _matrix(problem, name: str, path: Path) -> np.ndarray:
    """Dense, of triplets (nz >= 0), compressed columns (-1) or rows (-2); entries given twice are added."""
    group = _entry(problem, name, path)
    m, n, nz = (int(np.ravel(_entry(group, key, path))[0]) for key in ("m", "n", "nz"))
    p, i, x = (np.asarray(_entry(group, key, path)) for key in "pix")
    if min(m, n) < 0 or nz < -2:
        raise ValueError(f"{path.name}: {name} has m {m}, n {n} and nz {nz}, expected 0, 0 and -2 at least")
    if nz >= 0:
        if min(len(p), len(i)) < nz:
            raise ValueError(f"{path.name}: {name} has {min(len(p), len(i))} places of {nz} entries")
        rows, columns = i[:nz], p[:nz]
    else:
        lines = n if nz == -1 else m
        begins = p[: lines + 1]
        if len(begins) != lines + 1 or begins[0] != 0 or (np.diff(begins) < 0).any() or begins[-1] > len(i):
            raise ValueError(f"{path.name}: {name} has pointers p that do not rise from 0 to at most {len(i)}")
        long = np.repeat(np.arange(lines), np.diff(begins))
        short = i[: len(long)]
        rows, columns = (short, long) if nz == -1 else (long, short)
    if len(x) < len(rows):
        raise ValueError(f"{path.name}: {name} has {len(x)} numbers for {len(rows)} entries")
    for places, size in ((rows, m), (columns, n)):
        if len(places) and not (0 <= places.min() and places.max() < size):
            raise ValueError(f"{path.name}: {name} ({m}, {n}) has an entry in {places.min()} or {places.max()}")
    dense = np.zeros((m, n))
    np.add.at(dense, (rows, columns), x[: len(rows)])
    return dense
