"""A store in a folder: `Store` over the helper's own object files."""

from __future__ import annotations

import json
from pathlib import Path

from harness.onhost.objects import FolderObjects
from harness.store.objects import ObjectStore


class FolderStore(ObjectStore):
    """Objects in `root/objects/`, created when first written."""

    def __init__(self, root: Path) -> None:
        self._objects = FolderObjects(root.resolve())
        super().__init__(self._objects)

    @property
    def kind(self) -> str:
        """'folder'."""
        return "folder"

    def address(self) -> str:
        """JSON text for `harness.onhost.stage` and `.readback`."""
        return json.dumps({"kind": "folder", "path": str(self._objects.root)})

    def has(self, sha256: str) -> bool:
        """Whether an object of that name is there (its bytes are not read)."""
        return self._objects.path_of(sha256).is_file()

    def locate(self, sha256: str) -> str:
        """The object's path."""
        return str(self._objects.path_of(sha256))
