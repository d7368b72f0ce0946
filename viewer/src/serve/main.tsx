import { render } from "preact";
import "../style/palette.css";
import "../style/page.css";
import "../style/ledger.css";
import "./style.css";
import { followTheme } from "../report/theme.ts";
import { App } from "./app.tsx";

const page = document.getElementById("page");
if (page) {
  followTheme();
  render(<App />, page);
}
