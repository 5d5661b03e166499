// What stands beside the board: numbers, the player's name, who is here, and the link to share.

const NAME_KEY = "dots.name";
const COPIED_MS = 2_000;
/** As room.py has it: so many code points are kept. */
const NAME_LENGTH = 24;

const find = <T extends HTMLElement>(selector: string): T =>
  document.querySelector<T>(selector)!;

export interface Listed {
  readonly name: string;
  readonly colour: string;
  readonly note: string;
}

export function showNumbers(
  online: number,
  ownMoves: number,
  allMoves: number,
): void {
  setText(find("#online"), String(online));
  setText(find("#own-moves"), shortened(ownMoves));
  setText(find("#all-moves"), shortened(allMoves));
}

/** 12,345, and from a hundred thousand on 123.5K, which still fits. */
function shortened(count: number): string {
  return count.toLocaleString(
    "en",
    count < 100_000 ? {} : { notation: "compact", maximumFractionDigits: 1 },
  );
}

/** Touch the page only where it differs: this is called with every update. */
function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function showPlayers(players: readonly Listed[]): void {
  const list = find<HTMLUListElement>("#players");
  while (list.children.length > players.length) list.lastElementChild!.remove();
  while (list.children.length < players.length) list.append(makeRow());
  players.forEach(({ name, colour, note }, index) => {
    const row = list.children[index] as HTMLLIElement;
    row.style.setProperty("--colour", colour);
    setText(row.children[1]!, name);
    setText(row.children[2]!, note);
  });
}

function makeRow(): HTMLLIElement {
  const row = document.createElement("li");
  row.append(
    ...["swatch", "who", "note"].map((name) =>
      Object.assign(document.createElement("span"), { className: name }),
    ),
  );
  return row;
}

/** The name of the last visit; empty in a browser that keeps nothing. */
export function keptName(): string {
  try {
    return localStorage.getItem(NAME_KEY) ?? "";
  } catch {
    return "";
  }
}

function keepName(name: string): void {
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch {
    // The name holds for this visit; the browser keeps nothing for the next.
  }
}

/** A name as the room will keep it: cut after the last character that fits whole, so that no emoji is split. */
function fitted(text: string): string {
  let name = "";
  for (const { segment } of new Intl.Segmenter().segment(text.trim())) {
    if ([...name, ...segment].length > NAME_LENGTH) break;
    name += segment;
  }
  return name.trimEnd();
}

/** Let the player change the name. */
export function editName(changed: (name: string) => void): void {
  const input = find<HTMLInputElement>("#name");
  let saved = keptName();
  input.value = saved;
  const save = (): void => {
    const name = (input.value = fitted(input.value));
    if (name === saved) return;
    saved = name;
    keepName(name);
    changed(name);
    announce(
      name === "" ? "Your name was cleared." : `Your name is now ${name}.`,
    );
  };
  find<HTMLFormElement>("#name-form").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
    input.blur();
  });
  input.addEventListener("change", save);
}

/** For those who hear the page. */
export function announce(text: string): void {
  find("#announcement").textContent = text;
}

/** The button that gives out the room's address. */
export function offerLink(room: string): void {
  setText(find("#room-name"), room);
  const button = find<HTMLButtonElement>("#share");
  const label = button.textContent!;
  const address = new URL(location.pathname, location.href);
  address.searchParams.set("room", room);
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(address.href).then(
      () => {
        button.textContent = "Copied";
        announce("The link was copied.");
        setTimeout(() => (button.textContent = label), COPIED_MS);
      },
      // Not allowed to, or no secure page: the player can copy it by hand.
      () => prompt("Copy this link:", address.href),
    );
  });
}
