"""stiction.ContactProblem: contacts to be solved, without a model around them. docs/theory.md, sections 1 and 4."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .backend import as_numbers

_SYMMETRIC = 1e-8  # of the largest entry
_POSITIVE = 1e-6  # of the largest eigenvalue: negative ones of public collections come to 3e-8
_KEPT = 1e-14  # of the largest eigenvalue


class _Array:
    """An array of a problem, without the first axis where it is one problem; None where it has none."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, problem, owner=None):
        if problem is None:
            return self
        values = problem._arrays.get(self.name)
        return values if values is None or problem.batch else values[0]


class ContactProblem:
    """Find impulses l of nc contacts, three each, in the order t1, t2, n: two tangents and the normal.

        w = W l + q,    (w + R l, l) obeys the law of each contact                    from_delassus, from_fclib
        A v = b + J' l,    (J v + e + R l, l) obeys the law of each contact           from_primal, a simulation

    The second is the first with W = J A^-1 J' and q = J A^-1 b + e. Coulomb's law: 0 <= l_n complementary to
    s_n >= 0, |l_t| <= mu l_n, friction opposes sliding, s = w + e + R l. Friction that differs along t1 and t2 has the
    ellipse |(l_t1 / mu_1, l_t2 / mu_2)| <= l_n, and of its impulses what slides takes the one that dissipates most.
    Torsional and rolling friction are three tangential directions more of a contact, the turning about t1, t2 and n
    times an arm each, at which the couple pushes: |(l_t, couple / arms)| <= mu l_n (docs/theory.md, 4.1).

    A batch of problems of one size has a first axis more in every array.
    """

    W = _Array("(3 nc, 3 nc) velocity per impulse, 1/kg; None where A and J are given: see `delassus`.")
    A = _Array("(nv, nv) kg, kg m^2; None where W is given.")
    b = _Array("(nv,) A times the free velocity, N s, N m s.")
    J = _Array("(3 nc, nv) rows t1, t2, n of each contact.")
    e = _Array("(3 nc,) bias, m/s; 0 where W is given.")
    R = _Array("(3 nc,) compliance, 1/kg, R mu^2 equal for t1 and t2; 0 is rigid.")
    mu = _Array("(nc,) friction coefficients; (nc, 2) along t1 and t2.")
    impulse = _Array("(3 nc,) of a simulation's problem: what its step found, N s.")
    J_row = _Array("(nr, nv) of a simulation's problem: limits, dry friction, equalities, servos; docs/theory.md 6.")
    e_row = _Array("(nr,) their bias, m/s.")
    R_row = _Array("(nr,) their compliance, 1/kg.")
    lower = _Array("(nr,) bounds of their impulses, N s; 1e30 is none.")
    upper = _Array("(nr,)")
    row_impulse = _Array("(nr,) what the step found.")
    J_spin = _Array(
        "(3 nc, nv) turning about t1, t2, n times the arms of couples, 0 where none; None: no contact has any."
    )
    spin_impulse = _Array("(3 nc,) couple over arm of each, what the step found, N s.")

    def __init__(self, arrays: dict[str, np.ndarray], *, batch: bool, least_velocity=None):
        """Use `from_delassus`, `from_primal` or `from_fclib`. Arrays here have the axis of problems and are checked."""
        self._arrays = {name: np.array(values) for name, values in arrays.items()}
        for values in self._arrays.values():
            values.setflags(write=False)  # factors of them are kept
        self.batch = batch
        self._least_velocity = least_velocity

    # ---- how problems are made

    @classmethod
    def from_delassus(cls, W, q, mu, R=None, *, symmetrize=False, least_velocity=None) -> ContactProblem:
        """A problem given by its Delassus operator.

        ValueError names the argument that is not so.

        Parameters
        ----------
        W: (3 nc, 3 nc), dense or with ``toarray`` as SciPy's sparse matrices, of a batch a list of them; symmetric
            positive semidefinite. 1/kg
        q: (3 nc,) or (nc, 3), the velocities without impulses, J v* + e, m/s. It need not be in the range of W.
        mu: (nc,), or (nc, 2): along t1 and along t2
        R: (3 nc,) or (nc, 3), R mu^2 equal for t1 and t2; None is rigid. 1/kg
        symmetrize: take (W + W') / 2 of a W that is not symmetric, as some in public collections are.
        least_velocity: floor of the velocity scale V, m/s; None is the largest entry of q.
        """
        W = _matrices("W", W)
        batch, W = W.ndim == 3, W if W.ndim == 3 else W[None]
        mu = _friction(mu, batch, len(W))
        nc = mu.shape[1]
        _expect("W", W.shape[1:], (3 * nc, 3 * nc), f"mu has {nc} contacts")
        W = _symmetric("W", W, symmetrize)
        arrays = {"W": W, "q": _rows("q", q, batch, len(W), nc), "mu": mu, "R": _compliance(R, batch, mu)}
        problem = cls(arrays, batch=batch, least_velocity=_floor(least_velocity, len(W)))
        problem._factor  # noqa: B018  what is not semidefinite shows here
        return problem

    @classmethod
    def from_primal(cls, A, J, b, mu, e=None, R=None, *, J_spin=None, least_velocity=None) -> ContactProblem:
        """A problem of bodies with the velocities v, A v = b + J' l.

        Matrices may have ``toarray`` as SciPy's sparse ones, of a batch a list of them. ValueError names the argument
        that is not so.

        Parameters
        ----------
        A: (nv, nv), symmetric positive definite. kg, kg m^2
        J: (3 nc, nv), rows t1, t2, n of each contact
        b: (nv,), A times the free velocity. N s, N m s
        mu: (nc,), or (nc, 2): along t1 and along t2
        e: (3 nc,) or (nc, 3), bias; None is 0. m/s
        R: (3 nc,) or (nc, 3), compliance, R mu^2 equal for t1 and t2; None is rigid. 1/kg
        J_spin: (3 nc, nv), the relative rotation about t1, t2, n of each contact times its arm, the coefficient of
            rolling (t1, t2) or torsional (n) friction over mu; 0 where there is none. m. None: no contact has couples.
        least_velocity: floor of the velocity scale V, m/s; None is the largest entry of J v* + e.
        """
        A, J = _matrices("A", A), _matrices("J", J)
        batch = A.ndim == 3
        A, J = (x if x.ndim == 3 else x[None] for x in (A, J))
        count, nv = len(A), A.shape[1]
        _expect("A", A.shape[1:], (nv, nv), "it is square")
        mu = _friction(mu, batch, count)
        nc = mu.shape[1]
        _expect("J", J.shape, (count, 3 * nc, nv), f"mu has {nc} contacts, A {nv} columns")
        b = _numbers("b", b)
        _expect("b", b.shape, (count, nv) if batch else (nv,), f"A has {nv} columns")
        arrays = {"A": _symmetric("A", A, False), "b": b.reshape(count, nv), "J": J, "mu": mu}
        arrays["e"] = np.zeros((count, 3 * nc)) if e is None else _rows("e", e, batch, count, nc)
        arrays["R"] = _compliance(R, batch, mu)
        if J_spin is not None:
            J_spin = _matrices("J_spin", J_spin)
            arrays["J_spin"] = J_spin if J_spin.ndim == 3 else J_spin[None]
            _expect("J_spin", arrays["J_spin"].shape, J.shape, "J is")
            if mu.ndim == 3:
                raise ValueError(f"mu has shape {mu.shape[1:]}, expected ({nc},), one for all directions, with J_spin")
            if arrays["R"].reshape(count, nc, 3)[:, :, :2].any():
                raise ValueError("R has tangential compliance, expected none with J_spin")
        problem = cls(arrays, batch=batch, least_velocity=_floor(least_velocity, count))
        problem._factor  # noqa: B018  what is not definite shows here
        return problem

    @classmethod
    def from_fclib(cls, path, *, symmetrize=False) -> ContactProblem:
        """The problem of an FCLIB file (HDF5; needs ``h5py``), local or global; see `read_fclib`."""
        from .fclib import read_fclib

        arrays = read_fclib(path)
        if "W" in arrays:
            return cls.from_delassus(**arrays, symmetrize=symmetrize)
        return cls.from_primal(**arrays)

    @classmethod
    def _of_step(cls, arrays: dict[str, np.ndarray], least_velocity: float) -> ContactProblem:
        batched = {name: values[None] for name, values in arrays.items()}
        return cls(batched, batch=False, least_velocity=np.array([least_velocity]))

    # ---- what it is

    @property
    def num_contacts(self) -> int:
        return self._arrays["mu"].shape[1]

    @property
    def num_problems(self) -> int:
        return len(self._arrays["mu"])

    @property
    def q(self) -> np.ndarray:
        """(3 nc,) velocities without impulses, J v* + e, m/s."""
        _, free = self._motion
        return self._squeezed((free + self._row_bias)[:, : 3 * self.num_contacts])

    @property
    def delassus(self) -> np.ndarray:
        """(3 nc, 3 nc) W, given or J A^-1 J', 1/kg."""
        if "W" in self._arrays:
            return self.W
        moved, _ = self._motion
        J = self._arrays["J"]
        return self._squeezed(J @ moved[:, :, : J.shape[1]])

    def residuals(self, impulse, row_impulse=None, spin_impulse=None) -> dict[str, float | np.ndarray]:
        """How well impulses (3 nc,) or (nc, 3), of any origin, solve it.

        r_con, r_ccp, r_mdp, r_row and scale are as in `Solution`, r_split is of both laws. ``row_impulse`` (nr,): of
        other rows, ``spin_impulse`` (3 nc,) or (nc, 3): of couples; None is 0.
        """
        from .contact_residuals import residuals

        given = np.zeros((self.num_problems, self._num_all))
        contacts, others, spins = self._parts
        given[:, contacts] = _rows("impulse", impulse, self.batch, len(given), self.num_contacts)
        if row_impulse is not None:
            given[:, others] = _numbers("row_impulse", row_impulse)
        if spin_impulse is not None:
            if not self._has_spin:
                raise ValueError("spin_impulse is given, but no contact has couples")
            given[:, spins] = _rows("spin_impulse", spin_impulse, self.batch, len(given), self.num_contacts)
        found = residuals(self, given, self._velocity(given))
        return {name: values if self.batch else float(values[0]) for name, values in found.items()}

    def to_primal(self) -> ContactProblem:
        """The same problem by bodies; itself, if it is one.

        Of W = Y Y' alone: unit masses whose motion v moves the contacts by Y v, b = 0, and q is the bias e, whether it
        is in the range of W or not. Not those that W was made of, but impulses and residuals are the same; velocities
        J v lack q.
        """
        if "W" not in self._arrays:
            return self
        Y, own = self._factor, self._arrays
        count, _, width = Y.shape
        arrays = {"A": np.broadcast_to(np.eye(width), (count, width, width)), "b": np.zeros((count, width)), "J": Y}
        arrays |= {"mu": own["mu"], "e": own["q"], "R": own["R"]}
        return ContactProblem(arrays, batch=self.batch, least_velocity=self._least_velocity)

    def arrays(self) -> dict[str, np.ndarray]:
        """What it is made of, by name."""
        return {name: self._squeezed(values) for name, values in self._arrays.items()}

    def __repr__(self) -> str:
        form = "W" if "W" in self._arrays else f"A of {self._arrays['A'].shape[1]} dofs"
        rows = f", {self._num_rows} other rows" if self._num_rows else ""
        rows += ", couples" if self._has_spin else ""
        count = f"{self.num_problems} problems of " if self.batch else ""
        return f"stiction.ContactProblem({count}{self.num_contacts} contacts{rows}, {form})"

    # ---- for solvers: rows are those of contacts, then the others, then couples; all arrays with the axis of problems

    @property
    def _num_rows(self) -> int:
        return self._arrays["J_row"].shape[1] if "J_row" in self._arrays else 0

    @property
    def _has_spin(self) -> bool:
        return "J_spin" in self._arrays

    @property
    def _parts(self) -> tuple[slice, slice, slice]:
        """Rows of contacts, the others, couples."""
        contacts = 3 * self.num_contacts
        others = contacts + self._num_rows
        return slice(0, contacts), slice(contacts, others), slice(others, self._num_all)

    @property
    def _num_all(self) -> int:
        return 3 * self.num_contacts * (1 + self._has_spin) + self._num_rows

    def _squeezed(self, values: np.ndarray) -> np.ndarray:
        return values if self.batch else values[0]

    def _all_rows(self, of_contacts: np.ndarray, of_others: str, of_spins: np.ndarray) -> np.ndarray:
        parts = [of_contacts, *([self._arrays[of_others]] if self._num_rows else []), *([of_spins] * self._has_spin)]
        return np.concatenate(parts, 1) if len(parts) > 1 else of_contacts

    @cached_property
    def _jacobian(self) -> np.ndarray:
        return self._all_rows(self._arrays["J"], "J_row", self._arrays.get("J_spin"))

    @cached_property
    def _row_bias(self) -> np.ndarray:
        """e (B, n)."""
        if "W" in self._arrays:
            return np.zeros_like(self._arrays["q"])
        return self._all_rows(self._arrays["e"], "e_row", np.zeros_like(self._arrays["e"]))

    @cached_property
    def _row_compliance(self) -> np.ndarray:
        return self._all_rows(self._arrays["R"], "R_row", np.zeros_like(self._arrays["R"]))

    @cached_property
    def _round(self) -> tuple[np.ndarray, np.ndarray]:
        """mu (B, nc) and factors (B, n) of rows, by which impulses are divided, that make every cone round: (4.6)."""
        mu, of_rows = _round_cones(self._arrays["mu"])
        others = self._num_all - 3 * self.num_contacts
        return mu, np.pad(of_rows.reshape(len(mu), -1), ((0, 0), (0, others)), constant_values=1)

    @cached_property
    def _row_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        if self._num_rows:
            return self._arrays["lower"], self._arrays["upper"]
        return np.zeros((self.num_problems, 0)), np.zeros((self.num_problems, 0))

    @cached_property
    def _motion(self) -> tuple[np.ndarray | None, np.ndarray]:
        """A^-1 J' (B, nv, n) and J v* (B, n); of a bare W: None and q."""
        if "W" in self._arrays:
            return None, self._arrays["q"]
        A, b, J = self._arrays["A"], self._arrays["b"], self._jacobian
        solved = np.linalg.solve(A, np.concatenate([J.swapaxes(1, 2), b[:, :, None]], 2))
        return solved[:, :, :-1], (J @ solved[:, :, -1:])[:, :, 0]

    @cached_property
    def _factor(self) -> np.ndarray:
        """Y (B, n, width) with W = Y Y', its width as small as the rank is known to be."""
        if "W" in self._arrays:
            return _factored(self._arrays["W"])
        A = self._arrays["A"]
        try:
            L = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            raise ValueError("A is not positive definite") from None
        # Rounding may let a singular one pass. Whatever the masses: of A with ones on its diagonal.
        root = np.sqrt(np.einsum("bii->bi", A))
        least = np.linalg.eigvalsh(A / (root[:, :, None] * root[:, None, :])).min(1, initial=1.0)
        if (least <= 4 * A.shape[1] * np.finfo(float).eps).any():
            raise ValueError("A is singular but for rounding: some motion has no mass")
        Yt = np.linalg.solve(L, self._jacobian.swapaxes(1, 2))
        if Yt.shape[1] > Yt.shape[2]:
            Yt = np.stack([np.linalg.qr(y, mode="r") for y in Yt])  # Y' = Q r: W = r' r, and as many columns as rows
        return np.ascontiguousarray(Yt.swapaxes(1, 2))

    @cached_property
    def _blocks(self) -> np.ndarray:
        """W_ii (B, nc, 3, 3) of every contact, from what was given."""
        count, nc = self.num_problems, self.num_contacts
        if "W" in self._arrays:
            W = self._arrays["W"].reshape(count, nc, 3, nc, 3)
            return np.ascontiguousarray(np.moveaxis(W[:, np.arange(nc), :, np.arange(nc)], 0, 1))
        nv = self._arrays["A"].shape[1]
        J = self._arrays["J"].reshape(count, nc, 3, nv)
        moved = self._motion[0][:, :, : 3 * nc].reshape(count, nv, nc, 3)
        return np.einsum("bkiv,bvkj->bkij", J, moved)

    @cached_property
    def _velocity_floor(self) -> np.ndarray:
        """Least velocity scale (B,), > 0."""
        if self._least_velocity is not None:
            return self._least_velocity
        q = np.abs(self._motion[1] + self._row_bias)
        largest = q.max(1) if q.shape[1] else np.zeros(len(q))
        return np.where(largest > 0, largest, 1.0)

    def _velocity(self, impulse: np.ndarray) -> np.ndarray:
        """w = J v (B, n) under impulses (B, n), from W or A and J themselves."""
        moved, free = self._motion
        if moved is None:
            return free + (self._arrays["W"] @ impulse[:, :, None])[:, :, 0]
        return free + (self._jacobian @ (moved @ impulse[:, :, None]))[:, :, 0]


