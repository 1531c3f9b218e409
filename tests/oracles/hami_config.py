"""How HAMi's device plugin merges ``config.json`` into its section, on the raw values and one key at a time."""

from typing import Any

# The key of config.json, and that of the section.
KEYS = {
    "devicesplitcount": "deviceSplitCount",
    "devicememoryscaling": "deviceMemoryScaling",
    "devicecorescaling": "deviceCoreScaling",
    "preconfigureddevicememory": "preConfiguredDeviceMemory",
    "libcudaloglevel": "libCudaLogLevel",
    "enablenumatopology": "enableNumaTopology",
}
_ABSENT: dict[str, Any] = {
    "devicesplitcount": 0,
    "devicememoryscaling": 0,
    "devicecorescaling": 0,
    "preconfigureddevicememory": 0,
    "libcudaloglevel": "",
    "enablenumatopology": False,
}


def merge(section: dict[str, Any], entries: list[dict[str, Any]], node: str) -> dict[str, Any]:
    """The settings of a node: a value that is not Go's zero replaces what was there."""
    found = {key: section.get(theirs, _ABSENT[key]) for key, theirs in KEYS.items()}
    found |= {"operatingmode": "hami-core", "uuid": set(), "index": set(), "prefers": False}
    for entry in entries:
        if entry["name"] != node:
            continue
        for key in (*KEYS, "operatingmode"):
            if entry.get(key):
                found[key] = entry[key]
        hidden = entry.get("filterdevices") or {}
        if hidden.get("uuid") or hidden.get("index"):
            found["uuid"] = set(hidden.get("uuid") or ())
            found["index"] = set(hidden.get("index") or ())
        found["prefers"] = entry.get("enablegetpreferredallocation") or False
    return found
