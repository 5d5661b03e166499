import { describe, expect, test } from "vitest";
import { encodeResume, FrameType } from "../src/core/frames.js";
import { CloseCode, CLOSES } from "../src/gen/codes.js";
import { Driver } from "./core_driver.js";
import { asleep, body, Board, Dot, fullState, message, part, reset, update, waking, welcome } from "./server.js";

/** A client that is in the room, with what it said on the way forgotten. */
function joined(options: ConstructorParameters<typeof Driver>[0] = {}): Driver {
  const driver = new Driver(options);
  driver.join();
  driver.forget();
  return driver;
}

describe("connecting", () => {
  test("[CENT-01] it is done when the full state is in, and not before", () => {
    const driver = new Driver();
    expect(driver.opens).toBe(1);
    driver.open();
    expect(driver.sent.slice(0, 2).map((frame) => frame[0])).toEqual([FrameType.HELLO, FrameType.RESUME]);
    driver.receive(waking, welcome());
    expect(driver.names()).toEqual(["waking"]);
    expect(driver.core.status).toBe("connecting");
    driver.receive(fullState());
    expect(driver.names()).toEqual(["waking", "updated", "ready"]);
    expect(driver.core.status).toBe("open");
    expect(driver.core.replica.state?.values).toEqual([3]);
    expect(driver.core.replica.private?.values).toEqual([1, 5]);
    expect(driver.core.player).toBe("ann");
  });

  test("an empty state is a whole state", () => {
    const driver = new Driver();
    driver.open();
    driver.receive(welcome(), update({}, { dv: 0, dt: 0 }));
    expect(driver.names()).toEqual(["updated", "ready"]);
  });

  test("[MSG-07] a message before that throws", () => {
    const driver = new Driver();
    driver.open();
    driver.receive(welcome());
    expect(() => driver.core.send("hi", false)).toThrow("connecting");
  });

  test("it fails at once with a code that says so, and after the timeout with the last one that did not", () => {
    const refused = new Driver();
    refused.open();
    refused.lose(CloseCode.ROOM_FULL, "the room is full");
    expect(refused.events).toMatchObject([{ name: "closed", error: { code: 4003 } }]);
    const late = new Driver();
    while (late.core.status !== "closed") {
      late.pass(1_000);
      late.lose(1_006, "refused");
    }
    expect(late.now).toBe(31_000);
    expect(late.events).toMatchObject([{ name: "closed", error: { code: 1_006 } }]);
    expect(late.core.nextTimer()).toBe(Infinity);
  });

  test("a frame too early, a second welcome and a broken frame close 4000", () => {
    for (const frames of [
      [fullState()],
      [message("1")],
      [welcome(), fullState(), welcome()],
      [Uint8Array.of(FrameType.PONG)],
      [new Uint8Array(0)],
    ]) {
      const driver = new Driver();
      driver.open();
      driver.receive(...frames);
      expect(driver.closes).toMatchObject([{ code: CloseCode.PROTOCOL }]);
      expect(driver.events.at(-1)).toMatchObject({ name: "closed", error: { code: CloseCode.PROTOCOL } });
    }
  });

  test("a frame of a type it does not know is ignored", () => {
    const driver = joined();
    driver.receive(Uint8Array.of(200, 1, 2, 3));
    expect(driver.core.status).toBe("open");
  });
});

describe("guests", () => {
  test("the token of the welcome is kept, and used from then on", () => {
    const driver = new Driver({ guestToken: "old" });
    driver.join({ token: "new" });
    expect(driver.tokens).toEqual(["new"]);
    driver.lose();
    driver.pass(10_000);
    driver.open();
    expect(new TextDecoder().decode(driver.sentOf(FrameType.HELLO).at(-1))).toContain("new");
  });

  test("a kept token that is refused is forgotten, and the guest comes as a new one, once", () => {
    const driver = new Driver({ guestToken: "stale" });
    driver.open();
    driver.lose(CloseCode.UNAUTHENTICATED);
    expect(driver.tokens).toEqual([""]);
    expect(driver.opens).toBe(2);
    driver.open();
    expect(new TextDecoder().decode(driver.sentOf(FrameType.HELLO).at(-1))).not.toContain("stale");
    driver.lose(CloseCode.UNAUTHENTICATED);
    expect(driver.events.at(-1)).toMatchObject({ name: "closed", error: { code: 4001 } });
  });

  test("a player's own token is never replaced", () => {
    const driver = new Driver({ token: "mine" });
    driver.join({ token: "other" });
    expect(driver.tokens).toEqual([]);
    driver.lose(CloseCode.UNAUTHENTICATED);
    expect(driver.core.status).toBe("closed");
  });
});