def _factored(W: np.ndarray) -> np.ndarray:
    """Y of W = Y Y' (B, n, width) by the eigenvalues of W in units in which its diagonal is 1."""
    diagonal = np.diagonal(W, axis1=1, axis2=2)
    if (diagonal < 0).any():
        raise ValueError(f"W is not positive semidefinite: its diagonal has {diagonal.min():.3g}")
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1))
    values, vectors = np.linalg.eigh(W / (scale[:, :, None] * scale[:, None, :]))
    if values.shape[1] == 0:
        return np.zeros_like(W)
    largest = np.maximum(values[:, -1:], 0)
    if (values[:, :1] < -_POSITIVE * largest).any() or (values[:, -1:] < 0).any():
        worst = (values[:, 0] / np.where(largest[:, 0] > 0, largest[:, 0], 1)).min()
        raise ValueError(f"W is not positive semidefinite: with a diagonal of 1 it has the eigenvalue {worst:.1e}")
    kept = values > _KEPT * largest
    width = int(kept.sum(1).max())
    Y = scale[:, :, None] * vectors * np.sqrt(np.where(kept, values, 0))[:, None, :]
    return np.ascontiguousarray(Y[:, :, ::-1][:, :, :width])


# ---- what users give


def _numbers(name: str, values) -> np.ndarray:
    values = as_numbers(name, values).astype(float)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has {np.count_nonzero(~np.isfinite(values))} entries that are not finite")
    return values


