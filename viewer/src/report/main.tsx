import { render } from "preact";
import { load } from "../data/load.ts";
import "../style/palette.css";
import "../style/page.css";
import "../style/ledger.css";
import "../style/list.css";
import "../style/finding.css";
import "../style/print.css";
import { App } from "./app.tsx";
import { followTheme, setPrinting } from "./theme.ts";

const root = document.getElementById("page");
if (root) start(root);

function start(root: HTMLElement): void {
  followTheme();
  const loaded = load(document);
  if (typeof loaded === "string") {
    render(<p class="trouble">{loaded}</p>, root);
    return;
  }
  const show = (printing: boolean) => {
    setPrinting(printing);
    render(<App loaded={loaded} printing={printing} />, root);
  };
  // What is folded away on the screen is unfolded before the page is laid out for paper.
  addEventListener("beforeprint", () => show(true));
  addEventListener("afterprint", () => show(false));
  show(false);
}