describe("close codes", () => {
  const never = Object.entries(CLOSES).filter(([, { reconnect }]) => reconnect === "never");
  test.each(never)(
    "%s ends it: [RECO-01] [CODE-01] [CODE-02] [CODE-03] [CODE-04] [CODE-05] [CODE-07] [CODE-08] [CODE-12] [CODE-13] [CODE-14]",
    (code) => {
      const driver = joined();
      driver.lose(Number(code), "why");
      expect(driver.events).toMatchObject([{ name: "closed", error: { code: Number(code) } }]);
      expect(driver.core.status).toBe("closed");
      driver.pass(60_000);
      expect(driver.opens).toBe(0);
    },
  );

  test.each([
    ["the player connected elsewhere", "The player connected elsewhere."],
    ["The player connected elsewhere.", "The player connected elsewhere."],
    ["on another phone", "on another phone. The player connected elsewhere."],
    ["on another phone.", "on another phone. The player connected elsewhere."],
    ["", "The player connected elsewhere."],
  ])("the error does not say twice what the reason says: %j", (reason, message) => {
    const driver = joined();
    driver.lose(4012, reason);
    expect(driver.events).toMatchObject([{ name: "closed", error: { code: 4012, message } }]);
  });

  test("the table is the ledger's: [CODE-01] [CODE-02] [CODE-03] [CODE-04] [CODE-05] [CODE-07] [CODE-08] [CODE-12] [CODE-13] [CODE-14] fail", () => {
    expect(never.map(([code]) => Number(code))).toEqual([
      4000, 4001, 4002, 4003, 4004, 4006, 4007, 4009, 4011, 4012, 4015,
    ]);
  });

  test.each([4005, 4010, 1006, 1011, 4999])(
    "[CODE-06] [CODE-11] [CODE-15] after %s it comes back by itself, backing off",
    (code) => {
      const driver = joined();
      driver.lose(code);
      expect(driver.events).toEqual([{ name: "disconnected", code }]);
      expect(driver.core.status).toBe("reconnecting");
      driver.pass(124);
      expect(driver.opens).toBe(0);
      driver.pass(1);
      expect(driver.opens).toBe(1);
      driver.lose(code);
      driver.pass(250);
      expect(driver.opens).toBe(2);
      driver.lose(code);
      driver.pass(499);
      expect(driver.opens).toBe(2);
      driver.pass(1);
      expect(driver.opens).toBe(3);
      expect(driver.names()).toEqual(["disconnected"]);
    },
  );

  test("[CODE-09] after 4008 it is back within 250 ms, once, and then backs off", () => {
    const driver = joined({ random: () => 0.999 });
    for (let tries = 0; tries < 4; tries++) {
      driver.lose(CloseCode.ROOM_MOVED);
      driver.pass(250);
    }
    // At once, after the first interval of a backoff, and then not before the second.
    expect(driver.opens).toBe(3);
  });

  test("a wait is at most 10 s, and starts over after 10 s of being in the room", () => {
    const driver = joined({ random: () => 0.9999 });
    for (let tries = 0; tries < 12; tries++) {
      driver.lose();
      driver.pass(10_000);
    }
    expect(driver.opens).toBe(12);
    driver.join({ resumed: true });
    driver.pass(9_000);
    driver.lose();
    driver.pass(9_000);
    expect(driver.opens).toBe(12);
    driver.pass(1_000);
    driver.join({ resumed: true });
    driver.pass(10_000);
    driver.lose();
    driver.pass(250);
    expect(driver.opens).toBe(14);
  });

  test("a retry-after is waited first", () => {
    const driver = joined();
    driver.lose(CloseCode.ROOM_MOVED, "retry-after=3000;the router restarts");
    driver.pass(3_000);
    expect(driver.opens).toBe(0);
    driver.pass(125);
    expect(driver.opens).toBe(1);
  });
});

