#!/usr/bin/env bash
# A kind cluster on this machine with Evenkeel in it. Needs docker; kind and kubectl are built with Go.
# KEEP=1 leaves the cluster.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v docker >/dev/null || { echo "make kind-trial needs docker" >&2; exit 2; }
eval "$("$PYTHON" -m tests.controlplane.build kind kubectl | awk -F '\t' '{print $1 "=" $2}')"
trap '[ -n "${KEEP:-}" ] || "$kind" delete cluster --name evenkeel-trial' EXIT

docker build --tag evenkeel:dev .
"$kind" create cluster --config manifests/kind/cluster.yaml --wait 120s
"$kind" load docker-image evenkeel:dev --name evenkeel-trial
"$kubectl" apply --server-side -k crds
"$kubectl" apply --server-side -k manifests/kind
"$kubectl" -n evenkeel-system rollout status deployment/evenkeel --timeout=180s
"$kubectl" apply -f manifests/kind/pods.yaml
"$kubectl" rollout status deployment/trial --timeout=180s
"$kubectl" get pods -o wide
"$kubectl" get events --field-selector reason=Scheduled
