"""configs/kubernetes is valid and matches the image and the service."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from streamduel import __version__
from streamduel.monitoring.figures import MAX_SILENT_SECONDS
from streamduel.service import SHUTDOWN_SECONDS
from tests.faults.processes import ROOT

FOLDER: Final = ROOT / "configs" / "kubernetes"
KUSTOMIZATION: Final = "kustomization"
MANIFESTS: Final[dict[str, dict[str, Any]]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml")
}
CUSTOM_RESOURCES: Final = {KUSTOMIZATION, "servicemonitor"}
"""Manifests that Kubernetes' own schemas do not cover."""

OLDEST: Final = "1.31.0"
"""The first version with a stable `unhealthyPodEvictionPolicy`, the newest field in use."""

NAME: Final = "app.kubernetes.io/name"


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = MANIFESTS["deployment"]["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    (only,) = pod()["containers"]
    found: dict[str, Any] = only
    return found


def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("name", sorted(set(MANIFESTS) - CUSTOM_RESOURCES))
def test_kubernetes_accepts_the_manifest(name: str, version: str) -> None:
    kubernetes_validate.validate(MANIFESTS[name], version, strict=True)


def test_the_service_monitor_has_the_operators_fields() -> None:
    # The operator ships the schema; these are its fields.
    monitor, service = MANIFESTS["servicemonitor"], MANIFESTS["service"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["kind"] == "ServiceMonitor"
    assert set(monitor["spec"]) == {"jobLabel", "selector", "endpoints"}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert set(endpoint) == {"port", "path", "interval"}
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )


def test_the_alerts_use_the_monitors_job_name() -> None:
    label = MANIFESTS["servicemonitor"]["spec"]["jobLabel"]
    (job,) = yaml.safe_load((ROOT / "configs/prometheus/prometheus.yml").read_text())[
        "scrape_configs"
    ]
    assert MANIFESTS["service"]["metadata"]["labels"][label] == job["job_name"]


def test_the_kustomization_lists_all_but_custom_resources() -> None:
    listed = {Path(name).stem for name in MANIFESTS[KUSTOMIZATION]["resources"]}
    assert listed == set(MANIFESTS) - CUSTOM_RESOURCES
    assert "# - servicemonitor.yaml" in (FOLDER / "kustomization.yaml").read_text(encoding="utf-8")


def test_the_image_is_this_version() -> None:
    (image,) = MANIFESTS[KUSTOMIZATION]["images"]
    assert (
        container()["image"] == f"{image['name']}:{image['newTag']}" == f"streamduel:{__version__}"
    )


def test_the_pod_runs_unprivileged_as_the_images_user() -> None:
    context = pod()["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in dockerfile()
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["automountServiceAccountToken"] is False


def test_the_grace_period_covers_the_last_commit() -> None:
    assert pod()["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS


def test_probes_and_service_use_the_monitoring_port() -> None:
    config = yaml.safe_load(MANIFESTS["configmap"]["data"]["config.yaml"])
    (port,) = container()["ports"]
    (served,) = MANIFESTS["service"]["spec"]["ports"]
    assert config["monitoring"] == {"host": "0.0.0.0", "port": port["containerPort"]}
    assert f"EXPOSE {port['containerPort']}\n" in dockerfile()
    assert served == {"name": "http", "port": port["containerPort"], "targetPort": port["name"]}
    assert container()["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container()["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container()["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_the_liveness_probe_is_patient() -> None:
    assert MAX_SILENT_SECONDS >= 60, "/healthz itself detects a stalled service"
    liveness = container()["livenessProbe"]
    assert liveness["failureThreshold"] * liveness["periodSeconds"] >= 30


def test_the_configuration_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text(MANIFESTS["configmap"]["data"]["config.yaml"])
    (tmp_path / "password").write_text("hunter2\n")
    monkeypatch.setenv("STREAMDUEL_SOURCE__SASL_PLAIN_PASSWORD_FILE", str(tmp_path / "password"))
    done = subprocess.run(
        [sys.executable, "-m", "streamduel", "validate", str(tmp_path / "config.yaml")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_configuration_and_password_are_mounted_where_they_are_read() -> None:
    config = yaml.safe_load(MANIFESTS["configmap"]["data"]["config.yaml"])
    mounts = {mount["name"]: mount for mount in container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert set(mounts) == set(volumes)
    assert f'"{mounts["config"]["mountPath"]}/config.yaml"' in dockerfile()
    assert volumes["config"]["configMap"]["name"] == MANIFESTS["configmap"]["metadata"]["name"]
    assert (
        config["source"]["sasl_plain_password_file"] == f"{mounts['kafka']['mountPath']}/password"
    )
    assert mounts["tmp"]["mountPath"] == "/tmp"
    assert all(mounts[name]["readOnly"] for name in ("config", "kafka"))


def test_no_manifest_contains_a_password() -> None:
    assert "Secret" not in {manifest["kind"] for manifest in MANIFESTS.values()}
    config = yaml.safe_load(MANIFESTS["configmap"]["data"]["config.yaml"])
    assert "sasl_plain_password" not in config["source"]
    assert config["source"]["security_protocol"] == "SASL_SSL"
    assert "env" not in container()


@pytest.mark.parametrize(
    "selector",
    [
        MANIFESTS["deployment"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["service"]["spec"]["selector"],
        MANIFESTS["poddisruptionbudget"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["networkpolicy"]["spec"]["podSelector"]["matchLabels"],
    ],
)
def test_all_selectors_select_the_same_pods(selector: dict[str, str]) -> None:
    assert selector == MANIFESTS["deployment"]["spec"]["template"]["metadata"]["labels"]
    assert selector == {NAME: "streamduel"}


def test_the_network_policy_allows_kafka_dns_and_prometheus_only() -> None:
    config = yaml.safe_load(MANIFESTS["configmap"]["data"]["config.yaml"])
    policy = MANIFESTS["networkpolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (entrance,) = policy["ingress"]
    assert entrance["ports"] == [{"port": "http"}]
    names, brokers = policy["egress"]
    assert {port["port"] for port in names["ports"]} == {53}
    _, _, port = config["source"]["bootstrap_servers"].rpartition(":")
    assert brokers["ports"] == [{"port": int(port)}]


def test_pods_are_replaced_together_and_scraped_one_by_one() -> None:
    assert MANIFESTS["deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    assert MANIFESTS["service"]["spec"]["clusterIP"] == "None"
    assert MANIFESTS["poddisruptionbudget"]["spec"]["maxUnavailable"] == 1


def test_the_documented_stateful_set_is_valid() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (instead,) = re.findall(r"(?s)in place of `strategy`\n\n```yaml\n(.*?)```", page)
    spec = {**MANIFESTS["deployment"]["spec"], **yaml.safe_load(instead)}
    del spec["strategy"]
    manifest = {**MANIFESTS["deployment"], "kind": "StatefulSet", "spec": spec}
    kubernetes_validate.validate(manifest, OLDEST, strict=True)
    assert spec["serviceName"] == MANIFESTS["service"]["metadata"]["name"]
