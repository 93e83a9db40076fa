"""Compiling MJCF and URDF through the `mujoco` package: sources, assets, errors.

MuJoCo reports through a process-wide warning handler; without one it writes MUJOCO_LOG.TXT into the working folder;
`collected_warnings` holds a handler for the time of an import, so that nothing is written, and puts the old one back.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from pathlib import Path

from .batch_renderer import choose_gl
from .urdf_import import UrdfRobot

_handler_lock = threading.RLock()


def require_mujoco():
    """The mujoco module, or an ImportError that says what to install.

    It settles how it will render while it is imported, so that this comes first: `Simulation.render` needs no display.
    """
    choose_gl()
    try:
        import mujoco
    except ImportError as error:
        raise ImportError("importing MJCF or URDF needs the 'mujoco' package: pip install 'mujoco>=3.17,<5'") from error
    return mujoco


@contextlib.contextmanager
def collected_warnings(mujoco):
    """MuJoCo's warnings as a list of strings instead of MUJOCO_LOG.TXT and the terminal."""
    messages: list[str] = []
    with _handler_lock:
        previous = mujoco.get_mju_user_warning()
        mujoco.set_mju_user_warning(lambda text: messages.append(str(text)))
        try:
            with warnings.catch_warnings(record=True) as caught:  # the specification's compiler warns through Python
                warnings.simplefilter("always")
                yield messages
            messages.extend(str(warning.message) for warning in caught)
        finally:
            mujoco.set_mju_user_warning(previous)


def compile_source(source, assets, urdf: UrdfRobot | None = None):
    """(MjModel, label, warnings, notes) of a path or an XML string; ValueError with the label and MuJoCo's message.

    ``urdf``: what a URDF does not say; without it the source is MJCF.
    """
    mujoco = require_mujoco()
    text, path, label = _read(source)
    if path is not None and Path(path).suffix == ".mjb":
        raise ValueError(
            f"cannot import {label}: an .mjb is a compiled model, for Model.from_mjmodel(mujoco.MjModel."
            "from_binary_path(...)); commands want the MJCF or URDF it was made from"
        )
    root = re.search(r"<\s*([A-Za-z_]\w*)", re.sub(r"<!--.*?-->|<\?.*?\?>", "", text, flags=re.S))
    is_urdf = root is not None and root.group(1) == "robot"
    if root is not None and is_urdf != (urdf is not None):
        wanted = "from_urdf" if is_urdf else "from_mjcf"
        raise ValueError(f"cannot import {label}: its root element is <{root.group(1)}>, use Model.{wanted}")
    errors = tuple(getattr(mujoco, name) for name in ("FatalError", "UnexpectedError") if hasattr(mujoco, name))
    notes: list[str] = []
    with collected_warnings(mujoco) as messages:
        try:
            if urdf is not None:
                spec = _load(mujoco.MjSpec, "file", "string", text, path, assets)
                notes = urdf.prepare(spec, text, path, assets or (), mujoco)
                model = spec.compile()
            else:
                model = _load(mujoco.MjModel, "xml_path", "xml_string", text, path, assets)
        except (ValueError, *errors) as error:
            raise ValueError(f"cannot import {label}: {str(error).strip()}") from error
    return model, label, messages, notes


def _read(source) -> tuple[str, str | None, str]:
    """(text, path or None, label) of a path or an XML string."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, None, "the XML string"
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source is {type(source).__name__}, expected a path or an XML string")
    if isinstance(source, str) and not source.strip():
        raise ValueError("source is an empty string, expected a path or an XML string")
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"no file '{path}': expected the path of an MJCF or URDF file, or an XML string")
    return path.read_text(encoding="utf-8", errors="replace"), str(path), f"'{path}'"


def _load(kind, from_path: str, from_text: str, text: str, path: str | None, assets):
    """kind.from_<...>(path or text), with the assets as bytes."""
    extra = {}
    if assets:
        extra["assets"] = {
            str(n): data.encode() if isinstance(data, str) else bytes(data) for n, data in assets.items()
        }
    if path is not None:
        return getattr(kind, f"from_{from_path}")(path, **extra)
    return getattr(kind, f"from_{from_text}")(text, **extra)
