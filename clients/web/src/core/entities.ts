// `room.entities` and `room.presence`: what pages ask of the replica, and what they are told of it.

import type { Cell } from "./handles.js";
import { Listeners } from "./listeners.js";
import { isPresence, type Happening, type Replica } from "./replica.js";
import { Presence, type Entity, type Kind, type PresenceEntry } from "./schema.js";
import { PRIVATE_ID } from "./updates.js";

type Remove = () => void;
type Told = [entity: Entity, fields: readonly string[]];

/** The entities this client sees. Every method that takes a callback returns the function that removes it. */
export class Entities {
  readonly #replica: Replica;
  readonly #player: () => string;
  readonly #kinds: ReadonlySet<Kind>;
  readonly #listeners: Readonly<Record<Happening["event"], Listeners<Kind, Told>>> = {
    enter: new Listeners(),
    change: new Listeners(),
    correct: new Listeners(),
    owner: new Listeners(),
    leave: new Listeners(),
  };

  /** For the client. */
  constructor(replica: Replica, kinds: readonly Kind[], player: () => string) {
    this.#replica = replica;
    this.#kinds = new Set(kinds);
    this.#player = player;
  }

  /** The entity with this id, if it is seen; with a kind, only if it is of that kind. */
  get(id: number): Entity | undefined;
  get<T extends Entity>(kind: Kind<T>, id: number): T | undefined;
  get<T extends Entity>(kindOrId: Kind<T> | number, id?: number): Entity | undefined {
    const cell = this.#replica.get(typeof kindOrId === "number" ? kindOrId : id!);
    if (cell === undefined || cell.id <= PRIVATE_ID || isPresence(cell)) return undefined;
    return typeof kindOrId === "number" || cell.kind === kindOrId ? cell.handle : undefined;
  }

  /** All entities of a kind, or those of one owner (null: the room), in a new array. */
  all<T extends Entity>(kind: Kind<T>, options: { owner?: string | null } = {}): T[] {
    const cells = this.#cells(kind);
    const { owner } = options;
    return (owner === undefined ? cells : cells.filter((cell) => cell.owner === owner)).map((cell) => cell.handle as T);
  }

  /** The first entity of a kind, or of one owner. */
  first<T extends Entity>(kind: Kind<T>, options: { owner?: string | null } = {}): T | undefined {
    return this.all(kind, options)[0];
  }

  /** The entities of a kind that this player owns. */
  mine<T extends Entity>(kind: Kind<T>): T[] {
    return this.all(kind, { owner: this.#player() });
  }

  /** How many entities of a kind are seen. */
  count(kind: Kind): number {
    return this.#cells(kind).length;
  }

  /** The same as `entity.owner`: a player, or null for the room. */
  ownerOf(entity: Entity): string | null {
    return entity.owner;
  }

  #cells(kind: Kind): Cell[] {
    return [...this.#replica.ofKind(this.#known(kind)).values()];
  }

  #known<T extends Entity>(kind: Kind<T>): Kind<T> {
    if (!this.#kinds.has(kind)) throw new TypeError(`${kind.name} is no kind of this room's schema`);
    return kind;
  }

  /** An entity came in sight. What was there before the listener was added is not told. */
  onEnter<T extends Entity>(kind: Kind<T>, callback: (entity: T) => void): Remove {
    return this.#on("enter", kind, callback);
  }

  /** `fields` are the names of those an update set. Shared and private state have kinds too. */
  onChange<T extends Entity>(kind: Kind<T>, callback: (entity: T, fields: readonly string[]) => void): Remove {
    return this.#on("change", kind, callback);
  }

  /** The room overruled this player; runs after `onChange`. */
  onCorrect<T extends Entity>(kind: Kind<T>, callback: (entity: T, fields: readonly string[]) => void): Remove {
    return this.#on("correct", kind, callback);
  }

  /** Another player owns it now, or nobody: `entity.owner`. */
  onOwner<T extends Entity>(kind: Kind<T>, callback: (entity: T) => void): Remove {
    return this.#on("owner", kind, callback);
  }

  /** The entity is gone, or out of sight. It can still be read: it shows what was seen last. */
  onLeave<T extends Entity>(kind: Kind<T>, callback: (entity: T) => void): Remove {
    return this.#on("leave", kind, callback);
  }

  #on<T extends Entity>(
    event: Happening["event"],
    kind: Kind<T>,
    callback: (entity: T, fields: readonly string[]) => void,
  ): Remove {
    return this.#listeners[event].add(this.#known(kind), callback as (...told: Told) => void);
  }

  /** For the client, once an update is applied. */
  tell(happening: Happening): void {
    this.#listeners[happening.event].emit(happening.cell.kind, happening.cell.handle, happening.fields);
  }
}

/** Who is in the room: one entry per player, whatever else is seen. */
export class PresenceList implements Iterable<PresenceEntry> {
  readonly #replica: Replica;
  readonly #setStatus: (status: unknown) => void;
  readonly #listeners = new Listeners<Happening["event"], [entry: PresenceEntry, fields: readonly string[]]>();

  /** For the client. */
  constructor(replica: Replica, setStatus: (status: unknown) => void) {
    this.#replica = replica;
    this.#setStatus = setStatus;
  }

  /** How many players are in the room, those who are coming back included. */
  get size(): number {
    return this.#replica.ofKind(Presence).size;
  }

  /** The entry of a player, if there is one. */
  get(player: string): PresenceEntry | undefined {
    return this.#replica.presenceOf(player)?.handle as PresenceEntry | undefined;
  }

  *[Symbol.iterator](): Iterator<PresenceEntry> {
    for (const cell of [...this.#replica.ofKind(Presence).values()]) yield cell.handle as PresenceEntry;
  }

  /**
   * Set this player's status, any JSON of at most 1 KB (else RangeError). The own entry shows it at once; it is sent at
   * most once per room tick, and lost if the connection is before that. Throws PlayhallError where the client is not in
   * the room.
   */
  setStatus(status: unknown): void {
    this.#setStatus(status);
  }

  /** A player came. */
  onJoin(callback: (entry: PresenceEntry) => void): Remove {
    return this.#listeners.add("enter", callback);
  }

  /** `fields` are the names of what changed: `name`, `status`, `connected`. */
  onChange(callback: (entry: PresenceEntry, fields: readonly string[]) => void): Remove {
    return this.#listeners.add("change", callback);
  }

  /** A player is gone: 10 s after the last connection was lost. */
  onLeave(callback: (entry: PresenceEntry) => void): Remove {
    return this.#listeners.add("leave", callback);
  }

  /** For the client, once an update is applied. */
  tell(happening: Happening): void {
    this.#listeners.emit(happening.event, happening.cell.handle as PresenceEntry, happening.fields);
  }
}
