"""In: a standing workflow and one of its inputs. Out: the overlays of the tenant and the sender that change it there.

One that cannot be used is reported like a manifest that does not validate, and its inputs wait: running them without
it would be wrong in silence.
"""

from collections.abc import Sequence

from core.budget import weight_of_problems
from core.caches import BoundedCache
from core.drops import Workflow
from core.errors import ManifestInvalid, ObjectChanged, ObjectMissing, ObjectTooLarge, Problem
from core.manifests import Manifest
from core.overlays import MAX_OVERLAY_BYTES, apply, overlay_places
from core.ports import ObjectInfo, ObjectStore
from handlers.generations import Generations
from handlers.workflows import BucketView, Workflows
from infra.parsing import read_overlay

_CHECKED_BYTES = 16 * 1024 * 1024


class Overlays:
    """Safe to share between threads."""

    def __init__(self, store: ObjectStore, workflows: Workflows) -> None:
        self._store = store
        self._workflows = workflows
        # By overlay and manifest, each at its version: what is wrong with them together.
        self._checked = BoundedCache[tuple[str, str, str, str], list[Problem]](_CHECKED_BYTES)

    def of(
        self, view: BucketView, workflow: Workflow, key: str, generations: Generations | None = None
    ) -> tuple[ObjectInfo, ...]:
        """Those that are there for an input, the most specific last; only standing workflows have any.

        `generations`: of the scan, if it may rely on what was found a moment ago.
        """
        if not workflow.standing:
            return ()
        places = overlay_places(workflow.tenant, workflow.manifest.name, key)
        if generations is not None:
            for at in places:
                self._workflows.recall(view, at, generations)
        return tuple(view.infos(places))

    def misfit(self, workflow: Workflow, overlays: Sequence[ObjectInfo]) -> str | None:
        """The key of the first of these that cannot be used with a workflow."""
        return next((info.key for info in overlays if self.problems(workflow, info)), None)

    def problems(self, workflow: Workflow, info: ObjectInfo) -> list[Problem]:
        known = self._checked.get((info.key, info.version, workflow.info.key, workflow.info.version))
        if known is None:
            known = self._check(workflow.manifest, info)
            key = (info.key, info.version, workflow.info.key, workflow.info.version)
            self._checked.put(key, known, 200 + weight_of_problems(known))
        return known

    def _check(self, manifest: Manifest, info: ObjectInfo) -> list[Problem]:
        try:
            body = self._store.read(info.key, version=info.version, limit=MAX_OVERLAY_BYTES)
            apply(manifest, read_overlay(body))
        except ManifestInvalid as error:
            return error.problems
        except ObjectTooLarge:
            return [Problem("$", f"is {info.size} bytes", f"at most {MAX_OVERLAY_BYTES} bytes")]
        except (ObjectMissing, ObjectChanged):
            return []  # the scan of what is there now plans again
        return []