describe("coming back", () => {
  test("[RECO-01] [RECO-03] it says what it holds, and the same entities go on from there", () => {
    const driver = joined();
    driver.receive(update({ change: [{ id: 2, kind: Dot, values: { x: 11 } }] }));
    const dot = driver.core.replica.get(2)!.handle as Dot;
    driver.forget();
    driver.lose();
    driver.pass(1_000);
    driver.open();
    expect(driver.resumes()).toEqual([{ reset: 0, generation: 7, version: 1, full: false, ids: [2, 3, 2 ** 31] }]);
    driver.receive(welcome({ resumed: true, version: 1, tick: 90 }));
    expect(driver.names()).toEqual(["disconnected"]);
    driver.receive(update({ leave: [3], change: [{ id: 2, kind: Dot, values: { y: 21 } }] }, { dv: 4 }));
    expect(driver.names()).toEqual(["disconnected", "updated", "restored"]);
    expect(driver.happenings()).toEqual(["change dot 2 y", "leave dot 3"]);
    expect([dot.x, dot.y]).toEqual([11, 21]);
    expect(driver.core.replica.get(2)!.handle).toBe(dot);
  });

  test("[RECO-04] [RECO-05] another generation comes whole: everything leaves, and enters as new objects", () => {
    const driver = joined();
    const dot = driver.core.replica.get(2)!.handle;
    driver.lose(CloseCode.ROOM_MOVED);
    driver.pass(250);
    driver.join({ generation: 8, tick: 5 });
    expect(driver.core.generation).toBe(8);
    expect(driver.happenings()).toEqual([
      ...["leave board 0", "leave mine 1", "leave dot 2", "leave dot 3"],
      ...["enter board 0", "enter mine 1", "enter dot 2", "enter dot 3"],
    ]);
    expect(driver.core.replica.get(2)!.handle).not.toBe(dot);
    expect(driver.names().at(-1)).toBe("restored");
  });

  test("what is held is what was applied, however far a welcome or a part got", () => {
    const driver = joined();
    driver.lose();
    driver.pass(250);
    driver.open();
    driver.receive(welcome({ generation: 8, version: 50 }), part(body({ leave: [2] }), { last: false, full: true }));
    driver.lose();
    driver.pass(1_000);
    driver.forget();
    driver.open();
    expect(driver.resumes()).toEqual([{ reset: 0, generation: 7, version: 0, full: false, ids: [2, 3, 2 ** 31] }]);
  });

  test("a reset is a lost socket on the socket there is", () => {
    const driver = joined();
    driver.receive(part(body({ leave: [2] }), { last: false }), reset(1, CloseCode.ROOM_MOVED));
    expect(driver.events).toEqual([{ name: "disconnected", code: 4008 }]);
    expect(driver.core.status).toBe("reconnecting");
    expect(driver.opens).toBe(0);
    expect(driver.resumes()).toEqual([{ reset: 1, generation: 7, version: 0, full: false, ids: [2, 3, 2 ** 31] }]);
    expect(driver.core.send("lost", false)).toBe(false);
    expect(driver.sent).toHaveLength(1);
    driver.receive(waking, welcome({ generation: 8 }), fullState());
    expect(driver.names()).toEqual(["disconnected", "waking", "updated", "restored"]);
  });

  test("a second reset before the first is over is one interruption", () => {
    const driver = joined();
    driver.receive(reset(1, 4008), reset(2, 4008), welcome({ generation: 9 }), fullState());
    expect(driver.names()).toEqual(["disconnected", "updated", "restored"]);
    expect(driver.resumes().map(({ reset: number }) => number)).toEqual([1, 2]);
    driver.receive(reset(2, 4008));
    expect(driver.closes).toMatchObject([{ code: CloseCode.PROTOCOL }]);
  });

  test("a delta over a generation that is not held, and a partial state, close 4000", () => {
    for (const frames of [
      [welcome({ generation: 8, resumed: true })],
      [welcome({ generation: 8 }), update({ leave: [2] })],
    ]) {
      const driver = joined();
      driver.lose();
      driver.pass(250);
      driver.open();
      driver.receive(...frames);
      expect(driver.closes).toMatchObject([{ code: CloseCode.PROTOCOL }]);
    }
  });

  test("more ids than a resume can carry ask for the full state", () => {
    const held = (count: number): Uint8Array =>
      encodeResume(0, { generation: 7, version: 1, ids: Array.from({ length: count }, (_, at) => 2 + at * 2 ** 17) });
    expect(held(16_380)).toHaveLength(49_145);
    expect([...held(16_384)]).toEqual([FrameType.RESUME, 0, 7, 1, 1, 0]);
  });
});

