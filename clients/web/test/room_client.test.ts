import { describe, expect, test, vi } from "vitest";
import { FrameType } from "../src/core/frames.js";
import { CloseCode } from "../src/gen/codes.js";
import { connect, PlayhallError, RoomClient } from "../src/index.js";
import { fakeBrowser, Server } from "./room_server.js";
import {
  asleep,
  Board,
  Dot,
  fullState,
  message,
  peers,
  pong,
  reset,
  update,
  voice,
  waking,
  welcome,
} from "./server.js";

fakeBrowser();

describe("connect", () => {
  test("[CENT-01] resolves with the whole state", async () => {
    const server = new Server();
    const onWaking = vi.fn();
    const connecting = connect({ ...server.options, onWaking });
    server.admit(waking);
    const room = await connecting;
    expect(onWaking).toHaveBeenCalledOnce();
    expect([room.state.moves, room.private.moves, room.player, room.status]).toEqual([3, 1, "ann", "open"]);
  });

  test("rejects with the code", async () => {
    const server = new Server();
    const connecting = connect(server.options);
    server.last.handlers.closed(CloseCode.ROOM_FULL, "");
    await expect(connecting).rejects.toMatchObject({ name: "PlayhallError", code: 4003 });
    await expect(connecting).rejects.toBeInstanceOf(PlayhallError);
  });

  test("rejects when the time is up, and closes what it opened", async () => {
    const server = new Server();
    const connecting = connect({ ...server.options, timeout: 5_000 });
    server.last.handlers.opened();
    vi.advanceTimersByTime(5_000);
    await expect(connecting).rejects.toMatchObject({ code: 1_006 });
    expect(server.last.closed).toEqual([1_000, ""]);
  });
});

