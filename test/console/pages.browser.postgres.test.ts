import { testDatabase } from "../setup/postgres.ts";
import { pagesSuite } from "./pages-suite.ts";

pagesSuite("PostgreSQL", testDatabase);
