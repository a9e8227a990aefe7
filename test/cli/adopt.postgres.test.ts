import { join } from "node:path";
import { testDatabase } from "../setup/postgres.ts";
import { adoptSuite } from "./adopt-suite.ts";

adoptSuite("PostgreSQL", async (folder) => {
  const { url, drop } = await testDatabase();
  return { flags: ["--data-dir", join(folder, "data"), "--storage", url], close: drop };
});
