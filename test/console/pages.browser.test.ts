import { pagesSuite } from "./pages-suite.ts";

pagesSuite("SQLite", async () => ({ url: "sqlite", drop: async () => {} }));
