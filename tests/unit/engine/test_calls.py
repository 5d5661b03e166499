"""Calls as they are declared: their types, their names, and the room's methods that handle them."""

from __future__ import annotations

import dataclasses
import enum
import sys
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import pytest

from playhall.engine.calls import call_spec_of
from playhall.room import Call, CallRejected, Connection, Entity, Json, JsonIn, JsonOut, Room, Schema, u8

if TYPE_CHECKING:
    from collections.abc import Sequence

Item = Literal["ring", "halo"]


class Suit(enum.Enum):
    HEARTS = "hearts"


class Card(msgspec.Struct):
    suit: Suit
    value: u8 = 1


@dataclasses.dataclass
class Score:
    points: int


class Point(NamedTuple):
    x: int
    y: int


class Buy(Call[int]):
    item: Item
    count: u8 = 1

    def __post_init__(self) -> None:
        if self.count == 13:
            raise KeyError("unlucky")
        if self.count == 14:
            raise ValueError("too many")


class Look(Call[JsonOut]):
    where: JsonIn = None
    many: list[JsonIn] = []  # noqa: RUF012


class TestTheClass:
    def test_its_fields_are_keyword_only_and_immutable(self) -> None:
        ask = Buy(item="ring")
        assert (ask.item, ask.count) == ("ring", 1)
        assert ask == Buy(item="ring", count=1)
        assert hash(ask) == hash(Buy(item="ring"))
        with pytest.raises(TypeError):
            Buy("ring")  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            Buy()  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            ask.item = "halo"  # type: ignore[misc]

    def test_its_name_is_the_classs_in_snake_case_or_given(self) -> None:
        class BuyTwo(Call):
            pass

        class Other(Call, name="buy_3"):
            pass

        assert [call_spec_of(cls).name for cls in (Buy, BuyTwo, Other)] == ["buy", "buy_two", "buy_3"]

    @pytest.mark.parametrize("name", ["", "a b", "1st", "x" * 65, "é", 3])
    def test_what_is_no_name_is_refused(self, name: Any) -> None:
        with pytest.raises(TypeError, match=r"Odd: .* cannot be a call's name"):

            class Odd(Call, name=name):
                pass

    def test_a_call_has_no_other_base_and_no_reserved_field(self) -> None:
        with pytest.raises(TypeError, match=r"Sub: a call has Call\[Reply\] as its only base"):

            class Sub(Buy):
                pass

        with pytest.raises(TypeError, match=r"Odd\.handler: the name is reserved"):

            class Odd(Call):
                handler: int  # type: ignore[assignment]

    def test_types_may_be_named_where_the_class_is_made_or_later(self) -> None:
        class Local(msgspec.Struct):
            n: int

        class Ask(Call["Local"]):
            what: Local

        class Early(Call["list[Late]"]):
            what: Later

        Schema(calls=[Ask, Early])
        spec = call_spec_of(Early)
        assert spec.decode({"what": {"n": 1}}) == Early(what=Later(n=1))
        assert spec.reply == list[Late]


class Later(msgspec.Struct):
    n: int


class Late(msgspec.Struct):
    n: int


