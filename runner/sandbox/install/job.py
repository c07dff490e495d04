"""The installer's entry point in the box: takes requirements and a wheelhouse, writes one archive of files."""

import json
import zipfile
from pathlib import Path
from typing import TextIO

from runner.engine.contract import EndCode, EndError, FinalEvent, Json, Order
from runner.engine.protocol import open_target
from runner.sandbox.install.archives import ARCHIVE, safe_name
from runner.sandbox.install.wheels import (
    RequirementRefused,
    Wheel,
    Wheelhouse,
    members,
    parse,
    resolve,
)

_BLOCK = 1024 * 1024


def run(order: Json, channel: TextIO) -> int:
    """Carry out an order by the engine's contract (docs/reference/engine-order.md)."""
    try:
        end = FinalEvent(_install(Order.decode(order)))
    except RequirementRefused as refused:
        end = _failed(EndCode.CONFIG_REFUSED, str(refused))
    except MemoryError:
        end = _failed(EndCode.OUT_OF_MEMORY, "the installation exceeded its memory limit")
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError) as error:
        end = _failed(EndCode.CONFIG_REFUSED, f"a wheel cannot be read: {type(error).__name__}")
    channel.write(json.dumps(end.encode()) + "\n")
    return 0


def _install(order: Order) -> Json:
    text = order.inputs[0].path.read_text(encoding="utf-8", errors="replace")
    wanted, strict = parse(text)
    if not order.layer:
        raise RequirementRefused("there is no wheelhouse here; ask the operator to set ADE_WHEELHOUSE")
    wheels = resolve(wanted, Wheelhouse(Path(order.layer)), strict=strict)
    with (
        open_target(order.outputs[ARCHIVE]) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        files = sum(_copy(wheel, archive) for wheel in wheels)
    return {"wheels": [f"{wheel.name}=={wheel.version}" for wheel in wheels], "files": files}


def _copy(wheel: Wheel, archive: zipfile.ZipFile) -> int:
    count = 0
    for target, info, source in members(wheel):
        if not safe_name(target):
            raise RequirementRefused(f"{wheel.path.name} contains a file name that leads outside")
        with source.open(info) as content, archive.open(zipfile.ZipInfo(target), "w") as out:
            while block := content.read(_BLOCK):
                out.write(block)
        count += 1
    return count


def _failed(code: EndCode, message: str) -> FinalEvent:
    return FinalEvent(error=EndError(code, message, {"file": "requirements.txt"}))