describe("keeping in touch", () => {
  test("it pings at least every 2 s, and 15 s of silence are a lost connection", () => {
    const driver = joined();
    driver.pass(14_999);
    expect(driver.sentOf(FrameType.PING).length).toBeGreaterThanOrEqual(7);
    expect(driver.names()).toEqual([]);
    driver.pass(1);
    expect(driver.names()).toEqual(["disconnected"]);
    expect(driver.closes).toHaveLength(1);
    driver.pass(250);
    expect(driver.opens).toBe(1);
  });

  test("a connection that brings no state in 30 s is given up", () => {
    const driver = joined();
    driver.receive(reset(1, 4008));
    for (let at = 0; at < 30; at++) {
      driver.pass(1_000);
      driver.receive(waking);
    }
    expect(driver.closes).toHaveLength(1);
  });
});

describe("sleep", () => {
  test("a sleeping room keeps its client's state; waking brings a new one", () => {
    const driver = joined();
    driver.receive(asleep(7, 0));
    expect(driver.core.isAsleep).toBe(true);
    expect(driver.core.send("wake up", false)).toBe(true);
    driver.receive(waking, welcome({ generation: 8 }), fullState());
    expect(driver.names()).toEqual(["sleep", "waking", "updated", "wake"]);
    expect(driver.core.isAsleep).toBe(false);
  });

  test("who drops and returns to it is in at once, with what it holds", () => {
    const driver = joined();
    driver.receive(asleep(7, 0));
    driver.lose();
    driver.pass(250);
    driver.open();
    driver.receive(welcome({ asleep: true }));
    expect(driver.names()).toEqual(["sleep", "disconnected", "restored"]);
    expect(driver.core.isAsleep).toBe(true);
    expect(driver.core.replica.get(2)?.kind).toBe(Dot);
  });

  test("a sleep in another state than the one held closes 4000", () => {
    const driver = joined();
    driver.receive(asleep(7, 1));
    expect(driver.closes).toMatchObject([{ code: CloseCode.PROTOCOL }]);
  });
});

describe("leaving", () => {
  test("the room is told, the connection closes, and nothing more is said", () => {
    const driver = joined();
    driver.do((now) => driver.core.leave(now));
    expect(driver.sentOf(FrameType.LEAVE)).toHaveLength(1);
    expect(driver.closes).toEqual([{ code: 1_000, reason: "" }]);
    driver.receive(update({ change: [{ id: 0, kind: Board, values: { moves: 4 } }] }));
    driver.lose();
    driver.pass(60_000);
    expect([driver.events, driver.opens]).toEqual([[], 0]);
    expect(() => driver.core.send("late", false)).toThrow("closed");
  });
});

describe("messages", () => {
  test("[MSG-01] JSON and bytes go both ways", () => {
    const driver = joined();
    driver.do(() => driver.core.send({ type: "move", x: 1 }, false));
    driver.do(() => driver.core.send(Uint8Array.of(1, 2), true));
    const text = (frame: Uint8Array): string => new TextDecoder().decode(frame.subarray(3));
    expect(text(driver.sentOf(FrameType.MESSAGE)[0]!)).toBe('{"type":"move","x":1}');
    expect([...driver.sentOf(FrameType.UNRELIABLE)[0]!.subarray(1)]).toEqual([41, 1, 1, 2]);
    driver.receive(message('{"type":"hi"}'), Uint8Array.of(FrameType.UNRELIABLE, 1, 7));
    expect(driver.events).toEqual([
      { name: "message", payload: { type: "hi" }, unreliable: false },
      { name: "message", payload: Uint8Array.of(7), unreliable: true },
    ]);
  });

  test("bytes are counted by what they are for", () => {
    const driver = joined();
    const before = driver.core.stats.sent["message"] ?? 0;
    driver.do(() => driver.core.send("four", false));
    expect(driver.core.stats.sent["message"]! - before).toBe(driver.sentOf(FrameType.MESSAGE)[0]!.length);
    expect(driver.core.stats.received["update"]).toBe(fullState().length);
  });
});
