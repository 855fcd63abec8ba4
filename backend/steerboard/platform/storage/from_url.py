"""A store by its URL."""

from __future__ import annotations

from steerboard.platform.storage.errors import BadStoreUrl
from steerboard.platform.storage.protocol import Storage


def open_storage(url: str, *, patient: bool = True, private: bool = False) -> Storage:
    """`patient`: ask again, for about a minute, before giving a store up. `private`: of a folder, no one but its owner
    can read it. Raises `BadStoreUrl`."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme == "file":
        from steerboard.platform.storage.backends.folder import FolderStorage

        return FolderStorage(rest if separator else url, private=private)
    if scheme == "s3" and rest.strip("/"):
        from steerboard.platform.storage.backends.objects import ObjectStorage

        return ObjectStorage(url, patient=patient)
    raise BadStoreUrl(f"{url!r} is not a store URL", hint="Give file:///FOLDER or s3://BUCKET/PREFIX.")
