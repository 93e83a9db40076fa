"""Pictures of several environments of one batch, side by side on one floor, through `mujoco.Renderer`.

The environments share the model's static scene; each moving robot is drawn at its own place of a grid by shifting its
free base. Shadows and reflections are off: in software they cost ten times the rest.
"""

from __future__ import annotations

import ctypes.util
import math
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np


def choose_gl() -> None:
    """Sets MUJOCO_GL, where neither it nor a display is there; before `mujoco` is imported."""
    if "MUJOCO_GL" not in os.environ and not os.environ.get("DISPLAY"):
        libraries = {"egl": "EGL", "osmesa": "OSMesa"}
        found = [name for name, library in libraries.items() if ctypes.util.find_library(library)]
        if found:
            os.environ["MUJOCO_GL"] = found[0]


class BatchRenderer:
    """Draws rows of qpos. ``count``: environments in the picture (1 where the robot has no free base)."""

    def __init__(self, mjmodel, count: int, *, width: int = 960, height: int = 544, spacing: float = 2.4):
        import mujoco

        self._mujoco = mujoco
        self._model = mjmodel
        self._data = mujoco.MjData(mjmodel)
        self._floating = mjmodel.njnt > 0 and mjmodel.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
        self.count = count if self._floating else 1
        columns = math.ceil(math.sqrt(self.count))
        rows = math.ceil(self.count / columns)
        place = np.arange(self.count)
        self._offsets = np.stack(
            [(place % columns - (columns - 1) / 2) * spacing, (place // columns - (rows - 1) / 2) * spacing], axis=1
        )
        mjmodel.vis.global_.offwidth = max(mjmodel.vis.global_.offwidth, width)
        mjmodel.vis.global_.offheight = max(mjmodel.vis.global_.offheight, height)
        self._renderer = mujoco.Renderer(mjmodel, height, width, max_geom=200 + self.count * mjmodel.ngeom)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._renderer.scene.flags[flag] = 0
        self._camera = mujoco.MjvCamera()
        self._camera.lookat[:] = (0, 0, 0.2)
        self._camera.distance = 2.0 + 0.95 * spacing * columns
        self._camera.elevation, self._camera.azimuth = -30, 70

    def render(self, qpos: np.ndarray) -> np.ndarray:
        """(height, width, 3) bytes of the first ``count`` rows of ``qpos``; their starting places become the grid's."""
        mujoco, scene = self._mujoco, self._renderer.scene
        for number in range(self.count):
            self._data.qpos[:] = qpos[number]
            if self._floating:
                self._data.qpos[:2] += self._offsets[number]
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            mujoco.mj_camlight(self._model, self._data)
            if number == 0:
                self._renderer.update_scene(self._data, self._camera)
            else:
                moving = int(mujoco.mjtCatBit.mjCAT_DYNAMIC)
                mujoco.mjv_addGeoms(self._model, self._data, mujoco.MjvOption(), mujoco.MjvPerturb(), moving, scene)
        return self._renderer.render()

    def close(self) -> None:
        self._renderer.close()

    def __enter__(self) -> BatchRenderer:
        return self

    def __exit__(self, *exception) -> None:
        self.close()


#: Of files that H.264 goes into.
_ENDINGS = (".mp4", ".mov", ".mkv")


def write_video(path, frames, fps: float) -> None:
    """An MP4 of (height, width, 3) bytes through imageio-ffmpeg; ImportError without it, OSError with ffmpeg's reason.

    ``path`` ends in .mp4, .mov or .mkv, else ValueError. MP4s have even sizes: of an odd one the last row or column is
    there twice.
    """
    check_writable(path)
    _encode(frames, fps, [str(path)], f"write {path}")


def check_video(path) -> None:
    """Before anything is drawn: what `write_video` would raise of ``path``, or of an ffmpeg that does not work."""
    check_writable(path)
    check_encoder()


def check_encoder() -> None:
    """ImportError or OSError where there is no ffmpeg that encodes a frame."""
    _encode([np.zeros((16, 16, 3), np.uint8)], 25, ["-f", "null", "-"], "encode a frame")


def _encode(frames, fps: float, to: list[str], what: str) -> None:
    try:
        from imageio_ffmpeg import get_ffmpeg_exe
    except ImportError as error:
        raise ImportError(f"videos need imageio-ffmpeg ({error}): pip install 'imageio[ffmpeg]'") from error
    height, width = frames[0].shape[:2]
    odd = ((0, height % 2), (0, width % 2), (0, 0))  # colours are of two by two pixels
    command = ["-y", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{width + width % 2}x{height + height % 2}", "-r", f"{fps:.9g}", "-i", "-"]
    command += ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "15", *to]
    with tempfile.TemporaryFile() as told:
        try:
            ffmpeg = subprocess.Popen([get_ffmpeg_exe(), *command], stdin=subprocess.PIPE, stdout=told, stderr=told)
        except (OSError, RuntimeError) as error:
            raise OSError(
                f"ffmpeg does not run ({error}): pip install --force-reinstall imageio-ffmpeg, or name one that does "
                "in IMAGEIO_FFMPEG_EXE"
            ) from error
        with ffmpeg:
            try:
                with ffmpeg.stdin as images:
                    for frame in frames:
                        images.write(np.ascontiguousarray(np.pad(frame, odd, mode="edge")))
            except BrokenPipeError:  # it has ended, and says why
                pass
        told.seek(0)
        reason = told.read().decode(errors="replace").strip()
    if ffmpeg.returncode != 0:
        raise OSError(f"ffmpeg could not {what}: {reason or f'it ended with status {ffmpeg.returncode}'}")


def check_writable(path) -> None:
    """OSError, with the reason, where no file ``path`` can be made; ValueError where that is no video."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder {folder} to write {Path(path).name} into")
    if Path(path).is_dir() or not os.access(path if Path(path).exists() else folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written")
    if Path(path).suffix.lower() not in _ENDINGS:
        raise ValueError(f"{path} is no name of a video, expected one that ends in {', '.join(_ENDINGS)}")


def write_sheet(path, frames, columns: int = 3) -> None:
    """A PNG with the frames beside each other, row by row, each at half size."""
    from PIL import Image

    height, width = frames[0].shape[0] // 2, frames[0].shape[1] // 2
    rows = math.ceil(len(frames) / columns)
    sheet = Image.new("RGB", (columns * width, rows * height))
    for number, frame in enumerate(frames):
        small = Image.fromarray(frame).resize((width, height), Image.Resampling.LANCZOS)
        sheet.paste(small, (number % columns * width, number // columns * height))
    sheet.save(path, optimize=True)
