"""What the audit says of devices of claims: which are of use to nobody, what that costs, and which claims nobody has reserved."""

import io
import json
from typing import Any

import jsonschema
from rich.console import Console
from typer.testing import CliRunner

from docs.schemas import write
from scheduler import cli
from scheduler.audit import table
from scheduler.audit.page import page
from scheduler.documents import writing
from tests.operator import devices
from tests.prose import unwrapped
from tests.unit.claim_objects import CLASS, OLD, claim, node_of, of_model, pod_of, used
from tests.unit.test_explain_claims import partition, pool_with_counters

Json = dict[str, Any]
A100 = {"productName": {"string": "NVIDIA A100-SXM4-80GB"}}
PRICE = ("--price", "A100*80GB=1000")


def audit(*objects: Json, more: tuple[str, ...] = PRICE) -> Json:
    stdin = writing.dump_all([CLASS, *objects])
    arguments = ["audit", "-f", "-", "--mode", "default", "--orders", "1", "-o", "json", *more]
    done = CliRunner().invoke(cli.app, arguments, input=stdin)
    assert done.exit_code == 0, done.output
    found: Json = json.loads(done.stdout)
    jsonschema.validate(found, write.audit())
    return found


def gpu(name: str, **more: Any) -> Json:
    return devices.device(name, attributes=A100, **more)


def needs_cpu(pod: Json, cpu: str) -> Json:
    pod["spec"]["containers"][0]["resources"] |= {"requests": {"cpu": cpu}}
    return pod


def test_devices_on_a_node_without_cpu_are_stranded_with_money() -> None:
    found = audit(
        *node_of("n0", gpu("gpu-0"), gpu("gpu-1")),
        used("taken", "n0", "gpu-0", "r"),
        needs_cpu(pod_of("r", "taken", node="n0"), "6"),
    )
    devices_of = found["devices"]
    assert devices_of["usual"] == [{"like": "default/r", "pods": 1, "fitting": 0}]
    (row,) = devices_of["models"]
    assert row == {
        "driver": devices.DRIVER, "model": "NVIDIA A100-SXM4-80GB", "price": 1000, "source": "--price", "devices": 2,
        "used": 1, "free": 1, "stranded": 1, "tainted": 0,
    }  # fmt: skip
    (one,) = devices_of["stranded"]
    assert (one["device"], one["why"], one["money"]) == ("gpu-1", "Insufficient cpu", 1000)
    assert one["nodes"] == ["n0"]
    assert devices_of["money"] == {"stranded": 1000, "unreserved": 0}
    assert found["pricesUnused"] == []


def test_devices_that_one_more_pod_could_have_are_not_stranded() -> None:
    found = audit(
        *node_of("n0", gpu("gpu-0"), gpu("gpu-1")),
        used("taken", "n0", "gpu-0", "r"),
        needs_cpu(pod_of("r", "taken", node="n0"), "2"),
    )["devices"]
    assert found["usual"] == [{"like": "default/r", "pods": 1, "fitting": 1}]
    assert found["stranded"] == []


def test_without_pods_with_claims_nothing_is_said_to_be_stranded() -> None:
    found = audit(*node_of("n0", gpu("gpu-0")))["devices"]
    assert (found["usual"], found["stranded"]) == ([], [])
    assert found["models"][0]["free"] == 1


def test_devices_that_no_claim_requests_and_those_that_are_short_of_others_say_so() -> None:
    model = f"'model' in device.attributes['{devices.DRIVER}'] && device.attributes['{devices.DRIVER}'].model == 'a'"
    two = devices.request(count=2, selectors=[{"cel": {"expression": model}}])
    found = audit(
        *node_of(
            "n0", devices.device("gpu-0", attributes=of_model("a")), devices.device("gpu-1", attributes=of_model("b"))
        ),
        claim("mine", two), pod_of("p", "mine"),
    )["devices"]  # fmt: skip
    assert {one["device"]: one["why"] for one in found["stranded"]} == {
        "gpu-0": "cannot allocate all claims",
        "gpu-1": "no usual claim requests such a device",
    }
    assert [one["money"] for one in found["stranded"]] == [None, None]
    assert found["money"]["stranded"] == 0


