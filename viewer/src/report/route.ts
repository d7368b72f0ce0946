import { useEffect, useState } from "preact/hooks";

/** A place within a connection: a zoomed range in ms from the capture's first packet, or a packet to look at. */
export interface Focus {
  range?: [from: number, to: number];
  packet?: number;
}

/** Where in the report its reader is; each has a URL of its own. */
export type Route =
  | { at: "start" }
  | { at: "capture"; capture: number }
  | { at: "connection"; capture: number; connection: number; focus: Focus }
  | { at: "finding"; capture: number; finding: number; focus: Focus };

/** The route of a URL's hash; what is no route is the start. */
export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [kind, ...rest] = path.split("/");
  const [capture, item] = rest.map(whole);
  if (rest.length > 2 || capture === undefined) return { at: "start" };
  const focus = parseFocus(new URLSearchParams(query));
  if (kind === "c" && rest.length === 1) return { at: "capture", capture };
  if (kind === "c" && item !== undefined) return { at: "connection", capture, connection: item, focus };
  if (kind === "f" && item !== undefined) return { at: "finding", capture, finding: item, focus };
  return { at: "start" };
}

/** The hash of a route's URL. */
export function href(route: Route): string {
  switch (route.at) {
    case "start":
      return "#/";
    case "capture":
      return `#/c/${route.capture}`;
    case "connection":
      return `#/c/${route.capture}/${route.connection}${query(route.focus)}`;
    case "finding":
      return `#/f/${route.capture}/${route.finding}${query(route.focus)}`;
  }
}

/** A connection's URL, or that of a packet in it. */
export function hrefOf(capture: number, connection: number, packet?: number): string {
  return href({ at: "connection", capture, connection, focus: packet === undefined ? {} : { packet } });
}

function whole(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function parseFocus(query: URLSearchParams): Focus {
  const focus: Focus = {};
  const packet = whole(query.get("packet") ?? "");
  if (packet !== undefined) focus.packet = packet;
  const [from, to] = [query.get("from"), query.get("to")].map((text) => (text ? Number(text) : Number.NaN));
  if (from !== undefined && to !== undefined && Number.isFinite(from) && Number.isFinite(to) && from < to) {
    focus.range = [from, to];
  }
  return focus;
}

function query(focus: Focus): string {
  const parts: string[] = [];
  if (focus.packet !== undefined) parts.push(`packet=${focus.packet}`);
  // To the nanosecond: that is how exact captures are.
  if (focus.range) parts.push(`from=${round(focus.range[0])}`, `to=${round(focus.range[1])}`);
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}

function round(ms: number): string {
  return String(Number(ms.toFixed(6)));
}

/** The route of the address bar, as it changes. */
export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}

/** Goes there, as a link would. */
export function go(to: string): void {
  location.hash = to;
}

/** Writes a route into the address bar without a step in the history: dragging a plot makes hundreds. */
export function note(route: Route): void {
  history.replaceState(history.state, "", href(route));
}
