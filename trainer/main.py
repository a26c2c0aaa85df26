"""Which code does which task."""

from __future__ import annotations

from trainer import recipe as recipes
from trainer.job import Job


def run(job: Job) -> None:
    """Do the job's task; each task imports what it needs."""
    job.out.mkdir(parents=True, exist_ok=True)
    match job.recipe:
        case recipes.Probe():
            from trainer import probe

            probe.run(job, job.recipe)
        case recipes.Train():
            from trainer import train

            train.run(job, job.recipe)
        case recipes.Evaluate():
            from trainer import evaluate

            evaluate.run(job, job.recipe)
        case recipes.Seed():
            from trainer import seed

            seed.run(job, job.recipe)
        case recipes.Check():
            from trainer import check

            check.run(job, job.recipe)
        case recipes.Compare():
            from trainer import compare

            compare.run(job, job.recipe)
        case recipes.Serve():
            from trainer import serve

            serve.run(job, job.recipe)
        case _:
            raise AssertionError(f"no code for the task {job.recipe.task}")
