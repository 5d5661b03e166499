// The panels of shared and private state, of who is connected, and of the log.

import { el, reconcile, setText } from "./dom.js";
import { namesOf, setPlayer, withNames, wordsWithNames } from "./players.js";
import { bytes, count, plural, show, timeOfDay, words } from "./text.js";

/** A list of values by name. */
export function drawFields(list, fields, asText = show) {
  reconcile(
    list,
    Object.entries(fields),
    ([name]) => name,
    ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
    (pair, [, value]) => setText(pair.lastElementChild, asText(value)),
  );
}

const fieldList = () => el("dl", { className: "fields" });

export class StatePanel {
  constructor() {
    this.shared = fieldList();
    this.none = el(
      "p",
      { className: "empty" },
      "The room has no shared state.",
    );
    this.heading = el("h2", {}, "Private state");
    this.players = el("ul", { className: "stack" });
    this.more = el("p", { className: "note", hidden: true });
    const shared = el(
      "article",
      {},
      el("h2", {}, "Shared state"),
      this.none,
      this.shared,
    );
    this.root = el(
      "div",
      { className: "panel" },
      shared,
      el("article", {}, this.heading, this.more, this.players),
    );
  }

  draw(room) {
    this.none.hidden = room.state !== null;
    const names = namesOf(room);
    drawFields(this.shared, room.state ?? {}, withNames(names));
    const { total, items } = room.private;
    setText(this.heading, `Private state of ${plural(total, "player")}`);
    this.more.hidden = items.length === total;
    setText(this.more, `The first ${count(items.length)} are shown.`);
    reconcile(
      this.players,
      items,
      (item) => item.player,
      () => el("li", {}, el("h3"), fieldList()),
      (row, item) => {
        setPlayer(row.firstElementChild, names, item.player);
        drawFields(row.lastElementChild, item.fields, withNames(names));
      },
    );
  }
}

export class ConnectionsPanel {
  constructor() {
    this.rows = el("ul", { className: "stack", id: "connections" });
    this.entries = el("ul", { className: "stack", id: "presence" });
    this.others = el("div", { className: "lists" });
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, el("h2", {}, "Connections"), this.rows),
      el("article", {}, el("h2", {}, "Presence"), this.entries),
      this.others,
    );
  }

  draw(room) {
    const names = namesOf(room);
    reconcile(
      this.rows,
      room.connections,
      (link) => `${link.player} ${link.id}`,
      () => el("li", {}, el("h3"), fieldList()),
      (row, link) => {
        setPlayer(row.firstElementChild, names, link.player);
        drawFields(row.lastElementChild, figuresOf(link, room), words);
      },
    );
    reconcile(
      this.entries,
      room.presence,
      (entry) => entry.player,
      () => el("li", {}, el("h3"), fieldList()),
      (row, entry) => {
        setPlayer(row.firstElementChild, names, entry.player);
        drawFields(row.lastElementChild, {
          connected: entry.connected,
          status: entry.status,
        });
      },
    );
    this.drawOthers(room, names);
  }

  drawOthers(room, names) {
    const banned = room.bans.items.map((player) => ({ player }));
    const bots = room.bots.map(({ player, kind, status, fields }) => ({
      player,
      kind,
      status,
      ...fields,
    }));
    const lists = { Bots: bots, [`Banned: ${count(room.bans.total)}`]: banned };
    reconcile(
      this.others,
      Object.entries(lists).filter(([, list]) => list.length > 0),
      ([title]) => title,
      ([title]) =>
        el(
          "article",
          {},
          el("h2", {}, title),
          el("ul", { className: "stack" }),
        ),
      (article, [, list]) =>
        reconcile(
          article.lastElementChild,
          list,
          (item) => item.player,
          () => el("li", {}, el("h3"), fieldList()),
          (row, { player, ...fields }) => {
            setPlayer(row.firstElementChild, names, player);
            drawFields(row.lastElementChild, fields, withNames(names));
          },
        ),
    );
  }
}

/** What is worth knowing of a connection; what is as it should be is left out. */
function figuresOf(link, room) {
  const figures = {
    connection: link.id,
    since: timeOfDay(link.connected_at_ms / 1_000).slice(0, 8),
    sees: link.sees,
    client_tick: link.client_tick,
    credit: bytes(Math.max(0, link.credit)),
    meta: show(link.meta),
  };
  if (!link.joined) figures.state = "joining";
  if (link.version < room.version)
    figures.behind = plural(room.version - link.version, "version");
  if (link.waiting_bytes > 0) figures.waiting = bytes(link.waiting_bytes);
  if (link.held) figures.held = true;
  if (link.stalled_s !== null) figures.stalled_s = link.stalled_s;
  return figures;
}

export class LogPanel {
  constructor() {
    this.empty = el("p", { className: "empty" }, "Nothing was logged.");
    this.lines = el("ol", { className: "lines", id: "log" });
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, el("h2", {}, "Log"), this.empty, this.lines),
    );
  }

  draw(room) {
    const lines = room.log.toReversed();
    const asText = wordsWithNames(namesOf(room));
    this.empty.hidden = lines.length > 0;
    reconcile(
      this.lines,
      lines,
      (line) => `${room.generation} ${line.number}`,
      makeLine,
      (row, line) => setText(row.querySelector(".words"), textOf(line, asText)),
    );
  }
}

function textOf(line, asText) {
  const fields = Object.entries(line.fields).map(
    ([name, value]) => `${name}=${asText(value)}`,
  );
  const own = line.event === "room.log";
  return [own ? "" : line.event, words(line.message), ...fields]
    .filter((each) => each !== "")
    .join(" ");
}

function makeLine(line) {
  const made = el(
    "li",
    { className: line.level },
    el("time", {}, timeOfDay(line.at)),
    el("span", { className: "badge" }, line.level),
    el("span", { className: "words" }),
  );
  if (line.traceback !== null) made.append(el("pre", {}, line.traceback));
  return made;
}
