import { CLOSES, type CloseCode } from "../gen/codes.js";

/**
 * Why something failed. `code` is a close code of `CloseCode`; of a call, 422, 404 or 429, and 0 where no answer came.
 * The text is for people; programs look at the code.
 */
export class PlayhallError extends Error {
  override readonly name = "PlayhallError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Bytes that do not follow the protocol. The connection that brought them is closed with 4000. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** The error for a connection that closed with `code`; `reason` is what the server said, if it said anything. */
export function closeError(code: number, reason: string): PlayhallError {
  const info = CLOSES[code as CloseCode];
  const help = info ? info.help : `The connection closed with code ${code}.`;
  const said = withoutDot(reason);
  const repeats = withoutDot(help).toLowerCase() === said.toLowerCase();
  return new PlayhallError(code, said === "" || repeats ? help : `${said}. ${help}`);
}

function withoutDot(text: string): string {
  return text.endsWith(".") ? text.slice(0, -1) : text;
}
