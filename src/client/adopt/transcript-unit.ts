import type { Redact } from "../../text/redact.ts";
import { ADOPT_LIMITS } from "./limits.ts";
import type { ListedFile } from "./list-files.ts";
import { type JsonObject, jsonLines } from "./read-file.ts";
import type { AdoptItem, AdoptUnit } from "./reader.ts";
import { type SessionEntry, sessionDigest } from "./session-digest.ts";

export interface TranscriptFormat {
  /** Names the format in a problem: `Claude Code 2.1`. */
  readonly name: string;
  /** Returns whether a line belongs to the format. A file without any such line is reported as unknown. */
  readonly recognises: (line: JsonObject) => boolean;
  readonly entriesOf: (line: JsonObject) => Iterable<SessionEntry>;
}

export interface TranscriptOptions {
  readonly sessionId: string;
  readonly redact: Redact;
  /** Known from elsewhere than the file. */
  readonly folder?: string | undefined;
}

/** Returns a file of JSON lines that holds one session as a unit. */
export function transcriptUnit(file: ListedFile, format: TranscriptFormat, { sessionId, folder, redact }: TranscriptOptions): AdoptUnit {
  return {
    path: file.path,
    bytes: file.bytes,
    fingerprint: file.fingerprint,
    async *read(signal): AsyncGenerator<AdoptItem> {
      if (file.bytes > ADOPT_LIMITS.transcriptBytes) {
        yield { type: "problem", path: file.path, problem: `has more than ${ADOPT_LIMITS.transcriptBytes} bytes` };
        return;
      }
      const digest = sessionDigest(redact);
      if (folder !== undefined) digest.add({ type: "about", folder });
      let recognised = file.bytes === 0;
      for await (const line of jsonLines(file.path, signal)) {
        recognised ||= format.recognises(line);
        if (recognised) for (const entry of format.entriesOf(line)) digest.add(entry);
      }
      if (recognised) yield { type: "session", sessionId, digest: digest.value() };
      else yield { type: "problem", path: file.path, problem: `has an unknown format; known is that of ${format.name}` };
    },
  };
}
