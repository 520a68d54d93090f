"""The files for operators: they parse, agree with each other and with what axlog serves."""

import configparser
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from axlog.cli.application import VERBS
from axlog.pipeline.loader import check
from tests.dockerfile import faults, steps
from tests.pages import know_command


@pytest.fixture
def deploy(repository: Path) -> Path:
    return repository / "deploy"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_workflow_runs_what_every_change_must_pass(repository: Path) -> None:
    (job,) = read(repository / ".github" / "workflows" / "ci.yml")["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    named = [text.rpartition(":: ")[2] for text in project["classifiers"] if ":: 3." in text]
    assert job["strategy"]["matrix"]["python"] == named


def test_the_pipeline_has_no_errors(deploy: Path) -> None:
    assert check(deploy / "pipeline.yaml").errors == []


def test_services_and_their_files(deploy: Path) -> None:
    compose = read(deploy / "compose.yaml")
    services = compose["services"]
    assert set(services) == {"axlog", "broker", "postgres", "prometheus", "grafana"}
    made_by_the_user = {"./roles.yaml", "./metrics.token"}
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert source in made_by_the_user or (deploy / source).exists(), (name, source)
            else:
                assert source in compose["volumes"]
        assert set(service.get("depends_on", ())) <= set(services)
        image = service.get("image")
        assert image is None or not image.endswith(":latest")
    assert services["axlog"]["command"][0] in VERBS
    (target,) = read(deploy / "prometheus.yaml")["scrape_configs"][0]["static_configs"]
    assert target["targets"] == ["axlog:9040"]


def test_the_image_is_what_a_linter_accepts(deploy: Path, repository: Path) -> None:
    text = (deploy / "Dockerfile").read_text(encoding="utf-8")
    assert faults(text) == []
    found = {step.name: step.rest for step in steps(text)}
    assert json.loads(found["ENTRYPOINT"]) == ["axlog"]
    know_command(["axlog", *json.loads(found["CMD"])])
    check = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    compile(check[2], "HEALTHCHECK", "exec")
    # Everything that is copied is there, and is not left out of the build's context.
    kept = (repository / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for step in steps(text):
        if step.name == "COPY" and not step.rest.startswith("--from"):
            for path in step.rest.split()[:-1]:
                assert (repository / path).exists(), path
                assert f"!{path}" in kept, path


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("FROM python", "DL3006"),
        ("FROM python:latest", "DL3007"),
        ("ADD src src", "DL3020"),
        ("WORKDIR src", "DL3000"),
        ("COPY --from=nothing /a /b", "DL3022"),
        ("COPY a b /c", "DL3021"),
        ("RUN pip install axlog==1", "DL3042"),
        ("RUN pip install --no-cache-dir axlog", "DL3013"),
        ("RUN cd /src", "DL3003"),
        ("RUN curl x | sh", "DL4006"),
        ("CMD axlog run", "DL3025"),
        ("USER root", "DL3002"),
        ("run true", "DL1000"),
        ("ENV TOKEN=1", "DL-secret"),
    ],
)
def test_the_linter_finds_what_is_wrong(line: str, rule: str) -> None:
    text = f"FROM python:3.12-slim\nUSER axlog\n{line}\n"
    if line.startswith("FROM"):
        text += "USER axlog\n"
    assert [fault.split()[0] for fault in faults(text)] == [rule]


def test_commands_and_variables_of_the_services_exist(deploy: Path) -> None:
    service = read(deploy / "compose.yaml")["services"]["axlog"]
    know_command(["axlog", *service["command"]])
    used = set(re.findall(r"\$\{(\w+)\}", (deploy / "pipeline.yaml").read_text("utf-8")))
    assert used == set(service["environment"])


def test_the_unit_starts_a_pipeline(deploy: Path) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # keys keep their case
    unit.read(deploy / "axlog.service", encoding="utf-8")
    assert set(unit) == {"DEFAULT", "Unit", "Service", "Install"}
    assert "axlog run pipeline.yaml" in unit["Service"]["ExecStart"]
    assert unit["Service"]["RestartPreventExitStatus"] == "2"


def test_the_dashboard_shows_metrics_that_exist(deploy: Path, repository: Path) -> None:
    board = json.loads((deploy / "grafana" / "axlog.json").read_text(encoding="utf-8"))
    known = set(re.findall(r"`(\w+)` \|", (repository / "docs" / "metrics.md").read_text("utf-8")))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids) >= 10
    for panel in board["panels"]:
        for target in panel["targets"]:
            used = set(re.findall(r"\b(?:axlog|process)_\w+", target["expr"]))
            assert used, panel["title"]
            assert {re.sub("_bucket$", "", name) for name in used} <= known, panel["title"]
    source = read(deploy / "grafana" / "datasource.yaml")["datasources"][0]
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["uid"]}


def test_all_extras_are_in_all(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    (listed,) = extras["all"]
    named = set(listed.removeprefix("axlog[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "bench", "dev", "docs"}
