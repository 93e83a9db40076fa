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
        dimension = int(np.ravel(problem["spacedim"])[0])
        if dimension != 3:
            raise ValueError(f"{path.name} has contacts of {dimension} dimensions, expected 3")
        for equality in ("V", "G"):
            if equality in problem:
                raise ValueError(f"{path.name} has bilateral constraints ({equality}), which are not supported")
        vectors = {name: np.asarray(values, float) for name, values in problem["vectors"].items()}
        if kinds[0] == "fclib_local":
            W, order = _matrix(problem["W"], path), _order(path, vectors, "q")
            _require(path, "W", W.shape, (len(order), len(order)))
            return {"W": W[np.ix_(order, order)], "q": vectors["q"][order], "mu": vectors["mu"]}
        H, M, order = _matrix(problem["H"], path), _matrix(problem["M"], path), _order(path, vectors, "w")
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


def _matrix(group, path: Path) -> np.ndarray:
    """Dense, of triplets (nz >= 0), compressed columns (-1) or rows (-2); entries given twice are added."""
    m, n, nz = (int(np.ravel(group[name])[0]) for name in ("m", "n", "nz"))
    p, i, x = (np.asarray(group[name]) for name in "pix")
    if nz >= 0:
        rows, columns = i[:nz], p[:nz]
    elif nz in (-1, -2):
        long = np.repeat(np.arange(n if nz == -1 else m), np.diff(p[: (n if nz == -1 else m) + 1]))
        short = i[: len(long)]
        rows, columns = (short, long) if nz == -1 else (long, short)
    else:
        raise ValueError(f"{path.name}: {group.name} has nz {nz}, expected at least -2")
    dense = np.zeros((m, n))
    np.add.at(dense, (rows, columns), x[: len(rows)])
    return dense
