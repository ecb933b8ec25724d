"""Metrics of the service and its requests in Prometheus' format, and a trace span for each request."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.host.tracing import request_span, traced
from orchestrator.service.service import Service
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import Gauges, SlotView, WaitReason
from orchestrator.views.states import SweepState, TrialState

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNROUTED: Final = "none"
"""The route of what was refused before it had one, or has none: a path that somebody made up is no label."""


def histogram(registry: CollectorRegistry) -> Histogram:
    """The histogram of one process."""
    return Histogram(
        "metricsweep_request_duration_seconds",
        "Time until the answer to a request began, by the template of its route.",
        ("route", "method", "status"),
        buckets=BUCKETS,
        registry=registry,
    )


class Latency:
    """Outermost ASGI middleware; a stream that lasts for hours counts until its first byte."""

    def __init__(self, app: ASGIApp, seconds: Histogram) -> None:
        self.app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note when its answer began."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start" and not status:
                status = message["status"]
                method = scope["method"] if scope["method"] in METHODS else "other"
                route = getattr(scope.get("route"), "path", None) or UNROUTED
                self._seconds.labels(route, method, str(status)).observe(time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, noted)


UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""What supervisors and Prometheus ask for every few seconds."""
NOUNS: Final = {"/sweeps/{id}": "sweep", "/trials/{id}": "trial"}
"""What the number in an address names."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # what a span has room for; of a longer one there is no sweep


class Spans:
    """ASGI middleware; a stream of events, which lasts for hours, is left out, as `is_stream` knows it."""

    def __init__(self, app: ASGIApp, is_stream: Callable[[str, str], bool]) -> None:
        self.app = app
        self._is_stream = is_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and trace it until its last byte."""
        asked = scope["type"] == "http" and scope["path"] not in UNTRACED
        if not traced() or not asked or self._is_stream(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "other"
        headers = Headers(scope=scope)
        with request_span(method, headers) as noted:

            async def observed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    noted.note_all(_answered(scope, message, method))
                    if route := getattr(scope.get("route"), "path", None):
                        noted.rename(f"{method} {route}")
                    if message["status"] >= 500:
                        noted.fail(f"answered {message['status']}")
                await send(message)

            await self.app(scope, receive, observed)


def _answered(scope: Scope, message: Message, method: str) -> Mapping[str, Any]:
    """What is known once the answer begins, by the names that OpenTelemetry has for it and by ours."""
    sent, route = Headers(raw=message["headers"]), getattr(scope.get("route"), "path", None)
    number = str(scope.get("path_params", {}).get("id", ""))
    named = [noun for start, noun in NOUNS.items() if start in (route or "") and _NUMBER.fullmatch(number)]
    return {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": message["status"],
        "url.path": scope["path"],
        "metricsweep.request": sent.get("x-request-id"),
        "metricsweep.location": sent["location"].partition("?")[0] if "location" in sent else None,
        **{f"metricsweep.{noun}": int(number) for noun in named},
    }


CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_RESOURCES: Final = {"CPU": ("cpus", "CPUs"), "GPU": ("gpus", "GPUs"), "memory": ("memory_bytes", "Bytes of memory")}


class Exposition:
    """The metrics of one application; every process of the API has its own, with the same gauges of the database."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self.requests = histogram(self._registry)
        ProcessCollector(registry=self._registry)
        self._registry.register(_Shared(service))

    def text(self) -> bytes:
        """All of them."""
        return generate_latest(self._registry)


class _Shared(Collector):
    """What is read from the database and the disk when somebody asks, from what was remembered."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would ask the database when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics; without a database those that need none."""
        try:
            entry = self._service.operations.gauges()
        except UnavailableError:
            entry = None
        yield _one("metricsweep_database_up", "1 where the database answers.", float(entry is not None))
        if entry is not None:
            age = time.monotonic() - entry.computed
            yield _one("metricsweep_collection_age_seconds", "Age of what was read from the database.", age)
            yield _one("metricsweep_collection_duration_seconds", "How long reading it took.", entry.took)
            gauges = entry.value
            yield from _states(gauges)
            yield from _slots(gauges)
            yield from _lags(gauges)
            yield from _quotas(gauges)
        yield from self._disk()

    def _disk(self) -> Iterator[Metric]:
        free = GaugeMetricFamily("metricsweep_disk_free_bytes", "Room on the disk of a folder.", labels=["place"])
        size = GaugeMetricFamily("metricsweep_disk_size_bytes", "Size of the disk of a folder.", labels=["place"])
        for place in self._service.operations.places():
            free.add_metric([place.name], place.free_bytes)
            size.add_metric([place.name], place.size_bytes)
        yield from (free, size)


def _states(gauges: Gauges) -> Iterator[Metric]:
    sweeps = GaugeMetricFamily("metricsweep_sweeps", "Sweeps by state.", labels=["state"])
    trials = GaugeMetricFamily("metricsweep_trials", "Trials by state.", labels=["state"])
    queue = GaugeMetricFamily("metricsweep_queue_trials", "Trials that wait, by what for.", labels=["reason"])
    attempts = GaugeMetricFamily(
        "metricsweep_attempts", "Attempts by what came of them, and why they failed.", labels=["outcome", "reason"]
    )
    for state in SweepState:
        sweeps.add_metric([state], gauges.sweeps.get(state, 0))
    for trial_state in TrialState:
        trials.add_metric([trial_state], gauges.trials.get(trial_state, 0))
    for reason in WaitReason:
        queue.add_metric([reason], gauges.waiting.get(reason, 0))
    for (outcome, cause), count in gauges.attempts.items():
        attempts.add_metric([outcome, cause or "none"], count)
    yield from (sweeps, trials, queue, attempts)


def _slots(gauges: Gauges) -> Iterator[Metric]:
    slots = GaugeMetricFamily("metricsweep_slots", "Slots by what they do.", labels=["state"])
    busy = sum(slot.trains is not None for slot in gauges.slots)
    slots.add_metric(["training"], busy)
    slots.add_metric(["idle"], len(gauges.slots) - busy)
    yield slots
    use = GaugeMetricFamily(
        "metricsweep_slot_utilisation_ratio", "Share of what the nodes offer that slots which train hold.",
        labels=["resource"],
    )  # fmt: skip
    for resource, (unit, words) in _RESOURCES.items():
        offered, held = gauges.offered.get(resource, 0.0), gauges.held.get(resource, 0.0)
        yield _one(f"metricsweep_cluster_{unit}", f"{words} that the nodes offer.", offered)
        yield _one(f"metricsweep_training_{unit}", f"{words} that slots which train hold.", held)
        if offered:
            use.add_metric([resource.lower()], held / offered)
    yield use
    yield from _usage(gauges.slots)


def _usage(slots: Iterable[SlotView]) -> Iterator[Metric]:
    labels = ["host", "slot"]
    memory = GaugeMetricFamily("metricsweep_slot_memory_bytes", "Memory of a slot's process.", labels=labels)
    cpus = GaugeMetricFamily("metricsweep_slot_busy_cpus", "CPUs that a slot's process keeps busy.", labels=labels)
    of_gpu = [*labels, "gpu"]
    used = GaugeMetricFamily("metricsweep_slot_gpu_memory_used_bytes", "Memory used of a slot's GPU.", labels=of_gpu)
    size = GaugeMetricFamily("metricsweep_slot_gpu_memory_bytes", "Memory of a slot's GPU.", labels=of_gpu)
    busy = GaugeMetricFamily("metricsweep_slot_gpu_busy_ratio", "Share of time in which it computed.", labels=of_gpu)
    for slot in slots:
        if slot.usage is None:
            continue
        where = [slot.host, slot.short_name]
        memory.add_metric(where, slot.usage.memory_bytes)
        cpus.add_metric(where, slot.usage.cpus)
        for gpu in slot.usage.gpus or ():
            used.add_metric([*where, str(gpu.index)], gpu.memory_used_bytes)
            size.add_metric([*where, str(gpu.index)], gpu.memory_bytes)
            if gpu.busy is not None:
                busy.add_metric([*where, str(gpu.index)], gpu.busy)
    yield from (memory, cpus, used, size, busy)


def _quotas(gauges: Gauges) -> Iterator[Metric]:
    """Of projects alone: people are not named."""
    labels = ["project", "resource"]
    used = GaugeMetricFamily("metricsweep_quota_used", "What a project with a quota uses of it.", labels=labels)
    most = GaugeMetricFamily("metricsweep_quota", "What a project may use at most.", labels=labels)
    for one in gauges.quotas:
        for resource, (_, taken, limit) in zip(("slots", "gpu_hours", "cpu_hours"), one.amounts, strict=True):
            used.add_metric([one.name, resource], taken)
            if limit is not None:
                most.add_metric([one.name, resource], limit)
    yield from (used, most)


def _lags(gauges: Gauges) -> Iterator[Metric]:
    backlog = gauges.backlog
    yield _one("metricsweep_mlflow_backlog_runs", "Runs that MLflow does not show as they are.", backlog.runs)
    yield _one("metricsweep_mlflow_failing_runs", "Of these, those that it refused.", backlog.failing)
    yield _one("metricsweep_mlflow_lag_seconds", "How long the oldest of these has waited.", backlog.seconds)
    deliveries = gauges.deliveries
    yield _one("metricsweep_webhook_waiting_deliveries", "Events that the webhook has not got yet.", deliveries.waiting)
    yield _one("metricsweep_webhook_failing_deliveries", "Of these, those that it did not take.", deliveries.failing)
    yield _one("metricsweep_webhook_given_up_deliveries", "Given up within a week.", deliveries.given_up)
    yield _one("metricsweep_webhook_lag_seconds", "How long the oldest of these has waited.", deliveries.seconds)
    yield _one(
        "metricsweep_report_lag_seconds",
        "How long the oldest message of a slot that is not recorded has waited.",
        gauges.report_lag,
    )
    if gauges.heartbeat is not None:
        yield _one(
            "metricsweep_conductor_heartbeat_age_seconds",
            "Time since a conductor renewed its lease.",
            gauges.heartbeat,
        )


def _one(name: str, said: str, value: float) -> Metric:
    return GaugeMetricFamily(name, said, value=value)
