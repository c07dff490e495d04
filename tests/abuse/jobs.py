"""Real jobs for the real engine: a tiny file, a manifest and, if wanted, rules."""

import os
from pathlib import Path
from typing import Any

from core.manifests import parse_manifest
from runner.boxes import BoxLimits, BoxOrder
from runner.engine.contract import InputFile, JobFacts, Order

LIMITS = BoxLimits(wall_seconds=60, cpu_seconds=20, memory_mb=512, file_mb=20)
MANIFEST = (
    b'{"manifest": 1, "name": "members", "config": "./config", "on_rule_error": "fail",'
    b' "fields": [{"name": "id", "type": "integer"}, {"name": "name", "type": "text"}]}'
)


def job(folder: Path, rules: dict[str, str] | None = None, *, rows: int = 3, **more: Any) -> BoxOrder:
    """An order as the runner makes it; `rules` are files of the config package."""
    scratch = folder / f"job-{os.urandom(4).hex()}"
    (scratch / "in").mkdir(parents=True)
    (scratch / "in" / "0").write_text("id,name\n" + "".join(f"{n},Ann {n}\n" for n in range(rows)), encoding="utf-8")
    for name, source in (rules or {}).items():
        path = scratch / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    given: dict[str, Any] = {
        "label": scratch.name,
        "tenant": "acme",
        "scratch": scratch,
        "job": Order(
            job=JobFacts(job_id="acme-members-1", tenant="acme", workflow="members", attempt=1),
            manifest=parse_manifest(MANIFEST).model_dump(mode="json"),
            inputs=(InputFile(role="primary", name="members.csv", path=Path("in/0"), size=1, sha256="0" * 64),),
            config=Path("config") if rules else None,
            config_digest="d",
        ),
        "outputs": ("normalized.xlsx", "artifact.json"),
        "limits": LIMITS,
    }
    return BoxOrder(**(given | more))
