"""Where a run's numbers are shown as it goes: TensorBoard's events in its folder and, if asked, Weights & Biases."""

from __future__ import annotations

import re


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
            self._wandb = wandb.init(
                project=project, name=path.name, id=f"{path.name}-{began}", resume="allow", config=config, dir=str(path)
            )

    def add(self, told: dict[str, float], samples: int) -> None:
        for name, value in told.items():
            self._events.add_scalar(name, value, samples)
        if self._wandb is not None:
            self._wandb.log(told, step=samples)

    def close(self) -> None:
        self._events.close()
        if self._wandb is not None:
            self._wandb.finish()
