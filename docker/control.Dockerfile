# The control image: API, conductor, MLflow server and Ray head. It holds no torch; trainings run in the worker image.
# Build from the top level: docker build -f docker/control.Dockerfile -t metricsweep-control .
ARG PYTHON=3.11
ARG BASE=python:${PYTHON}-slim
FROM ${BASE}

ENV PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# The same number in both images: they write to one storage volume. New volumes take over these folders' owner.
RUN useradd --uid 1000 --create-home metricsweep \
    && install -d -o metricsweep -g metricsweep /home/metricsweep/service /storage /data /mlflow \
    && install -d -m 700 -o metricsweep -g metricsweep /run/mlflow

WORKDIR /build
COPY pyproject.toml docker/control.lock.txt README.md LICENSE ./
COPY workers ./workers
COPY orchestrator ./orchestrator
COPY dashboards ./dashboards
COPY api ./api
COPY docs ./docs
COPY sweeps ./sweeps
# Every file has the hash that docker/lock.py wrote. The guide at /docs/guide/ is built from what is installed, and then
# goes with it; its tools do not stay.
RUN pip install --require-hashes -r control.lock.txt \
    && pip install --no-deps --no-build-isolation . \
    && sphinx-build -q -c docs/site docs dashboards/guide \
    && pip install --no-deps --no-build-isolation --force-reinstall . \
    && pip uninstall --yes sphinx myst-parser furo

USER metricsweep
WORKDIR /home/metricsweep
CMD ["python", "-m", "api"]
