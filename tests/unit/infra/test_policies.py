"""The policies for people, by reading; tests/acceptance/test_cloud_recipes.py has a server enforce them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
POLICIES = sorted((ROOT / "infra" / "deploy" / "policies").glob("*.json"))
ON_MINIO = ("sender", "author", "reader", "operator-minio")
# Of the actions and condition keys that MinIO's documentation lists, those that are used here.
MINIO_ACTIONS = {
    "s3:GetObject",
    "s3:GetObjectVersion",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListBucket",
    "s3:ListBucketVersions",
}
MINIO_CONDITIONS = {"s3:prefix"}


def statements(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["Statement"]
    return found


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.parametrize("path", POLICIES, ids=lambda p: p.stem)
class TestEvery:
    def test_it_stands_on_the_page(self, path: Path):
        assert f"| `{path.name}` |" in (ROOT / "docs" / "guides" / "roles.md").read_text()

    def test_no_right_is_given_on_everything(self, path: Path):
        for statement in statements(path):
            assert not [r for r in listed(statement["Resource"]) if r in ("*", "arn:aws:s3:::*")]
            assert not [action for action in listed(statement["Action"]) if "*" in action]

    def test_only_variables_that_the_page_names(self, path: Path):
        told = set(re.findall(r"`([A-Z]+)`", (ROOT / "docs" / "guides" / "roles.md").read_text()))
        assert set(re.findall(r"\$\{(\w+)\}", path.read_text())) <= told

    def test_nobody_changes_the_infrastructure(self, path: Path):
        actions = [action for statement in statements(path) for action in listed(statement["Action"])]
        assert not [
            a for a in actions if re.search(r":(Create|Update(?!Item)|DeleteTable|DeleteQueue|DeleteBucket|Purge)", a)
        ]


@pytest.mark.parametrize("name", ["sender", "author", "reader"])
def test_every_object_right_of_a_tenants_people_ends_at_the_tenants_folder(name: str):
    (path,) = [p for p in POLICIES if p.stem == name]
    for statement in statements(path):
        if statement["Action"] == ["s3:ListBucket"]:
            prefixes = statement["Condition"]["StringLike"]["s3:prefix"]
            assert [p for p in prefixes if "/${TENANT}/" not in p] == []
        else:
            assert [r for r in listed(statement["Resource"]) if "/${TENANT}/" not in r] == []


@pytest.mark.parametrize("name", ON_MINIO)
def test_what_is_for_minio_uses_what_minio_knows(name: str):
    (path,) = [p for p in POLICIES if p.stem == name]
    for statement in statements(path):
        assert set(listed(statement["Action"])) <= MINIO_ACTIONS
        assert {key for test in statement.get("Condition", {}).values() for key in test} <= MINIO_CONDITIONS
        assert all(r.startswith("arn:aws:s3:::${BUCKET}") for r in listed(statement["Resource"]))
