"""A real S3-compatible server as a process of its own, which a test may halt and let go on."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from orchestrator.host.storage import Bucket, Folder, opened
from tests.ports import free_port

# Before any Ray starts, so that its workers have them too; the server accepts any keys.
for name, value in {"ACCESS_KEY_ID": "tester", "SECRET_ACCESS_KEY": "secret", "EC2_METADATA_DISABLED": "true"}.items():
    os.environ.setdefault(f"AWS_{name}", value)


@dataclass(frozen=True)
class ObjectStore:
    """A server that runs."""

    process: subprocess.Popen[bytes]
    port: int

    def new_bucket(self) -> str:
        """The URL of a folder in a bucket that was just made."""
        import pyarrow.fs

        name = f"bucket-{uuid.uuid4().hex[:12]}"
        client = pyarrow.fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}", scheme="http", region="us-east-1", allow_bucket_creation=True
        )
        client.create_dir(name)
        return self.url(f"{name}/metricsweep")

    def url(self, where: str) -> str:
        """The URL of a bucket or of a folder in one."""
        return f"s3://{where}?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def halt(self) -> None:
        """Answer nothing any more."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Answer again."""
        self.process.send_signal(signal.SIGCONT)


def bucket_at(url: str) -> Bucket:
    """The storage at a URL."""
    found = opened(url)
    assert isinstance(found, Bucket)
    return found


@pytest.fixture(scope="module")
def object_store() -> Iterator[ObjectStore]:
    """A server for the tests of a module."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(600):
                assert process.poll() is None, "the object store did not start"
                try:
                    httpx.get(f"http://127.0.0.1:{port}/moto-api/", timeout=5, trust_env=False)
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield ObjectStore(process, port)
        finally:
            process.kill()
            process.wait(120)


@pytest.fixture
def bucket_url(object_store: ObjectStore) -> Iterator[str]:
    """A bucket of this test's own; the server answers again afterwards, whatever the test did."""
    yield object_store.new_bucket()
    object_store.go_on()


def put(storage: Folder | Bucket, folder: str, name: str, content: bytes) -> None:
    """Store a file."""
    if isinstance(storage, Bucket):
        storage.write(content, folder, name)
    else:
        (storage.root / folder).mkdir(parents=True, exist_ok=True)
        (storage.root / folder / name).write_bytes(content)
