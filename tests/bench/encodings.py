"""How often the encoding of a made file is found, and how often a wrong one is told: `python tests/bench/encodings.py`.

Other libraries are compared if they are installed: chardet (its own first choice), charset-normalizer, faust-cchardet.
"""

import importlib
import io
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "unit")]

from runner.engine.reading import encodings  # noqa: E402
from tests.support.languages import LANGUAGES, words_of  # noqa: E402

SIZES = {2: 4, 5: 4, 20: 4, 200: 4, 3_000: 1}  # lines -> files of each


def made() -> Iterator[tuple[int, str, bytes]]:
    for language, (names, _) in LANGUAGES.items():
        words = words_of(language)
        for name in names:
            for lines, files in SIZES.items():
                for seed in range(files):
                    r = random.Random(f"{language}{lines}{seed}")
                    rows = (f"{n},{r.choice(words)} {r.choice(words)},{r.randint(1, 99)}\n" for n in range(1, lines))
                    text = "id,item,n\n" + "".join(rows)
                    yield lines, text, text.encode(name)


def ours(content: bytes) -> tuple[str, bool]:
    found = encodings.detect(io.BytesIO(content))
    return found.name, found.sure


def peers() -> dict[str, Callable[[bytes], tuple[str, bool]]]:
    found: dict[str, Callable[[bytes], tuple[str, bool]]] = {"ours": ours}
    for title, module in (
        ("chardet", "chardet"),
        ("charset-normalizer", "charset_normalizer"),
        ("cchardet", "cchardet"),
    ):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        found[title] = lambda content, detect=library.detect: (detect(content)["encoding"] or "ascii", True)
    return found


def decoded(content: bytes, name: str) -> str | None:
    try:
        return content.decode(name)
    except (LookupError, UnicodeDecodeError):
        return None


def main() -> None:
    for title, detect in peers().items():
        right, all_of = Counter[int](), Counter[int]()
        wrong_and_sure = right_and_told = 0
        for lines, text, content in made():
            name, sure = detect(content)
            is_right = decoded(content, name) == text
            all_of[lines] += 1
            right[lines] += is_right
            wrong_and_sure += sure and not is_right
            right_and_told += is_right and not sure
        shares = "  ".join(f"{lines}: {right[lines] / all_of[lines]:.3f}" for lines in all_of)
        total = f"{right.total() / all_of.total():.3f} of {all_of.total()}"
        print(f"{title:20} {total}  by lines {shares}  wrong, not told {wrong_and_sure}  right, told {right_and_told}")


if __name__ == "__main__":
    main()
