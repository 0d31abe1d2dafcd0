"""Settings of the stack: the defaults, what flags and variables give as text, what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftershock.errors import InputError
from aftershock.stack.settings import Launch, StackSettings
from aftershock.stack.stack import check


def test_every_field_says_what_it_is() -> None:
    for model in (StackSettings, Launch):
        assert [name for name, field in model.model_fields.items() if not field.description] == []


def test_values_may_come_as_text() -> None:
    settings = StackSettings.checked(
        {"replicas": "3", "restart_delay_s": "0.5", "store": "false", "model_server": "python3 'my server.py' -v"}
    )
    assert (settings.replicas, settings.restart_delay_s, settings.store) == (3, 0.5, False)
    assert settings.model_server == ("python3", "my server.py", "-v")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"replica": 3}, ["'replica'", "replicas"]),
        ({"replicas": "many"}, ["replicas='many'", "integer"]),
        ({"replicas": 0}, ["replicas=0", "1"]),
        ({"gateway_port": 70_000}, ["gateway_port=70000", "65535"]),
        ({"ready_timeout_s": "nan"}, ["ready_timeout_s='nan'"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(values: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        StackSettings.checked(values)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_only_servers_need_a_model_and_a_port() -> None:
    settings = StackSettings(model="no-such-model")
    with pytest.raises(InputError, match="no-such-model"):
        check(settings)
    check(settings.model_copy(update={"servers": False}))


def test_the_launch_document_survives_its_file(tmp_path: Path) -> None:
    launch = Launch(
        run_id="r", run_dir=tmp_path, settings=StackSettings(model_server=("a", "b")), model_path=tmp_path / "m"
    )
    assert Launch.model_validate_json(launch.model_dump_json()) == launch
