// What the client holds of a room. An update is applied whole; what it did is returned, for callbacks to run after.

import { isSame, patched } from "./fields.js";
import { makeCell, type Cell, type Home } from "./handles.js";
import { Presence, type Kind } from "./schema.js";
import { FIRST_PRESENCE_ID, PRIVATE_ID, STATE_ID, type Operation } from "./updates.js";

/** One thing an update did to one entity. `fields` are names, in the order of the kind. */
export interface Happening {
  readonly event: "enter" | "change" | "correct" | "owner" | "leave";
  readonly cell: Cell;
  readonly fields: readonly string[];
}

export class Replica {
  readonly home: Home;
  readonly #cells = new Map<number, Cell>();
  readonly #byKind = new Map<Kind, Map<number, Cell>>();
  readonly #byPlayer = new Map<string, Cell>();

  /** `home` takes what pages write to the entities. */
  constructor(home: Home) {
    this.home = home;
  }

  get(id: number): Cell | undefined {
    return this.#cells.get(id);
  }

  get isEmpty(): boolean {
    return this.#cells.size === 0;
  }

  get state(): Cell | undefined {
    return this.#cells.get(STATE_ID);
  }

  get private(): Cell | undefined {
    return this.#cells.get(PRIVATE_ID);
  }

  /** The entities of a kind, shared and private state left out, in the order they entered. */
  ofKind(kind: Kind): ReadonlyMap<number, Cell> {
    return this.#byKind.get(kind) ?? new Map();
  }

  /** The presence entry of a player. */
  presenceOf(player: string): Cell | undefined {
    return this.#byPlayer.get(player);
  }

