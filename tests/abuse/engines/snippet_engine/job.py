"""As the contract says: run(order, channel). The snippet's `main(order)` gives what goes into `result.json`."""

import json
import os
import traceback


def run(order, channel):
    source = order["config"]["path"] + "/rule.py"
    try:
        with open(source, encoding="utf-8") as file:  # noqa: PTH123 - as small as can be
            code = compile(file.read(), source, "exec")
        space = {"order": order, "channel": channel}
        exec(code, space)
        result = space["main"](order) if "main" in space else None
        target = order["outputs"].get("result.json")
        if target is not None and result is not None:
            with os.fdopen(os.dup(target), "w", encoding="utf-8") as file:
                json.dump(result, file)
    except MemoryError:
        end = {"ok": False, "error": {"code": "out_of_memory", "message": "no more memory", "where": {}}}
    except Exception as error:  # noqa: BLE001 - as the engine does with rules
        traceback.print_exc()
        where = {"rule": "rule.main", "exception": type(error).__name__}
        end = {"ok": False, "error": {"code": "rule_error", "message": type(error).__name__, "where": where}}
    else:
        end = {"ok": True, "summary": {"rows_out": 0}}
    channel.write(json.dumps({"event": "end", **end}) + "\n")
    channel.flush()
    return 0
