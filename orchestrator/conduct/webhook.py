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

from orchestrator.host.checks import is_loopback
from orchestrator.host.identity import signature
from orchestrator.host.logs import about
from orchestrator.host.proxies import proxy_fault, proxy_variable
from orchestrator.host.tracing import span
from orchestrator.record.store import Store, Writer
from orchestrator.settings import Secrets, Settings
from orchestrator.views.operations import Delivery

SECONDS: Final = 10.0
"""For all of one message: finding the host, connecting, sending, and the head of the answer; its body is not read."""
MOST_SECONDS_ASKED: Final = 3_600.0
_GONE: Final = 410


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one try: taken, or why not."""

    taken: bool
    said: str
    gone: bool = False  # whoever answers asks not to be told again
    seconds: float = 0.0  # for which he asks to be left alone


class Webhook:
    """Whom to tell, and by which keys. Of the address only the host is ever said: its path may be a secret."""

    def __init__(self, url: str, keys: Callable[[], tuple[bytes, ...]]) -> None:
        self._url, self._keys = url, keys
        self.host = urlsplit(url).hostname or ""

    @classmethod
    def named_by(cls, settings: Settings) -> Self | None:
        """That of the settings; none: they name none. Raises MetricsweepError where its secret cannot be read."""
        if settings.webhook_url is None:
            return None
        keys = partial(getattr, Secrets(settings), "webhook_keys")
        keys()
        return cls(settings.webhook_url.get_secret_value(), keys)

    def try_out(self, pages: str) -> Reply:
        """Send a message of the type `test`, once; `pages` is the address of the service's pages."""
        return self.post(f"msg_{uuid.uuid4()}", body("test", datetime.now(UTC), {"url": pages}))

    def post(self, message: str, body: bytes) -> Reply:
        """Send one message; whatever goes wrong is in the reply."""
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
        # httpx bounds each of the steps, and somebody who sends a byte at times would keep us for ever. What is on this
        # machine needs no proxy; whose certificates are believed, the environment says of it too.
        known = httpx.create_ssl_context()
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(timeout=SECONDS, trust_env=not is_loopback(self.host), verify=known) as client,
        ):
            asking = client.stream("POST", self._url, content=body, headers=headers, follow_redirects=False)
            async with asking as response:
                return _reply(response)


def body(event: str, at: datetime, data: Mapping[str, Any]) -> bytes:
    """What a message says: of what type it is, when it happened, and what."""
    moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"type": event, "timestamp": moment, "data": data}).encode()


def _reply(response: httpx.Response) -> Reply:
    status = response.status_code
    if response.is_success:
        return Reply(True, f"answered {status}")
    if response.is_redirect:
        return Reply(False, f"answered {status}, and redirects are not followed")
    if status == _GONE:
        return Reply(False, "answered 410: it asks not to be told any more", gone=True)
    after = response.headers.get("retry-after", "")
    return Reply(False, f"answered {status}", seconds=min(float(after), MOST_SECONDS_ASKED) if _digits(after) else 0.0)


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


log = logging.getLogger(__name__)

FIRST_SECONDS: Final = 5.0
MOST_SECONDS: Final = 3_600.0
GIVEN_UP_SECONDS: Final = 3 * 86_400.0
"""How long after its event a delivery is still tried."""
AT_ONCE: Final = 20
DRAIN_SECONDS: Final = 10.0


class Notifier:
    """Works for the holder of the lease, in a thread of its own. `url` is the address of the pages."""

    def __init__(self, store: Store, writer: Writer, webhook: Webhook, url: str) -> None:
        self._store, self._writer, self._webhook, self._url = store, writer, webhook, url
        self._well = True  # the last try was taken, and none is under way

    def forward(self) -> bool:
        """Tell what is due, until something is not taken; whether there was anything and all was. Raises FencedError.

        What was told before a kill and not noted is told again, under the same id.
        """
        due = self._store.deliveries.due(AT_ONCE)
        return bool(due) and all(self._tell(one) for one in due)

    def beat(self) -> bool:
        """Do so, and come again."""
        self.forward()
        return True

    def drain(self) -> None:
        """Before leaving, tell what is left; what is not taken now, the next conductor tells."""
        deadline = time.monotonic() + DRAIN_SECONDS
        try:
            while self._well and time.monotonic() < deadline and self.forward():
                pass
        except Exception as error:  # the lease is given back all the same
            log.warning("the webhook was not told everything, which the next start does: %s", error)

    def _tell(self, one: Delivery) -> bool:
        self._well = False
        with about(sweep=one.sweep), span("webhook", event=one.event) as noted:
            data = {**one.said, "url": f"{self._url}/sweeps/{one.sweep}"}
            reply = self._webhook.post(f"msg_{one.uid}", body(one.event, one.at, data))  # the same at every try
            self._well = reply.taken
            if not reply.taken:
                noted.fail(reply.said)
            if reply.taken:
                self._writer.deliveries.delivered(one.id)
            else:
                self._not_taken(one, reply)
        return reply.taken

    def _not_taken(self, one: Delivery, reply: Reply) -> None:
        seconds = max(reply.seconds, pause(one.tries))
        what = f"{one.event} of sweep {one.sweep}"
        if reply.gone or one.age + seconds > GIVEN_UP_SECONDS:
            log.error("the webhook at %s is not told %s any more, it %s", self._webhook.host, what, reply.said)
            self._writer.deliveries.give_up(one.id, reply.said)
        else:
            said = "the webhook at %s was not told %s, it %s; trying again in %.0f s"
            log.warning(said, self._webhook.host, what, reply.said, seconds)
            self._writer.deliveries.postpone(one.id, reply.said, seconds)


def pause(tries: int) -> float:
    """Seconds until the next try, after so many in vain: doubled each time, and spread so that not all come at once."""
    return min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries, 20)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
