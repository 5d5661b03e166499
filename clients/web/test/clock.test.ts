import { describe, expect, test } from "vitest";
import { RoomClock } from "../src/core/clock.js";

/** 20 ticks a second: a tick is 50 ms. */
function started(): RoomClock {
  const clock = new RoomClock();
  clock.start(100, 128, 20, 1_000);
  return clock;
}

describe("the room's tick", () => {
  test("goes on from the welcome", () => {
    const clock = started();
    expect(clock.tick(1_000)).toBeCloseTo(100.5);
    expect(clock.tick(2_000)).toBeCloseTo(120.5);
    expect(clock.rtt).toBe(0);
  });

  test("is taken from the first answer, half a round trip old", () => {
    const clock = started();
    clock.sample(110, 0, 100, 1_500);
    expect(clock.tick(1_500)).toBeCloseTo(111);
    expect(clock.rtt).toBe(100);
  });

  test("follows the lowest round trip of the last 8", () => {
    const clock = started();
    clock.sample(110, 0, 40, 1_500);
    for (let at = 1; at <= 7; at++) clock.sample(110 + at * 20, 0, 400, 1_500 + at * 1_000);
    expect(clock.rtt).toBe(40);
    expect(clock.tick(8_500)).toBeCloseTo(250.4);
    clock.sample(270, 0, 300, 9_500);
    expect(clock.rtt).toBe(300);
  });

  test("is off by half the difference of the ways", () => {
    const clock = started();
    clock.sample(110, 0, 100, 1_500);
    // All of those 100 ms were on the way there: the answer was new, and is taken for 50 ms old.
    expect(clock.tick(1_500) - 110).toBeCloseTo(1);
  });

  test("catches up by at most 5 % of speed, but jumps if over 250 ms off", () => {
    const clock = started();
    clock.sample(110, 0, 100, 1_500);
    clock.sample(112, 0, 50, 1_500);
    expect(clock.tick(1_500)).toBeCloseTo(111);
    expect(clock.tick(2_500)).toBeCloseTo(131.5 + 0.5);
    expect(clock.tick(3_500)).toBeCloseTo(152.5);
    clock.sample(200, 0, 20, 3_500);
    expect(clock.tick(3_500)).toBeCloseTo(200.2);
  });
});
