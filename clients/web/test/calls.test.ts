import { describe, expect, test } from "vitest";
import { FrameType } from "../src/core/frames.js";
import { parseJson } from "../src/core/json.js";
import { Reader } from "../src/core/values.js";
import { CloseCode } from "../src/gen/codes.js";
import { Driver } from "./core_driver.js";
import { asleep, Board, fullState, refusal, reply, reset, update, waking, welcome } from "./server.js";

interface Asked {
  readonly call: number;
  readonly seen: number;
  readonly name: string;
  readonly args: unknown;
}

function readCall(frame: Uint8Array): Asked {
  const reader = new Reader(frame.subarray(1));
  const [call, seen, name, format] = [reader.varint32(), reader.varint53(), reader.str(), reader.u8()];
  const rest = reader.rest();
  return { call, seen, name, args: format === 1 ? rest : parseJson(new TextDecoder().decode(rest)) };
}

class Caller extends Driver {
  constructor() {
    super();
    this.join();
    this.forget();
  }

  call(name: string, args: unknown = {}, timeoutMs = 10_000): number {
    return this.do((now) => this.core.call(name, args, timeoutMs, now));
  }

  asked(): Asked[] {
    return this.sentOf(FrameType.CALL).map(readCall);
  }

  /** How each call ended, by number: what was answered, or the code. */
  ends(): [call: number, end: unknown][] {
    return this.events.flatMap((event): [number, unknown][] => {
      if (event.name === "answered") return [[event.call, event.answer]];
      return event.name === "failed" ? [[event.call, event.error.code]] : [];
    });
  }
}

describe("calls", () => {
  test("ask by name, with arguments, and are answered in any order", () => {
    const caller = new Caller();
    const [buy, wait, bytes] = [caller.call("buy", { item: "ring" }), caller.call("wait"), caller.call("raw")];
    expect(caller.asked()).toEqual([
      { call: buy, seen: 41, name: "buy", args: { item: "ring" } },
      { call: wait, seen: 41, name: "wait", args: {} },
      { call: bytes, seen: 41, name: "raw", args: {} },
    ]);
    caller.receive(reply(wait, null), reply(buy, 7), Uint8Array.of(FrameType.REPLY, bytes, 1, 8, 9));
    expect(caller.ends()).toEqual([
      [wait, null],
      [buy, 7],
      [bytes, Uint8Array.of(8, 9)],
    ]);
    expect(caller.core.stats.sent["call"]).toBe(caller.sent.reduce((sum, { length }) => sum + length, 0));
    expect(caller.core.stats.received["reply"]).toBeGreaterThan(0);
  });

  test("an answer is told after the update that came before it", () => {
    const caller = new Caller();
    const call = caller.call("buy");
    caller.receive(update({ change: [{ id: 0, kind: Board, values: { moves: 4 } }] }), reply(call, 7));
    expect(caller.names()).toEqual(["updated", "answered"]);
  });

  test("the room's error keeps its code and text: 422 for one of room code", () => {
    const caller = new Caller();
    const [refused, unknown, many] = [caller.call("buy"), caller.call("nothing"), caller.call("buy")];
    caller.receive(
      refusal(refused, 422, "not enough coins"),
      refusal(unknown, 404, "no such call"),
      refusal(many, 429, "32 calls wait"),
    );
    expect(caller.events).toMatchObject([
      { name: "failed", call: refused, error: { name: "PlayhallError", code: 422, message: "not enough coins" } },
      { name: "failed", call: unknown, error: { code: 404, message: "no such call" } },
      { name: "failed", call: many, error: { code: 429 } },
    ]);
  });

  test("time out, each in its own time, with code 0; an answer that comes later is nobody's", () => {
    const caller = new Caller();
    const [slow, quick] = [caller.call("buy"), caller.call("wait", {}, 500)];
    caller.pass(499);
    expect(caller.ends()).toEqual([]);
    caller.pass(1);
    expect(caller.ends()).toEqual([[quick, 0]]);
    caller.receive(reply(quick, 1), reply(999, 1));
    caller.pass(9_499);
    expect(caller.ends()).toEqual([[quick, 0]]);
    caller.pass(1);
    expect(caller.ends()).toEqual([
      [quick, 0],
      [slow, 0],
    ]);
    for (const timeoutMs of [0, -1, NaN]) expect(() => caller.call("buy", {}, timeoutMs)).toThrow(RangeError);
  });

  test("[CALL-15] fail with code 0 when the connection drops, and nothing is asked again", () => {
    const caller = new Caller();
    const lost = [caller.call("buy"), caller.call("buy")];
    caller.lose();
    expect(caller.ends()).toEqual(lost.map((call) => [call, 0]));
    const meanwhile = caller.call("buy");
    expect(caller.ends().at(-1)).toEqual([meanwhile, 0]);
    caller.pass(1_000);
    caller.forget();
    caller.open();
    caller.receive(welcome({ resumed: true }), update({}, { dv: 0 }), reply(lost[0]!, 1));
    expect([caller.asked(), caller.ends()]).toEqual([[], []]);
  });

  test("fail with code 0 when the room restarts, and when the client is closed or leaves", () => {
    for (const end of [
      (caller: Caller) => caller.receive(reset(1, CloseCode.ROOM_MOVED)),
      (caller: Caller) => caller.lose(CloseCode.KICKED),
      (caller: Caller) => caller.do((now) => caller.core.leave(now)),
    ]) {
      const caller = new Caller();
      const call = caller.call("buy");
      end(caller);
      expect(caller.ends()).toEqual([[call, 0]]);
      expect(caller.asked()).toHaveLength(1);
    }
  });

  test("wait while a sleeping room wakes", () => {
    const caller = new Caller();
    caller.receive(asleep(7, 0));
    const call = caller.call("buy");
    caller.receive(waking, welcome({ generation: 8 }), fullState(), reply(call, 3));
    expect(caller.ends()).toEqual([[call, 3]]);
  });

  test("no number is used twice, past 65,535 and over reconnects", { timeout: 30_000 }, () => {
    const caller = new Caller();
    for (let calls = 0; calls < 65_540; calls++) caller.receive(reply(caller.call("buy"), null));
    caller.lose();
    caller.pass(1_000);
    caller.open();
    caller.receive(welcome({ resumed: true }), update({}, { dv: 0 }));
    caller.call("buy");
    expect(new Set(caller.asked().map(({ call }) => call)).size).toBe(65_541);
  });

  test("what cannot be sent throws, and leaves nothing behind", () => {
    const caller = new Caller();
    expect(() => caller.call("buy", { count: NaN })).toThrow(TypeError);
    expect(() => caller.call("n".repeat(65))).toThrow(RangeError);
    expect(() => caller.call("buy", "x".repeat(70_000))).toThrow(RangeError);
    caller.pass(60_000);
    expect([caller.asked(), caller.ends()]).toEqual([[], []]);
  });
});
