"""Training on a batch. `ppo` is the algorithm in one file, `options` its settings per task, `run` what a run keeps."""
