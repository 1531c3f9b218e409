"""The kinds that the cluster serves: the built-in table, and the kinds that CRDs add."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """One kind in one API version, as clients see it.

    Several kinds may share a ``bucket`` (the versions of a CRD, the two Event APIs): they are
    views of the same stored objects, with ``from_store`` and ``to_store`` between them.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    has_scale: bool = False
    # metadata.generation counts changes of the spec; events and leases, for example, have none.
    has_generation: bool = False
    # A kind that does not allow unconditional updates refuses a PUT without a resourceVersion.
    unconditional_update: bool = True
    create_on_update: bool = False
    returns_deleted: bool = False
    # Objects are deleted in two steps, with time between them to stop what runs.
    graceful: bool = False
    fields: tuple[str, ...] = ()
    # The bucket of the objects that its controller makes; they are deleted with their owner.
    owns: str = ""
    bucket: str = ""
    from_store: Callable[[Json], Json] | None = None
    to_store: Callable[[Json], Json] | None = None
    # The CRD's schema and the printer columns; None and () for built-in kinds.
    schema: Json | None = None
    columns: tuple[Json, ...] = ()
    # Whether the CRD has rules that are not evaluated here (``x-kubernetes-validations``).
    has_rules: bool = False
    custom: bool = False
    prefix: bytes = field(init=False)

    def __post_init__(self) -> None:
        # Objects are stored encoded without kind and apiVersion. A single object, or the object of a watch event,
        # is this prefix and the stored rest. Items of a built-in list have neither kind nor apiVersion.
        head = f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'
        object.__setattr__(self, "prefix", head.encode())
        if not self.bucket:
            object.__setattr__(self, "bucket", self.resource)
        if not self.singular:
            object.__setattr__(self, "singular", self.kind.lower())

    @property
    def api_version(self) -> str:
        """Return the value of ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Return the name used in errors: ``plural`` or ``plural.group``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """Return the name used in validation errors: ``Kind`` or ``Kind.group``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def list_kind(self) -> str:
        """Return the kind of its lists."""
        return f"{self.kind}List"


class Kinds:
    """The kinds that are served now, by path; CRDs add and remove kinds."""

    def __init__(self, built_in: tuple[Kind, ...]) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._preferred: dict[str, Kind] = {}
        for kind in built_in:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind; the first of a bucket is its storage version."""
        self._by_path[kind.group, kind.version, kind.plural] = kind
        self._preferred.setdefault(kind.bucket, kind)

    def remove(self, bucket: str) -> None:
        """Stop serving all versions of a bucket."""
        self._by_path = {
            path: kind for path, kind in self._by_path.items() if kind.bucket != bucket
        }
        self._preferred.pop(bucket, None)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind served under a path."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that an object names."""
        for one in self._by_path.values():
            if (one.api_version, one.kind) == (api_version, kind):
                return one
        return None

    def list_buckets(self) -> Iterator[Kind]:
        """Yield one kind per bucket."""
        yield from list(self._preferred.values())

    def list_versions(self) -> dict[tuple[str, str], list[Kind]]:
        """Return the kinds of each group and version, sorted by plural."""
        found: dict[tuple[str, str], list[Kind]] = {}
        for kind in self._by_path.values():
            found.setdefault((kind.group, kind.version), []).append(kind)
        return {path: sorted(kinds, key=lambda kind: kind.plural) for path, kinds in found.items()}
