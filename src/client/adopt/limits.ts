/** Limits on the data of other tools. A larger part is reported as a problem and left out. */
export const ADOPT_LIMITS = {
  /** Files of one tool. */
  files: 100_000,
  /** Entries of one directory that are looked at. */
  directoryEntries: 200_000,
  /** A transcript is streamed, so its size costs time only. */
  transcriptBytes: 2 * 1024 * 1024 * 1024,
  /** Bytes without a line break after which a file is given up. */
  unbrokenBytes: 256 * 1024 * 1024,
  /** A line is in memory twice. Lines with pictures have a few megabytes. */
  lineBytes: 16 * 1024 * 1024,
  /** Fields and items of one line. */
  lineValues: 500_000,
  /** A file that is one JSON document is in memory as a whole. */
  documentBytes: 64 * 1024 * 1024,
  /** A Markdown note. */
  noteBytes: 1024 * 1024,
  /** Index files, such as a list of projects. */
  indexBytes: 16 * 1024 * 1024,
  /** A database is copied before it is read. */
  databaseBytes: 4 * 1024 * 1024 * 1024,
  /** Characters that are read of one message or column. */
  textChars: 100_000,
  /** Sections of one note. */
  noteSections: 500,
} as const;