def test_a_gpu_in_parts_counts_once_by_its_scarcest_counter() -> None:
    whole = f"device.attributes['{devices.DRIVER}'].model == 'whole'"
    found = audit(
        *pool_with_counters(), used("taken", "n0", "part", "r"), pod_of("r", "taken", node="n0"),
        claim("mine", devices.request(selectors=[{"cel": {"expression": whole}}])), pod_of("p", "mine"),
    )["devices"]  # fmt: skip
    (row,) = found["models"]
    assert (row["devices"], row["used"], row["free"]) == (1, 0.25, 0.75)
    # Another pod like r could have a half.
    assert found["stranded"] == []
    assert partition("x", "1Gi")["consumesCounters"]


def test_partitions_that_nobody_can_have_any_more_are_stranded_by_what_is_left_of_the_gpu() -> None:
    whole = f"device.attributes['{devices.DRIVER}'].model == 'whole'"
    found = audit(
        *pool_with_counters(), used("taken", "n0", "part"),
        claim("mine", devices.request(selectors=[{"cel": {"expression": whole}}])), pod_of("p", "mine"),
    )["devices"]  # fmt: skip
    (one,) = found["stranded"]
    assert (one["free"], one["why"]) == (0.75, "other devices or counters are in use")
    assert found["unreserved"] == [{"claim": "default/taken", "devices": 0.25, "money": None}]


def test_claims_that_nobody_has_reserved_are_named_with_money() -> None:
    objects = [
        *node_of("n0", gpu("gpu-0"), gpu("gpu-1"), gpu("gpu-2", taints=OLD)),
        used("left", "n0", "gpu-0"),
        used("taken", "n0", "gpu-1", "r"),
        pod_of("r", "taken", node="n0"),
    ]
    found = audit(*objects)
    assert found["devices"]["unreserved"] == [{"claim": "default/left", "devices": 1, "money": 1000}]  # fmt: skip
    assert found["devices"]["models"][0]["tainted"] == 1
    stdin = writing.dump_all([CLASS, *objects])
    told = CliRunner().invoke(cli.app, ["audit", "-f", "-", "--mode", "default", *PRICE], input=stdin)  # fmt: skip
    assert "1 claim that nobody has reserved has devices ($1,000 a month): default/left." in unwrapped(told.stdout)  # fmt: skip
    html = page.render_page(found)
    assert "Devices of claims" in html
    assert "default/left" in html


def test_what_is_left_of_a_shared_device_is_free() -> None:
    shared = gpu("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})
    taken = used("taken", "n0", "gpu-0", "r")
    more = {"shareID": "s", "consumedCapacity": {"memory": "60Gi"}}
    taken["status"]["allocation"]["devices"]["results"][0] |= more
    half = devices.request(capacity={"requests": {"memory": "40Gi"}})
    taken["spec"] = devices.claim_spec(half)
    found = audit(*node_of("n0", shared), taken, pod_of("r", "taken", node="n0"))["devices"]
    (one,) = found["stranded"]
    assert (one["free"], one["money"]) == (0.25, 250)
    assert one["why"] == "other devices or counters are in use"


def test_a_slice_that_cannot_be_read_is_named() -> None:
    wrong = devices.device("gpu-0", capacity={"memory": {"value": "many"}})
    stdin = writing.dump_all([CLASS, *node_of("n0", wrong)])
    done = CliRunner().invoke(cli.app, ["audit", "-f", "-", "-o", "json"], input=stdin)
    assert done.exit_code == 3
    assert "ResourceSlice" in json.loads(done.stdout)["mistakes"][0]["object"]


def test_the_table_has_a_row_for_each_driver_and_model() -> None:
    found = audit(*node_of("n0", gpu("gpu-0")))
    out = io.StringIO()
    table.print_audit(found, Console(file=out, width=200))
    assert "gpu.example.com NVIDIA A100-SXM4-80GB" in out.getvalue()
