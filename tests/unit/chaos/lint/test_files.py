"""What `aftershock lint` does with files: output, exit codes, and the file that is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aftershock.chaos.lint.files import run_lint
from aftershock.errors import ExitCode, InputError

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.yaml"))
"""What the templates render to, as test_render holds it."""

ERROR = """\
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  name: mine
spec:
  appinfo: {appns: inference, applabel: app=model-server, appkind: Deployment}
  chaosServiceAccount: chaos
  experiments:
    - name: pod-delete
      spec: {components: {env: [{name: TOTAL_CHAOS_DURATION, value: "60"}]}}
"""
CLEAN = ERROR.replace("Deployment", "deployment")
WARNING = CLEAN.replace("spec:\n", "spec:\n  somethingElse: 1\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(ERROR, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_our_templates_render_to_is_clean(path: Path) -> None:
    confirmed = "; 1 ignored" if path.stem == "pod-network-partition" else ""  # a full outage
    assert run_lint([path]) == (f"1 file, 1 ChaosEngine: 0 errors, 0 warnings{confirmed}", ExitCode.PASS)


def test_an_error_is_one_line_and_fails(file: Path) -> None:
    text, code = run_lint([file])
    first, summary = text.splitlines()
    assert first.startswith(f"{file}:6: error kind-case: spec.appinfo.appkind='Deployment': ")
    assert summary == "1 file, 1 ChaosEngine: 1 error, 0 warnings; 1 can be fixed with --fix"
    assert code == ExitCode.FAIL
    assert file.read_text(encoding="utf-8") == ERROR


def test_a_warning_does_not_fail(file: Path) -> None:
    file.write_text(WARNING, encoding="utf-8")
    text, code = run_lint([file])
    assert "mine.yaml:6: warning field-unknown:" in text
    assert code == ExitCode.PASS


def test_what_is_meant_is_passed_over_by_a_comment(file: Path) -> None:
    lines = ERROR.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if "Deployment" in line)
    same = "".join(
        [*lines[:at], lines[at].replace("\n", "  # aftershock: ignore label-set, kind-case: ours\n"), *lines[at + 1 :]]
    )
    above = "".join([*lines[:at], "  # aftershock: ignore kind-case\n", *lines[at:]])
    for text in (same, above, above.replace("\n", "\r\n")):
        file.write_bytes(text.encode())
        assert run_lint([file], fix=True) == ("1 file, 1 ChaosEngine: 0 errors, 0 warnings; 1 ignored", ExitCode.PASS)
        assert file.read_bytes() == text.encode(), "what is meant is not mended"
    for other in (
        same.replace("kind-case", "kind-job"),
        above.replace("  # a", "  x: 1 # a"),
        "#\n" + above.replace("case\n", "case\n\n"),
    ):
        file.write_text(other, encoding="utf-8")
        assert "kind-case" in run_lint([file])[0].split("\n")[0] + run_lint([file])[0].split("\n")[1]


def test_what_is_meant_everywhere_is_passed_over_by_its_name(file: Path) -> None:
    assert run_lint([file], ignored=["kind-case"])[1] == ExitCode.PASS
    assert json.loads(run_lint([file], output="json", ignored=["kind-case"])[0])["ignored"] == 1
    with pytest.raises(
        InputError, match=r"rule 'kind-csae' is unknown; did you mean kind-case\? `aftershock lint --rules`"
    ):
        run_lint([file], ignored=["kind-csae"])


def test_fix_writes_the_file_and_says_what_it_did(file: Path) -> None:
    file.chmod(0o640)
    text, code = run_lint([file], fix=True)
    assert text.splitlines()[0].startswith(f"{file}:6: fixed kind-case: ")
    assert text.splitlines()[-1] == "1 file, 1 ChaosEngine: 0 errors, 0 warnings; 1 fixed"
    assert code == ExitCode.PASS
    assert file.read_text(encoding="utf-8") == CLEAN
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_fix_leaves_a_clean_file_untouched(file: Path) -> None:
    file.write_text(CLEAN, encoding="utf-8")
    before = file.stat()
    assert run_lint([file], fix=True)[1] == ExitCode.PASS
    after = file.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_fix_keeps_line_ends_and_goes_through_a_link(file: Path, tmp_path: Path) -> None:
    file.write_bytes(ERROR.replace("\n", "\r\n").encode())
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    run_lint([link], fix=True)
    assert link.is_symlink()
    assert file.read_bytes() == CLEAN.replace("\n", "\r\n").encode()


def test_json_says_the_same_for_programs(file: Path) -> None:
    document = json.loads(run_lint([file], output="json")[0])
    (finding,) = document["findings"]
    assert (document["version"], document["errors"], document["warnings"], document["unreadable"]) == (1, 1, 0, [])
    assert finding["rule"] == "kind-case"
    assert (finding["line"], finding["column"], finding["fixable"]) == (6, 68, True)
    assert (finding["engine"], finding["path"]) == ("mine", "spec.appinfo.appkind")
    fixed = json.loads(run_lint([file], fix=True, output="json")[0])
    assert ([each["rule"] for each in fixed["fixed"]], fixed["findings"]) == (["kind-case"], [])


def test_what_cannot_be_read_does_not_hide_the_rest(file: Path, tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "open.yaml").write_text("a: [", encoding="utf-8")
    paths = [tmp_path / "none.yaml", tmp_path, tmp_path / "binary.yaml", tmp_path / "open.yaml", file]
    text, code = run_lint(paths)
    lines = text.splitlines()
    assert lines[0] == f"{tmp_path / 'none.yaml'}: does not exist; name a YAML file"
    assert lines[1] == f"{tmp_path}: is no file; name a YAML file"
    assert lines[2] == f"{tmp_path / 'binary.yaml'}: is no text in UTF-8 (byte 0); name a YAML file"
    assert lines[3].startswith(f"{tmp_path / 'open.yaml'}:1: not YAML (")
    assert "kind-case" in lines[4]
    assert lines[5].endswith("; 4 could not be read")
    assert code == ExitCode.BAD_INPUT


def test_a_file_with_nothing_in_it_was_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.touch()
    text, code = run_lint([path])
    assert text.splitlines()[-1] == "1 file, 0 ChaosEngines: 0 errors, 0 warnings"
    assert code == ExitCode.BAD_INPUT


def test_files_without_any_engine_are_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod\n", encoding="utf-8")
    text, code = run_lint([path])
    assert text.splitlines()[0] == f"{path}: no ChaosEngine in it; name a file that holds one"
    assert code == ExitCode.BAD_INPUT
    assert run_lint([])[1] == ExitCode.BAD_INPUT


def test_a_file_that_cannot_be_written_gets_one_line(file: Path) -> None:
    full_disk = (  # as far as this process can tell, root or not: no file may grow
        "import resource, sys; from pathlib import Path; from aftershock.chaos.lint.files import run_lint;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
        "text, code = run_lint([Path(sys.argv[1])], fix=True); print(text); sys.exit(code)"
    )
    before = file.read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", full_disk, str(file)], capture_output=True, text=True)
    assert "cannot be written" in done.stdout.splitlines()[0], done.stderr
    assert done.returncode == ExitCode.BAD_INPUT
    assert file.read_text(encoding="utf-8") == before
