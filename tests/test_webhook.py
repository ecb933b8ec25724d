"""The webhook against real receivers: signed, sent once per event, tried again, given up, and never in the way."""

import ipaddress
import json
import logging
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import SecretStr, ValidationError

from orchestrator.conduct import webhook as notifiers
from orchestrator.conduct import webhook as webhooks
from orchestrator.conduct.webhook import Notifier, Webhook
from orchestrator.host.identity import keys_of, signature
from orchestrator.record.schema import delivery
from orchestrator.record.store import Store
from orchestrator.service.service import Service
from orchestrator.settings import Secrets, Settings, problems
from orchestrator.views.errors import MetricsweepError
from tests.inline_conductor import conduct, inline
from tests.ports import free_port
from tests.record.sample import lease, new_sweep
from tests.served import until
from tests.test_conductor import spec
from tests.webhook_receiver import PATH, SECRET, Receiver, receiving, status

OTHER = "whsec_" + "QUJD" * 10


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def told(settings: Settings, receiver: Receiver) -> Settings:
    """The settings of an installation that tells the receiver."""
    return named(settings, receiver.url)


def named(settings: Settings, url: str) -> Settings:
    return settings.model_copy(update={"webhook_url": SecretStr(url), "webhook_secret": SecretStr(SECRET)})


class Desk:
    """A conductor's notifier over a store in which sweeps fail at once."""

    def __init__(self, settings: Settings) -> None:
        self.store = Store.open(settings.database)
        self.writer = self.store.writer(lease(self.store))
        webhook = Webhook.named_by(settings)
        assert webhook is not None
        self.notifier = Notifier(self.store, self.writer, webhook, settings.address)

    def fail(self, name: str = "sample") -> int:
        number = self.store.submissions.add_sweep(new_sweep(name)).id
        self.writer.sweeps.fail(number, "no")
        return number

    def change(self, **values: Any) -> None:
        with self.store.database.writing() as connection:
            connection.execute(sa.update(delivery).values(values))

    def rows(self) -> list[Any]:
        with self.store.database.reading() as connection:
            return list(connection.execute(sa.select(delivery).order_by(delivery.c.id)))


@pytest.fixture
def desk(told: Settings, service: Service) -> Iterator[Desk]:
    made = Desk(told)
    yield made
    made.store.close()


def verified() -> Callable[[str, dict[str, str], bytes], bool]:
    """What docs/operating.md gives receivers."""
    text = Path("docs/operating.md").read_text(encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], scope)
    check: Callable[[str, dict[str, str], bytes], bool] = scope["verified"]
    return check