  /** The ids a resume names: ascending, without shared and private state. */
  heldIds(): number[] {
    return [...this.#cells.keys()].filter((id) => id > PRIVATE_ID).sort((a, b) => a - b);
  }

  /** Apply one decoded update. With `full` everything held leaves first. Cannot fail. */
  apply(operations: readonly Operation[], full: boolean, player: string): Happening[] {
    const changes = new Changes(this, player);
    if (full) for (const cell of [...this.#cells.values()]) changes.leave(cell);
    for (const operation of operations) changes.run(operation);
    return changes.happenings();
  }

  put(cell: Cell): void {
    this.#cells.set(cell.id, cell);
    if (cell.id <= PRIVATE_ID) return;
    let siblings = this.#byKind.get(cell.kind);
    if (siblings === undefined) this.#byKind.set(cell.kind, (siblings = new Map()));
    siblings.set(cell.id, cell);
    if (cell.kind === Presence) this.#byPlayer.set(cell.values[0] as string, cell);
  }

  drop(cell: Cell): void {
    this.#cells.delete(cell.id);
    this.#byKind.get(cell.kind)?.delete(cell.id);
    const player = cell.values[0] as string;
    if (cell.kind === Presence && this.#byPlayer.get(player) === cell) this.#byPlayer.delete(player);
  }
}

/** The effects of one update while it is applied. */
class Changes {
  readonly #replica: Replica;
  readonly #player: string;
  readonly #entered = new Set<Cell>();
  readonly #left: Cell[] = [];
  /** The values from before, by field. */
  readonly #before = new Map<Cell, Map<number, unknown>>();
  readonly #corrected = new Map<Cell, Set<number>>();
  /** Who owned what changed hands, before. */
  readonly #ownerBefore = new Map<Cell, string | null>();

  constructor(replica: Replica, player: string) {
    this.#replica = replica;
    this.#player = player;
  }

  run(operation: Operation): void {
    const cell = this.#replica.get(operation.id);
    if (operation.op === "enter") {
      if (cell !== undefined) this.leave(cell);
      const entered = makeCell(operation.id, operation.kind, operation.values, this.#replica.home);
      if (operation.id === PRIVATE_ID) entered.owner = this.#player;
      this.#replica.put(entered);
      this.#entered.add(entered);
      return;
    }
    if (cell === undefined) return;
    switch (operation.op) {
      case "leave":
        return this.leave(cell);
      case "change":
        return this.#change(cell, operation.fields, operation.values);
      case "patch":
        return this.#patch(cell, operation.field, operation.offset, operation.data);
      case "owner":
        return this.#setOwner(cell, operation.owner);
      case "correct":
        return this.#correct(cell, operation.fields, operation.values);
    }
  }

  leave(cell: Cell): void {
    this.#replica.drop(cell);
    // What came and went within one update was never there.
    if (!this.#entered.delete(cell)) this.#left.push(cell);
    this.#before.delete(cell);
    this.#corrected.delete(cell);
    this.#ownerBefore.delete(cell);
  }

  #change(cell: Cell, fields: readonly number[], values: readonly unknown[]): void {
    fields.forEach((field, at) => {
      if (!this.#isPlayers(cell, field)) this.#set(cell, field, values[at]);
    });
  }

  #correct(cell: Cell, fields: readonly number[], values: readonly unknown[]): void {
    fields.forEach((field, at) => this.#set(cell, field, values[at]));
    if (this.#ownedBefore(cell)) this.#corrected.set(cell, new Set([...(this.#corrected.get(cell) ?? []), ...fields]));
  }

  /** What the player writes is its own: the room's ordinary changes to it are old news. */
  #isPlayers(cell: Cell, field: number): boolean {
    const { writable, name } = cell.kind.fields[field]!;
    if (cell.kind === Presence) return name === "status" && cell.values[0] === this.#player && !this.#entered.has(cell);
    return writable === true && this.#ownedBefore(cell);
  }

  #ownedBefore(cell: Cell): boolean {
    if (this.#entered.has(cell)) return false;
    const owner = this.#ownerBefore.get(cell);
    return (owner === undefined ? cell.owner : owner) === this.#player;
  }

  #set(cell: Cell, field: number, value: unknown): void {
    let before = this.#before.get(cell);
    if (before === undefined) this.#before.set(cell, (before = new Map()));
    if (!before.has(field)) before.set(field, cell.values[field]);
    cell.values[field] = value;
  }

  #patch(cell: Cell, field: number, offset: number, data: Uint8Array): void {
    if (this.#isPlayers(cell, field)) return;
    this.#set(cell, field, patched(cell.values[field] as Uint8Array, offset, data));
  }

  #setOwner(cell: Cell, owner: string | null): void {
    if (cell.owner === owner) return;
    if (!this.#ownerBefore.has(cell)) this.#ownerBefore.set(cell, cell.owner);
    cell.owner = owner;
  }

  /**
   * In the order callbacks run. What left to make room for another entity of its id comes before the enters, so that
   * a page which keeps things by id may simply do as it is told. A player whose presence entry is sent again, as in a
   * full state, has not left and joined: what differs has changed.
   */
  happenings(): Happening[] {
    const stayed = this.#stayed();
    const left = this.#left.filter((cell) => !stayed.has(cell));
    const again = new Set(stayed.values());
    const replaced = left.filter((cell) => this.#entered.has(this.#replica.get(cell.id) as Cell));
    const replacedCells = new Set(replaced);
    const gone = left.filter((cell) => !replacedCells.has(cell));
    const known = (cell: Cell): boolean => !this.#entered.has(cell);
    return [
      ...replaced.map((cell) => happening("leave", cell)),
      ...[...this.#entered].filter((cell) => !again.has(cell)).map((cell) => happening("enter", cell)),
      ...[...stayed].flatMap(([before, now]) => difference(now, before.values)),
      ...[...this.#before.keys()].filter(known).flatMap((cell) => some("change", cell, this.#changed(cell))),
      ...[...this.#corrected].flatMap(([cell, fields]) => {
        const changed = this.#changed(cell).filter((field) => fields.has(field));
        return some("correct", cell, changed);
      }),
      ...[...this.#ownerBefore]
        .filter(([cell, before]) => known(cell) && before !== cell.owner)
        .map(([cell]) => happening("owner", cell)),
      ...gone.map((cell) => happening("leave", cell)),
    ];
  }

  /** Presence entries that left and came again for the same player: the old one, and the new. */
  #stayed(): Map<Cell, Cell> {
    const entered = new Map<unknown, Cell>();
    for (const cell of this.#entered) if (cell.kind === Presence) entered.set(cell.values[0], cell);
    const stayed = new Map<Cell, Cell>();
    for (const cell of this.#left) {
      const now = cell.kind === Presence ? entered.get(cell.values[0]) : undefined;
      if (now !== undefined) stayed.set(cell, now);
    }
    return stayed;
  }

  /** The fields that are different now. */
  #changed(cell: Cell): number[] {
    const before = [...this.#before.get(cell)!];
    return before.filter(([field, value]) => !isSame(value, cell.values[field])).map(([field]) => field);
  }
}

/** The change from earlier values. */
function difference(cell: Cell, before: readonly unknown[]): Happening[] {
  const fields = [...before.keys()].filter((field) => !isSame(before[field], cell.values[field]));
  return some("change", cell, fields);
}

/** What happened to some fields; nothing, where there are none. */
function some(event: Happening["event"], cell: Cell, fields: readonly number[]): Happening[] {
  return fields.length === 0 ? [] : [happening(event, cell, fields)];
}

function happening(event: Happening["event"], cell: Cell, fields: Iterable<number> = []): Happening {
  const names = [...fields].sort((a, b) => a - b).map((index) => cell.kind.fields[index]!.name);
  return { event, cell, fields: names };
}

/** Whether an id is a presence entry's. */
export function isPresence(cell: Cell): boolean {
  return cell.id >= FIRST_PRESENCE_ID;
}
