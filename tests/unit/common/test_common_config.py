"""Settings: read, checked, and refused with every reason at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from playhall_common.config import (
    ConfigError,
    Secret,
    ServiceConfig,
    TrustedConfig,
    describe,
    load,
    load_or_exit,
    setting,
)

PREFIX = "PLAYHALL_TOY"


@dataclass(frozen=True, kw_only=True)
class Toy:
    name: str = setting("Its name.")
    size: int = setting("Its size.", default=3, low=1, high=9)
    speed: float = setting("Its speed.", default=1.5)
    loud: bool = setting("Whether it is loud.", default=False)
    box: Path = setting("Where it lives.", default=Path("box"))
    friends: list[str] = setting("Who plays along.", default_factory=list)
    owner: str | None = setting("Whose it is.", default=None)
    colour: str = setting("Its colour.", default="red", choices=("red", "blue"))
    key: Secret = setting("Its key.", default=Secret("none"), env="PLAYHALL_SHARED_KEY")


def toy(**environ: str) -> Toy:
    return load(Toy, PREFIX, {f"PLAYHALL_TOY_{name}": value for name, value in environ.items()})


def problems_of(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(Toy, PREFIX, environ)
    return caught.value.problems


def test_every_type_is_read() -> None:
    values = load(
        Toy,
        PREFIX,
        {
            "PLAYHALL_TOY_NAME": "bear",
            "PLAYHALL_TOY_SIZE": "9",
            "PLAYHALL_TOY_SPEED": "0.25",
            "PLAYHALL_TOY_LOUD": "Yes",
            "PLAYHALL_TOY_BOX": "/tmp/box",
            "PLAYHALL_TOY_FRIENDS": "ann, bob,,",
            "PLAYHALL_TOY_OWNER": "eve",
            "PLAYHALL_TOY_COLOUR": "blue",
            "PLAYHALL_SHARED_KEY": "k",
            "PATH": "/bin",
        },
    )
    assert values == Toy(
        name="bear",
        size=9,
        speed=0.25,
        loud=True,
        box=Path("/tmp/box"),
        friends=["ann", "bob"],
        owner="eve",
        colour="blue",
        key=Secret("k"),
    )


def test_defaults_hold_where_nothing_is_set() -> None:
    assert toy(NAME="bear") == Toy(name="bear")


def test_an_empty_optional_is_none() -> None:
    assert toy(NAME="bear", OWNER="").owner is None


@pytest.mark.parametrize("prefix", [PREFIX, PREFIX + "_"])
def test_the_prefix_may_end_with_its_underscore(prefix: str) -> None:
    assert load(Toy, prefix, {"PLAYHALL_TOY_NAME": "bear"}).name == "bear"


def test_every_problem_is_told_at_once() -> None:
    problems = problems_of(
        {"PLAYHALL_TOY_SIZE": "10", "PLAYHALL_TOY_SPED": "1", "PLAYHALL_TOY_LOUD": "maybe"}
    )
    assert problems == [
        "PLAYHALL_TOY_NAME is not set: Its name.",
        "PLAYHALL_TOY_SIZE '10': expected 9 or less",
        "PLAYHALL_TOY_LOUD 'maybe': expected true or false",
        "PLAYHALL_TOY_SPED is not a setting; did you mean PLAYHALL_TOY_SPEED?",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SIZE", "0"),
        ("SIZE", "3.0"),
        ("SIZE", ""),
        ("SPEED", "nan"),
        ("SPEED", "inf"),
        ("SPEED", "fast"),
        ("LOUD", ""),
        ("BOX", ""),
        ("COLOUR", "green"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name: str, value: str) -> None:
    (problem,) = problems_of({"PLAYHALL_TOY_NAME": "bear", f"PLAYHALL_TOY_{name}": value})
    assert problem.startswith(f"PLAYHALL_TOY_{name} '{value}': expected")


def test_another_services_names_are_not_ours() -> None:
    assert load(Toy, PREFIX, {"PLAYHALL_TOY_NAME": "bear", "PLAYHALL_TOYS_SIZE": "1"}).size == 3


def test_secrets_do_not_show() -> None:
    shown = repr(load(Toy, PREFIX, {"PLAYHALL_TOY_NAME": "bear", "PLAYHALL_SHARED_KEY": "hunter2"}))
    assert "hunter2" not in shown
    assert "***" in shown


def test_a_person_reads_the_problems_and_the_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load_or_exit(Toy, PREFIX, {})
    assert caught.value.code == 2
    assert "PLAYHALL_TOY_NAME is not set" in capsys.readouterr().err


def test_the_reference_says_what_is_read() -> None:
    docs = {doc.env: doc for doc in describe(Toy, PREFIX)}
    assert docs["PLAYHALL_TOY_NAME"].default is None
    assert docs["PLAYHALL_TOY_SIZE"].type == "whole number"
    assert docs["PLAYHALL_TOY_SIZE"].default == "3"
    assert docs["PLAYHALL_TOY_OWNER"].type == "text"
    assert docs["PLAYHALL_TOY_FRIENDS"].type == "list of text"
    assert docs["PLAYHALL_SHARED_KEY"].doc == "Its key."


@pytest.mark.parametrize("secret", ["", "fifteen letters"])
def test_a_short_service_secret_is_refused(secret: str) -> None:
    with pytest.raises(ConfigError, match="shorter than 16"):
        load(TrustedConfig, PREFIX, {"PLAYHALL_SERVICE_SECRET": secret})


@pytest.mark.parametrize("name", ["ADDRESS", "METRICS_ADDRESS"])
def test_an_address_without_a_port_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="localhost"):
        load(ServiceConfig, PREFIX, {f"PLAYHALL_TOY_{name}": "localhost"})
