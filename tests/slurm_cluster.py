"""A real Slurm of one node: Debian's munged, slurmctld and slurmd, each a process of ours, without systemd."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from api.local.processes import end_processes
from tests.ports import free_port

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
CPUS = 4
_CONF = """
ClusterName=metricsweep
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={other}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0,batch_sched_delay=0,requeue_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=2
MinJobAge=300
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=8000 Gres=gpu:2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
"""


def lacking() -> str | None:
    """What keeps it from being started here; none: nothing does."""
    missing = [name for name in NEEDED if shutil.which(name, path=_path()) is None]
    if missing:
        return f"there is no {', '.join(missing)}"
    return None if os.getuid() == 0 else "slurmd needs root"


class SlurmCluster:
    """The three daemons over one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.chmod(0o755)
        self.host = socket.gethostname().split(".")[0]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        told = {"host": self.host, "folder": folder, "port": free_port(), "other": free_port(), "cpus": CPUS}
        (folder / "slurm.conf").write_text(_CONF.format(**told))
        devices = [folder / f"gpu{index}" for index in range(2)]
        for device in devices:
            device.touch()
        (folder / "gres.conf").write_text("".join(f"Name=gpu File={device}\n" for device in devices))
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}

    def up(self) -> None:
        """Start all three, and wait until the node is idle."""
        munge = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log",
                 "seed-file": "munge.seed"}  # fmt: skip
        options = [f"--{option}={self.folder / name}" for option, name in munge.items()]
        self._start("munged", "--foreground", "--force", "--num-threads=2", *options)
        self.until((self.folder / "munge.socket").exists, "munged is up")
        self.start_controller()
        self._start("slurmd", "-D", "-N", self.host)
        self.until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "the node is idle")

    def start_controller(self) -> None:
        """Start slurmctld, which goes on where it was."""
        self._start("slurmctld", "-D")
        self.until(lambda: "UP" in self.ask("scontrol", "ping"), "slurmctld answers")

    def stop_controller(self) -> None:
        """End slurmctld, which saves what it knows; killed, it would forget its latest seconds."""
        process = self._running.pop("slurmctld")
        process.terminate()
        process.wait()

    def end_jobs(self) -> None:
        """Kill every job, and wait until none writes any more."""
        self.ask("scancel", "--signal=KILL", "--full", "--user=root")
        self.ask("scancel", "--user=root")
        with suppress(AssertionError):
            self.until(lambda: not self.ask("squeue", "-h", "-t", "R,CG"), "no job runs", 20)

    def down(self) -> None:
        """End the jobs, then the daemons, each by its id."""
        self.end_jobs()
        for process in reversed(self._running.values()):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        end_processes([one for one in psutil.process_iter() if self._is_step(one)], 5.0)

    def _is_step(self, process: psutil.Process) -> bool:
        """Whether it is slurmd's helper process of a job, which may outlive the job."""
        with suppress(psutil.Error):
            ours = process.environ().get("SLURM_CONF") == self.environment["SLURM_CONF"]
            return ours and process.name() == "slurmstepd"
        return False

    def ask(self, *command: str) -> str:
        """What a command of Slurm's prints; empty where it fails."""
        answer = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        return answer.stdout if answer.returncode == 0 else ""

    def until(self, true: Callable[[], object], what: str, patience: float = 60) -> None:
        """Wait until something holds."""
        began = time.monotonic()
        while not true():
            logs = [file.read_text(errors="replace")[-1500:] for file in self.folder.glob("*.log")]
            assert time.monotonic() - began < patience, f"waited in vain: {what}\n" + "\n---\n".join(logs)
            time.sleep(0.2)

    def _start(self, name: str, *options: str) -> None:
        log = (self.folder / f"{name}.out").open("ab")
        self._running[name] = subprocess.Popen(
            [shutil.which(name, path=_path()) or name, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=self.environment,
        )  # fmt: skip


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
