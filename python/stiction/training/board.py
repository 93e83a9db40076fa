"""Where a run's numbers are shown as it goes: TensorBoard's events in its folder and, if asked, Weights & Biases."""

from __future__ import annotations

import importlib.util
import re


def require_wandb() -> None:
    """OSError where Weights & Biases is not installed, or nobody is logged in for a chart that it is to show."""
    if importlib.util.find_spec("wandb") is None:
        raise OSError("--wandb needs Weights & Biases: pip install wandb")
    import wandb

    if wandb.setup().settings.mode == "online":
        try:
            wandb.login()
        except wandb.Error as error:
            raise OSError(_untold(error)) from error


def _untold(error: Exception) -> str:
    return f"--wandb: {error} WANDB_MODE=offline keeps its charts here, for `wandb sync`"


class Board:
    """``project``: of Weights & Biases, None for TensorBoard alone.

    ``told``: what run.json has; a resumed run goes on in its chart.
    """

    def __init__(self, path, told: dict, project: str | None):
        from torch.utils.tensorboard import SummaryWriter

        self._events = SummaryWriter(str(path))
        self._wandb = None
        if project is not None:
            import wandb

            began = re.sub(r"\W", "-", told["calls"][0]["began"])
            config = {name: value for name, value in told.items() if name != "calls"} | told["calls"][-1]
            named = {"project": project, "name": path.name, "id": f"{path.name}-{began}"}
            try:
                self._wandb = wandb.init(**named, resume="allow", config=config, dir=str(path))
            except wandb.Error as error:
                raise OSError(_untold(error)) from error

    def add(self, told: dict[str, float], samples: int) -> None:
        for name, value in told.items():
            self._events.add_scalar(name, value, samples)
        if self._wandb is not None:
            self._wandb.log(told, step=samples)

    def close(self) -> None:
        self._events.close()
        if self._wandb is not None:
            self._wandb.finish()
