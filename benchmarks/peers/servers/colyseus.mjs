// Colyseus in its fastest simple form: patches made by the tick itself, one StateView a client where there is interest,
// refreshed every fourth tick in turns. --port --workload=broadcast|interest|rooms

import { Encoder, StateView, schema, t } from "@colyseus/schema";
import { Room, Server, logger } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";
import { emit, onCommand } from "../lib/lines.mjs";
import { options } from "../lib/options.mjs";
import { Grid, NPCS, TICK_MS, WORLD, makeNpcs, stepNpc, stepPlayer } from "../lib/world.mjs";

const { port, workload } = options();
const VIEW_EVERY = 4;
const hasInterest = workload === "interest";
for (const level of ["info", "warn", "debug", "trace"]) logger[level] = () => {};
Encoder.BUFFER_SIZE = hasInterest ? 2 << 20 : workload === "rooms" ? 8 << 10 : 64 << 10;

const Entity = schema({ owner: t.string(), x: t.float32(), y: t.float32(), hp: t.uint8(), seq: t.uint16() }, "Entity");
const State = hasInterest
  ? schema({ players: t.map(Entity).view(), npcs: t.map(Entity).view() }, "State")
  : schema({ players: t.map(Entity) }, "State");

function entityOf(record, owner) {
  const entity = new Entity();
  entity.owner = owner;
  entity.x = record.x;
  entity.y = record.y;
  entity.hp = record.hp;
  entity.seq = 0;
  return entity;
}

class Arena extends Room {
  onCreate() {
    if (workload === "rooms") this.maxClients = 4;
    this.state = new State();
    this.players = [];
    this.tickNumber = 0;
    if (hasInterest) this.createNpcs();
    this.onMessage("move", (client, move) => {
      const player = client.record;
      player.dx = move.dx;
      player.dy = move.dy;
      if (move.seq) player.seq = move.seq;
    });
    this.setTimestep(() => this.tick(), TICK_MS);
    this.patchRate = 0;
  }

  createNpcs() {
    this.grid = new Grid();
    this.epoch = 0;
    this.npcs = makeNpcs(NPCS);
    for (const npc of this.npcs) {
      npc.entity = entityOf(npc, "");
      npc.mark = 0;
      this.state.npcs.set(npc.key, npc.entity);
    }
    this.all = this.npcs.slice();
  }

  onJoin(client) {
    const player = { x: Math.random() * WORLD, y: Math.random() * WORLD, dx: 0.7, dy: 0.7, seq: 0, hp: 100, mark: 0 };
    player.entity = entityOf(player, client.sessionId);
    client.record = player;
    this.players.push(player);
    this.state.players.set(client.sessionId, player.entity);
    if (!hasInterest) return;
    player.visible = new Set();
    this.all.push(player);
    client.view = new StateView();
    this.grid.build(this.all);
    this.updateView(client);
  }

  onLeave(client) {
    this.players.splice(this.players.indexOf(client.record), 1);
    if (hasInterest) this.all.splice(this.all.indexOf(client.record), 1);
    this.state.players.delete(client.sessionId);
    client.view?.dispose?.();
  }

  updateView({ record, view }) {
    const epoch = ++this.epoch;
    const visible = record.visible;
    const near = this.grid.query(record.x, record.y);
    for (let i = 0; i < near.length; i++) near[i].mark = epoch;
    for (const each of visible) {
      if (each.mark === epoch) continue;
      visible.delete(each);
      view.remove(each.entity);
    }
    for (let i = 0; i < near.length; i++) {
      if (visible.has(near[i])) continue;
      visible.add(near[i]);
      view.add(near[i].entity);
    }
  }

  tick() {
    this.tickNumber++;
    for (const player of this.players) {
      stepPlayer(player);
      player.entity.x = player.x;
      player.entity.y = player.y;
      if (player.seq) player.entity.seq = player.seq;
    }
    if (hasInterest) this.tickInterest();
    this.broadcastPatch();
  }

  tickInterest() {
    for (const npc of this.npcs) {
      stepNpc(npc);
      npc.entity.x = npc.x;
      npc.entity.y = npc.y;
    }
    this.grid.build(this.all);
    const clients = this.clients;
    for (let i = this.tickNumber % VIEW_EVERY; i < clients.length; i += VIEW_EVERY) {
      if (clients[i].record && clients[i].view) this.updateView(clients[i]);
    }
  }
}

const server = new Server({ greet: false, gracefullyShutdown: false, transport: new WebSocketTransport({}) });
server.define("arena", Arena);
await server.listen(Number(port), "127.0.0.1");
onCommand(() => {});
emit({ ev: "ready", pid: process.pid, version: process.version });
