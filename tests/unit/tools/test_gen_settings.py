"""tools/gen_settings.py: the page has every setting of every service."""

from __future__ import annotations

import importlib

import pytest

from playhall_common.config import describe
from tools import gen_settings


def test_the_page_is_fresh() -> None:
    assert gen_settings.PAGE.read_text() == gen_settings.page()


@pytest.mark.parametrize("service", gen_settings.SERVICES)
def test_every_setting_is_on_the_page(service: str) -> None:
    module = importlib.import_module(f"playhall_{service}.config")
    text = gen_settings.page()
    for doc in describe(gen_settings.settings_class(module), module.PREFIX):
        in_every = doc.env.replace(module.PREFIX, gen_settings.EVERY)
        assert f"| `{doc.env}` |" in text or f"| `{in_every}` |" in text
        assert doc.doc.endswith(".")
        assert "|" not in doc.doc
