import { describe, expect, it } from "vitest";
import { Bars, Stairs } from "./columns.ts";

const HEIGHT = 200;

/** Random numbers that are the same in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe("Bars", () => {
  it("paint exactly the pixels of all bars, each once", () => {
    const random = seeded(6);
    const wanted = new Set<string>();
    const painted: string[] = [];
    const bars = new Bars(HEIGHT, (column, top, bottom) => {
      for (let y = top; y <= bottom; y++) painted.push(`${column} ${y}`);
    });
    for (let column = 0; column < 40; column++) {
      for (let bar = 0; bar < 30; bar++) {
        const low = Math.round(random() * 260) - 30;
        const high = low + 1 + Math.round(random() ** 3 * 60);
        bars.add(column, high, low, 1);
        for (let y = Math.max(0, low); y < Math.min(HEIGHT, high); y++) wanted.add(`${column} ${y}`);
      }
    }
    bars.flush();
    expect(painted.length).toBe(wanted.size);
    expect(new Set(painted)).toEqual(wanted);
  });

  it("can be seen however small they are, and are not longer than the picture", () => {
    const runs: number[][] = [];
    const bars = new Bars(HEIGHT, (...run) => runs.push(run));
    bars.add(7, 20, 20, 3);
    bars.add(8, -1e12, 1e12, 3);
    bars.add(9, 5_000, 5_100, 3);
    bars.flush();
    expect(runs).toEqual([
      [7, 19, 21],
      [8, 0, HEIGHT - 1],
    ]);
  });

  it("are as many as the picture has room for, not as there are packets", () => {
    let runs = 0;
    const bars = new Bars(HEIGHT, () => runs++);
    for (let n = 0; n < 200_000; n++)
      bars.add(Math.floor(n / 200), (n * 37) % HEIGHT, ((n * 37) % HEIGHT) + 1, 1);
    bars.flush();
    expect(runs).toBeLessThanOrEqual(1_000 * (HEIGHT / 2));
    expect(runs).toBeGreaterThanOrEqual(1_000);
  });
});

describe("Stairs", () => {
  function drawn(points: [number, number][], end: number): string[][] {
    const rows = Array.from({ length: 12 }, () => new Array<string>(16).fill("."));
    const stairs = new Stairs((x, y, width, height) => {
      for (let at = y; at < y + height; at++)
        for (let to = x; to < x + width; to++) (rows[at] as string[])[to] = "#";
    }, 1);
    for (const [x, y] of points) stairs.to(x, y);
    stairs.end(end);
    return rows;
  }
  const picture = (points: [number, number][], end: number) =>
    drawn(points, end)
      .map((row) => row.join("").replace(/\.+$/, ""))
      .join("\n")
      .trimEnd();

  it("stay at a height until they jump", () => {
    expect(
      picture(
        [
          [0, 3],
          [2, 3],
          [4, 1],
        ],
        6,
      ),
    ).toBe(["", "....###", "....#", "#####"].join("\n"));
  });

  it("show a column's extremes and go on from its last height", () => {
    const lines = picture(
      [
        [0, 5],
        [3, 9],
        [3, 1],
        [3, 4],
      ],
      6,
    ).split("\n");
    // Column 3 from height 1 to 9, then on at 4.
    expect(lines.map((line) => line[3] ?? " ").join("")).toBe(" #########");
    expect(lines[4]).toBe("...####");
    expect(lines[5]).toBe("####");
  });
});
