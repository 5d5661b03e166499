// What stands over the board while there is no playing: why, and what to do about it.

import { CloseCode, type PlayhallError } from "@playhall/client";

/** The code of a connection that never came about, or broke without a word. */
const UNREACHABLE = 1006;

interface Action {
  readonly label: string;
  readonly run: () => void;
}

const overlay = document.querySelector<HTMLElement>("#overlay")!;
const spinner = overlay.querySelector<HTMLElement>(".spinner")!;
const title = overlay.querySelector<HTMLElement>("#overlay-title")!;
const text = overlay.querySelector<HTMLElement>("#overlay-text")!;
const button = overlay.querySelector<HTMLButtonElement>("#overlay-action")!;

function show(heading: string, message: string, action: Action | null): void {
  overlay.hidden = false;
  spinner.hidden = action !== null;
  title.textContent = heading;
  text.textContent = message;
  button.hidden = action === null;
  if (action === null) return;
  button.textContent = action.label;
  button.onclick = action.run;
  button.focus();
}

export function hideOverlay(): void {
  overlay.hidden = true;
}

/** The page finds no server: said once it has tried for a while, and taken back by whatever is said next. */
export function showNoAnswer(): void {
  show("Connecting", "No answer from the server yet; trying again.", null);
}

/** The room is being started: for the first visit, or because it went away under this one. */
export function showWaking(wasIn: boolean): void {
  show(
    "Starting the room…",
    wasIn ? "You will be back in a moment." : "It takes a moment.",
    null,
  );
}

export function showLost(): void {
  show(
    "Connection lost",
    "Coming back by itself. If it takes long, check your network.",
    null,
  );
}

const reload: Action = { label: "Try again", run: () => location.reload() };

/** Why the game is over for now, and the one thing to do. Reconnecting by itself would not help. */
export function showClosed(error: PlayhallError): void {
  switch (error.code) {
    case CloseCode.SCHEMA_MISMATCH:
      return show("A new version is out", "Reload the page to get it.", {
        ...reload,
        label: "Reload",
      });
    case CloseCode.REPLACED:
      return show(
        "Playing in another tab",
        "You opened this game somewhere else. Only one can play at a time.",
        { ...reload, label: "Play here" },
      );
    case CloseCode.ROOM_FULL:
      return show(
        "The room is full",
        "Try again when someone has left.",
        reload,
      );
    case CloseCode.KICKED:
      return show("You were removed", "The room ended your visit.", reload);
    case CloseCode.ROOM_STOPPED:
      return show(
        "The room stopped",
        "It ran into an error; the game's log has it. Trying again starts from what was saved last, and may end the same way.",
        reload,
      );
    case CloseCode.HIBERNATED:
      return show("The room went to sleep", "Come back in to wake it.", {
        ...reload,
        label: "Wake it",
      });
    case UNREACHABLE:
      return show(
        "No answer",
        "The game's server cannot be reached. Check your network, then try again.",
        reload,
      );
    default:
      return show("Not connected", `${error.message} (${error.code})`, reload);
  }
}

/** The sea cannot be drawn at all. */
export function showUndrawable(): void {
  show(
    "This browser cannot draw the sea",
    "The game needs WebGL 2. Turn on hardware acceleration, or try another browser.",
    reload,
  );
}
