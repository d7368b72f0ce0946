import type { Page, PageCapture, Report } from "../data/page.ts";
import type { Row } from "./connections/order.ts";
import type { Focus, Route } from "./route.ts";

interface Props {
  report: Report;
  page: Page;
  capture: number;
  known: PageCapture;
  row: Row;
  focus: Focus;
  /** The route of another focus on the same place. */
  routeOf(focus: Focus): Route;
}

/** The packets of a connection, where the page has them, or why it has not. */
export function Packets({ known, row }: Props) {
  const info = known.tables.find(({ connection }) => connection === row.connection.id);
  const why =
    known.no_packets ?? "The page has the packets of other connections only: --html-packets N takes more.";
  return (
    <section class="card" aria-labelledby="packets">
      <h2 id="packets">Packets</h2>
      <p>{info ? "The pictures of the packets are not in this page." : why}</p>
    </section>
  );
}