def _dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def _matrices(name: str, values) -> np.ndarray:
    if isinstance(values, (list, tuple)):
        values = [_dense(each) for each in values]
    values = _numbers(name, _dense(values))
    if values.ndim not in (2, 3):
        raise ValueError(f"{name} has shape {values.shape}, expected a matrix, or a batch of them")
    if values.ndim == 3 and len(values) == 0:
        raise ValueError(f"{name} has shape {values.shape}, expected at least one problem")
    return values


def _expect(name: str, shape: tuple, expected: tuple, since: str) -> None:
    if tuple(shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(shape)}, expected {tuple(expected)}, since {since}")


def _friction(mu, batch: bool, count: int) -> np.ndarray:
    """(B, nc), or (B, nc, 2)"""
    mu = _numbers("mu", mu)
    both = mu.ndim == 2 + batch and mu.shape[-1] == 2
    if not (both or mu.ndim == 1 + batch) or (batch and len(mu) != count):
        one, two = (f"({count}, contacts)", f"({count}, contacts, 2)") if batch else ("(contacts,)", "(contacts, 2)")
        since = f", since there are {count} problems" if batch else ""
        raise ValueError(f"mu has shape {mu.shape}, expected {one} or {two}{since}")
    if (mu < 0).any():
        raise ValueError(f"mu has {mu.min():g}, expected friction coefficients of at least 0")
    return mu if batch else mu[None]


