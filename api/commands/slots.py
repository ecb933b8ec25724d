"""`slots`: keeps the slots alive that a conductor with METRICSWEEP_ENGINE=files trains on."""

import signal
import threading
from typing import Annotated

import typer

from api.commands.options import HOME, Home, settings
from api.commands.terminal import err
from orchestrator.views.errors import MetricsweepError


def slots(
    slurm: Annotated[
        bool, typer.Option("--slurm", help="As jobs of Slurm; run it where you would run sbatch.")
    ] = False,
    most: Annotated[int, typer.Option("--most", min=1, max=1000, help="Slots at once, at most.")] = 16,
    partition: Annotated[str | None, typer.Option(help="Of sbatch, as are the following.")] = None,
    account: Annotated[str | None, typer.Option(help="The account that is charged.")] = None,
    qos: Annotated[str | None, typer.Option(help="Quality of service.")] = None,
    constraint: Annotated[str | None, typer.Option(help="Features that nodes must have.")] = None,
    gres: Annotated[str | None, typer.Option(help="Such as gpu:1 or gpu:a100:1; none: slots without a GPU.")] = None,
    cpus: Annotated[int, typer.Option(min=1, help="CPUs of each slot.")] = 1,
    mem: Annotated[str | None, typer.Option(help="Memory of each slot, such as 16G; none: the partition's.")] = None,
    time: Annotated[str | None, typer.Option(help="Time limit, such as 4:00:00; none: the partition's.")] = None,
    requeue: Annotated[bool, typer.Option(help="Whether Slurm puts a preempted job back into the queue.")] = True,
    before: Annotated[
        int, typer.Option("--signal", min=10, max=65535, help="Seconds before the limit to begin giving back in.")
    ] = 120,
    more: Annotated[
        list[str] | None, typer.Option("--sbatch", help="Any other option of sbatch, such as --sbatch=--exclude=n7.")
    ] = None,
    setup: Annotated[
        list[str] | None, typer.Option(help="A line of the job's script before the slot, such as 'module load cuda'.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="Python on the compute nodes; none: this one.")] = None,
    resource: Annotated[
        list[str] | None, typer.Option(metavar="NAME=AMOUNT", help="A custom resource that each offers, as a100=1.")
    ] = None,
    idle: Annotated[float, typer.Option(min=1, help="Seconds without a training after which a slot ends.")] = 300,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks at the queue.")] = 15,
    once: Annotated[bool, typer.Option("--once", help="Look once and end: for cron.")] = False,
    home: Home = HOME,
) -> None:
    """Keep as many slots alive as the conductor has use for, as jobs of Slurm, until Ctrl-C; jobs live on."""
    from orchestrator.service.slots import SlotJob, keep_by_slurm

    if not slurm:
        raise typer.BadParameter("how slots are kept alive is to be named: --slurm")
    given = {"python": python} if python else {}
    try:
        job = SlotJob(
            partition=partition, account=account, qos=qos, constraint=constraint, gres=gres, cpus=cpus, mem=mem,
            time=time, requeue=requeue, signal=before, more=more or (), setup=setup or (), idle=idle,
            resources=dict(map(_named, resource or ())), **given,
        )  # fmt: skip
    except ValueError as error:
        raise MetricsweepError(str(error)) from error
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    name = keep_by_slurm(settings(home=home), job, most, err.print, ended, None if once else every)
    if not once:
        err.print(f"the jobs live on, and end when they have nothing to train; scancel --name {name} ends them now")


def _named(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    try:
        return name, float(amount or 1)
    except ValueError:
        raise ValueError(f"--resource: expected NAME=AMOUNT, such as a100=1, found {text!r}") from None
