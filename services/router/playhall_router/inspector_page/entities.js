// The panel of entities: filtered by kind, owner and id, a page at a time.

import { el, reconcile, setText } from "./dom.js";
import { drawFields } from "./panels.js";
import { namesOf, setPlayer, withNames } from "./players.js";
import { count, plural } from "./text.js";

const LIMIT = 100;

export class EntitiesPanel {
  /** `ask` fetches at once, `remember` is called when there is another choice to remember. */
  constructor(ask, remember) {
    this.offsets = [0];
    // The kind that an address asks for, until the room's kinds are known.
    this.wanted = "";
    const changed = () => {
      this.offsets = [0];
      this.wanted = "";
      remember();
      ask();
    };
    this.kind = el("select", { id: "kind", onchange: changed });
    this.owner = el("input", {
      id: "owner",
      placeholder: "anyone",
      autocomplete: "off",
      oninput: changed,
    });
    this.room = el("input", {
      id: "of-room",
      type: "checkbox",
      onchange: changed,
    });
    this.entity = el("input", {
      id: "entity",
      inputMode: "numeric",
      placeholder: "any",
      oninput: changed,
    });
    this.found = el("p", { className: "note", id: "found" });
    this.back = el(
      "button",
      { type: "button", onclick: () => this.turn(-1, ask) },
      "Back",
    );
    this.next = el(
      "button",
      { type: "button", onclick: () => this.turn(1, ask) },
      "Next",
    );
    this.rows = el("ul", { className: "stack", id: "entities" });
    const label = (text, input) => el("label", {}, el("span", {}, text), input);
    const filters = el(
      "form",
      { className: "filters", onsubmit: (event) => event.preventDefault() },
      label("Kind", this.kind),
      label("Owner", this.owner),
      label("The room's", this.room),
      label("Id", this.entity),
    );
    const pages = el(
      "div",
      { className: "pages" },
      this.found,
      this.back,
      this.next,
    );
    this.root = el(
      "div",
      { className: "panel" },
      el("article", {}, el("h2", {}, "Entities"), filters, pages, this.rows),
    );
  }

  choices() {
    return {
      kind: this.wanted || this.kind.value,
      owner: this.owner.value,
      of: this.room.checked ? "room" : "",
      id: this.entity.value,
    };
  }

  restore(choices) {
    this.wanted = choices.get("kind") ?? "";
    this.owner.value = choices.get("owner") ?? "";
    this.room.checked = choices.get("of") === "room";
    this.entity.value = choices.get("id") ?? "";
  }

  query() {
    const query = new URLSearchParams({
      limit: LIMIT,
      offset: this.offsets.at(-1),
    });
    const kind = this.wanted || this.kind.value;
    if (kind !== "") query.set("kind", kind);
    if (this.room.checked) query.set("owner", "");
    else if (this.owner.value) query.set("owner", this.owner.value);
    if (/^[0-9]{1,9}$/.test(this.entity.value))
      query.set("entity", this.entity.value);
    return query;
  }

  draw(room) {
    this.drawKinds(room.kinds);
    this.owner.disabled = this.room.checked;
    const { total, offset, next_offset: next, items } = room.entities;
    this.nextOffset = next;
    this.next.hidden = next === null;
    this.back.hidden = this.offsets.length === 1;
    const span =
      items.length === total
        ? ""
        : `, ${count(offset + 1)} to ${count(offset + items.length)} shown`;
    const names = namesOf(room);
    setText(
      this.found,
      plural(total, "entity", "entities") + (items.length === 0 ? "" : span),
    );
    reconcile(
      this.rows,
      items,
      (entity) => `${entity.id} ${entity.kind}`,
      makeRow,
      (row, entity) => {
        const owner = row.querySelector(".owner");
        if (entity.owner !== null) setPlayer(owner, names, entity.owner);
        else {
          setText(owner, "the room's");
          owner.title = "";
        }
        owner.classList.toggle("soft", entity.owner === null);
        drawFields(row.lastElementChild, entity.fields, withNames(names));
      },
    );
  }

  drawKinds(kinds) {
    const options = [{ name: "", text: "all" }];
    for (const kind of kinds) {
      options.push({
        name: kind.name,
        text: `${kind.name} (${count(kind.count)})${kind.hidden ? " hidden" : ""}`,
      });
    }
    reconcile(
      this.kind,
      options,
      (option) => option.name,
      (option) => el("option", { value: option.name }),
      (option, { text }) => setText(option, text),
    );
    if (
      this.wanted !== "" &&
      options.some(({ name }) => name === this.wanted)
    ) {
      this.kind.value = this.wanted;
      this.wanted = "";
    }
  }

  turn(step, ask) {
    if (step > 0 && this.nextOffset !== null)
      this.offsets.push(this.nextOffset);
    if (step < 0) this.offsets.pop();
    ask();
  }
}

function makeRow(entity) {
  const title = el(
    "h3",
    {},
    el("b", {}, `#${entity.id}`),
    ` ${entity.kind} `,
    el("span", { className: "owner" }),
  );
  if (entity.hidden)
    title.append(el("span", { className: "badge hidden" }, "hidden"));
  return el(
    "li",
    { className: entity.hidden ? "is-hidden" : "" },
    title,
    el("dl", { className: "fields" }),
  );
}
