"""The names of disks, as pods and PersistentVolumes write them."""

from __future__ import annotations

import msgspec


class _Wire(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    """Camel-case JSON, as in ``wire``."""


class GcePersistentDisk(_Wire):
    """A disk of GCE."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(_Wire):
    """A disk of AWS."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class Rbd(_Wire):
    """An image of Ceph; it matters only where a pod names it, not in a PersistentVolume."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Iscsi(_Wire):
    """A target of iSCSI."""

    iqn: str = ""
    read_only: bool = False


class AzureDisk(_Wire):
    """A disk of Azure."""

    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str = ""


class VolumeId(_Wire):
    """A volume of Cinder or Portworx."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class Disks(_Wire):
    """Which disk a volume of a pod or a PersistentVolume is; at most one is set. Disks that decide nothing are left out."""

    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: VolumeId | None = None
    portworx_volume: VolumeId | None = None