class TestDecoding:
    @pytest.mark.ledger("CALL-01", "CALL-02")
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ({"item": "crown"}, "Invalid enum value 'crown'"),
            ({}, "missing required field `item`"),
            ({"item": "ring", "count": 256}, "`int` <= 255"),
            ({"item": "ring", "count": 1.5}, "Expected `int`, got `float`"),
            ({"item": "ring", "count": True}, "Expected `int`, got `bool`"),
            ({"item": "ring", "count": "3"}, "Expected `int`, got `str`"),
            ({"item": "ring", "count": 13}, "unlucky"),
            ({"item": "ring", "count": 14}, "too many"),
            (["ring"], "Expected `object`, got `array`"),
            ("ring", "Expected `object`, got `str`"),
            (None, "Expected `object`, got `null`"),
            (b'{"item": "ring"}', "its arguments are JSON, not bytes"),
        ],
    )
    def test_what_is_not_such_a_call_is_refused(self, content: Any, says: str) -> None:
        with pytest.raises(ValueError, match=says):
            call_spec_of(Buy).decode(content)

    def test_unknown_keys_are_ignored_and_missing_ones_take_their_default(self) -> None:
        assert call_spec_of(Buy).decode({"item": "halo", "new": [1]}) == Buy(item="halo")

    @pytest.mark.ledger("CALL-03")
    def test_what_is_declared_as_any_json_comes_as_it_was_sent(self) -> None:
        sent = {"where": {"a": [1, "2", None, 2.5, True]}, "many": [[1], {"b": "x"}]}
        assert call_spec_of(Look).decode(sent) == Look(**sent)  # type: ignore[arg-type]

    def test_arguments_that_nest_without_end_are_refused(self) -> None:
        class Nest(Call):
            inner: dict[str, Nest] | None = None

        assert Nest.__name__ == "Nest"
        deep: Any = {}
        for _ in range(sys.getrecursionlimit() * 4):
            deep = {"inner": {"a": deep}}
        with pytest.raises(ValueError, match=r"\S"):
            call_spec_of(Nest).decode(deep)
        while deep:  # so that freeing it does not nest either
            deep = deep["inner"]["a"]

    def test_arguments_go_there_and_back(self) -> None:
        class Ask(Call):
            cards: list[Card]
            score: Score
            at: Point
            data: bytes
            by: dict[int, frozenset[str]]

        ask = Ask(
            cards=[Card(Suit.HEARTS, 3)],
            score=Score(2),
            at=Point(1, 2),
            data=b"\x00\xff",
            by={7: frozenset("a")},
        )
        spec = call_spec_of(Ask)
        assert spec.decode(msgspec.json.decode(spec.encode(ask).data)) == ask

    def test_arguments_that_are_not_json_are_the_callers_error(self) -> None:
        with pytest.raises(ValueError, match="not JSON"):
            call_spec_of(Look).encode(Look(where=float("nan")))
        with pytest.raises(ValueError, match="65536"):
            call_spec_of(Look).encode(Look(where="x" * 70_000))
        with pytest.raises(TypeError):
            call_spec_of(Look).encode(Look(where=object()))  # type: ignore[arg-type]


def replies(reply: Any) -> Any:
    class Ask(Call[reply]):
        pass

    return call_spec_of(Ask)


class TestReplies:
    @pytest.mark.parametrize(
        ("reply", "value"),
        [
            (int, 3),
            (float, 3),
            (type(None), None),
            (list[Card], [Card(Suit.HEARTS)]),
            (dict[int, Point], {1: Point(1, 2)}),
            (Score | None, Score(4)),
            (frozenset[str], frozenset({"a"})),
            (bytes, b"\x00"),
            (list[bytes], [b"\x00"]),
            (JsonOut, {"a": [1, None]}),
            (Any, ["x"]),
        ],
    )
    def test_they_come_as_what_the_call_declares(self, reply: Any, value: Any) -> None:
        spec = replies(reply)
        payload = spec.encode_reply(value)
        content = payload.data if payload.format else msgspec.json.decode(payload.data)
        got = spec.decode_reply(content)
        assert got == value
        assert type(got) is (float if reply is float else type(value))

    @pytest.mark.parametrize(
        ("reply", "value"),
        [
            (int, "3"),
            (int, None),
            (int, True),
            (list[Card], [1]),
            (bytes, "x"),
            (float, float("nan")),
            (JsonOut, object()),
            (JsonOut, 2**60),
            (JsonOut, "x" * 65_536),
            (JsonOut, "\ud800"),
            (dict[str, int], {"a": b"x"}),
        ],
    )
    def test_what_is_none_is_the_rooms_error(self, reply: Any, value: Any) -> None:
        with pytest.raises((TypeError, ValueError)):
            replies(reply).encode_reply(value)

    @pytest.mark.parametrize(("reply", "content"), [(int, "3"), (int, b"3"), (bytes, "x"), (list[Card], [1])])
    def test_what_is_none_is_not_taken_by_a_client(self, reply: Any, content: Any) -> None:
        with pytest.raises(ValueError, match=r"\S"):
            replies(reply).decode_reply(content)

    def test_what_room_code_gives_may_be_any_mapping_or_sequence(self) -> None:
        import types

        value = types.MappingProxyType({"a": range(3)})
        assert replies(JsonOut).encode_reply(value).data == b'{"a":[0,1,2]}'


