// Swarm: gather fish in a dark sea. What is true is in the room (room.py); this page shows it, and says where to swim.

import {
  CloseCode,
  isBot,
  reloadForNewBuild,
  RoomClient,
  type PlayhallError,
} from "@playhall/client";
import { find } from "./dom.js";
import { showLabels, showLeaders, showNumbers } from "./hud.js";
import { SeaMap } from "./map.js";
import {
  hideOverlay,
  showClosed,
  showLost,
  showNoAnswer,
  showUndrawable,
  showWaking,
} from "./overlay.js";
import { editName, keptName, offerLink } from "./panel.js";
import { Sea, type Aim } from "./sea.js";
import { Fish, Light, schema } from "./shared.gen.js";
import { Steering } from "./steering.js";

/** After this long without a word from a server, the page says that it has none. */
const SAY_NO_ANSWER_MS = 5_000;
/** How often the room is told of the aim, at most, and what is no change of it. */
const SAY_EVERY_MS = 50;
const SAME_AIM = 0.02;
const MOST_LABELS = 12;
/** Who has caught so many knows how to play. */
const LEARNT_AT = 40;

const asked = new URLSearchParams(location.search).get("room") ?? "";
const roomId = /^[A-Za-z0-9_-]{1,64}$/.test(asked) ? asked : "main";
const room = new RoomClient({
  url: location.origin,
  project: "swarm",
  room: roomId,
  schema,
});

const noAnswer = setTimeout(showNoAnswer, SAY_NO_ANSWER_MS);
let wasIn = false;
let said: Aim & { at: number } = { x: 0, y: 0, dash: false, at: 0 };
let lastFrame = performance.now();

function makeSea(): Sea | null {
  try {
    return new Sea(find<HTMLCanvasElement>("#sea"));
  } catch (error) {
    console.warn(error);
    room.leave();
    showUndrawable();
    return null;
  }
}

const map = new SeaMap(find<HTMLCanvasElement>("#map"));

/** Have the sea follow what the room says. */
function follow(sea: Sea): void {
  const { entities } = room;
  const lightCame = (light: Light): void =>
    sea.lightCame(light, room.tick, light.owner === room.player);
  entities.onEnter(Fish, (fish) => sea.fishCame(fish, room.tick));
  entities.onChange(Fish, (fish) => sea.fishMoved(fish, room.tick));
  entities.onLeave(Fish, (fish) => sea.fishLeft(fish));
  entities.onEnter(Light, lightCame);
  entities.onChange(Light, (light) => sea.lightMoved(light, room.tick));
  entities.onLeave(Light, (light) => sea.lightLeft(light));
  room.on("tick", (tick) => {
    sea.ticked(tick);
    showRoom();
  });
}

function showRoom(): void {
  const [own] = room.entities.mine(Light);
  const { leaders, lights } = room.state;
  const { rank, best, caught } = room.private;
  const people = [...room.presence].filter(
    ({ player, connected }) => connected && !isBot(player),
  ).length;
  showNumbers({ glow: own?.glow ?? 0, rank, lights, best, people });
  showLeaders(leaders, own?.id);
  map.draw(room.state.map, leaders, own);
  find("#how").classList.toggle("learnt", caught >= LEARNT_AT);
}

/** Tell the room where to swim, when that has changed. */
function say(aim: Aim, now: number): void {
  if (room.status !== "open" || now - said.at < SAY_EVERY_MS) return;
  const isSame =
    Math.abs(aim.x - said.x) < SAME_AIM &&
    Math.abs(aim.y - said.y) < SAME_AIM &&
    aim.dash === said.dash;
  if (isSame) return;
  const { x, y, dash } = aim;
  room.send({ x: rounded(x), y: rounded(y), dash });
  said = { x, y, dash, at: now };
}

const rounded = (part: number): number => Math.round(part * 1_000) / 1_000;

function frame(now: number, sea: Sea, steering: Steering): void {
  // A page that was not looked at for long has nothing to catch up with.
  const elapsed = Math.min(Math.max(now - lastFrame, 0), 100);
  lastFrame = now;
  const aim = steering.aim();
  say(aim, now);
  sea.draw(now, elapsed, aim);
  showLabels(sea.labels(MOST_LABELS));
  requestAnimationFrame((next) => frame(next, sea, steering));
}

/** In the room, for the first time or again. */
function entered(): void {
  clearTimeout(noAnswer);
  wasIn = true;
  said = { x: 0, y: 0, dash: false, at: 0 };
  hideOverlay();
  const name = keptName();
  const [own] = room.entities.mine(Light);
  if (name !== "" && own?.name !== name) room.send({ name });
}

function waking(): void {
  clearTimeout(noAnswer);
  showWaking(wasIn);
}

function ended(error: PlayhallError): void {
  clearTimeout(noAnswer);
  if (error.code === CloseCode.SCHEMA_MISMATCH && reloadForNewBuild()) return;
  showClosed(error);
}

editName((name) => {
  if (room.status === "open") room.send({ name });
});
offerLink(roomId);

room.on("waking", waking);
room.on("disconnected", showLost);
room.on("restored", entered);
room.on("wake", hideOverlay);
room.on("closed", ended);

const sea = makeSea();
if (sea !== null) {
  follow(sea);
  const canvas = find<HTMLCanvasElement>("#sea");
  const steering = new Steering(canvas, find("#dash"), () => sea.ownOnPage());
  requestAnimationFrame((now) => frame(now, sea, steering));
  room.ready.then(
    () => {
      entered();
      canvas.focus();
    },
    // `closed` says why.
    () => undefined,
  );
}
