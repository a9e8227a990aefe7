#!/usr/bin/env node
// npm run screenshots: takes the pictures of the console in docs/console/.
import { pathToFileURL } from "node:url";
import { compileForNode } from "./run-typescript.mjs";

await import(pathToFileURL(compileForNode("bench/console/screenshots.ts")).href);
