import { expect, it } from "vitest";
import { href, parse, type Route } from "./route.ts";

it("gives every place a URL and finds back to it", () => {
  const routes: Route[] = [
    { at: "start" },
    { at: "capture", capture: 2 },
    { at: "connection", capture: 0, connection: 17, focus: {} },
    { at: "connection", capture: 0, connection: 17, focus: { packet: 21, range: [1.5, 2.000001] } },
    { at: "finding", capture: 1, finding: 3, focus: { packet: 8 } },
  ];
  for (const route of routes) expect(parse(href(route))).toEqual(route);
  expect(href({ at: "connection", capture: 0, connection: 1, focus: { range: [0.1 + 0.2, 5] } })).toBe(
    "#/c/0/1?from=0.3&to=5",
  );
});

it("goes to the start where the URL makes no sense", () => {
  for (const hash of [
    "",
    "#",
    "#/x",
    "#/c",
    "#/c/",
    "#/c/-1/2",
    "#/c/0/1e3",
    "#/c/0/1/2",
    "#/f/0",
    "#/<b>",
    "#/f/0/99999999999999999999",
  ]) {
    expect(parse(hash), hash).toEqual({ at: "start" });
  }
});

it("passes over ranges that are none", () => {
  for (const query of [
    "from=1",
    "from=5&to=5",
    "from=x&to=9",
    "from=&to=3",
    "from=0&to=Infinity",
    "packet=-3",
  ]) {
    expect(parse(`#/c/0/1?${query}`), query).toEqual({
      at: "connection",
      capture: 0,
      connection: 1,
      focus: {},
    });
  }
});
