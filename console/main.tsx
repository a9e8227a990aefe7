import { render } from "preact";
import { openSession } from "./api/session.ts";
import { STYLE } from "./generated/style.ts";
import { App } from "./shell/app.tsx";
import "./state/theme.ts";

// A sheet of the document's own, because the policy allows no other inline style than that of the page.
const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);
document.adoptedStyleSheets = [sheet];

await openSession();
const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