def test_the_signature_is_that_of_the_standards_example() -> None:
    said = signature(keys_of(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert said == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    both = keys_of(f"{OTHER} {SECRET}")
    assert signature(both, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}').endswith(f" {said}")


def test_the_error_of_a_wrong_setting_hides_its_value() -> None:
    for given, wrong in (
        ({"webhook_url": "http://hooks.example.org/x"}, "URL"),
        ({"webhook_url": "http://127.0.0.1.example.org/x"}, "URL"),
        ({"webhook_url": "file:///etc/passwd"}, "URL"),
        ({"webhook_url": "https://[broken/x"}, "URL"),
        ({"webhook_url": "https://hooks.example.org/hidden-path", "webhook_secret": ""}, "URL"),
        ({"webhook_secret": "whsec_hidden"}, "SECRET"),
        ({"webhook_secret": "hidden" * 10}, "SECRET"),
        ({"webhook_secret": f"{SECRET} whsec_*hidden*"}, "SECRET"),
    ):
        with pytest.raises(ValidationError) as error:
            Settings(**{"webhook_secret": SECRET, **given})
        (line,) = problems(error.value)
        assert line.split()[0] == f"METRICSWEEP_WEBHOOK_{wrong}", given
        assert not re.search("hidden|example|passwd", line + str(error.value))


def test_the_secret_may_stand_in_a_file_and_is_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    settings = Settings(webhook_url="https://hooks.example.org/hidden", webhook_secret_file=file)
    assert Secrets(settings).webhook_keys == keys_of(SECRET)
    assert {SECRET, "https://hooks.example.org/hidden"} <= set(Secrets(settings).hidden)
    assert "hidden" not in f"{settings!r} {settings}"
    for content, message in (("", "is empty"), (SECRET[:-4], "bytes in base64"), (None, "No such file")):
        wrong = tmp_path / message.replace(" ", "-")
        if content is not None:
            wrong.write_text(content)
        with pytest.raises(MetricsweepError, match=f"WEBHOOK_SECRET_FILE.*{message}"):
            Webhook.named_by(settings.model_copy(update={"webhook_secret_file": wrong}))
    assert Settings(webhook_url=" ", webhook_secret="").webhook_url is None


def test_the_end_of_a_sweep_is_sent_signed_and_small(service: Service, told: Settings, receiver: Receiver) -> None:
    sweep = service.submissions.submit(spec()).id
    conduct(told)
    (one,) = receiver.received
    assert verified()(SECRET, one.headers, one.body)
    assert not verified()(OTHER, one.headers, one.body)
    assert not verified()(SECRET, one.headers, one.body + b" ")
    assert not verified()(SECRET, {**one.headers, "webhook-timestamp": str(int(time.time()) - 400)}, one.body)
    assert one.headers["content-type"] == "application/json"
    counts = {"waiting": 0, "running": 0, "finished": 8, "failed": 0, "cancelled": 0, "pruned": 0}
    assert one.message["type"] == "sweep.finished"
    assert one.message["data"] == {
        "sweep": sweep, "name": "rates", "state": "finished", "trials": 8, "counts": counts,
        "url": f"{told.address}/sweeps/{sweep}",
    }  # fmt: skip
    conduct(told)  # an event is sent once
    assert len(receiver.received) == 1


def test_an_own_secret_and_the_address_are_never_logged(
    desk: Desk, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # as `python -m orchestrator` does
    receiver.answer = status(500)
    desk.fail()
    desk.notifier.forward()
    assert "127.0.0.1 did not take sweep.failed of sweep 1: it answered 500" in caplog.text
    assert PATH not in caplog.text
    assert SECRET[6:] not in caplog.text


def test_what_was_not_taken_is_tried_again_with_the_same_id(desk: Desk, receiver: Receiver) -> None:
    for answer, message, least in (
        (status(500), "answered 500", 2.5),
        (status(404), "answered 404", 2.5),
        (status(503, retry_after="120"), "answered 503", 119),
        (status(429, retry_after="999999999"), "answered 429", 3_599),
        (status(302, location="/elsewhere"), "answered 302, and redirects are not followed", 2.5),
        (status(307, location="/elsewhere"), "answered 307, and redirects are not followed", 2.5),
    ):
        receiver.answer = answer
        receiver.received.clear()
        desk.fail()
        assert not desk.notifier.forward()
        row = desk.rows()[-1]
        assert (row.state, row.tries, row.error) == ("waiting", 1, message)
        assert row.next_try - row.created > least, message
        assert not desk.notifier.forward()  # not due yet
        receiver.answer = status(200)
        desk.change(next_try=0)
        assert desk.notifier.forward()
        first, second = receiver.received
        assert [one.path for one in receiver.received] == [PATH, PATH], "no redirect was followed"
        assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
        assert desk.rows()[-1].state == "delivered"


def test_one_that_is_not_taken_holds_up_no_other(desk: Desk, receiver: Receiver) -> None:
    poison = desk.fail("poison")

    def picky(handler: BaseHTTPRequestHandler) -> None:
        status(400 if receiver.types[-1][1] == poison else 200)(handler)

    receiver.answer = picky
    others = [desk.fail("fine") for _ in range(3)]
    while desk.notifier.forward() or desk.store.deliveries.due(1):
        pass
    assert [row.state for row in desk.rows()] == ["waiting", *["delivered"] * 3]
    assert [sweep for _, sweep in receiver.types] == [poison, *others]


def test_410_is_given_up_at_once_and_anything_after_three_days(desk: Desk, receiver: Receiver) -> None:
    receiver.answer = status(410)
    desk.fail()
    desk.notifier.forward()
    assert [(row.state, row.tries) for row in desk.rows()] == [("given_up", 1)]
    receiver.answer = status(500)
    desk.fail()
    desk.change(created=delivery.c.created - notifiers.GIVEN_UP_SECONDS)
    desk.notifier.forward()
    assert [row.state for row in desk.rows()] == ["given_up", "given_up"]
    assert len(receiver.received) == 2
    backlog = desk.store.deliveries.backlog()
    assert (backlog.waiting, backlog.given_up, backlog.error) == (0, 2, "answered 500")


def test_a_receiver_that_is_away_or_drips_is_left(
    desk: Desk, receiver: Receiver, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 0.5)
    left = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        """A byte at a time: no single wait is long."""
        try:
            while not left.wait(0.05):
                handler.wfile.write(b"H")
                handler.wfile.flush()
        except OSError:
            left.set()

    receiver.answer = drip
    desk.fail()
    desk.notifier.forward()
    assert desk.rows()[0].error == "no answer within 0 s"
    assert left.wait(60), "the connection was closed"
    away = Webhook.named_by(named(settings, f"http://127.0.0.1:{free_port()}{PATH}"))
    assert away is not None
    assert away.post("msg_1", b"{}").message == "cannot be reached: ConnectError"


def test_a_receiver_that_hangs_does_not_delay_the_queue(
    service: Service, told: Settings, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "SECONDS", 120.0)  # the conductor would have to wait for that
    monkeypatch.setattr("orchestrator.conduct.conductor.PATIENCE_SECONDS", 0.1)
    answered = threading.Event()
    receiver.answer = lambda handler: status(204)(handler) if answered.wait(120) else None
    store = Store.open(told.database)
    conductor = inline(told, store)
    working = threading.Thread(target=conductor.conduct)
    working.start()
    try:
        service.commands.cancel(service.submissions.submit(spec()).id)
        until(lambda: bool(receiver.received), "the first end was told")
        second = service.submissions.submit(spec(name="second")).id
        until(lambda: service.sweeps.get(second).state == "finished", "the next sweep went its way meanwhile")
    finally:
        conductor.close()
        working.join(60)
        answered.set()
        store.close()
    assert not working.is_alive(), "nor does the conductor wait for it before it leaves"
    assert len(receiver.received) == 1


def test_a_conductor_that_is_killed_before_it_noted_the_answer_tells_it_again(
    service: Service, told: Settings, receiver: Receiver
) -> None:
    sweep = service.submissions.submit(spec()).id
    service.commands.cancel(sweep)
    running: list[subprocess.Popen[bytes]] = []
    killed = threading.Event()

    def kill(handler: BaseHTTPRequestHandler) -> None:
        """It sends the event and dies before our answer."""
        running[0].send_signal(signal.SIGKILL)
        killed.set()

    receiver.answer = kill
    environment = {
        **os.environ, "METRICSWEEP_HOME": str(told.home), "METRICSWEEP_ENGINE": "inline",
        "METRICSWEEP_LEASE_SECONDS": "1", "METRICSWEEP_TRAIN": told.train,
        "METRICSWEEP_WEBHOOK_URL": receiver.url, "METRICSWEEP_WEBHOOK_SECRET": SECRET,
    }  # fmt: skip
    running.append(subprocess.Popen([sys.executable, "-m", "orchestrator", "conduct"], env=environment))
    assert killed.wait(120)
    assert running[0].wait(120) == -signal.SIGKILL
    assert service.sweeps.get(sweep).state == "cancelled"
    receiver.answer = status(200)
    conduct(told)
    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert json.loads(first.body)["type"] == "sweep.cancelled"


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's certificate for 127.0.0.1 that nobody has signed but itself, and the file of it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hooks of a test")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    made = made.add_extension(here, critical=False).add_extension(x509.BasicConstraints(True, None), critical=True)
    file, secret = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    return context, file


def test_https_works_with_a_known_certificate(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, file = self_signed(tmp_path)
    with receiving(certificate) as receiver:
        webhook = Webhook.named_by(named(settings, receiver.url))
        assert webhook is not None
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        assert webhook.post("msg_1", b"{}").message == "cannot be reached: ConnectError"
        assert receiver.received == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert webhook.post("msg_1", b"{}").taken
        (one,) = receiver.received
        assert verified()(SECRET, one.headers, one.body)


def test_a_test_message_is_sent_from_the_command_line(receiver: Receiver, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METRICSWEEP_")}
    command = [sys.executable, "-m", "api.cli", "webhook", "test", "--home", str(tmp_path / "home")]

    def tried(**told: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment | told, capture_output=True, text=True, check=False)

    nobody = tried()
    assert (nobody.returncode, nobody.stderr) == (1, "METRICSWEEP_WEBHOOK_URL  is not set\n")
    told = {"METRICSWEEP_WEBHOOK_URL": receiver.url, "METRICSWEEP_WEBHOOK_SECRET": SECRET}
    taken = tried(**told)
    assert (taken.returncode, taken.stdout) == (0, "the webhook at 127.0.0.1 answered 204\n")
    (one,) = receiver.received
    assert verified()(SECRET, one.headers, one.body)
    assert (one.message["type"], one.message["data"]) == ("test", {"url": "http://127.0.0.1:8787"})
    receiver.answer = status(500)
    refused = tried(**told)
    assert (refused.returncode, refused.stderr) == (1, "the webhook at 127.0.0.1 answered 500\n")
    assert PATH not in refused.stderr + refused.stdout
    assert not (tmp_path / "home").exists(), "nothing is made for it"
