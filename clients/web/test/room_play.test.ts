import { describe, expect, test, vi } from "vitest";
import { FrameType } from "../src/core/frames.js";
import { PlayhallError, RoomClient, type Kind } from "../src/index.js";
import { fakeBrowser, Server } from "./room_server.js";
import {
  Board,
  Dot,
  FIRST_PRESENCE,
  fullState,
  Mine,
  presence,
  refusal,
  reply,
  reset,
  schema,
  unreliable,
  update,
  welcome,
} from "./server.js";

fakeBrowser();

describe("playing", () => {
  test("[CALL-13] [CALL-14] [CALL-16] [CALL-17] call resolves to the reply, and rejects with the code of what went wrong", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    expect(() => room.call("buy", { item: "ring" })).toThrow(PlayhallError);
    server.admit();
    await room.ready;
    const order: string[] = [];
    room.entities.onChange(Board, () => order.push("change"));
    const bought = room.call("buy", { item: "ring" }).then((coins) => order.push(`${coins} coins`));
    server.say(update({ change: [{ id: 0, kind: Board, values: { moves: 9 } }] }), reply(1, 7));
    await bought;
    expect(order).toEqual(["change", "7 coins"]);
    expect(new TextDecoder().decode(server.sentOf(FrameType.CALL)[0]!.slice(-15))).toBe('{"item":"ring"}');

    const failed = (call: Promise<unknown>): Promise<unknown> =>
      call.catch((error: unknown) => [error instanceof PlayhallError, (error as PlayhallError).code]);
    const refused = failed(room.call("buy", { item: "halo" }));
    const unknown = failed((room as RoomClient).call("nothing"));
    server.say(refusal(2, 422, "not enough coins"), refusal(3, 404, "no such call"));
    expect(await Promise.all([refused, unknown])).toEqual([
      [true, 422],
      [true, 404],
    ]);

    const late = [failed(room.call("wait", undefined, { timeoutMs: 200 })), failed(room.call("wait"))];
    vi.advanceTimersByTime(199);
    expect(await Promise.race([late[0], "waits"])).toBe("waits");
    vi.advanceTimersByTime(1);
    expect(await late[0]).toEqual([true, 0]);
    vi.advanceTimersByTime(9_799);
    expect(await Promise.race([late[1], "waits"])).toBe("waits");
    vi.advanceTimersByTime(1);
    expect(await late[1]).toEqual([true, 0]);

    const restarted = failed(room.call("wait"));
    server.say(reset(1, 4008));
    expect(await restarted).toEqual([true, 0]);
    server.say(welcome({ generation: 8 }), fullState());
    const dropped = failed(room.call("wait"));
    server.last.handlers.closed(1_006, "");
    expect(await dropped).toEqual([true, 0]);
    expect(await failed(room.call("wait"))).toEqual([true, 0]);
    const left = new Server();
    const other = new RoomClient(left.options);
    left.admit();
    await other.ready;
    const unanswered = failed(other.call("wait"));
    other.leave();
    expect(await unanswered).toEqual([true, 0]);
    expect(() => other.call("wait")).toThrow(PlayhallError);
  });

  test("[OWN-12] writes of one turn are one frame, sent when the turn is done, and the next a room tick later", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    server.admit();
    await room.ready;
    room.private.volume = 6;
    room.private.volume = 7;
    room.presence.setStatus("busy");
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(0);
    await Promise.resolve();
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(1);
    room.private.volume = 8;
    await Promise.resolve();
    vi.advanceTimersByTime(49);
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(2);
    room.private.volume = 9;
    room.leave();
    expect(server.last.sent.slice(-2).map(([type]) => type)).toEqual([FrameType.WRITE, FrameType.LEAVE]);
    await Promise.resolve();
    vi.advanceTimersByTime(1_000);
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(3);
  });

  test("while the connection is backed up, writes wait to be replaced by newer ones", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    server.admit();
    await room.ready;
    server.unsentBytes = 70_000;
    room.private.volume = 6;
    await Promise.resolve();
    server.say(update({}));
    vi.advanceTimersByTime(500);
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(0);
    room.private.volume = 7;
    server.unsentBytes = 0;
    vi.advanceTimersByTime(50);
    expect(server.sentOf(FrameType.WRITE).map((frame) => frame.at(-1))).toEqual([7]);
  });

  test("a callback may write: it goes out with the turn", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    room.onTick(() => (room.private.volume = 9));
    server.admit();
    await room.ready;
    expect(room.private.volume).toBe(9);
    expect(server.sentOf(FrameType.WRITE)).toHaveLength(1);
  });

  test("[PRES-17] presence: iterate, get, onJoin, onChange, onLeave and setStatus", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const told: unknown[] = [];
    room.presence.onJoin(({ player }) => told.push(["join", player]));
    room.presence.onChange(({ player }, changed) => told.push(["change", player, changed]));
    room.presence.onLeave(({ player }) => told.push(["leave", player]));
    server.admit();
    await room.ready;
    const bob = FIRST_PRESENCE + 1;
    server.say(update({ enter: [presence(bob, "bob", "Bob")] }));
    server.say(update({ change: [{ id: bob, kind: schema.kinds.at(-1)!, values: { status: 7, connected: false } }] }));
    expect([...room.presence].map(({ player, name, status, connected }) => [player, name, status, connected])).toEqual([
      ["ann", "Ann", null, true],
      ["bob", "Bob", 7, false],
    ]);
    server.say(update({ leave: [bob] }));
    expect([room.presence.get("bob"), room.presence.size]).toEqual([undefined, 1]);
    room.presence.setStatus({ ready: true });
    expect(room.presence.get("ann")!.status).toEqual({ ready: true });
    expect(told).toEqual([
      ["join", "ann"],
      ["join", "bob"],
      ["change", "bob", ["status", "connected"]],
      ["leave", "bob"],
    ]);
  });

  test("unreliable messages go as such, and are dropped while the connection is backed up", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const heard: unknown[] = [];
    room.on("message", (message, unreliable) => heard.push([message, unreliable]));
    server.admit();
    await room.ready;
    server.say(unreliable('"quick"'));
    expect(heard).toEqual([["quick", true]]);
    expect(room.send("quick", { unreliable: true })).toBe(true);
    server.unsentBytes = 70_000;
    expect(room.send("stale", { unreliable: true })).toBe(false);
    expect(room.send("sure")).toBe(true);
    server.unsentBytes = 2 ** 21;
    expect(() => room.send("too much")).toThrow(PlayhallError);
    expect(() => room.call("wait")).toThrow(PlayhallError);
    expect(server.sentOf(FrameType.UNRELIABLE)).toHaveLength(1);
    expect(server.sentOf(FrameType.MESSAGE)).toHaveLength(1);
    expect([room.stats.sent["unreliable"], room.stats.received["unreliable"]]).toEqual([10, 9]);
  });

  test("callbacks run in the order enter, change, correct, owner, leave, presence, tick", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const told: string[] = [];
    for (const each of [Dot, Mine] as Kind[]) {
      room.entities.onLeave(each, ({ id }) => told.push(`leave ${id}`));
      room.entities.onOwner(each, ({ id }) => told.push(`owner ${id}`));
      room.entities.onCorrect(each, ({ id }) => told.push(`correct ${id}`));
      room.entities.onChange(each, ({ id }) => told.push(`change ${id}`));
      room.entities.onEnter(each, ({ id }) => told.push(`enter ${id}`));
    }
    room.presence.onJoin(({ player }) => told.push(`join ${player}`));
    room.onTick(() => told.push("tick"));
    server.admit();
    await room.ready;
    told.length = 0;
    server.say(
      update({
        leave: [3, 77],
        enter: [
          { id: 4, kind: Dot, values: [1, 2, []] },
          { id: 8, kind: Dot, values: [1, 2, []] },
          presence(FIRST_PRESENCE + 1, "bob"),
        ],
        change: [{ id: 8, kind: Dot, values: { x: 3 } }],
        owner: [{ id: 2, owner: "bob" }],
        correct: [{ id: 1, kind: Mine, values: { volume: 8 } }],
      }),
    );
    expect(told).toEqual([
      ...["enter 4", "enter 8", "change 1", "correct 1", "owner 2", "leave 3"],
      ...["join bob", "tick"],
    ]);
  });
});
