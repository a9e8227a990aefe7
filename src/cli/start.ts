/** The entry of the bundle: what `cairn` needs before it knows the command. */
export { openFilesProblem } from "../files/open-files.ts";
export { runCli } from "./run.ts";
