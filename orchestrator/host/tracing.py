"""Traces of our processes, sent to an OpenTelemetry collector if one is set."""

import hashlib
import logging
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping
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

END_SECONDS: Final = 3.0  # how long a process that ends waits for a collector that does not answer
_DELAY_MILLISECONDS: Final = 1_000
"""Before spans are sent, unless OTEL_BSP_SCHEDULE_DELAY is set; a slot may be ended soon after its training."""


class _Tracing:
    """The tracer of this process, if a collector is set."""

    tracer: "Tracer | None" = None
    provider: "TracerProvider | None" = None


_tracing: Final = _Tracing()
_given: Final[ContextVar[tuple[int, int] | None]] = ContextVar("given", default=None)
"""The ids of the trace and of the span that begins next, if they are not random."""


def begin_tracing(service: str, url: str) -> None:
    """Send traces of this process to the collector at `url`, if it is not empty.

    The `OTEL_` variables set sampling, headers, timeouts and so on. Raises MetricsweepError if the packages for it are
    not installed.
    """
    if not url or _tracing.tracer is not None:
        return
    try:
        split = urlsplit(url)
        provider = _provider(service, url if split.path.strip("/") else split._replace(path="/v1/traces").geturl())
    except ImportError as error:
        message = f"METRICSWEEP_TRACES_URL needs `pip install 'metricsweep[traces]'`: {error}"
        raise MetricsweepError(message) from error
    _tracing.tracer, _tracing.provider = provider.get_tracer("metricsweep"), provider


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

    delay = None if "OTEL_BSP_SCHEDULE_DELAY" in os.environ else _DELAY_MILLISECONDS
    resource = Resource.create({"service.name": f"metricsweep-{service}", "host.name": platform.node()})
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url), schedule_delay_millis=delay))
    return provider


def end_tracing() -> None:
    """Send the last spans, and end tracing after a few seconds even if the collector does not answer."""
    provider, _tracing.tracer, _tracing.provider = _tracing.provider, None, None
    if provider is not None:
        sending = threading.Thread(target=provider.shutdown, daemon=True)
        sending.start()
        sending.join(END_SECONDS)


class Noted:
    """The trace span of some work, which does nothing if traces are not sent."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def note(self, **facts: Any) -> None:
        """Set attributes of the span, with the prefix `metricsweep.`."""
        self.note_all({f"metricsweep.{name}": value for name, value in facts.items()})

    def note_all(self, facts: Mapping[str, Any]) -> None:
        """Set those attributes of the span that are not None."""
        if self._span is not None:
            self._span.set_attributes({name: value for name, value in facts.items() if value is not None})

    def rename(self, name: str) -> None:
        """Change the name of the span."""
        if self._span is not None:
            self._span.update_name(name)

    def fail(self, why: str) -> None:
        """Set the status of the span to an error."""
        if self._span is not None:
            from opentelemetry.trace import Status, StatusCode

            self._span.set_status(Status(StatusCode.ERROR, why[:1_000]))


@contextmanager
def span(name: str, **facts: Any) -> Iterator[Noted]:
    """Trace the work of this context as a span, with these facts and the ids of the log."""
    with _within(lambda tracer: tracer.start_span(name)) as noted:
        noted.note(**{**ids_of_now(), **facts})
        yield noted


@contextmanager
def request_span(name: str, headers: Mapping[str, str]) -> Iterator[Noted]:
    """Trace the answer to a request, as a part of the trace in its headers."""

    def begin(tracer: "Tracer") -> "Span":
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = TraceContextTextMapPropagator().extract(headers)
        return tracer.start_span(name, context=context, kind=SpanKind.SERVER)

    with _within(begin) as noted:
        yield noted


@contextmanager
def attempt_span(training: str, attempt: str, **facts: Any) -> Iterator[Noted]:
    """Trace an attempt in the process that trains. All attempts at a training are in one trace."""

    def begin(tracer: "Tracer") -> "Span":
        from opentelemetry.context import Context

        token = _given.set(_ids(training, attempt))
        try:
            return tracer.start_span("attempt", context=Context())
        finally:
            _given.reset(token)

    with _within(begin) as noted:
        noted.note(training=training, attempt=attempt, **facts)
        yield noted


@contextmanager
def span_of_attempt(name: str, training: str, attempt: str) -> Iterator[Noted]:
    """Trace work for an attempt in another process, as a part of the attempt's trace."""

    def begin(tracer: "Tracer") -> "Span":
        from opentelemetry.sdk.trace.sampling import Decision
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        trace, begun = _ids(training, attempt)
        assert _tracing.provider is not None
        sampled = _tracing.provider.sampler.should_sample(None, trace, "attempt").decision
        flags = TraceFlags.SAMPLED if sampled is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT
        parent = SpanContext(trace, begun, is_remote=True, trace_flags=TraceFlags(flags))
        return tracer.start_span(name, context=set_span_in_context(NonRecordingSpan(parent)))

    with _within(begin) as noted:
        noted.note(**ids_of_now())
        yield noted


@contextmanager
def _within(begin: Callable[["Tracer"], "Span"]) -> Iterator[Noted]:
    """Work in a span. It gets only the type of an error, since the text may have a secret."""
    if _tracing.tracer is None:
        yield Noted()
        return
    from opentelemetry.trace import use_span

    begun = begin(_tracing.tracer)
    with use_span(begun, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        noted = Noted(begun)
        try:
            yield noted
        except Exception as error:
            noted.fail(type(error).__name__)
            raise


def _ids(training: str, attempt: str) -> tuple[int, int]:
    """The ids of the trace and of the span; hashed, since samplers need uniform bits, unlike those of UUIDs."""
    trace, begun = (hashlib.sha256(uid.encode()).digest() for uid in (training, attempt))
    return int.from_bytes(trace[:16]), int.from_bytes(begun[:8])
