// The panel of entities: filtered by kind, owner and id, a page at a time.

import { el, reconcile, setText } from "./dom.js";
import { drawFields, nameFor, namesOf } from "./panels.js";
import { count, plural } from "./text.js";

const LIMIT = 100;

export class EntitiesPanel {
  /** `ask` fetches at once. */
  constructor(ask) {
    this.offsets = [0];
    const changed = () => {
      this.offsets = [0];
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

  query() {
    const query = new URLSearchParams({
      limit: LIMIT,
      offset: this.offsets.at(-1),
    });
    if (this.kind.value) query.set("kind", this.kind.value);
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
        setText(
          owner,
          entity.owner === null ? "the room's" : nameFor(names, entity.owner),
        );
        owner.title = entity.owner ?? "";
        owner.classList.toggle("soft", entity.owner === null);
        drawFields(row.lastElementChild, entity.fields);
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
