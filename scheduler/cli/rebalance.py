"""``evenkeel rebalance``."""

from __future__ import annotations

import uvloop

from scheduler import ending
from scheduler.cli import compiling, options, process
from scheduler.errors import BadInput


# The service handles signals itself, once it runs.
@ending.end_at_signals()
def rebalance(
    *,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
    config_file: options.ConfigFile = None,
    lease_namespace: process.LeaseNamespace = "",
    host: process.Host = "127.0.0.1",
    port: process.Port = 8081,
    log_level: process.LogLevelOption = "info",
) -> None:
    """Move running pods as RebalancePolicies say, until SIGTERM.

    For each policy a plan is made at intervals, as `evenkeel plan defrag` makes it;
    its first moves that belong together are carried out one after the other, within
    the hours and the budgets of the policy. The scheduler places the successors.
    """
    from scheduler.kube import client  # noqa: PLC0415 - numba and the client cost half a second
    from scheduler.kube.options import Options  # noqa: PLC0415
    from scheduler.rebalance.service import Service  # noqa: PLC0415

    process.configure_logs(log_level)
    try:
        access = client.load_access(kubeconfig, context)
    except BadInput as error:
        options.refuse(str(error), is_log=True)
    config = options.read_config(config_file, is_log=True)
    compiling.compile_first_time()
    service = Service(
        Options(
            access=access,
            config=config,
            identity=process.make_identity(),
            lease_namespace=lease_namespace,
            host=host,
            port=port,
        )
    )
    try:
        uvloop.run(service.run())
    except BadInput as error:
        options.refuse(str(error), is_log=True)
