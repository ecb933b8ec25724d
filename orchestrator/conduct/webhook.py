"""The webhook: one signed message to the address that the settings name, within a bounded time."""

import asyncio
import json
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
from orchestrator.host.proxies import proxy_fault, proxy_variable
from orchestrator.settings import Secrets, Settings

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
