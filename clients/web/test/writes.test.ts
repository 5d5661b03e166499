import { describe, expect, test } from "vitest";
import { Entities, PresenceList } from "../src/core/entities.js";
import { readMask } from "../src/core/fields.js";
import { FrameType } from "../src/core/frames.js";
import type { Kind } from "../src/core/schema.js";
import { Reader } from "../src/core/values.js";
import { Driver } from "./core_driver.js";
import {
  asleep,
  Dot,
  FIRST_PRESENCE,
  fullState,
  Mine,
  Pen,
  presence,
  reset,
  schema,
  update,
  waking,
  welcome,
  type PartFields,
  type Sections,
} from "./server.js";

const TICK_MS = 50;
const Presence = schema.kinds.at(-1)!;
const PEN = 5;
const fields = { x: 1, label: "", ink: new Uint8Array(4), style: null, level: 0, colour: 9 };

interface Written {
  readonly seen: number;
  /** By "kind id". */
  readonly entities: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

function readWrite(frame: Uint8Array): Written {
  const reader = new Reader(frame.subarray(1));
  const seen = reader.varint32();
  const entities: Record<string, Record<string, unknown>> = {};
  for (let left = reader.varint32(); left > 0; left--) {
    const id = reader.varint32();
    const kind = schema.kinds[reader.varint32()]!;
    const present = readMask(reader, kind.fields.length);
    entities[`${kind.name} ${id}`] = Object.fromEntries(
      present.map((index) => [kind.fields[index]!.name, kind.codecs[index]!.read(reader)]),
    );
  }
  reader.end();
  return { seen, entities };
}

/** Ann in the room, with a pen of hers (5) besides her dot (2). */
class Room {
  readonly driver = new Driver();
  readonly entities = new Entities(this.driver.core.replica, schema.kinds, () => this.driver.core.player);
  readonly presence = new PresenceList(this.driver.core.replica, (status) => this.driver.core.setStatus(status));
  readonly told: string[] = [];
  #read = 0;

  constructor() {
    this.driver.join();
    this.update({
      enter: [{ id: PEN, kind: Pen, values: Object.values(fields) }],
      owner: [{ id: PEN, owner: "ann" }],
    });
    const tell =
      (event: string) =>
      (entity: { id: number; kind: string }, names: readonly string[] = []): void =>
        void this.told.push([event, entity.kind, entity.id, ...names].join(" "));
    for (const each of [Pen, Mine] as Kind[]) {
      this.entities.onChange(each, tell("change"));
      this.entities.onCorrect(each, tell("correct"));
      this.entities.onOwner(each, tell("owner"));
    }
    this.presence.onChange(tell("change"));
    this.driver.pass(1_000);
    this.driver.forget();
    this.#read = 0;
  }

  get pen(): Pen {
    return this.entities.get(Pen, PEN)!;
  }

  get private(): Mine {
    return this.driver.core.replica.private!.handle as Mine;
  }

  update(sections: Sections, part: PartFields = {}): void {
    this.receive(update(sections, part));
  }

