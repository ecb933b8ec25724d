"""Traces: what our processes did and how long it took, told to an OpenTelemetry collector where one is named."""

import hashlib
import logging
import os
import platform
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from orchestrator.host.logs import ids_of_now
from orchestrator.views.errors import MetricsweepError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

END_SECONDS: Final = 3.0
"""What a process that ends gives a collector that is away; its own patience is ten seconds, and ours with it less."""
DELAY_MILLISECONDS: Final = 1_000
"""A slot may be ended soon after its training has; OTEL_BSP_SCHEDULE_DELAY says otherwise."""


class _Told:
    """Who is told, of which a process has one, as of its log; none: nobody."""

    tracer: "Tracer | None" = None
    provider: "TracerProvider | None" = None


_told: Final = _Told()
_given: Final[ContextVar[tuple[int, int] | None]] = ContextVar("given", default=None)
"""The ids of the trace and of the span that begins next, where these are known beforehand."""


def begin_tracing(service: str, url: str) -> None:
    """Tell the collector at `url` what this process does from now on; without one, nobody.

    Raises MetricsweepError where the packages for it are not installed. Sampling, headers, patience and so on are as
    the `OTEL_` variables say.
    """
    if not url or _told.tracer is not None:
        return
    try:
        split = urlsplit(url)
        provider = _provider(service, url if split.path.strip("/") else split._replace(path="/v1/traces").geturl())
    except ImportError as error:
        said = f"METRICSWEEP_TRACES_URL needs `pip install 'metricsweep[traces]'`: {error}"
        raise MetricsweepError(said) from error
    _told.tracer, _told.provider = provider.get_tracer("metricsweep"), provider


def _provider(service: str, url: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            given = _given.get()
            return given[0] if given else super().generate_trace_id()

        def generate_span_id(self) -> int:
            given = _given.get()
            return given[1] if given else super().generate_span_id()

    delay = None if "OTEL_BSP_SCHEDULE_DELAY" in os.environ else DELAY_MILLISECONDS
    resource = Resource.create({"service.name": f"metricsweep-{service}", "host.name": platform.node()})
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url), schedule_delay_millis=delay))
    return provider


def end_tracing() -> None:
    """Tell what is left, and nothing more; a collector that is away keeps nobody."""
    provider, _told.tracer, _told.provider = _told.provider, None, None
    if provider is not None:
        telling = threading.Thread(target=provider.shutdown, daemon=True)
        telling.start()
        telling.join(END_SECONDS)


def traced() -> bool:
    """Whether anybody is told."""
    return _told.tracer is not None


class Noted:
    """What is being done, and what can be noted of it; nothing where nobody is told."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note(self, **facts: Any) -> None:
        """Note facts, each under `metricsweep.` and its name."""
        self.note_all({f"metricsweep.{name}": value for name, value in facts.items()})

    def note_all(self, facts: Mapping[str, Any]) -> None:
        """Note facts under these names; what is None is left out."""
        if self._span is not None:
            self._span.set_attributes({name: value for name, value in facts.items() if value is not None})

    def rename(self, name: str) -> None:
        """Say what it is once that is known."""
        if self._span is not None:
            self._span.update_name(name)

    def fail(self, why: str) -> None:
        """Say that it went wrong."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR, why[:1_000]))


@contextmanager
def _within(begun: "Span") -> Iterator[Noted]:
    """Do something in a span. Of what is raised only the kind is told: its text may hold a secret, or a recipe."""
    from opentelemetry.trace import use_span

    with use_span(begun, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        noted = Noted(begun)
        try:
            yield noted
        except Exception as error:
            noted.fail(type(error).__name__)
            raise


@contextmanager
def span(name: str, **facts: Any) -> Iterator[Noted]:
    """Trace what is done within, with these facts and the ids that a line of the log would have."""
    tracer = _told.tracer
    if tracer is None:
        yield Noted()
        return
    with _within(tracer.start_span(name)) as noted:
        noted.note(**{**ids_of_now(), **facts})
        yield noted


@contextmanager
def request_span(name: str, headers: Mapping[str, str]) -> Iterator[Noted]:
    """Trace the answer to a request, as a part of what its sender traces where the headers say so."""
    tracer = _told.tracer
    if tracer is None:
        yield Noted()
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract(headers)
    with _within(tracer.start_span(name, context=context, kind=SpanKind.SERVER)) as noted:
        yield noted


@contextmanager
def attempt_span(training: str, attempt: str, **facts: Any) -> Iterator[Noted]:
    """Trace an attempt where it is made. All attempts at a training are one trace, whoever tells of them."""
    tracer = _told.tracer
    if tracer is None:
        yield Noted()
        return
    from opentelemetry.context import Context

    token = _given.set(_ids(training, attempt))
    try:
        begun = tracer.start_span("attempt", context=Context())
    finally:
        _given.reset(token)
    with _within(begun) as noted:
        noted.note(training=training, attempt=attempt, **facts)
        yield noted


@contextmanager
def span_of_attempt(name: str, training: str, attempt: str) -> Iterator[Noted]:
    """Trace what somebody else does for an attempt, as a part of it."""
    tracer, provider = _told.tracer, _told.provider
    if tracer is None or provider is None:
        yield Noted()
        return
    from opentelemetry.sdk.trace.sampling import Decision
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    trace, begun = _ids(training, attempt)
    sampled = provider.sampler.should_sample(None, trace, "attempt").decision is Decision.RECORD_AND_SAMPLE
    flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
    within = set_span_in_context(NonRecordingSpan(SpanContext(trace, begun, is_remote=True, trace_flags=flags)))
    with _within(tracer.start_span(name, context=within)) as noted:
        noted.note(**ids_of_now())
        yield noted


def _ids(training: str, attempt: str) -> tuple[int, int]:
    """Of the trace and of its span. Hashed, since samplers count on even bits, which those of UUIDs are not."""
    trace, begun = (hashlib.sha256(uid.encode()).digest() for uid in (training, attempt))
    return int.from_bytes(trace[:16]), int.from_bytes(begun[:8])
