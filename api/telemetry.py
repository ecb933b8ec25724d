"""Metrics of the service and its requests in Prometheus' format, and a trace span for each request."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.middleware import is_stream
from orchestrator.host.tracing import Noted, request_span
from orchestrator.service.service import Service
from orchestrator.views.errors import UnavailableError
from orchestrator.views.operations import Gauges, SlotView, WaitReason
from orchestrator.views.states import SweepState, TrialState

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_UNROUTED: Final = "none"
"""The route of requests without one, since any path may be requested, and each would become a label."""


_UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that supervisors and Prometheus request every few seconds."""
_NOUNS: Final = {"/sweeps/{id}": "sweep", "/trials/{id}": "trial"}
"""What the number in a path names."""
_NUMBER: Final = re.compile(r"[0-9]{1,18}")  # an attribute of a span has 64 bits


class RequestTelemetry:
    """Outermost ASGI middleware that measures the time until an answer begins, and traces requests except streams."""

    def __init__(self, app: ASGIApp, seconds: Histogram) -> None:
        self.app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request; its span lasts until the last byte of the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        method = scope["method"] if scope["method"] in METHODS else "other"
        untraced = scope["path"] in _UNTRACED or is_stream(scope["method"], scope["path"])
        with nullcontext(Noted()) if untraced else request_span(method, Headers(scope=scope)) as span:

            async def observed(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route, status = getattr(scope.get("route"), "path", None), message["status"]
                    self._seconds.labels(route or _UNROUTED, method, str(status)).observe(time.perf_counter() - began)
                    span.note_all(_attributes(scope, message, method, route))
                    if route:
                        span.rename(f"{method} {route}")
                    if status >= 500:
                        span.fail(f"answered {status}")
                await send(message)

            await self.app(scope, receive, observed)


def _attributes(scope: Scope, message: Message, method: str, route: str | None) -> Mapping[str, Any]:
    """The attributes of a span that are known when the answer begins, by OpenTelemetry's names and by ours."""
    sent = Headers(raw=message["headers"])
    number = str(scope.get("path_params", {}).get("id", ""))
    named = [noun for start, noun in _NOUNS.items() if start in (route or "") and _NUMBER.fullmatch(number)]
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
    """The Prometheus metrics of one API process. The gauges of the database are the same in every process."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "metricsweep_request_duration_seconds",
            "Time until the answer to a request began, by the template of its route.",
            ("route", "method", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(_Shared(service))

    def text(self) -> bytes:
        """The text of all metrics in Prometheus' format."""
        return generate_latest(self._registry)


class _Shared(Collector):
    """Gauges of the database and the disks, read when they are requested; recent values are cached."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterable[Metric]:
        return []  # otherwise the registry would read the database when this is registered

    def collect(self) -> Iterator[Metric]:
        try:
            entry = self._service.operations.gauges()
        except UnavailableError:
            entry = None
        yield _gauge("metricsweep_database_up", "1 where the database answers.", float(entry is not None))
        if entry is not None:
            age = time.monotonic() - entry.computed
            yield _gauge("metricsweep_collection_age_seconds", "Age of what was read from the database.", age)
            yield _gauge("metricsweep_collection_duration_seconds", "How long reading it took.", entry.took)
            for group in (_states, _slots, _lags, _quotas):
                yield from group(entry.value)
        places = self._service.operations.places()
        free = [((place.name,), place.free_bytes) for place in places]
        yield _labelled("metricsweep_disk_free_bytes", "Room on the disk of a folder.", "place", free)
        size = [((place.name,), place.size_bytes) for place in places]
        yield _labelled("metricsweep_disk_size_bytes", "Size of the disk of a folder.", "place", size)


Samples = Iterable[tuple[Sequence[str], float]]
"""Values by their labels."""


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)


def _labelled(name: str, documentation: str, labels: str, samples: Samples) -> Metric:
    """A gauge with one value for each combination of the labels, whose names are separated by blanks."""
    gauge = GaugeMetricFamily(name, documentation, labels=labels.split())
    for values, value in samples:
        gauge.add_metric(values, value)
    return gauge


def _each(kinds: Iterable[str], counts: Mapping[Any, int]) -> Samples:
    return [((kind,), counts.get(kind, 0)) for kind in kinds]


def _states(gauges: Gauges) -> Iterator[Metric]:
    yield _labelled("metricsweep_sweeps", "Sweeps by state.", "state", _each(SweepState, gauges.sweeps))
    yield _labelled("metricsweep_trials", "Trials by state.", "state", _each(TrialState, gauges.trials))
    waiting = _each(WaitReason, gauges.waiting)
    yield _labelled("metricsweep_queue_trials", "Trials that wait, by what for.", "reason", waiting)
    attempts = [((outcome, cause or "none"), count) for (outcome, cause), count in gauges.attempts.items()]
    words = "Attempts by what came of them, and why they failed."
    yield _labelled("metricsweep_attempts", words, "outcome reason", attempts)


def _slots(gauges: Gauges) -> Iterator[Metric]:
    busy = sum(slot.trains is not None for slot in gauges.slots)
    slots = [(("training",), busy), (("idle",), len(gauges.slots) - busy)]
    yield _labelled("metricsweep_slots", "Slots by what they do.", "state", slots)
    use = []
    for resource, (unit, words) in _RESOURCES.items():
        offered, held = gauges.offered.get(resource, 0.0), gauges.used.get(resource, 0.0)
        yield _gauge(f"metricsweep_cluster_{unit}", f"{words} that the nodes offer.", offered)
        yield _gauge(f"metricsweep_training_{unit}", f"{words} that slots which train hold.", held)
        if offered:
            use.append(((resource.lower(),), held / offered))
    words = "Share of what the nodes offer that slots which train hold."
    yield _labelled("metricsweep_slot_utilisation_ratio", words, "resource", use)
    yield from _usage(gauges.slots)


def _usage(slots: Iterable[SlotView]) -> Iterator[Metric]:
    known = [((slot.host, slot.short_name), slot.usage) for slot in slots if slot.usage is not None]
    memory = [(slot, usage.memory_bytes) for slot, usage in known]
    yield _labelled("metricsweep_slot_memory_bytes", "Memory of a slot's process.", "host slot", memory)
    cpus = [(slot, usage.cpus) for slot, usage in known]
    yield _labelled("metricsweep_slot_busy_cpus", "CPUs that a slot's process keeps busy.", "host slot", cpus)
    gpus = [((*slot, str(gpu.index)), gpu) for slot, usage in known for gpu in usage.gpus or ()]
    labels = "host slot gpu"
    used = [(place, gpu.memory_used_bytes) for place, gpu in gpus]
    yield _labelled("metricsweep_slot_gpu_memory_used_bytes", "Memory used of a slot's GPU.", labels, used)
    size = [(place, gpu.memory_bytes) for place, gpu in gpus]
    yield _labelled("metricsweep_slot_gpu_memory_bytes", "Memory of a slot's GPU.", labels, size)
    busy = [(place, gpu.busy) for place, gpu in gpus if gpu.busy is not None]
    yield _labelled("metricsweep_slot_gpu_busy_ratio", "Share of time in which it computed.", labels, busy)


def _quotas(gauges: Gauges) -> Iterator[Metric]:
    """The quotas of projects. Those of users are left out, so that people are not named."""
    amounts = [
        ((quota.name, resource), used, limit)
        for quota in gauges.quotas
        for resource, (_, used, limit) in zip(("slots", "gpu_hours", "cpu_hours"), quota.amounts, strict=True)
    ]
    labels = "project resource"
    taken = [(place, used) for place, used, _ in amounts]
    yield _labelled("metricsweep_quota_used", "What a project with a quota uses of it.", labels, taken)
    most = [(place, limit) for place, _, limit in amounts if limit is not None]
    yield _labelled("metricsweep_quota", "What a project may use at most.", labels, most)


def _lags(gauges: Gauges) -> Iterator[Metric]:
    runs, events = gauges.backlog, gauges.deliveries
    for name, documentation, value in (
        ("mlflow_backlog_runs", "Runs that MLflow does not show as they are.", runs.runs),
        ("mlflow_failing_runs", "Of these, those that it refused.", runs.failing),
        ("mlflow_lag_seconds", "How long the oldest of these has waited.", runs.seconds),
        ("webhook_waiting_deliveries", "Events that the webhook has not got yet.", events.waiting),
        ("webhook_failing_deliveries", "Of these, those that it did not take.", events.failing),
        ("webhook_given_up_deliveries", "Given up within a week.", events.given_up),
        ("webhook_lag_seconds", "How long the oldest of these has waited.", events.seconds),
        ("report_lag_seconds", "How long the oldest message of a slot that is not recorded has waited.",
         gauges.report_lag),
        ("conductor_heartbeat_age_seconds", "Time since a conductor renewed its lease.", gauges.heartbeat),
    ):  # fmt: skip
        if value is not None:
            yield _gauge(f"metricsweep_{name}", documentation, value)