describe("a room client", () => {
  test("[CENT-02] hears of the first state with listeners added before ready, and replays nothing later", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const entered: number[] = [];
    room.entities.onEnter(Dot, ({ id }) => entered.push(id));
    server.admit();
    await room.ready;
    expect(entered).toEqual([2, 3]);
    room.entities.onEnter(Dot, ({ id }) => entered.push(id));
    expect(entered).toEqual([2, 3]);
  });

  test("tells what happens: connection, messages, ticks, sleep and voice", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const told: unknown[] = [];
    room.on("waking", () => told.push("waking"));
    room.on("disconnected", (code) => told.push(["disconnected", code, room.status]));
    room.on("restored", () => told.push(["restored", room.status]));
    room.on("message", (payload, unreliable) => told.push([payload, unreliable]));
    room.on("tick", (tick) => told.push(["tick", tick]));
    room.on("sleep", () => told.push(["sleep", room.asleep]));
    room.on("wake", () => told.push(["wake", room.asleep]));
    room.on("voice", (url, token) => told.push([url, token]));
    room.on("peers", (hears, heardBy) => told.push([hears, heardBy]));
    room.on("closed", ({ code }) => told.push(["closed", code, room.status]));
    server.admit(waking);
    await room.ready;
    server.say(message('"hi"'), update({ change: [{ id: 0, kind: Board, values: { moves: 4 } }] }), reset(1, 4008));
    server.say(welcome({ generation: 8 }), fullState());
    server.say(voice("wss://voice.test", "voice-token"), peers(["bob"], []));
    server.say(asleep(8, 0), waking, welcome({ generation: 9 }), fullState());
    server.last.handlers.closed(CloseCode.KICKED, "bye");
    expect(told).toEqual([
      "waking",
      ["tick", 40],
      ["hi", false],
      ["tick", 41],
      ["disconnected", 4008, "reconnecting"],
      ["tick", 40],
      ["restored", "open"],
      ["wss://voice.test", "voice-token"],
      [["bob"], []],
      ["sleep", true],
      "waking",
      ["tick", 40],
      ["wake", false],
      ["closed", 4006, "closed"],
    ]);
  });

  test("[CENT-05] every callback sees the whole update, and may call back in", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const told: unknown[] = [];
    room.entities.onChange(Board, (board, fields) => {
      told.push([board.moves, fields, room.entities.get(Dot, 2)?.x]);
      room.send("seen");
    });
    room.on("tick", () => told.push("tick"));
    server.admit();
    await room.ready;
    told.length = 0;
    server.say(
      update({
        change: [
          { id: 0, kind: Board, values: { moves: 9 } },
          { id: 2, kind: Dot, values: { x: 1 } },
        ],
      }),
    );
    expect(told).toEqual([[9, ["moves"], 1], "tick"]);
    expect(server.sentOf(FrameType.MESSAGE)).toHaveLength(1);
  });

  test("messages sent in on_join wait for the first listener", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    server.last.handlers.opened();
    server.say(welcome(), message("1"), message("2"), fullState());
    await room.ready;
    const heard: unknown[] = [];
    room.on("message", (payload) => heard.push(payload));
    await Promise.resolve();
    server.say(message("3"));
    expect(heard).toEqual([1, 2, 3]);
  });

  test("[MSG-07] send throws before ready, gives false while the connection is lost, and throws once closed", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    expect(() => room.send("early")).toThrow(PlayhallError);
    server.admit();
    await room.ready;
    expect(room.send({ type: "move" })).toBe(true);
    server.last.handlers.closed(1_006, "");
    expect(room.send({ type: "move" })).toBe(false);
    room.leave();
    expect(() => room.send("late")).toThrow(PlayhallError);
  });

  test("reconnects by itself, and knows its round trip", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.5);
    const server = new Server();
    const room = new RoomClient(server.options);
    server.admit();
    await room.ready;
    vi.advanceTimersByTime(40);
    server.say(pong(1, 42));
    expect(room.rtt).toBe(40);
    expect(room.serverTick()).toBeCloseTo(42.4);
    server.last.handlers.closed(1_006, "");
    vi.advanceTimersByTime(125);
    expect(server.connections).toHaveLength(2);
    server.last.handlers.opened();
    server.say(welcome({ resumed: true }), update({}, { dv: 0, dt: 0 }));
    expect(room.status).toBe("open");
    expect(room.stats.sent["resume"]).toBeGreaterThan(0);
  });

  test("leave tells the room, closes, and nothing is told afterwards", async () => {
    const server = new Server();
    const room = new RoomClient(server.options);
    const told = vi.fn();
    room.on("closed", told);
    server.admit();
    await room.ready;
    room.leave();
    expect(server.sentOf(FrameType.LEAVE)).toHaveLength(1);
    expect(server.last.closed).toEqual([1_000, ""]);
    server.last.handlers.closed(1_000, "");
    vi.advanceTimersByTime(60_000);
    expect(told).not.toHaveBeenCalled();
    expect(server.connections).toHaveLength(1);
  });
});

describe("guests", () => {
  test("keep their token for the next visit, by project", async () => {
    const server = new Server();
    const first = new RoomClient(server.options);
    server.admit();
    await first.ready;
    expect(localStorage.getItem("playhall.guest.dots")).toBe("guest-token");
    new RoomClient(server.options);
    server.last.handlers.opened();
    expect(new TextDecoder().decode(server.last.sent[0])).toContain("guest-token");
    new RoomClient({ ...server.options, project: "other" });
    server.last.handlers.opened();
    expect(new TextDecoder().decode(server.last.sent[0])).not.toContain("guest-token");
  });

  test("play where the browser keeps nothing", async () => {
    const refuse = (): never => {
      throw new DOMException("denied", "SecurityError");
    };
    vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse, removeItem: refuse });
    vi.stubGlobal("sessionStorage", undefined);
    const server = new Server();
    const room = new RoomClient(server.options);
    server.admit();
    await room.ready;
    expect(room.player).toBe("ann");
  });
});
