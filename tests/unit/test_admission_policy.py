"""The admission policy of the manifests, as far as the code knows what it must name."""

import json
from pathlib import Path

import yaml

from scheduler.devices.table import DEFAULT_DEVICES


def test_the_policy_knows_the_domain_of_every_resource_by_which_devices_are_requested() -> None:
    policy, _ = yaml.safe_load_all(Path("manifests/base/admission.yaml").read_text())
    variables = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
    resources = {
        resource
        for driver in DEFAULT_DEVICES.drivers
        for resource in (*driver.resources, *getattr(driver, "inner_resources", ()))
    }
    wanted = {resource.split("/")[0] for resource in resources}
    assert json.loads(variables["domains"]) == sorted(wanted)
