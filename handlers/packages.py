"""Config packages at their places."""

from core.drops import MAX_PACKAGE_BYTES, Package, Workflow, find_package
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, PackageRefused, Problem
from core.packages import check_zip
from core.ports import ObjectStore
from handlers.views import View


class Packages:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def find(self, view: View, workflow: Workflow) -> tuple[Workflow, Package]:
        """A workflow with its package: the one it names, or what stands beside it as `config/` or `config.zip`."""
        package = self._at_its_place(view, workflow)
        unnamed = workflow.unnamed_zip
        if unnamed is not None and not package.refs and view.head(unnamed) is not None:
            workflow = workflow.with_zip()
            package = self._at_its_place(view, workflow)
        return workflow, package

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
