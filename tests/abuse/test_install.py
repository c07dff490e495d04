"""requirements.txt against hostile words and hostile wheels: wheels only, from the wheelhouse only, in a box."""

import hashlib
import os
import stat
import threading
import zipfile
from contextlib import closing
from dataclasses import replace

import pytest

from core.verdicts import Verdict
from runner.sandbox.drivers import make_layers
from runner.sandbox.install import layers as layers_module
from runner.sandbox.install.layers import LayerRefused, unpack
from runner.sandbox.install.wheels import RequirementRefused, parse
from runner.sandbox.jail import JailSandbox
from tests.abuse.boxes import ENGINE, never, order, result


def wheel(folder, name, version="1.0", *, files=None, requires=(), extra=()):
    """A small made-up wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in (files or {f"{name}.py": f"VERSION = {version!r}\n"}).items():
            archive.writestr(file, content)
        archive.writestr(f"{info}/METADATA", metadata)
        for entry, content in extra:
            archive.writestr(entry, content)
    return path


@pytest.fixture
def house(tmp_path):
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    return folder


@pytest.fixture
def layers(tmp_path, house):
    made = make_layers(
        "jail", min_level="confined", run_dir=tmp_path / "run", cache=tmp_path / "layers", wheelhouse=house
    )
    yield made
    made.close()


@pytest.fixture
def prepare(layers, tmp_path):
    def prepared(text):
        path = tmp_path / "requirements.txt"
        path.write_text(text)
        return layers.prepare_layer(path, tenant="acme")

    return prepared


def refusal(prepare, text):
    with pytest.raises(LayerRefused) as caught:
        prepare(text)
    return caught.value


def test_a_rule_can_import_what_was_installed_and_nothing_can_be_written_there(prepare, house, tmp_path):
    wheel(house, "lookups", "2.0", requires=["helper>=1"])
    wheel(house, "helper", "1.4")
    layer = prepare("lookups>=1  # look-ups\n")
    sandbox = JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE)
    snippet = """
import os
def main(order):
    import helper, lookups
    try:
        os.close(os.open(os.path.dirname(lookups.__file__) + '/new', os.O_CREAT | os.O_WRONLY))
    except OSError:
        return [lookups.VERSION, helper.VERSION]
