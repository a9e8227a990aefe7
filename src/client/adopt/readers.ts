import type { AdoptReader, AdoptTool } from "./reader.ts";
import { basicMemoryReader } from "./readers/basic-memory.ts";
import { claudeCodeReader } from "./readers/claude-code.ts";
import { claudeMemReader } from "./readers/claude-mem.ts";
import { codexReader } from "./readers/codex.ts";
import { geminiReader } from "./readers/gemini.ts";
import { memoryMdReader } from "./readers/memory-md.ts";
import { opencodeReader } from "./readers/opencode.ts";

/** One reader per tool. */
export const READERS: Readonly<Record<AdoptTool, AdoptReader>> = {
  "claude-code": claudeCodeReader,
  codex: codexReader,
  gemini: geminiReader,
  opencode: opencodeReader,
  "claude-mem": claudeMemReader,
  "basic-memory": basicMemoryReader,
  "memory-md": memoryMdReader,
};
