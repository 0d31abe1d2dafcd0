"""Past runs, kept in any S3 store. A run is written once, becomes visible as a whole, and is never overwritten.

Layout of the bucket: `runs/<run-id>/<name>` holds the files, `index/<run-id>` says that all of them are there. The
index entry is written last, so a run that died while it was published is not listed; publishing it again completes it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from http import HTTPStatus

from minio import Minio
from minio.error import InvalidResponseError, S3Error, ServerError
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

from aftershock.errors import StoreError

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 30.0
RETRIES = 2
"""Of requests that found no answer or a 5xx; every request here may be repeated."""

_ENDPOINT = re.compile(r"(https?://)?[A-Za-z0-9._-]+(:\d{1,5})?/?|(https?://)?\[[0-9a-fA-F:.]+\](:\d{1,5})?/?")
_BUSY = (500, 502, 503, 504)


class Store:
    """The bucket of the history. Any call raises StoreError (one line) where the store does not answer or refuses."""

    def __init__(self, endpoint: str, access_key: str, secret_key: str, bucket: str = "aftershock") -> None:
        """`endpoint` is host:port, or a URL: https:// turns TLS on. Nothing is asked of the store yet."""
        if not _ENDPOINT.fullmatch(endpoint):
            raise StoreError(f"store_endpoint={endpoint!r}: must be host:port, or http(s)://host:port")
        scheme, _, host = endpoint.rpartition("://")
        self.endpoint = endpoint
        self.bucket = bucket
        self._http = PoolManager(
            timeout=Timeout(connect=CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
            retries=Retry(total=RETRIES, backoff_factor=0.2, status_forcelist=_BUSY, raise_on_status=False),
        )
        with self._translated("open it"):
            self._client = Minio(
                host.rstrip("/"), access_key, secret_key, secure=scheme == "https", http_client=self._http
            )

    def ready(self) -> bool:
        """Whether it answers. False while nothing listens or it is still busy starting; StoreError if it refuses us."""
        try:
            self._client.bucket_exists(self.bucket)
        except S3Error as error:
            if error.response.status in _BUSY:
                return False
            raise self._error("ask for the bucket", error) from error
        except (HTTPError, InvalidResponseError, ServerError, OSError):
            return False
        return True

    def has_bucket(self) -> bool:
        """Whether the bucket exists; the first run makes one that does not."""
        with self._translated("ask for the bucket"):
            return bool(self._client.bucket_exists(self.bucket))

    def publish(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Keep `files` (name -> content) as the run `run_id`; the bucket is created when missing.

        May be repeated with the same contents. Raises StoreError where another run of that name is kept already.
        """
        self._ensure_bucket()
        for name, content in files.items():
            self._create(f"runs/{run_id}/{name}", content)
        index = {"run_id": run_id, "files": {name: len(content) for name, content in sorted(files.items())}}
        self._create(f"index/{run_id}", json.dumps(index).encode())
        log.info("run %s is kept in the history: %d files in bucket %s", run_id, len(files), self.bucket)

    def list_runs(self) -> list[str]:
        """Ids of the runs that are kept whole, sorted; none while the bucket does not exist."""
        with self._translated("list the runs"):
            if not self._client.bucket_exists(self.bucket):
                return []
            entries = self._client.list_objects(self.bucket, prefix="index/", recursive=True)
            return sorted((entry.object_name or "").removeprefix("index/") for entry in entries)

    def fetch(self, run_id: str, name: str) -> bytes:
        """One file of a run. Raises StoreError where there is none."""
        return self._read(f"runs/{run_id}/{name}")

    def _ensure_bucket(self) -> None:
        with self._translated("create the bucket"):
            if self._client.bucket_exists(self.bucket):
                return
            try:
                self._client.make_bucket(self.bucket)
            except S3Error as error:
                if error.code not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):  # another run was quicker
                    raise

    def _create(self, key: str, content: bytes) -> None:
        """Write `key` unless it exists. Raises StoreError where it does, with other contents.

        `put_object` of the client cannot be conditional, hence a presigned address and a header. A store that knows no
        conditions ignores the header; then the last writer wins, as it always did there.
        """
        with self._translated(f"write {key}"):
            address = self._client.get_presigned_url("PUT", self.bucket, key, expires=timedelta(minutes=5))
            response = self._http.request("PUT", address, body=content, headers={"If-None-Match": "*"})
        if response.status == HTTPStatus.OK:
            return
        if response.status not in (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.CONFLICT):
            raise StoreError(f"{self._place}: cannot write {key}: HTTP {response.status}; see the log of the store")
        if self._read(key) != content:
            raise StoreError(f"{self._place}: {key} is kept already, with other contents; choose another run_id")

    def _read(self, key: str) -> bytes:
        with self._translated(f"read {key}"):
            response = self._client.get_object(self.bucket, key)
            try:
                return response.read()
            finally:
                response.close()
                response.release_conn()

    @property
    def _place(self) -> str:
        return f"object store {self.endpoint}, bucket {self.bucket}"

    @contextmanager
    def _translated(self, action: str) -> Iterator[None]:
        """The one edge at which the client's errors become ours."""
        try:
            yield
        except (S3Error, InvalidResponseError, ServerError, HTTPError, OSError, ValueError) as error:
            raise self._error(action, error) from error

    def _error(self, action: str, error: Exception) -> StoreError:
        return StoreError(f"{self._place}: cannot {action}: {_cause(error)}")


def _cause(error: Exception) -> str:
    """What was wrong and what to do, in one line, without the client's request ids and object addresses."""
    if isinstance(error, S3Error):
        hint = {
            "NoSuchKey": "it is not kept there; check the run id and the name",
            "NoSuchBucket": "the bucket does not exist; check store_bucket",
            "AccessDenied": "the key has no right to do that; check its policy and AFTERSHOCK_STORE_ACCESS_KEY",
            "InvalidAccessKeyId": "the access key is unknown; check AFTERSHOCK_STORE_ACCESS_KEY",
            "SignatureDoesNotMatch": "the secret key is wrong; check AFTERSHOCK_STORE_SECRET_KEY",
        }.get(error.code or "")
        return f"{error.code} ({hint or error.message})"
    if isinstance(error, HTTPError | OSError):
        reason = str(getattr(error, "reason", None) or error).rpartition(": ")[2]
        return f"no answer ({' '.join(reason.split())}); check store_endpoint and that the store runs"
    return " ".join(str(error).split())