  receive(...frames: Uint8Array[]): void {
    this.driver.receive(...frames);
    for (const event of this.driver.events.slice(this.#read)) {
      if (event.name !== "updated") continue;
      for (const happening of event.happenings) {
        if (happening.cell.id >= FIRST_PRESENCE) this.presence.tell(happening);
        else this.entities.tell(happening);
      }
    }
    this.#read = this.driver.events.length;
  }

  /** What was sent since the last time this was asked. */
  written(): Written[] {
    const written = this.driver.sentOf(FrameType.WRITE).map(readWrite);
    this.driver.forget();
    this.#read = 0;
    return written;
  }
}

describe("what may be written", () => {
  test("[OWN-11] [OWN-21] a writable field of an own entity and of private state shows at once", () => {
    const room = new Room();
    room.pen.x = 0.1;
    room.private.volume = 9;
    expect([room.pen.x, room.private.volume]).toEqual([Math.fround(0.1), 9]);
    room.driver.endTurn();
    expect(room.written()).toEqual([
      { seen: 1, entities: { "pen 5": { x: Math.fround(0.1) }, "mine 1": { volume: 9 } } },
    ]);
  });

  test("[CENT-04] [OWN-11] [OWN-13] any other write throws TypeError, and changes and sends nothing", () => {
    const room = new Room();
    room.update({ enter: [{ id: 6, kind: Pen, values: Object.values(fields) }], owner: [{ id: 6, owner: "bob" }] });
    room.update({ enter: [{ id: 7, kind: Pen, values: Object.values(fields) }] });
    const gone = room.entities.get(Pen, 7)!;
    room.update({ leave: [7] });
    const pen = room.pen as unknown as Record<string, unknown>;
    const writes: [string, () => void][] = [
      ["pen 5: colour is the room's", () => (pen["colour"] = 1)],
      ["dot 2: x is the room's", () => ((room.entities.get(2) as unknown as Record<string, unknown>)["x"] = 1)],
      ["pen 6: x cannot be written: the entity is bob's", () => (room.entities.get(Pen, 6)!.x = 2)],
      ["pen 7: x cannot be written: the entity has left", () => (gone.x = 2)],
      ["mine 1: moves is the room's", () => ((room.private as unknown as Record<string, unknown>)["moves"] = 2)],
      ["owner", () => (pen["owner"] = "bob")],
      ["id", () => (pen["id"] = 9)],
      ["speed", () => (pen["speed"] = 9)],
      ["status", () => ((room.presence.get("ann") as unknown as Record<string, unknown>)["status"] = 1)],
    ];
    for (const [message, write] of writes) {
      expect(write).toThrow(TypeError);
      expect(write).toThrow(message);
    }
    expect(JSON.parse(JSON.stringify(room.pen))).toMatchObject({ x: 1, colour: 9, owner: "ann" });
    room.driver.endTurn();
    expect(room.written()).toEqual([]);
  });

  test("a value that its field cannot hold is refused, by kind, id and field", () => {
    const room = new Room();
    const pen = room.pen as unknown as Record<string, unknown>;
    const own = room.private as unknown as Record<string, unknown>;
    expect(() => (own["volume"] = 256)).toThrow(new RangeError("mine 1: volume: 256 is not within 0 to 255"));
    expect(() => (own["volume"] = 1.5)).toThrow(TypeError);
    expect(() => (pen["x"] = "1")).toThrow(new TypeError("pen 5: x: string is not a number"));
    expect(() => (pen["x"] = NaN)).toThrow(RangeError);
    expect(() => (pen["level"] = 1.01)).toThrow(RangeError);
    expect(() => (pen["label"] = "x".repeat(16_385))).toThrow(RangeError);
    expect(() => (pen["ink"] = [1])).toThrow(TypeError);
    expect(() => (pen["style"] = undefined)).toThrow(TypeError);
    expect(room.pen).toMatchObject({ x: 1, label: "", style: null, level: 0 });
  });

  test("an entity may not grow over what a room takes", () => {
    const room = new Room();
    room.pen.ink = new Uint8Array(49_152);
    // 49,155 of the ink; 4, 5, 1 and 1 of the other fields, and two for the length of the label.
    room.pen.label = "x".repeat(61_376 - 49_155 - 13);
    const grow = (): unknown => (room.pen.label += "x");
    expect(grow).toThrow(new RangeError("pen 5: label: the entity would have 61377 bytes; 61376 is the most"));
    room.pen.x = 2;
    room.driver.endTurn();
    expect(room.written()[0]!.entities["pen 5"]).toEqual({ x: 2, ink: room.pen.ink, label: room.pen.label });
  });

  test("what is held is what the room will hold: rounded, copied and frozen", () => {
    const room = new Room();
    const ink = Uint8Array.of(1, 2);
    const style = { width: 3 };
    Object.assign(room.pen, { ink, style, level: 0.5 });
    ink[0] = style.width = 9;
    expect(room.pen.ink).toEqual(Uint8Array.of(1, 2));
    expect(room.pen.style).toEqual({ width: 3 });
    expect(Object.isFrozen(room.pen.style)).toBe(true);
    expect(room.pen.level).toBe(128 / 255);
  });

  test("patch writes into a bytes field, which then holds a new array", () => {
    const room = new Room();
    const before = room.pen.ink;
    room.pen.patch("ink", 6, Uint8Array.of(7, 8));
    expect(before).toEqual(new Uint8Array(4));
    expect(room.pen.ink).toEqual(Uint8Array.of(0, 0, 0, 0, 0, 0, 7, 8));
    expect(() => room.pen.patch("label", 0, Uint8Array.of(1))).toThrow(TypeError);
    expect(() => room.pen.patch("nothing", 0, Uint8Array.of(1))).toThrow(TypeError);
    for (const offset of [-1, 0.5, 49_152]) {
      expect(() => room.pen.patch("ink", offset, Uint8Array.of(1))).toThrow(RangeError);
    }
    expect(() => room.entities.get(Dot, 2)!.patch("x", 0, Uint8Array.of(1))).toThrow(TypeError);
    room.driver.endTurn();
    expect(room.written()[0]!.entities).toEqual({ "pen 5": { ink: room.pen.ink } });
  });

  test("once the client is closed, nothing may be written", () => {
    const room = new Room();
    room.driver.lose(4_006);
    expect(() => (room.pen.x = 2)).toThrow(new TypeError("pen 5: x cannot be written: the client is closed"));
  });
});

describe("when it is sent", () => {
  test("[OWN-12] the writes of a turn go together, at most once per room tick, and the last of a field wins", () => {
    const room = new Room();
    room.pen.x = 2;
    room.pen.x = 3;
    room.private.volume = 7;
    expect(room.driver.turns).toBe(1);
    room.driver.endTurn();
    expect(room.written()).toEqual([{ seen: 1, entities: { "pen 5": { x: 3 }, "mine 1": { volume: 7 } } }]);
    room.pen.x = 4;
    room.driver.endTurn();
    room.driver.pass(TICK_MS - 1);
    room.pen.x = 5;
    room.driver.endTurn();
    expect(room.written()).toEqual([]);
    room.driver.pass(1);
    expect(room.written()).toEqual([{ seen: 1, entities: { "pen 5": { x: 5 } } }]);
    room.driver.pass(10 * TICK_MS);
    expect(room.written()).toEqual([]);
  });

  test("writing the value that a field has is no write", () => {
    const room = new Room();
    room.pen.x = 1;
    room.pen.ink = new Uint8Array(4);
    room.driver.endTurn();
    expect([room.driver.turns, room.written()]).toEqual([0, []]);
  });

  test("what does not fit a frame waits for the next, whole entities at a time", () => {
    const room = new Room();
    const enter = [6, 7].map((id) => ({ id, kind: Pen, values: Object.values(fields) }));
    room.update({ enter, owner: enter.map(({ id }) => ({ id, owner: "ann" })) });
    const [first, second, third] = room.entities.mine(Pen) as [Pen, Pen, Pen];
    first.ink = new Uint8Array(40_000);
    second.ink = new Uint8Array(30_000);
    second.x = third.x = 2;
    const sent: string[][] = [];
    for (let ticks = 0; ticks < 3; ticks++) {
      room.driver.endTurn();
      for (const frame of room.driver.sentOf(FrameType.WRITE)) expect(frame.length).toBeLessThanOrEqual(65_600);
      sent.push(room.written().flatMap(({ entities }) => Object.keys(entities)));
      room.driver.pass(TICK_MS);
    }
    expect(sent).toEqual([["pen 5"], ["pen 6", "pen 7"], []]);
  });

  test("leave sends what is unsent first", () => {
    const room = new Room();
    room.pen.x = 2;
    room.driver.endTurn();
    room.pen.x = 3;
    room.driver.do((now) => room.driver.core.leave(now));
    expect(room.driver.sent.map(([type]) => type)).toEqual([FrameType.WRITE, FrameType.WRITE, FrameType.LEAVE]);
  });

  test("bytes of writes are counted", () => {
    const room = new Room();
    room.pen.x = 2;
    room.driver.endTurn();
    expect(room.driver.core.stats.sent["write"]).toBe(room.driver.sentOf(FrameType.WRITE)[0]!.length);
  });
});

describe("the room's word", () => {
  test("[OWN-14] the owner keeps its own values, whatever the room's ordinary changes and patches say", () => {
    const room = new Room();
    room.pen.x = 2;
    room.pen.ink = Uint8Array.of(5);
    room.update({
      change: [{ id: PEN, kind: Pen, values: { x: 7, colour: 1 } }],
      patch: [{ id: PEN, field: 2, offset: 0, data: Uint8Array.of(8) }],
    });
    expect([room.pen.x, room.pen.ink, room.pen.colour]).toEqual([2, Uint8Array.of(5), 1]);
    expect(room.told).toEqual(["change pen 5 colour"]);
  });

  test("[CENT-03] [OWN-16] a correction overwrites, drops the unsent write, then tells of the change and the correction", () => {
    const room = new Room();
    room.pen.x = 2;
    room.pen.label = "mine";
    const seen: unknown[] = [];
    room.entities.onCorrect(Pen, (pen, names) => seen.push(pen.x, pen.label, names));
    room.update({ correct: [{ id: PEN, kind: Pen, values: { x: 8 } }] });
    expect(room.told).toEqual(["change pen 5 x", "correct pen 5 x"]);
    expect(seen).toEqual([8, "mine", ["x"]]);
    room.driver.pass(TICK_MS);
    expect(room.written()).toEqual([{ seen: 2, entities: { "pen 5": { label: "mine" } } }]);
  });

  test("a correction to what the player holds already tells nothing, and takes the write back all the same", () => {
    const room = new Room();
    room.pen.x = 8;
    room.update({ correct: [{ id: PEN, kind: Pen, values: { x: 8 } }] });
    room.driver.endTurn();
    expect([room.told, room.written()]).toEqual([[], []]);
  });

  test("[OWN-18] a lost connection, a reset and a new generation drop what is unsent; the room's values come", () => {
    for (const lose of [
      (room: Room) => {
        room.driver.lose();
        room.driver.pass(1_000);
        room.driver.open();
      },
      (room: Room) => room.driver.receive(reset(1, 4_008)),
    ]) {
      const room = new Room();
      room.pen.x = 2;
      lose(room);
      room.pen.label = "meanwhile";
      room.private.volume = 7;
      expect(room.pen.label).toBe("meanwhile");
      room.receive(
        welcome({ resumed: true, version: 1 }),
        update({ correct: [{ id: PEN, kind: Pen, values: { x: 1, label: "" } }] }, { dv: 0 }),
      );
      room.driver.pass(10 * TICK_MS);
      expect(room.written()).toEqual([]);
      expect([room.pen.x, room.pen.label]).toEqual([1, ""]);
      room.pen.x = 3;
      room.driver.lose();
      room.driver.pass(10_000);
      room.driver.open();
      room.receive(welcome({ generation: 8 }), fullState());
      room.driver.pass(10 * TICK_MS);
      expect(room.written()).toEqual([]);
      expect(room.private.volume).toBe(5);
    }
  });

  test("what is written while a sleeping room wakes is not sent", () => {
    const room = new Room();
    room.receive(asleep(7, 1));
    room.pen.x = 2;
    room.driver.endTurn();
    expect(room.written()).toHaveLength(1);
    room.pen.x = 3;
    room.receive(waking, welcome({ generation: 8 }));
    room.private.volume = 9;
    room.driver.pass(10 * TICK_MS);
    room.receive(fullState());
    room.driver.pass(10 * TICK_MS);
    expect([room.written(), room.private.volume]).toEqual([[], 5]);
  });

  test("[CENT-03] [OWN-20] an entity may be written once its owner change is applied, and onOwner tells so", () => {
    const room = new Room();
    room.update({ enter: [{ id: 6, kind: Pen, values: Object.values(fields) }] });
    const given = room.entities.get(Pen, 6)!;
    expect(() => (given.x = 2)).toThrow("the entity is the room's");
    const owners: unknown[] = [];
    room.entities.onOwner(Pen, (pen) => owners.push([pen.id, pen.owner, room.entities.mine(Pen).length]));
    room.update({ change: [{ id: 6, kind: Pen, values: { x: 7 } }], owner: [{ id: 6, owner: "ann" }] });
    expect(owners).toEqual([[6, "ann", 2]]);
    expect(given.x).toBe(7);
    given.x = 3;
    room.driver.endTurn();
    expect(room.written()).toEqual([{ seen: 3, entities: { "pen 6": { x: 3 } } }]);
    given.x = 4;
    room.update({
      owner: [{ id: 6, owner: "bob" }],
      correct: [{ id: 6, kind: Pen, values: { x: 3 } }],
    });
    room.driver.pass(TICK_MS);
    expect([room.written(), given.x]).toEqual([[], 3]);
    expect(() => (given.x = 5)).toThrow(TypeError);
  });

  test("a full state takes all that is unsent, of what it brings and of what it does not", () => {
    const room = new Room();
    room.pen.x = 2;
    room.private.volume = 9;
    room.receive(fullState({ dv: 1 }));
    room.driver.pass(TICK_MS);
    expect([room.written(), room.private.volume, room.entities.get(PEN)]).toEqual([[], 5, undefined]);
  });

  test("an entity that leaves, or is handed back and forth, takes its unsent writes with it", () => {
    const room = new Room();
    room.pen.x = 2;
    room.update({ owner: [{ id: PEN, owner: "ann" }] });
    room.driver.endTurn();
    expect(room.written()).toEqual([]);
    room.pen.x = 3;
    room.update({
      leave: [PEN],
      enter: [{ id: PEN, kind: Pen, values: Object.values(fields) }],
      owner: [{ id: PEN, owner: "ann" }],
    });
    room.driver.endTurn();
    expect([room.written(), room.pen.x]).toEqual([[], 1]);
  });
});

describe("status", () => {
  test("[PRES-07] it shows at once, goes with the writes of its tick, and may have 1 KB", () => {
    const room = new Room();
    room.presence.setStatus({ ready: true });
    room.pen.x = 2;
    expect(room.presence.get("ann")!.status).toEqual({ ready: true });
    room.driver.endTurn();
    const own = `playhall_presence ${FIRST_PRESENCE}`;
    expect(room.written()).toEqual([{ seen: 1, entities: { [own]: { status: { ready: true } }, "pen 5": { x: 2 } } }]);
    room.presence.setStatus("x".repeat(1_022));
    expect(() => room.presence.setStatus("x".repeat(1_023))).toThrow(RangeError);
    expect(() => room.presence.setStatus("é".repeat(512))).toThrow(RangeError);
    expect(() => room.presence.setStatus(undefined)).toThrow(TypeError);
    room.presence.setStatus("away");
    room.driver.pass(TICK_MS - 1);
    expect(room.written()).toEqual([]);
    room.driver.pass(1);
    expect(room.written()).toEqual([{ seen: 1, entities: { [own]: { status: "away" } } }]);
    room.presence.setStatus("lost");
    room.driver.lose();
    room.driver.pass(1_000);
    room.driver.open();
    room.receive(welcome({ resumed: true, version: 1 }), update({}, { dv: 0 }));
    room.driver.pass(10 * TICK_MS);
    expect(room.written()).toEqual([]);
  });

  test("the player's own is kept over the room's ordinary changes, and corrected by the room", () => {
    const room = new Room();
    room.update({ enter: [presence(FIRST_PRESENCE + 1, "bob")] });
    room.presence.setStatus("mine");
    room.update({
      change: [
        { id: FIRST_PRESENCE, kind: Presence, values: { name: "Anna", status: "old" } },
        { id: FIRST_PRESENCE + 1, kind: Presence, values: { status: "his" } },
      ],
    });
    expect([room.presence.get("ann")!.status, room.presence.get("bob")!.status]).toEqual(["mine", "his"]);
    room.driver.endTurn();
    room.written();
    room.presence.setStatus("again");
    room.update({ correct: [{ id: FIRST_PRESENCE, kind: Presence, values: { status: null } }] });
    room.driver.pass(TICK_MS);
    expect([room.presence.get("ann")!.status, room.written()]).toEqual([null, []]);
    expect(room.told).toEqual([
      `change playhall_presence ${FIRST_PRESENCE} name`,
      `change playhall_presence ${FIRST_PRESENCE + 1} status`,
      `change playhall_presence ${FIRST_PRESENCE} status`,
    ]);
  });

  test("an entry that is sent again comes with the room's status", () => {
    const room = new Room();
    room.presence.setStatus("mine");
    room.update({
      enter: [presence(FIRST_PRESENCE, "ann")],
      change: [{ id: FIRST_PRESENCE, kind: Presence, values: { status: "the room's" } }],
    });
    expect(room.presence.get("ann")!.status).toBe("the room's");
  });

  test("there is none before the room is joined, and after it was left", () => {
    const driver = new Driver();
    expect(() => driver.core.setStatus("early")).toThrow("not in the room");
    driver.join();
    driver.do((now) => driver.core.leave(now));
    expect(() => driver.core.setStatus("late")).toThrow("not in the room");
  });
});
