"""The notifier: tells the webhook what is due, and later again what it did not take."""

import logging
import random
import time
from typing import Final

from orchestrator.conduct.webhook import Reply, Webhook, body
from orchestrator.host.logs import about
from orchestrator.host.tracing import span
from orchestrator.record.store import Store, Writer
from orchestrator.views.operations import Delivery

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
