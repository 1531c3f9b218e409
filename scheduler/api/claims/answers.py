"""What a ResourceClaim gets: its allocation, decided or as the API server has it."""

from __future__ import annotations

from typing import NamedTuple

# Namespace and name.
ClaimKey = tuple[str, str]


class DeviceKey(NamedTuple):
    """A device is named by its driver, its pool and its name there."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


class Given(NamedTuple):
    """A device that a claim gets.

    Attributes:
        request: the leaf of the request, see ``requests.Leaf``.
        is_admin: the claim only looks at the device.
        share: the id of the share of a device that several claims may have; empty for a device of its own.
        consumed: what the claim consumes of the device's capacities, in thousandths, sorted.
    """

    request: str
    device: DeviceKey
    is_admin: bool = False
    share: str = ""
    consumed: tuple[tuple[str, int], ...] = ()


class Allotment(NamedTuple):
    """What was decided for a claim.

    Attributes:
        key, uid: of the claim.
        given: its devices, in the order of the requests.
        allocation: the same as it is written to the claim's status; JSON.
        made: the claim itself, if it stands for extended resources and is to be made first; see ``extended.write_claim``.
        group: the name and the uid of the PodGroup for which it is reserved; None: for the pod.
    """

    key: ClaimKey
    uid: str
    given: tuple[Given, ...] = ()
    allocation: bytes = b""
    made: bytes = b""
    group: tuple[str, str] | None = None

    @property
    def is_new(self) -> bool:
        """Whether the claim is allocated with this decision; else the pod joins those that have it reserved."""
        return bool(self.allocation)

    def gives_the_same(self, other: Allotment) -> bool:
        """Whether the same claim gets the same devices by another decision."""
        return self._replace(group=None) == other._replace(group=None)