"""
    assert result(sandbox.run(order(tmp_path, snippet, layer=layer), killed=never)) == ["2.0", "1.4"]
    sandbox.close()


def test_the_newest_version_that_fits_is_taken(prepare, house):
    for version in ("1.0", "1.9", "2.0", "2.1rc1"):
        wheel(house, "lookups", version)
    assert "1.9" in (prepare("lookups<2") / "lookups.py").read_text()
    assert "'2.0'" in (prepare("lookups") / "lookups.py").read_text()


def test_the_second_time_nothing_is_installed_again(prepare, house, layers, monkeypatch):
    wheel(house, "lookups")
    first = prepare("lookups")
    monkeypatch.setattr(layers._sandbox, "run", None)
    assert prepare("lookups") == first


def test_another_wheelhouse_gives_another_layer(prepare, house):
    wheel(house, "lookups", "1.0")
    first = prepare("lookups")
    wheel(house, "lookups", "2.0")
    assert prepare("lookups") != first


def test_two_runners_that_install_the_same_at_once_both_get_it(layers, house, tmp_path):
    wheel(house, "lookups")
    (tmp_path / "requirements.txt").write_text("lookups")
    found = []

    def one():
        found.append(layers.prepare_layer(tmp_path / "requirements.txt", tenant="acme"))

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "layers").iterdir()] == [found[0].name]


def test_layers_that_nobody_asked_for_in_a_long_time_are_collected(prepare, house, layers):
    wheel(house, "lookups")
    layer = prepare("lookups")
    assert layers.collect(older_than=7200) == 0
    os.utime(layer, (1, 1))
    assert layers.collect(older_than=7200) == 1
    assert not layer.exists()


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "--extra-index-url=https://example.org/simple",
        "--find-links /",
        "-e .",
        "-r /etc/passwd",
        "-c other.txt",
        "./lookups",
        "/etc/passwd",
        "../other/lookups-1.0-py3-none-any.whl",
        "lookups @ https://example.org/lookups-1.0-py3-none-any.whl",
        "lookups @ file:///etc/passwd",
        "git+https://example.org/lookups",
        "lookups --global-option=x",
        "lookups --hash=md5:d41d8cd98f00b204e9800998ecf8427e",
    ],
)
def test_words_that_lead_anywhere_else_are_refused(line):
    with pytest.raises(RequirementRefused, match="line 2"):
        parse(f"helper\n{line}\n")


def test_a_source_archive_is_never_built(prepare, house):
    (house / "lookups-1.0.tar.gz").write_bytes(b"anything")
    assert "not in the wheelhouse" in str(refusal(prepare, "lookups"))


def test_a_missing_package_names_itself_and_the_remedy(prepare):
    error = refusal(prepare, "lookups==3")
    assert error.verdict is Verdict.CONFIG_REFUSED
    assert "lookups (==3)" in str(error)
    assert "ADE_WHEELHOUSE" in str(error)


def test_a_wheel_with_another_hash_is_refused(prepare, house):
    wheel(house, "lookups")
    assert "another hash" in str(refusal(prepare, f"lookups --hash=sha256:{'0' * 64}"))


def test_a_wheel_with_the_hash_that_was_given_is_installed(prepare, house):
    digest = hashlib.sha256(wheel(house, "lookups").read_bytes()).hexdigest()
    assert (prepare(f"lookups==1.0 \\\n    --hash=sha256:{digest}\n") / "lookups.py").exists()


def test_where_one_has_a_hash_every_one_needs_one(prepare, house):
    digest = hashlib.sha256(wheel(house, "lookups", requires=["helper"]).read_bytes()).hexdigest()
    wheel(house, "helper")
    assert "helper has no --hash" in str(refusal(prepare, f"lookups --hash=sha256:{digest}"))


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "a/../../evil.py", "a\\..\\evil.py"])
def test_a_wheel_whose_files_lead_elsewhere_is_refused(prepare, house, tmp_path, name):
    wheel(house, "lookups", extra=[(name, "x")])
    error = refusal(prepare, "lookups")
    assert error.verdict is Verdict.CONFIG_REFUSED
    assert list(tmp_path.rglob("evil*")) == []


def test_a_wheel_with_a_link_in_it_is_refused(prepare, house):
    link = zipfile.ZipInfo("lookups/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    wheel(house, "lookups", extra=[(link, "/etc/passwd")])
    assert "holds a link" in str(refusal(prepare, "lookups"))


def test_a_wheel_that_is_no_archive_is_refused(prepare, house):
    (house / "lookups-1.0-py3-none-any.whl").write_bytes(b"not a zip")
    assert refusal(prepare, "lookups").verdict is Verdict.CONFIG_REFUSED


def test_a_wheel_that_unpacks_without_end_meets_the_file_limit(prepare, house, monkeypatch):
    monkeypatch.setattr(layers_module, "LIMITS", replace(layers_module.LIMITS, file_mb=4))
    wheel(house, "lookups", files={"big": bytes(64 * 1024 * 1024)})
    assert refusal(prepare, "lookups").verdict is Verdict.FILE_SIZE


def test_scripts_and_path_files_stay_out_of_a_layer(prepare, house):
    extra = [
        ("lookups-1.0.data/scripts/tool", "x"),
        ("lookups-1.0.data/purelib/more.py", "x"),
        ("evil.pth", "import os"),
        ("lookups-1.0.data/purelib/evil.pth", "import os"),
        ("lookups-1.0.data/platlib/evil.pth", "import os"),
        ("lookups-1.0.data/data/etc/evil", "x"),
        ("lookups-1.0.data/headers/evil.h", "x"),
    ]
    wheel(house, "lookups", extra=extra)
    names = {path.name for path in prepare("lookups").iterdir()}
    assert names == {"lookups.py", "more.py", "lookups-1.0.dist-info"}


def test_a_wheel_runs_nothing_until_a_rule_imports_it(prepare, house, tmp_path):
    """Neither modules that an interpreter looks for at its start, nor entry points, nor names of our own packages."""
    marked = "import builtins\nbuiltins.ran = [*getattr(builtins, 'ran', []), __name__]\n"
    names = ("sitecustomize", "usercustomize", "lookups", "core/__init__", "runner/__init__", "encodings/__init__")
    entry = ("lookups-1.0.dist-info/entry_points.txt", "[console_scripts]\njson=lookups:main\n[pytest11]\nx=lookups\n")
    wheel(house, "lookups", files={f"{name}.py": marked for name in names}, extra=[entry])
    layer = prepare("lookups")
    snippet = """
import builtins, pickle
class Told:
    def __reduce__(self): return (__import__, ("lookups",))
def main(order):
    before = list(getattr(builtins, 'ran', []))
    pickle.loads(pickle.dumps(Told()))
    return [before, builtins.ran]
"""
    with closing(JailSandbox(run_dir=tmp_path / "run", min_level="confined", engine=ENGINE)) as sandbox:
        for _ in range(2):  # the second box of the same zygote starts as clean as the first
            given = order(tmp_path / os.urandom(4).hex(), snippet, layer=layer)
            assert result(sandbox.run(given, killed=never)) == [[], ["lookups"]]


def test_a_refused_installation_leaves_nothing(prepare, house, tmp_path):
    refusal(prepare, "lookups")
    assert list((tmp_path / "layers").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "a/./b", "x" * 300])
def test_what_a_box_packed_is_not_believed(tmp_path, name):
    archive = tmp_path / "layer.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(name, "x")
    with pytest.raises(LayerRefused):
        unpack(archive, tmp_path / "layer", most_bytes=100)


def test_what_a_box_packed_may_not_unpack_to_more_than_the_limit(tmp_path):
    archive = tmp_path / "layer.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x", bytes(1000))
    with pytest.raises(LayerRefused):
        unpack(archive, tmp_path / "layer", most_bytes=100)
