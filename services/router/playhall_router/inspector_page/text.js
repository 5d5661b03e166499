// What numbers and values look like as text.

const whole = new Intl.NumberFormat("en");

export const count = (number) => whole.format(number);

export const plural = (number, one, many = `${one}s`) =>
  `${count(number)} ${number === 1 ? one : many}`;

/** A duration in microseconds. */
export function duration(us) {
  if (us < 1_000) return `${us < 10 ? us.toFixed(1) : us.toFixed(0)} µs`;
  return us < 1_000_000
    ? `${(us / 1_000).toPrecision(3)} ms`
    : `${(us / 1_000_000).toPrecision(3)} s`;
}

export function bytes(number) {
  return number < 1_024
    ? `${number} B`
    : `${(number / 1_024).toFixed(number < 10_240 ? 1 : 0)} KB`;
}

/** A generation: the epoch of the state store that granted it, and its count of grants in it. */
export const generation = (number) =>
  `${Math.floor(number / 2 ** 32)}.${number % 2 ** 32}`;

const milliseconds = (us) => String(Number((us / 1_000).toPrecision(3)));

/** Why a room does not keep its tick rate; empty: it does, or that is not known. */
export function slowness(room) {
  if (room.slow === null) return "";
  const { row, takes_us: takes } = room.slow;
  const part = `${milliseconds(takes)} of ${milliseconds(1_000_000 / room.tick_rate)} ms`;
  const rate = `${Number(room.ticks_per_s.toPrecision(2))} of ${room.tick_rate} ticks/s`;
  return row === null
    ? `slow: ${rate}, though its ticks take ${part}: something else keeps its process busy`
    : `slow: ${row} takes ${part}, ${rate}`;
}

/** The time of day of a wall time in seconds. */
export function timeOfDay(seconds) {
  const at = new Date(seconds * 1_000);
  const two = (number, width = 2) => String(number).padStart(width, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${two(at.getMilliseconds(), 3)}`;
}

const isCut = (value) =>
  typeof value === "object" &&
  value !== null &&
  "cut" in value &&
  "size" in value;
const isBytes = (value) =>
  typeof value === "object" &&
  value !== null &&
  "hex" in value &&
  "bytes" in value;

/** A text as it came, or as far as it was shown. */
export const words = (value) =>
  isCut(value)
    ? `${value.cut}… (${count(value.size)} characters)`
    : String(value);

/** A number in as few digits as tell it from others of its precision. */
function figure(value) {
  if (Number.isInteger(value) || Math.fround(value) !== value)
    return String(value);
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
}

/** Any value that came as JSON, or stands for one that JSON cannot carry. */
export function show(value) {
  if (value === undefined) return "";
  if (isCut(value)) return words(value);
  if (isBytes(value)) {
    const shown =
      value.hex.length / 2 < value.bytes ? `${value.hex}…` : value.hex;
    return value.bytes === 0
      ? "no bytes"
      : `${plural(value.bytes, "byte")} ${shown}`;
  }
  return typeof value === "number" ? figure(value) : JSON.stringify(value);
}