def _round_cones(mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of (B, nc) or (B, nc, 2) the larger (B, nc), and factors (B, nc, 3) of t1, t2, n: each mu over the larger."""
    along = mu if mu.ndim == 3 else np.stack([mu, mu], 2)
    largest = along.max(2)
    factors = np.ones((*largest.shape, 3))
    np.divide(along, largest[:, :, None], out=factors[:, :, :2], where=largest[:, :, None] > 0)
    return largest, factors


def _rows(name: str, values, batch: bool, count: int, nc: int) -> np.ndarray:
    """(B, 3 nc) of three numbers for each contact."""
    values = _numbers(name, values)
    flat, triples = ((count,) if batch else ()) + (3 * nc,), ((count,) if batch else ()) + (nc, 3)
    if values.shape not in (flat, triples):
        raise ValueError(f"{name} has shape {values.shape}, expected {flat} or {triples}, since mu has {nc} contacts")
    return np.ascontiguousarray(values.reshape(count, 3 * nc))


def _compliance(R, batch: bool, mu: np.ndarray) -> np.ndarray:
    count, nc = mu.shape[:2]
    if R is None:
        return np.zeros((count, 3 * nc))
    R = _rows("R", R, batch, count, nc)
    if (R < 0).any():
        raise ValueError(f"R has {R.min():g}, expected compliances of at least 0")
    rounded = R.reshape(count, nc, 3) * _round_cones(mu)[1] ** 2
    if not np.allclose(rounded[:, :, 0], rounded[:, :, 1], rtol=1e-12, atol=0):
        same = "R mu^2" if mu.ndim == 3 else "R"
        raise ValueError(f"{same} differs between t1 and t2 of a contact, expected one number for both")
    return R


def _symmetric(name: str, M: np.ndarray, symmetrize: bool) -> np.ndarray:
    """(M + M') / 2 where that is what was meant."""
    turned = M.swapaxes(1, 2)
    largest = np.abs(M).max(initial=0)
    difference = np.abs(M - turned).max(initial=0)
    if not symmetrize and difference > _SYMMETRIC * largest:
        mend = "; symmetrize=True takes (W + W') / 2" if name == "W" else ""
        raise ValueError(
            f"{name} is not symmetric: it differs from its transpose by {difference / largest:.1e} of its largest "
            f"entry{mend}"
        )
    return 0.5 * (M + turned)


def _floor(least_velocity, count: int) -> np.ndarray | None:
    if least_velocity is None:
        return None
    floor = np.broadcast_to(_numbers("least_velocity", least_velocity), (count,)).copy()
    if (floor <= 0).any():
        raise ValueError(f"least_velocity is {floor.min():g}, expected more than 0")
    return floor
