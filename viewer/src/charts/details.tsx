import type { Connection } from "../data/page.ts";
import type { Model } from "./model.ts";
import type { Range } from "./view.ts";

export function Details(_: { model: Model; connection: Connection; view: Range }) {
  return null;
}
