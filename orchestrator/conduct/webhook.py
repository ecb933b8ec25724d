"""Sends webhook messages: signed, within a bounded time, and again later where one failed."""

import asyncio
import json
import logging
import random
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx

from orchestrator.host.checks import is_loopback, proxy_fault, proxy_variable
from orchestrator.host.identity import signature
from orchestrator.host.logs import about
from orchestrator.host.tracing import span
from orchestrator.record.store import Store, Writer
from orchestrator.settings import Secrets, Settings
from orchestrator.views.operations import Delivery

SECONDS: Final = 10.0
"""The limit for one message: DNS, connecting, sending, and the head of the answer; the body is not read."""
_MOST_RETRY_AFTER: Final = 3_600.0
_GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Reply:
    """The webhook's reply to one message."""

    taken: bool
    message: str
    gone: bool = False  # the receiver wants no more messages
    seconds: float = 0.0  # the pause that the receiver asks for


class Webhook:
    """The receiver of webhook messages, and its keys. Logs name only its host, since the path may be a secret."""

    def __init__(self, url: str, keys: Callable[[], tuple[bytes, ...]]) -> None:
        self._url, self._keys = url, keys
        self.host = urlsplit(url).hostname or ""

    @classmethod
    def named_by(cls, settings: Settings) -> Self | None:
        """The webhook of the settings, or `None`; raises MetricsweepError if its secret cannot be read."""
        if settings.webhook_url is None:
            return None
        keys = partial(getattr, Secrets(settings), "webhook_keys")
        keys()
        return cls(settings.webhook_url.get_secret_value(), keys)

    def try_out(self, pages: str) -> Reply:
        """Send a message of the type `test`, once; `pages` is the address of the service's pages."""
        return self.post(f"msg_{uuid.uuid4()}", body("test", datetime.now(UTC), {"url": pages}))

    def post(self, message: str, body: bytes) -> Reply:
        """Send one webhook message; errors are in the reply."""
        now = int(time.time())
        headers = {
            "content-type": "application/json",
            "user-agent": "metricsweep",
            "webhook-id": message,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(self._keys(), message, now, body),
        }
        proxied = None if is_loopback(self.host) else proxy_variable(self._url)
        if not is_loopback(self.host) and (fault := proxy_fault()):
            return Reply(False, f"cannot be reached: {fault}")
        try:
            return asyncio.run(self._post(headers, body))
        except TimeoutError:
            return Reply(False, f"no answer within {SECONDS:.0f} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            through = f" through the proxy that {proxied} names" if proxied else ""
            return Reply(False, f"cannot be reached{through}: {type(error).__name__}")  # its text may have the address

    async def _post(self, headers: dict[str, str], body: bytes) -> Reply:
        # httpx limits each step only: a receiver that sends a byte now and then would hold the connection for ever.
        # A receiver on this machine needs no proxy, but the certificates that the environment names count for it too.
        context = httpx.create_ssl_context()
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(timeout=SECONDS, trust_env=not is_loopback(self.host), verify=context) as client,
            client.stream("POST", self._url, content=body, headers=headers, follow_redirects=False) as response,
        ):
            return _reply(response)


def body(event: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """The JSON body of a webhook message."""
    moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"type": event, "timestamp": moment, "data": data}).encode()


def _reply(response: httpx.Response) -> Reply:
    status = response.status_code
    if response.is_success:
        return Reply(True, f"answered {status}")
    if response.is_redirect:
        return Reply(False, f"answered {status}, and redirects are not followed")
    if status == _GONE:
        return Reply(False, "answered 410: it wants no more messages", gone=True)
    after = response.headers.get("retry-after", "")
    seconds = min(float(after), _MOST_RETRY_AFTER) if after.isascii() and after.isdigit() else 0.0
    return Reply(False, f"answered {status}", seconds=seconds)


log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 5.0
MOST_SECONDS: Final = 3_600.0
GIVEN_UP_SECONDS: Final = 3 * 86_400.0
"""How long after its event a delivery is tried."""
AT_ONCE: Final = 20


class Notifier:
    """Delivers webhook messages for the conductor, in its own thread. `url` is the address of the pages."""

    def __init__(self, store: Store, writer: Writer, webhook: Webhook, url: str) -> None:
        self._store, self._writer, self._webhook, self._url = store, writer, webhook, url

    def forward(self) -> bool:
        """Send due webhook messages until one fails; true if all due messages were sent. Raises FencedError.

        A message that was sent but not recorded before a kill is sent again, with the same id.
        """
        due = self._store.deliveries.due(AT_ONCE)
        return bool(due) and all(self._send(delivery) for delivery in due)

    def _send(self, delivery: Delivery) -> bool:
        with about(sweep=delivery.sweep), span("webhook", event=delivery.event) as noted:
            data = {**delivery.message, "url": f"{self._url}/sweeps/{delivery.sweep}"}
            reply = self._webhook.post(f"msg_{delivery.uid}", body(delivery.event, delivery.at, data))
            if reply.taken:
                self._writer.deliveries.delivered(delivery.id)
            else:
                noted.fail(reply.message)
                self._failed(delivery, reply)
        return reply.taken

    def _failed(self, delivery: Delivery, reply: Reply) -> None:
        seconds = max(reply.seconds, pause(delivery.tries))
        what = f"the webhook at {self._webhook.host} did not take {delivery.event} of sweep {delivery.sweep}"
        if reply.gone or delivery.age + seconds > GIVEN_UP_SECONDS:
            log.error("%s, and is not tried again: it %s", what, reply.message)
            self._writer.deliveries.give_up(delivery.id, reply.message)
        else:
            log.warning("%s: it %s; trying again in %.0f s", what, reply.message, seconds)
            self._writer.deliveries.postpone(delivery.id, reply.message, seconds)


def pause(tries: int) -> float:
    """Seconds until a failed webhook message is tried again: doubled with each try, and randomized."""
    return min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
