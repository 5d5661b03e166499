import { deflateRawSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { Entities, PresenceList } from "../src/core/entities.js";
import { kind, type Kind } from "../src/core/schema.js";
import { Driver } from "./core_driver.js";
import {
  body,
  Board,
  Chunk,
  Dot,
  FIRST_PRESENCE,
  fullState,
  Mine,
  part,
  presence,
  schema,
  update,
  welcome,
  type Sections,
} from "./server.js";

/** A client in the room whose happenings reach `room.entities` and `room.presence`, and what those told. */
class Room {
  readonly driver = new Driver();
  readonly entities = new Entities(this.driver.core.replica, schema.kinds, () => this.driver.core.player);
  readonly presence = new PresenceList(this.driver.core.replica, (status) => this.driver.core.setStatus(status));
  readonly told: string[] = [];
  #read = 0;

  constructor() {
    const tell =
      (event: string) =>
      (entity: { id: number; kind: string }, fields: readonly string[] = []): void =>
        void this.told.push([event, entity.kind, entity.id, ...fields].join(" "));
    for (const each of [Dot, Chunk, Board, Mine] as Kind[]) {
      this.entities.onEnter(each, tell("enter"));
      this.entities.onChange(each, tell("change"));
      this.entities.onCorrect(each, tell("correct"));
      this.entities.onOwner(each, tell("owner"));
      this.entities.onLeave(each, tell("leave"));
    }
    this.driver.join();
    this.#pump();
    this.told.length = 0;
  }

  receive(...frames: Uint8Array[]): void {
    this.driver.receive(...frames);
    this.#pump();
  }

  update(sections: Sections): void {
    this.receive(update(sections));
  }

  #pump(): void {
    for (const event of this.driver.events.slice(this.#read)) {
      if (event.name !== "updated") continue;
      for (const happening of event.happenings) {
        if (happening.cell.id >= FIRST_PRESENCE) this.presence.tell(happening);
        else this.entities.tell(happening);
      }
    }
    this.#read = this.driver.events.length;
  }
}

describe("entities", () => {
  test("[CENT-03] get, all, first, mine, ownerOf and count", () => {
    const { entities } = new Room();
    expect(entities.all(Dot).map(({ id }) => id)).toEqual([2, 3]);
    expect(entities.all(Dot, { owner: "bob" }).map(({ id }) => id)).toEqual([3]);
    expect(entities.all(Dot, { owner: null })).toEqual([]);
    expect(entities.mine(Dot).map(({ id }) => id)).toEqual([2]);
    expect(entities.first(Dot)?.id).toBe(2);
    expect(entities.count(Dot)).toBe(2);
    expect(entities.get(3)).toBe(entities.get(Dot, 3));
    expect(entities.get(Chunk, 3)).toBeUndefined();
    for (const id of [0, 1, 99, FIRST_PRESENCE]) expect(entities.get(id)).toBeUndefined();
    expect(entities.ownerOf(entities.get(3)!)).toBe("bob");
    expect(entities.all(Board)).toEqual([]);
  });

  test("a kind of another schema is refused", () => {
    const { entities } = new Room();
    const other = kind("dot", []);
    expect(() => entities.all(other)).toThrow(TypeError);
    expect(() => entities.onEnter(other, () => undefined)).toThrow(TypeError);
  });

  test("writing an entity throws TypeError, and changes nothing", () => {
    const { entities } = new Room();
    const dot = entities.first(Dot)! as { -readonly [K in keyof Dot]: Dot[K] };
    for (const write of [
      () => (dot.x = 1),
      () => (dot.id = 1),
      () => (dot.owner = "me"),
      () => ((dot as unknown as Record<string, unknown>)["speed"] = 1),
      () => (entities.all(Dot)[1]!.wears as string[]).push("halo"),
    ]) {
      expect(write).toThrow(TypeError);
    }
    expect(dot.x).toBe(10);
    expect(JSON.parse(JSON.stringify(dot))).toEqual({ id: 2, owner: "ann", kind: "dot", x: 10, y: 20, wears: [] });
  });

  test("[CENT-03] [CENT-05] an update applies at once; callbacks run after, enters before changes before leaves", () => {
    const room = new Room();
    const seen: unknown[] = [];
    room.entities.onEnter(Dot, () => seen.push([room.entities.count(Dot), room.driver.core.replica.state?.values[0]]));
    room.update({
      leave: [3],
      enter: [{ id: 4, kind: Dot, values: [1, 2, []] }],
      change: [
        { id: 0, kind: Board, values: { moves: 9 } },
        { id: 2, kind: Dot, values: { x: 5 } },
        { id: 4, kind: Dot, values: { x: 6 } },
      ],
      owner: [{ id: 2, owner: "" }],
    });
    expect(room.told).toEqual(["enter dot 4", "change board 0 moves", "change dot 2 x", "owner dot 2", "leave dot 3"]);
    expect(seen).toEqual([[2, 9]]);
    expect(room.entities.get(Dot, 4)?.x).toBe(6);
  });

  test("[CENT-06] the parts of an update apply together", () => {
    const room = new Room();
    room.receive(part(body({ enter: [{ id: 4, kind: Dot, values: [1, 2, []] }] }), { last: false }));
    expect(room.entities.count(Dot)).toBe(2);
    expect(room.told).toEqual([]);
    room.receive(
      part(body({ change: [{ id: 4, kind: Dot, values: { x: 3 } }], owner: [{ id: 4, owner: "ann" }] }), {
        dv: 0,
        dt: 0,
      }),
    );
    expect(room.told).toEqual(["enter dot 4"]);
    expect([room.entities.get(Dot, 4)?.x, room.entities.get(4)?.owner]).toEqual([3, "ann"]);
  });

  test("[CENT-07] a deflated part is as good as a plain one, patches included", () => {
    const room = new Room();
    const blocks = new Uint8Array(20_000).map((_, at) => at % 7);
    const deflated = (sections: Sections): Uint8Array => part(deflateRawSync(body(sections)), { deflated: true });
    room.receive(deflated({ enter: [{ id: 5, kind: Chunk, values: [blocks] }] }));
    const before = room.entities.get(Chunk, 5)!.blocks;
    expect(before).toEqual(blocks);
    room.receive(deflated({ patch: [{ id: 5, field: 0, offset: 19_990, data: new Uint8Array(2_000).fill(9) }] }));
    const after = room.entities.get(Chunk, 5)!.blocks;
    expect(after).not.toBe(before);
    expect([after.length, after[19_989], after[19_990], after[21_989]]).toEqual([21_990, 19_989 % 7, 9, 9]);
    expect(room.told).toEqual(["enter chunk 5", "change chunk 5 blocks"]);
  });

  test("an entity that gives its id to another leaves before that one enters", () => {
    const room = new Room();
    const old = room.entities.get(Dot, 3)!;
    room.update({ enter: [{ id: 3, kind: Chunk, values: [new Uint8Array(1)] }] });
    expect(room.told).toEqual(["leave dot 3", "enter chunk 3"]);
    expect([old.x, old.owner]).toEqual([30, "bob"]);
    expect(room.entities.count(Dot)).toBe(1);
  });

  test("an entity that comes in sight again is a new object; the old one shows what was seen last", () => {
    const room = new Room();
    const old = room.entities.get(Dot, 3)!;
    room.update({ leave: [3, 99] });
    room.update({ enter: [{ id: 3, kind: Dot, values: [31, 41, []] }] });
    const again = room.entities.get(Dot, 3)!;
    expect(again).not.toBe(old);
    expect([old.x, again.x]).toEqual([30, 31]);
    expect(room.told).toEqual(["leave dot 3", "enter dot 3"]);
  });

  test("what came and went within one update was never there", () => {
    const room = new Room();
    room.receive(
      part(body({ enter: [{ id: 9, kind: Dot, values: [0, 0, []] }] }), { last: false }),
      part(body({ leave: [9] }), { dv: 0, dt: 0 }),
    );
    expect(room.told).toEqual([]);
  });

  test("a field set to what it was is no change", () => {
    const room = new Room();
    room.update({ change: [{ id: 3, kind: Dot, values: { x: 30, y: 41, wears: ["ring"] } }] });
    expect(room.told).toEqual(["change dot 3 y"]);
  });

  test("the owner's writable field is its own until the room corrects it", () => {
    const room = new Room();
    room.update({ change: [{ id: 1, kind: Mine, values: { moves: 2, volume: 7 } }] });
    expect(room.told).toEqual(["change mine 1 moves"]);
    expect(room.driver.core.replica.private?.values).toEqual([2, 5]);
    room.told.length = 0;
    room.update({ correct: [{ id: 1, kind: Mine, values: { volume: 8 } }] });
    expect(room.told).toEqual(["change mine 1 volume", "correct mine 1 volume"]);
  });

  test("a callback that throws is reported, stops no other, and can be taken away", () => {
    const room = new Room();
    const later = vi
      .spyOn(globalThis, "queueMicrotask")
      .mockImplementation((report) => expect(report).toThrow("a page's mistake"));
    const calls: string[] = [];
    const remove = room.entities.onChange(Dot, () => {
      calls.push("first");
      throw new Error("a page's mistake");
    });
    room.entities.onChange(Dot, () => calls.push("second"));
    room.update({ change: [{ id: 2, kind: Dot, values: { x: 1 } }] });
    expect(later).toHaveBeenCalledOnce();
    later.mockRestore();
    remove();
    room.update({ change: [{ id: 2, kind: Dot, values: { x: 2 } }] });
    expect(calls).toEqual(["first", "second", "second"]);
  });
});

describe("presence", () => {
  test("iterate, get, onJoin, onChange and onLeave", () => {
    const room = new Room();
    const told: string[] = [];
    room.presence.onJoin(({ player }) => told.push(`join ${player}`));
    room.presence.onChange(({ player }, fields) => told.push(`change ${player} ${fields.join()}`));
    room.presence.onLeave(({ player }) => told.push(`leave ${player}`));
    const Presence = schema.kinds.at(-1)!;
    room.update({ enter: [presence(FIRST_PRESENCE + 1, "bob")] });
    expect([...room.presence].map(({ player }) => player)).toEqual(["ann", "bob"]);
    expect(room.presence.size).toBe(2);
    room.update({ change: [{ id: FIRST_PRESENCE + 1, kind: Presence, values: { name: "Bob", connected: false } }] });
    expect(room.presence.get("bob")).toMatchObject({ name: "Bob", connected: false, status: null });
    room.update({ leave: [FIRST_PRESENCE + 1] });
    expect(room.presence.get("bob")).toBeUndefined();
    expect(told).toEqual(["join bob", "change bob name,connected", "leave bob"]);
    expect(room.entities.count(Presence)).toBe(1);
    expect(room.told).toEqual([]);
  });

  test("a full state brings every entry again: nobody has left or joined by that, and what differs has changed", () => {
    const room = new Room();
    const told: string[] = [];
    room.presence.onJoin(({ player }) => told.push(`join ${player}`));
    room.presence.onChange(({ player }, fields) => told.push(`change ${player} ${fields.join()}`));
    room.presence.onLeave(({ player }) => told.push(`leave ${player}`));
    room.update({ enter: [presence(FIRST_PRESENCE + 1, "bob")] });
    room.update({ change: [{ id: FIRST_PRESENCE, kind: schema.kinds.at(-1)!, values: { connected: false } }] });
    told.length = 0;
    room.driver.lose();
    room.driver.pass(1_000);
    room.driver.open();
    room.receive(welcome({ generation: 8 }), fullState());
    expect(room.presence.size).toBe(1);
    expect(room.presence.get("ann")?.name).toBe("Ann");
    expect(told).toEqual(["change ann connected", "leave bob"]);
  });
});
