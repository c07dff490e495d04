"""Config packages at their places, and what is told of manifests that cannot be used."""

import json
from posixpath import basename

from core.drops import MAX_PACKAGE_BYTES, Package, Workflow, find_package
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PackageRefused, Problem
from core.keys import is_manifest, rejected_key
from core.packages import check_zip
from core.ports import ObjectInfo, ObjectStore
from handlers.views import View
from handlers.workflows import Workflows


class Packages:
    def __init__(self, store: ObjectStore, workflows: Workflows) -> None:
        self._store = store
        self._workflows = workflows

    def find(self, view: View, workflow: Workflow) -> tuple[Workflow, Package]:
        """A workflow with its package: the one it names, or what stands beside it as `config/` or `config.zip`."""
        package = self._at_its_place(view, workflow)
        unnamed = workflow.unnamed_zip
        if unnamed is not None and not package.refs and view.head(unnamed) is not None:
            workflow = workflow.with_zip()
            package = self._at_its_place(view, workflow)
        return workflow, package

    def tell_rejected(self, view: View, manifest_keys: set[str]) -> None:
        """Write what is wrong with the manifests of a folder beside where their outputs would go, or take it back."""
        for target in sorted({rejected_key(k) for k in manifest_keys}):
            folders = {k[: k.rfind("/") + 1] for k in manifest_keys if rejected_key(k) == target}
            problems = [
                {"manifest": info.key, **problem.as_dict()}
                for folder in sorted(folders)
                for info in view.infos([key for key in view.names(folder) if is_manifest(basename(key))])
                for problem in self._problems(view, info)
            ]
            if problems:
                body = json.dumps({"rejected": 1, "problems": problems}, indent=2, ensure_ascii=False).encode()
                self._store.put(target, body)
            elif self._store.head(target) is not None:
                self._store.delete(target)

    def _at_its_place(self, view: View, workflow: Workflow) -> Package:
        at = workflow.config_place
        there = view.below(at) if at.endswith("/") else view.infos([at])
        package = find_package(workflow, there)
        if not at.endswith("/") and there:
            try:
                check_zip(self._store.read(at, version=there[0].version, limit=MAX_PACKAGE_BYTES))
            except (PackageRefused, ObjectTooLarge) as error:
                raise ManifestInvalid(
                    [Problem("$.config", f"{at}: {error}", "a plain zip; see docs/rule-author.md")]
                ) from None
            except (ObjectMissing, ObjectChanged):
                return Package((), 0.0, missing=at)
        return package

    def _problems(self, view: View, info: ObjectInfo) -> list[Problem]:
        loaded = self._workflows.load(info)
        if isinstance(loaded, Workflow):
            try:
                self.find(view, loaded)
            except ManifestInvalid as error:
                return error.problems
            return []
        return loaded.problems if loaded is not None else []
