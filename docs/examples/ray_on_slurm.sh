#!/bin/bash
# One Ray over the nodes of an allocation of Slurm, and one sweep on it:
#   sbatch --nodes=2 --cpus-per-task=16 --gres=gpu:4 --time=8:00:00 docs/examples/ray_on_slurm.sh sweeps/digits.yaml
# Submitted again, it goes on where its time was up. METRICSWEEP_HOME names a folder that all nodes see.
#SBATCH --job-name=metricsweep-ray
#SBATCH --ntasks-per-node=1
#SBATCH --signal=USR1@120
#SBATCH --open-mode=append
set -euo pipefail
umask 077
spec=${1:?name a spec}
: "${METRICSWEEP_HOME:?name a folder that all nodes see}"
cpus=${SLURM_CPUS_PER_TASK:-1}
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))  # other jobs of the node have other ones
export SRUN_CPUS_PER_TASK=$cpus  # a step would have one CPU
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0 RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
# Slots keep the memory that they free for the next step.
export MALLOC_ARENA_MAX=1 MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 MALLOC_TOP_PAD_=67108864
export RAY_TMPDIR=/tmp/ray-$SLURM_JOB_ID METRICSWEEP_RAY_ADDRESS=$first:$port

node=(python -P -m orchestrator.run.ray --grace=100 "--num-cpus=$cpus" --object-store-memory=268435456 --min-worker-port=0
  --max-worker-port=0 --dashboard-agent-listen-port=0 --include-log-monitor=false --disable-usage-stats --log-color=false)

# USR1 comes to the steps two minutes before the limit: each node gives back what it trains, from a checkpoint on.
srun --overlap --nodes=1 --ntasks=1 --nodelist="$first" \
  "${node[@]}" --head "--port=$port" --include-dashboard=false --no-monitor &
until ray health-check "--address=$METRICSWEEP_RAY_ADDRESS" 2>/dev/null; do sleep 2; done
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --overlap --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$first" \
    "${node[@]}" "--address=$METRICSWEEP_RAY_ADDRESS" &
fi
code=0
metricsweep run "$spec" --out "$METRICSWEEP_HOME/tables" || code=$?
kill $(jobs -p)  # nothing trains any more
wait || true
exit "$code"
