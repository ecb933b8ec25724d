# The worker image: a node of the Ray cluster that trains. It needs the Python and the Ray of the control image.
# Build from the top level: docker build -f docker/worker.Dockerfile -t metricsweep-worker .
ARG PYTHON=3.11
ARG BASE=python:${PYTHON}-slim
FROM ${BASE}

ENV PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# The same number in both images: they write to one storage volume. New volumes take over these folders' owner.
RUN useradd --uid 1000 --create-home metricsweep \
    && install -d -o metricsweep -g metricsweep /home/metricsweep/service /storage /data

WORKDIR /build
COPY pyproject.toml docker/worker.lock.txt README.md LICENSE ./
COPY workers ./workers
COPY orchestrator ./orchestrator
COPY dashboards ./dashboards
COPY api ./api
# torch's wheel for Linux brings CUDA, so that the same image trains with a GPU and without.
# Every file has the hash that docker/lock.py wrote.
RUN pip install --require-hashes -r worker.lock.txt \
    && pip install --no-deps --no-build-isolation .

USER metricsweep
WORKDIR /home/metricsweep
CMD ["python", "-m", "workers", "--help"]