class Thing:
    pass


class Dot(Entity):
    tags: Json[list[str]] = []  # noqa: RUF012


class TestTheSchema:
    def test_they_are_optional_and_not_in_the_hash(self) -> None:
        assert Schema(calls=[Buy, Look]).calls == (Buy, Look)
        assert Schema().calls == ()
        assert Schema(calls=[Buy]).hash == Schema().hash

    def test_what_is_no_call_is_refused(self) -> None:
        class Twin(Call, name="buy"):
            pass

        with pytest.raises(TypeError, match="is no Call class"):
            Schema(calls=[Dot])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="is no Call class"):
            Schema(calls=[Buy(item="ring")])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="declare a class of your own"):
            Schema(calls=[Call])
        with pytest.raises(TypeError, match="Buy is listed twice in calls"):
            Schema(calls=[Buy, Buy])
        with pytest.raises(TypeError, match="Buy and Twin have one name, 'buy'"):
            Schema(calls=[Buy, Twin])

    def test_types_that_msgspec_does_not_make_are_refused_by_name(self) -> None:
        class Odd(Call):
            things: list[dict[str, Thing]]

        class OddReply(Call[Dot]):
            pass

        class Nowhere(Call):
            what: NoSuchType  # type: ignore[name-defined]  # noqa: F821

        class NoSuchReply(Call["NoSuchType"]):  # type: ignore[name-defined]
            pass

        with pytest.raises(TypeError, match="Odd: msgspec makes no Thing of JSON"):
            Schema(calls=[Odd])
        with pytest.raises(TypeError, match="OddReply: msgspec makes no Dot of JSON"):
            Schema(calls=[OddReply])
        for cls in (Nowhere, NoSuchReply):
            with pytest.raises(TypeError, match=f"{cls.__name__}: .*NoSuchType"):
                Schema(calls=[cls])


def room_of(calls: Sequence[type[Call[Any]]], *bases: type, **members: Any) -> type[Room]:
    return type("Shop", bases or (Room,), {"schema": Schema(calls=calls), **members})


def handler(call: Any) -> Any:
    @call.handler  # type: ignore[untyped-decorator]
    def handle(self: Any, conn: Connection, ask: Any) -> int:
        return 0

    return handle


class TestHandlers:
    @pytest.mark.ledger("CALL-04")
    def test_each_call_has_one_and_each_handles_a_call_of_the_schema(self) -> None:
        room_of([Buy, Look], buy=handler(Buy), look=handler(Look))
        with pytest.raises(
            TypeError, match=r"Shop has no handler for Look: decorate one with @Look\.handler"
        ):
            room_of([Buy, Look], buy=handler(Buy))
        with pytest.raises(TypeError, match=r"Shop\.look handles Look, which is not in its schema"):
            room_of([Buy], buy=handler(Buy), look=handler(Look))
        with pytest.raises(TypeError, match="Shop: buy and other both handle Buy"):
            room_of([Buy], buy=handler(Buy), other=handler(Buy))

    def test_a_subclass_may_override_the_method_but_not_take_it_away(self) -> None:
        shop = room_of([Buy], buy=handler(Buy))
        for override in (handler(Buy), lambda self, conn, ask: 1):
            room_of([Buy], shop, buy=override)
        with pytest.raises(TypeError, match="Shop has no handler for Buy"):
            room_of([Buy], shop, buy=None)
        with pytest.raises(TypeError, match="buy and purchase both handle Buy"):
            room_of([Buy], shop, purchase=handler(Buy))

    def test_a_class_beside_the_room_may_bring_them(self) -> None:
        mixin = type("Trade", (), {"buy": handler(Buy)})
        room_of([Buy], mixin, Room)

    def test_it_decorates_a_method_once(self) -> None:
        with pytest.raises(TypeError, match=r"handle handles Buy already"):
            Look.handler(handler(Buy))
        with pytest.raises(TypeError, match=r"@Buy\.handler decorates a method of a room, not 3"):
            Buy.handler(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="declare a class of your own"):
            handler(Call)

    def test_a_rejection_is_an_exception_with_a_text(self) -> None:
        assert str(CallRejected("no")) == "no"
